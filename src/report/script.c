/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of a trace as lines, for people or as JSON: decides which records make lines, and prints the lines if no
 * fields are chosen.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/script_lines.h"
#include "trace/trace.h"

int report_script_new(const struct report_script_options *options, struct report_script **ret_script)
{
  struct report_script *script = calloc(1, sizeof(*script));

  if (!script)
    return -ENOMEM;
  script->options = *options;
  script->generation = PLACE_WHATS;
  if ((options->around && script_around_begin(script) < 0) || script_events_begin(script) < 0) {
    report_script_free(script);
    return -ENOMEM;
  }
  *ret_script = script;
  return 0;
}

void report_script_free(struct report_script *script)
{
  if (!script)
    return;
  script_around_done(script);
  script_events_done(script);
  stream_list_done(&script->streams);
  free(script);
}

uint64_t report_script_count(const struct report_script *script)
{
  return script->printed;
}

void report_script_skip(struct report_script *script, uint64_t count)
{
  script->skip = count;
}

/* ---- places ---- */

static void put_place_text(struct writer *writer, uint64_t address, const struct analysis_name *name)
{
  writer_hex(writer, address);
  if (!name)
    return;
  writer_bytes(writer, " ", 1);
  writer_string(writer, name->symbol ? name->symbol : name->module);
  writer_bytes(writer, "+", 1);
  writer_hex(writer, name->offset);
}

static void put_place_json(struct writer *writer, uint64_t address, const struct analysis_name *name)
{
  writer_string(writer, "{\"address\": ");
  writer_quoted_hex(writer, address);
  if (!name) {
    writer_string(writer, ", \"symbol\": null, \"module\": null, \"offset\": null}");
    return;
  }
  writer_string(writer, ", \"symbol\": ");
  if (name->symbol)
    writer_quoted(writer, name->symbol);
  else
    writer_string(writer, "null");
  if (name->mangled) {
    writer_string(writer, ", \"mangled\": ");
    writer_quoted(writer, name->mangled);
  }
  writer_string(writer, ", \"module\": ");
  writer_quoted(writer, name->module);
  writer_string(writer, ", \"offset\": ");
  writer_quoted_hex(writer, name->offset);
  writer_bytes(writer, "}", 1);
}

static void put_whole_place(struct report_script *script, uint32_t space, uint64_t address)
{
  struct analysis_name name;
  bool has_name = script->options.names && analysis_names_find(script->options.names, space, address, &name);

  if (script->options.is_json)
    put_place_json(&script->writer, address, has_name ? &name : NULL);
  else
    put_place_text(&script->writer, address, has_name ? &name : NULL);
}

void script_put_new_place(struct report_script *script, struct place *place, enum place_what what, uint32_t space,
                          uint64_t address)
{
  struct writer *writer = &script->writer;
  size_t start = writer->length;

  if (what == PLACE_WHOLE)
    put_whole_place(script, space, address);
  else
    script_put_part(script, what, space, address);
  if (writer->length - start > PLACE_TEXT)
    return;
  place->address = address;
  place->space = space;
  place->tag = script->generation | what;
  place->length = (uint16_t)(writer->length - start);
  memcpy(place->text, writer->bytes + start, place->length);
}

/* The cached places are no longer valid. */
static void places_forget(struct report_script *script)
{
  script->generation += PLACE_WHATS;
  if (script->generation)
    return;
  memset(script->places, 0, sizeof(script->places));
  script->generation = PLACE_WHATS;
}

/* ---- branches ---- */

static void put_text(struct report_script *script, const struct analysis_stream *stream, uint64_t number,
                     const struct lb_branch *branch)
{
  struct writer *writer = &script->writer;

  writer_bytes(writer, " ", 1);
  writer_decimal(writer, number);
  writer_bytes(writer, " ", 1);
  script_put_place(script, PLACE_WHOLE, stream->space, analysis_from(branch));
  writer_bytes(writer, " -> ", 4);
  script_put_place(script, PLACE_WHOLE, stream->space, analysis_to(branch));
  writer_bytes(writer, " ", 1);
  writer_string(writer, lb_branch_kind_name(branch->kind));
  if (branch->flags & LB_BRANCH_MISPREDICTED)
    writer_string(writer, " mispredicted");
  if (branch->flags & LB_BRANCH_IN_TSX)
    writer_string(writer, " tsx");
  if (branch->from_cpl != branch->to_cpl) {
    char change[] = {' ', 'c', 'p', 'l', ':', (char)('0' + branch->from_cpl), '-', '>', (char)('0' + branch->to_cpl)};

    writer_bytes(writer, change, sizeof(change));
  }
  writer_bytes(writer, "\n", 1);
}

