/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that has died, as gdb's target, before it is gone: the runtime holds it, its registers are in the shared
 * memory, its memory is read from the system, and its last branches are the history. When gdb leaves, the program ends
 * as it would have.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "gdb/blocks.h"
#include "gdb/listen.h"
#include "gdb/modules.h"
#include "gdb/start.h"
#include "gdb/target_process.h"
#include "gdb/target_trace.h"

/* A held process as a target. */
struct held {
  const struct process_thread *thread;
  int memory; /* /proc/PID/mem */
  bool is_read;
  struct gdb_modules modules;
  struct gdb_blocks blocks;
  struct trace_input input; /* for its files */
  struct process_branches branches;
};

/* ---- the target ---- */

static bool held_thread(void *data, size_t index, struct gdb_thread *ret_thread)
{
  const struct held *held = data;

  *ret_thread = (struct gdb_thread){held->thread->thread, held->thread->name};
  return index == 0;
}

static int held_read_register(void *data, uint64_t id, enum gdb_register number, uint8_t *bytes)
{
  const struct process_thread *thread = ((const struct held *)data)->thread;

  (void)id;
  if (number < GDB_RIP)
    bytes_put_u64(bytes, thread->registers[number]);
  else if (number == GDB_RIP)
    bytes_put_u64(bytes, thread->rip);
  else if (number == GDB_EFLAGS)
    bytes_put_u32(bytes, (uint32_t)thread->flags);
  else
    return 0;
  return 1;
}

static size_t held_read_memory(void *data, uint64_t address, uint8_t *bytes, size_t size)
{
  const struct held *held = data;
  ssize_t count = address > INT64_MAX ? -1 : pread(held->memory, bytes, size, (off_t)address);

  return count > 0 ? (size_t)count : 0;
}

static int held_point(void *data, bool is_set, enum gdb_point kind, uint64_t address, uint64_t size)
{
  (void)data, (void)is_set, (void)address, (void)size;
  return kind == GDB_POINT_SOFTWARE || kind == GDB_POINT_HARDWARE ? 0 : -EOPNOTSUPP;
}

static void held_stop(void *data, struct gdb_stop *ret_stop)
{
  const struct process_thread *thread = ((const struct held *)data)->thread;

  *ret_stop = (struct gdb_stop){
    .kind = GDB_STOPPED, .signal = gdb_signal((int)(thread->end_status & 0x7F)), .thread = thread->thread};
}

static int held_resume(void *data, const struct gdb_resume *resume, struct gdb_stop *ret_stop)
{
  held_stop(data, ret_stop);
  ret_stop->kind = GDB_ENDED;
  gdb_session_print(resume->session, "lbr: the program has died; reverse-stepi and similar commands go back.\n");
  return 0;
}

static int held_object(void *data, enum gdb_object object, struct text *content)
{
  const struct held *held = data;
  const struct gdb_module *program = gdb_modules_program(&held->modules);

  if (object == GDB_EXEC_FILE)
    return program ? text_add(content, program->path) : -ENOENT;
  return object == GDB_AUXV ? gdb_modules_auxv(&held->modules, content)
                            : gdb_modules_libraries(&held->modules, content);
}

static bool held_history_is_on(void *data, uint64_t id)
{
  (void)data, (void)id;
  return true;
}

static int held_history_enable(void *data, uint64_t id, bool is_on)
{
  (void)id, (void)is_on;
  ((struct held *)data)->is_read = false;
  return 0;
}

static int held_history_begin(void *data, uint64_t id, enum gdb_history which)
{
  struct held *held = data;
  int r = gdb_blocks_read(&held->blocks, which, held->is_read);

  (void)id;
  held->is_read |= r >= 0;
  return r;
}

static int held_history_next(void *data, struct gdb_block *ret_block)
{
  return gdb_blocks_next(&((struct held *)data)->blocks, ret_block);
}

static struct gdb_target held_target(struct held *held)
{
  return (struct gdb_target){
    .data = held,
    .features = GDB_HAS_LINUX,
    .osabi = "GNU/Linux",
    .thread = held_thread,
    .read_register = held_read_register,
    .read_memory = held_read_memory,
    .point = held_point,
    .stop = held_stop,
    .resume = held_resume,
    .objects = 1u << GDB_EXEC_FILE | 1u << GDB_AUXV | 1u << GDB_LIBRARIES,
    .object = held_object,
    .history_is_on = held_history_is_on,
    .history_enable = held_history_enable,
    .history_begin = held_history_begin,
    .history_next = held_history_next,
  };
}

/* ---- its files ---- */

/* A line of /proc/PID/maps: code in a file. The runtime's own code is in no file. */
static int map_take(struct gdb_modules *modules, char *line)
{
  struct lb_trace_module module = {0};
  uint64_t end;
  char mode[5];
  int path = 0;

  if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &module.address, &end, mode, &module.offset,
             &path) < 4 ||
      !path || mode[2] != 'x' || line[path] != '/' || !strncmp(line + path, "/memfd:", 7))
    return 0;
  line[strcspn(line, "\n")] = 0;
  module.size = end - module.address;
  module.name = line + path;
  module.build_id = (const uint8_t *)"";
  return gdb_modules_add(modules, &module);
}

