/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls by the time that they took, like the table of strace -c.
 */
#include "report/syscalls_page.h"

#include <stdio.h>

#include "report/page.h"
#include "trace/trace.h"

static void put_seconds(struct page *page, const char *key, uint64_t nanoseconds)
{
  char text[32];

  snprintf(text, sizeof(text), page->is_json ? "%.9f" : "%.6f", (double)nanoseconds / 1e9);
  if (page->is_json)
    page_put_json(page, key, text);
  else
    page_put(page, key, text);
}

static void put_share(struct page *page, uint64_t part, uint64_t whole)
{
  char text[32];

  snprintf(text, sizeof(text), page->is_json ? "%.6f" : "%6.2f",
           (page->is_json ? 1.0 : 100.0) * (double)part / (whole ? (double)whole : 1));
  if (page->is_json)
    page_put_json(page, "share", text);
  else
    page_put(page, "share", text);
}

void syscalls_put_name(struct page *page, uint32_t number)
{
  const struct trace_call_info *info = trace_call_info(number);

  if (info)
    page_put(page, "name", info->name);
  else
    page_putf(page, "name", "syscall_%u", number);
}

static void put_row(struct page *page, const struct analysis_syscall_row *row, const struct analysis_syscall_row *all)
{
  page_row(page, false);
  put_share(page, row->time, all->time);
  put_seconds(page, "seconds", row->time);
  put_seconds(page, "waited", row->waited);
  page_put_count(page, "calls", row->calls);
  page_put_count(page, "errors", row->errors);
  put_seconds(page, "average", row->calls ? row->time / row->calls : 0);
  put_seconds(page, "longest", row->longest);
  put_seconds(page, "longest_start", row->longest_start);
  page_put_number(page, "longest_thread", row->longest_stream);
  syscalls_put_name(page, row->number);
  page_row_end(page);
}

void syscalls_page_print(const char *file, const struct analysis_syscalls *syscalls, uint64_t top,
                         const struct report_output *output, bool is_json)
{
  static const struct page_column columns[] = {
    {"% time", 7},   {"seconds", 12}, {"waited", 12}, {"calls", 10},      {"errors", 8}, {"average", 10},
    {"longest", 12}, {"at", 12},      {"thread", 7},  {"system call", 0}, {NULL, 0},
  };
  struct page page;

  page_open(&page, output, is_json);
  page_title(&page, file);
  page_put_count(&page, "calls", syscalls->all.calls);
  page_put_count(&page, "errors", syscalls->all.errors);
  put_seconds(&page, "seconds", syscalls->all.time);
  page_heading(&page, "System calls");
  page_table(&page, "syscalls", columns);
  for (size_t i = 0; i < syscalls->count && i < top; i++)
    put_row(&page, &syscalls->rows[i], &syscalls->all);
  page_table_end(&page);
  if (syscalls->count > top)
    page_remark(&page, "and %zu more", syscalls->count - (size_t)top);
  page_close(&page);
}
