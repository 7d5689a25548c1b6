/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the page: the template (view/page.html, .css and .js, which are embedded in the program), a policy that lets
 * the browser run this script and nothing else, and the data: JSON, and the blocks of the timeline as variable-length
 * numbers in base64. page.js reads them.
 *
 * The blocks begin with the number of streams. Each stream has its number and its number of rows; each row its depth
 * and its number of blocks; each block five numbers: branches since the block before, branches in it, the same for
 * instructions, and 2 * function, plus 1 if three more follow: flags and how it was left, calls, and branches of these.
 * In a trace with times, two more numbers follow the instructions: the same for nanoseconds. Instead of 2 * function
 * there is 4 * function then, plus 2 if two more numbers follow: nanoseconds of waiting, and of waiting for the
 * recorder.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/view_page.h"

extern const char view_html[], view_html_end[], view_css[], view_css_end[], view_script[], view_script_end[];

#define FLUSH_SIZE 65536u
#define PACK_SIZE 3072u /* a multiple of 3 */

/* ---- output ---- */

struct output {
  report_view_write_function *function;
  void *data;
  struct text text;
  uint64_t size;     /* bytes of packed numbers */
  bool is_measuring; /* they are only counted */
  bool has_times;
  uint8_t pack[PACK_SIZE + 16];
  size_t packed;
};

static int output_flush(struct output *output, bool is_end)
{
  int r = 0;

  if (output->text.length >= FLUSH_SIZE || (is_end && output->text.length)) {
    r = output->function(output->data, output->text.data, output->text.length);
    output->text.length = 0;
  }
  return r;
}

/* Writes the packed bytes, in whole groups of three unless it is the end. */
static int pack_flush(struct output *output, bool is_end)
{
  char digits[PACK_SIZE / 3 * 4 + 64];
  size_t size = is_end ? output->packed : output->packed / 3 * 3;
  int r;

  output->size += size;
  if (output->is_measuring)
    output->packed -= size;
  if (output->is_measuring)
    return 0;
  view_base64(output->pack, size, digits);
  output->packed -= size;
  memmove(output->pack, output->pack + size, output->packed);
  r = text_add(&output->text, digits);
  return r < 0 ? r : output_flush(output, false);
}

static int pack_number(struct output *output, uint64_t value)
{
  do {
    uint8_t more = value >= 0x80 ? 0x80 : 0;

    output->pack[output->packed++] = (uint8_t)((value & 0x7F) | more);
    value >>= 7;
  } while (value);
  return output->packed >= PACK_SIZE ? pack_flush(output, false) : 0;
}

static int pack_numbers(struct output *output, const uint64_t *values, size_t count)
{
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++)
    r = pack_number(output, values[i]);
  return r;
}

/* ---- the timeline ---- */

/* The position in a row. */
struct row {
  uint64_t branch, instructions, time;
};

static uint64_t greater(uint64_t one, uint64_t other)
{
  return one > other ? one : other;
}

/* The function of a block, after its times if there are any. */
static int pack_function(struct output *output, const struct timeline_block *block, struct row *row, bool is_plain)
{
  uint64_t start = greater(block->start_time, row->time), end = greater(block->end_time, start);
  uint64_t word = (uint64_t)block->function << 2 | (block->waited || block->held ? 2 : 0) | !is_plain;
  const uint64_t values[5] = {start - row->time, end - start, word, block->waited, block->held};

  if (!output->has_times)
    return pack_number(output, (uint64_t)block->function << 1 | !is_plain);
  row->time = end;
  return pack_numbers(output, values, word & 2 ? 5 : 3);
}

static int pack_block(struct output *output, const struct timeline_block *block, struct row *row)
{
  bool is_plain = block->calls == 1 && block->how == ANALYSIS_CALL_RETURN && !(block->flags & ~TIMELINE_IS_TAIL);
  uint64_t start = greater(block->start, row->branch), start_count = greater(block->start_count, row->instructions);
  uint64_t end = greater(block->end, start), end_count = greater(block->end_count, start_count);
  const uint64_t places[4] = {start - row->branch, end - start, start_count - row->instructions,
                              end_count - start_count};
  const uint64_t rest[3] = {block->flags | (uint64_t)block->how << 3, block->calls, block->busy};
  int r = pack_numbers(output, places, 4);

  row->branch = end;
  row->instructions = end_count;
  if (r >= 0)
    r = pack_function(output, block, row, is_plain);
  return r < 0 || is_plain ? r : pack_numbers(output, rest, 3);
}

/* How many blocks from here on have the same stream; or stream and depth. */
static size_t blocks_alike(const struct timeline_store *store, size_t at, bool has_depth)
{
  const struct timeline_block *first = &store->blocks[at];
  size_t count = 0;

  while (at + count < store->count && store->blocks[at + count].stream == first->stream &&
         (!has_depth || store->blocks[at + count].depth == first->depth))
    count++;
  return count;
}

