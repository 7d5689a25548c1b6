/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts by location: a small loop whose blocks and branches can be counted by hand, given as plain branches with its
 * code in the trace; what lies at an address changes; branches are missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/analysis.h"
#include "lastbranch/trace.h"
#include "trace_folder.h"

/* ---- a loop ---- */

static const uint8_t loop_code[] = {
  0xB9, 0x03, 0x00, 0x00, 0x00, /* 1000: mov $3, %ecx */
  0xF6, 0xC1, 0x01,             /* 1005: test $1, %cl */
  0x75, 0x01,                   /* 1008: jnz 100b */
  0x90,                         /* 100a: nop */
  0xFF, 0xC9,                   /* 100b: dec %ecx */
  0x75, 0xF6,                   /* 100d: jnz 1005 */
  0xE8, 0x00, 0x00, 0x00, 0x00, /* 100f: call 1014 */
  0xC3,                         /* 1014: ret */
};

static const struct lb_branch loop_branches[] = {
  {.from = 0x500, .to = 0x1000, .kind = LB_BRANCH_NEAR_REL_JMP},
  {.from = 0x1008, .to = 0x100B, .kind = LB_BRANCH_JCC}, /* ecx is 3 */
  {.from = 0x100D, .to = 0x1005, .kind = LB_BRANCH_JCC},
  {.from = 0x100D, .to = 0x1005, .kind = LB_BRANCH_JCC}, /* 2: the first one was passed */
  {.from = 0x1008, .to = 0x100B, .kind = LB_BRANCH_JCC}, /* 1 */
  {.from = 0x100F, .to = 0x1014, .kind = LB_BRANCH_NEAR_REL_CALL},
  {.from = 0x1014, .to = 0x100A, .kind = LB_BRANCH_NEAR_RET},
  {.from = 0x100B, .to = 0x3000, .kind = LB_BRANCH_INTERRUPT}, /* behind the nop */
};

#define LOOP_BRANCHES (sizeof(loop_branches) / sizeof(*loop_branches))

struct expected_block {
  uint64_t first, last, executed;
  unsigned instructions;
};

static const struct expected_block loop_blocks[] = {
  {0x1000, 0x1008, 1, 3}, {0x1005, 0x1008, 2, 2}, {0x100A, 0x100A, 1, 1}, {0x100A, 0x100D, 1, 3},
  {0x100B, 0x100D, 2, 2}, {0x100F, 0x100F, 1, 1}, {0x1014, 0x1014, 1, 1},
};

/* ---- traces ---- */

static struct lb_trace_writer *writer_new(void)
{
  struct lb_trace_writer *writer;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread", .space = 1}, &number), 0);
  return writer;
}

static void code_put(struct lb_trace_writer *writer, const uint8_t *bytes, size_t size)
{
  struct lb_trace_code code = {.space = 1, .address = 0x1000, .bytes = bytes, .size = size};

  assert_int_equal(lb_trace_writer_code(writer, &code), 0);
}

struct counted {
  struct lb_trace_reader *reader;
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_counts *counts;
};

static struct counted counts_read(void)
{
  struct counted counted;
  struct lb_trace_record record;

  assert_int_equal(lb_trace_reader_open(path, &counted.reader), 0);
  assert_int_equal(analysis_names_new(NULL, &counted.names), 0);
  assert_int_equal(analysis_code_new(counted.names, &counted.code), 0);
  assert_int_equal(analysis_counts_new(counted.names, counted.code, &counted.counts), 0);
  lb_trace_reader_count(counted.reader, LB_TRACE_ALL);
  while (lb_trace_reader_next(counted.reader, &record) > 0)
    assert_int_equal(analysis_counts_record(counted.counts, counted.reader, &record), 0);
  assert_int_equal(analysis_counts_end(counted.counts, counted.reader), 0);
  return counted;
}

static void counted_done(struct counted *counted)
{
  analysis_counts_free(counted->counts);
  analysis_code_free(counted->code);
  analysis_names_free(counted->names);
  lb_trace_reader_close(counted->reader);
}

static uint64_t jump_of(const struct analysis_counts *counts, uint64_t from, uint64_t to, bool is_passed)
{
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_jumps(counts, &count);
  uint64_t sum = 0;

  for (size_t i = 0; i < count; i++)
    if (jumps[i].from.address == from && jumps[i].to.address == to && jumps[i].is_passed == is_passed)
      sum += jumps[i].count;
  return sum;
}

/* ---- tests ---- */

