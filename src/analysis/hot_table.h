/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of hot.h while they are made.
 */
#ifndef ANALYSIS_HOT_TABLE_H
#define ANALYSIS_HOT_TABLE_H

#include "analysis/extent.h"
#include "analysis/hot.h"
#include "base/base.h"

#define HOT_NONE UINT32_MAX

struct analysis_hot {
  struct analysis_names *names;
  struct analysis_code *code;
  const struct analysis_counts *counts;
  struct analysis_hot_filter filter;
  /* Functions, at first as they are found; later only the wanted ones, in the requested order. */
  struct analysis_hot_function *functions;
  bool *is_wanted; /* of each function: it passes the filter */
  size_t function_count, function_capacity, wanted_capacity;
  struct hash_index function_index; /* of functions by file, space and start */
  struct analysis_hot_module *modules;
  size_t module_count, module_capacity;
  const struct analysis_jump **edges;
  size_t edge_count;
  struct analysis_hot_branch *branches;
  size_t branch_count, branch_capacity;
  struct analysis_hot_indirect *indirects;
  size_t indirect_count, indirect_capacity;
  const struct analysis_jump **targets; /* of all of them */
  struct analysis_hot_line *lines;
  size_t line_count, line_capacity;
  uint64_t without_line;
};

/* The number of the function at a location, a new one if necessary; HOT_NONE without memory. */
uint32_t hot_function_at(struct analysis_hot *hot, const struct analysis_location *location);

/* The extent that a function was made from. */
struct analysis_extent hot_function_extent(const struct analysis_hot_function *function);

/* Forgets functions that are not wanted, and the index: numbers of functions are not valid any more. */
void hot_functions_finish(struct analysis_hot *hot);

#endif
