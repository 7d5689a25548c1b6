/* SPDX-License-Identifier: Apache-2.0
 *
 * From branches to calls: signals, several streams, gaps, the counts at each call, and code of which nothing is known.
 */
#include "calls_rig.h"

/* ---- signals, threads, gaps ---- */

static void test_signal(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_INTERRUPT, at(two, 7), at(handler, 0));
  call(world, at(handler, 2), at(three, 0));
  ret(world, at(three, 3), at(handler, 7));
  expect(world, "+0 one start, +1 two call, +2 handler signal, +3 three call, -3 three return");
  ret(world, at(handler, 8), at(upper, 3)); /* to what makes the system call */
  go(world, LB_BRANCH_IRET, at(upper, 5), at(two, 7));
  expect(world, "-2 handler return");
  go(world, LB_BRANCH_SYSCALL, at(two, 9), at(two, 11)); /* system calls are none */
  ret(world, at(two, 12), at(one, 5));
  expect(world, "-1 two return");
  world_end(world, "-0 one end");
}

/* The handler changed where the program goes on. */
static void test_signal_elsewhere(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_FAULT, at(two, 7), at(handler, 0));
  ret(world, at(handler, 8), at(upper, 3));
  go(world, LB_BRANCH_IRET, at(upper, 5), at(one, 24));
  expect(world, "+0 one start, +1 two call, +2 handler signal, -2 handler return, -1 two unwind");
  world_end(world, "-0 one end");
}

static void test_threads(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  assert_int_equal(go_in(world, 1, LB_BRANCH_NEAR_REL_CALL, at(three, 0), at(two, 0)), 0);
  assert_int_equal(go_in(world, 1, LB_BRANCH_NEAR_RET, at(two, 1), at(three, 5)), 0);
  ret(world, at(two, 1), at(one, 5));
  expect(world, "+0 one start, +1 two call, +0 three start, +1 two call, -1 two return, -1 two return");
  world_end(world, "-0 one end, -0 three end");
}

static void test_gap(void **state)
{
  struct world *world = world_new(true);
  struct lb_trace_record gap = {.type = LB_TRACE_GAP, .gap = {.stream = 1, .reason = LB_TRACE_LOST, .count = 5}};

  (void)state;
  call(world, at(one, 0), at(two, 0));
  record(world, &gap); /* another's */
  expect(world, "+0 one start, +1 two call");
  gap.gap.stream = 0;
  record(world, &gap);
  expect(world, "-1 two lost, -0 one lost");
  call(world, at(three, 0), at(two, 0));
  gap.gap.stream = LB_TRACE_ALL;
  record(world, &gap);
  expect(world, "+0 three start, +1 two call, -1 two lost, -0 three lost");
  world_end(world, "");
}

/* ---- numbers ---- */

struct numbers {
  uint64_t enter, leave;
};

static int numbers_take(void *data, const struct analysis_call *call)
{
  struct numbers *numbers = data;

  if (call->depth == 1)
    *(call->is_enter ? &numbers->enter : &numbers->leave) = call->branch;
  assert_int_equal(call->instructions, 0);
  return 0;
}

static void test_numbers(void **state)
{
  struct world *world = world_new(true);
  struct numbers numbers = {0};
  struct analysis_calls *mine = world->calls;
  struct analysis_call now = {.branch = 9, .instructions = 9, .unknown = 9};

  (void)state;
  assert_int_equal(analysis_calls_new(world->names, NULL, numbers_take, &numbers, &world->calls), 0);
  analysis_calls_position(world->calls, 7, &now);
  assert_int_equal(now.branch | now.instructions | now.unknown, 0);
  world->number[0] = 1000;
  go(world, LB_BRANCH_JCC, at(one, 0), at(one, 4));
  call(world, at(one, 5), at(two, 0));
  go(world, LB_BRANCH_JCC, at(two, 3), at(two, 9));
  ret(world, at(two, 20), at(one, 10));
  assert_int_equal(numbers.enter, 1001);
  assert_int_equal(numbers.leave, 1003);
  analysis_calls_position(world->calls, 0, &now);
  assert_int_equal(now.branch, 1004);
  assert_false(analysis_calls_has_unknown(world->calls));
  analysis_calls_free(world->calls);
  world->calls = mine;
  world_end(world, "");
}

static void test_stop(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  world->stop = -ECANCELED;
  assert_int_equal(go_in(world, 0, LB_BRANCH_NEAR_REL_CALL, at(one, 0), at(two, 0)), -ECANCELED);
  world->stop = 0;
  world->length = 0;
  analysis_calls_free(world->calls);
  analysis_names_free(world->names);
  free(world);
}

