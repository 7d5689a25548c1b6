/* SPDX-License-Identifier: Apache-2.0
 *
 * The sink of a source other than the software one, for lbr run: keeps the last branches of each thread, the mappings,
 * and names for addresses.
 */
#ifndef SESSION_RUN_KEEP_H
#define SESSION_RUN_KEEP_H

#include "analysis/analysis.h"
#include "source/source.h"

/* A stream and its last branches. */
struct run_keep_thread {
  uint32_t space, process, thread;
  char name[17];
  char command[SOURCE_TITLE_MOST]; /* "": not known */
  struct lb_branch *ring;          /* the next branch goes to index `total` modulo `capacity` */
  size_t capacity;
  uint64_t total;
  uint64_t gap; /* number of branches before the last gap; UINT64_MAX: there was no gap */
};

struct run_keep;

/* Keeps `most` branches of each thread. `is_mangled`: C++ names as the files have them. Returns 0 or -ENOMEM. */
int run_keep_new(size_t most, bool is_mangled, struct run_keep **ret_keep);
void run_keep_free(struct run_keep *keep); /* takes NULL */

struct source_sink run_keep_sink(struct run_keep *keep);

/* The threads, from 0 on in the order in which they came. NULL past the last. */
const struct run_keep_thread *run_keep_thread(const struct run_keep *keep, size_t number);

/* The last branches of one, oldest first, which the caller frees; `ret_has_gaps`: some are missing between them.
 * Returns how many, or -ENOMEM. */
int run_keep_branches(const struct run_keep *keep, const struct run_keep_thread *thread,
                      struct lb_branch **ret_branches, bool *ret_has_gaps);

const struct analysis_places *run_keep_places(const struct run_keep *keep);

/* Path of the program of an address space, "" if it is not known. */
const char *run_keep_program(const struct run_keep *keep, uint32_t space);
bool run_keep_names_are_missing(const struct run_keep *keep);

#endif
