/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the runtime: {COMMAND_NAME and blanks, FD, EXE, EXECFN, the program's own arguments...}. FD is
 * the descriptor of the shared memory, after execve with ":PAGE" of the thread behind it, and with "+" if its process
 * had other threads; EXE is the absolute path of the program, EXECFN its path as the caller gave it. launch.c makes the
 * command line for the first program, the runtime's execve makes it for every other. Works without libc.
 */
#ifndef PROCESS_COMMAND_H
#define PROCESS_COMMAND_H

#include <stddef.h>

#define COMMAND_NAME "lbr-runtime"

enum { COMMAND_WORDS = 4, COMMAND_PAGE = 4096 };

/* How many blanks the first word needs behind COMMAND_NAME. With them the four words take whole pages of the stack, and
 * the program's own words have the same offsets in their pages as without the recorder: the branches of string
 * functions depend on that. `bytes` is what the four words take without blanks, each with the zero that ends it.
 * Returns 0 to COMMAND_PAGE - 1. */
static inline size_t command_blanks(size_t bytes)
{
  return (COMMAND_PAGE - bytes % COMMAND_PAGE) % COMMAND_PAGE;
}

#endif
