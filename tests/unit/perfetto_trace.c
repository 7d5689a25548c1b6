/* SPDX-License-Identifier: Apache-2.0
 *
 * perfetto_trace known|hostile|bare FILE: writes a trace with stamps whose times test_export_perfetto.py knows; one
 * whose times go back, and whose system calls make no sense; one without any stamp. Stamps of one time before and after
 * a branch make this the time of the branch.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lastbranch/branch.h"
#include "trace/trace.h"

enum { CALL_NANOSLEEP = 35, SIGUSR1_NUMBER = 10, MAIN = 0x401000, INNER = 0x402000, LATER = 0x403000 };

static struct lb_trace_writer *writer;
static int failed;

static void check(int r)
{
  failed |= r < 0;
}

static void stamp(uint32_t stream, struct trace_stamp stamp)
{
  check(trace_writer_stamp(writer, stream, &stamp));
}

static void time_stamp(uint32_t stream, uint64_t time)
{
  stamp(stream, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = time});
}

static void branch(uint32_t stream, uint64_t from, uint64_t to, unsigned kind)
{
  check(lb_trace_writer_branches(
    writer, stream, &(struct lb_branch){.from = from, .to = to, .kind = (uint8_t)kind, .from_cpl = 3, .to_cpl = 3}, 1));
}

static void branch_at(uint32_t stream, uint64_t time, uint64_t from, uint64_t to, unsigned kind)
{
  time_stamp(stream, time);
  branch(stream, from, to, kind);
  time_stamp(stream, time);
}

static uint32_t stream_new(uint32_t process, uint32_t thread, const char *name)
{
  uint32_t number = 0;

  check(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.process = process, .thread = thread, .name = name},
                               &number));
  return number;
}

static void known_write(void)
{
  uint32_t first = stream_new(100, 100, "maker"), second = stream_new(100, 101, "worker");

  check(
    lb_trace_writer_meta(writer, &(struct lb_trace_meta){"clock", "tsc monotonic 1000000000 realtime 5000000000000"}));
  stamp(first, (struct trace_stamp){
                 .type = TRACE_STAMP_START, .time = 1000, .has_cpu = true, .cpu = 3, .has_used = true, .used = 0});
  branch_at(first, 2000, MAIN + 0x10, INNER, LB_BRANCH_NEAR_REL_CALL);
  stamp(first,
        (struct trace_stamp){
          .type = TRACE_STAMP_CALL, .time = 3000, .code = CALL_NANOSLEEP, .argument_count = 2, .arguments = {1, 0}});
  stamp(first, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = 8003000, .has_used = true, .used = 2000});
  stamp(first, (struct trace_stamp){.type = TRACE_STAMP_RETURN, .time = 8003000, .has_cpu = true, .cpu = 5});
  stamp(first, (struct trace_stamp){.type = TRACE_STAMP_SIGNAL, .time = 8004000, .code = SIGUSR1_NUMBER, .value = 42});
  branch_at(first, 8005000, INNER + 0x10, MAIN + 0x15, LB_BRANCH_NEAR_RET);
  stamp(first, (struct trace_stamp){.type = TRACE_STAMP_END, .time = 9000000});

  stamp(second, (struct trace_stamp){.type = TRACE_STAMP_START, .time = 1000, .has_used = true, .used = 0});
  branch_at(second, 2000, MAIN + 0x10, INNER, LB_BRANCH_NEAR_REL_CALL);
  stamp(second, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = 5001000, .has_used = true, .used = 1000000});
  stamp(second, (struct trace_stamp){.type = TRACE_STAMP_HELD, .time = 6000000, .result = 300000});
  stamp(second, (struct trace_stamp){.type = TRACE_STAMP_END, .time = 7000000});
}

static void hostile_write(void)
{
  static const uint64_t times[] = {5000, 100, UINT64_MAX, 0, UINT64_MAX / 2, 7, 1ull << 63, 50};
  uint32_t stream = stream_new(UINT32_MAX, UINT32_MAX, "\xff\x1b[2J\"{}");

  check(lb_trace_writer_meta(
    writer, &(struct lb_trace_meta){"clock", "tsc monotonic 18446744073709551615 realtime 99999999999999999999"}));
  for (unsigned i = 0; i < 4000; i++) {
    struct trace_stamp made = {
      .type = (uint8_t)(i % 11 % TRACE_STAMP_TYPES),
      .time = times[i * 7 % 13 % 8],
      .has_used = i % 3,
      .used = times[i % 8],
      .has_cpu = i % 5,
      .cpu = (uint16_t)(i * 77),
      .code = i % 2 ? i : UINT32_MAX - i,
      .result = i % 4 ? INT64_MIN + i : INT64_MAX - i,
      .value = times[i % 7],
      .argument_count = (uint8_t)(i % 7),
      .paths = {i % 6 ? NULL : "/\xff\n\"", NULL},
    };

    stamp(stream, made);
    if (i % 2)
      branch(stream, i % 3 ? MAIN + 0x10 : INNER + 0x10, i % 3 ? INNER + i % 64 * 0x1000 : MAIN + 0x15,
             i % 3 ? LB_BRANCH_NEAR_REL_CALL : LB_BRANCH_NEAR_RET);
  }
}

/* The recording begins in the middle: a call that has ended, and one that has not, before the first stamp. */
static void late_write(void)
{
  uint32_t stream = stream_new(100, 100, "late");

  check(
    lb_trace_writer_meta(writer, &(struct lb_trace_meta){"clock", "tsc monotonic 1000000000 realtime 5000000000000"}));
  branch(stream, MAIN + 0x10, INNER, LB_BRANCH_NEAR_REL_CALL);
  branch(stream, INNER + 0x10, MAIN + 0x15, LB_BRANCH_NEAR_RET);
  branch(stream, MAIN + 0x20, LATER, LB_BRANCH_NEAR_REL_CALL);
  check(lb_trace_writer_flush(writer)); /* a chunk without a stamp */
  stamp(stream, (struct trace_stamp){.type = TRACE_STAMP_SIGNAL, .time = 7000, .code = SIGUSR1_NUMBER});
  branch_at(stream, 8000, LATER + 0x10, MAIN + 0x25, LB_BRANCH_NEAR_RET);
  stamp(stream, (struct trace_stamp){.type = TRACE_STAMP_END, .time = 9000});
}

static void bare_write(void)
{
  uint32_t stream = stream_new(0, 0, "processor 0");

  branch(stream, MAIN + 0x10, INNER, LB_BRANCH_NEAR_REL_CALL);
  branch(stream, INNER + 0x10, MAIN + 0x15, LB_BRANCH_NEAR_RET);
}

int main(int argc, char **argv)
{
  if (argc != 3 || lb_trace_writer_open(argv[2], &writer) < 0)
    return 2;
  if (!strcmp(argv[1], "known"))
    known_write();
  else if (!strcmp(argv[1], "hostile"))
    hostile_write();
  else if (!strcmp(argv[1], "late"))
    late_write();
  else
    bare_write();
  check(lb_trace_writer_close(writer));
  if (failed)
    fprintf(stderr, "perfetto_trace: the trace was not written\n");
  return failed;
}
