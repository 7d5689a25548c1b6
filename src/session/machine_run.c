/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a guest until the user's stop condition, without a live screen: slice after slice at full speed, with checks of
 * the clock, the screen and the serial line's input in between. Slices are counted in instructions, not time, so that a
 * run can be repeated exactly.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "session/machine.h"

#define SLICE_INSTRUCTIONS UINT64_C(4000000)
#define SLICE_INSTRUCTIONS_GDB UINT64_C(500000) /* Ctrl-C is seen between slices */
#define SLICE_SECONDS_GDB 0.02
#define SLICE_NANOSECONDS UINT64_C(1000000000) /* a guest that mostly waits gets through this quickly */
#define WAIT_MILLISECONDS 10   /* wait for input, if the guest did hardly anything in a second of its time */
#define INPUT_MILLISECONDS 200 /* the same, if the guest is idle */
#define PROGRESS_SECONDS 0.5
#define DEADLINE_SECONDS_MAX UINT64_C(9000000000) /* more would not fit in 64 bits as nanoseconds */

volatile sig_atomic_t machine_session_signal;

/* ---- ends ---- */

enum machine_session_end machine_session_end_of(enum machine_stop stop)
{
  switch (stop) {
  case MACHINE_STOP_IDLE:
    return END_IDLE;
  case MACHINE_STOP_HALTED:
    return END_HALTED;
  case MACHINE_STOP_EXIT:
    return END_EXIT;
  case MACHINE_STOP_OFF:
    return END_OFF;
  case MACHINE_STOP_ASLEEP:
    return END_ASLEEP;
  case MACHINE_STOP_SHUTDOWN:
    return END_SHUTDOWN;
  case MACHINE_STOP_UNIMPLEMENTED:
    return END_UNIMPLEMENTED;
  default:
    return END_INSTRUCTIONS;
  }
}

const char *machine_session_end_name(enum machine_session_end end)
{
  static const char *const names[] = {
    [END_IDLE] = "idle",
    [END_HALTED] = "halted",
    [END_EXIT] = "exit",
    [END_OFF] = "power off",
    [END_ASLEEP] = "asleep",
    [END_SHUTDOWN] = "shutdown",
    [END_UNIMPLEMENTED] = "unimplemented",
    [END_INSTRUCTIONS] = "instructions",
    [END_SECONDS] = "seconds",
    [END_TEXT] = "text",
    [END_INTERRUPTED] = "interrupted",
    [END_FAILED] = "failed",
  };

  return names[end];
}

void machine_session_look_for_text(struct machine_session *session)
{
  const char *wanted = session->arguments->until_text;
  struct machine_screen screen;
  struct text text = {0};

  if (!wanted || session->has_text)
    return;
  screen = machine_screen_all(session->machine);
  for (unsigned row = 0; row < screen.rows && !session->has_text; row++) {
    text.length = 0;
    if (machine_screen_row_text(&screen, row, &text) >= 0 && text.length)
      session->has_text = strstr(text_string(&text), wanted);
  }
  text_done(&text);
}

/* ---- input of the serial line ---- */

struct input {
  uint8_t bytes[256];
  size_t first, count;
  bool is_over;
};

static size_t input_give(struct machine *machine, struct input *input)
{
  size_t first = input->first;

  while (input->first < input->count && machine_serial_receive(machine, input->bytes[input->first]))
    input->first++;
  return input->first - first;
}

/* Gives the guest as much input as it takes, once it waits for some: earlier input would be lost, because its driver is
 * not ready. Reads more, and waits for it for a limited time. */
static void input_feed(struct machine_session *session, struct input *input, int milliseconds)
{
  struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
  ssize_t size;

  if (!session->reads_stdin || input->is_over)
    return;
  if (input->first == input->count && poll(&ready, 1, milliseconds) > 0) {
    size = read(STDIN_FILENO, input->bytes, sizeof(input->bytes));
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN))
      input->is_over = true;
    input->first = 0;
    input->count = size > 0 ? (size_t)size : 0;
  }
  if (machine_serial_is_awaited(session->machine))
    input_give(session->machine, input);
}

/* The guest is idle. Returns true if input has come, or may still come: it continues. */
static bool input_wakes(struct machine_session *session, struct input *input)
{
  if (!session->reads_stdin)
    return false;
  input_feed(session, input, INPUT_MILLISECONDS);
  return !input->is_over && (input->first == input->count || input_give(session->machine, input));
}

/* ---- progress for the user ---- */

struct progress {
  double next, last_time;
  uint64_t last_retired;
};

static void progress_tell(struct machine_session *session, struct progress *progress, double now)
{
  uint64_t retired = machine_retired(session->machine);
  struct machine_progress state = {.retired = (double)retired,
                                   .seconds = (double)machine_time(session->machine) * 1e-9};

  if (!session->progress || now < progress->next)
    return;
  state.rate = (double)(retired - progress->last_retired) / (now - progress->last_time);
  session->progress(session, &state);
  progress->next = now + PROGRESS_SECONDS;
  progress->last_time = now;
  progress->last_retired = retired;
}

/* ---- the loop ---- */

/* A run without a live screen. */
struct plain {
  struct machine_session *session;
  double start;
  struct progress progress;
  struct input input;
};

uint64_t machine_session_deadline(double seconds)
{
  return seconds < (double)DEADLINE_SECONDS_MAX ? (uint64_t)(seconds * 1e9) : 0;
}

