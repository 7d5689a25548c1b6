/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of stress that wait for each other: mutexes, also of owners that have died, condition variables, semaphores,
 * and the ends of threads.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static unsigned long first, second;

void mutex_once(unsigned number)
{
  (void)number;
  pthread_mutex_lock(&mutex);
  if (first != second)
    failed("two threads have the mutex");
  first++;
  sched_yield();
  second++;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  sleep_for(1000);
}

static struct timespec time_after(double seconds)
{
  double end = now(CLOCK_REALTIME) + seconds;

  return (struct timespec){.tv_sec = (time_t)end, .tv_nsec = (long)((end - (double)(time_t)end) * 1e9)};
}

static bool has_passed(const struct timespec *time)
{
  return now(CLOCK_REALTIME) >= (double)time->tv_sec + (double)time->tv_nsec / 1e9 - 1e-5;
}

void condition_once(unsigned number)
{
  struct timespec end = time_after(0.005);

  (void)number;
  pthread_mutex_lock(&mutex);
  int error = pthread_cond_timedwait(&condition, &mutex, &end);
  if (error && error != ETIMEDOUT)
    failed("pthread_cond_timedwait: %d", error);
  if (error && !has_passed(&end))
    failed("pthread_cond_timedwait has ended too early");
  pthread_mutex_unlock(&mutex);
}

/* ---- mutexes of the dead ---- */

/* In shared memory, so that a process can die as its owner. */
static pthread_mutex_t *robust;

void mutex_prepare(void)
{
  pthread_mutexattr_t attributes;

  robust = mmap(NULL, sizeof(*robust), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (robust == MAP_FAILED)
    failed("mmap: errno %d", errno);
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(robust, &attributes);
}

/* Returns whether the last owner has died. */
static bool robust_lock(void)
{
  int error = pthread_mutex_lock(robust);

  if (error == EOWNERDEAD)
    pthread_mutex_consistent(robust);
  else if (error)
    failed("pthread_mutex_lock: %d", error);
  return error == EOWNERDEAD;
}

static void *thread_die(void *argument)
{
  robust_lock();
  return argument;
}

static void child_die(void)
{
  robust_lock();
  _exit(CHILD_STATUS);
}

static void process_as_owner(void)
{
  int status;
  pid_t child = fork();

  if (child == 0)
    child_die();
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != CHILD_STATUS)
    failed("a child has status 0x%x", status);
}

static void thread_as_owner(void)
{
  pthread_t thread;
  int error = pthread_create(&thread, NULL, thread_die, NULL);

  if (error)
    failed("pthread_create: %d", error);
  pthread_join(thread, NULL);
}

/* Of several threads, only one can tell whose death it has seen. */
void robust_once(unsigned number)
{
  static __thread unsigned count;

  if (count++ % 4 || number)
    thread_as_owner();
  else
    process_as_owner();
  robust_lock();
  pthread_mutex_unlock(robust);
  sleep_for(20000);
}

/* ---- threads that end ---- */

static void *thread_return(void *argument)
{
  return argument;
}

void spawn_once(unsigned number)
{
  void *value = (void *)(uintptr_t)(number + 77), *result;
  pthread_t thread;
  int error = pthread_create(&thread, NULL, thread_return, value);

  if (error)
    failed("pthread_create: %d", error);
  pthread_join(thread, &result);
  if (result != value)
    failed("a thread has returned %p", result);
  sleep_for(10000);
}

/* ---- semaphores ---- */

static __thread sem_t semaphore;

void semaphore_begin(unsigned number)
{
  (void)number;
  sem_init(&semaphore, 0, 0);
}

void semaphore_once(unsigned number)
{
  struct timespec end = time_after(0.025);

  (void)number;
  if (sem_timedwait(&semaphore, &end) == 0 || errno != ETIMEDOUT)
    failed("sem_timedwait: errno %d", errno);
  if (!has_passed(&end))
    failed("sem_timedwait has ended too early");
}
