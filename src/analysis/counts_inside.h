/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the counts: counts.c takes records and gives lists, counts_fold.c converts counts by linear address into
 * counts by location.
 */
#ifndef ANALYSIS_COUNTS_INSIDE_H
#define ANALYSIS_COUNTS_INSIDE_H

#include "analysis/analysis.h"
#include "analysis/count_table.h"
#include "analysis/counts.h"

/* The position of a stream. */
struct count_stream {
  uint64_t at; /* 0: not known */
};

struct analysis_counts {
  struct analysis_names *names;
  struct analysis_code *code;
  uint32_t stream; /* wanted, or LB_TRACE_ALL */
  struct count_stream *streams;
  size_t stream_count, stream_capacity;
  struct count_table raw, blocks, jumps;
  bool is_fresh; /* nothing was counted since the last fold */
  struct analysis_block *block_list;
  struct analysis_jump *jump_list;
  size_t block_count, jump_count;
  struct analysis_block *chosen_blocks; /* those that pass a filter; NULL: there is none */
  struct analysis_jump *chosen_jumps;
  size_t chosen_block_count, chosen_jump_count;
  struct analysis_count_totals totals;
};

#define COUNTS_KIND_STOP (-1) /* as a kind: no branch, the stream stopped there, as with a fault */

/* Convert counts by linear address into counts by location. The first converts all of them; the second only the
 * branches that were given one by one, which empties `raw`. Return 0, or -ENOMEM. */
int counts_fold(struct analysis_counts *counts, struct lb_trace_reader *reader);
int counts_fold_raw(struct analysis_counts *counts);

#endif
