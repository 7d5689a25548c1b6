/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that wait when their log is full, end and are killed; rings, limits, and a full disk.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drain_rig.h"

/* Many times what its log holds: it must wait, and nothing be lost. */
static void test_one_thread(void **state)
{
  (void)state;
  struct player player = player_make(0, 1, 40 * PART_ENTRIES);
  pthread_t thread;
  drain_begin(0);
  assert_int_equal(pthread_create(&thread, NULL, player_run, &player), 0);
  drain_until_joined(thread);
  assert_int_equal(process_drain_finish(drain, true)->end, DRAIN_DONE);
  drain_end(0);
  struct found found = trace_compare(&player, 1);
  assert_int_equal(found.branches, player.count);
  assert_int_equal(found.gaps, 0);
}

/* Several at a time, of different lengths; then the pages are used again, by others. */
static void test_threads(void **state)
{
  (void)state;
  enum { THREADS = 5, ROUNDS = 3 };
  struct player players[THREADS * ROUNDS];
  uint64_t count = 0;
  drain_begin(0);
  for (unsigned round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
      struct player *player = &players[round * THREADS + i];

      *player = player_make(i, round * THREADS + i, (i * i * 20000 + 7 * round) * (round + 1));
      count += player->count;
      /* One after another until the drain has seen each: streams are numbered as threads are seen. */
      uint64_t before = process_drain_step(drain, 0)->threads;
      assert_int_equal(pthread_create(&threads[i], NULL, player_run, player), 0);
      while (process_drain_step(drain, 1)->threads == before)
        ;
    }
    drain_until_free(THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  assert_int_equal(process_drain_finish(drain, true)->threads, THREADS * ROUNDS);
  drain_end(0);
  struct found found = trace_compare(players, THREADS * ROUNDS);
  assert_int_equal(found.branches, count);
  assert_int_equal(found.streams, THREADS * ROUNDS);
  assert_int_equal(found.gaps, 0);
}

/* Killed in the middle of a part, with full ones before it: all of it is taken at the end. With `is_over` there is no
 * gap, since there was no more. */
static void killed_compare(bool is_over, uint64_t gaps)
{
  struct player player = player_make(0, 5, 2 * PART_ENTRIES + 1234);

  player.is_killed = true;
  drain_begin(0);
  player_run(&player);
  assert_int_equal(process_drain_step(drain, 0)->alive, 1);
  process_drain_finish(drain, is_over);
  drain_end(0);
  struct found found = trace_compare(&player, 1);
  assert_int_equal(found.branches, player.count);
  assert_int_equal(found.gaps, gaps);
  assert_int_equal(control()->is_closed, 1);
}

static void test_killed(void **state)
{
  (void)state;
  killed_compare(true, 0);
}

static void test_left_behind(void **state)
{
  (void)state;
  killed_compare(false, 1);
}

/* The end of a thread ends its stream: nothing of it waits in the memory of the writer, which has room for few. */
static void test_ended(void **state)
{
  (void)state;
  struct player player = player_make(0, 6, 100);
  drain_begin(0);
  player_run(&player);
  drain_until_free(1);
  struct lb_trace_size ended = lb_trace_writer_size(writer);
  assert_int_equal(ended.branches, 100);
  assert_int_equal(lb_trace_writer_flush(writer), 0);
  assert_int_equal(lb_trace_writer_size(writer).bytes, ended.bytes);
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(trace_compare(&player, 1).branches, 100);
}

/* What is not a full part is taken, too, when nothing happens for a while. */
static void test_idle(void **state)
{
  (void)state;
  struct player player = player_make(0, 6, 100);
  player.is_killed = true;
  drain_begin(0);
  player_run(&player);
  process_drain_step(drain, 0);
  assert_int_equal(lb_trace_writer_size(writer).branches, 0);
  for (double end = seconds_now() + 60; seconds_now() < end && lb_trace_writer_size(writer).branches == 0;)
    process_drain_step(drain, 20);
  assert_int_equal(lb_trace_writer_size(writer).branches, 100);
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(trace_compare(&player, 1).branches, 100);
}

/* The thread runs on to its end, and the trace is readable up to where it stops. */
static void test_limit(void **state)
{
  (void)state;
  enum { LIMIT = 100000 };
  struct player player = player_make(0, 7, 400 * PART_ENTRIES), copy = player;
  pthread_t thread;
  struct stat status;
  drain_begin(LIMIT);
  assert_int_equal(pthread_create(&thread, NULL, player_run, &player), 0);
  drain_until_joined(thread);
  assert_int_equal(process_drain_finish(drain, true)->end, DRAIN_LIMIT);
  drain_end(0);
  struct found found = trace_compare(&copy, 1);
  assert_true(found.branches > 0 && found.branches < player.count);
  assert_int_equal(found.gaps, 1);
  assert_int_equal(stat(trace_name, &status), 0);
  assert_true(status.st_size >= LIMIT);
}

static void test_full_disk(void **state)
{
  (void)state;
  struct player player = player_make(0, 8, 400 * PART_ENTRIES);
  pthread_t thread;
  assert_int_equal(lb_trace_writer_open("/dev/full", &writer), 0);
  assert_int_equal(process_drain_new(&process, writer, 0, &drain), 0);
  assert_int_equal(pthread_create(&thread, NULL, player_run, &player), 0);
  drain_until_joined(thread);
  const struct process_drain_state *end = process_drain_finish(drain, true);
  assert_int_equal(end->end, DRAIN_FAILED);
  assert_int_equal(end->error, -ENOSPC);
  drain_end(-ENOSPC);
}

static void *ring_later(void *data)
{
  const struct process_control *control = (const struct process_control *)process.memory;

  (void)data;
  while (!__atomic_load_n(&control->is_listening, __ATOMIC_SEQ_CST))
    usleep(1000);
  process_drain_ring(&process);
  return NULL;
}

static void test_ring(void **state)
{
  (void)state;
  pthread_t thread;
  double before = seconds_now();
  drain_begin(0);
  process_drain_ring(&process); /* before the sleep: it does not begin */
  assert_int_equal(pthread_create(&thread, NULL, ring_later, NULL), 0);
  process_drain_step(drain, 120000);
  assert_true(seconds_now() - before < 60);
  pthread_join(thread, NULL);
  process_drain_finish(drain, true);
  drain_end(0);
}

/* A real process that is killed: its page is seen to be nobody's. It must look as if it ran the runtime, which it does
 * not: so nothing is known of it, and it stays alive for us until the end. */
static void test_unknown_process(void **state)
{
  (void)state;
  drain_begin(0);
  int pid = fork();
  if (pid == 0)
    for (;;)
      pause();
  thread_begin(0, 1, (uint32_t)pid);
  page_of(0)->process = (uint32_t)pid;
  process_drain_step(drain, 0);
  kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  drain_for(2.5);
  assert_int_equal(process_drain_step(drain, 0)->alive, 1);
  process_drain_finish(drain, true);
  drain_end(0);
}

PART(TEST(test_one_thread), TEST(test_threads), TEST(test_killed), TEST(test_left_behind), TEST(test_ended),
     TEST(test_idle), TEST(test_limit), TEST(test_full_disk), TEST(test_ring), TEST(test_unknown_process));
