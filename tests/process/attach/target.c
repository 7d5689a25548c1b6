/* SPDX-License-Identifier: Apache-2.0
 *
 * target WAY: a process for lbr to attach to. It says "ready", does one thing, and says what came of it. The ways that
 * wait in a system call say "RESULT ERRNO MILLISECONDS". What a way does before or after that, it does when a byte
 * comes on standard input; at the end of that, it ends.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 1000 }; /* milliseconds that the waits with a time take */

static volatile sig_atomic_t signals;

static double now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Returns the next byte, or ends the process. */
static char command(void)
{
  char byte;

  while (read(STDIN_FILENO, &byte, 1) != 1)
    if (errno != EINTR)
      exit(0);
  return byte;
}

/* Computes for ever: something to record. */
static unsigned compute(unsigned value, unsigned steps)
{
  for (unsigned i = 0; i < steps; i++)
    value = value & 4 ? value * 1664525 + 1013904223 : value / 3 + 12345;
  return value;
}

static struct timespec time_of(int milliseconds)
{
  return (struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
}

/* ---- system calls that wait ---- */

static long wait_read(void)
{
  char byte;

  return read(STDIN_FILENO, &byte, 1);
}

/* Nobody wakes this one. */
static long wait_futex(void)
{
  struct timespec time = time_of(LONG);
  uint32_t word = 0;

  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
}

static long wait_poll(void)
{
  return poll(NULL, 0, LONG);
}

static long wait_poll_input(void)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

  return poll(&input, 1, -1);
}

static long wait_nanosleep(void)
{
  struct timespec time = time_of(LONG);

  return nanosleep(&time, NULL);
}

static long wait_epoll(void)
{
  struct epoll_event event;

  return epoll_wait(epoll_create1(0), &event, 1, LONG);
}

