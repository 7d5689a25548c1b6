/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a trace: one pass over its records, in bounded memory. A branch costs one lookup in the hash table of
 * edges. Names are looked up once for each edge, and again after modules have changed.
 */
#include "analysis/summary_inside.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/extent.h"
#include "base/base.h"
#include "trace/trace.h"

#define META_MAX_SIZE 4096u
#define GENERATION_MAX 0xFFFFFFu

static const char *const meta_keys[METAS] = {"producer", "source", "recorder",     "sampling", "cpu",    "command",
                                             "host",     "time",   "instructions", "remark",   "trigger"};

int analysis_summary_new(struct analysis_names *names, struct analysis_summary **ret_summary)
{
  struct analysis_summary *summary = calloc(1, sizeof(*summary));

  if (!summary)
    return -ENOMEM;
  summary->names = names;
  summary->generation = 1;
  *ret_summary = summary;
  return 0;
}

void analysis_summary_free(struct analysis_summary *summary)
{
  if (!summary)
    return;
  for (size_t i = 0; i < METAS; i++)
    free(summary->metas[i]);
  stream_list_done(&summary->streams);
  analysis_thread_times_done(&summary->times);
  edge_table_done(&summary->edges);
  function_list_done(&summary->functions);
  analysis_filter_free(summary->filter);
  free(summary);
}

int analysis_summary_only(struct analysis_summary *summary, const char *module)
{
  summary->module = module;
  return analysis_filter_new(&(struct analysis_filter_options){.modules = &summary->module, .module_count = 1},
                             summary->names, &summary->filter);
}

/* ---- edges ---- */

void edge_fold(void *data, struct edge *edge)
{
  struct analysis_summary *summary = data;
  struct function *function = &summary->functions.functions[edge->to_function];
  uint64_t more = edge->count - edge->counted;

  function->branches += more;
  if (more && !function_list_is_same(summary, edge->from_function, edge->to_function))
    function->entries += more;
  edge->counted = edge->count;
}

/* A function may begin at the target of the edge. */
static int edge_learn(struct analysis_summary *summary, const struct edge *edge)
{
  struct analysis_location from, to;

  if (!summary->names)
    return 0;
  from = analysis_names_locate(summary->names, edge->space, edge->from);
  to = analysis_names_locate(summary->names, edge->space, edge->to);
  return analysis_starts_jump(summary->names, &from, &to, edge->kind);
}

/* Looks up the target of an edge. */
static int edge_name(struct analysis_summary *summary, struct edge *edge)
{
  int from = function_list_find(summary, edge->space, edge->from);
  int to = function_list_find(summary, edge->space, edge->to);

  if (from < 0 || to < 0 || edge_learn(summary, edge) < 0)
    return -ENOMEM;
  edge->from_function = (uint32_t)from;
  edge->to_function = (uint32_t)to;
  edge->generation = summary->generation;
  return 0;
}

/* Handles an edge that is new, or whose names may be out of date. */
static int edge_renew(struct analysis_summary *summary, struct edge *edge, const struct edge *wanted)
{
  if (edge->count) {
    edge_fold(summary, edge);
    return edge_name(summary, edge);
  }
  if (edge_table_is_full(&summary->edges)) {
    if (edge_table_make_room(&summary->edges, edge_fold, summary) < 0)
      return -ENOMEM;
    summary->totals.has_forgotten = summary->edges.has_forgotten;
    edge = edge_table_place(&summary->edges, wanted->from, wanted->to, wanted->space, wanted->kind);
  }
  *edge = *wanted;
  if (edge_name(summary, edge) < 0)
    return -ENOMEM;
  edge->count = wanted->count;
  summary->edges.count++;
  return 0;
}

