/* SPDX-License-Identifier: Apache-2.0
 *
 * What is made of a trace, where the command line does not get to: modules over modules, their limits, files that are
 * opened late and once, more edges than are kept.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/report.h"

/* ---- names ---- */

static unsigned opened, warned;

static int none_open(void *data, const char *name, const void **ret_bytes, size_t *ret_size)
{
  (void)data, (void)name, (void)ret_bytes, (void)ret_size;
  opened++;
  return -ENOENT;
}

static void none_close(void *data, const void *bytes, size_t size)
{
  (void)data, (void)bytes, (void)size;
  fail();
}

static void none_warn(void *data, const char *name, const char *why)
{
  (void)data, (void)name, (void)why;
  warned++;
}

static const struct analysis_files none = {NULL, none_open, none_close, none_warn, NULL};

static struct analysis_names *names_new(const struct analysis_files *files)
{
  struct analysis_names *names;

  opened = warned = 0;
  assert_int_equal(analysis_names_new(files, &names), 0);
  return names;
}

static void names_put(struct analysis_names *names, uint32_t space, uint64_t address, uint64_t size, const char *name)
{
  const struct lb_trace_module module = {
    .space = space, .is_gone = !name, .address = address, .size = size, .name = name ? name : ""};

  assert_int_equal(analysis_names_module(names, &module), 0);
}

/* The module and offset at an address are these; NULL: nothing lies there. */
static void names_are(struct analysis_names *names, uint64_t address, const char *module, uint64_t offset)
{
  struct analysis_name name;

  assert_int_equal(analysis_names_find(names, 0, address, &name), module != NULL);
  if (!module)
    return;
  assert_null(name.symbol);
  assert_string_equal(name.module, module);
  assert_int_equal(name.offset, offset);
}

static void test_names_over(void **state)
{
  struct analysis_names *names = names_new(NULL);

  (void)state;
  names_are(names, 0, NULL, 0);
  names_put(names, 0, 0x1000, 0x1000, "/lib/a");
  names_put(names, 0, 0x2000, 0x1000, "b");
  names_put(names, 0, 0x4000, 0x1000, "dir/");
  names_are(names, 0xFFF, NULL, 0);
  names_are(names, 0x1FFF, "a", 0xFFF);
  names_are(names, 0x2000, "b", 0);
  names_are(names, 0x3000, NULL, 0);
  names_are(names, 0x4001, "dir/", 1);
  names_put(names, 0, 0x1800, 0x1000, "over both");
  names_are(names, 0x17FF, "a", 0x7FF);
  names_are(names, 0x1800, "over both", 0);
  names_are(names, 0x2800, "b", 0x800);
  names_put(names, 0, 0x1900, 0x10, NULL); /* a hole makes two */
  names_are(names, 0x18FF, "over both", 0xFF);
  names_are(names, 0x1900, NULL, 0);
  names_are(names, 0x1910, "over both", 0x110);
  names_put(names, 0, 0, UINT64_MAX, "all");
  names_are(names, 0x1900, "all", 0x1900);
  names_are(names, UINT64_MAX, NULL, 0);
  names_put(names, 0, 0x8000, UINT64_MAX, NULL); /* wraps: up to the end */
  names_are(names, 0x7FFF, "all", 0x7FFF);
  names_are(names, 0x8000, NULL, 0);
  names_put(names, 0, 0, 0, NULL); /* nothing goes */
  names_are(names, 0, "all", 0);
  analysis_names_free(names);
}

static void test_names_spaces(void **state)
{
  struct analysis_names *names = names_new(NULL);
  struct analysis_name name;

  (void)state;
  names_put(names, 2, 0x1000, 0x1000, "two");
  names_put(names, 0, 0x1000, 0x1000, "zero");
  names_put(names, 1, 0x1000, 0x1000, "one");
  names_put(names, 1, 0, UINT64_MAX, NULL);
  assert_true(analysis_names_find(names, 2, 0x1000, &name));
  assert_string_equal(name.module, "two");
  assert_false(analysis_names_find(names, 1, 0x1000, &name));
  names_are(names, 0x1000, "zero", 0);
  analysis_names_free(names);
}

