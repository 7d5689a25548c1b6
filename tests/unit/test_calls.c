/* SPDX-License-Identifier: Apache-2.0
 *
 * From branches to calls: calls, returns, jumps and unwinding, in a file with symbols.
 */
#include "calls_rig.h"

/* ---- calls and returns ---- */

static void test_call(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 4), at(two, 0));
  expect(world, "+0 one start, +1 two call");
  go(world, LB_BRANCH_JCC, at(two, 3), at(two, 9)); /* stays */
  go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 12), at(two, 0));
  expect(world, "");
  call(world, at(two, 3), at(two, 0)); /* recursion */
  ret(world, at(two, 20), at(two, 8));
  ret(world, at(two, 20), at(one, 9));
  expect(world, "+2 two call, -2 two return, -1 two return");
  world_end(world, "-0 one end");
}

/* call to the next instruction, to know where it is: not a function. */
static void test_call_next(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 4), at(one, 9));
  expect(world, "+0 one start");
  call(world, at(one, 10), at(two, 0));
  ret(world, at(two, 1), at(one, 15));
  expect(world, "+1 two call, -1 two return");
  world_end(world, "-0 one end");
}

static void test_return_outside(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  ret(world, at(two, 4), at(one, 9)); /* who called two was not seen */
  expect(world, "+0 two start, -0 two return, +0 one start");
  world_end(world, "-0 one end");
}

/* A return to a frame further up, of which those above know nothing. */
static void test_return_skips(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  call(world, at(two, 1), at(three, 0));
  call(world, at(three, 1), at(handler, 0));
  expect(world, "+0 one start, +1 two call, +2 three call, +3 handler call");
  ret(world, at(handler, 1), at(one, 5));
  expect(world, "-3 handler unwind, -2 three unwind, -1 two return");
  world_end(world, "-0 one end");
}

/* ---- jumps ---- */

static void test_tail(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 1), at(three, 0));
  go(world, LB_BRANCH_JCC, at(three, 1), at(handler, 0)); /* conditional tail calls exist, too */
  expect(world, "+0 one start, +1 two call, +2 three tail, +3 handler tail");
  ret(world, at(handler, 1), at(one, 5));
  expect(world, "-3 handler return, -2 three return, -1 two return");
  world_end(world, "-0 one end");
}

/* Two functions that jump to each other for ever: the stack does not grow. */
static void test_tail_loop(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 1), at(three, 0));
  expect(world, "+0 one start, +1 two call, +2 three tail");
  for (unsigned i = 0; i < 1000; i++) {
    go(world, LB_BRANCH_NEAR_REL_JMP, at(three, 1), at(two, 0));
    expect(world, "-2 three return, -1 two return, +1 two tail");
    go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 1), at(three, 0));
    expect(world, "+2 three tail");
  }
  ret(world, at(three, 9), at(one, 5));
  expect(world, "-2 three return, -1 two return");
  world_end(world, "-0 one end");
}

static void test_cold(void **state)
{
  struct world *world = world_new(true);
  uint64_t cold = at(part, 0);

  (void)state;
  call(world, at(one, 0), at(three, 0));
  go(world, LB_BRANCH_JCC, at(three, 1), cold);
  call(world, cold + 2, at(two, 0));
  ret(world, at(two, 1), cold + 7);
  go(world, LB_BRANCH_NEAR_REL_JMP, cold + 8, at(three, 9));
  ret(world, at(three, 10), at(one, 5));
  expect(world, "+0 one start, +1 three call, +2 two call, -2 two return, -1 three return");
  world_end(world, "-0 one end");
}

/* A landing pad in the part of a function that lies elsewhere. */
static void test_cold_landing(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(three, 0));
  call(world, at(three, 1), at(two, 0));
  call(world, at(two, 1), at(handler, 0)); /* as _Unwind_RaiseException */
  ret(world, at(handler, 5), at(part, 4));
  expect(world, "+0 one start, +1 three call, +2 two call, +3 handler call, -3 handler unwind, -2 two unwind");
  world_end(world, "-1 three end, -0 one end");
}

