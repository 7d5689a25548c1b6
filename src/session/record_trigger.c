/* SPDX-License-Identifier: Apache-2.0
 *
 * `lbr record --trigger` and `--trigger-slow`: the logs of all threads are rings until a thread reaches a place, or a
 * call takes too long. Some time later the branches around that moment are written to a trace, and recording ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/base.h"
#include "session/program.h"
#include "session/record.h"
#include "session/relay.h"
#include "session/source_choice.h"
#include "session/trace_meta.h"
#include "session/trigger.h"

#define SLEEP_MILLISECONDS 20u
#define LOOK_SECONDS 0.2 /* between two looks whether attached processes are there */
#define RING_DEFAULT (16u << 20)
#define PARTS 4u
#define EXIT_NOT_REACHED 1

/* A recording that waits for its trigger. */
struct watch {
  struct record_session session;
  const struct record_arguments *arguments;
  struct trigger *trigger;
  struct process_ring *ring;
  bool has_hit;
  struct process_hit hit;
  double begun, looked; /* when it began; when attached processes were looked for */
  unsigned signals;     /* signals to lbr before */
};

static bool is_attached(const struct watch *watch)
{
  return watch->arguments->attached.count > 0;
}

static void watch_ring(const void *process)
{
  process_drain_ring(process);
}

/* ---- waiting ---- */

/* Looks whether the processes have ended. */
static void watch_look(struct watch *watch, double now)
{
  struct record_session *session = &watch->session;

  if (!is_attached(watch)) {
    relay_follow();
    record_session_reap(session);
    return;
  }
  if (now - watch->looked < LOOK_SECONDS)
    return;
  watch->looked = now;
  session->has_ended = attach_is_over(&watch->arguments->attached);
}

/* Whether nothing more can come: no process is left, or lbr is told to end. A program that has ended may have left
 * processes behind. */
static bool watch_is_over(const struct watch *watch, double now)
{
  const struct record_session *session = &watch->session;
  double seconds = watch->arguments->seconds;

  if (process_is_destroyed(&session->process) || (seconds > 0 && now - watch->begun >= seconds))
    return true;
  if (is_attached(watch))
    return session->has_ended || relay_count() != watch->signals ||
           process_error(&session->process, NULL, NULL, NULL) != 0;
  return session->has_ended && (session->is_over || session->is_alone || relay_count() != watch->signals ||
                                !process_ring_is_alive(watch->ring));
}

static uint64_t nanoseconds_now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Milliseconds until the time after the hit is over. */
static unsigned watch_left(const struct watch *watch)
{
  uint64_t end = watch->hit.time + (uint64_t)(watch->arguments->after * 1e9), now = nanoseconds_now();
  uint64_t left = now < end ? (end - now + 999999) / 1000000 : 0;

  return left < SLEEP_MILLISECONDS ? (unsigned)left : SLEEP_MILLISECONDS;
}

/* Returns when the time after the hit is over, or without a hit. */
static void watch_wait(struct watch *watch)
{
  double now = clock_seconds();
  unsigned left = SLEEP_MILLISECONDS;

  relay_bell(watch_ring, &watch->session.process);
  while (left && !watch_is_over(watch, now)) {
    if (!watch->session.has_ended)
      watch->signals = is_attached(watch) ? watch->signals : relay_count();
    process_ring_step(watch->ring, left);
    now = clock_seconds();
    watch_look(watch, now);
    if (!watch->has_hit)
      watch->has_hit = process_ring_hit(watch->ring, &watch->hit);
    if (watch->has_hit)
      left = watch_left(watch);
  }
  if (!watch->has_hit) /* it may have come with the end */
    watch->has_hit = process_ring_hit(watch->ring, &watch->hit);
  relay_bell(NULL, NULL);
}

/* The program runs on, unrecorded. */
static void program_await(struct watch *watch)
{
  while (!watch->session.has_ended) {
    relay_follow();
    record_session_reap(&watch->session);
    if (!watch->session.has_ended)
      relay_wait(&(struct timespec){.tv_nsec = SLEEP_MILLISECONDS * 1000000L});
  }
}