static int pack_row(struct output *output, const struct timeline_store *store, size_t at, size_t count)
{
  struct row row = {0};
  int r = pack_numbers(output, (uint64_t[]){store->blocks[at].depth, count}, 2);

  for (size_t i = 0; i < count && r >= 0; i++)
    r = pack_block(output, &store->blocks[at + i], &row);
  return r;
}

static int pack_stream(struct output *output, const struct timeline_store *store, size_t at, size_t count)
{
  uint64_t rows = 0;
  int r;

  for (size_t i = at; i < at + count; i += blocks_alike(store, i, true))
    rows++;
  r = pack_numbers(output, (uint64_t[]){store->blocks[at].stream, rows}, 2);
  for (size_t i = at, size; i < at + count && r >= 0; i += size) {
    size = blocks_alike(store, i, true);
    r = pack_row(output, store, i, size);
  }
  return r;
}

static int pack_store(struct output *output, const struct timeline_store *store)
{
  uint64_t streams = 0;
  int r;

  for (size_t i = 0; i < store->count; i += blocks_alike(store, i, false))
    streams++;
  r = pack_number(output, streams);
  for (size_t i = 0, size; i < store->count && r >= 0; i += size) {
    size = blocks_alike(store, i, false);
    r = pack_stream(output, store, i, size);
  }
  return r < 0 ? r : pack_flush(output, true);
}

/* How many bytes the timeline takes in the page. */
static uint64_t store_size(const struct timeline *timeline)
{
  struct output output = {.is_measuring = true, .has_times = timeline->has_times};

  pack_store(&output, &timeline->store);
  return (output.size + 2) / 3 * 4;
}

static void store_fit(struct report_view *view, uint64_t others)
{
  uint64_t room = view->options.size > others ? view->options.size - others : 0;

  while (store_size(&view->timeline) > room && timeline_store_shrink(&view->timeline.store))
    ;
}

/* ---- the rest of the data ---- */

static int put_function(struct report_view *view, uint32_t number, struct text *text)
{
  const struct timeline_function *function = &view->timeline.functions[number];
  struct analysis_called called = {0};
  struct text name = {0};
  int r = text_add(text, number ? ",\n[" : "[");

  analysis_calls_function(view->timeline.calls, number, &called);
  if (r >= 0)
    r = analysis_called_name(view->timeline.calls, number, &name);
  if (r >= 0)
    r = view_quote(text, text_string(&name));
  text_done(&name);
  if (r >= 0)
    r = text_add(text, ",");
  if (r >= 0)
    r = view_quote(text, called.module ? called.module : "");
  if (r < 0)
    return r;
  r = text_addf(text, ",%llu,%llu,%llu,%llu,%llu,%u,%llu,%d", (unsigned long long)function->calls,
                (unsigned long long)function->branches, (unsigned long long)function->all_branches,
                (unsigned long long)function->instructions, (unsigned long long)function->all_instructions,
                called.location.file, (unsigned long long)called.location.address,
                called.source >= ANALYSIS_EXTENT_BY_CALL);
  if (r >= 0 && view->timeline.has_times)
    r = text_addf(text, ",%llu,%llu,%llu,%llu", (unsigned long long)function->time.all,
                  (unsigned long long)function->all_time.all, (unsigned long long)function->time.waited,
                  (unsigned long long)function->all_time.waited);
  return r < 0 ? r : text_add(text, "]");
}

int view_put_functions(struct report_view *view, struct text *text)
{
  int r = text_add(text, "\"functions\":[\n");

  for (uint32_t i = 0; i < view->timeline.function_count && r >= 0; i++)
    r = put_function(view, i, text);
  return r < 0 ? r : text_add(text, "]");
}

static int put_gaps(const struct report_view *view, struct text *text)
{
  int r = text_addf(text, "\"gapsLeftOut\":%llu,\"gaps\":[", (unsigned long long)view->timeline.gaps_left_out);

  for (size_t i = 0; i < view->timeline.gap_count && r >= 0; i++) {
    const struct timeline_gap *gap = &view->timeline.gaps[i];

    r = text_addf(text, "%s[%lld,\"%s\",%llu,%llu]", i ? "," : "",
                  gap->stream == LB_TRACE_ALL ? -1LL : (long long)gap->stream, lb_trace_gap_name(gap->reason),
                  (unsigned long long)gap->first, (unsigned long long)gap->count);
  }
  return r < 0 ? r : text_add(text, "]");
}