static void test_fall(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(upper, 0));
  go(world, LB_BRANCH_JCC, at(lower, 4), at(lower, 8)); /* came to it without a branch */
  ret(world, at(lower, 12), at(one, 5));
  expect(world, "+0 one start, +1 upper call, +2 lower tail, -2 lower return, -1 upper return");
  world_end(world, "-0 one end");
}

/* The dynamic linker finds a function and jumps to it: the function was called, not the linker. */
static void test_resolver(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(_dl_runtime_resolve_here, 0));
  call(world, at(_dl_runtime_resolve_here, 3), at(three, 0));
  ret(world, at(three, 3), at(_dl_runtime_resolve_here, 8));
  go(world, LB_BRANCH_NEAR_IND_JMP, at(_dl_runtime_resolve_here, 9), at(two, 0));
  ret(world, at(two, 9), at(one, 5));
  expect(world, "+0 one start, +1 _dl_runtime_resolve_here call, +2 three call, -2 three return, "
                "-1 _dl_runtime_resolve_here return, +1 two call, -1 two return");
  world_end(world, "-0 one end");
}

/* An indirect jump into the middle of a function further up, and an exception's return to there. */
static void test_unwind(void **state)
{
  static const unsigned kinds[] = {LB_BRANCH_NEAR_IND_JMP, LB_BRANCH_NEAR_RET};

  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    struct world *world = world_new(true);

    call(world, at(handler, 0), at(one, 0));
    call(world, at(one, 0), at(two, 0));
    call(world, at(two, 0), at(three, 0));
    go(world, kinds[i], at(three, 1), at(one, 20));
    expect(world, "+0 handler start, +1 one call, +2 two call, +3 three call, -3 three unwind, -2 two unwind");
    ret(world, at(one, 22), at(handler, 5));
    expect(world, "-1 one return");
    world_end(world, "-0 handler end");
  }
}

/* Of a function that is there several times, longjmp leads to the one that called setjmp. */
static void test_longjmp(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  call(world, at(two, 1), at(point, 0));
  ret(world, at(point, 3), at(two, 6));
  call(world, at(two, 7), at(two, 0));
  call(world, at(two, 7), at(two, 0));
  call(world, at(two, 7), at(three, 0));
  expect(world,
         "+0 one start, +1 two call, +2 __setjmp call, -2 __setjmp return, +2 two call, +3 two call, +4 three call");
  go(world, LB_BRANCH_NEAR_IND_JMP, at(three, 9), at(two, 6));
  expect(world, "-4 three unwind, -3 two unwind, -2 two unwind");
  ret(world, at(two, 9), at(one, 5));
  expect(world, "-1 two return");
  world_end(world, "-0 one end");
}

/* A direct jump is never one: hand-written code that shares its end with another function. */
static void test_shared_end(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  call(world, at(two, 0), at(three, 0));
  go(world, LB_BRANCH_NEAR_REL_JMP, at(three, 1), at(one, 20));
  ret(world, at(one, 22), at(two, 5));
  expect(world, "+0 one start, +1 two call, +2 three call, +3 one tail, -3 one return, -2 three return");
  world_end(world, "-1 two end, -0 one end");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_call),         cmocka_unit_test(test_call_next),    cmocka_unit_test(test_return_outside),
    cmocka_unit_test(test_return_skips), cmocka_unit_test(test_tail),         cmocka_unit_test(test_tail_loop),
    cmocka_unit_test(test_cold),         cmocka_unit_test(test_cold_landing), cmocka_unit_test(test_fall),
    cmocka_unit_test(test_resolver),     cmocka_unit_test(test_unwind),       cmocka_unit_test(test_longjmp),
    cmocka_unit_test(test_shared_end),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
