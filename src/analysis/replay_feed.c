/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a recorder that was given the branches before a position in a trace. If only the last branches matter, only
 * these are read; the result is the same as with all of them.
 */
#include "analysis/replay_feed.h"

#include <string.h>

#include "analysis/analysis.h"
#include "base/base.h"

#define WINDOW (64u * LB_DEPTH_MAX) /* branches that fill any LBR stack without a filter */

static int run_complain(const struct replay_run *run, int error)
{
  message("%s: %s", run->input.name, lb_strerror(error));
  return error;
}

/* ---- the trace ---- */

static void record_describe(struct replay_run *run, const struct lb_trace_record *record)
{
  if (record->type == LB_TRACE_META && !strcmp(record->meta.key, "source"))
    run->is_process = !strcmp(record->meta.value, "process");
  if (record->type == LB_TRACE_STREAM && record->stream.number == run->options->stream)
    run->space = record->stream.space;
}

/* Each reading of the trace makes the names again, because mappings change while a trace is read. */
static int names_renew(struct replay_run *run)
{
  int r = 0;

  analysis_names_free(run->names);
  run->names = NULL;
  if (run->options->has_symbols)
    r = analysis_names_new(&run->input.files, &run->names);
  if (r < 0)
    return run_complain(run, r);
  if (run->names && run->options->is_mangled)
    analysis_names_keep_mangled(run->names);
  return 0;
}

static int record_learn(struct replay_run *run, const struct lb_trace_record *record)
{
  int r = run->names ? analysis_names_record(run->names, record) : 0;

  record_describe(run, record);
  return r < 0 ? run_complain(run, r) : 0;
}

static int trace_describe(struct replay_run *run)
{
  struct lb_trace_record record;
  int r = trace_stream_length(&run->input, run->options->stream, &run->length);

  if (r == LB_E_NO_ENTRY)
    message("%s: no thread %u; 'lbr stat' lists the threads", run->input.name, run->options->stream);
  if (r >= 0)
    r = trace_input_tail(&run->input, LB_TRACE_ALL, 0);
  while (r >= 0 && (r = trace_input_next(&run->input, &record)) > 0)
    record_describe(run, &record);
  return r;
}

/* ---- the position ---- */

/* Reads the stream until the position is found. Returns 1, 0 if the end came first, or negative. */
static int position_search(struct replay_run *run, struct analysis_finder *finder)
{
  struct lb_trace_record record;
  struct trace_stream stream;
  struct trace_progress progress;
  int r;

  trace_progress_begin(&progress, run->input.reader);
  r = trace_stream_begin(&stream, &run->input, run->options->stream, 0);
  while (r >= 0 && (r = trace_stream_next(&stream, &record)) > 0) {
    r = record.type == LB_TRACE_BRANCHES ? 0 : record_learn(run, &record);
    if (r >= 0)
      r = analysis_finder_record(finder, &record);
    if (r > 0)
      break;
    if (record.type == LB_TRACE_BRANCHES)
      trace_progress_show(&progress, record.branches.first);
  }
  trace_progress_end(&progress);
  return r;
}

static int position_complain(const struct replay_run *run, const struct analysis_finder *finder)
{
  const struct analysis_position *position = &run->options->position;

  if (position->kind == ANALYSIS_AT_NUMBER)
    message("%s: thread %u has no branch %llu: it has %llu branches, counted from 0", run->input.name,
            run->options->stream, (unsigned long long)position->number, (unsigned long long)run->length);
  else if (position->target.symbol)
    message("%s: thread %u enters %s %llu times, not %llu", run->input.name, run->options->stream,
            position->target.symbol, (unsigned long long)finder->entries, (unsigned long long)position->nth);
  else
    message("%s: thread %u goes to 0x%llx %llu times, not %llu", run->input.name, run->options->stream,
            (unsigned long long)position->target.first, (unsigned long long)finder->entries,
            (unsigned long long)position->nth);
  return 1;
}

static int position_find(struct replay_run *run)
{
  const struct analysis_position *position = &run->options->position;
  bool is_searched = position->kind == ANALYSIS_AT_ENTRY || position->kind == ANALYSIS_AT_CRASH;
  struct analysis_finder finder;
  int r = names_renew(run);

  if (r < 0)
    return r;
  r = analysis_finder_init(&finder, position, run->names);
  if (r < 0)
    return run_complain(run, r);
  r = is_searched ? position_search(run, &finder) : 0;
  if (r > 0 || (r == 0 && analysis_finder_end(&finder, run->length, run->is_process)))
    r = 0;
  else if (r == 0)
    r = position_complain(run, &finder);
  run->position = finder.found;
  analysis_finder_done(&finder);
  return r;
}

/* ---- the recorder ---- */

static int recorder_make(struct replay_run *run)
{
  return run->options->make(run->options->data, !run->is_process, &run->recorder) < 0 ? 1 : 0;
}

static void recorder_free(struct replay_run *run)
{
  run->options->drop(run->options->data, run->recorder);
  run->recorder = NULL;
}

/* ---- branches ---- */

static void gap_note(struct replay_run *run, const struct lb_trace_gap *gap)
{
  if (gap->stream == run->options->stream && gap->first < run->position)
    run->gap_end = gap->first + gap->count;
}