static void test_names_files(void **state)
{
  struct analysis_names *names = names_new(&none);
  struct analysis_file file;

  (void)state;
  for (unsigned i = 0; i < 3; i++)
    names_put(names, 0, 0x1000 * i, 0x1000, "file");
  names_put(names, 0, 0x9000, 0x1000, "[vdso]");
  assert_int_equal(opened, 0);
  names_are(names, 0x1000, "file", 0);
  names_are(names, 0x2000, "file", 0);
  names_are(names, 0x9000, "[vdso]", 0);
  assert_int_equal(opened, 1);
  assert_int_equal(warned, 1);
  assert_true(analysis_names_file(names, 0, &file));
  assert_int_equal(file.pieces, 3);
  assert_string_equal(file.problem, "No such file or directory");
  assert_true(analysis_names_file(names, 1, &file));
  assert_null(file.problem);
  assert_false(analysis_names_file(names, 2, &file));
  analysis_names_free(names);
}

/* More than any program has: what does not fit is left out, with one warning. */
static void test_names_limits(void **state)
{
  struct analysis_names *names = names_new(&none);
  char name[16];

  (void)state;
  for (unsigned i = 0; i < 2000; i++) {
    snprintf(name, sizeof(name), "file%u", i);
    names_put(names, 0, UINT64_C(0x1000) * i, 0x1000, name);
  }
  assert_int_equal(warned, 1);
  names_are(names, 0, "file0", 0);
  names_are(names, UINT64_C(0x1000) * 1999, NULL, 0);
  for (unsigned i = 0; i < 70000; i++)
    names_put(names, 1, UINT64_C(0x1000) * i, 0x1000, "file1");
  assert_int_equal(warned, 2); /* one is of file0, which could not be opened */
  analysis_names_free(names);
}

/* ---- numbers ---- */

static void branch_count(struct analysis_summary *summary, uint64_t from, uint64_t to)
{
  const struct lb_branch branch = {.from = from, .to = to, .kind = LB_BRANCH_NEAR_REL_JMP};
  const struct lb_trace_record record = {.type = LB_TRACE_BRANCHES, .branches = {.count = 1, .branches = &branch}};

  assert_int_equal(analysis_summary_record(summary, &record), 0);
}

/* Three million edges once, two edges often, all mixed: the two come out on top, and the totals are exact. */
static void test_summary_forgets(void **state)
{
  enum { RARE = 3000000 };
  struct analysis_names *names = names_new(NULL);
  struct analysis_summary *summary;
  struct analysis_function functions[2];
  struct analysis_edge edges[2];

  (void)state;
  assert_int_equal(analysis_summary_new(names, &summary), 0);
  for (unsigned i = 0; i < RARE; i++) {
    branch_count(summary, 0x100000 + i, 0x200000 + i);
    if (i % 100 == 0)
      branch_count(summary, 1, 2);
    if (i % 200 == 0)
      branch_count(summary, 3, 4);
  }
  assert_int_equal(analysis_summary_totals(summary)->branches, RARE + RARE / 100 + RARE / 200);
  assert_true(analysis_summary_totals(summary)->has_forgotten);
  assert_int_equal(analysis_summary_edges(summary, edges, 2), 2);
  assert_int_equal(edges[0].from.address, 1);
  assert_int_equal(edges[0].count, RARE / 100);
  assert_int_equal(edges[1].from.address, 3);
  assert_int_equal(edges[1].count, RARE / 200);
  assert_int_equal(analysis_summary_functions(summary, functions, 2), 1);
  assert_int_equal(functions[0].branches, analysis_summary_totals(summary)->branches);
  assert_int_equal(analysis_summary_functions(summary, functions, 2), 1); /* asking does not count again */
  assert_int_equal(functions[0].branches, analysis_summary_totals(summary)->branches);
  analysis_summary_free(summary);
  analysis_names_free(names);
}

