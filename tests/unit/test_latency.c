/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations of calls: the buckets of a histogram, against the durations themselves; a trace made by hand, in which a
 * stamp before each branch says when it was taken, against durations that follow from these stamps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/analysis.h"
#include "lastbranch/trace.h"
#include "trace/trace.h"
#include "trace_folder.h"

/* ---- histograms ---- */

static void test_buckets(void **state)
{
  (void)state;
  for (uint32_t i = 0; i < ANALYSIS_LATENCY_BUCKETS; i++) {
    uint64_t least = analysis_bucket_least(i), next = analysis_bucket_least(i + 1);

    assert_true(least < next);
    assert_int_equal(analysis_bucket_of(least), i);
    assert_int_equal(analysis_bucket_of(next - 1), i);
    assert_true(next - least <= 1 || next - least - 1 <= least / 16);
  }
  assert_int_equal(analysis_bucket_of(UINT64_MAX), ANALYSIS_LATENCY_BUCKETS - 1);
}

/* The durations 7, 14, ... 7000 in an order that extends the buckets at both ends. */
static void test_shares(void **state)
{
  struct analysis_histogram histogram = {0};
  size_t room = 1000;

  (void)state;
  assert_int_equal(analysis_histogram_at(&histogram, 0.5), 0);
  for (uint64_t i = 0; i < 1000; i++)
    assert_int_equal(analysis_histogram_add(&histogram, 7 * ((i * 611 + 500) % 1000 + 1), &room), 1);
  assert_int_equal(histogram.total, 1000);
  for (unsigned i = 1; i < 100; i++) {
    double found = (double)analysis_histogram_at(&histogram, i / 100.0), wanted = 70.0 * i;

    assert_true(found >= wanted * (1 - 1 / 31.0) - 1 && found <= wanted * (1 + 1 / 31.0) + 1);
  }
  assert_int_equal(room, 1000 - histogram.count);
  free(histogram.counts);
}

static void test_room(void **state)
{
  struct analysis_histogram histogram = {0};
  size_t room = 3;

  (void)state;
  assert_int_equal(analysis_histogram_add(&histogram, 5, &room), 1);
  assert_int_equal(analysis_histogram_add(&histogram, 7, &room), 1);
  assert_int_equal(analysis_histogram_add(&histogram, 8, &room), 0);
  assert_int_equal(analysis_histogram_add(&histogram, 4, &room), 0);
  assert_int_equal(analysis_histogram_add(&histogram, 6, &room), 1);
  assert_int_equal(histogram.total, 3);
  free(histogram.counts);
}

/* ---- a trace made by hand ---- */

enum { MAIN = 0x1000, ONE = 0x2000, TWO = 0x3000, INSIDE = 0x20 }; /* addresses of functions, of a call in them */

struct scene {
  struct lb_trace_writer *writer;
  uint32_t streams[2];
};

static void stamp(struct scene *scene, unsigned stream, struct trace_stamp what)
{
  assert_int_equal(trace_writer_stamp(scene->writer, scene->streams[stream], &what), 0);
}

/* A branch at a time. */
static void jump(struct scene *scene, unsigned stream, uint64_t time, uint64_t from, uint64_t to, uint8_t kind)
{
  struct lb_branch branch = {.from = from, .to = to, .kind = kind};

  stamp(scene, stream, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = time});
  assert_int_equal(lb_trace_writer_branches(scene->writer, scene->streams[stream], &branch, 1), 0);
}

static void call(struct scene *scene, unsigned stream, uint64_t time, uint64_t from, uint64_t to)
{
  jump(scene, stream, time, from + INSIDE, to, LB_BRANCH_NEAR_REL_CALL);
}

static void back(struct scene *scene, unsigned stream, uint64_t time, uint64_t from, uint64_t to)
{
  jump(scene, stream, time, from + INSIDE + 0x10, to + INSIDE + 5, LB_BRANCH_NEAR_RET);
}