static void put_base(struct writer *writer, const char *key, bool has_base, uint64_t base)
{
  writer_string(writer, key);
  if (has_base)
    writer_quoted_hex(writer, base);
  else
    writer_string(writer, "null");
}

static void put_truth(struct writer *writer, const char *key, bool is_true)
{
  writer_string(writer, key);
  writer_string(writer, is_true ? "true" : "false");
}

static void put_json(struct report_script *script, const struct analysis_stream *stream, uint64_t number,
                     const struct lb_branch *branch)
{
  struct writer *writer = &script->writer;

  writer_string(writer, ", \"number\": ");
  writer_decimal(writer, number);
  writer_string(writer, ", \"from\": ");
  script_put_place(script, PLACE_WHOLE, stream->space, analysis_from(branch));
  writer_string(writer, ", \"to\": ");
  script_put_place(script, PLACE_WHOLE, stream->space, analysis_to(branch));
  writer_string(writer, ", \"kind\": \"");
  writer_string(writer, lb_branch_kind_name(branch->kind));
  put_truth(writer, "\", \"mispredicted\": ", branch->flags & LB_BRANCH_MISPREDICTED);
  put_truth(writer, ", \"in_tsx\": ", branch->flags & LB_BRANCH_IN_TSX);
  writer_string(writer, ", \"from_cpl\": ");
  writer_decimal(writer, branch->from_cpl);
  writer_string(writer, ", \"to_cpl\": ");
  writer_decimal(writer, branch->to_cpl);
  put_base(writer, ", \"from_base\": ", branch->flags & LB_BRANCH_FROM_32, branch->from_base);
  put_base(writer, ", \"to_base\": ", branch->flags & LB_BRANCH_TO_32, branch->to_base);
  writer_bytes(writer, "}\n", 2);
}

static int writer_flush(struct writer *writer, struct text *text)
{
  int r = text_add_bytes(text, writer->bytes, writer->length);

  writer->length = 0;
  return r;
}

static inline int put_branch(struct report_script *script, uint32_t number_of_stream,
                             const struct analysis_stream *stream, uint64_t number, const struct lb_branch *branch,
                             struct text *text)
{
  if (WRITER_SIZE - script->writer.length < WRITER_LINE_MAX && writer_flush(&script->writer, text) < 0)
    return -ENOMEM;
  if (script->options.field_count) {
    script_put_fields(script, number_of_stream, stream, number, branch);
    return 0;
  }
  if (script->options.is_json)
    writer_string(&script->writer, "{\"type\": \"branch\", \"thread\": ");
  writer_decimal(&script->writer, number_of_stream);
  if (script->options.is_json)
    put_json(script, stream, number, branch);
  else
    put_text(script, stream, number, branch);
  return 0;
}

int script_put_branch(struct report_script *script, uint32_t number_of_stream, const struct analysis_stream *stream,
                      uint64_t number, const struct lb_branch *branch, struct text *text)
{
  script->printed++;
  return put_branch(script, number_of_stream, stream, number, branch, text);
}

/* Prints the chosen branches, or all if there is no choice. */
static int put_branches(struct report_script *script, const struct lb_trace_branches *branches,
                        const struct analysis_stream *stream, const uint16_t *wanted, size_t count, struct text *text)
{
  size_t first = script->skip < count ? (size_t)script->skip : count;
  uint64_t left = script->options.limit - script->printed;

  script->skip -= first;
  count = count - first < left ? count : first + (size_t)left;
  for (size_t i = first; i < count; i++) {
    size_t at = wanted ? wanted[i] : i;

    if (put_branch(script, branches->stream, stream, branches->first + at, &branches->branches[at], text) < 0)
      return -ENOMEM;
  }
  script->printed += count - first;
  return 0;
}

static int script_branches(struct report_script *script, const struct lb_trace_branches *branches, struct text *text)
{
  const struct analysis_stream *stream = stream_list_get(&script->streams, branches->stream);
  uint16_t wanted[LB_TRACE_BATCH_MAX];
  struct analysis_filter *filter = script->options.filter;
  size_t count = branches->count;
  int r;

  if (!stream)
    return -ENOMEM;
  if (filter)
    count = analysis_filter_branches(filter, branches, wanted);
  if (script->options.around)
    r = script_around(script, branches, stream, filter ? wanted : NULL, count, text);
  else
    r = put_branches(script, branches, stream, filter ? wanted : NULL, count, text);
  return r < 0 ? r : writer_flush(&script->writer, text);
}

