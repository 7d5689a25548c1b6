/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact counts of a whole trace, by location: how often each block ran and each branch was taken or passed. Everything
 * that depends on numbers and not on order is made from these: report, annotate, profiles for other tools.
 *
 * A block is a straight piece of code that ends with a branch, taken or not; blocks may overlap (after a jump into the
 * middle of a block, the rest of it runs as another block). An instruction's count is the sum over the blocks that
 * contain it.
 */
#ifndef ANALYSIS_COUNTS_H
#define ANALYSIS_COUNTS_H

#include "analysis/code.h"

struct analysis_counts;

/* `names` and `code` must stay valid. The modules of the trace are passed to `names`. Returns 0, or -ENOMEM. */
int analysis_counts_new(struct analysis_names *names, struct analysis_code *code, struct analysis_counts **ret_counts);
void analysis_counts_free(struct analysis_counts *counts); /* takes NULL */

/* Counts only this stream; LB_TRACE_ALL (the default): all. Must be called before the first record. */
void analysis_counts_stream(struct analysis_counts *counts, uint32_t stream);

/* Takes a record of a reader that counts (lb_trace_reader_count). `reader` is asked for its counts when a mapping is
 * about to change. Memory stays below about 400 MiB, symbols not counted. Returns 0, or -ENOMEM. */
int analysis_counts_record(struct analysis_counts *counts, struct lb_trace_reader *reader,
                           const struct lb_trace_record *record);

/* Must be called once, after the last record. Returns 0, or -ENOMEM. */
int analysis_counts_end(struct analysis_counts *counts, struct lb_trace_reader *reader);

/* ---- then ---- */

struct analysis_block {
  struct analysis_location first;
  uint64_t last; /* address of its last instruction, in the same form as first.address, */
  uint64_t end;  /* and address of the byte after that instruction; 0: not known */
  uint64_t executed;
  uint32_t instructions; /* 0: not known */
  int8_t kind;           /* enum lb_branch_kind of the last instruction; -1: it is not a branch, or not known */
};

struct analysis_jump {
  struct analysis_location from, to;
  uint8_t kind;   /* enum lb_branch_kind */
  bool is_passed; /* a conditional branch that was not taken; `to` is the next instruction */
  uint64_t count;
};

struct analysis_filter;

/* Removes items that do not pass the filter from the lists below. If `filter` is NULL, nothing is removed. May be
 * called once, after analysis_counts_end. Returns 0, or -ENOMEM. */
int analysis_counts_filter(struct analysis_counts *counts, struct analysis_filter *filter);

/* The items that pass the filter, sorted by file, space and address. Valid until analysis_counts_free. */
const struct analysis_block *analysis_counts_blocks(const struct analysis_counts *counts, size_t *ret_count);
const struct analysis_jump *analysis_counts_jumps(const struct analysis_counts *counts, size_t *ret_count);

/* The same without the filter: for callers that need to know which code ran, not how often. */
const struct analysis_block *analysis_counts_all_blocks(const struct analysis_counts *counts, size_t *ret_count);
const struct analysis_jump *analysis_counts_all_jumps(const struct analysis_counts *counts, size_t *ret_count);

struct analysis_count_totals {
  uint64_t taken, passed; /* branches; conditional ones not taken */
  uint64_t instructions;  /* as far as known */
  bool has_unknown_code;  /* the code of some blocks is not known: instructions and passed are too low */
  bool has_forgotten;     /* there were too many different items: those that came after the limit are left out */
  uint64_t gaps;          /* number of gap records */
};

const struct analysis_count_totals *analysis_counts_totals(const struct analysis_counts *counts);

#endif
