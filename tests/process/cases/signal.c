/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals as sigaction(2) describes them: flags, masks, stacks, system calls that are interrupted or done again, the
 * frame that a handler sees. Timers that come at any instruction are in storm.c.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static volatile sig_atomic_t level, rounds;
static sigjmp_buf back;
static char stack_bytes[65536];

static void handle(int signal, void (*handler)(int), int flags)
{
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(signal, &action, NULL);
}

static void handle_info(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
  sigaction(signal, &action, NULL);
}

static sigset_t set_of(int signal)
{
  sigset_t set;
  sigemptyset(&set);
  if (signal)
    sigaddset(&set, signal);
  return set;
}

static void block(int how, int signal)
{
  sigset_t set = set_of(signal);
  sigprocmask(how, &set, NULL);
}

static void say_mask(const char *what)
{
  sigset_t set;
  sigprocmask(SIG_BLOCK, NULL, &set);
  say("%s:", what);
  for (int signal = 1; signal <= 64; signal++)
    if (sigismember(&set, signal) == 1)
      say(" %d", signal);
  say("\n");
}

static void alarm_after(long microseconds)
{
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = microseconds}, NULL);
}

static int teller = -1; /* who hears there that the handler has run */

static void on_signal(int signal)
{
  int saved = errno;
  say("handler %d level %d\n", signal, ++level);
  level--;
  if (teller >= 0 && write(teller, "", 1) != 1)
    _exit(98);
  errno = saved;
}

/* ---- masks and flags ---- */

static void on_nest(int signal)
{
  say("in %d level %d\n", signal, ++level);
  say_mask("mask");
  if (++rounds < 4)
    raise(signal == SIGUSR1 ? SIGUSR2 : SIGUSR1);
  say("out %d level %d\n", signal, level--);
}

static int nested(void)
{
  handle(SIGUSR1, on_nest, 0);
  handle(SIGUSR2, on_nest, 0);
  raise(SIGUSR1);
  say_mask("after");
  return 0;
}

static int nodefer(void)
{
  struct sigaction action = {.sa_handler = on_nest, .sa_flags = SA_NODEFER, .sa_mask = set_of(SIGHUP)};
  sigaction(SIGUSR1, &action, NULL);
  handle(SIGUSR2, on_nest, SA_NODEFER);
  raise(SIGUSR1);
  return 0;
}

static int resethand(void)
{
  struct sigaction action;
  handle(SIGUSR1, on_signal, SA_RESETHAND);
  raise(SIGUSR1);
  sigaction(SIGUSR1, NULL, &action);
  say("now %s flags %x\n", action.sa_handler == SIG_DFL ? "default" : "a handler", action.sa_flags & ~0x04000000);
  raise(SIGUSR1);
  return 0;
}

/* What sigaction gives back is what was set. */
static int old_action(void)
{
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK, .sa_mask = set_of(SIGHUP)};
  struct sigaction old;
  sigaction(SIGUSR1, NULL, &old);
  say("%d flags %x\n", old.sa_handler == SIG_DFL, old.sa_flags);
  sigaction(SIGUSR1, &action, &old);
  sigaction(SIGUSR1, NULL, &old);
  say("%d flags %x mask %d %d\n", old.sa_handler == on_signal, old.sa_flags & ~0x04000000,
      sigismember(&old.sa_mask, SIGHUP), sigismember(&old.sa_mask, SIGINT));
  signal(SIGUSR1, SIG_IGN);
  sigaction(SIGUSR1, NULL, &old);
  say("%d, and", old.sa_handler == SIG_IGN);
  int result = sigaction(SIGKILL, &action, NULL);
  say(" SIGKILL: %d errno %d;", result, errno);
  errno = 0;
  result = (int)syscall(SYS_rt_sigaction, 65, &action, NULL, 8);
  say(" 65: %d errno %d;", result, errno);
  errno = 0;
  result = (int)syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 16);
  say(" size: %d errno %d;", result, errno);
  result = (int)syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8);
  say(" address: %d errno %d\n", result, errno);
  for (int number = 1; number <= 64; number++) {
    struct sigaction now;
    if (!sigaction(number, NULL, &now) && now.sa_handler != SIG_DFL)
      say("%d is not default\n", number);
  }
  return 0;
}

