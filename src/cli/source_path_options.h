/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that show source files.
 */
#ifndef CLI_SOURCE_PATH_OPTIONS_H
#define CLI_SOURCE_PATH_OPTIONS_H

#include <argp.h>

#include "report/report.h"

/* The options --source-prefix and --any-source, for the `children` of a command's argp, as the first of them: at
 * ARGP_KEY_INIT, state->child_inputs[0] = &paths. */
#define SOURCE_PATHS                                                                                                   \
  {                                                                                                                    \
    &source_paths_argp, 0, NULL, 0                                                                                     \
  }
extern const struct argp source_paths_argp;

#endif