static int maps_read(struct gdb_modules *modules, uint32_t process)
{
  char name[64], *line = NULL;
  size_t size = 0;

  FILE *file;
  int r = 0;

  snprintf(name, sizeof(name), "/proc/%u/maps", process);
  file = fopen(name, "re");
  if (!file)
    return -errno;
  while (r >= 0 && getline(&line, &size, file) > 0)
    r = map_take(modules, line);
  free(line);
  fclose(file);
  return r;
}

static int history_read(struct held *held, const struct process *process)
{
  int r = process_rebuild_last(process, held->thread, GDB_TAIL_DEFAULT, &held->branches);

  for (size_t i = 0; r >= 0 && i < held->branches.count; i++)
    r = gdb_blocks_branch(&held->blocks, &held->branches.branches[i]);
  return r < 0 ? r : gdb_blocks_end(&held->blocks, held->thread->rip);
}

/* Moves the program to the front, where gdb_modules_program expects it. */
static void program_first(struct gdb_modules *modules, const char *path)
{
  for (size_t i = 1; i < modules->count; i++)
    if (!strcmp(modules->list[i].path, path)) {
      struct gdb_module first = modules->list[0];

      modules->list[0] = modules->list[i];
      modules->list[i] = first;
    }
}

/* Tells how far back gdb can go, and explains the warning that gdb will print. */
static void held_tell(struct held *held)
{
  uint8_t byte;

  message("loaded %s%zu branches of thread %u", held->branches.is_cut ? "the last " : "all ", held->branches.count,
          held->thread->thread);
  if (!held_read_memory(held, held->thread->rip, &byte, 1))
    message("it died at 0x%" PRIx64 ", where there is no code: gdb will call the stack corrupted", held->thread->rip);
}

static int held_open(struct held *held, const struct run_session *session)
{
  struct run_names *names;
  char name[64];
  int r;

  snprintf(name, sizeof(name), "/proc/%u/mem", held->thread->process);
  held->memory = open(name, O_RDONLY | O_CLOEXEC);
  if (held->memory < 0)
    return -errno;
  held->blocks = (struct gdb_blocks){.code = held_read_memory, .data = held};
  trace_input_files(&held->input);
  r = run_names_new(&session->process, false, &names);
  if (r < 0)
    return r;
  r = maps_read(&held->modules, held->thread->process);
  if (r >= 0)
    program_first(&held->modules, run_names_program(names, held->thread->space));
  run_names_free(names);
  if (r >= 0)
    gdb_modules_open(&held->modules, &held->input.files);
  if (r >= 0)
    r = history_read(held, &session->process);
  if (r >= 0)
    held_tell(held);
  return r;
}

static void held_close(struct held *held)
{
  if (held->modules.files)
    gdb_modules_done(&held->modules);
  gdb_blocks_done(&held->blocks);
  process_branches_done(&held->branches);
  if (held->memory >= 0)
    close(held->memory);
}

/* ---- gdb ---- */

/* Serves the gdb that connects. */
static void serve_at(struct held *held, const char *place)
{
  struct gdb_target target = held_target(held);
  struct gdb_connection connection;

  if (gdb_listen(place, &connection) < 0)
    return;
  gdb_serve(&target, &connection.io);
  gdb_connection_close(&connection);
}

static _Noreturn void child_execute(const char *path)
{
  struct text command = {0};

  if (text_addf(&command, "target remote %s", path) >= 0)
    gdb_complain(gdb_execute(command.data, NULL, 0));
  _exit(127);
}

/* Starts a gdb and serves it. */
static void serve_own(struct held *held)
{
  struct gdb_target target = held_target(held);
  char folder[] = "/tmp/lbr-gdb-XXXXXX", place[64];
  struct gdb_listener listener;
  struct gdb_connection connection;
  int pid;

  if (!mkdtemp(folder)) {
    message("cannot make a directory for the socket to gdb: %s", strerror(errno));
    return;
  }
  snprintf(place, sizeof(place), "unix:%s/socket", folder);
  if (gdb_listener_open(place, &listener) >= 0) {
    pid = fork();
    if (pid == 0)
      child_execute(listener.path);
    if (gdb_listener_accept(&listener, pid, &connection) >= 0) {
      gdb_serve(&target, &connection.io);
      gdb_connection_close(&connection);
    }
    if (pid > 0)
      waitpid(pid, NULL, 0);
  }
  rmdir(folder);
}

void gdb_debug_dead(struct run_session *session, const struct process_thread *thread)
{
  struct held held = {.thread = thread, .memory = -1};
  int r = process_is_ours(&session->process, thread->process) ? 0 : -ESRCH;

  if (r >= 0) {
    kill((pid_t)thread->process, SIGSTOP); /* its other threads, too */
    r = held_open(&held, session);
  }
  if (r >= 0 && session->arguments->gdb_place)
    serve_at(&held, session->arguments->gdb_place);
  else if (r >= 0)
    serve_own(&held);
  else
    message("cannot show the program in gdb: %s", lb_strerror(r));
  held_close(&held);
  process_release(&session->process, thread);
  if (process_is_ours(&session->process, thread->process))
    kill((pid_t)thread->process, SIGCONT);
}