/* ---- the trace ---- */

static void meta_put(const struct watch *watch)
{
  const struct process_hit *hit = &watch->hit;
  struct text value = {0};

  text_addf(&value, "%u %u 0x%" PRIx64 " %" PRIu64, hit->process, hit->thread, hit->address, hit->time);
  if (hit->duration)
    text_addf(&value, " %" PRIu64, hit->duration);
  text_addf(&value, " %s", watch->arguments->trigger);
  trace_meta_put(watch->session.writer, "trigger", text_string(&value)); /* the writer keeps its error */
  text_done(&value);
}

/* Writes what the rings hold of the time around the hit. Returns 0 or negative, after a message. */
static int trace_write(struct watch *watch)
{
  struct record_session *session = &watch->session;
  int r =
    process_drain_window(&session->process, session->writer, watch->arguments->limit, watch->ring, &session->drain);

  if (r < 0) {
    message("%s: %s", session->output, lb_strerror(r));
    record_session_drop(session);
    return r;
  }
  meta_put(watch);
  record_session_close(session);
  session->state = process_drain_finish(session->drain, false);
  return session->close_error;
}

static void hit_show(struct watch *watch)
{
  const struct process_hit *hit = &watch->hit;
  const struct record_session *session = &watch->session;
  const char *name = process_ring_name(watch->ring, hit->process, hit->thread);
  double seconds = (double)hit->time * 1e-9 - watch->begun;
  struct text text = {0};

  if (hit->duration)
    text_addf(&text, "a call of %s took %.1f ms in thread %u of %s, after %.1f s",
              trigger_describe(watch->trigger, hit->address), (double)hit->duration * 1e-6, hit->thread, name, seconds);
  else
    text_addf(&text, "%s reached %s in thread %u after %.1f s", name, trigger_describe(watch->trigger, hit->address),
              hit->thread, seconds);
  message("%s; %s: %" PRIu64 " branches of %" PRIu64 " thread%s", text_string(&text), session->output,
          session->size.branches, session->state->threads, session->state->threads == 1 ? "" : "s");
  text_done(&text);
}

static void miss_show(struct watch *watch)
{
  const struct record_arguments *arguments = watch->arguments;

  if (!trigger_count(watch->trigger))
    trigger_complain(watch->trigger);
  if (arguments->slow > 0)
    message("no call of %s took longer than %g ms; no trace was written", arguments->trigger, arguments->slow * 1e3);
  else
    message("%s was not reached; no trace was written", arguments->trigger);
}

/* The wait is over: leaves attached processes and writes the trace, if there was a hit. Returns 0, or an exit status
 * after a message. */
static int watch_end(struct watch *watch)
{
  struct record_session *session = &watch->session;
  int left = 0, r = 0;

  if (watch->has_hit)
    process_ring_close(watch->ring, &watch->hit);
  if (is_attached(watch))
    left = attach_close(&session->process, NULL);
  if (watch->has_hit) {
    r = trace_write(watch);
    if (r >= 0 && !session->is_quiet)
      hit_show(watch);
  } else {
    record_session_drop(session);
    if (is_attached(watch) || !process_error(&session->process, NULL, NULL, NULL)) /* that has a message of its own */
      miss_show(watch);
  }
  return r < 0 || left < 0 ? PROGRAM_FAILURE : watch->has_hit || !is_attached(watch) ? 0 : EXIT_NOT_REACHED;
}

/* ---- the start ---- */

static struct process_options options_of(const struct watch *watch)
{
  uint64_t ring = watch->arguments->ring ? watch->arguments->ring : RING_DEFAULT, part = PARTS;

  while (part < ring)
    part *= 2;
  return (struct process_options){.is_alone = watch->arguments->is_alone,
                                  .part_size = (uint32_t)(part / PARTS),
                                  .trigger = trigger_process(watch->trigger)};
}

