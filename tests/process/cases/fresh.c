/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases about programs that make new code all the time, as compilers at run time do: more of it than a cache of
 * translations can hold. What the code computes is printed. A second argument is how many functions each thread makes.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "case.h"

enum { PAGE = 4096, CODE_PAGES = 16, THREADS = 3 };

static unsigned rounds = 100;

/* ---- functions ---- */

typedef uint64_t function(uint64_t value);

static uint32_t draw(uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
  memcpy(at, bytes, size);
  return at + size;
}

/* rol $n, %rax; xor $m, %eax; test $bit, %al; jz over; lea k(%rax, %rax, 2), %rax; over: */
static uint8_t *put_piece(uint8_t *at, uint32_t *state)
{
  uint32_t mask = draw(state), number = draw(state);
  uint8_t shift = (uint8_t)(1 + draw(state) % 62), bit = (uint8_t)(1 << draw(state) % 8);
  at = put(at, (const uint8_t[]){0x48, 0xC1, 0xC0, shift, 0x35}, 5);
  at = put(at, &mask, 4);
  at = put(at, (const uint8_t[]){0xA8, bit, 0x74, 8, 0x48, 0x8D, 0x84, 0x40}, 8);
  return put(at, &number, 4);
}

/* A function whose bytes the number decides: pieces, a loop of three rounds round the last one, a return. */
static size_t make(uint8_t *code, size_t room, uint32_t number)
{
  uint32_t state = number * 2654435761u | 1;
  uint8_t *at = put(code, (const uint8_t[]){0x48, 0x89, 0xF8, 0xB9, 3, 0, 0, 0}, 8); /* mov %rdi, %rax; mov $3, %ecx */
  while ((size_t)(at - code) + 64 < room)
    at = put_piece(at, &state);
  uint8_t *loop = at;
  at = put_piece(at, &state);
  at = put(at, (const uint8_t[]){0xFF, 0xC9, 0x75}, 3); /* dec %ecx; jnz loop */
  *at = (uint8_t)(loop - at - 1);
  at[1] = 0xC3;
  return (size_t)(at + 2 - code);
}

static uint64_t call(const uint8_t *code, uint64_t value)
{
  function *made;
  memcpy(&made, &code, sizeof(made));
  return made(value);
}

static uint8_t *map(size_t size, int rights)
{
  uint8_t *memory = mmap(NULL, size, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    _exit(98);
  return memory;
}

/* Never writable and executable at a time. */
static uint64_t run_protected(uint8_t *memory, uint32_t number, uint64_t value)
{
  mprotect(memory, PAGE, PROT_READ | PROT_WRITE);
  make(memory, PAGE, number);
  mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
  for (unsigned i = 0; i < 3; i++)
    value = call(memory, value);
  return value;
}

/* Both, and a piece of it at a time. */
static uint64_t run_written(uint8_t *memory, uint32_t number, uint64_t value)
{
  make(memory, PAGE / 4, number);
  return call(memory, value);
}

/* So many functions, here and there. */
static uint64_t run_many(unsigned count, uint32_t first)
{
  uint8_t *protected = map(CODE_PAGES * PAGE, PROT_READ | PROT_WRITE);
  uint8_t *written = map(CODE_PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
  uint64_t value = first;
  for (uint32_t i = 0; i < count; i++) {
    value = run_protected(protected + i % CODE_PAGES * PAGE, first + i, value);
    value = run_written(written + i % CODE_PAGES * PAGE + i % 4 * (PAGE / 4), first + i, value);
  }
  munmap(protected, CODE_PAGES * PAGE);
  munmap(written, CODE_PAGES * PAGE);
  return value;
}

/* ---- what goes on meanwhile ---- */

static volatile sig_atomic_t ticks;
static volatile int is_over;

/* Makes code itself. */
static void tick(int number)
{
  static uint8_t *memory;
  static uint32_t count;
  (void)number;
  if (!memory)
    memory = map(PAGE, PROT_READ | PROT_WRITE);
  run_protected(memory, 77 + count++ % 5, 1);
  ticks++;
}

/* In the calling thread only. Threads are made before, while it is blocked. */
static void ticks_block(int how)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  pthread_sigmask(how, &set, NULL);
}

static void ticks_begin(unsigned microseconds)
{
  struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
  struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  sigaction(SIGPROF, &action, NULL);
  setitimer(ITIMER_PROF, &timer, NULL);
  ticks_block(SIG_UNBLOCK);
}

/* Never leaves its loop, and seldom takes a branch. */
static void *spin(void *unused)
{
  static uint8_t bytes[1 << 20];
  (void)unused;
  while (!is_over) {
    void *at = bytes;
    size_t size = sizeof(bytes);
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(7) : "memory");
  }
  return NULL;
}

/* Waits in a system call for longer than any code lives; then goes on. An interrupted wait would show. */
static void *wait_long(void *fd)
{
  char byte = 0;
  ssize_t size = read(*(int *)fd, &byte, 1);
  return size == 1 && byte == 'x' ? NULL : fd;
}

static void *thread_run(void *number)
{
  uint64_t *value = number;
  *value = run_many(rounds, (uint32_t)*value);
  return NULL;
}

/* ---- cases ---- */

static int case_alone(void)
{
  say("%016llx\n", (unsigned long long)run_many(rounds, 1));
  return 0;
}

static int case_signals(void)
{
  ticks_begin(10000);
  uint64_t value = run_many(rounds, 2);
  while (!ticks)
    ;
  say("%016llx\n", (unsigned long long)value);
  return 0;
}