static void test_summary_empty(void **state)
{
  struct analysis_summary *summary;
  struct analysis_function functions[1];
  struct analysis_edge edges[1];
  struct analysis_stream stream;

  (void)state;
  assert_int_equal(analysis_summary_new(NULL, &summary), 0);
  assert_int_equal(analysis_summary_functions(summary, functions, 1), 0);
  assert_int_equal(analysis_summary_edges(summary, edges, 1), 0);
  assert_int_equal(analysis_summary_functions(summary, NULL, 0), 0);
  assert_false(analysis_summary_stream(summary, 0, &stream));
  assert_null(analysis_summary_meta(summary, "cpu"));
  branch_count(summary, 1, 2);
  assert_int_equal(analysis_summary_edges(summary, edges, 1), 1);
  assert_null(edges[0].to.symbol);
  analysis_summary_free(summary);
  analysis_summary_free(NULL);
}

static void meta_give(struct analysis_summary *summary, const char *key, const char *value)
{
  struct lb_trace_record record = {.type = LB_TRACE_META, .meta = {key, value}};

  assert_int_equal(analysis_summary_record(summary, &record), 0);
}

/* Titles and names are a stranger's text: of a stream that there is, or nothing. */
static void test_summary_titles(void **state)
{
  static const char *const wrong[] = {
    "", "0", "x", " x", "-0 x", "65536 x", "4294967296 x", "4294967295 x", "18446744073709551616 x", "0x0 x"};
  struct lb_trace_record record = {.type = LB_TRACE_STREAM, .stream = {.process = 7, .thread = 7, .name = "old"}};
  struct analysis_summary *summary;
  struct analysis_stream stream;

  (void)state;
  assert_int_equal(analysis_summary_new(NULL, &summary), 0);
  meta_give(summary, "title", "0 of no stream");
  assert_false(analysis_summary_stream(summary, 0, &stream));
  assert_int_equal(analysis_summary_record(summary, &record), 0);
  assert_true(analysis_summary_stream(summary, 0, &stream));
  assert_null(stream.command);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    meta_give(summary, "title", wrong[i]);
    meta_give(summary, "name", wrong[i]);
  }
  assert_true(analysis_summary_stream(summary, 0, &stream));
  assert_null(stream.command);
  assert_string_equal(stream.name, "old");
  meta_give(summary, "title", "0 one");
  meta_give(summary, "title", "0 two\033words");
  meta_give(summary, "name", "0 new");
  meta_give(summary, "title", "1 of no stream");
  assert_true(analysis_summary_stream(summary, 0, &stream));
  assert_string_equal(stream.command, "two?words");
  assert_string_equal(stream.name, "new");
  assert_false(analysis_summary_stream(summary, 1, &stream));
  analysis_summary_free(summary);
}

/* ---- lines ---- */

/* Bases count outside 64-bit mode only, and addresses wrap there. */
static void test_script_bases(void **state)
{
  const struct lb_branch branches[] = {
    {.from = 0x10,
     .to = 0x20,
     .from_base = 0x7C00,
     .to_base = 0xFFFFFFF0,
     .flags = LB_BRANCH_FROM_32 | LB_BRANCH_TO_32},
    {.from = 0x10,
     .to = 0x20,
     .from_base = 0x7C00,
     .to_base = 0x8000,
     .kind = LB_BRANCH_FAR_JMP,
     .flags = LB_BRANCH_TO_32},
  };
  const struct lb_trace_record record = {
    .type = LB_TRACE_BRANCHES, .branches = {.stream = 5, .first = UINT64_MAX - 1, .count = 2, .branches = branches}};
  const struct report_script_options options = {.stream = LB_TRACE_ALL, .limit = UINT64_MAX};
  struct report_script *script;
  struct text text = {0};

  (void)state;
  assert_int_equal(report_script_new(&options, &script), 0);
  assert_int_equal(report_script_record(script, &record, &text), 1);
  assert_string_equal(text_string(&text), "5 18446744073709551614 0x7c10 -> 0x10 jcc\n"
                                          "5 18446744073709551615 0x10 -> 0x8020 jmp_far\n");
  report_script_free(script);
  report_script_free(NULL);
  text_done(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names_over),     cmocka_unit_test(test_names_spaces),    cmocka_unit_test(test_names_files),
    cmocka_unit_test(test_names_limits),   cmocka_unit_test(test_summary_forgets), cmocka_unit_test(test_summary_empty),
    cmocka_unit_test(test_summary_titles), cmocka_unit_test(test_script_bases),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
