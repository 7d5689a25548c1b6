/* SPDX-License-Identifier: Apache-2.0
 *
 * A session with one gdb: takes a packet, finds its command, sends the answer. An unknown packet gets an empty answer,
 * as the protocol requires.
 */
#include "gdb/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNAL_INTERRUPT 2u
#define SIGNAL_TRAP 5u
#define SIGNAL_UNKNOWN 143u

/* ---- answers ---- */

void session_check(struct gdb_session *session, int r)
{
  if (r < 0 && session->error >= 0)
    session->error = r;
}

void reply_add(struct gdb_session *session, const char *format, ...)
{
  va_list list;

  va_start(list, format);
  session_check(session, text_addv(&session->reply, format, list));
  va_end(list);
}

void reply_hex(struct gdb_session *session, const void *bytes, size_t size)
{
  session_check(session, hex_put(&session->reply, bytes, size));
}

void reply_ok(struct gdb_session *session)
{
  reply_add(session, "OK");
}

void reply_error(struct gdb_session *session, int error)
{
  session->reply.length = 0;
  reply_add(session, "E%02x", error < 0 && error > -256 ? (unsigned)-error : 1u);
}

static int reply_send(struct gdb_session *session)
{
  return remote_send(&session->remote, text_string(&session->reply), session->reply.length);
}

/* ---- threads ---- */

bool session_thread_at(struct gdb_session *session, size_t index, struct gdb_thread *ret_thread)
{
  const struct gdb_target *target = session->target;

  if (target->thread)
    return target->thread(target->data, index, ret_thread);
  *ret_thread = (struct gdb_thread){1, ""};
  return index == 0;
}

bool session_has_thread(struct gdb_session *session, uint64_t id)
{
  struct gdb_thread thread;

  for (size_t i = 0; session_thread_at(session, i, &thread); i++)
    if (thread.id == id)
      return true;
  return false;
}

uint64_t session_thread(struct gdb_session *session, uint64_t id)
{
  struct gdb_thread thread;

  if (id && session_has_thread(session, id))
    return id;
  return session_thread_at(session, 0, &thread) ? thread.id : 1;
}

/* A thread's number: -1 for all, 0 for any; both are 0 here. */
static bool thread_take(const char **at, uint64_t *ret_id)
{
  if (!strncmp(*at, "-1", 2)) {
    *at += 2;
    *ret_id = 0;
    return true;
  }
  return hex_take(at, ret_id);
}

static void command_thread(struct gdb_session *session, const char *at)
{
  char what = *at ? *at++ : 0;
  uint64_t id;

  if ((what != 'g' && what != 'c') || !thread_take(&at, &id) || (id && !session_has_thread(session, id))) {
    reply_error(session, -EINVAL);
    return;
  }
  *(what == 'g' ? &session->general : &session->resumed) = id;
  reply_ok(session);
}

static void command_thread_alive(struct gdb_session *session, const char *at)
{
  uint64_t id;

  if (hex_take(&at, &id) && session_has_thread(session, id))
    reply_ok(session);
  else
    reply_error(session, -ESRCH);
}

/* ---- the reason for a stop ---- */

static void stop_add_register(struct gdb_session *session, uint64_t thread, enum gdb_register number)
{
  const struct gdb_target *target = session->target;
  uint8_t bytes[GDB_REGISTER_SIZE];

  if (!target->read_register || target->read_register(target->data, thread, number, bytes) <= 0)
    return;
  reply_add(session, "%zx:", register_index(session->architecture, number));
  reply_hex(session, bytes, gdb_register_size(session->architecture, number));
  reply_add(session, ";");
}

static void stop_add_reason(struct gdb_session *session, const struct gdb_stop *stop)
{
  static const char *const words[GDB_POINTS] = {"swbreak", "hwbreak", "watch", "rwatch", "awatch"};

  if (stop->kind == GDB_WATCH && stop->point >= GDB_POINT_WRITE && stop->point < GDB_POINTS)
    reply_add(session, "%s:%" PRIx64 ";", words[stop->point], stop->address);
  else if (stop->kind == GDB_BREAK && stop->point <= GDB_POINT_HARDWARE)
    reply_add(session, "%s:;", words[stop->point]);
  else if (stop->kind == GDB_ENDED)
    reply_add(session, "replaylog:end;");
}

