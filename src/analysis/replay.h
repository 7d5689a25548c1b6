/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded run that is given to a recording unit again: up to where, and how. Positions are numbers of branches in
 * their stream.
 */
#ifndef ANALYSIS_REPLAY_H
#define ANALYSIS_REPLAY_H

#include "analysis/filter.h"
#include "lastbranch/recorder.h"

enum report_position_kind {
  REPORT_AT_END,    /* behind the last branch */
  REPORT_AT_NUMBER, /* behind the branch with this number */
  REPORT_AT_ENTRY,  /* behind the branch that enters a place for the nth time */
  REPORT_AT_CRASH,  /* before the last event whose handler never returned; without any, behind the last branch */
};

struct report_position {
  enum report_position_kind kind;
  uint64_t number;             /* REPORT_AT_NUMBER */
  struct report_target target; /* REPORT_AT_ENTRY */
  uint64_t nth;                /* likewise; from 1 on */
};

#define REPORT_HANDLERS_MAX 64u /* events whose handlers run inside each other: older ones are forgotten */

/* The search for a position in the branches of one stream. */
struct report_finder {
  struct report_position position;
  struct report_names *names;
  struct report_filter *candidates; /* of REPORT_AT_ENTRY: branches to the place */
  uint32_t space;
  uint64_t found;   /* number of the branch behind the position: as many are before it, lost ones included */
  uint64_t entries; /* of REPORT_AT_ENTRY, so far */
  uint64_t events[REPORT_HANDLERS_MAX];
  bool is_fault[REPORT_HANDLERS_MAX];
  uint64_t event_count;
};

/* `names`, which may be NULL, must stay good; who uses the finder gives it the modules. Returns 0, or -ENOMEM. */
int report_finder_init(struct report_finder *finder, const struct report_position *position,
                       struct report_names *names);
void report_finder_done(struct report_finder *finder); /* takes one that is all zero */

/* Takes the records of the stream, in their order. Returns 1 when the position is found, never for REPORT_AT_END and
 * REPORT_AT_CRASH; 0 when it is not; or -ENOMEM. */
int report_finder_record(struct report_finder *finder, const struct lb_trace_record *record);

/* Behind the last branch; `end` is the number that the next one would have. `is_process`: any signal counts as a crash;
 * else, of a machine, faults only. Returns true when the position is found. */
bool report_finder_end(struct report_finder *finder, uint64_t end, bool is_process);

struct report_stream;

/* What the trace says of a stream, as far as report_names_record was told; branches and lost ones are not counted.
 * Strings are good until the stream is described again. Returns false, touching nothing, if nothing was said. */
bool report_names_stream(const struct report_names *names, uint32_t number, struct report_stream *ret_stream);

/* Is it an interrupt or exception? */
bool report_kind_is_event(unsigned kind);

/* Gives branches to a recorder, as its processor would have seen them. */
void report_replay_feed(struct lb_recorder *recorder, const struct lb_branch *branches, size_t count);

#endif
