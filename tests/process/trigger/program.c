/* SPDX-License-Identifier: Apache-2.0
 *
 * A program for tests of `lbr record --trigger` (tests/unit/test_trigger.py): its first argument says what it does.
 * Each mode reaches a place at a known point, and computes before and after it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACE __attribute__((noinline, noclone))

int library_place(int value);

static jmp_buf jump;
static volatile sig_atomic_t is_wanted, is_over;

PLACE int leaf(int value)
{
  __asm__ volatile("" ::: "memory");
  return value * 3 + 1;
}

PLACE int compute(int value)
{
  int sum = 0;

  for (int i = 0; i < value % 10 + 3; i++)
    sum += leaf(i);
  return sum;
}

PLACE int rare(int value)
{
  return leaf(value) + 1; /* the line of the test by FILE:LINE */
}

static inline __attribute__((always_inline)) int always_inlined(int value)
{
  return value ^ 5;
}

static double now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* plain N: reaches the place in the middle of N rounds. */
static int plain(int count, int (*place)(int))
{
  int sum = 0;

  for (int i = 0; i < count; i++) {
    sum += compute(i);
    if (i == count / 2)
      sum += place(i);
  }
  return always_inlined(sum);
}

/* hot N: calls the place in each round, and `late` at the end. */
PLACE int late(int value)
{
  return leaf(value) - 1;
}

static int hot(int count)
{
  int sum = 0;

  for (int i = 0; i < count; i++)
    sum += leaf(i);
  return sum + late(sum);
}

/* threads: the sixth of eight reaches the place. */
static pthread_barrier_t barrier;

static void *thread_run(void *data)
{
  long number = (long)data;
  int sum = 0;

  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 20000; i++) {
    sum += compute(i);
    if (number == 5 && i == 10000) {
      printf("thread %d\n", gettid());
      sum += rare(i);
    }
  }
  pthread_barrier_wait(&barrier);
  return (void *)(long)sum;
}

static int threads(void)
{
  pthread_t list[8];

  pthread_barrier_init(&barrier, NULL, 8);
  for (long i = 0; i < 8; i++)
    pthread_create(&list[i], NULL, thread_run, (void *)i);
  for (int i = 0; i < 8; i++)
    pthread_join(list[i], NULL);
  return 0;
}

/* server: two threads compute until SIGTERM; after SIGUSR1 one of them reaches the place, by a file that it loads then
 * if a path is given. */
static void on_signal(int number)
{
  if (number == SIGTERM)
    is_over = 1;
  else
    is_wanted = 1;
}

static int plugin_call(const char *path)
{
  void *plugin = dlopen(path, RTLD_NOW);
  int (*place)(int) = plugin ? (int (*)(int))(long)dlsym(plugin, "plugin_place") : NULL;

  if (!place) {
    fprintf(stderr, "%s\n", dlerror());
    exit(9);
  }
  return place(3);
}

static void *server_run(void *data)
{
  const char *path = data;
  int sum = 0;

  while (!is_over) {
    for (int i = 0; i < 1000; i++)
      sum += compute(i);
    if (path && is_wanted) {
      is_wanted = 0;
      sum += *path ? plugin_call(path) : rare(sum);
    }
  }
  return (void *)(long)sum;
}

static int server(char *path)
{
  pthread_t list[2];

  signal(SIGUSR1, on_signal);
  signal(SIGTERM, on_signal);
  pthread_create(&list[0], NULL, server_run, NULL);
  pthread_create(&list[1], NULL, server_run, path);
  printf("ready %d\n", getpid());
  fflush(stdout);
  for (int i = 0; i < 2; i++)
    pthread_join(list[i], NULL);
  puts("over");
  return 0;
}

/* slow WHAT: among thousands of calls of `work` one takes 1.2 seconds. */
PLACE int work(int value, int depth)
{
  int sum = leaf(value);

  if (depth)
    return work(value, depth - 1) + sum;
  if (value == -1)
    for (double end = now() + 1.2; now() < end; usleep(1000))
      sum += compute(sum);
  if (value == -2)
    usleep(1200000);
  if (value == -3)
    longjmp(jump, 1);
  return sum;
}

/* Jumps out of many calls, and takes its time between calls: none of them is slow. */
static int slow_jump(void)
{
  volatile int sum = 0;

  for (volatile int i = 0; i < 2000; i++) {
    if (i % 10 == 5 && !setjmp(jump))
      work(-3, 2);
    if (i == 1005)
      usleep(1200000);
    sum += work(i, 0);
  }
  return sum;
}

static int slow(const char *what)
{
  int sum = 0, value = !strcmp(what, "sleep") ? -2 : -1, depth = !strcmp(what, "deep") ? 100 : 0;

  if (!strcmp(what, "jump"))
    return slow_jump();
  for (int i = 0; i < 5000; i++)
    sum += work(i == 3000 ? value : i, strcmp(what, "sleep") ? depth : i % 3);
  return sum;
}

/* marks: one mark each 100 ms, of which the 26th also reaches the place. Says when each of them was. */
#define MARK(n)                                                                                                        \
  PLACE int mark_##n(int value)                                                                                        \
  {                                                                                                                    \
    return compute(value + n);                                                                                         \
  }
#define TEN(f, n) f(n##0) f(n##1) f(n##2) f(n##3) f(n##4) f(n##5) f(n##6) f(n##7) f(n##8) f(n##9)
TEN(MARK, 1)
TEN(MARK, 2)
TEN(MARK, 3)
TEN(MARK, 4)
#define NAME(n) mark_##n,
static int (*const marks[])(int) = {TEN(NAME, 1) TEN(NAME, 2) TEN(NAME, 3) TEN(NAME, 4)};

static int time_marks(void)
{
  enum { COUNT = sizeof(marks) / sizeof(marks[0]) };
  double times[COUNT], reached = 0;
  int sum = 0;

  for (int i = 0; i < COUNT; i++) {
    times[i] = now();
    sum += marks[i](i);
    if (i == 25) {
      reached = now();
      sum += rare(i);
    }
    usleep(100000);
  }
  printf("rare %f\n", reached);
  for (int i = 0; i < COUNT; i++)
    printf("mark_%d %f\n", i + 10, times[i]);
  return sum;
}

/* fork: a child reaches the place. */
static int fork_child(void)
{
  int status = 0;

  if (!fork())
    _exit(plain(100, rare) & 1);
  wait(&status);
  return 0;
}

int main(int count, char **words)
{
  const char *mode = count > 1 ? words[1] : "plain", *what = count > 2 ? words[2] : "1000";

  setvbuf(stdout, NULL, _IONBF, 0);
  if (!strcmp(mode, "plain"))
    plain(atoi(what), rare);
  else if (!strcmp(mode, "library"))
    plain(1000, library_place);
  else if (!strcmp(mode, "plugin"))
    plain(1000, compute), plugin_call(what), plain(1000, compute);
  else if (!strcmp(mode, "hot"))
    hot(atoi(what));
  else if (!strcmp(mode, "threads"))
    threads();
  else if (!strcmp(mode, "server"))
    server(count > 2 ? words[2] : "");
  else if (!strcmp(mode, "slow"))
    slow(what);
  else if (!strcmp(mode, "marks"))
    time_marks();
  else if (!strcmp(mode, "fork"))
    fork_child();
  else if (!strcmp(mode, "exec"))
    execl(words[0], words[0], "plain", "1000", NULL);
  return 7;
}
