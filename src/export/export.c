/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop that reads a trace for an export, the list of formats, and the functions that formats write with.
 */
#include "export/export.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/times.h"

#define FLUSH_SIZE (256u << 10) /* bytes that are written at once */

#define EXPORT_FORMAT(name) extern const struct export_format export_format_##name;
#include "export/export.def"
#undef EXPORT_FORMAT

static const struct export_format *const formats[] = {
#define EXPORT_FORMAT(name) &export_format_##name,
#include "export/export.def"
#undef EXPORT_FORMAT
};

const struct export_format *export_format_get(size_t number)
{
  return number < sizeof(formats) / sizeof(*formats) ? formats[number] : NULL;
}

const struct export_format *export_format_find(const char *name)
{
  for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
    if (!strcmp(formats[i]->name, name))
      return formats[i];
  return NULL;
}

/* ---- writing ---- */

static void job_flush(struct export_job *job)
{
  int r = job->error < 0 || !job->text.length ? 0 : job->sink.write(job->sink.data, job->text.data, job->text.length);

  if (r < 0)
    job->error = r;
  job->text.length = 0;
}

static void job_note(struct export_job *job, int r)
{
  if (r < 0 && job->error >= 0)
    job->error = r;
  if (job->text.length >= FLUSH_SIZE)
    job_flush(job);
}

void export_put(struct export_job *job, const void *bytes, size_t size)
{
  if (job->error >= 0)
    job_note(job, text_add_bytes(&job->text, bytes, size));
}

void export_print(struct export_job *job, const char *format, ...)
{
  va_list list;

  va_start(list, format);
  if (job->error >= 0)
    job_note(job, text_addv(&job->text, format, list));
  va_end(list);
}

int export_rewrite(struct export_job *job, uint64_t offset, const void *bytes, size_t size)
{
  int r;

  job_flush(job);
  if (job->error < 0)
    return job->error;
  r = job->sink.rewrite ? job->sink.rewrite(job->sink.data, offset, bytes, size) : -ESPIPE;
  if (size)
    job_note(job, r);
  return r;
}

void export_u8(struct export_job *job, unsigned value)
{
  uint8_t byte = (uint8_t)value;

  export_put(job, &byte, 1);
}

void export_u16(struct export_job *job, unsigned value)
{
  export_put(job, (const uint8_t[]){(uint8_t)value, (uint8_t)(value >> 8)}, 2);
}

void export_u32(struct export_job *job, uint32_t value)
{
  uint8_t bytes[4];

  bytes_put_u32(bytes, value);
  export_put(job, bytes, sizeof(bytes));
}

void export_u64(struct export_job *job, uint64_t value)
{
  uint8_t bytes[8];

  bytes_put_u64(bytes, value);
  export_put(job, bytes, sizeof(bytes));
}

void export_json(struct export_job *job, const char *string)
{
  if (!string) {
    export_put(job, "null", 4);
    return;
  }
  export_put(job, "\"", 1);
  while (*string) {
    size_t plain = strcspn(string, "\"\\");

    export_put(job, string, plain);
    string += plain;
    if (*string)
      export_print(job, "\\%c", *string++);
  }
  export_put(job, "\"", 1);
}

int export_fail(struct export_job *job, const char *format, ...)
{
  va_list list;

  va_start(list, format);
  vsnprintf(job->message, sizeof(job->message), format, list);
  va_end(list);
  return LB_E_NO_ENTRY;
}

void export_warn(struct export_job *job, const char *format, ...)
{
  va_list list;

  va_start(list, format);
  vsnprintf(job->message, sizeof(job->message), format, list);
  va_end(list);
}

bool export_has_file(const struct export_job *job, uint32_t file)
{
  return !job->filter || analysis_filter_file(job->filter, file);
}

bool export_has_location(const struct export_job *job, const struct analysis_location *location)
{
  return !job->filter || analysis_filter_location(job->filter, location);
}

const char *export_module(const struct export_job *job)
{
  const struct analysis_filter_options *filter = job->options.filter;

  return filter && filter->module_count ? filter->modules[0] : NULL;
}

/* "[vdso]" and similar names are not files. */
static bool file_is_wanted(const struct export_job *job, uint32_t number, const struct analysis_file *file)
{
  return export_module(job) ? export_has_file(job, number) : file->name[0] == '/';
}

int export_file(struct export_job *job, uint32_t *ret_file)
{
  struct analysis_file file;

  for (uint32_t i = 0; analysis_names_file(job->names, i, &file); i++)
    if (file_is_wanted(job, i, &file)) {
      *ret_file = i;
      return 0;
    }
  if (export_module(job))
    return export_fail(job, "no module '%s' in the trace; 'lbr stat' lists its modules", export_module(job));
  return export_fail(job, "the trace names no program: this format needs one");
}

/* ---- reading ---- */

static int job_call(void *data, const struct analysis_call *call)
{
  struct export_job *job = data;
  struct analysis_call given = *call;
  int r = times_choose(job);

  if (r < 0 || (job->options.stream != LB_TRACE_ALL && call->stream != job->options.stream))
    return r;
  r = job->calls_filter ? analysis_calls_filter_take(job->calls_filter, job->calls, &given) : 1;
  if (r <= 0)
    return r;
  return job->error < 0 ? job->error : times_call(job, &given);
}

