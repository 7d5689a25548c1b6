/* SPDX-License-Identifier: Apache-2.0
 *
 * The surroundings of the unit while a rule runs: memory, facts for lb_ds_check, symbols; and printing of the unit's
 * contents.
 */
#include <errno.h>
#include <string.h>

#include "sim/run.h"

#define SYMBOL_REACH (1u << 20)

/* ---- memory and facts ---- */

void run_memory(struct run *run, const struct statement *statement)
{
  int r = areas_add(&run->memory, statement->memory.address, statement->memory.size);

  if (r == -EEXIST)
    run_fail(run, statement, "it overlaps other memory");
  else if (r == LB_E_TOO_BIG)
    run_fail(run, statement, "too much memory: the maximum is %d pieces and 0x%x bytes", SIM_PIECES_MAX,
             SIM_MEMORY_MAX);
  else if (r < 0)
    run->error = r;
  for (unsigned i = 0; i < 2; i++)
    if (run->threads[i].is_made)
      lb_recorder_flush(&run->threads[i].recorder); /* the unit's pointers into the host's memory are out of date */
}

void run_poke(struct run *run, const struct statement *statement)
{
  unsigned size = statement->values.size, count = statement->values.count;
  unsigned char *bytes = areas_at(&run->memory, statement->values.address, (size_t)size * count);

  if (!bytes) {
    run_fail(run, statement, "no memory there");
    return;
  }
  for (unsigned i = 0; i < count; i++)
    areas_put(bytes + i * size, size, statement->values.values[i]);
}

static void fact_set(uint64_t *fact, uint64_t told)
{
  if (told != UINT64_MAX)
    *fact = told;
}

void run_facts(struct run *run, const struct statement *statement)
{
  fact_set(&run->facts.apic, statement->facts.apic);
  fact_set(&run->facts.lvt, statement->facts.lvt);
  fact_set(&run->facts.gate, statement->facts.gate);
  fact_set(&run->facts.a20, statement->facts.a20);
  fact_set(&run->facts.shared, statement->facts.shared);
}

void run_page(struct run *run, const struct statement *statement)
{
  if (pages_set(&run->pages, statement->memory.address, statement->memory.attributes) < 0)
    run_fail(run, statement, "more than %d pages", SIM_PAGES_MAX);
}

/* ---- symbols ---- */

void run_symbol(struct run *run, const struct statement *statement)
{
  if (run->symbol_count < SIM_SYMBOLS_MAX)
    run->symbols[run->symbol_count++] = statement;
  else
    run_fail(run, statement, "more than %d symbols", SIM_SYMBOLS_MAX);
}

bool run_find_symbol(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct run *run = data;
  const struct statement *nearest = NULL;

  for (size_t i = 0; i < run->symbol_count; i++) {
    const struct statement *symbol = run->symbols[i];

    if (symbol->symbol.address <= address && (!nearest || symbol->symbol.address > nearest->symbol.address))
      nearest = symbol;
  }
  if (!nearest || address - nearest->symbol.address >= SYMBOL_REACH)
    return false;
  *ret_name = nearest->symbol.name;
  *ret_offset = address - nearest->symbol.address;
  return true;
}

/* ---- printing ---- */

void run_banner(struct run *run, const struct statement *statement)
{
  run->windbg.banner = statement->text;
}

void run_version(struct run *run, const struct statement *statement)
{
  run->windbg.version = statement->text;
}

static int print_unit(struct run *run, const struct statement *statement, struct text *output)
{
  int r = report_print(output, &run->thread->recorder, (enum report_format)statement->print.format, &run->options);

  if (r < 0)
    run->error = r;
  return r;
}

void run_print(struct run *run, const struct statement *statement)
{
  struct text output = {0};

  if (run->watch && run->watch->print && print_unit(run, statement, &output) >= 0)
    run->watch->print(run->watch->data, statement->line, text_string(&output));
  text_done(&output);
}

/* Cuts off the next line of `text`; NULL at the end. */
static char *next_line(char **text)
{
  return *text && **text ? strsep(text, "\n") : NULL;
}

/* "..." among the expected lines: skips to the line that equals the next expected one. */
static char *skip_to(char **text, const char *expected)
{
  char *got;

  while ((got = next_line(text)))
    if (!strcmp(got, expected))
      return got;
  return NULL;
}

static void check_printed(struct run *run, const struct statement *statement, char *rest)
{
  bool is_any = false; /* the last expected line was "..." */
  char *got;

  for (size_t i = 0; i < statement->print.count; i++) {
    const struct printed *expected = &run->sim->printed[statement->print.first + i];

    if (!strcmp(expected->text, "...")) {
      is_any = true;
      continue;
    }
    got = is_any ? skip_to(&rest, expected->text) : next_line(&rest);
    if (!got || strcmp(got, expected->text)) {
      run_fail_line(run, expected->line, expected->text, got ? got : is_any ? "no such line" : "the end");
      return;
    }
    is_any = false;
  }
  got = is_any ? NULL : next_line(&rest);
  if (got)
    run_fail_line(run, statement->line, "the end", got);
}

void expect_print(struct run *run, const struct statement *statement)
{
  struct text output = {0};

  if (print_unit(run, statement, &output) >= 0)
    check_printed(run, statement, output.data);
  text_done(&output);
}
