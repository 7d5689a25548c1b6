/* SPDX-License-Identifier: Apache-2.0
 *
 * From entries to branches: the one walker that knows what a list of entries (lastbranch/step.h) means, for the live
 * memory of a recorded program and for traces.
 */
#ifndef TRACE_PATH_H
#define TRACE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"
#include "lastbranch/step.h"

/* The caller's lookup of steps: `lookup(context, number)` returns the step, or NULL if there is none with this number.
 * The pointer is good until the next call. */
typedef const struct lb_step *path_lookup(void *context, uint32_t number);

struct path_walker {
  path_lookup *lookup;
  void *context;
  uint32_t running;                     /* head of the running path, 0: none, or not known */
  bool is_begun;                        /* an entry was taken; until then, it is not known what came before */
  bool is_open;                         /* a branch was taken, and its target is where the next entry begins: */
  struct lb_branch branch;              /* its `from` and kind */
  uint32_t event[LB_ENTRY_EVENT_WORDS]; /* an event of which not all words have arrived */
  uint8_t event_size;                   /* words so far, plus 1; 0: none */
  bool is_ended;                        /* the last entry is an event without a target, */
  uint64_t end;                         /* and this is its address */
};

void path_walker_init(struct path_walker *walker, path_lookup *lookup, void *context);

/* Forgets where it was, as after lost entries: the next entry is treated as the first. Any entry may come first. A step
 * means that its path ran from its head up to that step. A head means that an unknown path ended there. An event means
 * that the steps which it passed are not known. */
void path_walker_restart(struct path_walker *walker);

/* Most branches that one entry can make. */
#define PATH_BRANCHES_MAX 258u

/* Takes entries and gives branches until the entries or the room for branches is used up; that room is at least
 * PATH_BRANCHES_MAX. Returns how many branches there are, with the number of entries that were taken in `*ret_taken`;
 * -EBADMSG, with none taken, if the first entry is invalid (of an event, its last word). Every call then returns the
 * same until path_walker_restart is called; the caller continues after that entry.
 *
 * Invalid entries are: a number that has no step; a step of another path than the one that is running, if that is
 * known; a step whose path is not whole (no head, a wrong count or head, an unknown kind); a head when the running path
 * does not end with LB_STEP_SILENT, or none is running and no branch is open; an event that passed more steps than the
 * running path has, or of a kind beyond LB_ENTRY_NOWHERE.
 *
 * Branches are from CPL 3 to CPL 3; a near call to the instruction after it has LB_BRANCH_TO_NEXT. */
int path_walker_next(struct path_walker *walker, const uint32_t *entries, size_t count, size_t *ret_taken,
                     struct lb_branch *branches, size_t room);

#endif
