/* SPDX-License-Identifier: Apache-2.0
 *
 * The sources that are events of perf_event_open(2), as a source. With AUX data, new threads and processes are also
 * watched with ptrace(2), to give them their marks (perf_mark.c) before they run. The same is done if the caller wants
 * to know how processes die. This costs time only when a thread starts and when signals arrive.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "source/perf.h"
#include "source/source_inside.h"

struct perf_source {
  struct perf_session session;
  bool has_aux, is_watching;
  struct watch watch;
  int error; /* of a step: recording has stopped */
};

static struct pt_model model_find(void)
{
  const struct hardware_system *system = hardware_system_real();
  uint32_t words[4], signature;

  system->cpuid(system->data, 0, 0, words);
  if (memcmp(&words[1], "Genu", 4) != 0)
    return (struct pt_model){0};
  system->cpuid(system->data, 1, 0, words);
  signature = words[0];
  return (struct pt_model){.is_intel = true,
                           .family = (signature >> 8 & 15) + (signature >> 20 & 255),
                           .model = (signature >> 4 & 15) | (signature >> 12 & 0xF0),
                           .stepping = signature & 15};
}

static int perf_attach(struct source *source, struct source_problem *ret_problem)
{
  struct perf_source *perf = calloc(1, sizeof(*perf));
  int process = (int)source->state.process, r;

  if (!perf) {
    snprintf(ret_problem->text, sizeof(ret_problem->text), "no memory");
    return -ENOMEM;
  }
  source->data = perf;
  perf->watch = (struct watch){.bell = -1, .wants_handlers = source->options.kind == SOURCE_BTS};
  perf->has_aux = source->options.kind == SOURCE_BTS || source->options.kind == SOURCE_PT;
  perf->session.kernel = source->kernel;
  perf->session.kind = source->options.kind;
  perf->session.tasks = source->tasks;
  perf->session.model = model_find();
  r = perf_session_open(&perf->session, process, &source->options, ret_problem);
  if (r >= 0 && (source->options.wants_deaths || perf->has_aux) && source->kernel->is_traceable)
    perf->is_watching = watch_attach(&perf->watch, process) >= 0; /* without it, less is known */
  return r;
}

/* Handles stopped threads first, because they wait for us, but reads the rings now and then. Returns whether a thread
 * has stopped. */
static bool step_wait(struct perf_source *perf, unsigned milliseconds)
{
  const struct source_kernel *kernel = perf->session.kernel;

  perf_session_wait(&perf->session, milliseconds, perf->watch.bell);
  return watch_has_rung(&perf->watch) &&
         kernel->clock(kernel->data) - perf->session.before < milliseconds * UINT64_C(1000000);
}

static int perf_step(struct source *source, unsigned milliseconds, bool is_all)
{
  struct perf_source *perf = source->data;

  if (milliseconds && (perf->watch.bell >= 0 || perf->error < 0)) {
    if (step_wait(perf, milliseconds))
      return perf->error;
    milliseconds = 0;
  }
  if (perf->error >= 0)
    perf->error = perf_session_step(&perf->session, milliseconds, is_all);
  return perf->error;
}

static void perf_waited(struct source *source, int process, int status)
{
  struct perf_source *perf = source->data;

  if (!WIFSTOPPED(status))
    perf_mark_drop(&perf->session, process);
  else if (perf->has_aux && status >> 16 == PTRACE_EVENT_STOP)
    perf_mark_add(&perf->session, process);
  if (perf->is_watching && WIFSTOPPED(status))
    watch_stop(&perf->watch, source, process, status);
}

static const char *perf_sampling(const struct source *source)
{
  const struct perf_source *perf = source->data;

  return perf && *perf->session.sampling ? perf->session.sampling : NULL;
}

static void perf_free(struct source *source)
{
  struct perf_source *perf = source->data;

  if (!perf)
    return;
  perf_session_close(&perf->session);
  watch_done(&perf->watch);
  free(perf);
}

const struct source_functions source_perf_functions = {
  .attach = perf_attach,
  .step = perf_step,
  .waited = perf_waited,
  .sampling = perf_sampling,
  .free = perf_free,
};
