/* SPDX-License-Identifier: Apache-2.0
 *
 * Forwards signals to the program that lbr runs. The handler sends them itself, so that they arrive while lbr waits for
 * a disk or a pipe. Three kinds are not forwarded, because the program gets them anyway or must not get them:
 * - those that the terminal sends: the kernel sends them to the whole foreground process group;
 * - those that the program, or a process that it started, sends: "kill 0" would hit the program twice;
 * - the one that lbr keeps for itself.
 * A signal that comes before the program exists is kept, the terminal's too, with the value that its sender gave it.
 */
#include "session/relay.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  SIGNALS = 65,
  ANCESTORS = 1024, /* ancestors of a sender that are checked */
  EARLY = 256,      /* signals that are kept in order and with their values; of more, only the number is */
  STAT_BYTES = 512, /* of /proc/PID/stat: number, name, state and parent are in its first 60 */
};

/* The signals that another process may usefully send to a program: not faults, not limits. The kernel sends SIGTTIN and
 * SIGTTOU to both lbr and the program. The real-time signals are forwarded, too. */
static const int relayed[] = {SIGHUP,   SIGINT, SIGQUIT, SIGABRT,   SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGSTKFLT,
                              SIGWINCH, SIGIO,  SIGPWR,  SIGVTALRM, SIGPROF, SIGURG,  SIGTSTP, SIGCONT};

/* The terminal sends these to all processes of the foreground process group. */
static const int from_terminal[] = {SIGINT, SIGQUIT, SIGTSTP, SIGWINCH, SIGHUP, SIGCONT};

