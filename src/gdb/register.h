/* SPDX-License-Identifier: Apache-2.0
 *
 * The registers of an architecture in the order in which gdb numbers them, and their description.
 */
#ifndef GDB_REGISTER_H
#define GDB_REGISTER_H

#include "base/base.h"
#include "gdb/target.h"

/* The register with a number of gdb. Returns false past the last that a target with these features has. */
bool register_at(enum gdb_architecture architecture, unsigned features, size_t index, enum gdb_register *ret_number);

/* gdb's number for a register that every target has. */
size_t register_index(enum gdb_architecture architecture, enum gdb_register number);

/* Appends the XML that describes them. Returns 0, or -ENOMEM. */
int register_describe(enum gdb_architecture architecture, unsigned features, const char *osabi, struct text *text);

#endif
