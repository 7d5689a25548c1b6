/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads: their beginning and end, what is theirs alone, waiting for each other, cancelling, and what ends all of
 * them.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static __thread int own = 5;
static __thread char own_text[100] = "own";
static volatile int turn;
static unsigned sum;

static _Noreturn void wait_forever(void)
{
  for (;;)
    pause();
}

static void *thread_double(void *argument)
{
  return (void *)((uintptr_t)argument * 2);
}

static int one_after_another(void)
{
  uintptr_t total = 0;
  for (uintptr_t i = 0; i < 200; i++) {
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, thread_double, (void *)i))
      return 1;
    pthread_join(thread, &result);
    total += (uintptr_t)result;
  }
  say("%zu\n", (size_t)total);
  return 0;
}

/* Each sleeps longer than it takes to make them all: the same branches in every run, also when it is stepped. */
static void *thread_late(void *argument)
{
  struct timespec time = {.tv_nsec = 0};
  long tenths = 5 + 4 * (long)(intptr_t)argument;
  time.tv_sec = tenths / 10;
  time.tv_nsec = tenths % 10 * 100000000;
  nanosleep(&time, NULL);
  for (int i = 0; i < 5; i++)
    own += (int)(intptr_t)argument;
  pthread_mutex_lock(&mutex);
  sum += (unsigned)own;
  pthread_mutex_unlock(&mutex);
  return argument;
}

static int in_order(void)
{
  pthread_t threads[3];
  for (intptr_t i = 0; i < 3; i++)
    pthread_create(&threads[i], NULL, thread_late, (void *)i);
  for (int i = 2; i >= 0; i--)
    pthread_join(threads[i], NULL);
  say("%u\n", sum);
  return 0;
}

static void *thread_sum(void *argument)
{
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&mutex);
    sum++;
    pthread_mutex_unlock(&mutex);
    __atomic_add_fetch((unsigned *)argument, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static int many_at_once(void)
{
  pthread_t threads[64];
  unsigned atomic = 0;
  for (unsigned i = 0; i < ARRAY_LENGTH(threads); i++)
    if (pthread_create(&threads[i], NULL, thread_sum, &atomic))
      return 1;
  for (unsigned i = 0; i < ARRAY_LENGTH(threads); i++)
    pthread_join(threads[i], NULL);
  say("%u %u\n", sum, atomic);
  return 0;
}

static void *thread_turns(void *argument)
{
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&mutex);
    while (turn % 2 != me)
      pthread_cond_wait(&condition, &mutex);
    sum = sum * 3 + (unsigned)me + 1;
    turn++;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static int conditions(void)
{
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, thread_turns, (void *)i);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  say("%u after %d turns\n", sum, turn);
  return 0;
}

/* ---- what is a thread's own ---- */

static pthread_key_t key;

static void on_key(void *value)
{
  say("destructor %s\n", (const char *)value);
}

static void *thread_own(void *argument)
{
  say("fresh %d %s\n", own, own_text);
  own = (int)(intptr_t)argument;
  strcpy(own_text, "changed");
  pthread_setspecific(key, "of the thread");
  errno = 1234;
  return &own;
}

static int storage(void)
{
  pthread_t thread;
  void *result;
  own = 7;
  errno = 0;
  pthread_key_create(&key, on_key);
  pthread_create(&thread, NULL, thread_own, (void *)99);
  pthread_join(thread, &result);
  say("mine %d %s errno %d, %s\n", own, own_text, errno, result == &own ? "the same place" : "another place");
  return 0;
}

static void *thread_stack(void *argument)
{
  pthread_attr_t attributes;
  void *start;
  size_t size;
  char here;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &start, &size);
  if (argument)
    say("stack %zu\n", size); /* that of the first thread depends on chance */
  say("%s\n", &here >= (char *)start && &here < (char *)start + size ? "on it" : "not on it");
  pthread_setname_np(pthread_self(), "renamed");
  char name[16];
  prctl(PR_GET_NAME, name);
  say("name %s, %s\n", name, gettid() == getpid() ? "first" : "not first");
  return argument;
}

static int attributes(void)
{
  pthread_t thread;
  pthread_attr_t wanted;
  pthread_attr_init(&wanted);
  pthread_attr_setstacksize(&wanted, 256 * 1024);
  pthread_create(&thread, &wanted, thread_stack, "made");
  pthread_join(thread, NULL);
  return thread_stack(NULL) != NULL;
}

/* ---- cancelling ---- */

static void on_cancel(void *argument)
{
  say("clean up %s\n", (const char *)argument);
}

static pid_t sleeper;

