/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of the options of `lbr machine`.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/machine_options.h"
#include "lastbranch/recorder.h"

unsigned machine_option_word(const char *name, const char *argument, const char *const *words, struct argp_state *state)
{
  struct text list = {0};

  for (unsigned i = 0; words[i]; i++)
    if (!strcmp(words[i], argument))
      return i;
  for (unsigned i = 0; words[i]; i++)
    text_addf(&list, "%s%s", i ? ", " : "", words[i]);
  argp_error(state, "--%s wants one of %s, not '%s'", name, text_string(&list), argument);
  return 0;
}

uint64_t machine_option_number(const char *name, const char *argument, uint64_t least, uint64_t most,
                               struct argp_state *state)
{
  uint64_t value;

  if (number_parse(argument, &value) < 0 || argument[0] == '-')
    argp_error(state, "%s wants a number, not '%s'", name, argument);
  else if (value < least || value > most)
    argp_error(state, "%s wants a number from %llu to %llu, not '%s'", name, (unsigned long long)least,
               (unsigned long long)most, argument);
  else
    return value;
  return least;
}

static double seconds_option(const char *argument, struct argp_state *state)
{
  char *end;
  double value;

  errno = 0;
  value = strtod(argument, &end);
  if (end == argument || *end || errno || !isfinite(value) || value <= 0 || value > 1e9)
    argp_error(state, "--until seconds= wants a number of seconds, not '%s'", argument);
  return value;
}

void machine_option_until(struct machine_arguments *arguments, const char *argument, struct argp_state *state)
{
  if (!strcmp(argument, "idle"))
    arguments->until_idle = true;
  else if (!strcmp(argument, "halt"))
    arguments->until_halt = true;
  else if (!strncmp(argument, "insns=", 6))
    arguments->until_instructions = machine_option_number("--until insns=", argument + 6, 1, UINT64_MAX, state);
  else if (!strncmp(argument, "seconds=", 8))
    arguments->until_seconds = seconds_option(argument + 8, state);
  else if (!strncmp(argument, "text=", 5) && argument[5])
    arguments->until_text = argument + 5;
  else
    argp_error(state, "--until wants idle, halt, insns=N, seconds=S or text=STRING, not '%s'", argument);
}

void machine_option_dump(struct machine_show *show, const char *argument, struct argp_state *state)
{
  static const char *const words[] = {"lbr", "ds", "bts", "pebs", "regs", "msrs", NULL};
  char *copy = strdup(argument), *rest = copy, *word;

  while ((word = strsep(&rest, ",")))
    show->dumps |= 1u << machine_option_word("dump", word, words, state);
  free(copy);
}

void machine_option_recorder(struct machine_arguments *arguments, const char *argument, struct argp_state *state)
{
  int option = lb_option_find(argument);
  struct text list = {0};

  if (option >= 0) {
    arguments->recorder_options |= UINT32_C(1) << option;
    return;
  }
  for (unsigned i = 0; lb_option_name(i); i++)
    text_addf(&list, "%s%s", i ? ", " : "", lb_option_name(i));
  argp_error(state, "no option '%s'; the options are %s", argument, text_string(&list));
}

void machine_option_flat(struct machine_arguments *arguments, const char *argument, struct argp_state *state)
{
  const char *at = strrchr(argument, '@');

  if (!at || at == argument)
    argp_error(state, "--flat wants FILE@ADDRESS, such as boot.bin@0x7c00, not '%s'", argument);
  free(arguments->flat);
  arguments->flat = at ? strndup(argument, (size_t)(at - argument)) : NULL;
  arguments->flat_address = at ? machine_option_number("the address of --flat", at + 1, 0, UINT64_MAX, state) : 0;
}

void machine_option_module(struct machine_arguments *arguments, const char *argument, struct argp_state *state)
{
  if (arguments->module_count == MODULES_MAX)
    argp_error(state, "--initrd can be given at most %d times", MODULES_MAX);
  else
    arguments->modules[arguments->module_count++] = argument;
}
