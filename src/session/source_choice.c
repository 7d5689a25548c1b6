/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the source of branches, or explains why there is none.
 */
#include "session/source_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "session/program.h"

static const char *between(const char *advice, const char *mark)
{
  return *advice ? mark : "";
}

bool source_choice_steps_singly(void)
{
  return getenv("LBR_SINGLE_STEPS") != NULL;
}

bool source_choice_settle(enum source_kind *kind, bool is_quiet)
{
  struct hardware_host host;
  const char *reason, *advice;
  bool is_auto = *kind == SOURCE_AUTO, is_usable;

  if (*kind == SOURCE_SOFTWARE || (*kind == SOURCE_BLOCK_STEP && source_choice_steps_singly()))
    return true;
  hardware_probe(hardware_system_real(), &host);
  is_usable = source_is_usable(&host, is_auto ? SOURCE_PT : *kind, &reason, &advice);
  if (is_auto) {
    *kind = source_choose(&host);
    if (!is_quiet)
      message("source: %s%s%s%s", source_word(*kind), is_usable ? "" : " (pt: ", is_usable ? "" : reason,
              is_usable ? "" : ")");
    return true;
  }
  if (!is_usable)
    message("--source %s is not usable here: %s%s%s", source_word(*kind), reason, between(advice, "; "), advice);
  return is_usable;
}

int source_choice_complain(const char *program, int error, const struct source_problem *problem)
{
  if (*problem->text) {
    message("%s%s%s", problem->text, between(problem->advice, "; "), problem->advice);
    return PROGRAM_FAILURE;
  }
  message("%s: cannot execute: %s", program, strerror(-error));
  return error == -ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXECUTE;
}
