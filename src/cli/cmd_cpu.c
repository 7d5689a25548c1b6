/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr cpu: this machine (cpu_host.c), a CPU of the catalogue in full (cpu_profile.c), or the list of all.
 */
#include <argp.h>
#include <limits.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "hardware/hardware.h"
#include "report/report.h"

struct arguments {
  const char *name;
  bool wants_list, wants_names;
  struct shared_options shared;
};

static const struct argp_option options[] = {
  {"list", 'l', NULL, 0, "List the CPUs of the catalogue", 0},
  {"names", 'n', NULL, 0, "List only the names of the CPUs, one per line", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_JSON, SHARED_OUTPUT, SHARED_COMMON, {0}};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct arguments *arguments = state->input;

  switch (key) {
  case 'l':
    arguments->wants_list = true;
    break;
  case 'n':
    arguments->wants_names = true;
    break;
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    break;
  case ARGP_KEY_ARG:
    if (arguments->name)
      argp_error(state, "one CPU at a time");
    arguments->name = argument;
    break;
  case ARGP_KEY_END:
    if (arguments->name && (arguments->wants_list || arguments->wants_names))
      argp_error(state, "either a list or one CPU");
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

const struct argp cpu_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "[NAME]",
  .doc =
    "Show what this machine can record and what of it is usable from here. With NAME, show the catalogue entry of that CPU: a name from --list, an alias, or DisplayFamily_DisplayModel in hexadecimal (06_8E).",
  .children = children,
};

static void names_print(bool wants_json)
{
  const struct lb_cpu *cpu;
  struct page page;

  cli_page_open(&page, wants_json, false);
  if (wants_json)
    page_list(&page, "names");
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    if (wants_json)
      page_item(&page, "%s", cpu->name);
    else
      puts(cpu->name);
  if (wants_json)
    page_list_end(&page);
  page_close(&page);
}

static void list_row(struct page *page, const struct lb_cpu *cpu)
{
  page_row(page, false);
  page_put(page, "name", cpu->name);
  page_put(page, "title", cpu->title);
  page_put(page, "class", cpu->lbr ? cpu->lbr->name : NULL);
  page_put_number(page, "entries", lb_cpu_depth(cpu));
  cpu_page_lbr_fmt(page, cpu);
  page_put_number(page, "pmu_version", cpu->pmu->version);
  cpu_page_models(page, cpu);
  if (page->is_json) {
    page_put(page, "format", cpu->lbr ? lb_format_text(cpu->format) : NULL);
    cpu_page_aliases(page, cpu);
  }
  page_row_end(page);
}

static void list_print(bool wants_json)
{
  static const struct page_column columns[] = {{"name", 17},   {"title", 54}, {"class", 8},  {"entries", 7},
                                               {"LBR_FMT", 7}, {"PMU", 3},    {"models", 0}, {NULL, 0}};
  const struct lb_cpu *cpu;
  struct page page;

  cli_page_open(&page, wants_json, cli_wants_color());
  page.width = INT_MAX; /* one CPU per line, for grep */
  page_table(&page, "cpus", columns);
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    list_row(&page, cpu);
  page_table_end(&page);
  page_close(&page);
}

static void host_print(bool wants_json)
{
  struct hardware_host host;
  struct page page;

  hardware_probe(hardware_system_real(), &host);
  cli_page_open(&page, wants_json, cli_wants_color());
  cpu_page_host(&page, &host);
  page_close(&page);
}

static void profile_print(const struct lb_cpu *cpu, bool wants_json)
{
  struct page page;

  cli_page_open(&page, wants_json, cli_wants_color());
  cpu_page_profile(&page, cpu);
  page_close(&page);
}

int cmd_cpu(int argc, char **argv)
{
  struct arguments arguments = {0};
  const struct lb_cpu *cpu;

  argp_parse(&cpu_argp, argc, argv, 0, NULL, &arguments);
  if (arguments.wants_names)
    names_print(arguments.shared.is_json);
  else if (arguments.wants_list)
    list_print(arguments.shared.is_json);
  else if (!arguments.name)
    host_print(arguments.shared.is_json);
  else if (cli_find_cpu(arguments.name, &cpu) < 0)
    return CLI_FAILURE;
  else
    profile_print(cpu, arguments.shared.is_json);
  return CLI_OK;
}
