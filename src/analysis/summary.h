/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a trace: how many branches of which kind, streams, functions, edges.
 */
#ifndef ANALYSIS_SUMMARY_H
#define ANALYSIS_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/names.h"
#include "analysis/streams.h"
#include "analysis/thread_times.h"
#include "lastbranch/branch.h"
#include "lastbranch/trace.h"

struct analysis_summary;

/* `names` as above. Returns 0, or -ENOMEM. */
int analysis_summary_new(struct analysis_names *names, struct analysis_summary **ret_summary);
void analysis_summary_free(struct analysis_summary *summary); /* takes NULL */

/* Counts one module only (analysis_module_is): branches that begin in it, functions in it, and edges that begin or end
 * in it. The reader must not count branches then. Must be called before the first record; `module` must stay valid.
 * Returns 0, or -ENOMEM. */
int analysis_summary_only(struct analysis_summary *summary, const char *module);

/* Counts a record. Memory stays below about 200 MiB, symbols not counted. Returns 0, or -ENOMEM. */
int analysis_summary_record(struct analysis_summary *summary, const struct lb_trace_record *record);

/* Sets the reader of the records, which counts branches (lb_trace_reader_count). This is much faster than taking
 * branches one by one. Must be called before the first record. */
void analysis_summary_count(struct analysis_summary *summary, struct lb_trace_reader *reader);

/* Must be called after the last record, before any query. Returns 0, or -ENOMEM. */
int analysis_summary_end(struct analysis_summary *summary);

struct analysis_totals {
  uint64_t all_branches; /* of the whole trace; the members below may be of one module */
  uint64_t branches, mispredicted;
  uint64_t cpl_changes; /* branches that change the CPL */
  uint64_t kinds[LB_BRANCH_KINDS];
  uint64_t gaps[LB_TRACE_GAP_REASONS];
  uint64_t lost[LB_TRACE_GAP_REASONS]; /* branches, as far as their number is known */
  bool has_unknown_loss;               /* a gap did not say how many */
  uint64_t code_bytes;                 /* in the trace */
  bool has_forgotten; /* there were too many edges: counts of edges may be too low, and rare ones left out */
};

const struct analysis_totals *analysis_summary_totals(const struct analysis_summary *summary);

/* The value that a meta record gave, fit to be printed, or NULL: the keys of lastbranch/trace.h only. */
const char *analysis_summary_meta(const struct analysis_summary *summary, const char *key);

/* The streams, from 0 on. Returns false past the last. */
bool analysis_summary_stream(const struct analysis_summary *summary, size_t number, struct analysis_stream *ret_stream);

/* Their times, if the reader was asked for stamps. */
const struct analysis_thread_times *analysis_summary_times(const struct analysis_summary *summary);

/* A function as extent.h has it. */
struct analysis_function {
  const char *symbol, *module; /* NULL: none */
  uint64_t start;              /* as its file is linked; 0 for ANALYSIS_EXTENT_BY_NOTHING */
  uint8_t source;              /* enum analysis_extent_source */
  uint64_t branches;           /* that lead into it, from anywhere */
  uint64_t entries;            /* of these, from outside of it */
};

/* One end of an edge. */
struct analysis_end {
  uint64_t address;
  const char *symbol, *module; /* as above */
  bool has_offset;             /* also false if the module was unmapped */
  uint64_t offset;             /* offset from the symbol; without one, the address as the file is linked */
};

struct analysis_edge {
  struct analysis_end from, to;
  uint8_t kind;
  uint64_t count;
};

/* The first `count` of them, most branches first. Return how many there are, at most `count`; or -ENOMEM. */
int analysis_summary_functions(struct analysis_summary *summary, struct analysis_function *ret_functions,
                               unsigned count);
int analysis_summary_edges(struct analysis_summary *summary, struct analysis_edge *ret_edges, unsigned count);

#endif