/* Attaches, or starts the program. */
static int watch_open(struct watch *watch, const char *path)
{
  struct process_options options = options_of(watch);
  struct process *process = &watch->session.process;
  int r;

  watch->begun = clock_seconds();
  if (is_attached(watch)) {
    r = attach_open(&options, &watch->arguments->attached, process);
  } else {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    r = program_launch(&options, path, watch->arguments->program, process);
    program_aslr_restore();
  }
  if (r < 0)
    return r;
  r = process_ring_new(process, (uint64_t)(watch->arguments->before * 1e9), &watch->ring);
  if (r < 0)
    message("%s", lb_strerror(r));
  if (r < 0 && is_attached(watch))
    attach_close(process, NULL);
  else if (r < 0)
    kill(process->pid, SIGKILL); /* it would wait for lbr */
  return r;
}

/* Returns an exit status. */
static int watch_run(struct watch *watch, const char *path)
{
  struct record_session *session = &watch->session;

  watch->signals = relay_count();
  if (watch_open(watch, path) < 0) {
    record_session_drop(session);
    return PROGRAM_FAILURE;
  }
  if (!is_attached(watch))
    relay_to(session->process.pid, false);
  watch_wait(watch);
  int status = watch_end(watch);
  if (is_attached(watch))
    return status;
  program_await(watch);
  if (!process_is_destroyed(&session->process))
    program_show_error(&session->process, watch->arguments->program[0], session->status);
  if (status)
    status = program_status_without_trace(session->status);
  return status ? status : program_pass_on(session->status);
}

/* Looks for the place before anything is attached to. Returns 0, or an exit status after a message. */
static int place_check(const struct record_arguments *arguments, struct trigger *trigger)
{
  for (size_t i = 0; i < arguments->attached.count; i++) {
    int process = arguments->attached.processes[i];

    if (process_check(process) < 0)
      return PROGRAM_FAILURE;
    int r = trigger_search(trigger, process);
    if (r < 0) {
      message("process %d: %s", process, lb_strerror(r));
      return PROGRAM_FAILURE;
    }
  }
  if (!arguments->attached.count || trigger_count(trigger))
    return 0;
  trigger_complain(trigger);
  return EXIT_NOT_REACHED;
}

static int record_around(const struct record_arguments *arguments, struct trigger *trigger, const char *path)
{
  struct watch watch = {.arguments = arguments, .trigger = trigger};
  char **words = arguments->attached.count ? attach_words(arguments->attached.processes[0]) : arguments->program;
  char *name = words ? record_output_name(arguments, words) : NULL;
  int status = PROGRAM_FAILURE;

  watch.session = (struct record_session){.is_quiet = arguments->is_quiet, .is_alone = arguments->is_alone};
  watch.session.output = name;
  if (!name)
    message("no memory");
  else if (record_open(name, &watch.session.writer) >= 0) {
    trace_meta_put_all(watch.session.writer, "process", "recorder", source_word(arguments->source), words);
    status = watch_run(&watch, path);
  }
  process_drain_free(watch.session.drain);
  process_ring_free(watch.ring);
  process_done(&watch.session.process);
  if (arguments->attached.count && words) {
    free(words[0]);
    free(words);
  }
  free(name);
  return status;
}

int record_trigger(const struct record_arguments *arguments)
{
  struct trigger *trigger = NULL;
  char *path = NULL;
  int r = trigger_new(arguments->trigger, (uint64_t)(arguments->slow * 1e9), &trigger), status;

  if (r < 0) {
    message("%s: %s", arguments->trigger, lb_strerror(r));
    return PROGRAM_FAILURE;
  }
  status = place_check(arguments, trigger);
  if (!status && !arguments->attached.count)
    status = program_find(arguments->program[0], &path);
  if (!status && !arguments->attached.count)
    status = program_aslr_set(arguments->aslr, arguments->source, arguments->program[0]);
  if (!status)
    status = record_around(arguments, trigger, path);
  free(path);
  trigger_free(trigger);
  return status;
}