static int pending(void)
{
  sigset_t set;
  handle(SIGUSR1, on_signal, 0);
  handle(SIGUSR2, on_signal, 0);
  block(SIG_BLOCK, SIGUSR1);
  block(SIG_BLOCK, SIGUSR2);
  raise(SIGUSR2);
  raise(SIGUSR1);
  raise(SIGUSR1);
  sigpending(&set);
  say("pending %d %d\n", sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2));
  sigset_t none = set_of(0);
  sigprocmask(SIG_SETMASK, &none, NULL);
  say("done\n");
  return 0;
}

static void on_mask_change(int signal, siginfo_t *info, void *context)
{
  ucontext_t *frame = context;
  say("in %d from %s, was blocked %d\n", signal, info->si_pid == getpid() ? "us" : "others",
      sigismember(&frame->uc_sigmask, SIGHUP));
  sigaddset(&frame->uc_sigmask, SIGHUP);
  sigaddset(&frame->uc_sigmask, SIGUSR1);
}

/* The mask in the frame is the one after the handler. */
static int frame_mask(void)
{
  handle_info(SIGUSR1, on_mask_change, 0);
  handle(SIGHUP, on_signal, 0);
  raise(SIGUSR1);
  say_mask("after");
  raise(SIGHUP);
  say("held back\n");
  block(SIG_UNBLOCK, SIGHUP);
  say("done\n");
  return 0;
}

static void on_order(int signal, siginfo_t *info, void *context)
{
  (void)context;
  say("%d value %d code %d\n", signal - SIGRTMIN, info->si_value.sival_int, info->si_code);
}

/* Queued ones come by number and then in their order. */
static int realtime(void)
{
  for (int i = 0; i < 3; i++) {
    handle_info(SIGRTMIN + i, on_order, 0);
    block(SIG_BLOCK, SIGRTMIN + i);
  }
  for (int i = 0; i < 9; i++)
    sigqueue(getpid(), SIGRTMIN + 2 - i % 3, (union sigval){.sival_int = i});
  sigset_t none = set_of(0);
  struct sigaction all = {.sa_sigaction = on_order, .sa_flags = SA_SIGINFO};
  sigfillset(&all.sa_mask); /* else the last comes first */
  for (int i = 0; i < 3; i++)
    sigaction(SIGRTMIN + i, &all, NULL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  return 0;
}

/* ---- stacks ---- */

static void on_stack(int signal)
{
  char here;
  stack_t stack;
  sigaltstack(NULL, &stack);
  say("%d %s, flags %x size %zu\n", signal,
      &here >= stack_bytes && &here < stack_bytes + sizeof(stack_bytes) ? "inside" : "outside", stack.ss_flags,
      stack.ss_size);
  if (signal == SIGUSR1) {
    int result = sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    say("cannot be changed: %d %d\n", result, errno);
    raise(SIGUSR2);
  }
}

static int onstack(void)
{
  stack_t stack = {.ss_sp = stack_bytes, .ss_size = sizeof(stack_bytes)};
  stack_t before;
  sigaltstack(&stack, &before);
  say("before: flags %x\n", before.ss_flags);
  handle(SIGUSR1, on_stack, SA_ONSTACK);
  handle(SIGUSR2, on_stack, SA_ONSTACK);
  handle(SIGHUP, on_stack, 0);
  raise(SIGUSR1);
  raise(SIGHUP);
  stack = (stack_t){.ss_sp = stack_bytes, .ss_size = 100};
  say("too small: %d", sigaltstack(&stack, NULL));
  say(" %d\n", errno);
  return 0;
}

static int autodisarm(void)
{
  stack_t stack = {.ss_sp = stack_bytes, .ss_size = sizeof(stack_bytes), .ss_flags = (int)(1u << 31)};
  sigaltstack(&stack, NULL);
  handle(SIGHUP, on_stack, SA_ONSTACK);
  raise(SIGHUP);
  sigaltstack(NULL, &stack);
  say("after: flags %x size %zu\n", stack.ss_flags, stack.ss_size);
  return 0;
}

/* ---- system calls that a signal interrupts ---- */

/* A child that sends a signal to its parent once that waits in a system call. */
static pid_t signal_when(long call, int signal)
{
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    await_task(parent, parent, 'S', call);
    _exit(kill(parent, signal) != 0);
  }
  return child;
}