static long wait_epoll_input(void)
{
  struct epoll_event event = {.events = EPOLLIN};
  int set = epoll_create1(0);

  epoll_ctl(set, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  return epoll_wait(set, &event, 1, -1);
}

/* With a time limit, which makes the kernel end the call with EINTR when it stops a thread. */
static long wait_accept(void)
{
  struct timeval time = {.tv_sec = LONG / 1000};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr address = {.sa_family = AF_UNIX};

  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  bind(fd, &address, sizeof(sa_family_t)); /* to a name that the kernel makes */
  listen(fd, 1);
  return accept(fd, NULL, NULL);
}

static long wait_receive(void)
{
  struct timeval time = {.tv_sec = LONG / 1000};
  int pair[2];
  char byte;

  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  return recv(pair[0], &byte, 1, 0);
}

static long wait_signal(void)
{
  struct timespec time = time_of(LONG);
  sigset_t set;

  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return sigtimedwait(&set, NULL, &time);
}

static long wait_semaphore(void)
{
  struct timespec time = time_of(LONG);
  struct sembuf operation = {.sem_op = -1};
  int set = semget(IPC_PRIVATE, 1, 0600);
  long result = semtimedop(set, &operation, 1, &time);
  int error = errno;

  semctl(set, 0, IPC_RMID);
  errno = error;
  return result;
}

static long wait_child(void)
{
  pid_t child = fork();
  int status;

  if (child == 0) {
    usleep(LONG * 1000);
    _exit(0);
  }
  return waitpid(child, &status, 0) == child ? 0 : -1;
}

static void wait_show(long (*wait)(void))
{
  printf("ready\n");
  errno = 0;
  double start = now();
  long result = wait();
  printf("%ld %d %.3f\n", result, errno, now() - start);
}

/* ---- a read(2) that a signal interrupts ---- */

static void on_signal(int number)
{
  (void)number;
  signals++;
}

static void signal_catch(int flags)
{
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

  sigaction(SIGUSR1, &action, NULL);
}

/* SIGUSR1 is blocked but for the time of the call: then it must be blocked again. */
static long wait_suspend(void)
{
  sigset_t blocked, none, after;

  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  signal_catch(SA_RESTART);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  long result = sigsuspend(&none);
  int error = errno;
  sigprocmask(SIG_SETMASK, NULL, &after);
  errno = error;
  return sigismember(&after, SIGUSR1) && signals == 1 ? result : -2;
}

static void way_restart(void)
{
  signal_catch(SA_RESTART);
  wait_show(wait_read);
}

static void way_interrupt(void)
{
  signal_catch(0);
  wait_show(wait_read);
}

/* ---- what cannot be recorded ---- */

static void way_gs(void)
{
  static char area[64];

  syscall(SYS_arch_prctl, ARCH_SET_GS, area);
  wait_show(wait_read);
}

/* Its child has ended, and stays a zombie. */
static void way_zombie(void)
{
  pid_t child = fork();
  siginfo_t info;

  if (child == 0)
    _exit(0);
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
  printf("ready\n%d\n", child);
  command();
}

static void *thread_wait(void *argument)
{
  printf("ready\n%d\n", gettid());
  command();
  exit(0);
  return argument;
}

/* A thread, whose number it says. */
static void way_thread(void)
{
  pthread_t thread;

  pthread_create(&thread, NULL, thread_wait, NULL);
  pthread_join(thread, NULL);
}

/* The first thread ends, another computes and answers. */
static void *thread_answer(void *argument)
{
  unsigned value = 1;

  usleep(100000);
  printf("ready\n");
  for (;;) {
    command();
    value = compute(value, 1000000);
    printf("answer\n");
  }
  return argument;
}

static void way_leader(void)
{
  pthread_t thread;

  pthread_create(&thread, NULL, thread_answer, NULL);
  pthread_exit(NULL);
}

/* ---- what happens while it is recorded ---- */

static void way_answer(void)
{
  printf("ready\n");
  for (;;) {
    command();
    compute(1, 1000000);
    printf("answer %d\n", signals);
  }
}

static void way_compute(void)
{
  unsigned value = 1;

  printf("ready\n");
  for (;;)
    value = compute(value, 1000);
}

static void way_exit(void)
{
  printf("ready\n");
  command();
  printf("%u\n", compute(5, 1000000));
  exit(7);
}

static __attribute__((noinline)) void crash_here(volatile int *address)
{
  *address = 1;
}

static void way_crash(void)
{
  printf("ready\n");
  command();
  compute(1, 1000);
  crash_here(NULL);
}

static void way_exec(void)
{
  printf("ready\n");
  command();
  execl("/proc/self/exe", "target", "answer", (char *)NULL);
}

/* The process waits until its child has executed another program, for which a byte must come. */
static void way_vfork(void)
{
  pid_t child;
  int status;

  printf("ready\n");
  child = vfork();
  if (child == 0) {
    char byte;

    if (read(STDIN_FILENO, &byte, 1) != 1)
      _exit(1);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  waitpid(child, &status, 0);
  printf("%d\n", status);
}

static _Noreturn void child_compute(pid_t parent)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  for (unsigned wanted = compute(3, 10000);;)
    if (compute(3, 10000) != wanted)
      abort();
}

/* A child that computes for each byte 'f'; for 'e' all of them are ended. Says what their statuses are. */
static void way_forks(void)
{
  pid_t children[100];
  unsigned count = 0;

  printf("ready\n");
  while (command() == 'f' && count < 100) {
    pid_t parent = getpid();

    children[count] = fork();
    if (children[count] == 0)
      child_compute(parent);
    printf("%d\n", children[count++]);
  }
  for (unsigned i = 0; i < count; i++) {
    int status;

    kill(children[i], SIGTERM);
    waitpid(children[i], &status, 0);
    printf("status %d\n", status);
  }
}

/* ---- all of them ---- */

static const struct {
  const char *name;
  long (*wait)(void);
  void (*run)(void);
} ways[] = {
  {"read", wait_read, NULL},
  {"futex", wait_futex, NULL},
  {"poll", wait_poll, NULL},
  {"poll-input", wait_poll_input, NULL},
  {"nanosleep", wait_nanosleep, NULL},
  {"epoll", wait_epoll, NULL},
  {"epoll-input", wait_epoll_input, NULL},
  {"accept", wait_accept, NULL},
  {"receive", wait_receive, NULL},
  {"sigtimedwait", wait_signal, NULL},
  {"semtimedop", wait_semaphore, NULL},
  {"waitpid", wait_child, NULL},
  {"sigsuspend", wait_suspend, NULL},
  {"restart", NULL, way_restart},
  {"interrupt", NULL, way_interrupt},
  {"gs", NULL, way_gs},
  {"zombie", NULL, way_zombie},
  {"thread", NULL, way_thread},
  {"leader", NULL, way_leader},
  {"answer", NULL, way_answer},
  {"compute", NULL, way_compute},
  {"exit", NULL, way_exit},
  {"crash", NULL, way_crash},
  {"exec", NULL, way_exec},
  {"vfork", NULL, way_vfork},
  {"forks", NULL, way_forks},
};

int main(int argc, char **argv)
{
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
    if (strcmp(argv[1], ways[i].name) != 0)
      continue;
    if (ways[i].wait)
      wait_show(ways[i].wait);
    else
      ways[i].run();
    return 0;
  }
  return 2;
}
