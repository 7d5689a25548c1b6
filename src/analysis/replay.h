/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays a recorded run through a recording unit, up to a position. Positions are numbers of branches in their stream.
 */
#ifndef ANALYSIS_REPLAY_H
#define ANALYSIS_REPLAY_H

#include "analysis/filter.h"
#include "lastbranch/recorder.h"

enum analysis_position_kind {
  ANALYSIS_AT_END,    /* after the last branch */
  ANALYSIS_AT_NUMBER, /* after the branch with this number */
  ANALYSIS_AT_ENTRY,  /* after the branch that enters a place for the nth time */
  ANALYSIS_AT_CRASH,  /* before the last event whose handler never returned; without any, after the last branch */
};

struct analysis_position {
  enum analysis_position_kind kind;
  uint64_t number;               /* ANALYSIS_AT_NUMBER */
  struct analysis_target target; /* ANALYSIS_AT_ENTRY */
  uint64_t nth;                  /* likewise; from 1 on */
};

#define ANALYSIS_HANDLERS_MAX 64u /* nested handlers of events: older ones are forgotten */

/* The search for a position in the branches of one stream. */
struct analysis_finder {
  struct analysis_position position;
  struct analysis_names *names;
  struct analysis_filter *candidates; /* of ANALYSIS_AT_ENTRY: branches to the place */
  uint32_t space;
  uint64_t
    found; /* number of the branch after the position; equals the number of branches before it, lost ones included */
  uint64_t entries; /* of ANALYSIS_AT_ENTRY, so far */
  uint64_t events[ANALYSIS_HANDLERS_MAX];
  bool is_fault[ANALYSIS_HANDLERS_MAX];
  uint64_t event_count;
};

/* `names`, which may be NULL, must stay valid; the caller passes the modules to it. Returns 0, or -ENOMEM. */
int analysis_finder_init(struct analysis_finder *finder, const struct analysis_position *position,
                         struct analysis_names *names);
void analysis_finder_done(struct analysis_finder *finder); /* takes one that is all zero */

/* Takes the records of the stream, in their order. Returns 1 when the position is found, never for ANALYSIS_AT_END and
 * ANALYSIS_AT_CRASH; 0 when it is not; or -ENOMEM. */
int analysis_finder_record(struct analysis_finder *finder, const struct lb_trace_record *record);

/* To be called after the last branch; `end` is the number that the next one would have. `is_process`: any signal counts
 * as a crash; else the trace is of a machine, and only faults count. Returns true when the position is found. */
bool analysis_finder_end(struct analysis_finder *finder, uint64_t end, bool is_process);

struct analysis_stream;

/* Describes a stream, as far as analysis_names_record has learned about it; branches and lost ones are not counted.
 * Strings are valid until the stream is described again. Returns false, touching nothing, if nothing was said. */
bool analysis_names_stream(const struct analysis_names *names, uint32_t number, struct analysis_stream *ret_stream);

/* Is it an interrupt or exception? */
bool analysis_kind_is_event(unsigned kind);

/* Gives branches to a recorder, as its processor would have seen them. */
void analysis_replay_feed(struct lb_recorder *recorder, const struct lb_branch *branches, size_t count);

#endif
