/* SPDX-License-Identifier: Apache-2.0
 *
 * --source: which source is used, or why not.
 */
#include "cli/source_option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/program.h"

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

static const char *between(const char *advice, const char *mark)
{
  return *advice ? mark : "";
}

bool source_option_steps_singly(void)
{
  return getenv("LBR_SINGLE_STEPS") != NULL;
}

bool source_option_settle(enum source_kind *kind, bool is_quiet)
{
  struct hardware_host host;
  const char *reason, *advice;
  bool is_auto = *kind == SOURCE_AUTO, is_usable;

  if (*kind == SOURCE_SOFTWARE || (*kind == SOURCE_BLOCK_STEP && source_option_steps_singly()))
    return true;
  hardware_probe(hardware_system_real(), &host);
  is_usable = source_is_usable(&host, is_auto ? SOURCE_PT : *kind, &reason, &advice);
  if (is_auto) {
    *kind = source_choose(&host);
    if (!is_quiet)
      cli_error("source: %s%s%s%s", source_word(*kind), is_usable ? "" : " (pt: ", is_usable ? "" : reason,
                is_usable ? "" : ")");
    return true;
  }
  if (!is_usable)
    cli_error("--source %s cannot be used here: %s%s%s", source_word(*kind), reason, between(advice, "; "), advice);
  return is_usable;
}

int source_option_complain(const char *program, int error, const struct source_problem *problem)
{
  if (*problem->text) {
    cli_error("%s%s%s", problem->text, between(problem->advice, "; "), problem->advice);
    return PROGRAM_FAILURE;
  }
  cli_error("%s: it cannot be executed: %s", program, strerror(-error));
  return error == -ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXECUTE;
}
