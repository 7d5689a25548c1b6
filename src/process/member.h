/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that run in the code cache of a recording: those that lbr has attached to, and their children.
 */
#ifndef PROCESS_MEMBER_H
#define PROCESS_MEMBER_H

#include <stdbool.h>

struct process;

/* Does the process map the shared memory of the recording? */
bool member_is(const struct process *recording, int process);

/* Returns the number of a process that runs in the code cache; 0: there is none. */
int member_find(const struct process *recording);

#endif
