/* SPDX-License-Identifier: Apache-2.0
 *
 * One of the two traces of `lbr diff`: its contents, and the branches of one stream with their keys.
 */
#include "analysis/diff_side.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_inside.h"
#include "base/base.h"

static int side_complain(const struct diff_side *side, int error)
{
  message("%s: %s", side->input.name, lb_strerror(error));
  return error;
}

/* ---- contents ---- */

static int threads_add(struct diff_side *side, const struct lb_trace_stream *stream)
{
  while (stream->number >= side->thread_count) {
    struct diff_thread *thread = array_append(&side->threads, &side->thread_count, &side->thread_capacity);

    if (!thread)
      return -ENOMEM;
    *thread = (struct diff_thread){.partner = LB_TRACE_ALL};
  }
  free(side->threads[stream->number].name);
  side->threads[stream->number].name = strdup(stream->name);
  return side->threads[stream->number].name ? 0 : -ENOMEM;
}

static int side_describe(struct diff_side *side)
{
  struct lb_trace_record record;
  int r = trace_input_tail(&side->input, LB_TRACE_ALL, 0);

  while (r >= 0 && (r = trace_input_next(&side->input, &record)) > 0) {
    r = analysis_diff_files_record(&side->files, &record);
    if (r >= 0 && record.type == LB_TRACE_STREAM)
      r = threads_add(side, &record.stream);
    if (record.type == LB_TRACE_META && !strcmp(record.meta.key, "source"))
      side->is_process = !strcmp(record.meta.value, "process");
    if (r < 0)
      return side_complain(side, r);
  }
  for (uint32_t i = 0; r >= 0 && i < side->thread_count; i++) {
    r = trace_stream_length(&side->input, i, &side->threads[i].length);
    r = r == LB_E_NO_ENTRY ? 0 : r;
  }
  return r;
}

int diff_side_open(struct diff_side *side, const char *name)
{
  int r;

  *side = (struct diff_side){.is_process = true};
  r = trace_input_open(&side->input, name);
  if (r < 0)
    return r;
  side->reading = calloc(1, sizeof(*side->reading));
  r = side->reading ? side_describe(side) : side_complain(side, -ENOMEM);
  if (r < 0)
    diff_side_close(side);
  return r;
}

int diff_side_close(struct diff_side *side)
{
  for (size_t i = 0; i < side->thread_count; i++)
    free(side->threads[i].name);
  free(side->threads);
  free(side->queue);
  free(side->reading);
  analysis_diff_files_done(&side->files);
  analysis_diff_keys_free(side->keys);
  analysis_filter_free(side->filter);
  analysis_names_free(side->names);
  return trace_input_close(&side->input);
}

/* ---- a stream ---- */

/* Reads the trace to learn where functions begin, and starts the stream again. */
static int starts_learn(struct diff_side *side, const struct analysis_use *use)
{
  int r = trace_input_read_starts(&side->input, side->names, use);

  return r < 0 ? r
               : trace_stream_begin(&side->reading->stream, &side->input, side->reading->stream.number,
                                    side->reading->stream.first);
}

/* If mappings change during the trace, the names are built again: they are valid in the order of the file only. */
static int names_begin(struct diff_side *side, const struct diff_side *other, const struct diff_options *options)
{
  const struct analysis_use use = {.filter = &options->filter};
  int r = 0;

  if (side->names && !side->reading->stream.is_sequential) {
    if (side->reading->has_learned)
      lb_trace_reader_skip(side->input.reader); /* skips the description of the trace, which the names have already */
    return 0;
  }
  analysis_diff_keys_free(side->keys);
  analysis_filter_free(side->filter);
  analysis_names_free(side->names);
  side->keys = NULL;
  side->filter = NULL;
  side->names = NULL;
  r = analysis_names_new(options->has_symbols ? &side->input.files : NULL, &side->names);
  if (r < 0)
    return r;
  if (options->is_mangled)
    analysis_names_keep_mangled(side->names);
  side->has_symbols = options->has_symbols;
  side->is_region = analysis_filter_is_region(&options->filter);
  if (analysis_use_needs_starts(&use))
    r = starts_learn(side, &use);
  if (r >= 0 && !analysis_filter_is_empty(&options->filter))
    r = analysis_filter_new(&options->filter, side->names, &side->filter);
  return r < 0 ? r : analysis_diff_keys_new(side->names, &other->files, side->is_process, &side->keys);
}

