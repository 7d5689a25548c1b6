/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes gdb.
 */
#ifndef GDB_START_H
#define GDB_START_H

/* Executes gdb with a command that connects it, and `count` more arguments. Returns -errno. */
int gdb_execute(const char *target, char *const *arguments, int count);

/* Says why it did not work. */
void gdb_complain(int error);

#endif
