/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of exact counts: instructions out of blocks that overlap, against counting each block alone; functions, edges
 * and branches of a small program; its rows and arrows; names as people write them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/analysis.h"
#include "lastbranch/trace.h"
#include "trace_folder.h"

#define BASE UINT64_C(0x1000)

/* ---- instructions out of blocks ---- */

#define MOVES 20u
#define BYTES (3 * MOVES)
#define BLOCKS 24u

struct walked {
  uint64_t executed[BYTES];
  uint64_t last; /* address that came last */
  bool is_sorted;
};

static int walked_take(void *data, const struct analysis_ran *ran)
{
  struct walked *walked = data;

  walked->is_sorted &= ran->at.address > walked->last;
  walked->last = ran->at.address;
  walked->executed[ran->at.address - BASE] = ran->executed;
  return 0;
}

static int block_compare(const void *one, const void *other)
{
  const struct analysis_block *a = one, *b = other;

  return a->first.address != b->first.address ? (a->first.address < b->first.address ? -1 : 1)
                                              : (a->last < b->last ? -1 : a->last > b->last);
}

/* Code of 48 89 C0, again and again: who begins behind a prefix runs 89 C0. C0 with what follows it is an instruction
 * of three bytes, too: chains that never meet are among them. */
static struct analysis_code *moves_make(struct analysis_names **ret_names)
{
  static const uint8_t move[] = {0x48, 0x89, 0xC0};
  uint8_t bytes[BYTES];
  struct lb_trace_record record = {.type = LB_TRACE_CODE, .code = {.address = BASE, .bytes = bytes, .size = BYTES}};
  struct analysis_code *code;

  for (size_t i = 0; i < BYTES; i++)
    bytes[i] = move[i % 3];
  assert_int_equal(analysis_names_new(NULL, ret_names), 0);
  assert_int_equal(analysis_names_record(*ret_names, &record), 0);
  assert_int_equal(analysis_code_new(*ret_names, &code), 0);
  return code;
}

/* Counts a block alone; makes its last instruction the one before its end. Returns false if it has none. */
static bool block_fill(struct analysis_code *code, struct analysis_block *block, uint64_t end, uint64_t executed[BYTES])
{
  struct analysis_location at = block->first;
  struct analysis_instruction instruction;

  block->instructions = 0;
  while (at.address < end && analysis_code_instruction(code, &at, &instruction)) {
    executed[at.address - BASE] += block->executed;
    block->last = at.address;
    block->instructions++;
    at.address += instruction.length;
  }
  return block->instructions > 0;
}

static void test_walk(void **state)
{
  struct analysis_names *names;
  struct analysis_code *code = moves_make(&names);

  (void)state;
  srandom(14);
  for (unsigned round = 0; round < 500; round++) {
    struct walked walked = {.is_sorted = true};
    uint64_t expected[BYTES] = {0};
    struct analysis_block blocks[BLOCKS];
    size_t count = 0;

    for (unsigned i = 0; i < BLOCKS; i++) {
      uint64_t start = (uint64_t)random() % BYTES, end = start + 1 + (uint64_t)random() % (BYTES - start);

      blocks[count] = (struct analysis_block){.first = {.file = ANALYSIS_NO_FILE, .address = BASE + start},
                                              .executed = 1 + (uint64_t)random() % 9};
      count += block_fill(code, &blocks[count], BASE + end, expected);
    }
    qsort(blocks, count, sizeof(*blocks), block_compare);
    assert_int_equal(analysis_blocks_walk(code, blocks, count, walked_take, &walked), 0);
    assert_true(walked.is_sorted);
    assert_memory_equal(walked.executed, expected, sizeof(expected));
  }
  analysis_code_free(code);
  analysis_names_free(names);
}

static int walked_stop(void *data, const struct analysis_ran *ran)
{
  (void)ran;
  return ++*(int *)data == 2 ? -EINTR : 0;
}