static int case_threads(void)
{
  pthread_t threads[THREADS], spinner, waiter;
  uint64_t values[THREADS];
  int ends[2];
  void *result = NULL;
  if (pipe(ends))
    return 1;
  ticks_block(SIG_BLOCK);
  pthread_create(&spinner, NULL, spin, NULL);
  pthread_create(&waiter, NULL, wait_long, &ends[0]);
  for (unsigned i = 0; i < THREADS; i++) {
    values[i] = 1000 * (i + 1);
    pthread_create(&threads[i], NULL, thread_run, &values[i]);
  }
  ticks_begin(10000);
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    say("%016llx\n", (unsigned long long)values[i]);
  }
  is_over = 1;
  if (write(ends[1], "x", 1) != 1)
    return 2;
  pthread_join(spinner, NULL);
  pthread_join(waiter, &result);
  say("waited %d\n", result == NULL);
  return 0;
}

/* A child has a copy of the cache, at any time of its life; a child of vfork shares it. */
static void make_child(unsigned number)
{
  static char *const words[] = {"true", NULL};
  static char *const none[] = {NULL};
  int status, pid = fork();
  if (pid == 0)
    _exit((int)(run_many(20, 5000 + number) & 0x7F));
  waitpid(pid, &status, 0);
  say("child %d", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status);
  if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, none))
    _exit(97);
  waitpid(pid, &status, 0);
  say(" %d\n", status);
}

static void *make_children(void *unused)
{
  for (unsigned i = 0; i < 6; i++)
    make_child(i);
  return unused;
}

static int case_children(void)
{
  pthread_t thread, maker;
  uint64_t value = 9;
  ticks_block(SIG_BLOCK);
  pthread_create(&thread, NULL, thread_run, &value);
  pthread_create(&maker, NULL, make_children, NULL);
  ticks_begin(10000);
  pthread_join(maker, NULL);
  pthread_join(thread, NULL);
  say("%016llx\n", (unsigned long long)value);
  return 0;
}

/* A child of vfork is killed at any moment, also while it makes something that it shares with its parent. */
static volatile int victim;

static void *kill_children(void *unused)
{
  uint32_t state = 1;
  while (!is_over) {
    int pid = victim;
    usleep(draw(&state) % 4000);
    if (!pid)
      continue;
    kill(pid, SIGKILL);
    while (victim == pid)
      usleep(100);
  }
  return unused;
}

static int case_killed(void)
{
  pthread_t thread;
  volatile unsigned ended = 0;
  pthread_create(&thread, NULL, kill_children, NULL);
  for (unsigned i = 0; i < 40; i++) {
    int status, pid = vfork();
    if (pid == 0) {
      victim = getpid();
      run_many(UINT32_MAX, 1);
      _exit(1);
    }
    victim = 0;
    waitpid(pid, &status, 0);
    ended = ended + (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    run_many(2, i);
  }
  is_over = 1;
  pthread_join(thread, NULL);
  say("%u\n", ended);
  return 0;
}

/* ---- many functions at once ---- */

enum { FUNCTIONS = 3000, FUNCTION_SIZE = 16 };

static uint8_t *functions;
static sem_t is_ready, may_go;

/* Each is lea number(%rdi), %rax; ret. */
static void functions_make(void)
{
  functions = map(FUNCTIONS * FUNCTION_SIZE, PROT_READ | PROT_WRITE);
  for (uint32_t i = 0; i < FUNCTIONS; i++) {
    uint8_t *at = put(functions + i * FUNCTION_SIZE, (const uint8_t[]){0x48, 0x8D, 0x87}, 3);
    *put(at, &i, sizeof(i)) = 0xC3;
  }
  mprotect(functions, FUNCTIONS * FUNCTION_SIZE, PROT_READ | PROT_EXEC);
}

static uint64_t functions_call(unsigned first, unsigned end)
{
  uint64_t value = 1;
  for (unsigned i = first; i < end; i++)
    value = call(functions + i * FUNCTION_SIZE, value * 3);
  return value;
}

static void *thread_early(void *argument)
{
  uint64_t *value = argument;
  value[0] = functions_call(0, 10);
  sem_post(&is_ready);
  while (sem_wait(&may_go))
    ;
  value[1] = functions_call(0, FUNCTIONS);
  return NULL;
}

static void *thread_late(void *argument)
{
  *(uint64_t *)argument = functions_call(0, FUNCTIONS);
  return NULL;
}

/* A program becomes large while a thread waits. The thread then runs what others have translated meanwhile. */
static int case_large(void)
{
  pthread_t early, late;
  uint64_t values[4];
  functions_make();
  sem_init(&is_ready, 0, 0);
  sem_init(&may_go, 0, 0);
  pthread_create(&early, NULL, thread_early, values);
  while (sem_wait(&is_ready))
    ;
  values[2] = functions_call(0, FUNCTIONS);
  sem_post(&may_go);
  pthread_join(early, NULL);
  pthread_create(&late, NULL, thread_late, &values[3]);
  pthread_join(late, NULL);
  for (unsigned i = 0; i < 4; i++)
    say("%llx\n", (unsigned long long)values[i]);
  return 0;
}

static const struct test_case cases[] = {
  {"alone", case_alone},       {"signals", case_signals}, {"threads", case_threads},
  {"children", case_children}, {"killed", case_killed},   {"large", case_large},
};

int main(int argc, char **argv)
{
  if (argc > 2)
    rounds = (unsigned)strtoul(argv[2], NULL, 0);
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
