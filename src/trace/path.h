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

/* Steps as whoever walks has them: `step(context, number)` returns the step, or NULL if there is none with this number.
 * The pointer is good until the next call. */
typedef const struct lb_step *path_lookup(void *context, uint32_t number);

struct path_walker {
  path_lookup *lookup;
  void *context;
  uint32_t running;                     /* head of the path that is running, 0: none, or it is not known which */
  bool is_begun;                        /* an entry was taken: until then it is not known what came before */
  bool is_open;                         /* a branch was taken whose target is where the next entry begins: */
  struct lb_branch branch;              /* its `from` and kind */
  uint32_t event[LB_ENTRY_EVENT_WORDS]; /* an event whose words have not all come */
  uint8_t event_size;                   /* words so far, plus 1; 0: none */
  bool is_ended;                        /* what came last is an event that goes on nowhere, */
  uint64_t end;                         /* and this is where it was */
};

void path_walker_init(struct path_walker *walker, path_lookup *lookup, void *context);

/* Forgets where it was, as after entries that were lost: whatever comes next is the first. Then any entry may come: a
 * step means that its path was run from its head up to it, a head that a path which is not known ended there, an event
 * that it passed nobody knows which steps. */
void path_walker_restart(struct path_walker *walker);

/* Most branches that one entry can make. */
#define PATH_BRANCHES_MAX 258u

/* Takes entries and gives branches until one of the two is used up; the room for branches is at least
 * PATH_BRANCHES_MAX. Returns how many branches there are, with the number of entries that were taken in `*ret_taken`;
 * -EBADMSG, with none taken: the first entry makes no sense (of an event, its last word). That is so every time until
 * path_walker_restart is called; the caller then goes on behind that entry.
 *
 * What makes no sense: a number that has no step; a step of another path than the one that is running, if that is
 * known; a step whose path is not whole (no head, a count or a head that is wrong, a kind that is none); a head when
 * the running path does not end with LB_STEP_SILENT, or none is running and no branch is open; an event that passed
 * more steps than the running path has, or of a kind beyond LB_ENTRY_NOWHERE.
 *
 * Branches are from CPL 3 to CPL 3; one by a near call to the instruction behind it has LB_BRANCH_TO_NEXT. */
int path_walker_next(struct path_walker *walker, const uint32_t *entries, size_t count, size_t *ret_taken,
                     struct lb_branch *branches, size_t room);

#endif