/* What makes no sense is left out: an end that is no instruction's, code that is not known, nothing at all. */
static void test_walk_nonsense(void **state)
{
  struct analysis_block blocks[] = {
    {.first = {.file = ANALYSIS_NO_FILE, .address = BASE}, .last = BASE + 4, .executed = 5, .instructions = 2},
    {.first = {.file = ANALYSIS_NO_FILE, .address = BASE + 9}, .last = BASE + 12, .executed = 3, .instructions = 2},
    {.first = {.file = ANALYSIS_NO_FILE, .address = BASE + 30}, .last = BASE + 2, .executed = 3, .instructions = 2},
    {.first = {.file = ANALYSIS_NO_FILE, .address = BASE + 40}, .last = BASE + 43, .executed = 3, .instructions = 0},
    {.first = {.file = ANALYSIS_NO_FILE, .address = BASE + 4096},
     .last = BASE + 4100,
     .executed = 3,
     .instructions = 4},
    {.first = {.file = ANALYSIS_NO_FILE, .address = UINT64_MAX}, .last = UINT64_MAX, .executed = 1, .instructions = 1},
  };
  struct walked walked = {.is_sorted = true};
  struct analysis_names *names;
  struct analysis_code *code = moves_make(&names);
  int calls = 0;

  (void)state;
  assert_int_equal(analysis_blocks_walk(code, blocks, sizeof(blocks) / sizeof(*blocks), walked_take, &walked), 0);
  assert_int_equal(walked.executed[0], 5);
  assert_int_equal(walked.executed[9], 3);
  assert_int_equal(walked.executed[12], 3);
  assert_int_equal(walked.executed[15], 0);
  assert_int_equal(walked.executed[40], 0);
  assert_int_equal(analysis_blocks_walk(code, blocks, 2, walked_stop, &calls), -EINTR);
  assert_int_equal(analysis_blocks_walk(code, NULL, 0, walked_take, &walked), 0);
  analysis_code_free(code);
  analysis_names_free(names);
}

/* ---- a program ---- */

static const uint8_t program[] = {
  0xB9, 0x02, 0x00, 0x00, 0x00, /* 1000: mov $2, %ecx */
  0xE8, 0x06, 0x00, 0x00, 0x00, /* 1005: call 1010 */
  0xFF, 0xC9,                   /* 100a: dec %ecx */
  0x75, 0xF7,                   /* 100c: jnz 1005 */
  0xEB, 0x06,                   /* 100e: jmp 1016 */
  0xFF, 0xE0,                   /* 1010: jmp *%rax, to 1012 and to 1014 */
  0xEB, 0x01,                   /* 1012: jmp 1015 */
  0x90,                         /* 1014: nop */
  0xC3,                         /* 1015: ret */
  0xF4,                         /* 1016: hlt */
};

static const struct lb_branch branches[] = {
  {.from = 0x500, .to = 0x1000, .kind = LB_BRANCH_NEAR_REL_CALL},
  {.from = 0x1005, .to = 0x1010, .kind = LB_BRANCH_NEAR_REL_CALL},
  {.from = 0x1010, .to = 0x1012, .kind = LB_BRANCH_NEAR_IND_JMP},
  {.from = 0x1012, .to = 0x1015, .kind = LB_BRANCH_NEAR_REL_JMP},
  {.from = 0x1015, .to = 0x100A, .kind = LB_BRANCH_NEAR_RET},
  {.from = 0x100C, .to = 0x1005, .kind = LB_BRANCH_JCC},
  {.from = 0x1005, .to = 0x1010, .kind = LB_BRANCH_NEAR_REL_CALL},
  {.from = 0x1010, .to = 0x1014, .kind = LB_BRANCH_NEAR_IND_JMP},
  {.from = 0x1015, .to = 0x100A, .kind = LB_BRANCH_NEAR_RET},
  {.from = 0x100E, .to = 0x1016, .kind = LB_BRANCH_NEAR_REL_JMP},
};

#define BRANCHES (sizeof(branches) / sizeof(*branches))

struct rig {
  struct lb_trace_reader *reader;
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_counts *counts;
  struct analysis_hot *hot;
};

