/* SPDX-License-Identifier: Apache-2.0
 *
 * pprof's profile: for each stack of functions, how many instructions and taken branches ran in the innermost one. It
 * is one protobuf message Profile, whose fields are written one by one; field numbers are those of pprof's
 * proto/profile.proto. A function is a location, too, because only its start is known.
 */
#include "export/pprof.h"

#include <errno.h>
#include <stdio.h>

#include "export/called.h"
#include "export/protobuf.h"
#include "symbol/symbol.h"

enum { PROFILE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING };
enum { PROFILE_TIME = 9, PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT_TYPE };

struct pprof {
  struct analysis_stacks *stacks;
  struct gzip gzip;
  uint64_t strings; /* number of strings written */
  uint64_t time;    /* of the run, in seconds */
  struct message part, inner, line;
  struct text name;
};

/* ---- fields of the profile ---- */

static int field_put(struct export_job *job, unsigned field, struct message *part)
{
  struct pprof *pprof = job->state;
  struct message *line = &pprof->line;

  line->text.length = 0;
  message_varint(line, field << 3 | 2);
  message_varint(line, part->text.length);
  gzip_put(&pprof->gzip, job, line->text.data, line->text.length);
  gzip_put(&pprof->gzip, job, part->text.data, part->text.length);
  part->text.length = 0;
  return part->error < 0 ? part->error : line->error;
}

static int number_put(struct export_job *job, unsigned field, uint64_t value)
{
  struct pprof *pprof = job->state;
  struct message *line = &pprof->line;

  line->text.length = 0;
  message_number(line, field, value);
  gzip_put(&pprof->gzip, job, line->text.data, line->text.length);
  return line->error;
}

/* The string's number in the table of strings. */
static uint64_t string_put(struct export_job *job, const char *string)
{
  struct pprof *pprof = job->state;
  struct message *line = &pprof->line;

  if (!*string && pprof->strings)
    return 0;
  line->text.length = 0;
  message_string(line, PROFILE_STRING, string);
  gzip_put(&pprof->gzip, job, line->text.data, line->text.length);
  return pprof->strings++;
}

static int type_put(struct export_job *job, unsigned field, uint64_t type, uint64_t unit)
{
  struct pprof *pprof = job->state;

  message_number(&pprof->part, 1, type);
  message_number(&pprof->part, 2, unit);
  return field_put(job, field, &pprof->part);
}

static int head_put(struct export_job *job)
{
  struct pprof *pprof = job->state;
  uint64_t instructions, branches, count;
  int r;

  string_put(job, ""); /* the first one must be empty */
  instructions = string_put(job, "instructions");
  branches = string_put(job, "branches");
  count = string_put(job, "count");
  r = type_put(job, PROFILE_TYPE, instructions, count);
  if (r >= 0)
    r = type_put(job, PROFILE_TYPE, branches, count);
  if (r >= 0)
    r = type_put(job, PROFILE_PERIOD_TYPE, instructions, count);
  if (r >= 0)
    r = number_put(job, PROFILE_PERIOD, 1);
  if (r >= 0)
    r = number_put(job, PROFILE_TIME, pprof->time * UINT64_C(1000000000));
  if (r >= 0)
    r = number_put(job, PROFILE_DEFAULT_TYPE, instructions);
  return r < 0 ? r : number_put(job, PROFILE_COMMENT, string_put(job, "exact counts of a trace, not samples"));
}

/* ---- modules ---- */

static void file_range(const struct export_job *job, uint32_t number, uint64_t *ret_start, uint64_t *ret_end)
{
  const struct symbol_layout *layout = analysis_names_layout(job->names, number);
  uint64_t start = UINT64_MAX, end = 0;

  for (size_t i = 0; layout && i < layout->count; i++) {
    const struct symbol_piece *piece = &layout->pieces[i];

    start = piece->address < start ? piece->address : start;
    end = piece->address + piece->size > end ? piece->address + piece->size : end;
  }
  *ret_start = start < end ? start : 0;
  *ret_end = start < end ? end : UINT64_MAX >> 1;
}

static int mapping_put(struct export_job *job, uint32_t number, const struct analysis_file *file)
{
  struct pprof *pprof = job->state;
  struct message *part = &pprof->part;
  char id[2 * LB_TRACE_BUILD_ID_MAX + 1] = "";
  uint64_t start, end, name, build_id;

  for (size_t i = 0; i < file->build_id_size; i++)
    snprintf(id + 2 * i, 3, "%02x", file->build_id[i]);
  file_range(job, number, &start, &end);
  name = string_put(job, file->name);
  build_id = string_put(job, id);
  message_number(part, 1, (uint64_t)number + 1);
  message_number(part, 2, start);
  message_number(part, 3, end);
  message_number(part, 5, name);
  message_number(part, 6, build_id);
  message_number(part, 7, 1); /* functions are known */
  return field_put(job, PROFILE_MAPPING, part);
}

