/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a guest with its screen in the terminal and the terminal's keys as its keyboard, or with the terminal at its
 * serial line. The guest's clock runs at the user's speed, or slower. The terminal is restored however the program
 * ends, unless it is killed.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/base.h"
#include "session/machine.h"

#define SLICE_NANOSECONDS UINT64_C(10000000)
#define SLICE_INSTRUCTIONS UINT64_C(4000000)
#define SLICE_SECONDS 0.02 /* of the user's time: the delay until a key is seen, whatever the guest does */
#define FRAME_SECONDS 0.03
#define WAIT_MILLISECONDS 50
#define STATUS_SECONDS 0.5
#define KEY_LEAVE 0x1D /* Ctrl-] */

#define TERMINAL_ENTER "\033[?1049h\033[2J" /* the alternate screen, so that the contents come back */
#define TERMINAL_LEAVE "\033[0m\033[?25h\033[?1049l"

static struct termios terminal_before;
static volatile sig_atomic_t terminal_is_ours, terminal_has_changed, terminal_is_serial;

/* ---- the terminal ---- */

static void terminal_write(const char *bytes, size_t size)
{
  while (size > 0) {
    ssize_t done = write(STDOUT_FILENO, bytes, size);

    if (done < 0 && errno != EINTR)
      return;
    if (done > 0) {
      bytes += done;
      size -= (size_t)done;
    }
  }
}

static void terminal_enter(void)
{
  struct termios raw = terminal_before;

  cfmakeraw(&raw);
  if (terminal_is_serial)
    raw.c_oflag = terminal_before.c_oflag; /* a guest may end its lines with \n alone */
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  if (!terminal_is_serial)
    terminal_write(TERMINAL_ENTER, strlen(TERMINAL_ENTER));
  terminal_is_ours = 1;
  terminal_has_changed = 1;
}

/* Also called from signal handlers: write and tcsetattr are allowed there. */
static void terminal_leave(void)
{
  if (!terminal_is_ours)
    return;
  terminal_is_ours = 0;
  if (!terminal_is_serial)
    terminal_write(TERMINAL_LEAVE, strlen(TERMINAL_LEAVE));
  tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
}

/* ---- signals ---- */

static void fatal_handler(int signal)
{
  terminal_leave();
  raise(signal); /* SA_RESETHAND: this time it has its usual effect */
}

static void stop_handler(int signal)
{
  int error = errno;

  (void)signal;
  terminal_leave();
  raise(SIGSTOP);
  terminal_enter();
  errno = error;
}

static void size_handler(int signal)
{
  (void)signal;
  terminal_has_changed = 1;
}

static void signals_catch(void)
{
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
  struct sigaction action = {.sa_handler = fatal_handler, .sa_flags = SA_RESETHAND | SA_NODEFER};

  for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
    sigaction(fatal[i], &action, NULL);
  action = (struct sigaction){.sa_handler = stop_handler, .sa_flags = SA_RESTART};
  sigaction(SIGTSTP, &action, NULL);
  action.sa_handler = size_handler;
  sigaction(SIGWINCH, &action, NULL);
}

/* ---- the screen ---- */

struct live {
  struct machine_session *session;
  struct machine_live_screen screen;
  struct machine_keys keys;
  double start, next_frame, next_status, status_time;
  uint64_t status_retired;
  double origin; /* of the user's clock, when the guest's was at origin_time */
  uint64_t origin_time;
};

static void size_read(struct live *live)
{
  struct winsize size;

  live->screen.columns = 80;
  live->screen.rows = 25;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
    live->screen.columns = size.ws_col;
    live->screen.rows = size.ws_row;
  }
  live->screen.is_known = false;
  live->next_status = 0;
}

/* Shows the status below the guest's screen, if the terminal has room. */
static void status_put(struct live *live, const struct machine_screen *screen, double now, struct text *text)
{
  uint64_t retired = machine_retired(live->session->machine);
  double span = now - live->status_time;

  if (now < live->next_status || live->screen.rows <= screen->rows)
    return;
  text_addf(text, "\033[%u;1H\033[0;7m %s  %.0f million instructions a second  Ctrl-] ends \033[0m\033[K",
            screen->rows + 1, live->session->arguments->cpu->title,
            span > 0 ? (double)(retired - live->status_retired) * 1e-6 / span : 0);
  live->status_retired = retired;
  live->status_time = now;
  live->next_status = now + STATUS_SECONDS;
}