/* Gives the recorder the branches from one number up to another. */
static int branches_feed(struct replay_run *run, uint64_t first, uint64_t end)
{
  struct lb_trace_record record;
  struct trace_stream stream;
  struct trace_progress progress;
  int r;

  trace_progress_begin(&progress, run->input.reader);
  r = trace_stream_begin(&stream, &run->input, run->options->stream, first);
  while (r >= 0 && (r = trace_stream_next(&stream, &record)) > 0) {
    const struct lb_trace_branches *branches = &record.branches;

    if (record.type == LB_TRACE_GAP)
      gap_note(run, &record.gap);
    else if (record.type != LB_TRACE_BRANCHES)
      r = record_learn(run, &record);
    if (record.type != LB_TRACE_BRANCHES)
      continue;
    if (branches->first >= end)
      break;
    analysis_replay_feed(run->recorder, branches->branches,
                         branches->count < end - branches->first ? branches->count : (size_t)(end - branches->first));
    if (branches->first + branches->count >= end)
      break;
    trace_progress_show(&progress, branches->first);
  }
  trace_progress_end(&progress);
  return r < 0 ? r : 0;
}

/* ---- the last ones only ---- */

/* Finds the newest event before the position by counting, which is faster than reading. Returns 1, 0 if there is none,
 * or negative. */
static int event_find(struct replay_run *run, uint64_t *ret_number)
{
  struct lb_trace_record record;
  bool is_found = false;
  int r;

  lb_trace_reader_count(run->input.reader, run->options->stream);
  while ((r = trace_input_next(&run->input, &record)) > 0) {
    const struct lb_trace_branches *branches = &record.branches;

    if (record.type != LB_TRACE_BRANCHES || branches->stream != run->options->stream)
      continue;
    for (size_t i = 0; i < branches->count && branches->first + i < run->position; i++)
      if (analysis_kind_is_event(branches->branches[i].kind)) {
        is_found = true;
        *ret_number = branches->first + i;
      }
  }
  return r < 0 ? r : is_found;
}

static unsigned recorder_depth(const struct lb_recorder *recorder)
{
  struct lb_record record;
  unsigned depth = 0;

  while (lb_recorder_entry(recorder, depth, &record) >= 0)
    depth++;
  return depth;
}

/* The last-exception record is the branch before the newest event, however long ago that was. The records also form a
 * ring: the register of the newest one depends on how many came before. Returns 0 or negative. */
static int last_prepare(struct replay_run *run, uint64_t first)
{
  const struct lb_branch filler = {.from = 1, .to = 1, .kind = LB_BRANCH_NEAR_REL_JMP, .from_cpl = 3, .to_cpl = 3};
  unsigned depth = recorder_depth(run->recorder);
  uint64_t event = 0, start = first;
  struct lb_record record;
  int r = lb_recorder_ler(run->recorder, &record) < 0 ? 0 : event_find(run, &event);
  uint64_t end = event < first ? event + 1 : first; /* else the event comes with the last branches */

  if (r > 0 && event <= first)
    start = event ? event - 1 : 0;
  else
    end = start;
  for (uint64_t left = depth ? (first - (end - start)) % depth : 0; r >= 0 && left; left--)
    analysis_replay_feed(run->recorder, &filler, 1);
  if (r >= 0 && start < end)
    r = branches_feed(run, start, end);
  return r < 0 ? r : names_renew(run);
}

static int lbr_feed(struct replay_run *run)
{
  uint64_t first =
    run->position > WINDOW && !run->options->is_filtered && !run->options->is_from_start ? run->position - WINDOW : 0;
  int r = first ? last_prepare(run, first) : 0;

  return r < 0 ? r : branches_feed(run, first, run->position);
}

/* A branch makes one record, so no more branches are needed than the buffer holds. If some branches make none, all
 * branches are given. */
static int bts_feed(struct replay_run *run)
{
  uint64_t size = run->options->bts_size;
  uint64_t first = run->position > size && !run->options->is_from_start ? run->position - size : 0;
  int r = branches_feed(run, first, run->position);

  if (r < 0 || !first || lb_recorder_messages(run->recorder).stored >= size)
    return r;
  recorder_free(run);
  r = recorder_make(run);
  if (r == 0)
    r = names_renew(run);
  return r ? r : branches_feed(run, 0, run->position);
}

/* ---- all of it ---- */

int replay_open(struct replay_run *run, const char *file, const struct replay_options *options)
{
  *run = (struct replay_run){.options = options, .is_process = true, .space = UINT32_MAX};
  return trace_input_open(&run->input, file);
}

int replay_run(struct replay_run *run)
{
  int r = trace_describe(run);

  if (r >= 0)
    r = recorder_make(run);
  if (r == 0)
    r = position_find(run);
  if (r == 0)
    r = names_renew(run);
  if (r == 0)
    r = run->options->bts_size ? bts_feed(run) : lbr_feed(run);
  return r;
}

int replay_close(struct replay_run *run)
{
  recorder_free(run);
  analysis_names_free(run->names);
  return trace_input_close(&run->input);
}
