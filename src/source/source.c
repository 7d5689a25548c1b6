/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of all sources: starts the program, waits for it and releases it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "source/source_inside.h"
#include "trace/trace.h"

#define REAPED_MAX 1000u                        /* at once: a stepped program stops all the time */
#define TITLES_NANOSECONDS UINT64_C(1000000000) /* between two reads of the processes' titles */

/* ---- a trace's writer ---- */

static int trace_module(void *data, const struct lb_trace_module *module)
{
  return lb_trace_writer_module(data, module);
}

static int trace_code(void *data, const struct lb_trace_code *code)
{
  return lb_trace_writer_code(data, code);
}

static int trace_stream(void *data, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  return lb_trace_writer_stream(data, stream, ret_number);
}

static int trace_branches(void *data, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  return lb_trace_writer_branches(data, stream, branches, count);
}

static int trace_gap(void *data, const struct lb_trace_gap *gap)
{
  return lb_trace_writer_gap(data, gap);
}

static int trace_describe(void *data, uint32_t stream, const char *key, const char *value)
{
  return trace_writer_describe(data, stream, key, value);
}

static int trace_stamp(void *data, uint32_t stream, const struct trace_stamp *stamp)
{
  return trace_writer_stamp(data, stream, stamp);
}

struct source_sink source_sink_trace(struct lb_trace_writer *writer)
{
  return (struct source_sink){writer,         trace_module, trace_code,     trace_stream,
                              trace_branches, trace_gap,    trace_describe, trace_stamp};
}

/* ---- a recording ---- */

static size_t memory_read(void *data, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  const struct source_kernel *kernel = data;

  return kernel->memory(kernel->data, process, address, buffer, size);
}

/* Reads cmdline of proc(5). */
static bool title_read(void *data, uint32_t process, char ret_title[SOURCE_TITLE_MOST])
{
  const struct source_kernel *kernel = data;
  char path[64], words[SOURCE_TITLE_MOST] = "";
  int size;

  snprintf(path, sizeof(path), "/proc/%u/cmdline", process);
  size = kernel->file_read(kernel->data, path, words, sizeof(words));
  if (size <= 0 || (size_t)size >= sizeof(words) || !words_join(words, words, (size_t)size))
    return false;
  memcpy(ret_title, words, sizeof(words));
  return true;
}

static int problem_memory(struct source_problem *problem)
{
  snprintf(problem->text, sizeof(problem->text), "no memory");
  return -ENOMEM;
}

/* The child exists: attaches to it and lets it run. */
static int child_begin(struct source *source, int process, struct source_problem *ret_problem)
{
  const struct source_kernel *kernel = source->kernel;
  int r;

  source->state.process = (uint32_t)process;
  r = source->functions->attach(source, ret_problem);
  if (r < 0) {
    kernel->drop(kernel->data, process);
    return r;
  }
  r = kernel->go(kernel->data, process);
  return r < 0 || !source->functions->begin ? r : source->functions->begin(source);
}

int source_start(const struct source_kernel *kernel, const struct source_options *options, const char *path,
                 char *const arguments[], char *const environment[], const struct source_sink *sink,
                 struct source **ret_source, struct source_problem *ret_problem)
{
  struct source *source = calloc(1, sizeof(*source));
  int process, r;

  *ret_problem = (struct source_problem){.advice = ""};
  if (!source)
    return problem_memory(ret_problem);
  source->kernel = kernel;
  source->options = *options;
  source->functions = options->kind == SOURCE_BLOCK_STEP ? &source_step_functions : &source_perf_functions;
  r = tasks_new(sink, memory_read, (void *)(uintptr_t)kernel, &source->tasks);
  source->start = kernel->clock(kernel->data);
  if (r >= 0) {
    tasks_titles(source->tasks, title_read, (void *)(uintptr_t)kernel);
    tasks_clock(source->tasks, source->start);
  }
  if (r < 0) {
    r = problem_memory(ret_problem);
  } else {
    r = kernel->launch(kernel->data, path, arguments, environment, &process);
    if (r < 0)
      snprintf(ret_problem->text, sizeof(ret_problem->text), "cannot create a process: %s", strerror(-r));
    else
      r = child_begin(source, process, ret_problem);
  }
  if (r < 0) {
    source_free(source);
    return r;
  }
  *ret_source = source;
  return 0;
}

uint32_t source_thread_process(const struct source *source, int thread)
{
  char path[64], buffer[1024];
  const char *line;

  snprintf(path, sizeof(path), "/proc/%d/status", thread);
  if (source->kernel->file_read(source->kernel->data, path, buffer, sizeof(buffer)) < 0)
    return 0;
  line = strstr(buffer, "\nTgid:");
  return line ? (uint32_t)strtoul(line + 6, NULL, 10) : 0;
}

unsigned source_reap(struct source *source)
{
  int process, status, r = 0;
  unsigned count = 0;

  while (count < REAPED_MAX && (r = source->kernel->reap(source->kernel->data, &process, &status)) > 0) {
    count++;
    if (source->functions->waited)
      source->functions->waited(source, process, status);
    if ((uint32_t)process == source->state.process && !WIFSTOPPED(status)) {
      source->state.has_ended = true;
      source->state.status = status;
    }
  }
  if (r < 0)
    source->state.has_ended = source->state.is_over = true;
  return count;
}

const struct source_state *source_state(const struct source *source)
{
  return &source->state;
}

static int state_set(struct source *source, int r)
{
  struct task_counts counts = tasks_counts(source->tasks);

  source->state.processes = counts.processes;
  source->state.threads = counts.threads;
  source->state.losses = counts.lost;
  return r;
}

int source_step(struct source *source, unsigned milliseconds)
{
  const struct source_kernel *kernel = source->kernel;
  int r = source->functions->step(source, milliseconds, false);
  uint64_t now = kernel->clock(kernel->data);

  source_reap(source);
  if (now - source->titles_looked >= TITLES_NANOSECONDS) {
    source->titles_looked = now;
    tasks_titles_look(source->tasks);
  }
  return state_set(source, r);
}

int source_finish(struct source *source)
{
  int r = source->functions->step(source, 0, true);

  tasks_titles_look(source->tasks);
  if (r >= 0)
    r = tasks_flush(source->tasks);
  if (r >= 0)
    r = tasks_titles_put(source->tasks);
  return state_set(source, r);
}

void source_free(struct source *source)
{
  if (!source)
    return;
  source->functions->free(source);
  tasks_free(source->tasks);
  free(source);
}

bool source_death_next(struct source *source, struct source_death *ret_death)
{
  if (source->death_taken == source->death_count)
    return false;
  *ret_death = source->deaths[source->death_taken++];
  if (source->death_taken == source->death_count)
    source->death_taken = source->death_count = 0;
  return true;
}

uint64_t source_clock(const struct source *source)
{
  return source->start;
}

const char *source_sampling(const struct source *source)
{
  return source->functions->sampling ? source->functions->sampling(source) : NULL;
}
