/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr lab: the experiments. Each is a small guest that is part of the program (labs/). It runs in a machine whose CPU
 * has the feature in question, prints the expected and the actual result, and reports its verdict through port 0xF4.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "machine/machine.h"
#include "report/report.h"
#include "session/session.h"

#define LAB(file, name, cpu, other, text) extern const uint8_t lab_##file[], lab_##file##_end[];
#include "cli/lab.def"
#undef LAB

struct lab {
  const char *name, *cpu, *other, *text; /* the CPU it runs on, and another for the tests */
  const uint8_t *first, *end;
};

static const struct lab lab_table[] = {
#define LAB(file, name, cpu, other, text) {name, cpu, other, text, lab_##file, lab_##file##_end},
#include "cli/lab.def"
#undef LAB
};

#define LAB_COUNT (sizeof(lab_table) / sizeof(lab_table[0]))

/* The value that a guest writes to port 0xF4. */
enum lab_verdict { LAB_AS_EXPECTED, LAB_DIFFERS, LAB_LACKING, LAB_VERDICTS };

static const char *const verdict_words[LAB_VERDICTS] = {"as expected", "different", "not on this CPU"};

struct lab_arguments {
  const struct lb_cpu *cpu; /* NULL for the lab's own */
  struct shared_options shared;
  const char *name; /* NULL, "list", "all" or the name of a lab */
};

/* ---- running ---- */

/* A limit for guests that go wrong; none of them needs more. */
#define LAB_INSTRUCTIONS_MAX 50000000

/* The text that the guest wrote, including rows beyond the screen. Returns 0 or -ENOMEM. */
static int screen_text(struct machine *machine, struct text *text)
{
  struct machine_screen screen = machine_screen_all(machine);

  for (unsigned row = 0; row < screen.rows; row++)
    if (machine_screen_row_text(&screen, row, text) < 0 || text_add(text, "\n") < 0)
      return -ENOMEM;
  return 0;
}

/* Returns an enum lab_verdict, or -1 after a message. */
static int lab_run(const struct lab *lab, const struct lb_cpu *cpu, struct text *text)
{
  struct machine_config config = {.model = cpu, .predictor = PREDICTOR_2BIT};
  struct machine_image image = {.bytes = lab->first, .size = (size_t)(lab->end - lab->first)};
  struct machine_limit limit = {.instructions = LAB_INSTRUCTIONS_MAX, .until_idle = true};
  struct machine *machine = NULL;
  const char *why = NULL;
  int verdict = -1;
  int error = machine_new(&config, NULL, &machine);

  if (error >= 0)
    error = machine_load_kernel(machine, &image, "", NULL, NULL, 0, &why);
  if (error < 0) {
    cli_error("lab %s on %s: %s", lab->name, cpu->name, why ? why : lb_strerror(error));
    machine_free(machine);
    return -1;
  }
  enum machine_stop stop = machine_run(machine, &limit);
  uint32_t value = stop == MACHINE_STOP_EXIT ? machine_exit_value(machine) : LAB_VERDICTS;
  if (screen_text(machine, text) < 0)
    cli_error("%s", lb_strerror(-ENOMEM));
  else if (value >= LAB_VERDICTS)
    cli_error("lab %s on %s did not end: %s", lab->name, cpu->name,
              *machine_stop_reason(machine) ? machine_stop_reason(machine) : "no verdict");
  else
    verdict = (int)value;
  machine_free(machine);
  return verdict;
}

/* ---- showing ---- */

static void print_list(void)
{
  for (size_t i = 0; i < LAB_COUNT; i++)
    printf("%-18s %-12s %s\n", lab_table[i].name, lab_table[i].cpu, lab_table[i].text);
}

static void print_list_json(void)
{
  struct page page;

  cli_page_open(&page, true, false);
  page_array(&page, "labs");
  for (size_t i = 0; i < LAB_COUNT; i++) {
    page_section(&page, NULL, NULL);
    page_put(&page, "name", lab_table[i].name);
    page_put(&page, "cpu", lab_table[i].cpu);
    page_put(&page, "also", lab_table[i].other);
    page_put(&page, "text", lab_table[i].text);
    page_section_end(&page);
  }
  page_array_end(&page);
  page_close(&page);
}

