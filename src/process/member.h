/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that run in the code cache of a recording: those that lbr has attached to, and their children.
 */
#ifndef PROCESS_MEMBER_H
#define PROCESS_MEMBER_H

#include <stdbool.h>

struct process;
struct target_map;

/* Is this a mapping of the shared memory of a recording, whichever it is? */
bool member_is_memory(const struct target_map *map);

/* Has lbr attached to the process: does it map the shared memory of the recording, and the runtime? */
bool member_is(const struct process *recording, int process);

/* The process that maps the memory of the recording but does not run the runtime: the lbr that records it, unless that
 * is this one. Returns its number; 0: it is not visible here. */
int member_owner(const struct process *recording);

/* Returns the number of a process that runs in the code cache; 0: there is none. */
int member_find(const struct process *recording);

#endif
