/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr encode: the value of a register whose fields the user names; the way back from `lbr decode`. The value alone goes
 * to stdout, so that a script can take it; what a write of it would do wrong goes to stderr.
 */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/report.h"

#define WORD_MAX 64

struct arguments {
  const struct lb_cpu *cpu; /* NULL: choose one */
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

/* ---- fields ---- */

static int fields_list(struct text *text, const struct register_choice *choice)
{
  struct lb_field field;
  int r = 0;

  for (unsigned i = 0; r >= 0 && lb_cpu_field(choice->cpu, choice->id, i, &field) >= 0; i++)
    r = text_addf(text, "%s%s", i ? ", " : "", field.name);
  return r;
}

/* Says which fields there are, and which CPUs have the one that was meant. */
static void field_complain(const struct register_choice *choice, const char *register_name, const char *name)
{
  const struct cpudb_field_question question = {.id = choice->id, .name = name, .bit = -1};
  struct text fields = {0}, others = {0};
  int count;

  fields_list(&fields, choice);
  count = register_list_cpus(&others, cpudb_has_field, &question);
  if (count > 0)
    cli_error("%s has no field '%s' on %s, only on %s; its fields here: %s", register_name, name, choice->cpu->title,
              text_string(&others), text_string(&fields));
  else
    cli_error("%s has no field '%s'; its fields on %s: %s", register_name, name, choice->cpu->title,
              text_string(&fields));
  text_done(&fields);
  text_done(&others);
}

/* The value that a word gives its field. Returns 0; complains and returns negative if it cannot be. */
static int field_value(const struct lb_field *field, const char *value_text, uint64_t *ret_value)
{
  unsigned width = field->high - field->low + 1u;
  uint64_t value;
  int r;

  if (!value_text && width == 1) {
    *ret_value = 1;
    return 0;
  }
  if (!value_text) {
    cli_error("%s has %u bits: write %s=VALUE", field->name, width, field->name);
    return LB_E_BAD_SYNTAX;
  }
  r = number_parse(value_text, &value);
  if (r < 0) {
    cli_error("%s: '%s' is not a number of 64 bits", field->name, value_text);
    return r;
  }
  if (width < 64 && value >> width) {
    cli_error("%s=%s is too big: the field has %u bit%s, so at most 0x%llx", field->name, value_text, width,
              width == 1 ? "" : "s", (unsigned long long)(cpudb_field_mask(field) >> field->low));
    return LB_E_TOO_BIG;
  }
  *ret_value = value;
  return 0;
}

/* Adds one FIELD[=VALUE] to the value. `seen` are the bits of the fields that were named before. */
static int field_add(const struct register_choice *choice, const char *register_name, char *word, uint64_t *seen,
                     uint64_t *value)
{
  struct cpudb_field_question question = {.id = choice->id, .name = word, .bit = -1};
  char *equals = strchr(word, '=');
  struct lb_field field;
  uint64_t part;
  int r;

  if (equals)
    *equals = '\0';
  r = cpudb_field_find(choice->cpu, &question, &field);
  if (r < 0) {
    field_complain(choice, register_name, word);
    return r;
  }
  if (*seen & cpudb_field_mask(&field)) {
    cli_error("%s is named twice", field.name);
    return LB_E_BAD_SYNTAX;
  }
  r = field_value(&field, equals ? equals + 1 : NULL, &part);
  if (r < 0)
    return r;
  *seen |= cpudb_field_mask(&field);
  *value |= part << field.low;
  return 0;
}

/* Adds what stands between two commas. */
static int word_add(const struct register_choice *choice, const char *register_name, const char *start, size_t length,
                    uint64_t *seen, uint64_t *value)
{
  char word[WORD_MAX];

  if (length >= sizeof(word)) {
    cli_error("'%s' is too long for a field", start);
    return LB_E_TOO_BIG;
  }
  memcpy(word, start, length);
  word[length] = '\0';
  return field_add(choice, register_name, word, seen, value);
}

/* All words, each split at its commas. */
static int fields_add(const struct register_choice *choice, const char *register_name,
                      const struct arguments *arguments, uint64_t *ret_value)
{
  uint64_t seen = 0, value = 0;
  int r;

  for (int i = 0; i < arguments->count; i++) {
    const char *at = arguments->fields[i];

    do {
      size_t length = strcspn(at, ",");

      if (!length) {
        cli_error("'%s' lacks a field", arguments->fields[i]);
        return LB_E_BAD_SYNTAX;
      }
      r = word_add(choice, register_name, at, length, &seen, &value);
      if (r < 0)
        return r;
      at += length;
    } while (*at++ == ',');
  }
  *ret_value = value;
  return 0;
}

/* ---- what a write would do ---- */

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
  char name[WORD_MAX];
  uint64_t value = 0;
  int r;

  argp_parse(&encode_argp, argc, argv, 0, NULL, &arguments);
  if (register_choose(arguments.cpu, arguments.name, &choice) < 0)
    return CLI_FAILURE;
  lb_cpu_register_name(choice.cpu, choice.id, choice.number, name, sizeof(name));
  if (!arguments.cpu)
    cli_error("note: for %s (%s; --cpu chooses another)", choice.cpu->title, choice.chosen_by);
  r = fields_add(&choice, name, &arguments, &value);
  if (r < 0)
    return r == LB_E_BAD_SYNTAX || r == LB_E_BAD_NUMBER ? CLI_USAGE : CLI_FAILURE;
  printf("0x%llx\n", (unsigned long long)value);
  write_warn(&choice, name, value);
  return CLI_OK;
}
