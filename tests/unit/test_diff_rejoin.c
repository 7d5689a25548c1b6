/* SPDX-License-Identifier: Apache-2.0
 *
 * Where two runs come together again: against trying all pairs of places. And keys of addresses: what is the same in
 * two runs, and what is not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/analysis.h"

#define MOST 60
#define RUN 4

static uint32_t state = 1;

static unsigned any(unsigned count)
{
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % count;
}

static struct analysis_diff_branch branch(unsigned letter)
{
  return (struct analysis_diff_branch){
    .branch = {.kind = LB_BRANCH_JCC}, .from = {.id = 7, .address = letter}, .to = {.id = 7, .address = letter + 100}};
}

/* The least sum of two places from which on a run is the same; SIZE_MAX: there is none. */
static size_t best_of_all(const struct analysis_diff_branch *one, size_t one_count,
                          const struct analysis_diff_branch *other, size_t other_count)
{
  size_t best = SIZE_MAX;

  for (size_t i = 0; i + RUN <= one_count; i++)
    for (size_t j = 0; j + RUN <= other_count; j++) {
      size_t same = 0;

      while (same < RUN && analysis_diff_is_same(&one[i + same], &other[j + same]))
        same++;
      if (same == RUN && i + j < best)
        best = i + j;
    }
  return best;
}

static void nearest_place(void **unused)
{
  struct analysis_diff_branch one[MOST], other[MOST];
  unsigned found = 0;

  (void)unused;
  for (unsigned round = 0; round < 3000; round++) {
    size_t one_count = any(MOST + 1), other_count = any(MOST + 1), a = SIZE_MAX, b = SIZE_MAX, best;
    unsigned letters = 2 + any(6);
    int r;

    for (size_t i = 0; i < one_count; i++)
      one[i] = branch(any(letters));
    for (size_t i = 0; i < other_count; i++)
      other[i] = branch(any(letters));
    best = best_of_all(one, one_count, other, other_count);
    r = analysis_diff_rejoin(one, one_count, other, other_count, RUN, &a, &b);
    assert_int_equal(r, best != SIZE_MAX);
    if (r > 0)
      assert_int_equal(a + b, best);
    else
      assert_true(a == SIZE_MAX && b == SIZE_MAX);
    for (size_t i = 0; r > 0 && i < RUN; i++)
      assert_true(analysis_diff_is_same(&one[a + i], &other[b + i]));
    found += r > 0;
  }
  assert_in_range(found, 300, 2900); /* there were both */
}

static void kinds_and_ends(void **unused)
{
  struct analysis_diff_branch one = branch(1), other = branch(1);

  (void)unused;
  assert_true(analysis_diff_is_same(&one, &other));
  other.number = 5;
  other.branch.from = 9;
  assert_true(analysis_diff_is_same(&one, &other)); /* where it is in its run does not matter */
  other.branch.kind = LB_BRANCH_NEAR_RET;
  assert_false(analysis_diff_is_same(&one, &other));
  other = branch(1);
  other.to.address++;
  assert_false(analysis_diff_is_same(&one, &other));
  other = branch(1);
  other.from.id++;
  assert_false(analysis_diff_is_same(&one, &other));
}

/* ---- keys ---- */

static const uint8_t id_1[] = {1, 2, 3}, id_2[] = {1, 2, 4}, id_3[] = {2, 3, 4};

struct run {
  struct analysis_names *names;
  struct analysis_diff_files files;
  struct analysis_diff_keys *keys;
};

static void run_module(struct run *run, uint64_t address, const char *name, const uint8_t *id)
{
  const struct lb_trace_record record = {
    .type = LB_TRACE_MODULE,
    .module = {
      .address = address, .size = 0x1000, .offset = 0x3000, .name = name, .build_id = id, .build_id_size = id ? 3 : 0}};

  if (!run->names)
    assert_int_equal(analysis_names_new(NULL, &run->names), 0);
  assert_int_equal(analysis_names_record(run->names, &record), 0);
  assert_int_equal(analysis_diff_files_record(&run->files, &record), 0);
}

static bool same_place(struct run *one, uint64_t a, struct run *other, uint64_t b)
{
  struct analysis_diff_key x = analysis_diff_key(one->keys, 0, a), y = analysis_diff_key(other->keys, 0, b);

  return x.id == y.id && x.address == y.address;
}

static void run_done(struct run *run)
{
  analysis_diff_keys_free(run->keys);
  analysis_names_free(run->names);
  analysis_diff_files_done(&run->files);
}

static void places_of_two_runs(void **unused)
{
  struct run one = {0}, other = {0};

  (void)unused;
  run_module(&one, 0x10000, "/bin/same", id_1);
  run_module(&one, 0x20000, "/bin/built-anew", id_3);
  run_module(&one, 0x30000, "[vdso]", NULL);
  run_module(&other, 0x70000, "/elsewhere/same", id_1);
  run_module(&other, 0x20000, "/bin/built-anew", id_2);
  run_module(&other, 0x90000, "[vdso]", NULL);
  assert_int_equal(analysis_diff_keys_new(one.names, &other.files, true, &one.keys), 0);
  assert_int_equal(analysis_diff_keys_new(other.names, &one.files, true, &other.keys), 0);
  assert_true(same_place(&one, 0x10123, &other, 0x70123));
  assert_false(same_place(&one, 0x10123, &other, 0x70124));
  assert_true(same_place(&one, 0x30123, &other, 0x90123));
  assert_false(same_place(&one, 0x10123, &other, 0x90123));
  assert_null(analysis_diff_keys_by_symbol(one.keys));
  (void)same_place(&one, 0x20123, &other, 0x20123);
  assert_string_equal(analysis_diff_keys_by_symbol(one.keys), "/bin/built-anew");
  assert_string_equal(analysis_diff_keys_by_symbol(other.keys), "/bin/built-anew");
  assert_true(same_place(&one, 0x555123, &other, 0x777123)); /* in no file: a page may lie anywhere */
  assert_false(same_place(&one, 0x555123, &other, 0x777124));
  run_done(&one);
  run_done(&other);
}

static void places_of_machines(void **unused)
{
  struct run one = {0}, other = {0};

  (void)unused;
  assert_int_equal(analysis_names_new(NULL, &one.names), 0);
  assert_int_equal(analysis_names_new(NULL, &other.names), 0);
  assert_int_equal(analysis_diff_keys_new(one.names, &other.files, false, &one.keys), 0);
  assert_int_equal(analysis_diff_keys_new(other.names, &one.files, false, &other.keys), 0);
  assert_true(same_place(&one, 0x7c00, &other, 0x7c00));
  assert_false(same_place(&one, 0x7c00, &other, 0x8c00));
  run_done(&one);
  run_done(&other);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nearest_place),
    cmocka_unit_test(kinds_and_ends),
    cmocka_unit_test(places_of_two_runs),
    cmocka_unit_test(places_of_machines),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