/* ---- code of which nothing is known ---- */

static void test_stripped(void **state)
{
  struct world *world = world_new(false);

  (void)state;
  call(world, 0x1000, 0x2000);
  go(world, LB_BRANCH_NEAR_REL_JMP, 0x2010, 0x2100); /* within, as far as anybody knows */
  ret(world, 0x2110, 0x1005);
  expect(world, "+0 0x1000 start, +1 0x2000 call, -1 0x2000 return");
  call(world, 0x1010, 0x2100); /* now it is known that a function begins there */
  ret(world, 0x2110, 0x1015);
  call(world, 0x1000, 0x2000);
  go(world, LB_BRANCH_NEAR_REL_JMP, 0x2010, 0x2100);
  ret(world, 0x2110, 0x1005);
  expect(world, "+1 0x2100 call, -1 0x2100 return, +1 0x2000 call, +2 0x2100 tail, -2 0x2100 return, -1 0x2000 return");
  world_end(world, "-0 0x1000 end");
}

/* A caller that lies before what it called; an exception is caught in it. */
static void test_stripped_unwind(void **state)
{
  struct world *world = world_new(false);

  (void)state;
  call(world, 0x100, 0x1000);
  call(world, 0x1010, 0x2000);
  call(world, 0x2010, 0x3000);
  ret(world, 0x3010, 0x1040);
  expect(world, "+0 0x100 start, +1 0x1000 call, +2 0x2000 call, +3 0x3000 call, -3 0x3000 unwind, -2 0x2000 unwind");
  ret(world, 0x1050, 0x105);
  expect(world, "-1 0x1000 return");
  world_end(world, "-0 0x100 end");
}

/* Deeper than is given; all comes back. */
static void test_deep(void **state)
{
  enum { DEPTH = 200000 };
  struct world *world = world_new(false);

  (void)state;
  for (unsigned i = 0; i < DEPTH; i++)
    call(world, 0x1010, 0x1000);
  world->length = 0;
  for (unsigned i = 0; i < DEPTH - 1; i++)
    ret(world, 0x1020, 0x1015);
  assert_memory_equal(world->told, "-65535 ", 7); /* ANALYSIS_CALLS_DEPTH_MAX of them are given */
  world->length = 0;
  ret(world, 0x1020, 0x1015);
  expect(world, "-1 0x1000 return");
  world_end(world, "-0 0x1010 end");
}

/* Deeper than can be kept: what is known of the stack is given up, said so, and it goes on. */
static void test_too_deep(void **state)
{
  enum { DEPTH = 3000000 };
  struct world *world = world_new(false);
  unsigned lost = 0;

  (void)state;
  for (unsigned i = 0; i < DEPTH; i++) {
    world->length = 0;
    world->told[0] = '\0';
    call(world, 0x1010, 0x1000);
    lost += strstr(world->told, " lost") != NULL;
  }
  assert_int_equal(lost, 1);
  world->length = 0;
  ret(world, 0x1020, 0x1015);
  ret(world, 0x1020, 0x1015);
  world->length = 0;
  assert_int_equal(analysis_calls_end(world->calls), 0);
  world->length = 0;
  world_end(world, "");
}

/* A trace by a stranger: returns to nowhere, again and again, in a deep stack. It must end, and soon. */
static void test_hostile(void **state)
{
  struct world *world = world_new(false);

  (void)state;
  for (unsigned i = 0; i < 100000; i++)
    call(world, 0x1010, 0x1000);
  for (uint64_t i = 0; i < 100000; i++) {
    ret(world, 0x1020, 0x123456789000 + 64 * i);
    world->length = 0;
  }
  for (unsigned kind = 0; kind < LB_BRANCH_KINDS; kind++)
    for (uint64_t to = UINT64_MAX; to; to >>= 1) {
      go(world, kind, ~to, to);
      go(world, kind, to, to);
      world->length = 0;
    }
  assert_int_equal(analysis_calls_end(world->calls), 0);
  world->length = 0;
  world_end(world, "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_signal),   cmocka_unit_test(test_signal_elsewhere), cmocka_unit_test(test_threads),
    cmocka_unit_test(test_gap),      cmocka_unit_test(test_numbers),          cmocka_unit_test(test_stop),
    cmocka_unit_test(test_stripped), cmocka_unit_test(test_stripped_unwind),  cmocka_unit_test(test_deep),
    cmocka_unit_test(test_too_deep), cmocka_unit_test(test_hostile),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
