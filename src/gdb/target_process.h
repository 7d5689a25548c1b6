/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that has died, as gdb's target, while it still exists.
 */
#ifndef GDB_TARGET_PROCESS_H
#define GDB_TARGET_PROCESS_H

#include "session/session.h"

/* The debugger of a session of `lbr run`: starts gdb, or waits for a gdb to connect where the arguments say. */
run_debug_function gdb_debug_dead;

#endif