static void frame_put(struct live *live, double now)
{
  struct machine_screen screen = machine_screen(live->session->machine);
  struct text text = {0};

  if (terminal_is_serial) {
    fflush(live->session->console);
    return;
  }
  if (now < live->next_frame && !terminal_has_changed)
    return;
  if (terminal_has_changed) {
    terminal_has_changed = 0;
    size_read(live);
  }
  if (live->screen.is_known)
    status_put(live, &screen, now, &text);
  machine_live_screen_update(&live->screen, &screen, &text);
  terminal_write(text_string(&text), text.length);
  text_done(&text);
  live->next_frame = now + FRAME_SECONDS;
}

/* ---- keys and time ---- */

/* Sends keys over the serial line, as many as it accepts. Returns true if Ctrl-] was among them. */
static bool keys_send(struct machine_keys *keys, struct machine *machine)
{
  size_t sent = 0;

  if (memchr(keys->bytes, KEY_LEAVE, keys->count))
    return true;
  while (sent < keys->count && machine_serial_receive(machine, keys->bytes[sent]))
    sent++;
  keys->count -= sent;
  memmove(keys->bytes, keys->bytes + sent, keys->count);
  return false;
}

/* Waits for keys for a limited time, and presses them. Returns false if the user wants to leave. */
static bool keys_take(struct live *live, int milliseconds)
{
  struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
  struct machine_keys *keys = &live->keys;
  ssize_t size;

  if (poll(&ready, 1, milliseconds) > 0 && keys->count < sizeof(keys->bytes)) {
    size = read(STDIN_FILENO, keys->bytes + keys->count, sizeof(keys->bytes) - keys->count);
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN))
      return false;
    keys->count += size > 0 ? (size_t)size : 0;
  }
  return terminal_is_serial ? !keys_send(keys, live->session->machine)
                            : !machine_keys_press(keys, live->session->machine);
}

/* How far the guest's clock is ahead, in milliseconds. If it has fallen behind, it does not catch up. */
static int time_ahead(struct live *live, double now)
{
  uint64_t time = machine_time(live->session->machine);
  double ahead = (double)(time - live->origin_time) * 1e-9 - (now - live->origin);

  if (ahead < -0.1) {
    live->origin = now;
    live->origin_time = time;
  }
  if (ahead <= 0)
    return 0;
  return ahead * 1000 > WAIT_MILLISECONDS ? WAIT_MILLISECONDS : (int)(ahead * 1000);
}

/* ---- the loop ---- */

static bool live_slice(void *data, bool is_step, enum machine_stop *ret_stop)
{
  struct live *live = data;
  struct machine_session *session = live->session;
  struct machine_limit limit = {.instructions = SLICE_INSTRUCTIONS,
                                .nanoseconds = SLICE_NANOSECONDS,
                                .until_idle = session->arguments->until_idle,
                                .until_halt = session->arguments->until_halt,
                                .deadline = machine_session_deadline(clock_seconds() + SLICE_SECONDS),
                                .is_step = is_step};
  double now;
  int wait;

  *ret_stop = machine_run(session->machine, &limit);
  now = clock_seconds();
  session->seconds = now - live->start;
  frame_put(live, now);
  if (machine_session_slice_ends(session, *ret_stop, session->seconds))
    return true;
  wait = machine_session_is_still(*ret_stop) ? WAIT_MILLISECONDS : time_ahead(live, now);
  if (keys_take(live, *ret_stop == MACHINE_STOP_POINT ? 0 : wait))
    return false;
  session->end = END_INTERRUPTED;
  return true;
}

static bool live_wait(void *data, int fd, int milliseconds)
{
  struct live *live = data;
  struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};

  frame_put(live, clock_seconds());
  poll(ready, 2, milliseconds);
  if (!machine_session_signal && keys_take(live, 0))
    return false;
  live->session->end = END_INTERRUPTED;
  return true;
}

static void live_loop(struct live *live)
{
  struct machine_front front = {live, live_slice, live_wait};
  enum machine_stop stop = MACHINE_STOP_REQUESTED;

  live->start = live->origin = clock_seconds();
  while (!machine_session_debug(live->session, &front, machine_session_is_still(stop)) &&
         !live_slice(live, false, &stop))
    ;
}

void machine_session_run_live(struct machine_session *session)
{
  struct live live = {.session = session};

  tcgetattr(STDIN_FILENO, &terminal_before);
  terminal_is_serial = session->screen != SCREEN_LIVE;
  if (terminal_is_serial)
    message("the terminal is connected to the serial line; Ctrl-] ends");
  signals_catch();
  terminal_enter();
  live_loop(&live);
  terminal_leave();
}
