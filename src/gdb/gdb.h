/* SPDX-License-Identifier: Apache-2.0
 *
 * gdb's remote protocol, the targets that it serves, and the connection to gdb.
 */
#ifndef GDB_GDB_H
#define GDB_GDB_H

#include "gdb/blocks.h"         /* IWYU pragma: export */
#include "gdb/listen.h"         /* IWYU pragma: export */
#include "gdb/modules.h"        /* IWYU pragma: export */
#include "gdb/start.h"          /* IWYU pragma: export */
#include "gdb/target.h"         /* IWYU pragma: export */
#include "gdb/target_machine.h" /* IWYU pragma: export */
#include "gdb/target_process.h" /* IWYU pragma: export */
#include "gdb/target_trace.h"   /* IWYU pragma: export */

#endif
