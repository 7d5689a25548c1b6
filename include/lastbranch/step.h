/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps and entries: many branches at a few bits each. A single branch is a struct lb_branch; code that moves millions
 * of them (the runtime inside a recorded program, the drain, the trace's writer and reader) moves entries instead, and
 * looks up the steps that they name.
 *
 * A path is a straight piece of translated code (a superblock): entered at its head only, it runs through its steps,
 * which are the branches in it, until it is left at one of them. Everything about it is static and stands once in a
 * table of steps: the head first, then its steps in their order. Numbers begin with 1. While the program runs, it
 * logs a list of entries of 32 bits each:
 *
 *   number of a step       the path of that step was run from its head up to this step, and left there. For a step
 *                          with LB_STEP_SILENT: the indirect branch was taken, and the next entry, which is not a head,
 *                          tells where to; as with LB_STEP_OPEN
 *   number of a head       the path before ran to its end, which is an indirect branch, and went to this head; that
 *                          path is running now
 *   LB_ENTRY_ENTER | head  that path is running now, however execution came to it; nothing of a path that was to run
 *                          before has run
 *   LB_ENTRY_EVENT         and five words: kind | passed << 8, from (low, high), to (low, high). The path that is
 *                          running passed so many of its steps and was then interrupted at `from`; execution goes on
 *                          at `to`. Kind LB_ENTRY_NOWHERE: it does not go on. No path is running then. If a branch is
 *                          open and its step is not linked to a path, `from` is where it went. Kind LB_ENTRY_STAMP:
 *                          nothing has happened; the words are a time, or about a system call
 *   0                      nothing
 *
 * When a path is left at a step, the path `next` of that step runs, if it is linked to one; else LB_ENTRY_ENTER or
 * LB_ENTRY_EVENT follows. `next` is written once, before the first entry that depends on it.
 *
 * So one entry stands for a whole path, and branches that go their usual way cost nothing.
 */
#ifndef LASTBRANCH_STEP_H
#define LASTBRANCH_STEP_H

#include <stdint.h>

#include "lastbranch/branch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_STEP_MAX 0x7FFFFFFEu /* greatest number of a step */

#define LB_ENTRY_ENTER 0x80000000u
#define LB_ENTRY_EVENT 0xFFFFFFFFu
#define LB_ENTRY_EVENT_WORDS 5u            /* after LB_ENTRY_EVENT */
#define LB_ENTRY_NOWHERE LB_BRANCH_UNKNOWN /* as the kind of an event: no event is of that kind */
#define LB_ENTRY_STAMP 0xFFu               /* the same: it changes nothing, and its words are the producer's */

enum lb_step_flag {
  LB_STEP_HEAD = 1u << 0,   /* `from` is the address where the path begins, `count` the number of its steps */
  LB_STEP_FOLLOW = 1u << 1, /* the path continues at `to`, the target; without: it continues after the branch */
  LB_STEP_SILENT = 1u << 2, /* the last step, indirect: left without an entry, by the head that comes next */
  LB_STEP_OPEN = 1u << 3,   /* leaving here takes the branch to wherever the next entry begins; `to` is not it */
  LB_STEP_NONE = 1u << 4,   /* leaving here is no branch: the path was cut, or the branch was not taken */
};

/* 32 bytes, as they lie in the memory that the process recorder shares with the programs it runs. */
struct lb_step {
  uint64_t from;  /* address of the branch instruction */
  uint64_t to;    /* its target; with LB_STEP_NONE where execution goes on */
  uint32_t head;  /* number of the head; of a head its own */
  uint32_t next;  /* head of the path that follows when left here, 0: it is not linked (yet) */
  uint8_t kind;   /* enum lb_branch_kind */
  uint8_t flags;  /* enum lb_step_flag */
  uint8_t count;  /* of a head: steps after it */
  uint8_t length; /* of the branch instruction */
  uint32_t space; /* address space that these addresses belong to */
};

#ifdef __cplusplus
}
#endif
#endif
