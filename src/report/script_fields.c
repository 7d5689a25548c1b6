/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a script with the fields that a user chooses, in that order.
 */
#include <errno.h>
#include <stdio.h>

#include "report/script_lines.h"
#include "symbol/symbol.h"

#define PATH_MOST 1000u /* bytes of a source file's path: a longer one is cut at its start */

static const char *const field_names[REPORT_FIELDS] = {
  [REPORT_FIELD_THREAD] = "thread",
  [REPORT_FIELD_PROCESS] = "process",
  [REPORT_FIELD_TID] = "tid",
  [REPORT_FIELD_NAME] = "name",
  [REPORT_FIELD_NUMBER] = "number",
  [REPORT_FIELD_FROM] = "from",
  [REPORT_FIELD_TO] = "to",
  [REPORT_FIELD_FROM_SYM] = "from_sym",
  [REPORT_FIELD_TO_SYM] = "to_sym",
  [REPORT_FIELD_FROM_MODULE] = "from_module",
  [REPORT_FIELD_TO_MODULE] = "to_module",
  [REPORT_FIELD_MODULE] = "module",
  [REPORT_FIELD_FROM_LINE] = "from_line",
  [REPORT_FIELD_TO_LINE] = "to_line",
  [REPORT_FIELD_KIND] = "kind",
  [REPORT_FIELD_FLAGS] = "flags",
  [REPORT_FIELD_CPL] = "cpl",
  [REPORT_FIELD_INSN] = "insn",
  [REPORT_FIELD_TIME] = "time",
  [REPORT_FIELD_CPU] = "cpu",
};

const char *report_field_name(unsigned field)
{
  return field < REPORT_FIELDS ? field_names[field] : NULL;
}

int report_field_find(const char *word)
{
  for (unsigned i = 0; i < REPORT_FIELDS; i++)
    if (!strcmp(word, field_names[i]))
      return (int)i;
  return -EINVAL;
}

/* ---- facts about an address ---- */

/* NULL if unknown. */
static void put_string(struct report_script *script, const char *string)
{
  struct writer *writer = &script->writer;

  if (script->options.is_json && string)
    writer_quoted(writer, string);
  else
    writer_string(writer, string ? string : script->options.is_json ? "null" : "-");
}

static void put_symbol(struct report_script *script, uint32_t space, uint64_t address)
{
  struct analysis_name name;
  char text[SYMBOL_NAME_MAX + 32];

  if (!analysis_names_find(script->options.names, space, address, &name)) {
    put_string(script, NULL);
    return;
  }
  snprintf(text, sizeof(text), "%s+0x%llx", name.symbol ? name.symbol : name.module, (unsigned long long)name.offset);
  put_string(script, text);
}

static void put_module(struct report_script *script, uint32_t space, uint64_t address)
{
  struct analysis_name name;

  put_string(script, analysis_names_find(script->options.names, space, address, &name) ? name.module : NULL);
}

/* Text output has the last part of the path, JSON the whole. */
static void put_line(struct report_script *script, uint32_t space, uint64_t address)
{
  struct analysis_location location = analysis_names_locate(script->options.names, space, address);
  struct symbol_place place;
  const char *file, *slash;
  char text[PATH_MOST + 32];

  if (!analysis_names_place(script->options.names, &location, &place) || !place.frame_count || !place.frames[0].file ||
      !place.frames[0].line) {
    put_string(script, NULL);
    return;
  }
  file = place.frames[0].file;
  slash = strrchr(file, '/');
  if (!script->options.is_json && slash && slash[1])
    file = slash + 1;
  if (strlen(file) > PATH_MOST)
    file += strlen(file) - PATH_MOST;
  snprintf(text, sizeof(text), "%s:%u", file, place.frames[0].line);
  put_string(script, text);
}

static void put_instruction(struct report_script *script, uint32_t space, uint64_t address)
{
  struct analysis_location location = analysis_names_locate(script->options.names, space, address);
  char text[256];

  if (script->options.code && analysis_code_text(script->options.code, &location, text, sizeof(text)))
    put_string(script, text);
  else
    put_string(script, NULL);
}

void script_put_part(struct report_script *script, enum place_what what, uint32_t space, uint64_t address)
{
  if (!script->options.names)
    put_string(script, NULL);
  else if (what == PLACE_SYMBOL)
    put_symbol(script, space, address);
  else if (what == PLACE_MODULE)
    put_module(script, space, address);
  else if (what == PLACE_LINE)
    put_line(script, space, address);
  else
    put_instruction(script, space, address);
}

/* ---- fields ---- */

static void put_address(struct report_script *script, uint64_t address)
{
  if (script->options.is_json)
    writer_quoted_hex(&script->writer, address);
  else
    writer_hex(&script->writer, address);
}

static void put_flags_json(struct writer *writer, unsigned flags)
{
  bool is_mispredicted = flags & LB_BRANCH_MISPREDICTED, is_tsx = flags & LB_BRANCH_IN_TSX;

  writer_string(writer, is_mispredicted ? "[\"mispredicted\"" : "[");
  writer_string(writer, is_mispredicted && is_tsx ? ", " : "");
  writer_string(writer, is_tsx ? "\"tsx\"]" : "]");
}

