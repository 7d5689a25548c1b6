/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of src/source: a recording on the made-up kernel of source_fake.h, of a made-up program, into a sink
 * that writes lines.
 */
#ifndef TESTS_SOURCE_RIG_H
#define TESTS_SOURCE_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "source/bts.h"
#include "source/flow.h"
#include "source/perf.h"
#include "source_fake.h"
#include "trace/trace.h"

/* The code of the made-up program, in no file: at 0x10000
 *   10000 xor eax,eax    10002 jz 10008    10004 syscall    10006 jmp 10000    10008 call 10010    1000d ret
 *   10010 ret            10011 mov eax,15  10016 syscall    10018 ud2 */
#define CODE UINT64_C(0x10000)
static const uint8_t code[] = {0x31, 0xC0, 0x74, 0x04, 0x0F, 0x05, 0xEB, 0xF8, 0xE8, 0x03, 0,    0,    0,
                               0xC3, 0x90, 0x90, 0xC3, 0xB8, 15,   0,    0,    0,    0x0F, 0x05, 0x0F, 0x0B};

static inline size_t code_memory(struct fake *fake, uint64_t address, void *buffer, size_t size)
{
  uint8_t page[4096] = {0};

  (void)fake;
  if (address < CODE || address >= CODE + sizeof(page))
    return 0;
  memcpy(page, code, sizeof(code));
  if (size > CODE + sizeof(page) - address)
    size = (size_t)(CODE + sizeof(page) - address);
  memcpy(buffer, page + (address - CODE), size);
  return size;
}

/* What came to the sink, as lines. */
struct log {
  char text[4096];
  size_t length;
  unsigned streams;
};

static inline void log_add(struct log *log, const char *format, ...)
{
  va_list arguments;

  va_start(arguments, format);
  log->length += (size_t)vsnprintf(log->text + log->length, sizeof(log->text) - log->length, format, arguments);
  va_end(arguments);
  assert_true(log->length < sizeof(log->text));
}

static inline int log_module(void *data, const struct lb_trace_module *module)
{
  log_add(data, "module %u %llx+%llx %s\n", module->space, (unsigned long long)module->address,
          (unsigned long long)module->size, module->is_gone ? "gone" : module->name);
  return 0;
}

static inline int log_code(void *data, const struct lb_trace_code *piece)
{
  log_add(data, "code %u %llx\n", piece->space, (unsigned long long)piece->address);
  return 0;
}

static inline int log_stream(void *data, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  struct log *log = data;

  *ret_number = log->streams++;
  log_add(log, "stream %u space %u process %u thread %u %s\n", *ret_number, stream->space, stream->process,
          stream->thread, stream->name);
  return 0;
}

static inline int log_branches(void *data, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(branches[i].from_cpl, 3);
    assert_int_equal(branches[i].to_cpl, 3);
    log_add(data, "%u %llx %llx %s%s\n", stream, (unsigned long long)branches[i].from,
            (unsigned long long)branches[i].to, lb_branch_kind_name(branches[i].kind),
            branches[i].flags & LB_BRANCH_MISPREDICTED ? " missed" : "");
  }
  return 0;
}

static inline int log_gap(void *data, const struct lb_trace_gap *gap)
{
  log_add(data, "gap %d %s\n", gap->stream == LB_TRACE_ALL ? -1 : (int)gap->stream, lb_trace_gap_name(gap->reason));
  return 0;
}

static inline struct source_sink log_sink(struct log *log)
{
  return (struct source_sink){log, log_module, log_code, log_stream, log_branches, log_gap, NULL, NULL};
}

static inline int log_stamp(void *data, uint32_t stream, const struct trace_stamp *stamp)
{
  log_add(data, "%u %s %llu", stream, trace_stamp_name(stamp->type), (unsigned long long)stamp->time);
  log_add(data, stamp->has_cpu ? " cpu %u\n" : "\n", stamp->cpu);
  return 0;
}

/* The same with the times of threads. */
static inline struct source_sink log_sink_timed(struct log *log)
{
  struct source_sink sink = log_sink(log);

  sink.stamp = log_stamp;
  return sink;
}

static char *const words[] = {(char *)(uintptr_t) "program", NULL};

/* Records with the fake until it is over; `problem` NULL: it must start. Returns what source_start does. */
static inline int record(struct fake *fake, const struct source_options *options, const struct source_sink *sink,
                         struct source_problem *problem, char sampling[160])
{
  struct source_problem none;
  struct source *source;
  int r = source_start(&fake->kernel, options, "program", words, words, sink, &source, problem ? problem : &none);

  if (problem)
    return r;
  assert_int_equal(r, 0);
  if (sampling)
    snprintf(sampling, 160, "%s", source_sampling(source) ? source_sampling(source) : "");
  while (!source_state(source)->is_over)
    assert_int_equal(source_step(source, 1), 0);
  assert_int_equal(source_finish(source), 0);
  source_free(source);
  assert_int_equal(fake->opened, FAKE_CPUS);
  assert_int_equal(fake->closed, FAKE_CPUS);
  assert_int_equal(fake->mapped, fake->unmapped);
  return r;
}

#endif