/* A child that sends the signal once its parent waits for what it writes, and writes when the handler has run. */
static int late_pipe(void)
{
  int ends[2], told[2];
  char byte;
  pid_t parent = getpid();
  if (pipe(ends) || pipe(told))
    _exit(9);
  teller = told[1];
  if (fork() == 0) {
    await_task(parent, parent, 'S', SYS_read);
    _exit(kill(parent, SIGALRM) != 0 || read(told[0], &byte, 1) != 1 || write(ends[1], "late", 4) != 4);
  }
  close(ends[1]);
  return ends[0];
}

static int restart_read(void)
{
  char bytes[8];
  handle(SIGALRM, on_signal, SA_RESTART);
  int input = late_pipe();
  ssize_t size = read(input, bytes, sizeof(bytes));
  say("read %zd\n", size);
  wait(NULL);
  return 0;
}

/* The same branches in every run, if the alarm comes while it waits: nobody looks whether it does. */
static int restart_alarm(void)
{
  char bytes[8], byte;
  int ends[2], told[2];
  handle(SIGALRM, on_signal, SA_RESTART);
  if (pipe(ends) || pipe(told))
    return 9;
  teller = told[1];
  if (fork() == 0)
    _exit(read(told[0], &byte, 1) != 1 || write(ends[1], "late", 4) != 4);
  alarm_after(200000);
  say("read %zd\n", read(ends[0], bytes, sizeof(bytes)));
  wait(NULL);
  return 0;
}

static int interrupted_read(void)
{
  char bytes[8];
  handle(SIGALRM, on_signal, 0);
  int input = late_pipe();
  ssize_t size = read(input, bytes, sizeof(bytes));
  say("read %zd errno %d\n", size, errno);
  say("read %zd\n", read(input, bytes, sizeof(bytes)));
  wait(NULL);
  return 0;
}

static int interrupted_sleep(void)
{
  struct timespec left = {0};
  handle(SIGALRM, on_signal, SA_RESTART);
  pid_t child = signal_when(SYS_clock_nanosleep, SIGALRM); /* so does the C library */
  int result = nanosleep(&(struct timespec){.tv_sec = 1000}, &left);
  say("nanosleep %d errno %d, most is left: %d\n", result, errno, left.tv_sec > 500);
  waitpid(child, NULL, 0);
  child = signal_when(SYS_clock_nanosleep, SIGALRM);
  result = clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_sec = 1000}, &left);
  say("clock_nanosleep %d, most is left: %d\n", result, left.tv_sec > 500);
  waitpid(child, NULL, 0);
  return 0;
}

/* A signal that is ignored: the kernel goes on with the call by restart_syscall. */
static int continued_sleep(void)
{
  struct timespec before, after;
  pid_t child = fork();
  if (!child) {
    clock_gettime(CLOCK_MONOTONIC, &before);
    int result = nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long passed = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    say("slept %d, long enough: %d\n", result, passed >= 300);
    _exit(0);
  }
  await_task(child, child, 'S', SYS_clock_nanosleep);
  kill(child, SIGSTOP);
  waitpid(child, NULL, WUNTRACED);
  kill(child, SIGCONT);
  waitpid(child, NULL, 0);
  return 0;
}