/* Counts an edge, wanted->count times. */
static inline int edge_add(struct analysis_summary *summary, const struct edge *wanted)
{
  struct edge *edge = edge_table_place(&summary->edges, wanted->from, wanted->to, wanted->space, wanted->kind);

  if (!edge->count || edge->generation != summary->generation) {
    bool is_new = !edge->count;

    if (edge_renew(summary, edge, wanted) < 0)
      return -ENOMEM;
    if (is_new)
      return 0;
  }
  edge->count += wanted->count;
  return 0;
}

static int edges_add(struct analysis_summary *summary, uint32_t space, const struct lb_branch *branches, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const struct lb_branch *branch = &branches[i];
    struct edge wanted = {
      .from = analysis_from(branch), .to = analysis_to(branch), .count = 1, .space = space, .kind = branch->kind};

    if (edge_add(summary, &wanted) < 0)
      return -ENOMEM;
  }
  return 0;
}

/* Modules have changed. If the numbers of the changes wrap around, all edges look up their names again. */
static void summary_change(struct analysis_summary *summary)
{
  if (summary->generation++ < GENERATION_MAX)
    return;
  for (size_t i = 0; i < summary->edges.capacity; i++)
    summary->edges.edges[i].generation = 0;
  summary->generation = 1;
}

/* ---- records ---- */

static void totals_add(struct analysis_totals *totals, const struct lb_branch *branch)
{
  totals->kinds[branch->kind]++;
  totals->mispredicted += branch->flags & LB_BRANCH_MISPREDICTED;
  totals->cpl_changes += branch->from_cpl != branch->to_cpl;
}

/* With one module: branches that begin in it are counted; edges that end in it are kept as well. */
static int module_branches(struct analysis_summary *summary, struct analysis_stream *stream,
                           const struct lb_trace_branches *branches)
{
  for (size_t i = 0; i < branches->count; i++) {
    const struct lb_branch *branch = &branches->branches[i];
    bool is_from = analysis_filter_address(summary->filter, stream->space, analysis_from(branch));

    if (!is_from && !analysis_filter_address(summary->filter, stream->space, analysis_to(branch)))
      continue;
    if (is_from)
      totals_add(&summary->totals, branch);
    stream->branches += is_from;
    summary->totals.branches += is_from;
    if (edges_add(summary, stream->space, branch, 1) < 0)
      return -ENOMEM;
  }
  return 0;
}

static int summary_branches(struct analysis_summary *summary, const struct lb_trace_branches *branches)
{
  struct analysis_stream *stream = stream_list_get(&summary->streams, branches->stream);

  if (!stream)
    return -ENOMEM;
  summary->totals.all_branches += branches->count;
  if (summary->filter)
    return module_branches(summary, stream, branches);
  stream->branches += branches->count;
  summary->totals.branches += branches->count;
  for (size_t i = 0; i < branches->count; i++)
    totals_add(&summary->totals, &branches->branches[i]);
  return edges_add(summary, stream->space, branches->branches, branches->count);
}

static int summary_gap(struct analysis_summary *summary, const struct lb_trace_gap *gap)
{
  struct analysis_totals *totals = &summary->totals;
  struct analysis_stream *stream;

  totals->gaps[gap->reason]++;
  totals->lost[gap->reason] += gap->count;
  totals->has_unknown_loss |= !gap->count;
  if (gap->stream == LB_TRACE_ALL)
    return 0;
  stream = stream_list_get(&summary->streams, gap->stream);
  if (!stream)
    return -ENOMEM;
  stream->lost += gap->count;
  return 0;
}

static int summary_meta(struct analysis_summary *summary, const struct lb_trace_meta *meta)
{
  for (size_t i = 0; i < METAS; i++)
    if (!strcmp(meta->key, meta_keys[i])) {
      char *value = printable_copy(meta->value, META_MAX_SIZE);

      if (!value)
        return -ENOMEM;
      free(summary->metas[i]);
      summary->metas[i] = value;
    }
  return stream_list_meta(&summary->streams, meta);
}

/* ---- counts of the reader ---- */