/* ---- gaps ---- */

static int gap_text(const struct lb_trace_gap *gap, struct text *text)
{
  const char *reason = lb_trace_gap_name(gap->reason);
  int r;

  if (gap->count)
    r = text_addf(text, "gap: %llu branch%s lost (%s)", (unsigned long long)gap->count, gap->count == 1 ? "" : "es",
                  reason);
  else
    r = text_addf(text, "gap: an unknown number of branches lost (%s)", reason);
  if (r >= 0 && gap->stream != LB_TRACE_ALL)
    r = text_addf(text, ", thread %u from number %llu on", gap->stream, (unsigned long long)gap->first);
  return r < 0 ? r : text_add(text, "\n");
}

static int gap_json(const struct lb_trace_gap *gap, struct text *text)
{
  int r = text_addf(text, "{\"type\": \"gap\", \"thread\": ");

  if (r >= 0 && gap->stream == LB_TRACE_ALL)
    r = text_add(text, "null, \"number\": null");
  else if (r >= 0)
    r = text_addf(text, "%u, \"number\": %llu", gap->stream, (unsigned long long)gap->first);
  if (r >= 0 && gap->count)
    r = text_addf(text, ", \"lost\": %llu", (unsigned long long)gap->count);
  else if (r >= 0)
    r = text_add(text, ", \"lost\": null");
  return r < 0 ? r : text_addf(text, ", \"reason\": \"%s\"}\n", lb_trace_gap_name(gap->reason));
}

/* ---- records ---- */

static bool is_wanted(const struct report_script *script, uint32_t stream)
{
  return script->options.stream == LB_TRACE_ALL || stream == script->options.stream || stream == LB_TRACE_ALL;
}

/* Code changes no names: only instructions need it. */
static bool is_told(const struct report_script *script, const struct lb_trace_record *record)
{
  return record->type == LB_TRACE_STREAM || record->type == LB_TRACE_MODULE || record->type == LB_TRACE_META ||
         trace_record_names(record) || (record->type == LB_TRACE_CODE && script->options.code);
}

/* Passes the information of a record about streams, modules and code to everything that needs it. */
static int record_learn(struct report_script *script, const struct lb_trace_record *record)
{
  int r = 0;

  if (record->type == LB_TRACE_STREAM)
    r = stream_list_describe(&script->streams, &record->stream);
  else if (record->type == LB_TRACE_META)
    r = stream_list_meta(&script->streams, &record->meta);
  if (r >= 0 && script->options.names)
    r = analysis_names_record(script->options.names, record);
  if (r >= 0 && script->options.filter)
    r = analysis_filter_record(script->options.filter, record);
  if (r >= 0 && script->entries)
    r = analysis_filter_record(script->entries, record);
  places_forget(script);
  return r;
}

int report_script_end(struct report_script *script, struct text *text)
{
  return script_events_end(script, text);
}

bool report_script_lacks_times(const struct report_script *script)
{
  return script->clock && !analysis_clock_has_times(script->clock);
}

static int branches_record(struct report_script *script, const struct lb_trace_branches *given, struct text *text)
{
  struct lb_trace_branches branches = *given;

  script_cut(script, &branches);
  return branches.count ? script_branches(script, &branches, text) : 0;
}

int report_script_record(struct report_script *script, const struct lb_trace_record *record, struct text *text)
{
  bool has_branches = script->options.events != REPORT_EVENTS_ONLY;
  int r;

  if (script->printed >= script->options.limit)
    return 0;
  r = script_events_record(script, record, text);
  if (r < 0)
    return r;
  if (is_told(script, record))
    r = record_learn(script, record);
  else if (record->type == LB_TRACE_BRANCHES && has_branches && is_wanted(script, record->branches.stream))
    r = branches_record(script, &record->branches, text);
  else if (record->type == LB_TRACE_GAP && is_wanted(script, record->gap.stream))
    r = script->options.is_json ? gap_json(&record->gap, text) : gap_text(&record->gap, text);
  return r < 0 ? r : script->printed < script->options.limit;
}