/* What is blocked until it is waited for comes when it is waited for: the same branches in every run. */
static int suspend_blocked(void)
{
  sigset_t none = set_of(0);
  handle(SIGALRM, on_signal, 0);
  block(SIG_BLOCK, SIGALRM);
  alarm_after(50000);
  int result = sigsuspend(&none);
  say("sigsuspend %d errno %d\n", result, errno);
  say_mask("after");
  alarm_after(50000);
  result = ppoll(NULL, 0, NULL, &none);
  say("ppoll %d errno %d\n", result, errno);
  say_mask("after");
  return 0;
}

static int suspend(void)
{
  handle(SIGALRM, on_signal, 0);
  pid_t child = signal_when(SYS_pause, SIGALRM);
  int result = pause();
  say("pause %d errno %d\n", result, errno);
  waitpid(child, NULL, 0);
  return 0;
}

static int waited(void)
{
  sigset_t set = set_of(SIGALRM);
  siginfo_t info;
  int signal = 0;
  block(SIG_BLOCK, SIGALRM);
  alarm_after(50000);
  say("sigwait %d", sigwait(&set, &signal));
  say(" signal %d\n", signal);
  alarm_after(50000);
  say("sigwaitinfo %d", sigwaitinfo(&set, &info));
  say(" code %d\n", info.si_code);
  say("sigtimedwait %d", sigtimedwait(&set, &info, &(struct timespec){.tv_nsec = 10000000}));
  say(" errno %d\n", errno);
  return 0;
}

static int by_descriptor(void)
{
  sigset_t set = set_of(SIGUSR1);
  struct signalfd_siginfo info;
  block(SIG_BLOCK, SIGUSR1);
  int fd = signalfd(-1, &set, 0);
  raise(SIGUSR1);
  say("read %zd", read(fd, &info, sizeof(info)));
  say(" signal %u code %d\n", info.ssi_signo, info.ssi_code);
  return 0;
}

static void on_child(int signal, siginfo_t *info, void *context)
{
  (void)signal, (void)context;
  say("child code %d status %d\n", info->si_code, info->si_status);
}

static int child_ends(void)
{
  handle_info(SIGCHLD, on_child, SA_RESTART);
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (!child)
      _exit(i + 3);
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
      ;
    say("waited for %d\n", WEXITSTATUS(status));
  }
  return 0;
}

static int broken_pipe(void)
{
  int ends[2];
  if (pipe(ends))
    return 1;
  close(ends[0]);
  handle(SIGPIPE, on_signal, 0);
  ssize_t size = write(ends[1], "x", 1);
  say("write %zd errno %d\n", size, errno);
  signal(SIGPIPE, SIG_IGN);
  size = write(ends[1], "x", 1);
  say("write %zd errno %d\n", size, errno);
  return 0;
}

/* ---- leaving a handler ---- */

static void on_leave(int signal)
{
  siglongjmp(back, signal);
}

static int leave(void)
{
  volatile int turns = 0;
  handle(SIGUSR1, on_leave, 0);
  int signal = sigsetjmp(back, 1);
  if (signal)
    say("left by %d, round %d\n", signal, turns);
  if (turns++ < 3)
    raise(SIGUSR1);
  say_mask("after");
  return 0;
}

static void on_frame(int signal, siginfo_t *info, void *context)
{
  ucontext_t *frame = context;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0) + 8; /* of the return address, as GCC has it */
  greg_t *registers = frame->uc_mcontext.gregs;
  say("signal %d, frame at %zu of 16, info %s the frame\n", signal, here % 16,
      (uintptr_t)info > (uintptr_t)context ? "above" : "below");
  say("red zone %s, cs %llx, flags %lx\n", (uintptr_t)info < (uintptr_t)registers[REG_RSP] - 128 ? "kept" : "gone",
      registers[REG_CSGSFS] & 0xFFFF, frame->uc_flags);
  uint32_t *reserved = (uint32_t *)frame->uc_mcontext.fpregs + 464 / 4;
  say("vector state %x, %s\n", reserved[0], reserved[1] >= 576 ? "large" : "small");
  say("float at %zu of 64\n", (uintptr_t)frame->uc_mcontext.fpregs % 64);
}

