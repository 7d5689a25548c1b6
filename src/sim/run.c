/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the statements of a rule file on one CPU and collects the failures.
 */
#include "sim/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ---- */

/* The statement's text, without its comment and outer blanks. The caller frees it; NULL without memory. */
static char *statement_text(const struct run *run, const struct statement *statement)
{
  const char *line = run->sim->lines[statement->line - 1], *end;

  line += strspn(line, " \t");
  for (end = line; *end; end++)
    if (*end == '#' && strchr(" \t", end[-1]) && !verb_is_text(statement->verb))
      break;
  while (end > line && strchr(" \t", end[-1]))
    end--;
  return strndup(line, (size_t)(end - line));
}

/* Takes ownership of both strings, which may be NULL if memory ran out. */
static void add_failure(struct run *run, unsigned line, char *expected, char *got)
{
  struct sim_result *result = &run->result;

  if (!expected || !got)
    run->error = -ENOMEM;
  result->is_cut |= result->count == SIM_FAILURES_MAX;
  if (run->error < 0 || result->is_cut) {
    free(expected);
    free(got);
    return;
  }
  result->failures[result->count++] = (struct sim_failure){line, expected, got};
}

void run_fail(struct run *run, const struct statement *statement, const char *format, ...)
{
  va_list list;
  char *got = NULL;

  va_start(list, format);
  if (vasprintf(&got, format, list) < 0)
    got = NULL;
  va_end(list);
  if (got)
    run_note(run, "not so: %s", got);
  add_failure(run, statement->line, statement_text(run, statement), got);
}

void run_fail_line(struct run *run, unsigned line, const char *expected, const char *got)
{
  run_note(run, "not so: %s", got);
  add_failure(run, line, strdup(expected), strdup(got));
}

void run_note(struct run *run, const char *format, ...)
{
  va_list list;

  if (!run->watch || !run->watch->step || run->error < 0)
    return;
  if (run->effect.length)
    run->error = text_add(&run->effect, "; ");
  va_start(list, format);
  if (run->error >= 0)
    run->error = text_addv(&run->effect, format, list);
  va_end(list);
}

/* ---- reports to an observer ---- */

/* The newest record, to see whether a statement changed it. */
struct glance {
  struct lb_record newest;
  bool has_newest;
  uint64_t stored, lost;
};

static struct glance glance_take(const struct run *run)
{
  struct lb_messages messages = lb_recorder_messages(&run->thread->recorder);
  struct glance glance = {.stored = messages.stored, .lost = messages.lost};

  glance.has_newest = lb_recorder_entry(&run->thread->recorder, 0, &glance.newest) >= 0;
  return glance;
}

static bool record_differs(const struct lb_record *one, const struct lb_record *other)
{
  return one->index != other->index || one->raw.from != other->raw.from || one->raw.to != other->raw.to ||
         one->raw.info != other->raw.info;
}

static void note_changes(struct run *run, const struct glance *before)
{
  struct glance after = glance_take(run);

  if (after.has_newest && record_differs(&before->newest, &after.newest)) {
    if (after.newest.is_empty)
      run_note(run, "newest record: %u, empty", after.newest.index);
    else
      run_note(run, "newest record: %u, 0x%llx -> 0x%llx", after.newest.index, (unsigned long long)after.newest.from,
               (unsigned long long)after.newest.to);
  }
  if (after.stored > before->stored)
    run_note(run, "stored in the BTS buffer");
  if (after.lost > before->lost)
    run_note(run, "lost");
}

static void run_statement_watched(struct run *run, const struct statement *statement)
{
  struct glance before = glance_take(run);
  struct thread *thread = run->thread;
  char *text;

  run->effect.length = 0;
  if (run->effect.data)
    run->effect.data[0] = '\0';
  statement->verb->run(run, statement);
  if (run->thread == thread)
    note_changes(run, &before);
  text = statement_text(run, statement);
  if (text)
    run->watch->step(run->watch->data, statement->line, text, text_string(&run->effect));
  else
    run->error = -ENOMEM;
  free(text);
}

/* ---- the run ---- */

static int run_prepare(struct run *run)
{
  run->index = cpu_index(run->cpu);
  run->facts = (struct told_facts){.apic = 1, .lvt = 0xFE, .gate = 0xE};
  run->windbg.family = run->sim->models[run->index].family;
  run->windbg.model = run->sim->models[run->index].model;
  run->report_symbols = (struct report_symbols){run, run_find_symbol};
  run->options = (struct report_options){.symbols = &run->report_symbols, .windbg = &run->windbg};
  run->threads[0].run = run->threads[1].run = run;
  run->thread = &run->threads[0];
  run->result.failures = calloc(SIM_FAILURES_MAX, sizeof(*run->result.failures));
  if (!run->result.failures)
    return -ENOMEM;
  return thread_make(run->thread, run->has_map);
}

static int run_all(struct run *run)
{
  bool is_watched = run->watch && run->watch->step;

  run->error = run_prepare(run);
  for (size_t i = 0; i < run->sim->count && run->error >= 0; i++) {
    const struct statement *statement = &run->sim->statements[i];

    if (!statement_is_for(statement, run->index))
      continue;
    if (is_watched)
      run_statement_watched(run, statement);
    else
      statement->verb->run(run, statement);
  }
  return run->error;
}

static void run_end(const struct run *run)
{
  if (!run->watch || !run->watch->end)
    return;
  for (unsigned i = 0; i < 2; i++)
    if (run->threads[i].is_made)
      run->watch->end(run->watch->data, i, &run->threads[i].recorder, &run->options);
}

static struct run *run_new(const struct sim *sim, const struct lb_cpu *cpu, bool has_map, const struct sim_watch *watch)
{
  struct run *run = calloc(1, sizeof(*run));

  if (run) {
    run->sim = sim;
    run->cpu = cpu;
    run->has_map = has_map;
    run->watch = watch;
  }
  return run;
}

static void run_free(struct run *run)
{
  if (!run)
    return;
  sim_result_done(&run->result);
  text_done(&run->effect);
  areas_done(&run->memory);
  for (unsigned i = 0; i < 2; i++)
    thread_done(&run->threads[i]);
  free(run);
}

int sim_run(const struct sim *sim, const struct lb_cpu *cpu, const struct sim_watch *watch,
            struct sim_result *ret_result)
{
  struct run *run = run_new(sim, cpu, true, watch);
  struct run *other = run_new(sim, cpu, false, NULL);
  int r = run && other ? run_all(run) : -ENOMEM;

  if (r >= 0)
    r = run_all(other);
  if (r < 0)
    goto out;
  run_compare(run, other);
  r = run->error;
  if (r < 0)
    goto out;
  run_end(run);
  *ret_result = run->result;
  run->result = (struct sim_result){0};

out:
  run_free(other);
  run_free(run);
  return r;
}

void sim_result_done(struct sim_result *result)
{
  for (size_t i = 0; i < result->count; i++) {
    free(result->failures[i].expected);
    free(result->failures[i].got);
  }
  free(result->failures);
  *result = (struct sim_result){0};
}

/* ---- queries about a file ---- */

const char *sim_title(const struct sim *sim)
{
  return sim->title;
}

const char *sim_source(const struct sim *sim)
{
  return sim->source;
}

size_t sim_expectations(const struct sim *sim, const struct lb_cpu *cpu)
{
  size_t index = cpu_index(cpu), count = 0;

  for (size_t i = 0; i < sim->count; i++)
    count += statement_is_for(&sim->statements[i], index) && verb_is_expect(sim->statements[i].verb);
  return count;
}
