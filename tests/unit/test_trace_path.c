/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/trace/path.c: entries become the branches that path.h says, and what makes no sense is refused, whatever
 * it is. The branches expected of the small table were worked out by hand; those of random runs come from a producer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_trace_paths.h"

/* ---- a table by hand ---- */

#define HEAD(number, address, steps) [number] = {.from = address, .head = number, .flags = LB_STEP_HEAD, .count = steps}
#define STEP(number, of, address, target, size, sort, bits, then)                                                      \
  [number] = {                                                                                                         \
    .from = address, .to = target, .head = of, .next = then, .kind = LB_BRANCH_##sort, .flags = bits, .length = size}

static const struct lb_step steps[] = {
  HEAD(1, 0x1000, 4),
  STEP(2, 1, 0x1005, 0x1100, 2, JCC, 0, 6),
  STEP(3, 1, 0x1010, 0x2000, 5, NEAR_REL_JMP, LB_STEP_FOLLOW, 0),
  STEP(4, 1, 0x2008, 0x200d, 5, NEAR_REL_CALL, LB_STEP_FOLLOW, 0),
  STEP(5, 1, 0x2010, 0, 1, NEAR_RET, LB_STEP_SILENT, 0),
  HEAD(6, 0x1100, 2),
  STEP(7, 6, 0x1108, 0x1000, 2, JCC, 0, 1),
  STEP(8, 6, 0x1120, 0x1120, 0, JCC, LB_STEP_NONE, 9),
  HEAD(9, 0x1120, 1),
  STEP(10, 9, 0x1122, 0x1124, 2, SYSCALL, 0, 0),
  HEAD(11, 0x3000, 2),
  STEP(12, 11, 0x3001, 0x3050, 2, JCC, LB_STEP_FOLLOW, 0),
  STEP(13, 11, 0x3055, 0, 1, NEAR_RET, LB_STEP_SILENT, 0),
  HEAD(14, 0x4000, 1),
  STEP(15, 14, 0x4004, 0, 2, NEAR_IND_JMP, LB_STEP_OPEN, 0),
  HEAD(16, 0x5000, 1),
  STEP(17, 16, 0x5004, 0, 2, NEAR_IND_CALL, LB_STEP_OPEN, 11), /* open, and tied */
};

static const struct lb_step *steps_lookup(void *context, uint32_t number)
{
  (void)context;
  return number < sizeof(steps) / sizeof(*steps) && steps[number].head ? &steps[number] : NULL;
}

struct pair {
  uint64_t from, to;
};

/* Walks through all entries at once and one at a time; both times these branches come out, 0 ends the list. */
static void assert_walk(const uint32_t *entries, size_t count, const struct pair *want)
{
  for (size_t batch = count; batch; batch = batch > 1 ? 1 : 0) {
    struct lb_branch branches[2 * PATH_BRANCHES_MAX];
    struct path_walker walker;
    size_t got = 0, taken = 0;

    path_walker_init(&walker, steps_lookup, NULL);
    for (size_t at = 0; at < count; at += taken) {
      int r = path_walker_next(&walker, entries + at, batch < count - at ? batch : count - at, &taken, branches + got,
                               2 * PATH_BRANCHES_MAX - got);

      assert_true(r >= 0);
      assert_true(taken > 0);
      got += (size_t)r;
    }
    for (size_t i = 0; i < got; i++) {
      assert_int_equal(branches[i].from, want[i].from);
      assert_int_equal(branches[i].to, want[i].to);
      assert_int_equal(branches[i].from_cpl, 3);
      assert_int_equal(branches[i].to_cpl, 3);
      assert_int_equal(branches[i].flags, branches[i].from == 0x2008 ? LB_BRANCH_TO_NEXT : 0);
    }
    assert_int_equal(want[got].from, 0);
  }
}

#define WALK(entries, ...)                                                                                             \
  assert_walk(entries, sizeof(entries) / sizeof(*(entries)), (const struct pair[]){__VA_ARGS__, {0, 0}})
#define NOTHING                                                                                                        \
  {                                                                                                                    \
    0, 0                                                                                                               \
  }

static void test_steps(void **state)
{
  static const uint32_t loop[] = {LB_ENTRY_ENTER | 1, 2, 7, 2, 0, 7, 3};
  static const uint32_t cut[] = {LB_ENTRY_ENTER | 6, 8, 10};

  (void)state;
  WALK(loop, {0x1005, 0x1100}, {0x1108, 0x1000}, {0x1005, 0x1100}, {0x1108, 0x1000}, {0x1010, 0x2000});
  WALK(cut, {0x1122, 0x1124});
}

/* A head says that the path before ran through; its steps that are followed were taken. */
static void test_silent(void **state)
{
  static const uint32_t heads[] = {LB_ENTRY_ENTER | 1, 11, 1, 2};
  static const uint32_t behind_step[] = {LB_ENTRY_ENTER | 6, 7, 11}; /* 7 is tied to 1, which then ran silently */

  (void)state;
  WALK(heads, {0x1010, 0x2000}, {0x2008, 0x200d}, {0x2010, 0x3000}, {0x3001, 0x3050}, {0x3055, 0x1000},
       {0x1005, 0x1100});
  WALK(behind_step, {0x1108, 0x1000}, {0x1010, 0x2000}, {0x2008, 0x200d}, {0x2010, 0x3000});
}

static void test_open(void **state)
{
  static const uint32_t enter[] = {LB_ENTRY_ENTER | 14, 15, LB_ENTRY_ENTER | 6};
  static const uint32_t head[] = {LB_ENTRY_ENTER | 14, 15, 0, 6, 7};
  static const uint32_t step[] = {LB_ENTRY_ENTER | 14, 15, 2};
  static const uint32_t event[] = {LB_ENTRY_ENTER | 14, 15, LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT, 0x77, 1, 0x88, 2};
  static const uint32_t silent[] = {LB_ENTRY_ENTER | 11, 13, LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT, 0x77, 0, 0x88, 0};
  static const uint32_t tied[] = {LB_ENTRY_ENTER | 16, 17, 6};
  static const uint32_t tied_event[] = {
    LB_ENTRY_ENTER | 16, 17, LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT | 1 << 8, 0x77, 0, 0x88, 0};
  static const uint32_t at_end[] = {LB_ENTRY_ENTER | 14, 15};

  (void)state;
  WALK(enter, {0x4004, 0x1100});
  WALK(head, {0x4004, 0x1100}, {0x1108, 0x1000});
  WALK(step, {0x4004, 0x1000}, {0x1005, 0x1100});
  WALK(event, {0x4004, 0x100000077}, {0x100000077, 0x200000088});
  WALK(silent, {0x3001, 0x3050}, {0x3055, 0x77}, {0x77, 0x88});
  WALK(tied, {0x5004, 0x3000}, {0x3001, 0x3050}, {0x3055, 0x1100});
  WALK(tied_event, {0x5004, 0x3000}, {0x3001, 0x3050}, {0x77, 0x88});
  WALK(at_end, NOTHING);
}

static void test_events(void **state)
{
  static const uint32_t passed[] = {
    LB_ENTRY_ENTER | 1, LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT | 3 << 8, 0x2010, 0, 0xff0, 7, LB_ENTRY_ENTER | 6, 7};
  static const uint32_t none[] = {LB_ENTRY_ENTER | 1, LB_ENTRY_EVENT, LB_BRANCH_FAULT, 0x1000, 0, 0x9, 0};
  static const uint32_t nowhere[] = {LB_ENTRY_ENTER | 1, LB_ENTRY_EVENT, LB_ENTRY_NOWHERE | 2 << 8, 0x2000, 0, 0, 0};
  static const uint32_t words[] = {LB_ENTRY_ENTER | 1, LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT, 0xFFFFFFFF, 0, 2,
                                   0x80000001};

  (void)state;
  WALK(passed, {0x1010, 0x2000}, {0x2008, 0x200d}, {0x2010, 0x700000ff0}, {0x1108, 0x1000});
  WALK(none, {0x1000, 0x9});
  WALK(nowhere, {0x1010, 0x2000});
  WALK(words, {0xFFFFFFFF, 0x8000000100000002});
}

/* A log that was cut may begin with anything. */
static void test_begins_anywhere(void **state)
{
  static const uint32_t step[] = {4, LB_ENTRY_ENTER | 6, 7};
  static const uint32_t head[] = {11, 6};
  static const uint32_t event[] = {0, LB_ENTRY_EVENT, LB_BRANCH_TRAP | 9 << 8, 1, 0, 2, 0, LB_ENTRY_ENTER | 1, 2};

  (void)state;
  WALK(step, {0x1010, 0x2000}, {0x2008, 0x200d}, {0x1108, 0x1000});
  WALK(head, {0x3001, 0x3050}, {0x3055, 0x1100});
  WALK(event, {1, 2}, {0x1005, 0x1100});
}

/* ---- what makes no sense ---- */

/* The last of the entries is refused, twice; after a restart the walker goes on. */
static void assert_refused(path_lookup *lookup, const uint32_t *entries, size_t count)
{
  struct lb_branch branches[2 * PATH_BRANCHES_MAX];
  struct path_walker walker;
  size_t taken, at = 0;
  int r = 0;

  path_walker_init(&walker, lookup, NULL);
  for (; at < count - 1; at += taken) {
    r = path_walker_next(&walker, entries + at, count - at, &taken, branches, PATH_BRANCHES_MAX);
    assert_true(r >= 0);
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(path_walker_next(&walker, entries + at, 1, &taken, branches, PATH_BRANCHES_MAX), -EBADMSG);
    assert_int_equal(taken, 0);
  }
  path_walker_restart(&walker);
  assert_int_equal(
    path_walker_next(&walker, (const uint32_t[]){LB_ENTRY_ENTER | 1}, 1, &taken, branches, PATH_BRANCHES_MAX), 0);
  assert_int_equal(taken, 1);
}

#define REFUSED(...)                                                                                                   \
  assert_refused(steps_lookup, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void test_refused(void **state)
{
  (void)state;
  REFUSED(18);                        /* no such step */
  REFUSED(0x7FFFFFFF);                /* no such number */
  REFUSED(LB_ENTRY_ENTER);            /* no such head */
  REFUSED(LB_ENTRY_ENTER | 2);        /* no head */
  REFUSED(LB_ENTRY_ENTER | 1, 7);     /* a step of another path */
  REFUSED(LB_ENTRY_ENTER | 1, 2, 2);  /* 2 is tied to 6 */
  REFUSED(LB_ENTRY_ENTER | 6, 11);    /* 6 does not end silently */
  REFUSED(LB_ENTRY_ENTER | 1, 3, 11); /* 3 is not tied: nothing is running */
  REFUSED(LB_ENTRY_ENTER | 14, 15, 15, 7, 1, 2, 6);
  REFUSED(LB_ENTRY_EVENT, 0, 0, 0, 0, 0, 1); /* nothing runs behind an event */
  REFUSED(LB_ENTRY_EVENT, LB_ENTRY_NOWHERE + 1, 0, 0, 0, 0);
  REFUSED(LB_ENTRY_ENTER | 1, LB_ENTRY_EVENT, 5 << 8, 0, 0, 0, 0); /* 1 has four steps */
  REFUSED(LB_ENTRY_ENTER | 14, 15, LB_ENTRY_EVENT, 1 << 8, 0, 0, 0, 0);
  REFUSED(LB_ENTRY_EVENT, 0, 0, 0, 0, 0, LB_ENTRY_EVENT, 1 << 8, 0, 0, 0, 0);
}

/* Tables that lie. */
static struct lb_step liar[8];

static const struct lb_step *liar_lookup(void *context, uint32_t number)
{
  (void)context;
  return number < 8 && liar[number].head ? &liar[number] : NULL;
}

static void liar_begin(void)
{
  memset(liar, 0, sizeof(liar));
  liar[1] = (struct lb_step){.head = 1, .flags = LB_STEP_HEAD, .count = 3};
  for (uint32_t i = 2; i <= 4; i++)
    liar[i] = (struct lb_step){.from = i, .to = 9, .head = 1, .flags = i == 4 ? LB_STEP_SILENT : LB_STEP_FOLLOW};
}

#define LIAR_REFUSED(...)                                                                                              \
  assert_refused(liar_lookup, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void test_lying_tables(void **state)
{
  (void)state;
  liar_begin();
  liar[1].count = 1; /* fewer steps than there are */
  LIAR_REFUSED(3);
  liar_begin();
  liar[1].count = 4; /* more */
  LIAR_REFUSED(LB_ENTRY_ENTER | 1, 1);
  LIAR_REFUSED(LB_ENTRY_ENTER | 1, LB_ENTRY_EVENT, 4 << 8, 0, 0, 0, 0);
  liar_begin();
  liar[1].count = 0;
  LIAR_REFUSED(LB_ENTRY_ENTER | 1, 1);
  liar_begin();
  liar[2].head = 2; /* a step in between that is of another path */
  LIAR_REFUSED(3);
  liar_begin();
  liar[2].flags = LB_STEP_HEAD; /* or a head */
  LIAR_REFUSED(4);
  liar_begin();
  liar[2].kind = LB_BRANCH_KINDS;
  LIAR_REFUSED(LB_ENTRY_ENTER | 1, 4);
  LIAR_REFUSED(2);
  liar_begin();
  liar[3].head = 4; /* its head is behind it */
  LIAR_REFUSED(3);
  liar_begin();
  liar[3].head = 3; /* itself */
  LIAR_REFUSED(3);
  liar_begin();
  liar[3].next = 7; /* tied to nothing */
  LIAR_REFUSED(3, 1);
  LIAR_REFUSED(3, 2);
  LIAR_REFUSED(3, LB_ENTRY_EVENT, 0, 0, 0, 0, 0);
  liar[3].next = 2; /* to no head */
  LIAR_REFUSED(3, 1);
}

/* ---- at random ---- */

static const struct lb_step *table_lookup(void *context, uint32_t number)
{
  static struct lb_step copy; /* good until the next call only */
  const struct table *table = context;

  if (number >= table->count || !number)
    return NULL;
  copy = table->steps[number];
  return &copy;
}

static void test_random_runs(void **state)
{
  static struct lb_branch branches[1000];

  (void)state;
  for (unsigned round = 0; round < 60; round++) {
    struct table *table = table_new(1 + (unsigned)(random_next() % 60));
    struct run run = {.table = table};
    struct path_walker walker;
    size_t got = 0, taken;

    run_more(&run, 20000);
    path_walker_init(&walker, table_lookup, table);
    for (size_t at = 0; at < run.count; at += taken) {
      size_t most = random_next() % 200 + 1;
      int r = path_walker_next(&walker, run.entries + at, most < run.count - at ? most : run.count - at, &taken,
                               branches, PATH_BRANCHES_MAX + random_next() % 700);

      assert_true(r >= 0);
      assert_true(got + (size_t)r <= run.branch_count);
      assert_true(branches_are_same(branches, run.branches + got, (size_t)r));
      got += (size_t)r;
    }
    assert_int_equal(got, run.branch_count);
    assert_true(got > 10000);
    run_done(&run);
    free(table);
  }
}

/* Any entries, any table: it ends, and keeps within its room. */
static void test_random_nonsense(void **state)
{
  static struct lb_branch branches[PATH_BRANCHES_MAX];
  size_t refused = 0, good = 0;

  (void)state;
  for (unsigned round = 0; round < 300; round++) {
    struct table *table = table_new(8);
    struct path_walker walker;

    for (unsigned i = 0; i < 30 * (round % 3); i++)
      ((uint8_t *)table->steps)[random_next() % (table->count * sizeof(struct lb_step))] = (uint8_t)random_next();
    path_walker_init(&walker, table_lookup, table);
    for (unsigned i = 0; i < 3000; i++) {
      uint32_t entry = (uint32_t)random_next() % (table->count + 2);
      size_t taken;
      int r;

      entry |= chance(8) ? LB_ENTRY_ENTER : 0;
      entry = chance(50) ? LB_ENTRY_EVENT : chance(100) ? (uint32_t)random_next() : entry;
      r = path_walker_next(&walker, &entry, 1, &taken, branches, PATH_BRANCHES_MAX);
      assert_true(r == -EBADMSG ? taken == 0 : r >= 0 && taken == 1);
      assert_true(r <= (int)PATH_BRANCHES_MAX);
      for (int j = 0; j < r; j++)
        assert_true(branches[j].kind < LB_BRANCH_KINDS);
      refused += r < 0;
      good += r >= 0;
      if (r < 0 && chance(2))
        path_walker_restart(&walker);
    }
    free(table);
  }
  assert_true(refused > 1000 && good > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_steps),        cmocka_unit_test(test_silent),          cmocka_unit_test(test_open),
    cmocka_unit_test(test_events),       cmocka_unit_test(test_begins_anywhere), cmocka_unit_test(test_refused),
    cmocka_unit_test(test_lying_tables), cmocka_unit_test(test_random_runs),     cmocka_unit_test(test_random_nonsense),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
