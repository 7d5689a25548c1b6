/* SPDX-License-Identifier: Apache-2.0
 *
 * One stream of a trace.
 */
#include "analysis/trace_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/base.h"

int trace_stream_length(struct trace_input *input, uint32_t number, uint64_t *ret_length)
{
  struct lb_trace_record record;
  uint64_t length = 0;
  int r = trace_input_tail(input, number, 1);

  if (r < 0)
    return r;
  lb_trace_reader_skip(input->reader);
  while ((r = trace_input_next(input, &record)) > 0) {
    if (record.type == LB_TRACE_BRANCHES)
      length = record.branches.first + record.branches.count;
    else if (record.type == LB_TRACE_GAP && record.gap.stream == number)
      length = record.gap.first + record.gap.count;
  }
  if (r >= 0)
    *ret_length = length;
  return r;
}

/* Whether a mapping replaces another one during the run. Unmapping a module does no harm, because its name is kept.
 * Returns 1, 0, or negative after a message. */
static int input_displaces(struct trace_input *input)
{
  struct analysis_names *names;
  struct lb_trace_record record;
  bool is_displaced = false;
  int r;

  if (input->is_asked)
    return input->is_displaced;
  r = analysis_names_new(NULL, &names);
  if (r < 0) {
    message("%s: %s", input->name, lb_strerror(r));
    return r;
  }
  r = trace_input_tail(input, LB_TRACE_ALL, 0);
  while (r >= 0 && !is_displaced && (r = trace_input_next(input, &record)) > 0)
    if (record.type == LB_TRACE_MODULE && !record.module.is_gone) {
      is_displaced = analysis_names_displaces(names, &record);
      r = analysis_names_record(names, &record);
    }
  analysis_names_free(names);
  input->is_asked = r >= 0;
  input->is_displaced = is_displaced;
  return r < 0 ? r : is_displaced;
}

int trace_stream_begin(struct trace_stream *stream, struct trace_input *input, uint32_t number, uint64_t first)
{
  uint64_t length = 0;
  int r = input_displaces(input);

  *stream = (struct trace_stream){.input = input, .number = number, .first = first, .is_sequential = r > 0};
  if (r >= 0)
    r = trace_stream_length(input, number, &length);
  if (r < 0)
    return r;
  if (stream->is_sequential)
    lb_trace_reader_rewind(input->reader);
  else
    r = trace_input_tail(input, number, first && first < length ? length - first : UINT64_MAX);
  return r;
}

/* Removes the unwanted part of a record. Returns true if nothing is left. */
static bool record_trim(const struct trace_stream *stream, struct lb_trace_record *record)
{
  struct lb_trace_branches *branches = &record->branches;
  uint64_t before;

  if (record->type == LB_TRACE_MODULE)
    return record->module.is_gone && !stream->is_sequential;
  if (record->type == LB_TRACE_GAP)
    return record->gap.stream != stream->number && record->gap.stream != LB_TRACE_ALL;
  if (record->type != LB_TRACE_BRANCHES)
    return false;
  if (branches->stream != stream->number)
    return true;
  before = branches->first < stream->first ? stream->first - branches->first : 0;
  if (before >= branches->count)
    return true;
  branches->first += before;
  branches->count -= (size_t)before;
  branches->branches += before;
  return false;
}

int trace_stream_next(struct trace_stream *stream, struct lb_trace_record *ret_record)
{
  int r;

  while ((r = trace_input_next(stream->input, ret_record)) > 0 && record_trim(stream, ret_record))
    ;
  return r;
}

/* ---- a thread by name ---- */

#define SHOWN 8u /* threads that are listed when several match a word */

/* How well a word matches: 2 if it is the name or the command, 1 if it is part of them, 0 if not. */
static unsigned stream_fits(const struct analysis_stream *stream, const char *word)
{
  const char *name = stream->name ? stream->name : "", *command = stream->command ? stream->command : "";

  if (!strcmp(name, word) || !strcmp(command, word))
    return 2;
  return strstr(name, word) || strstr(command, word);
}

/* Finds the best match and counts the equally good ones. */
static unsigned streams_search(const struct analysis_names *names, const char *word, unsigned *ret_fit,
                               uint32_t *ret_number)
{
  struct analysis_stream stream;
  unsigned count = 0;

  *ret_fit = 1;
  for (uint32_t i = 0; i < LB_TRACE_STREAMS_MAX; i++) {
    unsigned fit = analysis_names_stream(names, i, &stream) ? stream_fits(&stream, word) : 0;

    if (fit < *ret_fit)
      continue;
    if (!count || fit > *ret_fit) {
      *ret_number = i;
      count = 0;
    }
    *ret_fit = fit;
    count++;
  }
  return count;
}

static void several_tell(const struct trace_input *input, const struct analysis_names *names, const char *word,
                         unsigned fit, unsigned count)
{
  struct analysis_stream stream;
  struct text text = {0};
  unsigned shown = 0;

  for (uint32_t i = 0; i < LB_TRACE_STREAMS_MAX && shown < SHOWN; i++)
    if (analysis_names_stream(names, i, &stream) && stream_fits(&stream, word) == fit)
      text_addf(&text, "%s%u (%s)", shown++ ? ", " : "", i, stream.command ? stream.command : stream.name);
  message("%s: '%s' fits %u threads: %s%s", input->name, word, count, text_string(&text), shown < count ? ", ..." : "");
  text_done(&text);
}

static int names_fill(struct trace_input *input, struct analysis_names *names)
{
  struct lb_trace_record record;
  int r = trace_input_tail(input, LB_TRACE_ALL, 0);

  while (r >= 0 && (r = trace_input_next(input, &record)) > 0)
    if (record.type == LB_TRACE_STREAM || record.type == LB_TRACE_META)
      r = analysis_names_record(names, &record);
  return r;
}

int trace_stream_find(const char *file, const char *word, uint32_t *ret_stream)
{
  struct analysis_names *names = NULL;
  struct trace_input input;
  unsigned fit, count = 0;
  int r;

  r = trace_input_open(&input, file);
  if (r < 0)
    return r;
  r = analysis_names_new(NULL, &names);
  if (r >= 0)
    r = names_fill(&input, names);
  if (r >= 0)
    count = streams_search(names, word, &fit, ret_stream);
  if (r >= 0 && !count)
    message("%s: no thread is called '%s'; 'lbr stat' lists the threads", input.name, word);
  else if (count > 1)
    several_tell(&input, names, word, fit, count);
  analysis_names_free(names);
  lb_trace_reader_close(input.reader);
  free(input.name);
  return r < 0 ? r : count == 1 ? 0 : -ENOENT;
}
