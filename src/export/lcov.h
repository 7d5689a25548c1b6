/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of an lcov file: how often each line of source ran, each function was called and each branch went either
 * way, including code that never ran. lcov_collect.c gathers it from counts, code and debug information, lcov.c writes
 * it.
 */
#ifndef EXPORT_LCOV_H
#define EXPORT_LCOV_H

#include "export/export.h"

struct lcov_line {
  const char *file; /* path; valid as long as names, as all strings here */
  unsigned line;
  uint64_t executed;
  bool is_wanted; /* its module is wanted */
};

struct lcov_function {
  const char *file;
  unsigned line; /* at which it is declared */
  const char *name;
  uint64_t calls;
};

struct lcov_branch {
  const char *file;
  unsigned line;
  bool is_inlined;
  uint64_t function, place; /* addresses of the function that it is in, and of itself */
  uint64_t taken, passed;
};

struct lcov {
  struct lcov_line *lines;
  size_t line_count, line_capacity;
  struct lcov_function *functions;
  size_t function_count, function_capacity;
  struct lcov_branch *branches;
  size_t branch_count, branch_capacity;
};

/* Does the system own a file with this path? */
bool lcov_is_system(const char *path);

/* Sorts the three lists by file and line. Entries of one source that come from several units are merged: lines,
 * functions by name, and the branches of a line in their order; inlined copies stay separate branches. Lines that are
 * not wanted are removed (lcov_sort.c). */
void lcov_sort(struct lcov *lcov);

/* Fills the three lists and sorts them. Returns 0, LB_E_NO_ENTRY after export_fail, or -ENOMEM. */
int lcov_collect(struct export_job *job, struct lcov *lcov);

void lcov_done(struct lcov *lcov);

#endif
