/* SPDX-License-Identifier: Apache-2.0
 *
 * pair: two threads, of which lbr records one. It says "ready FIRST SECOND", the numbers of the threads. For each line
 * "COUNT" on standard input, both threads call a function of their own so many times, the second also starts a thread
 * and a process; then it says "done". "end" ends the second thread alone.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t go, done;
static volatile unsigned count, sum;
static volatile int is_ending;
static pid_t second;

__attribute__((noinline)) static void first_work(unsigned value)
{
  sum += value & 3;
}

__attribute__((noinline)) static void second_work(unsigned value)
{
  sum += value & 5;
}

__attribute__((noinline)) static void third_work(unsigned value)
{
  sum += value & 6;
}

static void *third_run(void *data)
{
  for (unsigned i = 0; i < count; i++)
    third_work(i);
  return data;
}

static void *second_run(void *data)
{
  second = (pid_t)syscall(SYS_gettid);
  sem_post(&done);
  for (;;) {
    pthread_t third;

    while (sem_wait(&go))
      ;
    if (is_ending)
      return data;
    for (unsigned i = 0; i < count; i++)
      second_work(i);
    if (pthread_create(&third, NULL, third_run, NULL) == 0)
      pthread_join(third, NULL);
    pid_t child = fork();
    if (child == 0) {
      third_run(NULL);
      _exit(3);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3)
      abort();
    sem_post(&done);
  }
}

static void both(unsigned times)
{
  count = times;
  sem_post(&go);
  for (unsigned i = 0; i < times; i++)
    first_work(i);
  while (sem_wait(&done))
    ;
}

int main(void)
{
  char line[64];
  pthread_t thread;

  setvbuf(stdout, NULL, _IOLBF, 0);
  sem_init(&go, 0, 0);
  sem_init(&done, 0, 0);
  if (pthread_create(&thread, NULL, second_run, NULL))
    return 1;
  while (sem_wait(&done))
    ;
  printf("ready %ld %d\n", syscall(SYS_gettid), second);
  while (fgets(line, sizeof(line), stdin)) {
    if (!strcmp(line, "end\n")) {
      is_ending = 1;
      sem_post(&go);
      pthread_join(thread, NULL);
      printf("ended\n");
      continue;
    }
    both((unsigned)strtoul(line, NULL, 10));
    printf("done\n");
  }
  return 0;
}