static void print_result_json(const struct lab *lab, const struct lb_cpu *cpu, int verdict, const struct text *text)
{
  struct page page;

  cli_page_open(&page, true, false);
  page_put(&page, "lab", lab->name);
  page_put(&page, "cpu", cpu->name);
  page_put(&page, "verdict", verdict < 0 ? "did not end" : verdict_words[verdict]);
  page_put(&page, "screen", text_string(text));
  page_close(&page);
}

/* Runs a lab and shows it. Returns false if it went wrong; `ret_verdict` gets its verdict. */
static bool lab_show(const struct lab_arguments *arguments, const struct lab *lab, int *ret_verdict)
{
  const struct lb_cpu *cpu = arguments->cpu;
  struct text text = {0};

  if (!cpu && cli_find_cpu(lab->cpu, &cpu) < 0)
    return false;
  *ret_verdict = lab_run(lab, cpu, &text);
  if (arguments->shared.is_json)
    print_result_json(lab, cpu, *ret_verdict, &text);
  else
    printf("on %s:\n%s", cpu->title, text_string(&text));
  text_done(&text);
  return *ret_verdict == LAB_AS_EXPECTED;
}

static int show_all(const struct lab_arguments *arguments)
{
  unsigned counts[LAB_VERDICTS + 1] = {0};

  for (size_t i = 0; i < LAB_COUNT; i++) {
    int verdict = -1;

    if (!arguments->shared.is_json)
      printf("%s---- %s: %s\n", i ? "\n" : "", lab_table[i].name, lab_table[i].text);
    lab_show(arguments, &lab_table[i], &verdict);
    counts[verdict < 0 ? LAB_VERDICTS : verdict]++;
  }
  if (!arguments->shared.is_json)
    printf("\n%u as expected, %u different, %u not on this CPU\n", counts[LAB_AS_EXPECTED],
           counts[LAB_DIFFERS] + counts[LAB_VERDICTS], counts[LAB_LACKING]);
  return counts[LAB_DIFFERS] + counts[LAB_VERDICTS] ? CLI_FAILURE : CLI_OK;
}

static int show_one(const struct lab_arguments *arguments)
{
  for (size_t i = 0; i < LAB_COUNT; i++) {
    int verdict = -1;

    if (!strcmp(lab_table[i].name, arguments->name))
      return lab_show(arguments, &lab_table[i], &verdict) ? CLI_OK : CLI_FAILURE;
  }
  cli_error("no lab '%s'; 'lbr lab list' lists the labs", arguments->name);
  return CLI_USAGE;
}

/* ---- the command ---- */

static const struct argp_child children[] = {SHARED_JSON, SHARED_OUTPUT, SHARED_COMMON, {0}};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
  struct lab_arguments *arguments = state->input;

  switch (key) {
  case 'c':
    arguments->cpu = cli_option_cpu(value);
    return 0;
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case ARGP_KEY_ARG:
    if (arguments->name)
      argp_error(state, "name one lab: '%s' is too many", value);
    arguments->name = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
  {"cpu", 'c', "NAME", 0, "Run on this CPU instead of the one that the experiment was written for", 0},
  {0},
};

const struct argp lab_argp = {
  .options = options,
  .parser = parse_option,
  .args_doc = "[list | all | NAME]",
  .doc = "Run experiments with branch recording in a modelled PC. Without an argument, list them.",
  .children = children,
};

int cmd_lab(int argc, char **argv)
{
  struct lab_arguments arguments = {0};

  shared_options_init(&arguments.shared);
  if (argp_parse(&lab_argp, argc, argv, 0, NULL, &arguments))
    return CLI_USAGE;
  if (!arguments.name || !strcmp(arguments.name, "list")) {
    if (arguments.shared.is_json)
      print_list_json();
    else
      print_list();
    return CLI_OK;
  }
  return strcmp(arguments.name, "all") ? show_one(&arguments) : show_all(&arguments);
}
