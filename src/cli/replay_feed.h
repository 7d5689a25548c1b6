/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of `lbr replay`: what was asked for (cmd_replay.c), the position and the branches up to it (replay_feed.c), and
 * what is printed (replay_page.c).
 */
#ifndef CLI_REPLAY_FEED_H
#define CLI_REPLAY_FEED_H

#include "analysis/analysis.h"
#include "hardware/hardware.h"
#include "report/report.h"

struct replay_arguments {
  const char *file;
  struct lbr_setup setup;
  struct analysis_position position;
  uint32_t stream;
  enum report_format format;
  bool has_symbols, is_mangled;
  bool is_from_start; /* all branches are given to the recorder, even where the last ones are enough */
  bool has_bts;
  const char *bts_file; /* NULL: they are printed */
  uint64_t bts_size;    /* records */
};

struct replay_run {
  const struct replay_arguments *arguments;
  struct trace_input input;
  struct analysis_names *names; /* as things lie at the position; NULL: none are wanted */
  struct lb_recorder *recorder;
  struct lbr_bts bts;
  bool is_process; /* the trace is of a program, not of a machine */
  uint32_t space;
  uint64_t length;   /* branches of the stream, lost ones included */
  uint64_t position; /* so many come before the position */
  uint64_t gap_end;  /* number of the first branch behind the newest gap before it; 0: there is none */
};

/* Finds the position, makes the recorder and gives it the branches. Complains. Returns 0, CLI_USAGE if the processor or
 * the position is none, or negative. */
int replay_run(struct replay_run *run);
void replay_done(struct replay_run *run);

/* Prints what the recorder holds. Returns 0, or negative after a complaint. */
int replay_print(struct replay_run *run);

#endif