static int frame(void)
{
  handle_info(SIGUSR1, on_frame, 0);
  raise(SIGUSR1);
  return 0;
}

/* ---- threads ---- */

static volatile pid_t told;

static void on_told(int signal)
{
  (void)signal;
  told = gettid();
}

static void *thread_wait(void *argument)
{
  *(pid_t *)argument = gettid();
  while (!told)
    usleep(1000);
  return NULL;
}

static int to_thread(void)
{
  pthread_t thread;
  static volatile pid_t id;
  handle(SIGUSR1, on_told, SA_RESTART);
  pthread_create(&thread, NULL, thread_wait, (void *)&id);
  while (!id)
    usleep(1000);
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, NULL);
  say("%s\n", told == id ? "the thread got it" : "another got it");
  return 0;
}

static volatile pid_t masked;

static void *thread_mask(void *argument)
{
  say_mask("inherited");
  masked = gettid();
  sigset_t set = set_of(SIGUSR2);
  int signal;
  sigwait(&set, &signal);
  say("thread got %d\n", signal);
  return argument;
}

/* Blocked in all threads but the one that waits for it. */
static int masked_thread(void)
{
  pthread_t thread;
  block(SIG_BLOCK, SIGUSR2);
  pthread_create(&thread, NULL, thread_mask, NULL);
  while (!masked)
    usleep(1000);
  await_task(getpid(), masked, 'S', SYS_rt_sigtimedwait);
  kill(getpid(), SIGUSR2);
  pthread_join(thread, NULL);
  return 0;
}

/* Whoever joins it has to wait for it. */
static void *thread_mask_late(void *argument)
{
  thread_mask(argument);
  usleep(500000);
  return argument;
}

/* It may come before anybody waits: it stays pending. The same branches in every run. */
static int pending_thread(void)
{
  pthread_t thread;
  block(SIG_BLOCK, SIGUSR2);
  pthread_create(&thread, NULL, thread_mask_late, NULL);
  kill(getpid(), SIGUSR2);
  pthread_join(thread, NULL);
  return 0;
}

static void on_timer(int signal, siginfo_t *info, void *context)
{
  (void)context;
  say("signal %d code %d value %d\n", signal, info->si_code, info->si_value.sival_int);
}

static int timer(void)
{
  timer_t made;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42};
  handle_info(SIGRTMIN, on_timer, 0);
  timer_create(CLOCK_MONOTONIC, &event, &made);
  timer_settime(made, 0, &(struct itimerspec){.it_value.tv_nsec = 20000000}, NULL);
  pause();
  timer_delete(made);
  return 0;
}

/* Masks and handlers across execve: a handler becomes the default, ignored and blocked stay. */
static int across_exec(void)
{
  handle(SIGUSR1, on_signal, 0);
  signal(SIGUSR2, SIG_IGN);
  block(SIG_BLOCK, SIGHUP);
  execlp("grep", "grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status", NULL);
  return 1;
}

static const struct test_case cases[] = {
  {"nested", nested},
  {"nodefer", nodefer},
  {"resethand", resethand},
  {"old-action", old_action},
  {"pending", pending},
  {"frame-mask", frame_mask},
  {"realtime", realtime},
  {"onstack", onstack},
  {"autodisarm", autodisarm},
  {"restart-read", restart_read},
  {"restart-alarm", restart_alarm},
  {"interrupted-read", interrupted_read},
  {"interrupted-sleep", interrupted_sleep},
  {"continued-sleep", continued_sleep},
  {"suspend", suspend},
  {"suspend-blocked", suspend_blocked},
  {"wait", waited},
  {"descriptor", by_descriptor},
  {"child", child_ends},
  {"broken-pipe", broken_pipe},
  {"leave", leave},
  {"frame", frame},
  {"to-thread", to_thread},
  {"masked-thread", masked_thread},
  {"pending-thread", pending_thread},
  {"timer", timer},
  {"across-exec", across_exec},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