static void trace_write(bool has_code)
{
  struct lb_trace_code code = {.space = 1, .address = BASE, .bytes = program, .size = sizeof(program)};
  struct lb_trace_writer *writer;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread", .space = 1}, &number), 0);
  if (has_code)
    assert_int_equal(lb_trace_writer_code(writer, &code), 0);
  assert_int_equal(lb_trace_writer_branches(writer, 0, branches, BRANCHES), 0);
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

static struct rig rig_make(bool has_code)
{
  struct lb_trace_record record;
  struct rig rig;

  trace_write(has_code);
  assert_int_equal(lb_trace_reader_open(path, &rig.reader), 0);
  assert_int_equal(analysis_names_new(NULL, &rig.names), 0);
  assert_int_equal(analysis_code_new(rig.names, &rig.code), 0);
  assert_int_equal(analysis_counts_new(rig.names, rig.code, &rig.counts), 0);
  lb_trace_reader_count(rig.reader, LB_TRACE_ALL);
  while (lb_trace_reader_next(rig.reader, &record) > 0)
    assert_int_equal(analysis_counts_record(rig.counts, rig.reader, &record), 0);
  assert_int_equal(analysis_counts_end(rig.counts, rig.reader), 0);
  assert_int_equal(analysis_hot_new(rig.names, rig.code, rig.counts, NULL, &rig.hot), 0);
  return rig;
}

static void rig_done(struct rig *rig)
{
  analysis_hot_free(rig->hot);
  analysis_counts_free(rig->counts);
  analysis_code_free(rig->code);
  analysis_names_free(rig->names);
  lb_trace_reader_close(rig->reader);
}

static const struct analysis_hot_function *function_at(const struct rig *rig, uint64_t start)
{
  size_t count;
  const struct analysis_hot_function *functions = analysis_hot_functions(rig->hot, &count);

  for (size_t i = 0; i < count; i++)
    if (functions[i].start == start)
      return &functions[i];
  return NULL;
}

/* Functions without symbols begin where calls lead to. */
static void test_functions(void **state)
{
  struct rig rig = rig_make(true);
  const struct analysis_hot_function *outer = function_at(&rig, 0x1000), *inner = function_at(&rig, 0x1010);

  (void)state;
  assert_non_null(outer);
  assert_non_null(inner);
  assert_int_equal(outer->instructions, 1 + 2 + 2 + 2 + 1);
  assert_int_equal(outer->taken, 2 + 1 + 1);
  assert_int_equal(outer->passed, 1);
  assert_int_equal(outer->calls, 1);
  assert_int_equal(inner->instructions, 2 + 1 + 1 + 2);
  assert_int_equal(inner->taken, 2 + 1 + 2);
  assert_int_equal(inner->calls, 2);
  assert_int_equal(inner->size, 6);
  rig_done(&rig);
}

static void test_branches(void **state)
{
  struct rig rig = rig_make(true);
  size_t count;
  const struct analysis_hot_branch *conditional = analysis_hot_branches(rig.hot, &count);
  const struct analysis_hot_indirect *indirect;

  const struct analysis_jump *const *edges;

  (void)state;
  assert_int_equal(count, 1);
  assert_int_equal(conditional->from.address, 0x100C);
  assert_int_equal(conditional->taken, 1);
  assert_int_equal(conditional->passed, 1);
  indirect = analysis_hot_indirects(rig.hot, &count);
  assert_int_equal(count, 1);
  assert_int_equal(indirect->count, 2);
  assert_int_equal(indirect->target_count, 2);
  assert_int_equal(indirect->targets[0]->to.address, 0x1012);
  assert_int_equal(indirect->targets[1]->to.address, 0x1014);
  edges = analysis_hot_edges(rig.hot, &count);
  assert_int_equal(count, 8); /* ten branches, two of them twice */
  assert_int_equal(edges[0]->from.address, 0x1005);
  assert_int_equal(edges[0]->count, 2);
  assert_int_equal(edges[1]->from.address, 0x1015);
  analysis_hot_sort(rig.hot, ANALYSIS_HOT_EDGE, ANALYSIS_HOT_BY_NAME);
  assert_int_equal(analysis_hot_edges(rig.hot, &count)[0]->from.address, 0x500);
  rig_done(&rig);
}

static void test_orders(void **state)
{
  (void)state;
  assert_true(analysis_hot_can_sort(ANALYSIS_HOT_BRANCH, ANALYSIS_HOT_BY_RATE));
  assert_false(analysis_hot_can_sort(ANALYSIS_HOT_EDGE, ANALYSIS_HOT_BY_RATE));
  for (unsigned i = 0; i < ANALYSIS_HOT_ORDERS; i++)
    assert_non_null(analysis_hot_order_name(i));
  assert_null(analysis_hot_order_name(ANALYSIS_HOT_ORDERS));
}

/* ---- rows ---- */

static void test_annotate(void **state)
{
  static const uint64_t expected[] = {1, 2, 2, 2, 1};
  struct rig rig = rig_make(true);
  struct analysis_hot_function *found;
  struct analysis_annotation annotation;

  (void)state;
  assert_int_equal(analysis_functions_find(rig.names, rig.counts, rig.hot, "0x1007", &found), 1);
  assert_int_equal(found->start, 0x1000);
  assert_int_equal(analysis_annotate(rig.names, rig.code, rig.counts, found, false, &annotation), 0);
  assert_int_equal(annotation.row_count, 5);
  for (size_t i = 0; i < 5; i++)
    assert_int_equal(annotation.rows[i].executed, expected[i]);
  assert_int_equal(annotation.arrow_count, 1); /* the loop */
  assert_int_equal(annotation.arrows[0].from, 3);
  assert_int_equal(annotation.arrows[0].to, 1);
  assert_false(annotation.is_uncounted);
  assert_false(annotation.has_unknown);
  analysis_annotation_done(&annotation);
  free(found);
  assert_int_equal(analysis_functions_find(rig.names, rig.counts, rig.hot, "0x9999", &found), 0);
  free(found);
  rig_done(&rig);
}

/* Without code there are only branches. */
static void test_annotate_no_code(void **state)
{
  struct rig rig = rig_make(false);
  struct analysis_hot_function function = {.file = ANALYSIS_NO_FILE, .space = 1, .start = 0x1000, .size = 0x10};
  struct analysis_annotation annotation;

  (void)state;
  assert_int_equal(analysis_annotate(rig.names, rig.code, rig.counts, &function, false, &annotation), 0);
  assert_int_equal(annotation.row_count, 3);
  assert_int_equal(annotation.rows[0].at.address, 0x1005);
  assert_int_equal(annotation.rows[0].length, 0);
  assert_int_equal(annotation.rows[0].executed, 2);
  assert_true(annotation.has_unknown);
  assert_true(annotation.is_uncounted);
  analysis_annotation_done(&annotation);
  function.size = UINT64_MAX; /* what a file may say */
  assert_int_equal(analysis_annotate(rig.names, rig.code, rig.counts, &function, false, &annotation), 0);
  assert_true(annotation.is_cut);
  analysis_annotation_done(&annotation);
  rig_done(&rig);
}

static void test_names(void **state)
{
  (void)state;
  assert_true(analysis_symbol_is("f", NULL, "f"));
  assert_true(analysis_symbol_is("f(int)", "_Z1fi", "f"));
  assert_true(analysis_symbol_is("f(int)", "_Z1fi", "_Z1fi"));
  assert_true(analysis_symbol_is("f.cold", NULL, "f"));
  assert_false(analysis_symbol_is("ff", NULL, "f"));
  assert_false(analysis_symbol_is("f", NULL, "ff"));
  assert_false(analysis_symbol_is("f", NULL, ""));
  assert_false(analysis_symbol_is(NULL, NULL, "f"));
}

/* ---- names ---- */

/* Symbols as c++filt prints them, with what a person may call them. */
static void test_spelling(void **state)
{
  static const char *const same[][2] = {
    {"main", "main"},
    {"f.cold", "f"},
    {"f.part.0", "f.part.0"},
    {"f(int)", "f(int)"},
    {"f(int)", "f"},
    {"A::f(int) const", "A::f"},
    {"f(int) [clone .cold]", "f"},
    {"int sum<int>(std::vector<int, std::allocator<int> > const&)", "sum"},
    {"int sum<int>(std::vector<int, std::allocator<int> > const&)", "sum<int>"},
    {"std::pair<int, A::B> A::g<char, 3>(int (*)(int))", "A::g"},
    {"sum<int>", "sum"},
    {"A<int>::f()", "A<int>::f"},
    {"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
    {"std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<<"},
    {"std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<< <char>"},
    {"bool A::operator<(A const&)", "A::operator<"},
    {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
    {"operator new(unsigned long)", "operator new"},
    {"A::operator bool() const", "A::operator bool"},
  };
  static const char *const other[][2] = {
    {"int sum<int>(int)", "int"},
    {"int sum<int>(int)", "su"},
    {"A<int>::f()", "A"},
    {"A::f()", "f"},
    {"f(int)", ""},
    {"", ""},
    {"f<g>(int)", "g"},
    {"A::operator->()", "A"},
    {"operators(int)", "operator"},
    {"x<<<>>(", "x<"},
    {"f>>>(int)", "operator"},
    {"<", "x"},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
    if (!analysis_symbol_is(same[i][0], NULL, same[i][1]))
      fail_msg("%s is %s", same[i][0], same[i][1]);
  for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
    if (analysis_symbol_is(other[i][0], NULL, other[i][1]))
      fail_msg("%s is not %s", other[i][0], other[i][1]);
  assert_true(analysis_symbol_is("f(int)", "_Z1fi", "_Z1fi"));
  assert_false(analysis_symbol_is(NULL, NULL, "f"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_spelling),      cmocka_unit_test(test_walk),
    cmocka_unit_test(test_walk_nonsense), cmocka_unit_test(test_functions),
    cmocka_unit_test(test_branches),      cmocka_unit_test(test_orders),
    cmocka_unit_test(test_annotate),      cmocka_unit_test(test_annotate_no_code),
    cmocka_unit_test(test_names),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
