/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr diff: the first branch where two recorded runs part, thread by thread, and the functions whose counts changed.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/diff_side.h"
#include "cli/filter_options.h"

#define DIFF_EQUAL CLI_OK
#define DIFF_DIFFERENT CLI_FAILURE
#define DIFF_TROUBLE CLI_USAGE
#define TOP_MAX (1u << 20) /* rows, for --top all */

/* ---- which thread belongs to which ---- */

static void threads_join(struct diff_side sides[2], uint32_t one, uint32_t other)
{
  sides[0].threads[one].partner = other;
  sides[1].threads[other].partner = one;
}

static const char *thread_name(const struct diff_thread *thread)
{
  return thread->name ? thread->name : "";
}

/* By name; those of one name in their order. */
static int thread_compare(const void *one, const void *other)
{
  const struct diff_thread *a = *(const struct diff_thread *const *)one, *b = *(const struct diff_thread *const *)other;
  int r = strcmp(thread_name(a), thread_name(b));

  return r ? r : a < b ? -1 : a > b;
}

static const struct diff_thread **threads_sort(const struct diff_side *side)
{
  const struct diff_thread **list = calloc(side->thread_count + 1, sizeof(*list));

  for (size_t i = 0; list && i < side->thread_count; i++)
    list[i] = &side->threads[i];
  if (list)
    qsort(list, side->thread_count, sizeof(*list), thread_compare);
  return list;
}

/* The nth thread of a name belongs to the nth of that name. */
static int threads_pair_named(struct diff_side sides[2])
{
  const struct diff_thread **a = threads_sort(&sides[0]), **b = threads_sort(&sides[1]);
  bool has_memory = a && b;

  for (size_t i = 0, j = 0; has_memory && i < sides[0].thread_count && j < sides[1].thread_count;) {
    int r = strcmp(thread_name(a[i]), thread_name(b[j]));

    if (!r)
      threads_join(sides, (uint32_t)(a[i] - sides[0].threads), (uint32_t)(b[j] - sides[1].threads));
    i += r <= 0;
    j += r >= 0;
  }
  free(a);
  free(b);
  return has_memory ? 0 : -1;
}

/* Threads that are left belong to each other in their order. */
static int threads_pair(struct diff_side sides[2])
{
  uint32_t j = 0;

  if (threads_pair_named(sides) < 0) {
    cli_error("no memory");
    return -1;
  }
  for (uint32_t i = 0; i < sides[0].thread_count; i++) {
    if (sides[0].threads[i].partner != LB_TRACE_ALL)
      continue;
    while (j < sides[1].thread_count && sides[1].threads[j].partner != LB_TRACE_ALL)
      j++;
    if (j == sides[1].thread_count)
      break;
    threads_join(sides, i, j);
  }
  return 0;
}

/* ---- comparing ---- */

static void put_alone(struct page *page, const struct diff_side *side, uint32_t number, bool is_first,
                      struct diff_summary *summary)
{
  char text[300], title[400];

  if (!*summary->first)
    snprintf(summary->first, sizeof(summary->first), "thread %u is only in %c", number, is_first ? 'A' : 'B');
  summary->different++;

  diff_thread_text(text, sizeof(text), side, number);
  snprintf(title, sizeof(title), "%s of %c alone", text, is_first ? 'A' : 'B');
  page_section(page, NULL, title);
  if (is_first)
    page_put_number(page, "thread_a", number);
  else
    page_put_number(page, "thread_b", number);
  page_put_count(page, "branches", side->threads[number].length);
  page_put(page, "result", is_first ? "only in A" : "only in B");
  page_section_end(page);
}

static int pair_compare(struct diff_side sides[2], const struct diff_arguments *arguments, const uint32_t streams[2],
                        struct diff_summary *summary, struct page *page)
{
  char title[300];
  int r;

  snprintf(title, sizeof(title), "Thread %u of A, thread %u of B", streams[0], streams[1]);
  page_section(page, NULL, title);
  if (page->is_json) {
    page_put_number(page, "thread_a", streams[0]);
    page_put_number(page, "thread_b", streams[1]);
  }
  page_put_count(page, "branches_a", sides[0].threads[streams[0]].length);
  page_put_count(page, "branches_b", sides[1].threads[streams[1]].length);
  r = diff_compare(sides, arguments, streams, summary, page);
  page_section_end(page);
  return r;
}

/* All pairs; then those that have no partner. Returns as diff_compare. */
static int threads_compare(struct diff_side sides[2], const struct diff_arguments *arguments,
                           struct diff_summary *summary, struct page *page)
{
  int result = 0;

  for (uint32_t i = 0; i < sides[0].thread_count; i++) {
    uint32_t streams[2] = {i, sides[0].threads[i].partner};
    int r = 1;

    if (streams[1] == LB_TRACE_ALL)
      put_alone(page, &sides[0], i, true, summary);
    else
      r = pair_compare(sides, arguments, streams, summary, page);
    if (r < 0)
      return r;
    result = r == 1 || result == 1 ? 1 : r > result ? r : result;
  }
  for (uint32_t i = 0; i < sides[1].thread_count; i++)
    if (sides[1].threads[i].partner == LB_TRACE_ALL) {
      put_alone(page, &sides[1], i, false, summary);
      result = 1;
    }
  return result;
}

