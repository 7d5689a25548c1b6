/* SPDX-License-Identifier: Apache-2.0
 *
 * What a recorder holds at a position of a trace: its LBR stack as lbr sim shows it, or its BTS records.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/replay_feed.h"
#include "report/report.h"
#include "session/session.h"

/* ---- names ---- */

/* As struct report_symbols wants it: a place without symbol is shown as its file and the offset in that. */
static bool name_find(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct replay_run *run = data;
  struct analysis_name name;

  if (!run->names || !analysis_names_find(run->names, run->space, address, &name))
    return false;
  *ret_name = name.symbol ? name.symbol : name.module;
  *ret_offset = name.offset;
  return true;
}

static void put_place(const struct replay_run *run, struct page *page, const char *key, const char *symbol_key,
                      uint64_t address)
{
  const char *name;
  uint64_t offset;
  bool has_name = name_find((void *)(uintptr_t)run, address, &name, &offset);

  if (page->is_json) {
    page_put_hex(page, key, address);
    if (has_name)
      page_putf(page, symbol_key, "%s+0x%llx", name, (unsigned long long)offset);
    else
      page_absent(page, symbol_key);
  } else if (has_name) {
    page_putf(page, key, "0x%llx %s+0x%llx", (unsigned long long)address, name, (unsigned long long)offset);
  } else {
    page_put_hex(page, key, address);
  }
}

/* ---- BTS ---- */

static int bts_write(const struct replay_run *run, size_t count)
{
  const char *name = run->arguments->bts_file;
  struct new_file file;
  int r = new_file_open(&file, name, name, "");

  if (r >= 0) {
    r = new_file_close(&file, new_file_write(&file, run->bts.bytes, run->bts.record_size * count));
    if (r < 0)
      cli_error("%s: %s", name, lb_strerror(r));
  }
  new_file_done(&file);
  return r;
}

static void bts_rows(const struct replay_run *run, struct page *page, size_t count)
{
  static const struct page_column columns[] = {{"from", 44}, {"to", 44}, {"predicted", 0}, {NULL, 0}};

  page_table(page, "records", columns);
  for (size_t i = 0; i < count; i++) {
    struct lb_bts_record record;

    if (lb_bts_decode(run->bts.record_size == 24, run->bts.bytes + i * run->bts.record_size, run->bts.record_size,
                      &record) < 0)
      break;
    page_row(page, false);
    put_place(run, page, "from", "from_symbol", record.from);
    put_place(run, page, "to", "to_symbol", record.to);
    page_put_flag(page, "predicted", record.is_predicted);
    page_row_end(page);
  }
  page_table_end(page);
}

static int bts_print(struct replay_run *run)
{
  const struct replay_arguments *arguments = run->arguments;
  size_t count = lbr_bts_sort(run->recorder, &run->bts);
  struct page page;

  if (arguments->bts_file && bts_write(run, count) < 0)
    return -1;
  cli_page_open(&page, arguments->format == REPORT_JSON, cli_wants_color());
  page_put(&page, "cpu", arguments->setup.cpu->name);
  page_put_number(&page, "thread", arguments->stream);
  page_put_number(&page, "position", run->position);
  page_put_number(&page, "record_size", run->bts.record_size);
  page_put_number(&page, "capacity", run->bts.size);
  page_put_number(&page, "stored", count);
  if (arguments->bts_file)
    page_put(&page, "file", arguments->bts_file);
  else
    bts_rows(run, &page, count);
  page_close(&page);
  return 0;
}

/* ---- the LBR stack ---- */

/* The position in words: the branch before it tells where it is. */
static int head_add(const struct replay_run *run, struct text *text)
{
  const struct replay_arguments *arguments = run->arguments;
  struct analysis_stream stream;
  bool is_known = run->names && analysis_names_stream(run->names, arguments->stream, &stream);
  int r = text_addf(text, "thread %u", arguments->stream);

  if (r >= 0 && is_known && *stream.name)
    r = text_addf(text, " (%s)", stream.name);
  if (r >= 0 && run->position == run->length)
    r = text_addf(text, ", at its end, after %llu branches\n", (unsigned long long)run->position);
  else if (r >= 0)
    r = text_addf(text, ", after %llu of its %llu branches\n", (unsigned long long)run->position,
                  (unsigned long long)run->length);
  return r;
}

static int lbr_add(struct replay_run *run, struct text *text)
{
  const struct replay_arguments *arguments = run->arguments;
  const struct report_symbols symbols = {run, name_find};
  const struct report_options options = {
    .wants_color = arguments->format == REPORT_TABLE && cli_wants_color(),
    .symbols = arguments->has_symbols ? &symbols : NULL,
  };
  bool is_json = arguments->format == REPORT_JSON;
  int r = 0;

  if (arguments->format == REPORT_TABLE)
    r = head_add(run, text);
  else if (is_json)
    r = text_addf(text, "{\"thread\": %u, \"position\": %llu, \"branches\": %llu, \"lbr\":\n", arguments->stream,
                  (unsigned long long)run->position, (unsigned long long)run->length);
  if (r >= 0)
    r = report_print(text, run->recorder, arguments->format, &options);
  return r >= 0 && is_json ? text_add(text, "}\n") : r;
}

static int lbr_print(struct replay_run *run)
{
  struct text text = {0};
  int r = lbr_add(run, &text);

  if (r < 0)
    cli_error("%s: %s", run->input.name, lb_strerror(r));
  else
    fwrite(text.data, 1, text.length, stdout);
  text_done(&text);
  return r;
}

int replay_print(struct replay_run *run)
{
  if (run->gap_end && run->position - run->gap_end < LB_DEPTH_MAX)
    cli_error("warning: %s: branches are missing %llu before this position: older records may be wrong",
              run->input.name, (unsigned long long)(run->position - run->gap_end));
  return run->arguments->has_bts ? bts_print(run) : lbr_print(run);
}
