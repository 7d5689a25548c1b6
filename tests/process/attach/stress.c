/* SPDX-License-Identifier: Apache-2.0
 *
 * stress SCALE SECONDS: a program that checks itself while lbr attaches to it and leaves it. Its threads, 14 for each
 * unit of SCALE and seven more, compute, wait, get signals and start processes, until SIGTERM comes or the time is
 * over. It says "ready THREADS" when they run, and at the end "fine", with status 0; status 3 if a check fails.
 *
 * For each line "check" on standard input, each thread checks that its area for rseq(2) is in use, as the C library
 * has left it; then the program says "checked". While a program is recorded, it need not be so.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/time.h>
#include <unistd.h>

#include "stress.h"

enum { MOST_THREADS = 1000, STACK_SIZE = 1 << 16, MASK_SIZE = 8 };

static const struct work works[] = {
  {"compute", NULL, compute_once, false},
  {"float", NULL, float_once, false},
  {"code", code_begin, code_once, false},
  {"fault", fault_begin, fault_once, false},
  {"vector", vector_begin, vector_once, false},
  {"mutex", NULL, mutex_once, false},
  {"condition", NULL, condition_once, false},
  {"robust", NULL, robust_once, false},
  {"spawn", NULL, spawn_once, false},
  {"pipe", pipe_begin, pipe_once, false},
  {"sleep", NULL, sleep_once, false},
  {"poll", poll_begin, poll_once, false},
  {"wait", NULL, wait_once, false},
  {"semaphore", semaphore_begin, semaphore_once, false},
  {"block_read", NULL, block_read_once, true},
  {"block_write", NULL, block_write_once, true},
  {"fork", NULL, fork_once, true},
  {"execute", NULL, execute_once, true},
  {"receive", receive_begin, receive_once, true},
  {"send", NULL, send_once, true},
};

enum { WORKS = sizeof(works) / sizeof(works[0]) };

struct thread {
  const struct work *work;
  unsigned number;
  pthread_t handle;
  unsigned long count;
};

static struct thread threads[MOST_THREADS];
static unsigned thread_count;
static volatile sig_atomic_t has_ended;
static cpu_set_t cpus;
static unsigned asked, answered; /* checks of rseq(2): how many; and how many threads have done the last one */

static __thread struct {
  const char *name;
  sigset_t mask;
  stack_t stack;
  unsigned asked;
} own;

_Noreturn void failed(const char *format, ...)
{
  char text[256];
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "FAIL process %d, thread %d, %s: %s\n", getpid(), gettid(), own.name, text);
  _exit(3);
}

bool is_over(void)
{
  return has_ended;
}

unsigned hash(unsigned value, unsigned steps)
{
  for (unsigned i = 0; i < steps; i++) {
    value = value * 1664525 + 1013904223;
    if (value & 0x80000)
      value ^= value >> 7;
  }
  return value;
}