int diff_side_begin(struct diff_side *side, const struct diff_side *other, const struct diff_options *options,
                    uint32_t number)
{
  int r = trace_stream_begin(&side->reading->stream, &side->input, number, 0);

  if (r < 0)
    return r == LB_E_NO_ENTRY ? side_complain(side, r) : r;
  side->reading->batch.count = 0;
  side->queue_at = side->queue_count = 0;
  side->reading->is_over = false;
  side->gap = (struct lb_trace_gap){.reason = LB_TRACE_GAP_REASONS};
  r = names_begin(side, other, options);
  return r < 0 ? side_complain(side, r) : 0;
}

/* Takes a batch from a record: all of it, or the part that passes the filter. */
static void batch_take(struct diff_side *side, const struct lb_trace_branches *branches)
{
  uint16_t places[LB_TRACE_BATCH_MAX];

  side->space = analysis_names_space(side->names, branches->stream);
  side->reading->batch.branches = branches->branches;
  side->reading->batch.numbers = NULL;
  side->reading->batch.first = branches->first;
  side->reading->batch.count = branches->count;
  if (!side->filter)
    return;
  side->reading->batch.count = analysis_filter_branches(side->filter, branches, places);
  for (size_t i = 0; i < side->reading->batch.count; i++) {
    side->reading->picked[i] = branches->branches[places[i]];
    side->reading->numbers[i] = branches->first + places[i];
  }
  side->reading->batch.branches = side->reading->picked;
  side->reading->batch.numbers = side->reading->numbers;
}

/* Takes the information of a record about streams, modules and code. */
static int record_learn(struct diff_side *side, const struct lb_trace_record *record)
{
  int r = analysis_names_record(side->names, record);

  if (r >= 0 && side->filter)
    r = analysis_filter_record(side->filter, record);
  return r < 0 ? side_complain(side, r) : 0;
}

/* Gets a batch. Returns 1, 0 at the end of the stream, or negative. */
static int batch_get(struct diff_side *side)
{
  struct lb_trace_record record;
  int r = 0;

  while (!side->reading->is_over && (r = trace_stream_next(&side->reading->stream, &record)) > 0) {
    if (record.type == LB_TRACE_BRANCHES) {
      side->reading->has_learned = true;
      batch_take(side, &record.branches);
      if (side->reading->batch.count)
        return 1;
      continue;
    }
    if (record.type == LB_TRACE_GAP) {
      side->gap = record.gap;
      break;
    }
    r = record_learn(side, &record);
    if (r < 0)
      return r;
  }
  side->reading->is_over = true;
  return r < 0 ? r : 0;
}

/* The address from which other code returns to the compared code does not matter. */
static inline struct analysis_diff_key from_key(const struct diff_side *side, const struct lb_branch *branch)
{
  if (side->is_region && !analysis_filter_address(side->filter, side->space, analysis_from(branch)))
    return (struct analysis_diff_key){ANALYSIS_DIFF_OUTSIDE_ID, 0};
  return analysis_diff_key(side->keys, side->space, analysis_from(branch));
}

/* The branch at index `at` of the batch. */
static struct analysis_diff_branch batch_branch(const struct diff_side *side, size_t at)
{
  const struct lb_branch *branch = &side->reading->batch.branches[at];

