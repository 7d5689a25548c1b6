/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in a timeline, from a trace whose stamps are written by hand: the spans of calls, what they waited, system
 * calls, signals and waits, a part of the time; and how many events and blocks are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants these before it */
#include <cmocka.h>

#include "analysis/names.h"
#include "analysis/timeline_inside.h"

static char path[] = "/tmp/test_timeline_time.XXXXXX";

enum { F = 0x2000, G = 0x3000 };

/* ---- a trace ---- */

static void stamp_put(struct lb_trace_writer *writer, uint8_t type, uint64_t time, int64_t used, int64_t result)
{
  const struct trace_stamp stamp = {.type = type,
                                    .time = time,
                                    .has_used = used >= 0,
                                    .used = used >= 0 ? (uint64_t)used : 0,
                                    .code = type == TRACE_STAMP_SIGNAL ? 10 : 2, /* SIGUSR1; open */
                                    .result = result,
                                    .argument_count = 1,
                                    .arguments = {1},
                                    .paths = {type == TRACE_STAMP_CALL ? "/a/path" : NULL}};

  assert_int_equal(trace_writer_stamp(writer, 0, &stamp), 0);
}

static void branch_put(struct lb_trace_writer *writer, uint64_t from, uint64_t to, uint8_t kind)
{
  assert_int_equal(lb_trace_writer_branches(writer, 0, &(struct lb_branch){.from = from, .to = to, .kind = kind}, 1),
                   0);
}

/* 0x1000 calls F, which calls G, which makes a system call of 100 us: of these and the 1 us before, the thread runs for
 * 2 us. Then it waits for the recorder for 20 us. */
