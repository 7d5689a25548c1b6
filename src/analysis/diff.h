/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two runs: decides when a branch of one run is the same as a branch of the other. Addresses differ from run
 * to run, and files may have been rebuilt. Branches are therefore compared by their place in the program:
 *
 *   a file that both traces name (the same build-id; without one, the same path)   address in the file
 *   any other file                                                                 symbol and offset from it
 *   no file, in a trace of a machine                                               linear address
 *   no file, in a trace of a program                                               offset in its page
 */
#ifndef ANALYSIS_DIFF_H
#define ANALYSIS_DIFF_H

#include "analysis/location.h"

/* The files that a trace names. */
struct analysis_diff_files {
  uint64_t *ids; /* of build-id or path */
  size_t count, capacity;
};

#define ANALYSIS_DIFF_FILES_MAX 4096u /* further files are compared by symbol */

/* Takes the modules of a trace; other records do nothing. Returns 0, or -ENOMEM. */
int analysis_diff_files_record(struct analysis_diff_files *files, const struct lb_trace_record *record);
void analysis_diff_files_done(struct analysis_diff_files *files);

/* An address, in a form that is the same in both runs. */
struct analysis_diff_key {
  uint64_t id, address;
};

#define ANALYSIS_DIFF_OUTSIDE_ID 2u /* no address has it: stands for ends of branches that are not compared */

struct analysis_diff_keys;

/* Keys of one of the two runs. `names` and `other`, the files of the other run, must stay valid. `is_process`: the
 * trace is of a program. Returns 0, or -ENOMEM. */
int analysis_diff_keys_new(struct analysis_names *names, const struct analysis_diff_files *other, bool is_process,
                           struct analysis_diff_keys **ret_keys);
void analysis_diff_keys_free(struct analysis_diff_keys *keys); /* takes NULL */

struct analysis_diff_key analysis_diff_key(struct analysis_diff_keys *keys, uint32_t space, uint64_t address);

/* Was any file compared by symbols, because the other trace does not have it? Its name, fit to be printed, or NULL. */
const char *analysis_diff_keys_by_symbol(const struct analysis_diff_keys *keys);

/* A branch of one run. Two are the same if key and kind are. */
struct analysis_diff_branch {
  uint64_t number;
  struct lb_branch branch;
  struct analysis_diff_key from, to;
};

static inline bool analysis_diff_is_same(const struct analysis_diff_branch *one,
                                         const struct analysis_diff_branch *other)
{
  return one->from.address == other->from.address && one->to.address == other->to.address &&
         one->from.id == other->from.id && one->to.id == other->to.id && one->branch.kind == other->branch.kind;
}

/* Finds where two runs that have diverged converge again: the nearest places from which `run` consecutive branches are
 * the same. Returns 1; 0: there are none; or -ENOMEM. */
int analysis_diff_rejoin(const struct analysis_diff_branch *one, size_t one_count,
                         const struct analysis_diff_branch *other, size_t other_count, size_t run, size_t *ret_one,
                         size_t *ret_other);

#endif