  return (struct analysis_diff_branch){
    .number = side->reading->batch.numbers ? side->reading->batch.numbers[at] : side->reading->batch.first + at,
    .branch = *branch,
    .from = from_key(side, branch),
    .to = analysis_diff_key(side->keys, side->space, analysis_to(branch)),
  };
}

/* Skips `count` branches of the batch; a negative count goes back, right after a skip. */
static void batch_pass(struct diff_side *side, ptrdiff_t count)
{
  side->reading->batch.first += (uint64_t)count;
  side->reading->batch.count -= (size_t)count;
  side->reading->batch.branches += count;
  if (side->reading->batch.numbers)
    side->reading->batch.numbers += count;
}

/* Gets the next branch of the trace itself. */
static int branch_get(struct diff_side *side, struct analysis_diff_branch *branch)
{
  int r = side->reading->batch.count ? 1 : batch_get(side);

  if (r <= 0)
    return r;
  *branch = batch_branch(side, 0);
  batch_pass(side, 1);
  return 1;
}

int diff_side_next(struct diff_side *side, struct analysis_diff_branch *ret_branch)
{
  side->reading->is_from_queue = side->queue_at < side->queue_count;
  if (!side->reading->is_from_queue)
    return branch_get(side, ret_branch);
  *ret_branch = side->queue[side->queue_at++];
  return 1;
}

void diff_side_put_back(struct diff_side *side)
{
  assert(!side->reading->is_from_queue || side->queue_at);
  if (side->reading->is_from_queue)
    side->queue_at--;
  else
    batch_pass(side, -1);
}

static inline bool key_is(struct analysis_diff_key one, struct analysis_diff_key other)
{
  return one.address == other.address && one.id == other.id;
}

static inline bool branches_are_same(const struct diff_side sides[2], size_t at)
{
  const struct diff_side *a = &sides[0], *b = &sides[1];
  const struct lb_branch *one = &a->reading->batch.branches[at], *other = &b->reading->batch.branches[at];

  return one->kind == other->kind && key_is(from_key(a, one), from_key(b, other)) &&
         key_is(analysis_diff_key(a->keys, a->space, analysis_to(one)),
                analysis_diff_key(b->keys, b->space, analysis_to(other)));
}

size_t diff_sides_pass(struct diff_side sides[2], struct analysis_diff_branch *ret_last, size_t most, size_t *ret_count)
{
  size_t one = sides[0].reading->batch.count, other = sides[1].reading->batch.count;
  size_t limit = one < other ? one : other, same = 0;

  if (diff_side_queued(&sides[0]) || diff_side_queued(&sides[1]))
    limit = 0;
  while (same < limit && branches_are_same(sides, same))
    same++;
  *ret_count = same < most ? same : most;
  for (size_t i = 0; i < *ret_count; i++)
    ret_last[i] = batch_branch(&sides[0], same - *ret_count + i);
  batch_pass(&sides[0], (ptrdiff_t)same);
  batch_pass(&sides[1], (ptrdiff_t)same);
  return same;
}

int diff_side_fill(struct diff_side *side, size_t count)
{
  int r = 1;

  if (!side->queue)
    side->queue = calloc(DIFF_WINDOW, sizeof(*side->queue));
  if (!side->queue)
    return side_complain(side, -ENOMEM);
  count = count < DIFF_WINDOW ? count : DIFF_WINDOW;
  if (side->queue_at + count > DIFF_WINDOW || !diff_side_queued(side)) {
    memmove(side->queue, side->queue + side->queue_at, diff_side_queued(side) * sizeof(*side->queue));
    side->queue_count -= side->queue_at;
    side->queue_at = 0;
  }
  while (diff_side_queued(side) < count && (r = branch_get(side, &side->queue[side->queue_count])) > 0)
    side->queue_count++;
  return r < 0 ? r : 0;
}

void diff_side_drop(struct diff_side *side, size_t count)
{
  size_t queued = diff_side_queued(side);

  side->queue_at += count < queued ? count : queued;
}