/* pprof takes the first one as the program. */
static int mappings_put(struct export_job *job)
{
  struct analysis_file file;
  uint32_t program = ANALYSIS_NO_FILE;
  int r = 0;

  for (uint32_t i = 0; program == ANALYSIS_NO_FILE && analysis_names_file(job->names, i, &file); i++)
    if (*file.name == '/') {
      program = i;
      r = mapping_put(job, i, &file);
    }
  for (uint32_t i = 0; r >= 0 && analysis_names_file(job->names, i, &file); i++)
    if (i != program)
      r = mapping_put(job, i, &file);
  return r;
}

/* ---- functions and stacks ---- */

static int function_put(struct export_job *job, uint32_t number, const struct called *called)
{
  struct pprof *pprof = job->state;
  struct message *part = &pprof->part;
  uint64_t name = string_put(job, called->symbol);
  uint64_t source = string_put(job, called->source ? called->source : "");
  int r;

  message_number(part, 1, (uint64_t)number + 1);
  message_number(part, 2, name);
  message_number(part, 3, name);
  message_number(part, 4, source);
  message_number(part, 5, called->line);
  r = field_put(job, PROFILE_FUNCTION, part);
  if (r < 0)
    return r;
  message_number(&pprof->inner, 1, (uint64_t)number + 1);
  message_number(&pprof->inner, 2, called->line);
  message_number(part, 1, (uint64_t)number + 1);
  if (called->location.file != ANALYSIS_NO_FILE)
    message_number(part, 2, (uint64_t)called->location.file + 1);
  message_number(part, 3, called->location.address);
  message_take(part, 4, &pprof->inner);
  return field_put(job, PROFILE_LOCATION, part);
}

static int functions_put(struct export_job *job)
{
  struct pprof *pprof = job->state;
  struct called called;
  int r;

  for (uint32_t i = 0; (r = called_get(job, i, &pprof->name, &called)) >= 0; i++) {
    r = function_put(job, i, &called);
    if (r < 0)
      return r;
  }
  return r == LB_E_NO_ENTRY ? 0 : r;
}

static int sample_put(struct export_job *job, uint32_t number, const struct analysis_stack *stack)
{
  struct pprof *pprof = job->state;
  struct message *inner = &pprof->inner;
  uint32_t functions[ANALYSIS_STACK_LEVELS];
  size_t count = analysis_stacks_functions(pprof->stacks, number, functions);

  for (size_t i = 0; i < count; i++)
    message_varint(inner, (uint64_t)functions[i] + 1);
  message_take(&pprof->part, 1, inner);
  message_varint(inner, stack->instructions);
  message_varint(inner, stack->branches);
  message_take(&pprof->part, 2, inner);
  return field_put(job, PROFILE_SAMPLE, &pprof->part);
}

static int samples_put(struct export_job *job)
{
  struct pprof *pprof = job->state;
  const struct analysis_stack *stack;
  size_t samples = 0;
  int r = 0;

  for (size_t i = 0; r >= 0 && (stack = analysis_stacks_get(pprof->stacks, i)); i++)
    if (stack->instructions || stack->branches) {
      r = sample_put(job, (uint32_t)i, stack);
      samples++;
    }
  if (r >= 0 && !samples)
    return called_fail(job);
  return r;
}

/* ---- the format ---- */

static int pprof_begin(struct export_job *job)
{
  struct pprof *pprof = job->state;

  return analysis_stacks_new(&pprof->stacks);
}

static int pprof_record(struct export_job *job, const struct lb_trace_record *record)
{
  struct pprof *pprof = job->state;

  if (record->type == LB_TRACE_META && !strcmp(record->meta.key, "time") &&
      (number_parse(record->meta.value, &pprof->time) < 0 || pprof->time > UINT32_MAX))
    pprof->time = 0;
  return 0;
}

static int pprof_call(struct export_job *job, const struct analysis_call *call)
{
  struct pprof *pprof = job->state;

  return analysis_stacks_call(pprof->stacks, call);
}

static int pprof_end(struct export_job *job)
{
  struct pprof *pprof = job->state;
  int r;

  gzip_begin(&pprof->gzip, job);
  r = head_put(job);
  if (r >= 0)
    r = mappings_put(job);
  if (r >= 0)
    r = functions_put(job);
  if (r >= 0)
    r = samples_put(job);
  gzip_end(&pprof->gzip, job);
  if (r >= 0)
    called_warn(job, pprof->stacks);
  return r;
}

static void pprof_done(struct export_job *job)
{
  struct pprof *pprof = job->state;

  analysis_stacks_free(pprof->stacks);
  message_done(&pprof->part);
  message_done(&pprof->inner);
  message_done(&pprof->line);
  text_done(&pprof->name);
}

const struct export_format export_format_pprof = {
  .name = "pprof",
  .what = "stacks with their instructions and branches, for go tool pprof",
  .suffix = ".pb.gz",
  .needs = EXPORT_CALLS,
  .wants_instructions = true,
  .state_size = sizeof(struct pprof),
  .begin = pprof_begin,
  .record = pprof_record,
  .call = pprof_call,
  .end = pprof_end,
  .done = pprof_done,
};