/* A file that was built anew cannot be compared by its addresses. */
static void put_by_symbol(struct page *page, const struct diff_side sides[2])
{
  for (unsigned i = 0; i < 2; i++) {
    const char *name = sides[i].keys ? report_diff_keys_by_symbol(sides[i].keys) : NULL;

    if (name && !page->is_json)
      page_remark(page,
                  "%s of %c is not in the other trace as it is here: such files were compared by symbol and offset",
                  name, i ? 'B' : 'A');
    else if (page->is_json)
      page_put(page, i ? "by_symbol_b" : "by_symbol_a", name);
  }
}

static const char *verdict_word(int result)
{
  return result == 0 ? "equal" : result == 1 ? "different" : "unknown";
}

/* One line that says it all. */
static void summary_text(char *text, size_t size, const struct diff_summary *summary, int result)
{
  char more[120] = "";

  if (result == 0)
    snprintf(more, sizeof(more), ": %" PRIu64 " branches%s", summary->same,
             summary->skipped ? ", but for string functions that depend on alignment" : "");
  else if (result == 1 && summary->different > 1)
    snprintf(more, sizeof(more), "; %" PRIu32 " more thread%s differ%s", summary->different - 1,
             summary->different > 2 ? "s" : "", summary->different > 2 ? "" : "s");
  snprintf(text, size, "%s%s%s%s", verdict_word(result), result == 1 ? ": " : "", result == 1 ? summary->first : "",
           result == 0 || result == 1 ? more : ": branches are missing");
}

static void put_skipped(struct page *page, const struct diff_summary *summary)
{
  if (!summary->skipped)
    return;
  page_blank(page);
  page_remark(page,
              "%" PRIu64 " difference%s in string functions of the C library, whose branches depend on how strings are "
              "aligned, skipped; --strict shows them",
              summary->skipped, summary->skipped == 1 ? "" : "s");
}

static void put_verdict(struct page *page, const struct diff_summary *summary, int result)
{
  char text[900];

  summary_text(text, sizeof(text), summary, result);
  page_release(page, page->is_json ? "summary" : "verdict", text);
  if (page->is_json)
    page_put(page, "verdict", verdict_word(result));
}

static int sides_compare(struct diff_side sides[2], const struct diff_arguments *arguments)
{
  struct diff_summary summary = {0};
  struct page page;
  int result, r = 0;

  cli_page_open(&page, arguments->is_json, cli_wants_color());
  page_hold(&page);
  page_put(&page, "A", arguments->files[0]);
  page_put(&page, "B", arguments->files[1]);
  page_array(&page, "threads");
  if (arguments->streams[0] != LB_TRACE_ALL) {
    result = pair_compare(sides, arguments, arguments->streams, &summary, &page);
  } else {
    result = threads_pair(sides) < 0 ? -1 : threads_compare(sides, arguments, &summary, &page);
  }
  page_array_end(&page);
  put_by_symbol(&page, sides);
  put_skipped(&page, &summary);
  put_verdict(&page, &summary, result);
  if (result == 1 && arguments->has_counts)
    r = diff_counts(sides, arguments, &page);
  page_close(&page);
  return r < 0 ? r : result;
}

static int threads_check(const struct diff_side sides[2], const struct diff_arguments *arguments)
{
  for (unsigned i = 0; i < 2; i++)
    if (arguments->streams[i] != LB_TRACE_ALL && arguments->streams[i] >= sides[i].thread_count) {
      cli_error("%s: it has no thread %u; 'lbr stat' lists its threads", sides[i].input.name, arguments->streams[i]);
      return -1;
    }
  return 0;
}

static int diff_run(const struct diff_arguments *arguments)
{
  struct diff_side *sides = calloc(2, sizeof(*sides));
  int r = -1, status = CLI_OK;

  if (!sides) {
    cli_error("no memory");
    return DIFF_TROUBLE;
  }
  if (diff_side_open(&sides[0], arguments->files[0]) >= 0) {
    if (diff_side_open(&sides[1], arguments->files[1]) >= 0) {
      r = threads_check(sides, arguments) < 0 ? -1 : sides_compare(sides, arguments);
      status = diff_side_close(&sides[1]);
    }
    if (diff_side_close(&sides[0]) != CLI_OK)
      status = CLI_FAILURE;
  }
  free(sides);
  return r < 0 || r == 2 || (r == 0 && status != CLI_OK) ? DIFF_TROUBLE : r == 1 ? DIFF_DIFFERENT : DIFF_EQUAL;
}

/* ---- the command line ---- */