static void stop_reply(struct gdb_session *session, const struct gdb_stop *stop)
{
  uint64_t thread;

  if (stop->kind == GDB_EXITED || stop->kind == GDB_KILLED) {
    reply_add(session, "%c%02x", stop->kind == GDB_EXITED ? 'W' : 'X', stop->signal & 0xFF);
    return;
  }
  thread = session_thread(session, stop->thread);
  session->general = session->resumed = thread;
  reply_add(session, "T%02x", stop->kind == GDB_STOPPED ? stop->signal & 0xFF : SIGNAL_TRAP);
  stop_add_reason(session, stop);
  stop_add_register(session, thread, GDB_RIP);
  stop_add_register(session, thread, GDB_RSP);
  reply_add(session, "thread:%" PRIx64 ";", thread);
}

static void command_stop(struct gdb_session *session, const char *at)
{
  struct gdb_stop stop = {.kind = GDB_STOPPED, .signal = SIGNAL_TRAP};

  (void)at;
  session->target->stop(session->target->data, &stop);
  stop_reply(session, &stop);
}

/* ---- continuing ---- */

static void resume(struct gdb_session *session, uint64_t thread, bool is_step, unsigned signal)
{
  const struct gdb_target *target = session->target;
  struct gdb_resume how = {.thread = thread, .is_step = is_step, .signal = signal, .session = session};
  struct gdb_stop stop = {.kind = GDB_STOPPED, .signal = SIGNAL_TRAP};
  int r = 0;

  if (target->resume)
    r = target->resume(target->data, &how, &stop);
  else
    target->stop(target->data, &stop);
  if (r < 0)
    reply_error(session, r);
  else
    stop_reply(session, &stop);
}

/* c, s [ADDRESS]; C, S SIGNAL[;ADDRESS]. The address is ignored: gdb writes RIP instead. */
static void command_continue(struct gdb_session *session, const char *at)
{
  (void)at;
  resume(session, session->resumed, false, 0);
}

static void command_step(struct gdb_session *session, const char *at)
{
  (void)at;
  resume(session, session_thread(session, session->resumed), true, 0);
}

static void command_continue_signal(struct gdb_session *session, const char *at)
{
  uint64_t signal = 0;

  hex_take(&at, &signal);
  resume(session, session->resumed, false, signal & 0xFF);
}

static void command_step_signal(struct gdb_session *session, const char *at)
{
  uint64_t signal = 0;

  hex_take(&at, &signal);
  resume(session, session_thread(session, session->resumed), true, signal & 0xFF);
}

struct action {
  bool is_step;
  uint64_t signal;
  uint64_t thread;
};

/* ";" c, s, C SIGNAL or S SIGNAL, and ":" THREAD. */
static bool action_take(const char **at, struct action *action)
{
  char letter;

  *action = (struct action){0};
  if (*(*at)++ != ';')
    return false;
  letter = *(*at)++;
  if (!letter || !strchr("cCsS", letter))
    return false;
  action->is_step = letter == 's' || letter == 'S';
  if ((letter == 'C' || letter == 'S') && !hex_take(at, &action->signal))
    return false;
  if (**at != ':')
    return true;
  ++*at;
  return thread_take(at, &action->thread);
}

/* The first action that steps counts, or else the first action. */
static void command_actions(struct gdb_session *session, const char *at)
{
  struct action chosen = {0}, action;
  bool has_chosen = false;

  while (*at) {
    if (!action_take(&at, &action)) {
      reply_error(session, -EINVAL);
      return;
    }
    if (!has_chosen || (action.is_step && !chosen.is_step))
      chosen = action;
    has_chosen = true;
  }
  if (!has_chosen || (chosen.thread && !session_has_thread(session, chosen.thread)))
    reply_error(session, -EINVAL);
  else
    resume(session, chosen.is_step ? session_thread(session, chosen.thread) : chosen.thread, chosen.is_step,
           chosen.signal & 0xFF);
}

static void command_actions_query(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_add(session, "vCont;c;C;s;S");
}

