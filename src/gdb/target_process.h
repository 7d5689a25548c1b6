/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that has died, as gdb's target, before it is gone.
 */
#ifndef GDB_TARGET_PROCESS_H
#define GDB_TARGET_PROCESS_H

#include "session/session.h"

/* The debugger of a session of `lbr run`: starts a gdb, or waits for one where the arguments say. */
run_debug_function gdb_debug_dead;

#endif
