/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the ELF program that a path stands for, as execve(2) does: scripts lead to their interpreters.
 */
#ifndef PROCESS_RESOLVE_H
#define PROCESS_RESOLVE_H

#include <limits.h>

enum { RESOLVE_LEVELS = 4, RESOLVE_LINE = 256 }; /* scripts in a row; bytes of a first line that the kernel looks at */

/* The arguments are words[first], ..., words[count - 1], then those of the caller without their first if there are any
 * words. */
struct resolution {
  char exe[PATH_MAX]; /* absolute path of the program; the path as given if there is no such file */
  char lines[RESOLVE_LEVELS][RESOLVE_LINE]; /* the words point into these */
  const char *words[3 * RESOLVE_LEVELS];
  unsigned first, count;
  unsigned error; /* enum process_error: why it cannot be run, or 0. The runtime checks whether it is ELF */
  int system_error;
};

/* `path` must outlive the resolution. */
void resolve_program(const char *path, struct resolution *ret_resolution);

#endif
