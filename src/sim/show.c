/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows a rule file: reads it, runs it on the CPUs that it names or on the user's choice, and writes the final contents
 * of the unit and the failed expectations to the output.
 */
#include "sim/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sim/sim.h"

/* The state of showing one file. */
struct sim_show {
  const struct sim_show_options *options;
  const char *file;
  FILE *out;
  int error;
};

/* ---- reading ---- */

/* Reads a file of at most SIM_BYTES_MAX bytes, and one more to detect a longer one. Returns 0, or -errno. */
static int stream_read(FILE *stream, char **ret_text, size_t *ret_size)
{
  char *text = malloc(SIM_BYTES_MAX + 1);
  size_t size;

  if (!text)
    return -ENOMEM;
  errno = 0;
  size = fread(text, 1, SIM_BYTES_MAX + 1, stream);
  if (ferror(stream)) {
    free(text);
    return errno ? -errno : -EIO;
  }
  *ret_text = text;
  *ret_size = size;
  return 0;
}

static int file_read(const char *name, char **ret_text, size_t *ret_size)
{
  FILE *stream;
  int r;

  if (!strcmp(name, "-"))
    return stream_read(stdin, ret_text, ret_size);
  stream = fopen(name, "re");
  if (!stream)
    return -errno;
  r = stream_read(stream, ret_text, ret_size);
  fclose(stream);
  return r;
}

static const char *file_name(const char *name)
{
  return strcmp(name, "-") ? name : "stdin";
}

/* The failed statement, without its first word `expect`. */
static const char *expected_text(const struct sim_failure *failure)
{
  return failure->expected + (strncmp(failure->expected, "expect ", 7) == 0 ? 7 : 0);
}

/* Reports an error in the right place: with --check, to stdout for every file. */
static void file_complain(const struct sim_show_options *options, const char *file, unsigned line, const char *text)
{
  char place[32] = "";

  if (line)
    snprintf(place, sizeof(place), "line %u: ", line);
  if (options->is_check)
    fprintf(options->output.file, "FAIL %s: %s%s\n", file, place, text);
  else
    message("%s: %s%s", file, place, text);
}

/* Returns 0, or negative after a message. */
static int file_parse(const struct sim_show_options *options, const char *name, struct sim **ret_sim)
{
  struct sim_error error = {0};
  char *text = NULL;
  size_t size = 0;
  int r = file_read(name, &text, &size);

  if (r >= 0)
    r = sim_parse(text, size, &error, ret_sim);
  free(text);
  if (r < 0)
    file_complain(options, file_name(name), error.line, *error.text ? error.text : lb_strerror(r));
  return r;
}

/* ---- showing ---- */

static void show_step(void *data, unsigned line, const char *statement, const char *effect)
{
  const struct sim_show *show = data;

  fprintf(show->out, "%5u  %s\n", line, statement);
  if (*effect)
    fprintf(show->out, "         -> %s\n", effect);
}

static void show_print(void *data, unsigned line, const char *output)
{
  const struct sim_show *show = data;

  (void)line;
  fputs(output, show->out);
}

static void show_end(void *data, unsigned thread, const struct lb_recorder *recorder,
                     const struct report_options *options)
{
  struct sim_show *show = data;
  struct report_options mine = *options;
  struct text text = {0};
  int r;

  mine.wants_color = show->options->output.wants_color;
  r = report_print(&text, recorder, show->options->format, &mine);
  if (r < 0)
    show->error = r;
  if (thread)
    fprintf(show->out, "thread %u:\n", thread);
  fputs(text_string(&text), show->options->output.file);
  text_done(&text);
}

static void show_failures(const struct sim_show *show, const struct sim_result *result)
{
  for (size_t i = 0; i < result->count; i++) {
    const struct sim_failure *failure = &result->failures[i];
    char line[16] = "";

    if (failure->line)
      snprintf(line, sizeof(line), ":%u", failure->line);
    fprintf(show->out, "%s%s: expected: %s\n", show->file, line, expected_text(failure));
    fprintf(show->out, "%*s       got: %s\n", (int)(strlen(show->file) + strlen(line)), "", failure->got);
  }
  if (result->is_cut)
    fprintf(show->out, "%s: further expectations failed\n", show->file);
}

/* ---- running ---- */

/* A run returns the number of failed expectations, or negative after a message. */
typedef int run_function(const struct sim_show_options *options, const struct sim *sim, const struct lb_cpu *cpu,
                         const char *file);

