/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the runtime: {COMMAND_NAME and blanks, FD, EXE, EXECFN, the program's own arguments...}. FD is
 * the descriptor of the shared memory; after execve, ":PAGE" of the calling thread follows it, and then "+" if its
 * process had other threads. EXE is the absolute path of the program, EXECFN its path as the caller gave it. launch.c
 * makes the command line for the first program, the runtime's execve makes it for every other program. This header
 * works without libc.
 */
#ifndef PROCESS_COMMAND_H
#define PROCESS_COMMAND_H

#include <stddef.h>

#define COMMAND_NAME "lbr-runtime"

enum { COMMAND_WORDS = 4, COMMAND_PAGE = 4096 };

/* Returns how many blanks the first word needs after COMMAND_NAME, 0 to COMMAND_PAGE - 1. With them the four words take
 * whole pages of the stack, and the program's own words have the same offsets in their pages as without the recorder:
 * the branches of string functions depend on that. `bytes` is the size of the four words without blanks, each with the
 * zero that ends it. */
static inline size_t command_blanks(size_t bytes)
{
  return (COMMAND_PAGE - bytes % COMMAND_PAGE) % COMMAND_PAGE;
}

#endif
