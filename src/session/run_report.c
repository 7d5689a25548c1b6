/* SPDX-License-Identifier: Apache-2.0
 *
 * The reports of `lbr run`: the threads in each one, their branches, and its destination. All data about the programs
 * comes from the memory that is shared with them.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "session/session.h"

#define TRIES 20 /* to read the log of a running thread */

/* The state of making a report. */
struct maker {
  struct run_session *session;
  struct analysis_death death;
  uint32_t space; /* of the process */
  struct analysis_thread *threads;
  struct process_branches *branches; /* of each thread */
  struct process_thread *sources;
  size_t count, capacity;
  bool is_panic_only; /* there is no report unless the program panicked */
};

/* ---- threads ---- */

static int maker_add(struct maker *maker, const struct process_thread *source)
{
  struct process_thread *added = array_append(&maker->sources, &maker->count, &maker->capacity);

  if (!added)
    return -ENOMEM;
  *added = *source;
  return 0;
}

static bool is_same_process(const struct process_thread *one, const struct process_thread *other)
{
  return one->process == other->process && one->space == other->space;
}

/* Adds the living threads of a process, except one that is there already. */
static int maker_add_process(struct maker *maker, const struct process_thread *member)
{
  const struct process *process = &maker->session->process;
  struct process_thread thread;
  int r = 0;

  for (uint32_t slot = 0; r >= 0 && slot < process_slots(process); slot++)
    if (process_thread(process, slot, &thread) && is_same_process(&thread, member) && process_thread_is_live(&thread) &&
        !(maker->count && maker->sources[0].slot == slot))
      r = maker_add(maker, &thread);
  return r;
}

/* ---- branches ---- */

/* A recorder is given many branches, too, because filters leave out most of them. */
size_t run_report_most(const struct run_arguments *arguments, size_t threads)
{
  size_t most = RUN_STACK_BRANCHES / (threads && !arguments->cpu ? threads : 1);

  return arguments->last > most ? (size_t)arguments->last : most;
}

/* Tries again if a running thread overwrites the log while it is read. */
static int thread_rebuild(const struct process *process, struct process_thread *source, size_t most,
                          struct process_branches *ret_branches)
{
  for (unsigned tries = 0;; tries++) {
    int r = process_rebuild_last(process, source, most, ret_branches);

    if (r < 0 || ret_branches->count || !ret_branches->is_cut || tries == TRIES)
      return r;
    process_branches_done(ret_branches);
    struct process_thread now;
    if (process_thread(process, source->slot, &now) && now.serial == source->serial)
      *source = now;
  }
}

static int thread_read(struct maker *maker, size_t number)
{
  const struct run_arguments *arguments = maker->session->arguments;
  const struct process_thread *source = &maker->sources[number];
  struct process_branches *list = &maker->branches[number];
  struct lb_recorder *recorder = NULL;
  size_t most = run_report_most(arguments, maker->count);
  int r = thread_rebuild(&maker->session->process, &maker->sources[number], most, list);

  if (r >= 0 && arguments->cpu)
    r = run_lbr_new(arguments, &recorder);
  if (r < 0)
    return r;
  if (recorder)
    run_lbr_feed(recorder, list->branches, list->count);
  maker->threads[number] = (struct analysis_thread){
    .thread = source->thread,
    .space = source->space,
    .name = source->name,
    .branches = list->branches,
    .marks = list->steps,
    .count = list->count,
    .is_cut = list->is_cut,
    .is_damaged = list->is_damaged,
    .recorder = recorder,
  };
  return 0;
}

static int threads_read(struct maker *maker)
{
  int r = 0;

  maker->threads = calloc(maker->count + 1, sizeof(*maker->threads));
  maker->branches = calloc(maker->count + 1, sizeof(*maker->branches));
  if (!maker->threads || !maker->branches)
    return -ENOMEM;
  for (size_t i = 0; r >= 0 && i < maker->count; i++)
    r = thread_read(maker, i);
  maker->death.threads = maker->threads;
  maker->death.thread_count = maker->count;
  return r;
}

static void maker_done(struct maker *maker)
{
  for (size_t i = 0; i < maker->count; i++) {
    if (maker->threads)
      free((void *)(uintptr_t)maker->threads[i].recorder);
    if (maker->branches)
      process_branches_done(&maker->branches[i]);
  }
  free(maker->threads);
  free(maker->branches);
  free(maker->sources);
}

/* ---- handing them over ---- */

/* Whether the limit of --timeout ended the program. */
static bool death_is_timeout(const struct run_session *session, const struct analysis_death *death)
{
  return session->is_timed_out && (int)death->process == session->process.pid &&
         ((death->ending == ANALYSIS_DIED && death->signal == SIGTERM && death->code == SI_USER) ||
          (death->ending == ANALYSIS_KILLED && (death->signal == SIGKILL || death->signal == SIGTERM)));
}

