/* SPDX-License-Identifier: Apache-2.0
 *
 * --source-prefix and --any-source.
 */
#include "cli/source_path_options.h"

enum { KEY_PREFIX = 0x3000, KEY_ANY };

static const struct argp_option options[] = {
  {"source-prefix", KEY_PREFIX, "DIR|OLD=NEW", 0,
   "Show source files below DIR, too; with OLD=NEW, look for source files whose paths begin with OLD in NEW. May be repeated",
   0},
  {"any-source", KEY_ANY, NULL, 0,
   "Show every source file that the debug information names, not only those below the folders in which the program was compiled",
   0},
  {0},
};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct source_paths *paths = state->input;

  switch (key) {
  case KEY_PREFIX:
    if (!source_paths_add(paths, argument))
      argp_error(state, "--source-prefix wants DIR or OLD=NEW, at most %u times, not '%s'", SOURCE_PREFIXES_MAX,
                 argument);
    return 0;
  case KEY_ANY:
    paths->allows_any = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp source_paths_argp = {.options = options, .parser = option_parse};