static const int ending[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- state, shared with the handler ---- */

static struct sigaction before[SIGNALS]; /* as relay_start found them */
static sigset_t before_mask;
static bool is_caught[SIGNALS];
static int own_signal;

static volatile sig_atomic_t own_came, child_changed, continued, is_suspended; /* Ctrl-Z at the terminal */
static volatile sig_atomic_t is_stopping;    /* lbr stops itself: SIGCONT is for relay_follow */
static volatile sig_atomic_t asked[SIGNALS]; /* number of signals from outside */
static siginfo_t early[EARLY];               /* signals that wait for the start of the program, in order of arrival */
static volatile sig_atomic_t early_count;
static volatile sig_atomic_t kept[SIGNALS]; /* number of signals that found `early` full */

static volatile sig_atomic_t program;    /* its process number; 0: not started, or ended */
static volatile sig_atomic_t program_fd; /* its pidfd: its number may be reused after its end; -1 if none */
static volatile sig_atomic_t has_forked; /* the program gets the terminal's signals itself */
static volatile sig_atomic_t has_ended;
static bool is_program_traced;

static void (*volatile bell_ring)(const void *data);
static const void *volatile bell_data;

static bool is_among(int number, const int *numbers, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (numbers[i] == number)
      return true;
  return false;
}

/* ---- /proc/PID/stat, read in a signal handler ---- */

/* "/proc/17/stat" */
static void stat_path(pid_t process, char path[32])
{
  char digits[16];
  size_t count = 0;

  do
    digits[count++] = (char)('0' + process % 10);
  while ((process /= 10) > 0);
  path = stpcpy(path, "/proc/");
  while (count > 0)
    *path++ = digits[--count];
  stpcpy(path, "/stat");
}

/* The state's letter and the parent come after the name, which may contain any character: after the last ')'. Returns
 * false if there is no such process. */
static bool stat_read(pid_t process, char *ret_state, pid_t *ret_parent)
{
  char path[32], text[STAT_BYTES + 1];
  const char *at;
  pid_t parent = 0;

  stat_path(process, path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t size = read(fd, text, STAT_BYTES);
  close(fd);
  text[size > 0 ? size : 0] = 0;
  at = strrchr(text, ')');
  if (!at || at[1] != ' ' || !at[2] || at[3] != ' ')
    return false;
  *ret_state = at[2];
  for (at += 4; *at >= '0' && *at <= '9'; at++)
    parent = parent * 10 + (*at - '0');
  *ret_parent = parent;
  return true;
}

/* Whether it is lbr, the program, or a process that the program started. */
static bool is_ours(pid_t process)
{
  pid_t self = getpid();
  char state;

  for (unsigned i = 0; i < ANCESTORS && process > 1; i++) {
    if (process == self)
      return true;
    if (!stat_read(process, &state, &process))
      return false;
  }
  return false;
}

/* ---- the handler ---- */

static void program_signal(int number, siginfo_t *info)
{
  int r = program_fd < 0 ? -1 : pidfd_send_signal(program_fd, number, info, 0);

  if (r < 0 && (program_fd < 0 || errno == ENOSYS || errno == EPERM) && program > 0)
    kill(program, number);
}

/* When the terminal is gone, the kernel sends SIGHUP only to the session leader. If that is lbr, lbr forwards the
 * signal: without lbr, the program would be the session leader. */
static bool program_has(int number)
{
  if (!has_forked || !is_among(number, from_terminal, COUNT(from_terminal)))
    return false;
  return number != SIGHUP || getsid(0) != getpid();
}

static bool is_for_program(int number, const siginfo_t *info)
{
  return info->si_code > 0 ? !program_has(number) : !is_ours(info->si_pid);
}

/* Only sigqueue(3) gives a signal a value. */
static void signal_forward(int number, siginfo_t *info)
{
  program_signal(number, info->si_code == SI_QUEUE ? info : NULL);
}

static void signal_keep(int number, const siginfo_t *info)
{
  if (early_count < EARLY)
    early[early_count++] = *info;
  else
    kept[number]++;
}

static void signal_take(int number, siginfo_t *info)
{
  bool is_from_process = info->si_code <= 0;

  if (number == SIGTSTP && !is_from_process)
    is_suspended = 1;
  if (number == SIGCONT && is_stopping) {
    continued = 1;
    return;
  }
  if (is_from_process && is_ours(info->si_pid))
    return;
  asked[number]++;
  if (has_ended || !is_for_program(number, info))
    return;
  if (!program)
    signal_keep(number, info);
  else
    signal_forward(number, info);
}

static void signal_handler(int number, siginfo_t *info, void *context)
{
  int saved = errno;

  (void)context;
  if (number == SIGCHLD)
    child_changed = 1;
  else if (number == own_signal)
    own_came = 1;
  else
    signal_take(number, info);
  if (bell_ring)
    bell_ring(bell_data);
  errno = saved;
}

/* ---- what lbr's children inherit ---- */

static sigset_t fork_mask;

static void mask_fill(int how, sigset_t *ret_old)
{
  sigset_t all;

  sigfillset(&all);
  sigprocmask(how, &all, ret_old);
}

static void fork_prepare(void)
{
  mask_fill(SIG_BLOCK, &fork_mask);
}

static void fork_parent(void)
{
  has_forked = 1;
  sigprocmask(SIG_SETMASK, &fork_mask, NULL);
}

/* ---- from outside ---- */

static void signal_catch(int number, const struct sigaction *action)
{
  if (!is_caught[number] && sigaction(number, action, &before[number]) == 0)
    is_caught[number] = true;
}

void relay_start(int own)
{
  const struct sigaction ignore = {.sa_handler = SIG_IGN};
  struct sigaction action = {.sa_sigaction = signal_handler, .sa_flags = SA_SIGINFO | SA_RESTART};

  sigfillset(&action.sa_mask);
  mask_fill(SIG_BLOCK, &before_mask);
  program_fd = -1;
  own_signal = own;
  for (size_t i = 0; i < COUNT(relayed); i++)
    signal_catch(relayed[i], &action);
  for (int number = SIGRTMIN; number <= SIGRTMAX && number < SIGNALS; number++)
    signal_catch(number, &action);
  if (own)
    signal_catch(own, &action);
  signal_catch(SIGCHLD, &action); /* if it were ignored, the status of the program would be lost */
  signal_catch(SIGPIPE, &ignore); /* lbr must not die if the reader of its trace or report is gone */
  pthread_atfork(fork_prepare, fork_parent, relay_restore);
  mask_fill(SIG_UNBLOCK, NULL);
}

static void kept_forward(void)
{
  for (int i = 0; i < early_count; i++)
    signal_forward(early[i].si_signo, &early[i]);
  early_count = 0;
  for (int number = 1; number < SIGNALS; number++)
    for (; kept[number] > 0; kept[number]--)
      program_signal(number, NULL);
}

void relay_to(int process, bool is_traced)
{
  sigset_t old;

  assert(is_caught[SIGCHLD] && !program); /* after relay_start; one program at a time */
  mask_fill(SIG_BLOCK, &old);
  program_fd = pidfd_open(process, 0);
  program = process;
  is_program_traced = is_traced;
  kept_forward();
  sigprocmask(SIG_SETMASK, &old, NULL);
}

void relay_bell(void (*ring)(const void *data), const void *data)
{
  bell_ring = NULL;
  bell_data = data;
  bell_ring = ring;
}

void relay_end(void)
{
  int fd = program_fd;

  has_ended = 1;
  program = 0;
  program_fd = -1;
  if (fd >= 0)
    close(fd);
}

unsigned relay_count(void)
{
  unsigned count = 0;

  for (size_t i = 0; i < COUNT(ending); i++)
    count += (unsigned)asked[ending[i]];
  return count;
}

bool relay_own_came(void)
{
  bool came = own_came;

  own_came = 0;
  return came;
}

bool relay_wait(const struct timespec *time)
{
  sigset_t old;
  bool has_passed = false;

  mask_fill(SIG_BLOCK, &old);
  if (!child_changed && !own_came)
    has_passed = ppoll(NULL, 0, time, &old) == 0;
  sigprocmask(SIG_SETMASK, &old, NULL);
  return has_passed;
}

void relay_restore(void)
{
  for (int number = 1; number < SIGNALS; number++)
    if (is_caught[number])
      sigaction(number, &before[number], NULL);
  sigprocmask(SIG_SETMASK, &before_mask, NULL);
}

/* A signal that arrived meanwhile takes effect now, as it would on the program without lbr. */
void relay_begin(void)
{
  has_forked = 1;
  relay_restore();
}

/* ---- job control ---- */

/* Without a terminal nothing waits for lbr to stop, and nothing would continue it. A sender of SIGSTOP knows the
 * program's number and will continue the program itself; only in the foreground the shell waits for lbr. */
static bool stops_with(int number)
{
  int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  bool is_foreground;

  if (terminal < 0)
    return false;
  is_foreground = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return number == SIGSTOP ? is_foreground : true;
}

static void stop_self(int number)
{
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  struct sigaction old;
  bool is_changed = number != SIGSTOP && sigaction(number, &standard, &old) == 0;

  raise(number);
  if (is_changed)
    sigaction(number, &old, NULL);
}

/* The signal that has stopped the program; 0 if it was not stopped. If lbr is the tracer, the stops are seen elsewhere:
 * then Ctrl-Z itself counts, since without its tracer the program does not run. */
static int program_stop(void)
{
  siginfo_t info = {0};
  bool was_suspended = is_suspended, has_changed = child_changed;

  is_suspended = child_changed = 0;
  if (!program)
    return 0;
  if (is_program_traced)
    return was_suspended ? SIGTSTP : 0;
  if (!has_changed || waitid(P_PID, (id_t)program, &info, WSTOPPED | WNOHANG) < 0 || !info.si_pid)
    return 0;
  return info.si_status;
}

void relay_follow(void)
{
  int number = program_stop();
  char state;
  pid_t parent;

  if (!number || !stops_with(number))
    return;
  continued = 0;
  is_stopping = 1;
  stop_self(number);
  is_stopping = 0;
  if (continued && stat_read(program, &state, &parent) && state == 'T')
    program_signal(SIGCONT, NULL); /* only lbr was continued, not its process group */
}
