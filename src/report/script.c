/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of a trace as lines, for people or as JSON. A program takes few branches again and again, so an address
 * with its name is put together once and kept; a line is then a few copies.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/streams.h"
#include "report/writer.h"

#define PLACES (1u << 14)
#define PLACE_TEXT 104u /* longer ones are put together each time */

/* An address as it is printed. */
struct place {
  uint64_t address;
  uint32_t space;
  uint32_t generation; /* of the modules; 0: the place is empty */
  uint16_t length;
  char text[PLACE_TEXT];
};

struct report_script {
  struct report_script_options options;
  struct stream_list streams;
  uint32_t generation;
  struct place places[PLACES];
  struct writer writer;
};

int report_script_new(const struct report_script_options *options, struct report_script **ret_script)
{
  struct report_script *script = calloc(1, sizeof(*script));

  if (!script)
    return -ENOMEM;
  script->options = *options;
  script->generation = 1;
  *ret_script = script;
  return 0;
}

void report_script_free(struct report_script *script)
{
  if (!script)
    return;
  stream_list_done(&script->streams);
  free(script);
}

/* ---- places ---- */

static void put_place_text(struct writer *writer, uint64_t address, const struct report_name *name)
{
  writer_hex(writer, address);
  if (!name)
    return;
  writer_bytes(writer, " ", 1);
  writer_string(writer, name->symbol ? name->symbol : name->module);
  writer_bytes(writer, "+", 1);
  writer_hex(writer, name->offset);
}

static void put_quoted_hex(struct writer *writer, uint64_t value)
{
  writer_bytes(writer, "\"", 1);
  writer_hex(writer, value);
  writer_bytes(writer, "\"", 1);
}

static void put_place_json(struct writer *writer, uint64_t address, const struct report_name *name)
{
  writer_string(writer, "{\"address\": ");
  put_quoted_hex(writer, address);
  if (!name) {
    writer_string(writer, ", \"symbol\": null, \"module\": null, \"offset\": null}");
    return;
  }
  writer_string(writer, ", \"symbol\": ");
  if (name->symbol)
    writer_quoted(writer, name->symbol);
  else
    writer_string(writer, "null");
  writer_string(writer, ", \"module\": ");
  writer_quoted(writer, name->module);
  writer_string(writer, ", \"offset\": ");
  put_quoted_hex(writer, name->offset);
  writer_bytes(writer, "}", 1);
}

/* A place that is not kept: found, put together, and kept if it is short. */
static void put_new_place(struct report_script *script, struct place *place, const struct report_stream *stream,
                          uint64_t address)
{
  struct writer *writer = &script->writer;
  size_t start = writer->length;
  struct report_name name;
  bool has_name = script->options.names && report_names_find(script->options.names, stream->space, address, &name);

  if (script->options.is_json)
    put_place_json(writer, address, has_name ? &name : NULL);
  else
    put_place_text(writer, address, has_name ? &name : NULL);
  if (writer->length - start > PLACE_TEXT)
    return;
  place->address = address;
  place->space = stream->space;
  place->generation = script->generation;
  place->length = (uint16_t)(writer->length - start);
  memcpy(place->text, writer->bytes + start, place->length);
}

static inline void put_place(struct report_script *script, const struct report_stream *stream, uint64_t address)
{
  struct place *place = &script->places[(address ^ address >> 14) * 0x9E3779B1u >> 8 & (PLACES - 1)];

  if (place->address == address && place->space == stream->space && place->generation == script->generation)
    writer_bytes(&script->writer, place->text, place->length);
  else
    put_new_place(script, place, stream, address);
}

/* What is kept is not true any more. */
static void places_forget(struct report_script *script)
{
  if (++script->generation)
    return;
  memset(script->places, 0, sizeof(script->places));
  script->generation = 1;
}

/* ---- branches ---- */

static void put_stream(struct report_script *script, uint32_t stream)
{
  if (script->options.is_json)
    writer_string(&script->writer, "{\"type\": \"branch\", \"thread\": ");
  writer_decimal(&script->writer, stream);
}

static void put_text(struct report_script *script, const struct report_stream *stream, uint64_t number,
                     const struct lb_branch *branch)
{
  struct writer *writer = &script->writer;

  writer_bytes(writer, " ", 1);
  writer_decimal(writer, number);
  writer_bytes(writer, " ", 1);
  put_place(script, stream, report_from(branch));
  writer_bytes(writer, " -> ", 4);
  put_place(script, stream, report_to(branch));
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
    put_quoted_hex(writer, base);
  else
    writer_string(writer, "null");
}

static void put_truth(struct writer *writer, const char *key, bool is_true)
{
  writer_string(writer, key);
  writer_string(writer, is_true ? "true" : "false");
}

static void put_json(struct report_script *script, const struct report_stream *stream, uint64_t number,
                     const struct lb_branch *branch)
{
  struct writer *writer = &script->writer;

  writer_string(writer, ", \"number\": ");
  writer_decimal(writer, number);
  writer_string(writer, ", \"from\": ");
  put_place(script, stream, report_from(branch));
  writer_string(writer, ", \"to\": ");
  put_place(script, stream, report_to(branch));
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

static int script_branches(struct report_script *script, const struct lb_trace_branches *branches, struct text *text)
{
  const struct report_stream *stream = stream_list_get(&script->streams, branches->stream);
  uint64_t *limit = &script->options.limit;
  size_t count = branches->count < *limit ? branches->count : (size_t)*limit;

  if (!stream)
    return -ENOMEM;
  for (size_t i = 0; i < count; i++) {
    if (WRITER_SIZE - script->writer.length < WRITER_LINE_MAX && writer_flush(&script->writer, text) < 0)
      return -ENOMEM;
    put_stream(script, branches->stream);
    if (script->options.is_json)
      put_json(script, stream, branches->first + i, &branches->branches[i]);
    else
      put_text(script, stream, branches->first + i, &branches->branches[i]);
  }
  if (*limit != UINT64_MAX)
    *limit -= count;
  return writer_flush(&script->writer, text);
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

static bool is_wanted(const struct report_script *script, uint32_t stream)
{
  return script->options.stream == LB_TRACE_ALL || stream == script->options.stream || stream == LB_TRACE_ALL;
}

int report_script_record(struct report_script *script, const struct lb_trace_record *record, struct text *text)
{
  int r = 0;

  if (!script->options.limit)
    return 0;
  if (record->type == LB_TRACE_STREAM) {
    r = stream_list_describe(&script->streams, &record->stream);
    places_forget(script);
  } else if (record->type == LB_TRACE_MODULE && script->options.names) {
    r = report_names_module(script->options.names, &record->module);
    places_forget(script);
  } else if (record->type == LB_TRACE_BRANCHES && is_wanted(script, record->branches.stream)) {
    r = script_branches(script, &record->branches, text);
  } else if (record->type == LB_TRACE_GAP && is_wanted(script, record->gap.stream)) {
    r = script->options.is_json ? gap_json(&record->gap, text) : gap_text(&record->gap, text);
  }
  return r < 0 ? r : script->options.limit > 0;
}