static void scene_begin(struct scene *scene, bool has_stamps)
{
  assert_int_equal(lb_trace_writer_open(path, &scene->writer), 0);
  for (unsigned i = 0; i < 2; i++) {
    struct lb_trace_stream stream = {.space = 1, .process = 1, .thread = i + 1, .name = "hand"};

    assert_int_equal(lb_trace_writer_stream(scene->writer, &stream, &scene->streams[i]), 0);
    if (has_stamps)
      stamp(scene, i, (struct trace_stamp){.type = TRACE_STAMP_START, .time = 500, .has_used = true});
  }
}

struct result {
  struct trace_input input;
  struct analysis_names *names;
  struct analysis_latency latency;
};

static int scene_end(struct scene *scene, uint32_t stream, struct result *result)
{
  *result = (struct result){0};
  assert_int_equal(lb_trace_writer_close(scene->writer), 0);
  assert_int_equal(trace_input_open(&result->input, path), 0);
  assert_int_equal(analysis_names_new(NULL, &result->names), 0);
  return analysis_latency_read(&result->input, result->names, NULL, stream, &result->latency);
}

static void result_done(struct result *result)
{
  analysis_latency_done(&result->latency);
  analysis_names_free(result->names);
  assert_int_equal(trace_input_close(&result->input), 0);
}

static const struct analysis_latency_row *row_of(const struct result *result, uint64_t address)
{
  for (size_t i = 0; i < result->latency.count; i++) {
    struct analysis_called called;

    assert_true(analysis_calls_function(result->latency.calls, result->latency.rows[i].function, &called));
    if (called.location.address == address)
      return &result->latency.rows[i];
  }
  fail_msg("no function at 0x%llx", (unsigned long long)address);
  return NULL;
}

static void check_times(const struct analysis_latency_row *row, uint64_t calls, uint64_t cut, uint64_t all,
                        uint64_t own)
{
  assert_int_equal(row->calls, calls);
  assert_int_equal(row->cut, cut);
  assert_int_equal(row->all.all, all);
  assert_int_equal(row->own.all, own);
  assert_int_equal(row->histogram.total, calls - cut);
}

static void test_nested(void **state)
{
  const struct analysis_latency_row *row;
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, true);
  call(&scene, 0, 1000, MAIN, ONE);
  call(&scene, 0, 2000, ONE, TWO);
  back(&scene, 0, 5000, TWO, ONE);
  back(&scene, 0, 6000, ONE, MAIN); /* 5000, 2000 of its own */
  call(&scene, 0, 10000, MAIN, ONE);
  call(&scene, 0, 11000, ONE, ONE);
  call(&scene, 1, 11500, MAIN, ONE); /* another thread in the same function */
  back(&scene, 0, 16000, ONE, ONE);
  back(&scene, 0, 18000, ONE, MAIN); /* 8000, with 5000 in the recursion */
  back(&scene, 1, 18500, ONE, MAIN); /* 7000 */
  call(&scene, 0, 30000, MAIN, TWO);
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_END, .time = 34000, .has_used = true, .used = 33500});
  assert_int_equal(scene_end(&scene, LB_TRACE_ALL, &result), 0);

  row = row_of(&result, ONE);
  check_times(row, 4, 0, 5000 + 8000 + 7000, 2000 + 5000 + 3000 + 7000);
  assert_int_equal(row->shortest, 5000);
  assert_int_equal(row->longest, 8000);
  assert_int_equal(row->where.stream, scene.streams[0]);
  assert_int_equal(row->where.start, 10000);
  assert_int_equal(row->where.first_branch, 4);
  assert_int_equal(row->where.last_branch, 7);
  assert_in_range(row->median, 5000, 5000 + 5000 / 31);
  assert_int_equal(row->p99, 8000);
  row = row_of(&result, TWO); /* the second call is cut by the end */
  check_times(row, 2, 1, 3000 + 4000, 3000 + 4000);
  assert_int_equal(row->longest, 3000);
  row = row_of(&result, MAIN + INSIDE); /* where it was first seen */
  assert_int_equal(row->calls, row->cut);
  assert_int_equal(row->longest, 0);
  result_done(&result);
}

