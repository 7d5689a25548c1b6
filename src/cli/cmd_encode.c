/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr encode: computes the value of a register from named fields, the inverse of `lbr decode`. Only the value goes to
 * stdout, for scripts; warnings about writing the value go to stderr.
 */
#include <argp.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "report/report.h"

#define NAME_SIZE 64

struct arguments {
  const struct lb_cpu *cpu; /* NULL to choose one */
  const char *name;
  char **fields; /* words of the command line, each with one or more fields */
  int count;
};

static const struct argp_option options[] = {
  {"cpu", 'c', "NAME", 0, "CPU whose register it is (default: this machine's if it has the register, else skylake)", 0},
  {0},
};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct arguments *arguments = state->input;

  switch (key) {
  case 'c':
    arguments->cpu = cli_option_cpu(argument);
    break;
  case ARGP_KEY_ARG:
    if (arguments->name)
      return ARGP_ERR_UNKNOWN; /* the fields come next, all at once */
    arguments->name = argument;
    break;
  case ARGP_KEY_ARGS:
    arguments->fields = state->argv + state->next;
    arguments->count = state->argc - state->next;
    break;
  case ARGP_KEY_END:
    if (!arguments->count)
      argp_error(state, "name a register and its fields");
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

const struct argp encode_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "REGISTER FIELD[=VALUE],...",
  .doc =
    "Print the value of a register with the named fields set, all others 0. A FIELD of one bit needs no VALUE. Case does "
    "not matter. 'lbr decode REGISTER 0' shows the fields.",
  .children = shared_only_common,
};

/* ---- the effect of a write ---- */

static void fault_warn(const struct register_choice *choice, const char *register_name, uint64_t value)
{
  const char *reason = register_fault_reason(choice);
  char bits[32];

  snprintf(bits, sizeof(bits), "bits 0x%llx", (unsigned long long)register_faulting_bits(choice, value));
  cli_error("warning: WRMSR of this value to %s gives #GP on %s: %s", register_name, choice->cpu->title,
            reason ? reason : bits);
}

static void write_warn(const struct register_choice *choice, const char *register_name, uint64_t value)
{
  uint64_t got = 0;

  switch (register_try_write(choice, value, &got)) {
  case WRITE_FAULTS:
    fault_warn(choice, register_name, value);
    break;
  case WRITE_READ_ONLY:
    cli_error("warning: %s is read-only on %s: WRMSR gives #GP", register_name, choice->cpu->title);
    break;
  case WRITE_CHANGED:
    cli_error("note: after WRMSR, %s reads back as 0x%llx on %s", register_name, (unsigned long long)got,
              choice->cpu->title);
    break;
  case WRITE_KEPT:
  case WRITE_UNKNOWN:
    break;
  }
}

int cmd_encode(int argc, char **argv)
{
  struct arguments arguments = {0};
  struct register_choice choice;
  char name[NAME_SIZE];
  uint64_t value = 0;
  int r;

  argp_parse(&encode_argp, argc, argv, 0, NULL, &arguments);
  if (register_choose(arguments.cpu, arguments.name, &choice) < 0)
    return CLI_FAILURE;
  lb_cpu_register_name(choice.cpu, choice.id, choice.number, name, sizeof(name));
  if (!arguments.cpu)
    cli_error("note: for %s (%s; --cpu chooses another)", choice.cpu->title, choice.chosen_by);
  r = register_encode(&choice, name, arguments.fields, arguments.count, &value);
  if (r < 0)
    return r == LB_E_BAD_SYNTAX || r == LB_E_BAD_NUMBER ? CLI_USAGE : CLI_FAILURE;
  printf("0x%llx\n", (unsigned long long)value);
  write_warn(&choice, name, value);
  return CLI_OK;
}