/* ---- the end ---- */

static void session_finish(struct gdb_session *session, enum gdb_end end)
{
  session->is_over = true;
  session->end = end;
}

static void command_detach(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_ok(session);
  session_finish(session, GDB_END_DETACHED);
}

static void command_kill(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_ok(session);
  session_finish(session, GDB_END_KILLED);
}

/* ---- all commands ---- */

static const struct {
  const char *word;
  session_command *run;
} commands[] = {
  {"?", command_stop},           {"C", command_continue_signal},
  {"D", command_detach},         {"G", command_write_all},
  {"H", command_thread},         {"M", command_write_memory},
  {"P", command_write_register}, {"Q", command_set},
  {"S", command_step_signal},    {"T", command_thread_alive},
  {"X", command_write_binary},   {"Z", command_point_set},
  {"c", command_continue},       {"g", command_read_all},
  {"k", command_kill},           {"m", command_read_memory},
  {"p", command_read_register},  {"q", command_query},
  {"s", command_step},           {"vCont?", command_actions_query},
  {"vCont", command_actions},    {"vKill", command_kill},
  {"z", command_point_remove},
};

static void packet_take(struct gdb_session *session)
{
  const char *packet = session->remote.packet;

  for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
    size_t length = strlen(commands[i].word);

    if (!strncmp(packet, commands[i].word, length)) {
      commands[i].run(session, packet + length);
      return;
    }
  }
}

/* Handles one packet. Ctrl-C while the target is stopped has no effect. Returns 0, or negative. */
static int session_step(struct gdb_session *session)
{
  int event = remote_receive(&session->remote);

  session->reply.length = 0;
  if (event < 0)
    return event;
  if (event == REMOTE_GONE || event == REMOTE_STRANGER) {
    session_finish(session, event == REMOTE_GONE ? GDB_END_GONE : GDB_END_STRANGER);
    return 0;
  }
  if (event == REMOTE_INTERRUPT)
    return 0;
  if (event == REMOTE_TOO_BIG)
    reply_error(session, -EMSGSIZE);
  else
    packet_take(session);
  return session->error < 0 ? session->error : reply_send(session);
}

int gdb_serve(const struct gdb_target *target, const struct gdb_io *io)
{
  struct gdb_session *session = calloc(1, sizeof(*session));
  int r = 0;

  assert(target->stop); /* the one function that a target must have */
  if (!session)
    return -ENOMEM;
  session->target = target;
  session->architecture = target->architecture ? target->architecture(target->data) : GDB_X86_64;
  remote_init(&session->remote, io);
  while (r >= 0 && !session->is_over)
    r = session_step(session);
  if (r >= 0)
    r = session->end;
  else if (r == -EPIPE || r == -ECONNRESET)
    r = GDB_END_GONE;
  remote_done(&session->remote);
  text_done(&session->reply);
  text_done(&session->object);
  text_done(&session->btrace.window);
  free(session);
  return r;
}

/* ---- for targets ---- */

bool gdb_session_interrupted(struct gdb_session *session)
{
  return remote_interrupted(&session->remote);
}

bool gdb_session_passes(const struct gdb_session *session, unsigned signal)
{
  return signal < 64 && session->passed >> signal & 1;
}

void gdb_session_print(struct gdb_session *session, const char *text)
{
  struct text packet = {0};
  int r = text_add(&packet, "O");

  if (r >= 0)
    r = hex_put(&packet, text, strnlen(text, GDB_PACKET_MAX / 2 - 1));
  if (r >= 0)
    r = remote_send(&session->remote, packet.data, packet.length);
  session_check(session, r);
  text_done(&packet);
}

/* gdb numbers signals up to 31 as 4.4BSD does, and later ones after them. */
unsigned gdb_signal(int number)
{
  static const uint8_t numbers[32] = {0,  1,  2,  3,  4,  5,  6,  10, 8,  9,  30, 11, 31, 13, 14, 15, SIGNAL_UNKNOWN,
                                      20, 19, 17, 18, 21, 22, 16, 24, 25, 26, 27, 28, 23, 32, 12};

  return number >= 0 && number < 32 ? numbers[number] : SIGNAL_UNKNOWN;
}