static void test_stream(void **state)
{
  struct analysis_thread_time time;
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, true);
  call(&scene, 0, 1000, MAIN, ONE);
  call(&scene, 1, 1500, MAIN, ONE);
  back(&scene, 0, 2000, ONE, MAIN);
  back(&scene, 1, 2700, ONE, MAIN);
  assert_int_equal(scene_end(&scene, scene.streams[1], &result), 0);
  check_times(row_of(&result, ONE), 1, 0, 1200, 1200);
  assert_true(analysis_thread_times_of(&result.latency.threads, scene.streams[1], &time));
  assert_int_equal(time.start, 500);
  assert_int_equal(time.all, 2200);
  assert_true(analysis_thread_times_sum(&result.latency.threads, LB_TRACE_ALL, &time));
  assert_int_equal(time.all, 1500 + 2200);
  result_done(&result);
}

/* The thread waits for the recorder, in one call, and in another for the kernel. */
static void test_waits(void **state)
{
  const struct analysis_latency_row *row;
  struct analysis_thread_time time;
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, true);
  call(&scene, 0, 1000, MAIN, ONE);
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_HELD, .time = 9000, .result = 7000});
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = 9000, .has_used = true, .used = 1500});
  back(&scene, 0, 9500, ONE, MAIN); /* 1500 */
  call(&scene, 0, 10000, MAIN, TWO);
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_CALL, .time = 10100, .code = 35});
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = 50100, .has_used = true, .used = 5600});
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_RETURN, .time = 50100});
  back(&scene, 0, 50400, TWO, MAIN); /* 40400, of which 41100 - 4100 waiting */
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_END, .time = 51000, .has_used = true, .used = 6500});
  assert_int_equal(scene_end(&scene, LB_TRACE_ALL, &result), 0);
  row = row_of(&result, ONE);
  check_times(row, 1, 0, 1500, 1500);
  assert_int_equal(row->all.waited, 0);
  row = row_of(&result, TWO);
  check_times(row, 1, 0, 40400, 40400);
  assert_int_equal(row->all.waited, 37000);
  assert_int_equal(row->own.waited, 37000);
  assert_int_equal(row->where.waited, 37000);
  assert_true(analysis_thread_times_of(&result.latency.threads, scene.streams[0], &time));
  assert_int_equal(time.all, 50500 - 7000);
  assert_int_equal(time.waited, 37000);
  result_done(&result);
}

/* Branches between two stamps are taken at times between them, but not while the thread waits for the recorder. */
static void test_between(void **state)
{
  struct lb_branch branches[] = {
    {.from = MAIN + INSIDE, .to = ONE, .kind = LB_BRANCH_NEAR_REL_CALL},
    {.from = ONE + INSIDE + 0x10, .to = MAIN + INSIDE + 5, .kind = LB_BRANCH_NEAR_RET},
    {.from = MAIN + INSIDE, .to = TWO, .kind = LB_BRANCH_NEAR_REL_CALL},
    {.from = TWO + INSIDE + 0x10, .to = MAIN + INSIDE + 5, .kind = LB_BRANCH_NEAR_RET},
  };
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, true);
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = 1000});
  assert_int_equal(lb_trace_writer_branches(scene.writer, scene.streams[0], branches, 4), 0);
  stamp(&scene, 0, (struct trace_stamp){.type = TRACE_STAMP_HELD, .time = 1000 + 400 + 99000, .result = 99000});
  assert_int_equal(scene_end(&scene, LB_TRACE_ALL, &result), 0);
  check_times(row_of(&result, ONE), 1, 0, 100, 100);
  check_times(row_of(&result, TWO), 1, 0, 100, 100);
  result_done(&result);
}

