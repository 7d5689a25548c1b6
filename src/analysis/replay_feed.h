/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a recorder that was given the branches before a position in a trace.
 */
#ifndef ANALYSIS_REPLAY_FEED_H
#define ANALYSIS_REPLAY_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/names.h"
#include "analysis/replay.h"
#include "analysis/trace_input.h"
#include "lastbranch/recorder.h"

struct replay_options {
  struct analysis_position position;
  uint32_t stream;
  bool has_symbols, is_mangled;
  bool is_from_start; /* all branches are given to the recorder, even where the last ones are enough */
  bool is_filtered;   /* the recorder leaves branches out, or takes records away: the last ones are not enough */
  uint64_t bts_size;  /* records that its BTS buffer holds; 0: its LBR stack is wanted */
  /* Makes a recorder that is switched on; `has_kernel`: for branches of CPL 0, too. May be called again after `drop`.
   * Reports errors by message(). Returns 0 or negative. */
  int (*make)(void *data, bool has_kernel, struct lb_recorder **ret_recorder);
  void (*drop)(void *data, struct lb_recorder *recorder); /* takes NULL */
  void *data;                                             /* handed to both */
};

struct replay_run {
  const struct replay_options *options;
  struct trace_input input;
  struct analysis_names *names; /* with the mappings as they are at the position; NULL: no names are wanted */
  struct lb_recorder *recorder;
  bool is_process; /* the trace is of a program, not of a machine */
  uint32_t space;
  uint64_t length;   /* branches of the stream, lost ones included */
  uint64_t position; /* number of branches before the position */
  uint64_t gap_end;  /* number of the first branch after the newest gap before the position; 0: there is no gap */
};

/* Opens a trace. Reports errors by message(). Returns 0 or negative; replay_close only after 0. */
int replay_open(struct replay_run *run, const char *file, const struct replay_options *options);

/* Finds the position, makes the recorder and gives it the branches. Reports errors by message(). Returns 0; 1 if the
 * processor or the position does not exist; or negative. */
int replay_run(struct replay_run *run);

/* Returns as trace_input_close. */
int replay_close(struct replay_run *run);

#endif
