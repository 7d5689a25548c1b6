/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds system calls in call.def by their number.
 */
#include "trace/call.h"

#include <stddef.h>

static const struct trace_call_info calls[] = {
#define CALL(number, name, arguments) [number] = {#name, arguments, sizeof(arguments) - 1},
#include "trace/call.def"
#undef CALL
};

#define CALL(number, name, arguments)                                                                                  \
  _Static_assert(sizeof(arguments) - 1 <= TRACE_CALL_ARGUMENTS, #name " has too many arguments");
#include "trace/call.def"
#undef CALL

const struct trace_call_info *trace_call_info(uint32_t number)
{
  return number < sizeof(calls) / sizeof(calls[0]) && calls[number].name ? &calls[number] : NULL;
}

int trace_call_path(const struct trace_call_info *info, unsigned which)
{
  for (unsigned i = 0; i < info->argument_count; i++)
    if (info->arguments[i] == 's' && which-- == 0)
      return (int)i;
  return -1;
}
