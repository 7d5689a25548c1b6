/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that run in the code cache of an lbr that was killed while it was attached to them.
 */
#ifndef PROCESS_RESCUE_H
#define PROCESS_RESCUE_H

#include "process/tracee.h"

/* Can lbr leave a process that has mapped the memory of a recorder? Returns 0, or -errno after a message: another lbr
 * still records it, lbr has started it, or its runtime is that of another build. */
int rescue_check(int process);

/* Leaves the process and all others of its recording, if an lbr that was killed was attached to it. Returns 0, also if
 * there is nothing to do, or -errno after a message. */
int rescue_leave(int process, tracee_wait_function *wait, void *data);

#endif
