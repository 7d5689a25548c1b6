/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions and system calls whose times differ most between two traces.
 */
#include <stdio.h>

#include "report/diff_page.h"
#include "report/diff_words.h"
#include "report/syscalls_page.h"
#include "report/words.h"

#define WIDTH 8 /* of a duration */

/* By how much B differs from A, with its sign. */
static void put_change(struct page *page, uint64_t one, uint64_t other)
{
  char number[WORDS_NUMBER_SIZE], text[WORDS_NUMBER_SIZE + 1];

  if (page->is_json) {
    snprintf(text, sizeof(text), "%.9f", ((double)other - (double)one) / 1e9);
    page_put_json(page, "change", text);
    return;
  }
  snprintf(text, sizeof(text), "%s%s",
           other > one   ? "+"
           : other < one ? "-"
                         : "",
           words_duration(number, other > one ? other - one : one - other));
  page_putf(page, "change", "%*s", WIDTH + 1, text);
}

static void put_pair(struct page *page, const char *first, const char *second, uint64_t one, uint64_t other)
{
  words_put_duration(page, first, one, WIDTH);
  words_put_duration(page, second, other, WIDTH);
}

/* ---- functions ---- */

/* Times with what the function called; those of code without symbols are not known. */
static void put_totals(struct page *page, const struct diff_count_row *row)
{
  if (!row->symbol) {
    static const char *const keys[] = {"total_a", "total_b", "total_waiting_a", "total_waiting_b"};

    for (unsigned i = 0; i < (page->is_json ? 4 : 2); i++)
      page_put(page, keys[i], page->is_json ? NULL : "       -");
    return;
  }
  put_pair(page, "total_a", "total_b", row->all[0].all, row->all[1].all);
  if (page->is_json)
    put_pair(page, "total_waiting_a", "total_waiting_b", row->all[0].waited, row->all[1].waited);
}

static void put_function(struct page *page, const struct diff_count_row *row)
{
  page_row(page, false);
  put_change(page, row->own[0].all, row->own[1].all);
  put_pair(page, "own_a", "own_b", row->own[0].all, row->own[1].all);
  put_pair(page, "own_waiting_a", "own_waiting_b", row->own[0].waited, row->own[1].waited);
  put_totals(page, row);
  words_put_number(page, "calls_a", row->calls[0], 10);
  words_put_number(page, "calls_b", row->calls[1], 10);
  diff_put_function(page, row->symbol, row->module);
  page_row_end(page);
}

static void put_functions(struct page *page, const struct diff_counts *functions, uint32_t top)
{
  static const struct page_column columns[] = {
    {"   change", 9}, {"   own A", 8},    {"       B", 8},    {" waits A", 8}, {"       B", 8}, {" total A", 8},
    {"       B", 8},  {"   calls A", 10}, {"         B", 10}, {"function", 0}, {NULL, 0},
  };

  page_heading(page, "Functions whose own time changed most");
  page_table(page, "functions", columns);
  for (size_t i = 0; i < functions->count && i < top; i++)
    put_function(page, &functions->rows[i]);
  page_table_end(page);
}

/* ---- system calls ---- */

static void put_call(struct page *page, const struct diff_call_row *row)
{
  const struct analysis_syscall_row *one = &row->sides[0], *other = &row->sides[1];

  page_row(page, false);
  put_change(page, one->time, other->time);
  put_pair(page, "time_a", "time_b", one->time, other->time);
  put_pair(page, "waiting_a", "waiting_b", one->waited, other->waited);
  words_put_number(page, "calls_a", one->calls, 10);
  words_put_number(page, "calls_b", other->calls, 10);
  syscalls_put_name(page, row->number);
  page_row_end(page);
}

static void put_calls(struct page *page, const struct diff_times *times, uint32_t top)
{
  static const struct page_column columns[] = {
    {"   change", 9},   {"  time A", 8},    {"       B", 8},    {" waits A", 8}, {"       B", 8},
    {"   calls A", 10}, {"         B", 10}, {"system call", 0}, {NULL, 0},
  };

  page_heading(page, "System calls whose time changed most");
  page_table(page, "syscalls", columns);
  for (size_t i = 0; i < times->call_count && i < top; i++)
    put_call(page, &times->calls[i]);
  page_table_end(page);
}

/* ---- both ---- */

static void put_threads(struct page *page, const struct analysis_thread_time threads[2])
{
  words_put_duration(page, "running_a", threads[0].all - threads[0].waited, 0);
  words_put_duration(page, "running_b", threads[1].all - threads[1].waited, 0);
  words_put_duration(page, "waiting_a", threads[0].waited, 0);
  words_put_duration(page, "waiting_b", threads[1].waited, 0);
}

int diff_put_times(const struct diff_page *diff, struct page *page)
{
  struct diff_times times;
  int r = diff_times_make(diff->sides, diff->options, &times);

  if (r >= 0) {
    page_section(page, "times", "Times");
    put_threads(page, times.threads);
    put_functions(page, &times.functions, diff->options->top);
    put_calls(page, &times, diff->options->top);
    page_section_end(page);
  }
  diff_times_done(&times);
  return r;
}