enum {
  KEY_THREAD = 0x100,
  KEY_BEFORE,
  KEY_AFTER,
  KEY_RESYNC,
  KEY_DIFFERENCES,
  KEY_LIMIT,
  KEY_NO_COUNTS,
  KEY_STRICT,
};

static const struct argp_option options[] = {
  {"thread", KEY_THREAD, "N[:M]", 0, "Only thread N of A, with thread M of B (N): numbers that 'lbr stat' lists", 0},
  {"before", KEY_BEFORE, "N", 0, "Show N branches that both took before they part (8)", 0},
  {"after", KEY_AFTER, "N", 0, "Show N branches of each after that (8)", 0},
  {"resync", KEY_RESYNC, NULL, 0, "Go on where they come together again", 0},
  {"differences", KEY_DIFFERENCES, "N", 0, "With --resync: stop after N differences of a thread (10)", 0},
  {"limit", KEY_LIMIT, "N", OPTION_HIDDEN, NULL, 0},
  {"strict", KEY_STRICT, NULL, 0,
   "Compare the string functions of the C library, too, whose branches depend on alignment", 0},
  {"no-counts", KEY_NO_COUNTS, NULL, 0, "No counts of functions: the traces need not be read again", 0},
  {0},
};

static const struct argp_child children[] = {FILTER_BRANCHES, SHARED_TOP,    SHARED_SYMBOLS,
                                             SHARED_DEMANGLE, SHARED_NAMES,  SHARED_JSON,
                                             SHARED_OUTPUT,   SHARED_COMMON, {0}};

static void thread_option(struct diff_arguments *arguments, char *argument, struct argp_state *state)
{
  char *colon = strchr(argument, ':');

  if (colon)
    *colon++ = '\0';
  arguments->streams[0] = (uint32_t)filter_option_number("--thread", argument, LB_TRACE_STREAMS_MAX - 1, state);
  arguments->streams[1] =
    (uint32_t)filter_option_number("--thread", colon ? colon : argument, LB_TRACE_STREAMS_MAX - 1, state);
}

static void file_add(struct diff_arguments *arguments, const char *name, struct argp_state *state)
{
  if (arguments->files[1])
    argp_error(state, "two traces are compared, not more");
  arguments->files[arguments->files[0] != NULL] = name;
}

static void shared_take(struct diff_arguments *arguments)
{
  const struct shared_options *shared = &arguments->shared;

  arguments->top = shared->top < TOP_MAX ? (uint32_t)shared->top : TOP_MAX;
  arguments->has_symbols = shared->has_symbols;
  arguments->is_mangled = shared->is_mangled;
  arguments->is_json = shared->is_json;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct diff_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->filter;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_THREAD:
    thread_option(arguments, argument, state);
    return 0;
  case KEY_BEFORE:
    arguments->before = (uint32_t)filter_option_number("--before", argument, DIFF_SHOWN_MAX, state);
    return 0;
  case KEY_AFTER:
    arguments->after = (uint32_t)filter_option_number("--after", argument, DIFF_SHOWN_MAX, state);
    return 0;
  case KEY_RESYNC:
    arguments->is_resync = true;
    return 0;
  case KEY_LIMIT:
    option_renamed("--limit", "--differences");
    /* fall through */
  case KEY_DIFFERENCES:
    arguments->limit = filter_option_number("--differences", argument, UINT64_MAX, state);
    return 0;
  case KEY_STRICT:
    arguments->is_strict = true;
    return 0;
  case KEY_NO_COUNTS:
    arguments->has_counts = false;
    return 0;
  case ARGP_KEY_ARG:
    file_add(arguments, argument, state);
    return 0;
  case ARGP_KEY_END:
    shared_take(arguments);
    if (!arguments->files[1])
      argp_error(state, "two traces are wanted");
    if (report_filter_needs_names(&arguments->filter.filter) && !arguments->has_symbols)
      argp_error(state, "functions and modules cannot be looked for with --no-symbols");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp diff_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "A B",
  .doc =
    "Compare two recorded runs: where they part for the first time, thread by thread, with what both did before and "
    "each did after, and the functions whose exact counts changed most. Where the programs lay in memory does not "
    "matter.\v"
    "Exit status: 0 if the runs are the same, 1 if they differ, 2 for trouble: a command line that makes no sense, "
    "a trace that cannot be read, or branches that are missing, so that nobody can tell.",
  .children = children,
};

int cmd_diff(int argc, char **argv)
{
  struct diff_arguments arguments = {
    .streams = {LB_TRACE_ALL, LB_TRACE_ALL},
    .before = 8,
    .after = 8,
    .limit = 10,
    .has_counts = true,
  };
  int status;

  shared_options_init(&arguments.shared);
  arguments.shared.top = 10;
  arguments.shared.top_default = "10";
  filter_options_init(&arguments.filter);
  argp_parse(&diff_argp, argc, argv, 0, NULL, &arguments);
  status = diff_run(&arguments);
  filter_options_done(&arguments.filter);
  return status;
}