void run_report_put(struct run_session *session, const struct analysis_death *seen,
                    const struct analysis_places *places)
{
  struct analysis_death timed = *seen;

  timed.timeout = death_is_timeout(session, seen) ? session->arguments->timeout : 0;
  if (session->reporter.report(session->reporter.data, &timed, places) < 0)
    session->is_broken = true;
}

void run_report_no_names(struct run_session *session)
{
  if (session->reporter.no_names(session->reporter.data) < 0)
    session->is_broken = true;
}

/* Removes what a panicking thread did afterwards. */
static void maker_find_panic(struct maker *maker, const struct analysis_places *places)
{
  struct analysis_thread *thread = maker->threads;
  size_t count;

  if (maker->death.ending != ANALYSIS_EXITED || !maker->count || !run_panic_is_likely(maker->death.status))
    return;
  maker->death.panic = run_panic_find(thread, places, maker->death.program, maker->death.status, &count);
  if (maker->death.panic)
    thread->count = count;
}

static void maker_print(struct maker *maker)
{
  struct run_session *session = maker->session;
  struct run_names *names = NULL;
  int r = threads_read(maker);

  if (r >= 0)
    r = run_names_new(&session->process, session->arguments->is_mangled, &names);
  if (r < 0) {
    if (r == -ENOMEM)
      message("no memory for the report");
    return;
  }
  maker->death.program = run_names_program(names, maker->space);
  maker_find_panic(maker, run_names_places(names));
  if (maker->is_panic_only && !maker->death.panic) {
    run_names_free(names);
    return;
  }
  run_report_put(session, &maker->death, run_names_places(names));
  if (run_names_are_missing(names))
    run_report_no_names(session);
  run_names_free(names);
}

/* ---- the reports ---- */

static void report_death(struct run_session *session, const struct process_thread *thread)
{
  struct maker maker = {.session = session, .space = thread->space};

  maker.death = (struct analysis_death){
    .ending = ANALYSIS_DIED,
    .process = thread->process,
    .signal = (int)thread->end_status,
    .code = thread->signal_code,
    .address = thread->signal_address,
    .rip = thread->rip,
    .flags = thread->flags,
    .has_top = thread->has_top,
    .top = thread->top,
    .command = thread->command,
  };
  memcpy(maker.death.registers, thread->registers, sizeof(maker.death.registers));
  if (maker_add(&maker, thread) < 0 || (session->arguments->wants_all_threads && maker_add_process(&maker, thread) < 0))
    message("no memory for the report");
  else
    maker_print(&maker);
  maker_done(&maker);
}

bool run_report_is_typed(const struct run_session *session, uint32_t process, int signal, int code)
{
  return (int)process != session->process.pid && (signal == SIGINT || signal == SIGQUIT) && code == SI_KERNEL;
}

void run_report_deaths(struct run_session *session)
{
  const struct process *process = &session->process;
  struct process_thread thread;

  if (session->source) /* a source other than the software one reports deaths itself */
    return;
  for (uint32_t slot = 0; slot < process_slots(process) && slot < RUN_SLOTS; slot++) {
    if (!process_thread(process, slot, &thread) || !process_thread_has_died(&thread) ||
        session->reported[slot] == (uint64_t)thread.serial + 1)
      continue;
    session->reported[slot] = (uint64_t)thread.serial + 1;
    if (run_report_is_typed(session, thread.process, (int)thread.end_status, thread.signal_code)) {
      process_release(process, &thread);
      continue;
    }
    report_death(session, &thread);
    if (session->debug)
      session->debug(session, &thread);
  }
}

/* The newest program of a process, executed by any of its threads. Returns false if there is none. */
static bool newest_of(const struct run_session *session, uint32_t number, struct process_thread *ret_thread)
{
  struct process_thread thread, newest = {0};
  bool is_found = false;

  for (uint32_t slot = 0; slot < process_slots(&session->process); slot++)
    if (process_thread(&session->process, slot, &thread) && thread.process == number &&
        (!is_found || thread.space > newest.space)) {
      newest = thread;
      is_found = true;
    }
  if (is_found)
    *ret_thread = newest;
  return is_found;
}

/* Whether one of its threads has executed a program that cannot be recorded. */
static bool process_is_native(const struct run_session *session, const struct process_thread *member)
{
  struct process_thread thread;

  for (uint32_t slot = 0; slot < process_slots(&session->process); slot++)
    if (process_thread(&session->process, slot, &thread) && is_same_process(&thread, member) &&
        process_thread_is_native(&thread))
      return true;
  return false;
}

