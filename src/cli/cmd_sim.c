/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr sim: runs rule files on the recording unit of the CPUs that they name, or of one that the user names, and shows
 * the final contents of the unit and the failed expectations.
 */
#include <argp.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "sim/sim.h"

struct sim_arguments {
  struct sim_show_options show;
  char **files;
  int count;
  struct shared_options shared;
};

/* ---- the command line ---- */

static const struct argp_option options[] = {
  {"cpu", 'c', "NAME", 0, "Run on this CPU instead of those that the file names ('lbr cpu --list' shows all)", 0},
  {"format", 'f', "FORMAT", 0, "Show the unit as table (default), windbg, windbg-old or json", 0},
  {"check", 'k', NULL, 0, "Print only ok or FAIL for each file", 0},
  {"verbose", 'v', NULL, 0, "Show each statement and what it does", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_JSON, SHARED_OUTPUT, SHARED_COMMON, {0}};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct sim_arguments *arguments = state->input;

  switch (key) {
  case 'c':
    arguments->show.cpu = cli_option_cpu(argument);
    return 0;
  case 'f':
    arguments->show.format = option_format(argument, state);
    return 0;
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case ARGP_KEY_END:
    if (arguments->shared.is_json)
      arguments->show.format = REPORT_JSON;
    return 0;
  case 'k':
    arguments->show.is_check = true;
    return 0;
  case 'v':
    arguments->show.is_verbose = true;
    return 0;
  case ARGP_KEY_ARGS:
    arguments->files = state->argv + state->next;
    arguments->count = state->argc - state->next;
    return 0;
  case ARGP_KEY_NO_ARGS:
    argp_error(state, "name a rule file");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp sim_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE.rec...",
  .doc =
    "Run rule files on the recording unit of a processor and show what it holds.\vA FILE of - is standard input. Exit status: 0 if every expectation holds, 1 if not, 2 for a usage error. If --cpu names a CPU that the file was not written for, differences are shown, but count as a failure only with --check.",
  .children = children,
};

int cmd_sim(int argc, char **argv)
{
  struct sim_arguments arguments = {.show = {.format = REPORT_TABLE}};
  struct sim_show_options *show = &arguments.show;
  int status = CLI_OK;

  shared_options_init(&arguments.shared);
  argp_parse(&sim_argp, argc, argv, 0, NULL, &arguments);
  show->output = cli_output();
  show->notes = show->format == REPORT_JSON ? stderr : stdout; /* with JSON, stdout is only for the objects */
  show->has_several = arguments.count > 1;
  for (int i = 0; i < arguments.count; i++) {
    if (i > 0 && !show->is_check)
      fputc('\n', show->notes);
    if (!sim_show(show, arguments.files[i]))
      status = CLI_FAILURE;
  }
  return status;
}