static void *thread_sleep(void *argument)
{
  pthread_cleanup_push(on_cancel, "outer");
  pthread_cleanup_push(on_cancel, "inner");
  if (argument)
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  __atomic_store_n(&sleeper, gettid(), __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
  while (argument)
    ;
  pause();
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return NULL;
}

static void cancel_one(void *argument)
{
  pthread_t thread;
  void *result;
  turn = 0;
  pthread_create(&thread, NULL, thread_sleep, argument);
  while (!turn)
    usleep(1000);
  if (!argument)
    await_task(getpid(), sleeper, 'S', SYS_pause);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  say("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "ended by itself");
}

static int cancel(void)
{
  cancel_one(NULL);
  cancel_one("while it runs");
  return 0;
}

static void *thread_leave(void *argument)
{
  pthread_cleanup_push(on_cancel, "leave");
  pthread_exit(argument);
  pthread_cleanup_pop(0);
  return NULL;
}

static int leave(void)
{
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, thread_leave, "by pthread_exit");
  pthread_join(thread, &result);
  say("%s\n", (const char *)result);
  return 0;
}

/* ---- the end of all ---- */

static void on_exit_say(void)
{
  say("at exit\n");
}

static void *thread_exit(void *argument)
{
  await_task(getpid(), getpid(), 'S', SYS_pause);
  exit((int)(intptr_t)argument);
}

static int exit_from_thread(void)
{
  pthread_t thread;
  atexit(on_exit_say);
  pthread_create(&thread, NULL, thread_exit, (void *)37);
  wait_forever();
}

static int exit_while_running(void)
{
  pthread_t thread;
  for (int i = 0; i < 4; i++)
    pthread_create(&thread, NULL, thread_sleep, "running");
  while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) < 4)
    usleep(1000);
  exit(5);
}

static void *thread_last(void *argument)
{
  await_task(getpid(), getpid(), 'Z', -1);
  say("the last thread\n");
  return argument;
}

static int first_leaves(void)
{
  pthread_t thread;
  pthread_create(&thread, NULL, thread_last, NULL);
  pthread_exit(NULL);
}

static void *thread_crash(void *argument)
{
  await_task(getpid(), getpid(), 'S', SYS_pause);
  *(volatile int *)argument = 1;
  return NULL;
}

static int crash(void)
{
  pthread_t thread;
  pthread_create(&thread, NULL, thread_crash, NULL);
  wait_forever();
}

static void *thread_execute(void *argument)
{
  await_task(getpid(), getpid(), 'S', SYS_pause);
  execlp("echo", "echo", "executed from a thread", NULL);
  return argument;
}

static int execute(void)
{
  pthread_t thread;
  pthread_create(&thread, NULL, thread_sleep, "running");
  pthread_create(&thread, NULL, thread_execute, NULL);
  wait_forever();
}

/* ---- other ways ---- */

static void at_fork_before(void)
{
  say("before fork\n");
}

static void at_fork_child(void)
{
  say("in the child\n");
}

static void *thread_fork(void *argument)
{
  pid_t child = fork();
  int status = 0;
  if (!child) {
    say("child of a thread, first of its process: %d\n", gettid() == getpid());
    _exit(11);
  }
  waitpid(child, &status, 0);
  say("status %d\n", WEXITSTATUS(status));
  return argument;
}

static int fork_from_thread(void)
{
  pthread_t thread;
  pthread_atfork(at_fork_before, NULL, at_fork_child);
  pthread_create(&thread, NULL, thread_fork, NULL);
  pthread_join(thread, NULL);
  return 0;
}

static int raw_child(void *argument)
{
  *(volatile int *)argument = 17;
  return 3;
}

/* clone(2) with the memory shared, and the kernel's word on its end. */
static int raw_clone(void)
{
  static volatile int told;
  static volatile pid_t id = 1;
  char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_SETTID |
              CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
  pid_t parent_told = 0;
  pid_t result = clone(raw_child, stack + 65536, flags, (void *)&told, &parent_told, NULL, (void *)&id);
  for (pid_t now; (now = id) != 0;)
    syscall(SYS_futex, &id, FUTEX_WAIT, now, NULL, NULL, 0);
  say("%d, %s\n", told, result > 0 && result == parent_told ? "the number is right" : "wrong number");
  int status = 0;
  result = clone(raw_child, stack + 65536, CLONE_VM | SIGCHLD, (void *)&told);
  say("waited %d", waitpid(result, &status, 0) == result);
  say(" status %d\n", WEXITSTATUS(status));
  return 0;
}

static void *thread_robust(void *argument)
{
  pthread_mutex_lock(argument);
  return NULL;
}

static int robust(void)
{
  pthread_t thread;
  pthread_mutexattr_t wanted;
  pthread_mutex_t made;
  pthread_mutexattr_init(&wanted);
  pthread_mutexattr_setrobust(&wanted, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&made, &wanted);
  pthread_create(&thread, NULL, thread_robust, &made);
  pthread_join(thread, NULL);
  say("%s\n", pthread_mutex_lock(&made) == EOWNERDEAD ? "its owner is dead" : "free");
  return 0;
}

static void *thread_post(void *argument)
{
  sem_post(argument);
  return NULL;
}

static int detached(void)
{
  sem_t semaphore;
  pthread_t thread;
  pthread_attr_t wanted;
  sem_init(&semaphore, 0, 0);
  pthread_attr_init(&wanted);
  pthread_attr_setdetachstate(&wanted, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < 50; i++)
    pthread_create(&thread, &wanted, thread_post, &semaphore);
  for (int i = 0; i < 50; i++)
    while (sem_wait(&semaphore))
      ;
  say("all of them\n");
  return 0;
}

static const struct test_case cases[] = {
  {"one-after-another", one_after_another},
  {"in-order", in_order},
  {"many-at-once", many_at_once},
  {"conditions", conditions},
  {"storage", storage},
  {"attributes", attributes},
  {"cancel", cancel},
  {"leave", leave},
  {"exit", exit_from_thread},
  {"exit-while-running", exit_while_running},
  {"first-leaves", first_leaves},
  {"crash", crash},
  {"execute", execute},
  {"fork", fork_from_thread},
  {"raw-clone", raw_clone},
  {"robust", robust},
  {"detached", detached},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
