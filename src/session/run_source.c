/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr run with another source than the software one: the same reports, from the branches that run_keep.c keeps. A death
 * is reported with a short delay, because the last branches of a processor's buffer arrive after the process has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "session/program.h"
#include "session/run.h"
#include "session/run_keep.h"
#include "session/source_choice.h"

#define STEP_MILLISECONDS 20u
#define SETTLE_SECONDS 0.2
#define DEATHS_MAX 64u

struct run_source {
  struct source *source;
  struct source_options options;
  struct source_sink sink;
  struct run_keep *keep;
  bool has_failed; /* recording has stopped, and this was reported */
  struct source_death deaths[DEATHS_MAX];
  double seen[DEATHS_MAX];
  size_t count;
  bool has_died; /* the program itself, according to a report */
};

/* ---- a report ---- */

struct maker {
  struct run_session *session;
  struct analysis_death death;
  struct analysis_thread *threads;
  size_t count, capacity;
};

/* The index of the first of the last `count` branches after the last gap. */
static size_t first_behind(const struct run_keep_thread *kept, size_t count)
{
  uint64_t behind = kept->total - kept->gap;

  return behind < count ? count - (size_t)behind : 0;
}

/* Adds the last branches of a thread, or those that a processor would keep. */
static int maker_add(struct maker *maker, const struct run_keep_thread *kept)
{
  struct analysis_thread *threads = array_grow(maker->threads, sizeof(*threads), maker->count, &maker->capacity);
  const struct run_arguments *arguments = maker->session->arguments;
  struct lb_recorder *recorder = NULL;
  struct lb_branch *branches = NULL;
  bool has_gaps = false;
  int count, r = 0;

  if (!threads)
    return -ENOMEM;
  maker->threads = threads;
  count = run_keep_branches(maker->session->source->keep, kept, &branches, &has_gaps);
  if (count >= 0 && arguments->cpu)
    r = run_lbr_new(arguments, &recorder);
  if (count < 0 || r < 0) {
    free(branches);
    return -ENOMEM;
  }
  if (recorder)
    run_lbr_feed(recorder, branches, (size_t)count);
  threads[maker->count++] = (struct analysis_thread){.thread = kept->thread,
                                                     .space = kept->space,
                                                     .name = kept->name,
                                                     .branches = branches,
                                                     .marks = calloc((size_t)count + 1, sizeof(uint32_t)),
                                                     .count = (size_t)count,
                                                     .first = has_gaps ? first_behind(kept, (size_t)count) : 0,
                                                     .is_cut = kept->total > (uint64_t)count,
                                                     .has_gaps = has_gaps,
                                                     .recorder = recorder};
  return threads[maker->count - 1].marks ? 0 : -ENOMEM;
}

/* The newest program of a process; if `thread` is not 0, the newest stream of that thread. */
static const struct run_keep_thread *thread_find(const struct run_keep *keep, uint32_t process, uint32_t thread)
{
  const struct run_keep_thread *found = NULL, *kept;

  for (size_t i = 0; (kept = run_keep_thread(keep, i)); i++)
    if (kept->process == process && (!thread || kept->thread == thread) && (!found || kept->space >= found->space))
      found = kept;
  return found;
}

/* Adds all other threads of the same program. */
static int maker_add_others(struct maker *maker, const struct run_keep_thread *member)
{
  const struct run_keep *keep = maker->session->source->keep;
  const struct run_keep_thread *kept;
  int r = 0;

  for (size_t i = 0; r >= 0 && (kept = run_keep_thread(keep, i)); i++)
    if (kept != member && kept->process == member->process && kept->space == member->space)
      r = maker_add(maker, kept);
  return r;
}

static void maker_done(struct maker *maker)
{
  for (size_t i = 0; i < maker->count; i++) {
    free((void *)(uintptr_t)maker->threads[i].branches);
    free((void *)(uintptr_t)maker->threads[i].marks);
    free((void *)(uintptr_t)maker->threads[i].recorder);
  }
  free(maker->threads);
}

static void report_make(struct run_session *session, const struct analysis_death *death, uint32_t thread,
                        bool wants_all)
{
  struct maker maker = {.session = session, .death = *death};
  const struct run_keep *keep = session->source->keep;
  const struct run_keep_thread *kept = thread_find(keep, death->process, thread);
  int r = kept ? maker_add(&maker, kept) : 0;

  if (r >= 0 && kept && wants_all)
    r = maker_add_others(&maker, kept);
  maker.death.program = kept ? run_keep_program(keep, kept->space) : session->arguments->program[0];
  if (!maker.death.command && kept)
    maker.death.command = kept->command;
  maker.death.threads = maker.threads;
  maker.death.thread_count = maker.count;
  if (r < 0)
    message("no memory for the report");
  else
    run_report_put(session, &maker.death, run_keep_places(keep));
  if (r >= 0 && run_keep_names_are_missing(keep))
    run_report_no_names(session);
  maker_done(&maker);
}

