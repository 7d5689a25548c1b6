/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of --source and --period.
 */
#include "cli/source_option.h"

#include "base/base.h"

static void source_complain(const char *argument, struct argp_state *state)
{
  struct text words = {0};

  for (unsigned kind = 0; source_word(kind); kind++)
    text_addf(&words, "%s%s", kind ? ", " : "", source_word(kind));
  argp_error(state, "no source '%s'; the sources are %s", argument, text_string(&words));
  text_done(&words);
}

enum source_kind source_option(const char *argument, struct argp_state *state)
{
  int kind = source_find(argument);

  if (kind < 0)
    source_complain(argument, state);
  return (enum source_kind)kind;
}

uint64_t source_option_period(const char *argument, struct argp_state *state)
{
  uint64_t period = 0;

  if (*argument == '-' || number_parse(argument, &period) < 0 || period < SOURCE_PERIOD_LEAST || period >> 32)
    argp_error(state, "--period wants a number from %u to 4294967295, not '%s'", SOURCE_PERIOD_LEAST, argument);
  return period;
}
