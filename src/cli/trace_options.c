/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace argument of a command, and its thread. Separate from options.c, which commands without traces use.
 */
#include "analysis/analysis.h"
#include "cli/options.h"

int shared_options_settle(const char *file, struct shared_options *options)
{
  return options->thread_name ? trace_stream_find(file, options->thread_name, &options->stream) : 0;
}

void option_trace(const char **file, char *argument, struct argp_state *state)
{
  if (*file)
    argp_error(state, "name one trace");
  *file = argument;
}