static void report_living(struct run_session *session, const struct process_thread *member, enum analysis_ending ending,
                          int signal)
{
  struct maker maker = {.session = session, .space = member->space};

  maker.death = (struct analysis_death){
    .ending = ending, .process = member->process, .signal = signal, .is_native = process_is_native(session, member)};
  if (ending != ANALYSIS_UNKNOWN && maker_add_process(&maker, member) < 0)
    message("no memory for the report");
  else
    maker_print(&maker);
  maker_done(&maker);
}

void run_report_alive(struct run_session *session)
{
  struct process_thread thread;

  if (session->source)
    run_source_alive(session);
  else if (newest_of(session, (uint32_t)session->process.number, &thread))
    report_living(session, &thread, ANALYSIS_ALIVE, 0);
  else
    message("the program has not started yet");
}

/* ---- the end ---- */

/* Reports the thread that ended the program by itself, or any that has ended. */
static void report_exit(struct run_session *session, int status, bool is_panic_only)
{
  struct maker maker = {.session = session, .is_panic_only = is_panic_only};
  struct process_thread newest, thread, last = {0};
  bool is_found = false, is_group, was_group = false;

  if (!newest_of(session, (uint32_t)session->process.pid, &newest))
    return;
  for (uint32_t slot = 0; slot < process_slots(&session->process); slot++)
    if (process_thread(&session->process, slot, &thread) && is_same_process(&thread, &newest) &&
        process_thread_has_exited(&thread, &is_group) && (!is_found || (is_group && !was_group))) {
      last = thread;
      is_found = true;
      was_group = is_group;
    }
  maker.death = (struct analysis_death){.ending = ANALYSIS_EXITED,
                                        .process = newest.process,
                                        .command = *last.command ? last.command : newest.command,
                                        .status = status,
                                        .is_native = process_is_native(session, &newest)};
  maker.space = newest.space;
  if ((is_found && maker_add(&maker, &last) < 0) ||
      ((session->arguments->wants_all_threads || !is_found) && maker_add_process(&maker, &newest) < 0))
    message("no memory for the report");
  else
    maker_print(&maker);
  maker_done(&maker);
}

/* Whether the end of this process was seen: by a signal, exit or execve. */
static bool process_is_accounted(const struct run_session *session, const struct process_thread *member)
{
  struct process_thread thread;
  bool is_group;

  for (uint32_t slot = 0; slot < process_slots(&session->process); slot++)
    if (process_thread(&session->process, slot, &thread) && is_same_process(&thread, member) &&
        !process_thread_is_live(&thread) && (!process_thread_has_exited(&thread, &is_group) || is_group))
      return true;
  return false;
}

/* Whether this is the first of its process's living threads. */
static bool is_first(const struct run_session *session, const struct process_thread *member)
{
  struct process_thread thread;

  for (uint32_t slot = 0; slot < member->slot; slot++)
    if (process_thread(&session->process, slot, &thread) && is_same_process(&thread, member) &&
        process_thread_is_live(&thread))
      return false;
  return true;
}

/* Reports processes that are gone and left no record: SIGKILL, or a program that cannot be recorded. For the program
 * itself the signal is known. */
static void report_killed(struct run_session *session, int status)
{
  struct process_thread thread;

  for (uint32_t slot = 0; slot < process_slots(&session->process); slot++) {
    if (!process_thread(&session->process, slot, &thread) || !process_thread_is_live(&thread) ||
        !is_first(session, &thread) || process_is_accounted(session, &thread))
      continue;
    bool is_program = thread.process == (uint32_t)session->process.pid;
    if (is_program && WIFSIGNALED(status))
      report_living(session, &thread, ANALYSIS_KILLED, WTERMSIG(status));
    else if (is_program || !thread.process || thread.is_elsewhere || kill((pid_t)thread.process, 0) == 0 ||
             errno != ESRCH)
      continue;
    else if (!process_is_native(session, &thread))
      report_living(session, &thread, ANALYSIS_KILLED, 0);
    else if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) /* it may be the cause */
      report_living(session, &thread, ANALYSIS_UNKNOWN, 0);
  }
}

void run_report_end(struct run_session *session, int status)
{
  const struct run_arguments *arguments = session->arguments;

  if (session->source) {
    run_source_end(session, status);
    return;
  }
  run_report_deaths(session);
  report_killed(session, status);
  bool is_wanted = WIFEXITED(status) && (arguments->is_always || arguments->exit_code == WEXITSTATUS(status));
  if (is_wanted || (WIFEXITED(status) && run_panic_is_likely(WEXITSTATUS(status))))
    report_exit(session, WEXITSTATUS(status), !is_wanted);
}
