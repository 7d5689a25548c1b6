/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule files from a stranger: whatever the bytes are, parsing and running them must end without a crash, with an error
 * or a list of failures. Everything that can be printed is printed.
 */
#include <stdint.h>
#include <stdlib.h>

#include "report/report.h"
#include "sim/sim.h"

#define CPUS_MAX 3 /* a file for all CPUs would take too long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void watch_step(void *data, unsigned line, const char *statement, const char *effect)
{
  (void)data;
  if (!line || !*statement || !effect)
    abort();
}

static void watch_print(void *data, unsigned line, const char *output)
{
  (void)data;
  if (!line || !*output)
    abort();
}

static void watch_end(void *data, unsigned thread, const struct lb_recorder *recorder,
                      const struct report_options *options)
{
  (void)data;
  (void)thread;
  for (unsigned format = 0; format < REPORT_FORMATS; format++) {
    struct text text = {0};

    if (report_print(&text, recorder, (enum report_format)format, options) < 0)
      abort();
    text_done(&text);
  }
}

static void run_on(const struct sim *sim, const struct lb_cpu *cpu)
{
  struct sim_watch watch = {.step = watch_step, .print = watch_print, .end = watch_end};
  struct sim_result result;

  if (sim_run(sim, cpu, &watch, &result) < 0)
    return;
  for (size_t i = 0; i < result.count; i++)
    if (result.failures[i].line == 0)
      abort(); /* host.map made a difference */
  sim_result_done(&result);
}

/* An error says something, and no word of it is cut in the middle of a letter. */
static void check_error(const struct sim_error *error)
{
  if (!*error->text)
    abort();
  for (const char *c = error->text; *c; c += utf8_size(c))
    if (!utf8_size(c))
      abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct sim_error error = {0};
  const struct lb_cpu *cpu;
  struct sim *sim;
  int r = sim_parse((const char *)data, size, &error, &sim);

  if (r == LB_E_BAD_SYNTAX || r == LB_E_TOO_BIG)
    check_error(&error);
  if (r < 0)
    return 0;
  for (size_t i = 0; i < CPUS_MAX && (cpu = sim_cpu_at(sim, i)); i++)
    run_on(sim, cpu);
  if (!sim_cpu_at(sim, 0))
    run_on(sim, lb_cpu_at(0));
  sim_free(sim);
  return 0;
}
