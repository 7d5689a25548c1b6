/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace as gdb's target. It is stopped at its end. Of the registers only RIP is known, and of the memory only
 * executed code and the contents of its files. gdb itself moves in the history.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "gdb/target_trace.h"

#define SIGNAL_TRAP 5u

static enum gdb_architecture target_architecture(void *data)
{
  struct gdb_trace *trace = data;
  const struct gdb_trace_thread *thread = gdb_trace_find(trace, trace->threads[0].id);

  return thread && thread->is_32 ? GDB_I386 : GDB_X86_64;
}

static bool target_thread(void *data, size_t index, struct gdb_thread *ret_thread)
{
  struct gdb_trace *trace = data;

  if (index >= trace->count)
    return false;
  *ret_thread = (struct gdb_thread){trace->threads[index].id, trace->threads[index].name};
  return true;
}

static int target_read_register(void *data, uint64_t id, enum gdb_register number, uint8_t *bytes)
{
  const struct gdb_trace_thread *thread;

  if (number != GDB_RIP)
    return 0;
  thread = gdb_trace_find(data, id);
  if (!thread)
    return -ESRCH;
  bytes_put_u64(bytes, thread->rip); /* in 32-bit mode, the first four bytes */
  return 1;
}

/* gdb finds breakpoints in the history by itself, but requires them to be set. */
static int target_point(void *data, bool is_set, enum gdb_point kind, uint64_t address, uint64_t size)
{
  (void)data, (void)is_set, (void)address, (void)size;
  return kind == GDB_POINT_SOFTWARE || kind == GDB_POINT_HARDWARE ? 0 : -EOPNOTSUPP;
}

static void target_stop(void *data, struct gdb_stop *ret_stop)
{
  struct gdb_trace *trace = data;

  *ret_stop = (struct gdb_stop){.kind = GDB_STOPPED, .signal = SIGNAL_TRAP, .thread = trace->threads[0].id};
}

static int target_resume(void *data, const struct gdb_resume *resume, struct gdb_stop *ret_stop)
{
  target_stop(data, ret_stop);
  ret_stop->kind = GDB_ENDED;
  if (resume->thread)
    ret_stop->thread = resume->thread;
  gdb_session_print(resume->session, "lbr: the trace ends here; reverse-stepi and similar commands go back.\n");
  return 0;
}

static int target_object(void *data, enum gdb_object object, struct text *content)
{
  struct gdb_trace *trace = data;
  const struct gdb_module *program = gdb_modules_program(&trace->modules);

  switch (object) {
  case GDB_EXEC_FILE:
    return program ? text_add(content, program->path) : -ENOENT;
  case GDB_AUXV:
    return gdb_modules_auxv(&trace->modules, content);
  case GDB_LIBRARIES:
    return gdb_modules_libraries(&trace->modules, content);
  default:
    return -ENOENT;
  }
}

static int target_monitor(void *data, const char *command, struct text *output)
{
  struct gdb_trace *trace = data;

  if (strcmp(command, "trace"))
    return text_add(output, "monitor trace: what is served\n") < 0 ? -ENOMEM : -EINVAL;
  for (size_t i = 0; i < trace->count; i++) {
    const struct gdb_trace_thread *thread = gdb_trace_find(trace, trace->threads[i].id);

    if (thread && text_addf(output, "thread %u (the system's %u): %s at 0x%" PRIx64 "\n", thread->stream,
                            thread->thread, thread->has_died ? "died" : "ends", thread->rip) < 0)
      return -ENOMEM;
  }
  return 0;
}

/* ---- the history ---- */

static bool target_history_is_on(void *data, uint64_t id)
{
  (void)data, (void)id;
  return true;
}

/* gdb may stop and start recording again. The recorded branches stay, and are then new to it. */
static int target_history_enable(void *data, uint64_t id, bool is_on)
{
  struct gdb_trace_thread *thread = gdb_trace_find(data, id);

  (void)is_on;
  if (thread)
    thread->is_read = false;
  return thread ? 0 : -ESRCH;
}

static int target_history_begin(void *data, uint64_t id, enum gdb_history which)
{
  struct gdb_trace *trace = data;
  struct gdb_trace_thread *thread = gdb_trace_find(trace, id);
  int r = thread ? gdb_trace_load(trace, thread) : -ESRCH;

  if (r < 0)
    return r;
  r = gdb_blocks_read(&trace->blocks, which, thread->is_read);
  thread->is_read |= r >= 0;
  return r;
}

static int target_history_next(void *data, struct gdb_block *ret_block)
{
  struct gdb_trace *trace = data;

  return gdb_blocks_next(&trace->blocks, ret_block);
}

struct gdb_target gdb_trace_target(struct gdb_trace *trace)
{
  return (struct gdb_target){
    .data = trace,
    .features = trace->is_process ? GDB_HAS_LINUX : 0,
    .osabi = trace->is_process ? "GNU/Linux" : NULL,
    .architecture = target_architecture,
    .thread = target_thread,
    .read_register = target_read_register,
    .read_memory = gdb_trace_code,
    .point = target_point,
    .stop = target_stop,
    .resume = target_resume,
    .monitor = target_monitor,
    .objects = 1u << GDB_EXEC_FILE | (trace->is_process ? 1u << GDB_AUXV | 1u << GDB_LIBRARIES : 0),
    .object = target_object,
    .history_is_on = target_history_is_on,
    .history_enable = target_history_enable,
    .history_begin = target_history_begin,
    .history_next = target_history_next,
  };
}