static void trace_write(bool has_stamps)
{
  struct lb_trace_writer *writer;
  uint32_t number;

  unlink(path);
  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread", .space = 1}, &number), 0);
  if (has_stamps) {
    stamp_put(writer, TRACE_STAMP_START, 1000, 0, 0);
    stamp_put(writer, TRACE_STAMP_TIME, 2000, 1000, 0);
  }
  branch_put(writer, 0x1000, F, LB_BRANCH_NEAR_REL_CALL);
  if (has_stamps)
    stamp_put(writer, TRACE_STAMP_TIME, 3000, 2000, 0);
  branch_put(writer, F + 0x10, G, LB_BRANCH_NEAR_REL_CALL);
  if (has_stamps)
    stamp_put(writer, TRACE_STAMP_TIME, 4000, 3000, 0);
  branch_put(writer, G + 4, G + 6, LB_BRANCH_SYSCALL);
  if (has_stamps) {
    stamp_put(writer, TRACE_STAMP_CALL, 5000, -1, 0);
    stamp_put(writer, TRACE_STAMP_RETURN, 105000, 5000, 7);
    stamp_put(writer, TRACE_STAMP_HELD, 125000, -1, 20000);
    stamp_put(writer, TRACE_STAMP_TIME, 126000, -1, 0);
  }
  branch_put(writer, G + 0x10, F + 0x15, LB_BRANCH_NEAR_RET);
  if (has_stamps)
    stamp_put(writer, TRACE_STAMP_TIME, 127000, 7000, 0);
  branch_put(writer, F + 0x20, 0x1005, LB_BRANCH_NEAR_RET);
  if (has_stamps) {
    stamp_put(writer, TRACE_STAMP_SIGNAL, 127500, -1, 0);
    stamp_put(writer, TRACE_STAMP_END, 128000, 8000, 0);
  }
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

struct rig {
  struct lb_trace_reader *reader;
  struct analysis_names *names;
  struct timeline timeline;
};

/* Reads the trace that is there. */
static void rig_read(struct rig *rig, uint64_t from, uint64_t to)
{
  struct lb_trace_record record;
  struct timeline_options options = {
    .stream = LB_TRACE_ALL, .to = UINT64_MAX, .time_from = from, .time_to = to, .blocks = 1000, .events = 100};

  assert_int_equal(lb_trace_reader_open(path, &rig->reader), 0);
  trace_reader_want_stamps(rig->reader);
  assert_int_equal(analysis_names_new(NULL, &rig->names), 0);
  options.names = rig->names;
  options.reader = rig->reader;
  assert_int_equal(timeline_init(&rig->timeline, &options), 0);
  while (lb_trace_reader_next(rig->reader, &record) > 0)
    assert_int_equal(timeline_record(&rig->timeline, &record), 0);
  assert_int_equal(timeline_end(&rig->timeline), 0);
}

static void rig_make(struct rig *rig, bool has_stamps, uint64_t from, uint64_t to)
{
  trace_write(has_stamps);
  rig_read(rig, from, to);
}

static void rig_done(struct rig *rig)
{
  timeline_done(&rig->timeline);
  analysis_names_free(rig->names);
  lb_trace_reader_close(rig->reader);
  unlink(path);
}

static uint32_t function_at(const struct rig *rig, uint64_t address)
{
  struct analysis_called called;

  for (uint32_t i = 0; analysis_calls_function(rig->timeline.calls, i, &called); i++)
    if (called.location.address == address)
      return i;
  fail_msg("no function at %llx", (unsigned long long)address);
  return 0;
}

static void block_check(const struct rig *rig, uint64_t address, const uint64_t wanted[4], unsigned flags)
{
  const struct timeline_store *store = &rig->timeline.store;
  uint32_t function = function_at(rig, address);
  size_t found = 0;

  for (size_t i = 0; i < store->count; i++) {
    const struct timeline_block *block = &store->blocks[i];

    if (block->function != function)
      continue;
    found++;
    assert_int_equal(block->start_time, wanted[0]);
    assert_int_equal(block->end_time, wanted[1]);
    assert_int_equal(block->waited, wanted[2]);
    assert_int_equal(block->held, wanted[3]);
    assert_int_equal(block->flags & ~(unsigned)TIMELINE_IS_TAIL, flags);
  }
  assert_int_equal(found, 1);
}

/* ---- times ---- */

static void test_calls(void **state)
{
  const struct timeline_function *functions;
  struct rig rig;

  (void)state;
  rig_make(&rig, true, 0, UINT64_MAX);
  functions = rig.timeline.functions;
  assert_true(rig.timeline.has_times);
  assert_int_equal(rig.timeline.time_end, 128000);
  block_check(&rig, G, (uint64_t[]){3000, 126000, 99000, 20000}, 0);
  block_check(&rig, F, (uint64_t[]){2000, 127000, 99000, 20000}, 0);
  /* Without the 20 us of the recorder, G took 103 us and F 105. */
  assert_int_equal(functions[function_at(&rig, G)].time.all, 103000);
  assert_int_equal(functions[function_at(&rig, G)].time.waited, 99000);
  assert_int_equal(functions[function_at(&rig, F)].all_time.all, 105000);
  assert_int_equal(functions[function_at(&rig, F)].time.all, 2000);
  assert_int_equal(functions[function_at(&rig, F)].time.waited, 0);
  assert_int_equal(rig.timeline.streams[0].begin.time, 1000);
  assert_int_equal(rig.timeline.streams[0].now.time, 128000);
  assert_int_equal(rig.timeline.streams[0].now.waited, 99000);
  rig_done(&rig);
}

static void test_stacks(void **state)
{
  const struct analysis_stack *stack;
  struct rig rig;
  uint64_t time = 0;

  (void)state;
  rig_make(&rig, true, 0, UINT64_MAX);
  for (size_t i = 0; (stack = analysis_stacks_get(rig.timeline.stacks, i)); i++) {
    time += stack->time;
    if (stack->function == function_at(&rig, G))
      assert_int_equal(stack->time, 103000);
    if (stack->function == function_at(&rig, G))
      assert_int_equal(stack->waited, 99000);
  }
  /* Execution is first seen at the first branch, 2 us after the start of the recording. */
  assert_int_equal(time, 128000 - 2000 - 20000);
  rig_done(&rig);
}

static void test_events(void **state)
{
  const struct timeline_event *event;
  struct rig rig;

  (void)state;
  rig_make(&rig, true, 0, UINT64_MAX);
  assert_int_equal(rig.timeline.events.calls.count, 1);
  event = rig.timeline.events.calls.events;
  assert_int_equal(event->start, 5000);
  assert_int_equal(event->end, 105000);
  assert_int_equal(event->waited, 99000);
  assert_int_equal(event->depth, 3); /* below the caller of F, F and G */
  assert_int_equal(event->function, function_at(&rig, G));
  assert_int_equal(event->result, 7);
  assert_string_equal(event->paths[0], "/a/path");
  assert_int_equal(rig.timeline.events.waits.count, 1);
  event = rig.timeline.events.waits.events;
  assert_int_equal(event->kind, TIMELINE_HELD);
  assert_int_equal(event->start, 105000);
  assert_int_equal(event->end, 125000);
  assert_int_equal(rig.timeline.events.signals.count, 1);
  assert_int_equal(rig.timeline.events.signals.events[0].start, 127500);
  assert_int_equal(rig.timeline.events.signals.events[0].code, 10);
  rig_done(&rig);
}

/* A part from 50 us to 110 us: it begins in the system call, and ends while the thread waits for the recorder. */
static void test_part(void **state)
{
  struct rig rig;

  (void)state;
  rig_make(&rig, true, 50000, 110000);
  block_check(&rig, G, (uint64_t[]){50000, 110000, 55000, 5000}, TIMELINE_BEGINS_BEFORE | TIMELINE_ENDS_BEHIND);
  block_check(&rig, F, (uint64_t[]){50000, 110000, 55000, 5000}, TIMELINE_BEGINS_BEFORE | TIMELINE_ENDS_BEHIND);
  assert_int_equal(rig.timeline.events.calls.count, 1);
  assert_int_equal(rig.timeline.events.calls.events[0].start, 50000);
  assert_int_equal(rig.timeline.events.calls.events[0].end, 105000);
  assert_int_equal(rig.timeline.events.calls.events[0].duration, 100000);
  assert_int_equal(rig.timeline.events.waits.events[0].end, 110000);
  assert_int_equal(rig.timeline.events.signals.count, 0);
  rig_done(&rig);
}

/* Only the first 2.5 us: F has been called, and G not yet. */
static void test_part_start(void **state)
{
  struct rig rig;

  (void)state;
  rig_make(&rig, true, 0, 2500);
  block_check(&rig, F, (uint64_t[]){2000, 2500, 0, 0}, TIMELINE_ENDS_BEHIND);
  assert_int_equal(rig.timeline.store.count, 2);
  assert_int_equal(rig.timeline.events.calls.count, 0);
  rig_done(&rig);
}

/* The part begins and ends while the thread is in a system call. */
static void test_part_in_call(void **state)
{
  struct rig rig;

  (void)state;
  rig_make(&rig, true, 50000, 80000);
  block_check(&rig, G, (uint64_t[]){50000, 80000, 30000, 0}, TIMELINE_BEGINS_BEFORE | TIMELINE_ENDS_BEHIND);
  assert_int_equal(rig.timeline.events.calls.count, 1);
  assert_int_equal(rig.timeline.events.calls.events[0].start, 50000);
  assert_int_equal(rig.timeline.events.calls.events[0].end, 80000);
  assert_int_equal(rig.timeline.events.calls.events[0].duration, 100000);
  rig_done(&rig);
}

static void test_none(void **state)
{
  struct rig rig;

  (void)state;
  rig_make(&rig, false, 0, UINT64_MAX);
  assert_false(rig.timeline.has_times);
  assert_false(rig.timeline.streams[0].has_time);
  block_check(&rig, G, (uint64_t[]){0, 0, 0, 0}, 0);
  rig_done(&rig);
}

/* ---- what makes no sense ---- */

static uint64_t random_state = 0x2545F4914F6CDD1D;

static uint64_t random_number(uint64_t below)
{
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (random_state >> 20) % below;
}

/* Now and then a number that fills all bits. */
static uint64_t random_time(uint64_t *last)
{
  *last = random_number(50) ? *last + random_number(10000) : random_number(4) ? random_state : UINT64_MAX;
  return *last;
}

static void trace_write_random(void)
{
  struct lb_trace_writer *writer;
  uint64_t time = 0, used = 0;
  uint32_t number;

  unlink(path);
  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread", .space = 1}, &number), 0);
  for (unsigned i = 0; i < 2000; i++) {
    uint64_t place = 0x1000 * (1 + random_number(6));

    if (random_number(2))
      branch_put(writer, place, 0x1000 * (1 + random_number(6)),
                 random_number(2) ? LB_BRANCH_NEAR_REL_CALL : LB_BRANCH_NEAR_RET);
    else
      stamp_put(writer, (uint8_t)random_number(TRACE_STAMP_TYPES), random_time(&time),
                random_number(2) ? (int64_t)(random_time(&used) >> 1) : -1, (int64_t)random_time(&used));
  }
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

static void test_random(void **state)
{
  struct rig rig;

  (void)state;
  for (unsigned i = 0; i < 50; i++) {
    uint64_t from = i % 2 ? random_number(2000000) : 0;

    trace_write_random();
    rig_read(&rig, from, i % 3 ? from + 1 + random_number(4000000) : UINT64_MAX);
    for (size_t block = 0; block < rig.timeline.store.count; block++)
      assert_true(rig.timeline.store.blocks[block].start_time <= rig.timeline.store.blocks[block].end_time);
    for (size_t event = 0; event < rig.timeline.events.calls.count; event++)
      assert_true(rig.timeline.events.calls.events[event].start <= rig.timeline.events.calls.events[event].end);
    assert_true(rig.timeline.events.calls.count <= 100 && rig.timeline.events.waits.count <= 100);
    rig_done(&rig);
  }
}

/* ---- too many ---- */

static void test_longest(void **state)
{
  struct timeline_events events;
  char name[] = "/x";

  (void)state;
  timeline_events_init(&events, 100);
  for (uint64_t i = 0; i < 10000; i++) {
    struct timeline_event event = {.kind = TIMELINE_SYSCALL, .start = i, .duration = i * 7919 % 10007, .paths = {name}};

    assert_int_equal(timeline_events_add(&events, &event), 0);
    event.kind = TIMELINE_SIGNAL;
    event.duration = 0;
    assert_int_equal(timeline_events_add(&events, &event), 0);
  }
  timeline_events_end(&events);
  assert_int_equal(events.calls.count, 100);
  assert_int_equal(events.calls.left_out, 9900);
  /* The durations are different numbers below 10007, and i from 10000 on would have given seven of them. */
  for (size_t i = 0; i < 100; i++) {
    assert_true(events.calls.events[i].duration > 10006 - 107);
    assert_string_equal(events.calls.events[i].paths[0], "/x");
  }
  assert_true(events.calls.longest_left_out < events.calls.events[99].duration);
  assert_true(events.signals.count > 0 && events.signals.count <= 100);
  assert_int_equal(events.signals.count + events.signals.left_out, 10000);
  assert_int_equal(events.signals.events[events.signals.count - 1].start, 9999);
  timeline_events_done(&events);
}

/* Calls of two branches, every tenth of which takes 10 ms: only the others are merged. */
static void test_store_waits(void **state)
{
  struct timeline_store store;
  uint64_t time = 0;
  size_t longs = 0;

  (void)state;
  timeline_store_init(&store, 4000, 100);
  for (uint64_t i = 0; i < 10000; i++) {
    uint64_t size = i % 10 ? 5 : 10000000;
    struct timeline_block block = {.start = 2 * i,
                                   .end = 2 * i + 2,
                                   .start_time = time,
                                   .end_time = time + size,
                                   .busy = 2,
                                   .weight = 2,
                                   .calls = 1};

    time += size;
    assert_int_equal(timeline_store_add(&store, &block), 0);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  for (size_t i = 0; i < store.count; i++)
    longs += store.blocks[i].calls == 1 && store.blocks[i].end_time - store.blocks[i].start_time == 10000000;
  assert_int_equal(longs, 1000);
  assert_int_equal(store.count, 2000);
  timeline_store_done(&store);
}

/* Times that make no sense do not keep the blocks from being merged until they fit. */
static void test_store_hostile(void **state)
{
  struct timeline_store store;

  (void)state;
  timeline_store_init(&store, 1000, 0);
  for (uint64_t i = 0; i < 50000; i++) {
    struct timeline_block block = {.start = 2 * i,
                                   .end = 2 * i + 2,
                                   .start_time = i << 48,
                                   .end_time = UINT64_MAX - i,
                                   .busy = 2,
                                   .weight = 2,
                                   .calls = 1};

    assert_int_equal(timeline_store_add(&store, &block), 0);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  assert_true(store.count <= 1000);
  timeline_store_done(&store);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_calls),         cmocka_unit_test(test_stacks),     cmocka_unit_test(test_events),
    cmocka_unit_test(test_part),          cmocka_unit_test(test_part_start), cmocka_unit_test(test_part_in_call),
    cmocka_unit_test(test_none),          cmocka_unit_test(test_longest),    cmocka_unit_test(test_store_waits),
    cmocka_unit_test(test_store_hostile), cmocka_unit_test(test_random),
  };

  close(mkstemp(path));
  return cmocka_run_group_tests_name("timeline_time", tests, NULL, NULL);
}