static int job_new(struct export_job *job, struct lb_trace_reader *reader)
{
  const struct export_format *format = job->options.format;
  int r = analysis_code_new(job->names, &job->code);

  if (r >= 0 && format->state_size) {
    job->state = calloc(1, format->state_size);
    r = job->state ? 0 : -ENOMEM;
  }
  if (r >= 0 && format->needs & EXPORT_COUNTS)
    r = analysis_counts_new(job->names, job->code, &job->counts);
  if (r >= 0 && format->needs & EXPORT_CALLS)
    r = analysis_calls_new(job->names, format->wants_instructions ? job->code : NULL, job_call, job, &job->calls);
  if (r >= 0 && job->calls)
    r = times_new(job, reader);
  if (r >= 0 && job->options.filter && !analysis_filter_is_empty(job->options.filter))
    r = analysis_filter_new(job->options.filter, job->names, &job->filter);
  if (r >= 0 && job->filter && format->needs & EXPORT_CALLS)
    r = analysis_calls_filter_new(job->filter, &job->calls_filter);
  return r;
}

static void job_done(struct export_job *job)
{
  if (job->options.format->done && job->state)
    job->options.format->done(job);
  free(job->state);
  analysis_calls_filter_free(job->calls_filter);
  analysis_filter_free(job->filter);
  analysis_calls_free(job->calls);
  times_done(job);
  analysis_counts_free(job->counts);
  analysis_code_free(job->code);
  text_done(&job->text);
}

/* Passes on the branches that pass the filter, in runs of neighbours. */
static int branches_filter(struct export_job *job, const struct lb_trace_branches *branches)
{
  uint16_t places[LB_TRACE_BATCH_MAX];
  size_t count = analysis_filter_branches(job->filter, branches, places);

  for (size_t i = 0, end; i < count; i = end) {
    struct lb_trace_branches part = {
      .stream = branches->stream, .first = branches->first + places[i], .branches = branches->branches + places[i]};
    int r;

    for (end = i + 1; end < count && places[end] == places[end - 1] + 1;)
      end++;
    part.count = end - i;
    r = job->options.format->branches(job, &part);
    if (r < 0)
      return r;
  }
  return 0;
}

static int job_branches(struct export_job *job, const struct lb_trace_branches *branches)
{
  job->branches += branches->count;
  if (!job->options.format->branches ||
      (job->options.stream != LB_TRACE_ALL && branches->stream != job->options.stream))
    return 0;
  return job->filter ? branches_filter(job, branches) : job->options.format->branches(job, branches);
}

/* A record of a trace whose order matters. */
static int record_follow(struct export_job *job, const struct lb_trace_record *record)
{
  int r = times_record(job, record);

  if (r < 0 || trace_record_stamp(record))
    return r;
  if (job->calls)
    r = analysis_calls_record(job->calls, record);
  else if (record->type != LB_TRACE_BRANCHES)
    r = analysis_names_record(job->names, record);
  if (r >= 0 && job->filter)
    r = analysis_filter_record(job->filter, record);
  if (r >= 0 && record->type == LB_TRACE_BRANCHES)
    r = job_branches(job, &record->branches);
  return r;
}

static int job_record(struct export_job *job, struct lb_trace_reader *reader, const struct lb_trace_record *record)
{
  bool describes = record->type != LB_TRACE_BRANCHES && record->type != LB_TRACE_COUNTED && !trace_record_stamp(record);
  int r;

  if (job->counts) {
    r = analysis_counts_record(job->counts, reader, record);
    if (record->type == LB_TRACE_BRANCHES)
      job->branches += record->branches.count;
    if (record->type == LB_TRACE_COUNTED)
      job->branches += record->counted.count;
  } else {
    r = record_follow(job, record);
  }
  if (r >= 0 && describes && job->options.format->record)
    r = job->options.format->record(job, record);
  return r < 0 ? r : job->error;
}

static int job_read(struct export_job *job, const struct export_input *input)
{
  struct lb_trace_record record;
  const struct analysis_use use = {.filter = job->options.filter, .has_calls = job->calls};
  int r =
    analysis_use_needs_starts(&use) ? analysis_starts_read(job->names, input->reader, input->progress, input->data) : 0;

  if (r < 0)
    return r;
  if (job->counts) {
    analysis_counts_stream(job->counts, job->options.stream);
    lb_trace_reader_count(input->reader, job->options.stream);
  }
  while ((r = input->next ? input->next(input->data, &record) : lb_trace_reader_next(input->reader, &record)) > 0) {
    r = job_record(job, input->reader, &record);
    if (r < 0)
      return r;
    if (input->progress)
      input->progress(input->data, job->branches);
  }
  if (r >= 0 && job->counts)
    r = analysis_counts_end(job->counts, input->reader);
  if (r >= 0 && job->counts)
    r = analysis_counts_filter(job->counts, job->filter);
  if (r >= 0)
    r = times_end(job);
  if (r >= 0 && job->calls)
    r = analysis_calls_end(job->calls);
  return r;
}

int export_run(const struct export_options *options, const struct export_input *input, const struct export_sink *sink,
               char ret_message[EXPORT_MESSAGE])
{
  struct export_job job = {.options = *options, .sink = *sink, .names = input->names};

  assert(options->format && sink->write && input->names);
  int r = job_new(&job, input->reader);

  if (r >= 0 && options->format->begin)
    r = options->format->begin(&job);
  if (r >= 0)
    r = job_read(&job, input);
  if (r >= 0 && options->format->end)
    r = options->format->end(&job);
  if (r >= 0) {
    job_flush(&job);
    r = job.error;
  }
  memcpy(ret_message, job.message, EXPORT_MESSAGE);
  job_done(&job);
  return r;
}