static void put_flags(struct report_script *script, unsigned flags)
{
  bool is_mispredicted = flags & LB_BRANCH_MISPREDICTED, is_tsx = flags & LB_BRANCH_IN_TSX;

  if (script->options.is_json)
    put_flags_json(&script->writer, flags);
  else
    writer_string(&script->writer, is_mispredicted && is_tsx ? "mispredicted,tsx"
                                   : is_mispredicted         ? "mispredicted"
                                   : is_tsx                  ? "tsx"
                                                             : "-");
}

static void put_cpl(struct report_script *script, const struct lb_branch *branch)
{
  char text[] = {(char)('0' + branch->from_cpl), '-', '>', (char)('0' + branch->to_cpl), '\0'};

  put_string(script, text);
}

/* Seconds since the start of the recording. */
static void put_time(struct report_script *script, uint64_t number)
{
  uint64_t time = script->options.reader ? trace_reader_time(script->options.reader, number) : TRACE_NO_TIME;
  char text[32];

  if (time == TRACE_NO_TIME) {
    put_string(script, NULL);
    return;
  }
  snprintf(text, sizeof(text), "%.9f", (double)time / 1e9);
  writer_string(&script->writer, text);
}

static void put_cpu(struct report_script *script, uint32_t number_of_stream)
{
  int cpu = script->clock ? analysis_clock_cpu(script->clock, number_of_stream) : -1;

  if (cpu < 0)
    put_string(script, NULL);
  else
    writer_decimal(&script->writer, (uint64_t)cpu);
}

/* Prints a field about the thread. Returns false for a field about the branch. */
static bool put_thread_field(struct report_script *script, unsigned field, uint32_t number_of_stream,
                             const struct analysis_stream *stream)
{
  switch (field) {
  case REPORT_FIELD_THREAD:
    writer_decimal(&script->writer, number_of_stream);
    return true;
  case REPORT_FIELD_PROCESS:
    writer_decimal(&script->writer, stream->process);
    return true;
  case REPORT_FIELD_TID:
    writer_decimal(&script->writer, stream->thread);
    return true;
  case REPORT_FIELD_NAME:
    put_string(script, stream->name && *stream->name ? stream->name : NULL);
    return true;
  case REPORT_FIELD_CPU:
    put_cpu(script, number_of_stream);
    return true;
  default:
    return false;
  }
}

/* Prints a field about one end of the branch. Returns false for any other field. */
static bool put_end_field(struct report_script *script, unsigned field, uint32_t space, const struct lb_branch *branch)
{
  static const struct {
    bool is_of_end, is_to;
    uint8_t what;
  } ends[REPORT_FIELDS] = {
    [REPORT_FIELD_FROM_SYM] = {true, false, PLACE_SYMBOL},    [REPORT_FIELD_TO_SYM] = {true, true, PLACE_SYMBOL},
    [REPORT_FIELD_FROM_MODULE] = {true, false, PLACE_MODULE}, [REPORT_FIELD_TO_MODULE] = {true, true, PLACE_MODULE},
    [REPORT_FIELD_MODULE] = {true, false, PLACE_MODULE},      [REPORT_FIELD_FROM_LINE] = {true, false, PLACE_LINE},
    [REPORT_FIELD_TO_LINE] = {true, true, PLACE_LINE},        [REPORT_FIELD_INSN] = {true, false, PLACE_INSTRUCTION},
  };

  if (!ends[field].is_of_end)
    return false;
  script_put_place(script, (enum place_what)ends[field].what, space,
                   ends[field].is_to ? analysis_to(branch) : analysis_from(branch));
  return true;
}

static void put_branch_field(struct report_script *script, unsigned field, uint64_t number,
                             const struct lb_branch *branch)
{
  switch (field) {
  case REPORT_FIELD_NUMBER:
    writer_decimal(&script->writer, number);
    break;
  case REPORT_FIELD_TIME:
    put_time(script, number);
    break;
  case REPORT_FIELD_FROM:
    put_address(script, analysis_from(branch));
    break;
  case REPORT_FIELD_TO:
    put_address(script, analysis_to(branch));
    break;
  case REPORT_FIELD_KIND:
    put_string(script, lb_branch_kind_name(branch->kind));
    break;
  case REPORT_FIELD_FLAGS:
    put_flags(script, branch->flags);
    break;
  default:
    put_cpl(script, branch);
  }
}

/* Prints the text before a field. */
static void put_lead(struct report_script *script, size_t place, unsigned field)
{
  struct writer *writer = &script->writer;

  if (script->options.is_json) {
    writer_string(writer, ", \"");
    writer_string(writer, field_names[field]);
    writer_bytes(writer, "\": ", 3);
  } else if (place) {
    writer_bytes(writer, " ", 1);
  }
}

void script_put_fields(struct report_script *script, uint32_t number_of_stream, const struct analysis_stream *stream,
                       uint64_t number, const struct lb_branch *branch)
{
  const struct report_script_options *options = &script->options;

  if (options->is_json)
    writer_string(&script->writer, "{\"type\": \"branch\"");
  for (size_t i = 0; i < options->field_count; i++) {
    unsigned field = options->fields[i];

    put_lead(script, i, field);
    if (!put_thread_field(script, field, number_of_stream, stream) &&
        !put_end_field(script, field, stream->space, branch))
      put_branch_field(script, field, number, branch);
  }
  writer_string(&script->writer, options->is_json ? "}\n" : "\n");
}