static void test_gap(void **state)
{
  const struct lb_trace_gap gap = {.reason = LB_TRACE_LOST, .count = 10};
  struct lb_trace_gap mine = gap;
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, true);
  call(&scene, 0, 1000, MAIN, ONE);
  mine.stream = scene.streams[0];
  assert_int_equal(lb_trace_writer_gap(scene.writer, &mine), 0);
  back(&scene, 0, 2000, ONE, MAIN);
  call(&scene, 0, 3000, MAIN, ONE);
  back(&scene, 0, 3300, ONE, MAIN);
  assert_int_equal(scene_end(&scene, LB_TRACE_ALL, &result), 0);
  assert_int_equal(row_of(&result, ONE)->calls - row_of(&result, ONE)->cut, 1);
  assert_int_equal(row_of(&result, ONE)->longest, 300);
  assert_true(row_of(&result, ONE)->cut > 0);
  result_done(&result);
}

/* Branches and times in no order, as a hostile trace may have them. */
static void test_random(void **state)
{
  static const uint8_t kinds[] = {LB_BRANCH_NEAR_REL_CALL, LB_BRANCH_NEAR_RET, LB_BRANCH_JCC, LB_BRANCH_NEAR_REL_JMP};
  uint64_t number = 1, calls = 0;
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, true);
  for (unsigned i = 0; i < 20000; i++) {
    struct lb_branch branch = {0};

    number = number * UINT64_C(6364136223846793005) + 1442695040888963407u;
    branch.from = MAIN + (number >> 33 & 31) * 256 + INSIDE;
    branch.to = MAIN + (number >> 40 & 31) * 256 + (number >> 45 & 1) * (INSIDE + 5);
    branch.kind = kinds[number >> 50 & 3];
    if (number >> 60 & 1)
      stamp(&scene, number >> 61 & 1,
            (struct trace_stamp){.type = (uint8_t)((number >> 20) % TRACE_STAMP_TYPES),
                                 .time = number << (number >> 26 & 31),
                                 .has_used = number >> 62 & 1,
                                 .used = number * 5,
                                 .result = (int64_t)(number * 7)});
    assert_int_equal(lb_trace_writer_branches(scene.writer, scene.streams[number >> 61 & 1], &branch, 1), 0);
  }
  assert_int_equal(scene_end(&scene, LB_TRACE_ALL, &result), 0);
  for (size_t i = 0; i < result.latency.count; i++) {
    const struct analysis_latency_row *row = &result.latency.rows[i];

    calls += row->calls;
    assert_int_equal(row->histogram.total, row->calls - row->cut);
    assert_true(row->shortest <= row->median && row->median <= row->p90 && row->p90 <= row->p99 &&
                row->p99 <= row->longest);
    assert_int_equal(row->active, 0);
  }
  assert_true(calls > 1000);
  result_done(&result);
}

static void test_no_times(void **state)
{
  struct lb_branch branch = {.from = MAIN, .to = ONE, .kind = LB_BRANCH_NEAR_REL_CALL};
  struct scene scene;
  struct result result;

  (void)state;
  scene_begin(&scene, false);
  assert_int_equal(lb_trace_writer_branches(scene.writer, scene.streams[0], &branch, 1), 0);
  assert_int_equal(scene_end(&scene, LB_TRACE_ALL, &result), LB_E_NO_ENTRY);
  result_done(&result);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_buckets),  cmocka_unit_test(test_shares), cmocka_unit_test(test_room),
    cmocka_unit_test(test_nested),   cmocka_unit_test(test_stream), cmocka_unit_test(test_waits),
    cmocka_unit_test(test_between),  cmocka_unit_test(test_gap),    cmocka_unit_test(test_random),
    cmocka_unit_test(test_no_times),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