/* A process that goes on from shared code to code of its own has the shared code in its own address space, too. */
static uint32_t count_space(const struct analysis_summary *summary, const struct lb_trace_count *count)
{
  uint32_t target = trace_count_target(count);
  bool is_own = target != count->space && summary->names &&
                analysis_names_locate(summary->names, count->space, count->to).file == ANALYSIS_NO_FILE;

  return is_own ? target : count->space;
}

static int count_take(void *context, const struct lb_trace_count *count)
{
  struct analysis_summary *summary = context;
  struct edge wanted = {.from = count->from,
                        .to = count->to,
                        .count = count->taken,
                        .space = count_space(summary, count),
                        .kind = count->kind};

  summary->totals.kinds[count->kind] += count->taken;
  return count->taken ? edge_add(summary, &wanted) : 0;
}

static int counts_fetch(struct analysis_summary *summary)
{
  bool has_any = summary->has_counted;

  summary->has_counted = false;
  return has_any ? lb_trace_reader_counts(summary->reader, count_take, summary) : 0;
}

void analysis_summary_count(struct analysis_summary *summary, struct lb_trace_reader *reader)
{
  assert(!summary->edges.capacity); /* no record was taken */
  summary->reader = reader;
}

int analysis_summary_end(struct analysis_summary *summary)
{
  return counts_fetch(summary);
}

static int summary_counted(struct analysis_summary *summary, const struct lb_trace_counted *counted)
{
  struct analysis_stream *stream = stream_list_get(&summary->streams, counted->stream);

  if (!stream)
    return -ENOMEM;
  stream->branches += counted->count;
  summary->totals.branches += counted->count;
  summary->totals.all_branches += counted->count;
  summary->has_counted |= summary->reader != NULL;
  return 0;
}

/* ---- all records ---- */

/* A module, or names of code that is in none. */
static int summary_module(struct analysis_summary *summary, const struct lb_trace_record *record)
{
  int r = summary->names && analysis_names_displaces(summary->names, record) ? counts_fetch(summary) : 0;

  summary_change(summary);
  if (r >= 0 && summary->filter)
    r = analysis_filter_record(summary->filter, record);
  return r < 0 || !summary->names ? r : analysis_names_record(summary->names, record);
}

int analysis_summary_record(struct analysis_summary *summary, const struct lb_trace_record *record)
{
  if (!summary->edges.capacity && edge_table_make_room(&summary->edges, edge_fold, summary) < 0)
    return -ENOMEM;
  if (trace_record_names(record))
    return summary_module(summary, record);
  switch (record->type) {
  case LB_TRACE_META:
    return summary_meta(summary, &record->meta);
  case LB_TRACE_MODULE:
    return summary_module(summary, record);
  case LB_TRACE_CODE:
    summary->totals.code_bytes += record->code.size;
    return 0;
  case LB_TRACE_STREAM:
    return stream_list_describe(&summary->streams, &record->stream);
  case LB_TRACE_BRANCHES:
    return summary_branches(summary, &record->branches);
  case LB_TRACE_GAP:
    return summary_gap(summary, &record->gap);
  case LB_TRACE_COUNTED:
    return summary_counted(summary, &record->counted);
  case LB_TRACE_STOP:
    return 0;
  }
  return analysis_thread_times_record(&summary->times, record);
}

/* ---- results ---- */

const struct analysis_totals *analysis_summary_totals(const struct analysis_summary *summary)
{
  return &summary->totals;
}

const char *analysis_summary_meta(const struct analysis_summary *summary, const char *key)
{
  for (size_t i = 0; i < METAS; i++)
    if (!strcmp(key, meta_keys[i]))
      return summary->metas[i];
  return NULL;
}

bool analysis_summary_stream(const struct analysis_summary *summary, size_t number, struct analysis_stream *ret_stream)
{
  if (number >= summary->streams.count)
    return false;
  *ret_stream = summary->streams.streams[number];
  return true;
}

const struct analysis_thread_times *analysis_summary_times(const struct analysis_summary *summary)
{
  return &summary->times;
}
