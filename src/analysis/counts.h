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

/* `names` and `code` must stay good; `names` learns of modules from here. Returns 0, or -ENOMEM. */
int analysis_counts_new(struct analysis_names *names, struct analysis_code *code, struct analysis_counts **ret_counts);
void analysis_counts_free(struct analysis_counts *counts); /* takes NULL */

/* Counts only this stream; LB_TRACE_ALL (the default): all. Must be called before the first record. */
void analysis_counts_stream(struct analysis_counts *counts, uint32_t stream);

/* Takes a record of a reader that counts (lb_trace_reader_count). `reader` is asked for its counts when a mapping is
 * about to change. Memory stays below about 400 MiB, symbols not counted. Returns 0, or -ENOMEM. */
int analysis_counts_record(struct analysis_counts *counts, struct lb_trace_reader *reader,
                           const struct lb_trace_record *record);

/* Must be called once, behind the last record. Returns 0, or -ENOMEM. */
int analysis_counts_end(struct analysis_counts *counts, struct lb_trace_reader *reader);

/* ---- then ---- */

struct analysis_block {
  struct analysis_location first;
  uint64_t last; /* address of its last instruction, in the same form as first.address, */
  uint64_t end;  /* and address of the byte behind that instruction; 0: not known */
  uint64_t executed;
  uint32_t instructions; /* 0: not known */
  int8_t kind;           /* enum lb_branch_kind of the last instruction; -1: it is not a branch, or not known */
};

struct analysis_jump {
  struct analysis_location from, to;
  uint8_t kind;   /* enum lb_branch_kind */
  bool is_passed; /* a conditional branch that was not taken; `to` is behind it */
  uint64_t count;
};

struct analysis_filter;

/* Leaves out of the lists below what does not pass the filter; `filter` NULL: nothing is left out. May be called once,
 * after analysis_counts_end. Returns 0, or -ENOMEM. */
int analysis_counts_filter(struct analysis_counts *counts, struct analysis_filter *filter);

/* Those that are not left out, sorted by file, space and address. Good until analysis_counts_free. */
const struct analysis_block *analysis_counts_blocks(const struct analysis_counts *counts, size_t *ret_count);
const struct analysis_jump *analysis_counts_jumps(const struct analysis_counts *counts, size_t *ret_count);

/* The same, including what is left out: for callers that ask what code there is, and not how often it ran. */
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