static struct machine_limit slice_limit(const struct plain *plain)
{
  const struct machine_session *session = plain->session;
  const struct machine_arguments *arguments = session->arguments;
  struct machine_limit limit = {.instructions = SLICE_INSTRUCTIONS,
                                .nanoseconds = SLICE_NANOSECONDS,
                                .until_idle = arguments->until_idle,
                                .until_halt = arguments->until_halt};
  uint64_t done = machine_retired(session->machine);

  if (arguments->until_seconds > 0)
    limit.deadline = machine_session_deadline(plain->start + arguments->until_seconds);
  if (machine_session_is_debugged(session)) {
    double soon = clock_seconds() + SLICE_SECONDS_GDB, end = plain->start + arguments->until_seconds;

    limit.instructions = SLICE_INSTRUCTIONS_GDB;
    limit.deadline = machine_session_deadline(arguments->until_seconds > 0 && end < soon ? end : soon);
  }
  if (arguments->until_instructions && arguments->until_instructions - done < limit.instructions)
    limit.instructions = arguments->until_instructions - done;
  return limit;
}

bool machine_session_is_debugged(const struct machine_session *session)
{
  return session->debugger.serve && session->debugger.is_attached(session->debugger.data);
}

bool machine_session_debug(struct machine_session *session, const struct machine_front *front, bool is_idle)
{
  return session->debugger.serve && session->debugger.serve(session->debugger.data, front, is_idle);
}

/* With a debugger attached, a guest that is idle or dead can still be examined, so it does not end the run. A debugger
 * may also connect while the guest is idle. */
static bool stop_is_final(const struct machine_session *session, enum machine_stop stop)
{
  bool is_attached = machine_session_is_debugged(session);

  switch (stop) {
  case MACHINE_STOP_INSTRUCTIONS:
  case MACHINE_STOP_TIME:
  case MACHINE_STOP_REQUESTED:
  case MACHINE_STOP_POINT:
    return false;
  case MACHINE_STOP_IDLE:
    return session->debugger.serve
             ? session->arguments->until_idle && !is_attached
             : session->arguments->until_idle || !(session->screen == SCREEN_LIVE || session->is_serial_live);
  case MACHINE_STOP_ASLEEP: /* a key wakes it, or 'monitor wake' */
    return session->screen != SCREEN_LIVE && !session->debugger.serve;
  case MACHINE_STOP_SHUTDOWN:
  case MACHINE_STOP_UNIMPLEMENTED:
    return !is_attached;
  default:
    return true;
  }
}

bool machine_session_is_still(enum machine_stop stop)
{
  return stop == MACHINE_STOP_IDLE || stop == MACHINE_STOP_ASLEEP;
}

bool machine_session_slice_ends(struct machine_session *session, enum machine_stop stop, double elapsed)
{
  const struct machine_arguments *arguments = session->arguments;
  uint64_t done = machine_retired(session->machine);

  machine_session_look_for_text(session);
  if (session->trace.error < 0)
    session->end = END_FAILED;
  else if (session->has_text)
    session->end = END_TEXT;
  else if (machine_session_signal)
    session->end = END_INTERRUPTED;
  else if (stop_is_final(session, stop))
    session->end = machine_session_end_of(stop);
  else if (arguments->until_instructions && done >= arguments->until_instructions)
    session->end = END_INSTRUCTIONS;
  else if (arguments->until_seconds > 0 && elapsed >= arguments->until_seconds)
    session->end = END_SECONDS;
  else
    return false;
  return true;
}

static bool plain_slice(void *data, bool is_step, enum machine_stop *ret_stop)
{
  struct plain *plain = data;
  struct machine_session *session = plain->session;
  struct machine_limit limit = slice_limit(plain);
  bool waits;
  double now;

  limit.is_step = is_step;
  *ret_stop = machine_run(session->machine, &limit);
  now = clock_seconds();
  session->seconds = now - plain->start;
  if (session->serial == session->console)
    fflush(session->console);
  if (machine_session_slice_ends(session, *ret_stop, session->seconds) &&
      (session->end != END_IDLE || machine_session_signal || !input_wakes(session, &plain->input)))
    return true;
  waits = *ret_stop == MACHINE_STOP_TIME && !machine_is_asleep(session->machine);
  input_feed(session, &plain->input, waits ? WAIT_MILLISECONDS : 0);
  progress_tell(session, &plain->progress, now);
  return false;
}

static bool plain_wait(void *data, int fd, int milliseconds)
{
  struct plain *plain = data;
  struct machine_session *session = plain->session;
  bool reads = session->reads_stdin && !plain->input.is_over && plain->input.first == plain->input.count;
  struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};

  poll(ready, reads ? 2 : 1, milliseconds);
  input_feed(session, &plain->input, 0);
  if (machine_session_signal)
    session->end = END_INTERRUPTED;
  return machine_session_signal;
}

static void plain_run(struct machine_session *session)
{
  double start = clock_seconds();
  struct plain plain = {session, start, {.next = start + PROGRESS_SECONDS, .last_time = start}, {.count = 0}};
  struct machine_front front = {&plain, plain_slice, plain_wait};
  enum machine_stop stop = MACHINE_STOP_REQUESTED;

  while (!machine_session_debug(session, &front, machine_session_is_still(stop)) && !plain_slice(&plain, false, &stop))
    ;
  if (session->progress)
    session->progress(session, NULL);
}

void machine_session_run(struct machine_session *session)
{
  if (session->screen == SCREEN_LIVE || session->is_serial_live)
    machine_session_run_live(session);
  else
    plain_run(session);
}