double now(clockid_t clock)
{
  struct timespec time;

  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void sleep_for(long microseconds)
{
  const struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
  double start = now(CLOCK_MONOTONIC);

  if (nanosleep(&time, NULL))
    failed("nanosleep: errno %d", errno);
  time_check("nanosleep", start, (double)microseconds / 1e6);
}

void time_check(const char *what, double start, double seconds)
{
  const double rounding = 1e-5;
  double passed = now(CLOCK_MONOTONIC) - start;

  if (passed < seconds - rounding)
    failed("%s took %f s, not %f", what, passed, seconds);
}

/* ---- what must stay the same for each thread ---- */

static void own_begin(const char *name)
{
  own.name = name;
  own.stack = (stack_t){.ss_sp = malloc(STACK_SIZE), .ss_size = STACK_SIZE};
  if (!own.stack.ss_sp || sigaltstack(&own.stack, NULL))
    failed("sigaltstack: errno %d", errno);
  pthread_sigmask(SIG_SETMASK, NULL, &own.mask);
}

void mask_open(const sigset_t *set)
{
  pthread_sigmask(SIG_UNBLOCK, set, NULL);
  pthread_sigmask(SIG_SETMASK, NULL, &own.mask);
}

static void mask_check(void)
{
  sigset_t mask;

  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (memcmp(&mask, &own.mask, MASK_SIZE) != 0)
    failed("the signal mask has changed");
}

static void stack_check(void)
{
  stack_t stack;

  sigaltstack(NULL, &stack);
  if (stack.ss_sp != own.stack.ss_sp || stack.ss_size != own.stack.ss_size || stack.ss_flags != own.stack.ss_flags)
    failed("the alternate stack is %p, size %zu, flags %d", stack.ss_sp, stack.ss_size, stack.ss_flags);
}

static void cpu_check(void)
{
  int cpu = sched_getcpu();

  if (cpu < 0 || !CPU_ISSET(cpu, &cpus))
    failed("sched_getcpu gives %d", cpu);
}

static void rseq_check(void)
{
  unsigned number = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
  const struct rseq *area = (const void *)((const char *)__builtin_thread_pointer() + __rseq_offset);

  if (own.asked == number)
    return;
  if (__rseq_size && (int)*(volatile const uint32_t *)&area->cpu_id < 0)
    failed("rseq has no CPU number but %d", (int)area->cpu_id);
  own.asked = number;
  __atomic_add_fetch(&answered, 1, __ATOMIC_RELEASE);
}

void own_check(void)
{
  mask_check();
  stack_check();
  cpu_check();
  rseq_check();
}

/* ---- the threads ---- */

static void *thread_run(void *argument)
{
  struct thread *thread = argument;

  own_begin(thread->work->name);
  if (thread->work->begin)
    thread->work->begin(thread->number);
  while (!has_ended) {
    thread->work->once(thread->number);
    thread->count++;
    own_check();
  }
  return NULL;
}

static void thread_start(const struct work *work, unsigned number)
{
  struct thread *thread = &threads[thread_count++];

  *thread = (struct thread){.work = work, .number = number};
  int error = pthread_create(&thread->handle, NULL, thread_run, thread);
  if (error)
    failed("pthread_create: %d", error);
}

static void threads_start(unsigned scale)
{
  for (unsigned i = 0; i < WORKS; i++)
    for (unsigned number = 0; number < (works[i].is_single ? 1 : scale); number++)
      thread_start(&works[i], number);
}

static void threads_end(void)
{
  has_ended = true;
  block_read_end();
  for (unsigned i = 0; i < thread_count; i++)
    pthread_join(threads[i].handle, NULL);
}

/* How often each kind of work was done. */
static void counts_show(void)
{
  for (unsigned i = 0; i < WORKS; i++) {
    unsigned long count = 0;

    for (unsigned j = 0; j < thread_count; j++)
      count += threads[j].work == &works[i] ? threads[j].count : 0;
    printf("%s %lu\n", works[i].name, count);
  }
}

/* ---- the main thread ---- */

static volatile unsigned long alarms;

static void on_alarm(int signal)
{
  (void)signal;
  alarms++;
}

static void on_end(int signal)
{
  (void)signal;
  has_ended = true;
}

/* The main thread gets these two, all others block all signals but those that they need. */
static void actions_set(void)
{
  const struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  const struct sigaction end = {.sa_handler = on_end, .sa_flags = SA_RESTART};

  sigaction(SIGALRM, &alarm, NULL);
  sigaction(SIGTERM, &end, NULL);
  fault_prepare();
  signal_prepare();
  vector_prepare();
}

static void signals_block(int how)
{
  sigset_t set;

  sigfillset(&set);
  sigdelset(&set, SIGSEGV);
  if (how == SIG_UNBLOCK) {
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGTERM);
  }
  pthread_sigmask(how, &set, NULL);
}

static void alarm_start(void)
{
  const struct itimerval often = {.it_interval = {.tv_usec = 2000}, .it_value = {.tv_usec = 2000}};

  setitimer(ITIMER_REAL, &often, NULL);
}

/* Answers "check" when all threads have. Returns whether standard input is still open. */
static bool input_answer(void)
{
  char text[64];
  ssize_t size = read(STDIN_FILENO, text, sizeof(text));

  if (size <= 0 || strncmp(text, "check", 5) != 0)
    return false;
  __atomic_store_n(&answered, 0, __ATOMIC_RELEASE);
  __atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) <= thread_count && !has_ended) {
    rseq_check();
    sched_yield();
  }
  printf("checked\n");
  return true;
}

static void main_run(double seconds)
{
  double end = now(CLOCK_MONOTONIC) + seconds;
  unsigned wanted = hash(5, 20000);
  bool is_open = true;

  while (!has_ended && now(CLOCK_MONOTONIC) < end) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    if (hash(5, 20000) != wanted)
      failed("hash in the main thread");
    if (is_open && poll(&input, 1, 0) == 1)
      is_open = input_answer();
    own_check();
  }
}

int main(int argc, char **argv)
{
  unsigned scale = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
  double seconds = argc > 2 ? atof(argv[2]) : 5;

  if (scale * WORKS > MOST_THREADS)
    return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  sched_getaffinity(0, sizeof(cpus), &cpus);
  actions_set();
  signals_block(SIG_BLOCK);
  wait_prepare();
  mutex_prepare();
  threads_start(scale);
  alarm_start();
  signals_block(SIG_UNBLOCK);
  own_begin("main");
  printf("ready %u\n", thread_count);
  main_run(seconds);
  threads_end();
  counts_show();
  printf("alarms %lu\nfine\n", alarms);
  return 0;
}