/* Prints only the first failure: one line for each file. */
static int check_cpu(const struct sim_show_options *options, const struct sim *sim, const struct lb_cpu *cpu,
                     const char *file)
{
  struct sim_result result = {0};
  int r = sim_run(sim, cpu, NULL, &result);

  if (r < 0) {
    file_complain(options, file, 0, lb_strerror(r));
    return r;
  }
  if (result.count) {
    const struct sim_failure *first = &result.failures[0];
    struct text text = {0};

    r = text_addf(&text, "on %s, expected: %s; got: %s", cpu->name, expected_text(first), first->got);
    file_complain(options, file, first->line, r < 0 ? lb_strerror(r) : text_string(&text));
    text_done(&text);
  }
  r = (int)result.count;
  sim_result_done(&result);
  return r;
}

static int show_cpu(const struct sim_show_options *options, const struct sim *sim, const struct lb_cpu *cpu,
                    const char *file)
{
  struct sim_show show = {.options = options, .file = file, .out = options->notes};
  struct sim_watch watch = {.data = &show, .print = show_print, .end = show_end};
  struct sim_result result = {0};
  int r, count;

  if (options->is_verbose)
    watch.step = show_step;
  fprintf(show.out, "\non %s:\n", cpu->name);
  r = sim_run(sim, cpu, &watch, &result);
  if (r >= 0)
    r = show.error;
  if (r < 0) {
    file_complain(options, file, 0, lb_strerror(r));
    return r;
  }
  count = (int)result.count;
  if (count)
    show_failures(&show, &result);
  else if (sim_expectations(sim, cpu))
    fprintf(show.out, "expectations: %zu, all hold\n", sim_expectations(sim, cpu));
  sim_result_done(&result);
  return count;
}

static bool is_for(const struct sim *sim, const struct lb_cpu *cpu)
{
  const struct lb_cpu *one;

  for (size_t i = 0; (one = sim_cpu_at(sim, i)); i++)
    if (one == cpu)
      return true;
  return false;
}

/* With several files, each has a title. */
static void show_title(const struct sim_show_options *options, const struct sim *sim, const char *file)
{
  FILE *out = options->notes;
  const char *title = sim_title(sim);

  if (!*title || options->has_several)
    fprintf(out, "%s%s", file, *title ? ": " : "");
  fprintf(out, "%s\n", title);
  if (options->is_verbose && *sim_source(sim))
    fprintf(out, "source: %s\n", sim_source(sim));
  if (options->cpu && sim_cpu_at(sim, 0) && !is_for(sim, options->cpu))
    fprintf(out, "the file was written for other CPUs, not for %s: its expectations may not hold\n",
            options->cpu->name);
}

/* Runs the file on its CPUs or on the user's; --check stops at the first that fails. */
static int file_run(const struct sim_show_options *options, const struct sim *sim, const char *file)
{
  run_function *run = options->is_check ? check_cpu : show_cpu;
  const struct lb_cpu *cpu;
  int failures = 0;

  if (!options->cpu && !sim_cpu_at(sim, 0)) {
    file_complain(options, file, 0, "the file names no CPU; name one with --cpu");
    return LB_E_NO_CPU;
  }
  if (!options->is_check)
    show_title(options, sim, file);
  if (options->cpu)
    return run(options, sim, options->cpu, file);
  for (size_t i = 0; (cpu = sim_cpu_at(sim, i)); i++) {
    int r = run(options, sim, cpu, file);

    if (r < 0 || (r > 0 && options->is_check))
      return r;
    failures += r;
  }
  return failures;
}

/* On a CPU that the file does not name, differences are what the user wants to see. They are failures only with
 * --check. */
static bool failures_count(const struct sim_show_options *options, const struct sim *sim)
{
  return options->is_check || !options->cpu || !sim_cpu_at(sim, 0) || is_for(sim, options->cpu);
}

bool sim_show(const struct sim_show_options *options, const char *name)
{
  const char *file = file_name(name);
  struct sim *sim = NULL;
  bool is_good;
  int failures;

  if (file_parse(options, name, &sim) < 0)
    return false;
  failures = file_run(options, sim, file);
  is_good = failures == 0 || (failures > 0 && !failures_count(options, sim));
  if (failures == 0 && options->is_check)
    fprintf(options->output.file, "ok %s\n", file);
  sim_free(sim);
  return is_good;
}
