/* SPDX-License-Identifier: Apache-2.0
 *
 * --source of lbr run and lbr record: the source of branches.
 */
#ifndef CLI_SOURCE_OPTION_H
#define CLI_SOURCE_OPTION_H

#include <argp.h>

#include "source/source.h"

#define SOURCE_OPTION_HELP                                                                                             \
  "Source of the branches: software (default), auto (Intel PT if it is usable, else software), lbr (samples of the "   \
  "processor's branch stack), bts, pt (Intel) or block-step (ptrace, for short programs)"

/* A word of source.def; anything else is reported by argp. */
enum source_kind source_option(const char *argument, struct argp_state *state);

/* The number of branches between two samples. */
uint64_t source_option_period(const char *argument, struct argp_state *state);

#endif