/* ---- deaths ---- */

static void death_report(struct run_session *session, const struct source_death *seen)
{
  struct analysis_death death = {.ending = ANALYSIS_DIED,
                                 .process = seen->process,
                                 .command = seen->command,
                                 .signal = seen->signal,
                                 .code = seen->code,
                                 .address = seen->address,
                                 .rip = seen->rip,
                                 .flags = seen->flags};

  if (run_report_is_typed(session, seen->process, seen->signal, seen->code))
    return;
  memcpy(death.registers, seen->registers, sizeof(death.registers));
  session->source->has_died |= (int)seen->process == session->process.pid;
  report_make(session, &death, seen->thread, session->arguments->wants_all_threads);
}

/* Reports deaths that were seen long enough ago, or all. */
static void deaths_report(struct run_session *session, bool is_all)
{
  struct run_source *source = session->source;
  double now = clock_seconds();

  while (source->count < DEATHS_MAX && source_death_next(source->source, &source->deaths[source->count]))
    source->seen[source->count++] = now;
  while (source->count && (is_all || now - source->seen[0] > SETTLE_SECONDS)) {
    death_report(session, &source->deaths[0]);
    source->count--;
    memmove(source->deaths, source->deaths + 1, source->count * sizeof(*source->deaths));
    memmove(source->seen, source->seen + 1, source->count * sizeof(*source->seen));
  }
}

/* ---- from outside ---- */

int run_source_start(struct run_session *session, const char *path)
{
  const struct run_arguments *arguments = session->arguments;
  struct run_source *source = calloc(1, sizeof(*source));
  size_t most = run_report_most(arguments, 1);
  struct source_problem problem;
  int r;

  session->source = source;
  if (!source || run_keep_new(most, arguments->is_mangled, &source->keep) < 0) {
    message("no memory");
    return PROGRAM_FAILURE;
  }
  source->options = (struct source_options){.kind = arguments->source,
                                            .is_alone = arguments->is_alone,
                                            .wants_deaths = true,
                                            .steps_singly = source_choice_steps_singly()};
  source->sink = run_keep_sink(source->keep);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  r = source_start(source_kernel_real(), &source->options, path, arguments->program, environ, &source->sink,
                   &source->source, &problem);
  if (r < 0)
    return source_choice_complain(arguments->program[0], r, &problem);
  session->process.pid = (int)source_state(source->source)->process;
  return 0;
}

int run_source_wait(struct run_session *session, int *ret_status)
{
  struct run_source *source = session->source;
  const struct source_state *state = source_state(source->source);
  int r = source_step(source->source, STEP_MILLISECONDS);

  if (r < 0 && !source->has_failed) {
    message("recording stopped: %s", lb_strerror(r));
    source->has_failed = true;
  }
  deaths_report(session, false);
  if (!state->has_ended)
    return 0;
  *ret_status = state->status;
  return 1;
}

void run_source_alive(struct run_session *session)
{
  const struct analysis_death death = {.ending = ANALYSIS_ALIVE, .process = (uint32_t)session->process.pid};

  report_make(session, &death, 0, true);
}

void run_source_end(struct run_session *session, int status)
{
  const struct run_arguments *arguments = session->arguments;
  struct analysis_death death = {.process = (uint32_t)session->process.pid};

  source_finish(session->source->source);
  deaths_report(session, true);
  if (WIFSIGNALED(status) && !session->source->has_died) {
    death.ending = ANALYSIS_KILLED;
    death.signal = WTERMSIG(status);
    report_make(session, &death, 0, true);
  } else if (WIFEXITED(status) && (arguments->is_always || arguments->exit_code == WEXITSTATUS(status))) {
    death.ending = ANALYSIS_EXITED;
    death.status = WEXITSTATUS(status);
    report_make(session, &death, (uint32_t)session->process.pid, arguments->wants_all_threads);
  }
}

void run_source_free(struct run_source *source)
{
  if (!source)
    return;
  source_free(source->source);
  run_keep_free(source->keep);
  free(source);
}
