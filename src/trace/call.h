/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of system calls: their names, and the types of their arguments (call.def).
 */
#ifndef TRACE_CALL_H
#define TRACE_CALL_H

#include <stdint.h>

/* TRACE_CALL_openat and so on. */
enum trace_call {
#define CALL(number, name, arguments) TRACE_CALL_##name = (number),
#include "trace/call.def"
#undef CALL
};

#define TRACE_CALL_ARGUMENTS 6u /* the most that a system call has */
#define TRACE_CALL_PATHS 2u     /* the most paths among them */

struct trace_call_info {
  const char *name;
  const char *arguments; /* one letter each; call.def lists them */
  unsigned argument_count;
};

/* Returns NULL for a number that call.def does not have. */
const struct trace_call_info *trace_call_info(uint32_t number);

/* The index among the arguments of the first path (`which` is 0) or the second (1), or -1 if there is none. */
int trace_call_path(const struct trace_call_info *info, unsigned which);

#endif