static void test_loop(void **state)
{
  struct lb_trace_writer *writer = writer_new();
  const struct analysis_block *blocks;
  struct counted counted;
  size_t count;

  (void)state;
  code_put(writer, loop_code, sizeof(loop_code));
  assert_int_equal(lb_trace_writer_branches(writer, 0, loop_branches, LOOP_BRANCHES), 0);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  counted = counts_read();
  blocks = analysis_counts_blocks(counted.counts, &count);
  assert_int_equal(count, sizeof(loop_blocks) / sizeof(*loop_blocks));
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(blocks[i].first.address, loop_blocks[i].first);
    assert_int_equal(blocks[i].last, loop_blocks[i].last);
    assert_int_equal(blocks[i].executed, loop_blocks[i].executed);
    assert_int_equal(blocks[i].instructions, loop_blocks[i].instructions);
  }
  assert_int_equal(jump_of(counted.counts, 0x1008, 0x100B, false), 2);
  assert_int_equal(jump_of(counted.counts, 0x1008, 0x100A, true), 1);
  assert_int_equal(jump_of(counted.counts, 0x100D, 0x1005, false), 2);
  assert_int_equal(jump_of(counted.counts, 0x100D, 0x100F, true), 1);
  assert_int_equal(analysis_counts_totals(counted.counts)->taken, LOOP_BRANCHES);
  assert_int_equal(analysis_counts_totals(counted.counts)->passed, 2);
  assert_int_equal(analysis_counts_totals(counted.counts)->instructions, 17);
  assert_false(analysis_counts_totals(counted.counts)->has_unknown_code);
  counted_done(&counted);
}

/* Without its code nobody knows what was passed: one block from branch to branch, and a word about it. */
static void test_no_code(void **state)
{
  struct lb_trace_writer *writer = writer_new();
  struct counted counted;

  (void)state;
  assert_int_equal(lb_trace_writer_branches(writer, 0, loop_branches, LOOP_BRANCHES), 0);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  counted = counts_read();
  assert_int_equal(analysis_counts_totals(counted.counts)->taken, LOOP_BRANCHES);
  assert_int_equal(analysis_counts_totals(counted.counts)->passed, 0);
  assert_int_equal(analysis_counts_totals(counted.counts)->instructions, 1); /* the return, which was jumped to */
  assert_true(analysis_counts_totals(counted.counts)->has_unknown_code);
  counted_done(&counted);
}

/* Behind a gap it is not known where the stream was: what ran up to the next branch is in no block. */
static void test_gap(void **state)
{
  struct lb_trace_writer *writer = writer_new();
  struct lb_trace_gap gap = {.stream = 0, .reason = LB_TRACE_LOST, .count = 1};
  struct counted counted;

  (void)state;
  code_put(writer, loop_code, sizeof(loop_code));
  assert_int_equal(lb_trace_writer_branches(writer, 0, loop_branches, 2), 0);
  assert_int_equal(lb_trace_writer_gap(writer, &gap), 0);
  assert_int_equal(lb_trace_writer_branches(writer, 0, loop_branches + 3, 1), 0);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  counted = counts_read();
  assert_int_equal(analysis_counts_totals(counted.counts)->taken, 3);
  assert_int_equal(analysis_counts_totals(counted.counts)->gaps, 1);
  assert_int_equal(analysis_counts_totals(counted.counts)->instructions, 3);
  counted_done(&counted);
}

/* Other code at the same address: each run is counted with the code that was there. */
static void test_changed_code(void **state)
{
  static const uint8_t other[] = {0x90, 0x90, 0x90, 0xEB, 0xFB}; /* three nops, jmp 1000 */
  static const struct lb_branch branches[] = {
    {.from = 0x1003, .to = 0x1000, .kind = LB_BRANCH_NEAR_REL_JMP},
    {.from = 0x1003, .to = 0x1000, .kind = LB_BRANCH_NEAR_REL_JMP},
  };
  struct lb_trace_writer *writer = writer_new();
  struct counted counted;

  (void)state;
  code_put(writer, loop_code, sizeof(loop_code));
  assert_int_equal(lb_trace_writer_branches(writer, 0, loop_branches, 2), 0);
  code_put(writer, other, sizeof(other));
  assert_int_equal(lb_trace_writer_branches(writer, 0, branches, 2), 0);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  counted = counts_read();
  /* Of the loop 3; then 100b to 1003 makes no sense, and 4 of the other code. */
  assert_int_equal(analysis_counts_totals(counted.counts)->instructions, 7);
  counted_done(&counted);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_loop),
    cmocka_unit_test(test_no_code),
    cmocka_unit_test(test_gap),
    cmocka_unit_test(test_changed_code),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