static int put_limits(const struct report_view *view, struct text *text)
{
  const struct timeline_store *store = &view->timeline.store;
  const struct report_view_options *options = &view->options;
  bool has_range = options->from || options->to != UINT64_MAX;
  int r = text_addf(
    text, "\"blocks\":%zu,\"merge\":%llu,\"merged\":%llu,\"calls\":%llu,\"deeper\":%s,\"uncounted\":%s,\"rows\":%u,",
    store->count, (unsigned long long)(store->merged ? store->merge : 0), (unsigned long long)store->merged,
    (unsigned long long)view->timeline.all_calls, store->has_deeper ? "true" : "false",
    view->timeline.has_skipped ? "true" : "false", store->depth_max + 1);

  if (r >= 0)
    r = has_range ? text_addf(text, "\"range\":[%llu,%llu],", (unsigned long long)options->from,
                              (unsigned long long)options->to)
                  : text_add(text, "\"range\":null,");
  if (r >= 0)
    r = text_add(text, "\"module\":");
  if (r >= 0)
    r = options->module ? view_quote(text, options->module) : text_add(text, "null");
  if (r >= 0)
    r = text_add(text, ",");
  if (r >= 0)
    r = text_addf(text, "\"only\":%lld,\"unfinished\":%s,\"loss\":%s,",
                  options->stream == LB_TRACE_ALL ? -1LL : (long long)options->stream,
                  view->timeline.is_unfinished ? "true" : "false", view->timeline.has_loss ? "true" : "false");
  return r;
}

static int put_text(struct text *text, const char *key, const struct text *value, const char *none)
{
  return text_addf(text, "\"%s\":%s,\n", key, value->length ? text_string(value) : none);
}

/* Everything except the limits, which are known only when the timeline fits. */
static int put_data(struct report_view *view, struct text *text)
{
  int r = text_add(text, "\"file\":");

  if (r >= 0)
    r = view_quote(text, view->file);
  if (r >= 0)
    r = text_addf(text, ",\"meta\":{%s},\n", text_string(&view->meta));
  if (r >= 0)
    r = put_text(text, "totals", &view->totals, "null");
  if (r >= 0)
    r = put_text(text, "edges", &view->edges, "[]");
  if (r >= 0)
    r = put_text(text, "code", &view->code, "[]");
  if (r >= 0)
    r = put_gaps(view, text);
  if (r >= 0)
    r = text_add(text, ",\n");
  if (r >= 0)
    r = view_put_streams(view, text);
  if (r >= 0)
    r = text_add(text, ",\n");
  if (r >= 0)
    r = view_put_functions(view, text);
  if (r >= 0)
    r = text_add(text, ",\n");
  if (r >= 0)
    r = view_put_times(view, text);
  if (r >= 0)
    r = text_add(text, ",\n");
  return r < 0 ? r : view_put_stacks(view, text);
}

/* ---- the page ---- */

static int put_head(struct text *text)
{
  char script[VIEW_DIGEST_SIZE], style[VIEW_DIGEST_SIZE];
  int r;

  view_digest(view_script, (size_t)(view_script_end - view_script), script);
  view_digest(view_css, (size_t)(view_css_end - view_css), style);
  r = text_addf(text,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '%s'; "
                "style-src '%s'; base-uri 'none'; form-action 'none'\">\n"
                "<meta name=\"referrer\" content=\"no-referrer\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"generator\" content=\"lbr " LB_VERSION "\">\n<title>lbr view</title>\n<style>",
                script, style);
  if (r >= 0)
    r = text_add_bytes(text, view_css, (size_t)(view_css_end - view_css));
  if (r >= 0)
    r = text_add(text, "</style>\n</head>\n");
  return r < 0 ? r : text_add_bytes(text, view_html, (size_t)(view_html_end - view_html));
}

static int write_parts(struct report_view *view, struct output *output, const struct text *data)
{
  int r = text_add(&output->text, "<script type=\"application/json\" id=\"data\">{");

  if (r >= 0)
    r = put_limits(view, &output->text);
  if (r >= 0)
    r = text_add_bytes(&output->text, text_string(data), data->length);
  if (r >= 0)
    r = text_add(&output->text, "}</script>\n<script type=\"text/plain\" id=\"blocks\">");
  if (r >= 0)
    r = pack_store(output, &view->timeline.store);
  if (r >= 0)
    r = text_add(&output->text, "</script>\n<script>");
  if (r >= 0)
    r = text_add_bytes(&output->text, view_script, (size_t)(view_script_end - view_script));
  if (r >= 0)
    r = text_add(&output->text, "</script>\n</body>\n</html>\n");
  return r < 0 ? r : output_flush(output, true);
}

int report_view_write(struct report_view *view, report_view_write_function *function, void *data)
{
  struct output output = {.function = function, .data = data, .has_times = view->timeline.has_times};
  struct text rest = {0};
  int r = put_data(view, &rest);

  if (r >= 0)
    r = put_head(&output.text);
  if (r >= 0) {
    store_fit(view, rest.length + output.text.length + (size_t)(view_script_end - view_script) + 1024);
    r = write_parts(view, &output, &rest);
  }
  text_done(&rest);
  text_done(&output.text);
  return r;
}
