/* SPDX-License-Identifier: Apache-2.0
 *
 * The position in a stream that a user asks for, and the branches up to it for a recorder.
 */
#include "analysis/replay.h"

#include "analysis/analysis.h"
#include "analysis/names_inside.h"

bool analysis_kind_is_event(unsigned kind)
{
  static const bool is_event[] = {
#define LB_BRANCH_KIND(name, word, class, is_event) is_event,
#include "lastbranch/branch_kind.def"
#undef LB_BRANCH_KIND
  };

  return kind < LB_BRANCH_KINDS && is_event[kind];
}

bool analysis_names_stream(const struct analysis_names *names, uint32_t number, struct analysis_stream *ret_stream)
{
  if (number >= names->streams.count || !names->streams.streams[number].is_described)
    return false;
  *ret_stream = names->streams.streams[number];
  return true;
}

/* ---- positions ---- */

int analysis_finder_init(struct analysis_finder *finder, const struct analysis_position *position,
                         struct analysis_names *names)
{
  *finder = (struct analysis_finder){.position = *position, .names = names, .space = UINT32_MAX};
  if (position->kind != ANALYSIS_AT_ENTRY)
    return 0;
  return analysis_filter_new(&(struct analysis_filter_options){.to = &finder->position.target, .to_count = 1}, names,
                             &finder->candidates);
}

void analysis_finder_done(struct analysis_finder *finder)
{
  analysis_filter_free(finder->candidates);
  finder->candidates = NULL;
}

static int find_entry(struct analysis_finder *finder, const struct lb_trace_branches *branches)
{
  uint16_t places[LB_TRACE_BATCH_MAX];
  size_t count = analysis_filter_branches(finder->candidates, branches, places);

  for (size_t i = 0; i < count; i++)
    if (analysis_target_is_entered(&finder->position.target, finder->names, finder->space,
                                   &branches->branches[places[i]]) &&
        ++finder->entries == finder->position.nth) {
      finder->found = branches->first + places[i] + 1;
      return 1;
    }
  return 0;
}

/* Whether the event enters a handler. System calls by INT and breakpoints are requested by an instruction. */
static bool is_handled(unsigned kind)
{
  return analysis_kind_is_event(kind) && kind != LB_BRANCH_INT && kind != LB_BRANCH_INT3 && kind != LB_BRANCH_INTO;
}

/* Keeps the events whose handlers run, the newest last. */
static void follow_events(struct analysis_finder *finder, const struct lb_trace_branches *branches)
{
  for (size_t i = 0; i < branches->count; i++) {
    unsigned kind = branches->branches[i].kind;

    if (is_handled(kind)) {
      size_t at = finder->event_count++ % ANALYSIS_HANDLERS_MAX;

      finder->events[at] = branches->first + i;
      finder->is_fault[at] = kind == LB_BRANCH_FAULT || kind == LB_BRANCH_MACHINE_CHECK;
    } else if (kind == LB_BRANCH_IRET && finder->event_count) {
      finder->event_count--;
    }
  }
}

static int find_in_branches(struct analysis_finder *finder, const struct lb_trace_branches *branches)
{
  if (finder->position.kind == ANALYSIS_AT_ENTRY)
    return find_entry(finder, branches);
  if (finder->position.kind == ANALYSIS_AT_CRASH)
    follow_events(finder, branches);
  return 0;
}

int analysis_finder_record(struct analysis_finder *finder, const struct lb_trace_record *record)
{
  if (record->type == LB_TRACE_BRANCHES) {
    finder->space = finder->names ? analysis_names_space(finder->names, record->branches.stream) : UINT32_MAX;
    return find_in_branches(finder, &record->branches);
  }
  return finder->candidates ? analysis_filter_record(finder->candidates, record) : 0;
}

static uint64_t crash_find(const struct analysis_finder *finder, uint64_t end, bool is_process)
{
  for (uint64_t i = 0; i < finder->event_count && i < ANALYSIS_HANDLERS_MAX; i++) {
    size_t at = (finder->event_count - 1 - i) % ANALYSIS_HANDLERS_MAX;

    if (is_process || finder->is_fault[at])
      return finder->events[at];
  }
  return end;
}

bool analysis_finder_end(struct analysis_finder *finder, uint64_t end, bool is_process)
{
  switch (finder->position.kind) {
  case ANALYSIS_AT_END:
    finder->found = end;
    return true;
  case ANALYSIS_AT_NUMBER:
    finder->found = finder->position.number + 1;
    return finder->position.number < end;
  case ANALYSIS_AT_CRASH:
    finder->found = crash_find(finder, end, is_process);
    return true;
  default:
    return false;
  }
}

/* ---- branches ---- */

void analysis_replay_feed(struct lb_recorder *recorder, const struct lb_branch *branches, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const struct lb_branch *branch = &branches[i];

    if (analysis_kind_is_event(branch->kind))
      lb_recorder_event(recorder, &(struct lb_event){.current = branch->from,
                                                     .next = branch->from,
                                                     .handler = branch->to,
                                                     .from_base = branch->from_base,
                                                     .to_base = branch->to_base,
                                                     .kind = branch->kind,
                                                     .from_cpl = branch->from_cpl,
                                                     .to_cpl = branch->to_cpl,
                                                     .flags = branch->flags});
    else
      lb_recorder_branch(recorder, branch);
  }
}
