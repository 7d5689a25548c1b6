/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a recorder at a position of a trace: its LBR stack as lbr sim shows it, or its BTS records.
 */
#include "report/replay_page.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "report/report.h"

/* ---- names ---- */

/* A callback of struct report_symbols. An address without a symbol is shown as its file and the offset in that. */
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

static void bts_rows(const struct replay_page *replay, struct page *page)
{
  static const struct page_column columns[] = {{"from", 44}, {"to", 44}, {"predicted", 0}, {NULL, 0}};

  page_table(page, "records", columns);
  for (size_t i = 0; i < replay->bts_count; i++) {
    struct lb_bts_record record;

    if (lb_bts_decode(replay->record_size == 24, replay->bts_bytes + i * replay->record_size, replay->record_size,
                      &record) < 0)
      break;
    page_row(page, false);
    put_place(replay->run, page, "from", "from_symbol", record.from);
    put_place(replay->run, page, "to", "to_symbol", record.to);
    page_put_flag(page, "predicted", record.is_predicted);
    page_row_end(page);
  }
  page_table_end(page);
}

static void bts_print(const struct replay_page *replay)
{
  const struct replay_options *options = replay->run->options;
  struct page page;

  page_open(&page, &replay->output, replay->format == REPORT_JSON);
  page_put(&page, "cpu", replay->cpu);
  page_put_number(&page, "thread", options->stream);
  page_put_number(&page, "position", replay->run->position);
  page_put_number(&page, "record_size", replay->record_size);
  page_put_number(&page, "capacity", options->bts_size);
  page_put_number(&page, "stored", replay->bts_count);
  if (replay->bts_file)
    page_put(&page, "file", replay->bts_file);
  else
    bts_rows(replay, &page);
  page_close(&page);
}

/* ---- the LBR stack ---- */

/* Describes the position: the branch before it tells where it is. */
static int head_add(const struct replay_run *run, struct text *text)
{
  const struct replay_options *options = run->options;
  struct analysis_stream stream;
  bool is_known = run->names && analysis_names_stream(run->names, options->stream, &stream);
  int r = text_addf(text, "thread %u", options->stream);

  if (r >= 0 && is_known && *stream.name)
    r = text_addf(text, " (%s)", stream.name);
  if (r >= 0 && run->position == run->length)
    r = text_addf(text, ", at its end, after %llu branches\n", (unsigned long long)run->position);
  else if (r >= 0)
    r = text_addf(text, ", after %llu of its %llu branches\n", (unsigned long long)run->position,
                  (unsigned long long)run->length);
  return r;
}

static int lbr_add(const struct replay_page *replay, struct text *text)
{
  struct replay_run *run = replay->run;
  const struct report_symbols symbols = {run, name_find};
  const struct report_options options = {
    .wants_color = replay->format == REPORT_TABLE && replay->output.wants_color,
    .symbols = run->options->has_symbols ? &symbols : NULL,
  };
  bool is_json = replay->format == REPORT_JSON;
  int r = 0;

  if (replay->format == REPORT_TABLE)
    r = head_add(run, text);
  else if (is_json)
    r = text_addf(text, "{\"thread\": %u, \"position\": %llu, \"branches\": %llu, \"lbr\":\n", run->options->stream,
                  (unsigned long long)run->position, (unsigned long long)run->length);
  if (r >= 0)
    r = report_print(text, run->recorder, replay->format, &options);
  return r >= 0 && is_json ? text_add(text, "}\n") : r;
}

static int lbr_print(const struct replay_page *replay)
{
  struct text text = {0};
  int r = lbr_add(replay, &text);

  if (r < 0)
    message("%s: %s", replay->run->input.name, lb_strerror(r));
  else
    fwrite(text.data, 1, text.length, replay->output.file);
  text_done(&text);
  return r < 0 ? r : 0;
}

void replay_page_warn(const struct replay_run *run)
{
  if (run->gap_end && run->position - run->gap_end < LB_DEPTH_MAX)
    message("warning: %s: branches are missing %llu before this position: older records may be wrong", run->input.name,
            (unsigned long long)(run->position - run->gap_end));
}

int replay_page_print(const struct replay_page *replay)
{
  if (!replay->run->options->bts_size)
    return lbr_print(replay);
  bts_print(replay);
  return 0;
}
