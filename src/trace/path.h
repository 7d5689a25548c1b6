/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths: how a producer that runs code from a cache tells which branches were taken, at a few bits each.
 *
 * A path is a straight piece of translated code: entered at its head only, it runs through its steps, which are the
 * branches in it, until it is left at one of them. Everything about it is static and stands once in a table of steps:
 * the head first, then its steps in their order. What is logged while it runs is a list of entries, 32 bits each:
 *
 *   number of a step       the path of that step was run from its head up to this step, and left there. For a step
 *                          with PATH_SILENT: the indirect branch was taken, and something else than a head tells where
 *                          to; as with PATH_OPEN
 *   number of a head       the path before ran to its end, which is an indirect branch, and went to this head; that
 *                          path is running now
 *   PATH_ENTER | head      that path is running now, however it came to it; nothing of a path that was to run before
 *                          has run
 *   PATH_EVENT             and five words: kind | passed << 8, from (low, high), to (low, high). The path that is
 *                          running passed so many of its steps and was then interrupted at `from`; execution goes on
 *                          at `to`. Kind PATH_NOWHERE: it goes on nowhere. No path is running then. If a branch is
 *                          open and its step is not tied to a path, `from` is where it went
 *   0                      nothing
 *
 * A path that is left at a step goes on with the path `next` of that step, if it is tied to one; else PATH_ENTER or
 * PATH_EVENT follows. `next` is written once, before the first entry that depends on it.
 *
 * So one entry stands for a whole path, and steps that do what they mostly do cost nothing.
 */
#ifndef TRACE_PATH_H
#define TRACE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"

#define PATH_ENTER 0x80000000u
#define PATH_EVENT 0xFFFFFFFFu
#define PATH_EVENT_WORDS 5u            /* behind PATH_EVENT */
#define PATH_NOWHERE LB_BRANCH_UNKNOWN /* as the kind of an event: no event is of that kind */
#define PATH_STEPS_MAX 0x7FFFFFFEu

enum path_flag {
  PATH_HEAD = 1u << 0,   /* `from` is the address where the path begins, `count` the number of its steps */
  PATH_FOLLOW = 1u << 1, /* who stays in the path here has taken the branch, to `to`; without: has not taken it */
  PATH_SILENT = 1u << 2, /* the last step, indirect: left without an entry, by the head that comes next */
  PATH_OPEN = 1u << 3,   /* who leaves here takes the branch to wherever the next entry begins; `to` is not it */
  PATH_NONE = 1u << 4,   /* leaving here is no branch: the path was cut, or the branch was not taken */
};

/* 32 bytes, as they lie in the memory that the process recorder shares. */
struct path_step {
  uint64_t from;  /* address of the branch instruction */
  uint64_t to;    /* its target; with PATH_NONE where execution goes on */
  uint32_t head;  /* number of the head; of a head its own */
  uint32_t next;  /* head of the path that follows when left here, 0: it is not tied */
  uint8_t kind;   /* enum lb_branch_kind */
  uint8_t flags;  /* enum path_flag */
  uint8_t count;  /* of a head: steps behind it */
  uint8_t length; /* of the branch instruction */
  uint32_t space; /* whose addresses these are */
};

_Static_assert(sizeof(struct path_step) == 32, "");

/* ---- from entries to branches (path.c) ---- */

/* Steps as whoever walks has them: `step(context, number)` returns the step, or NULL if there is none with this number.
 * The pointer is good until the next call. */
typedef const struct path_step *path_lookup(void *context, uint32_t number);

struct path_walker {
  path_lookup *lookup;
  void *context;
  uint32_t running;                 /* head of the path that is running, 0: none, or it is not known which */
  bool is_begun;                    /* an entry was taken: until then it is not known what came before */
  bool is_open;                     /* a branch was taken whose target is where the next entry begins: */
  struct lb_branch branch;          /* its `from` and kind */
  uint32_t event[PATH_EVENT_WORDS]; /* an event whose words have not all come */
  uint8_t event_size;               /* words so far, plus 1; 0: none */
  bool is_ended;                    /* what came last is an event that goes on nowhere, */
  uint64_t end;                     /* and this is where it was */
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
 * the running path does not end with PATH_SILENT, or none is running and no branch is open; an event that passed more
 * steps than the running path has, or of a kind beyond PATH_NOWHERE.
 *
 * Branches are from CPL 3 to CPL 3; one by a near call to the instruction behind it has LB_BRANCH_TO_NEXT. */
int path_walker_next(struct path_walker *walker, const uint32_t *entries, size_t count, size_t *ret_taken,
                     struct lb_branch *branches, size_t room);

#endif
