/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that write to the shared memory, or truncate it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drain_rig.h"

static void hostile_finish(void)
{
  for (unsigned i = 0; i < 3; i++)
    process_drain_step(drain, 0);
  process_drain_finish(drain, true);
  drain_end(0);
}

static void test_hostile_pages(void **state)
{
  (void)state;
  static const uint64_t values[] = {5, 6, 1000, UINT64_C(1) << 63, UINT64_MAX};
  struct player players[PROCESS_THREADS];
  memset(players, 0, sizeof(players));
  drain_begin(0);
  for (uint32_t i = 0; i < 5; i++) {
    thread_begin(i, 1, 1000000 + i);
    process_drain_step(drain, 0);
    page_of(i)->written = values[i];
    page_of(i)->log = values[i] * 0x123456789;
  }
  control()->thread_high = UINT32_MAX;
  page_of(6)->status = 77;
  hostile_finish();
  struct found found = trace_compare(players, PROCESS_THREADS);
  assert_int_equal(found.branches, 0);
  assert_true(found.gaps >= 4);
}

static void test_hostile_notes(void **state)
{
  (void)state;
  uint64_t random = 12345;
  uint64_t *words = (uint64_t *)(process.memory + process_notes_offset());
  drain_begin(0);
  note_put(NOTE_MAP, UINT32_MAX, 0, UINT64_MAX, "/");
  note_put(NOTE_MAP, 1, 100, 50, "/");
  note_put(NOTE_SPACE, 3, 0, UINT64_MAX, "");
  note_put(NOTE_SPACE, 3, 0, 3, "");
  note_put(99, 3, 0, 3, "");
  for (size_t i = control()->notes_used / 8; i < 4096; i++)
    words[i] = random_next(&random) >> (random & 63);
  control()->notes_used = UINT64_MAX;
  drain_for(1);
  hostile_finish();
}

/* Entries and steps that make no sense: a gap, and those before and behind them are read. */
static void test_hostile_entries(void **state)
{
  (void)state;
  uint64_t random = 54321;
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  uint64_t gaps = 0;
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  for (unsigned i = 0; i < 20000; i++) {
    uint32_t entry = (uint32_t)(random_next(&random) >> (random & 31));

    entries_log(0, &entry, 1);
    if (i % 8192 == 8191)
      process_drain_step(drain, 0);
  }
  thread_end(0);
  drain_until_free(1);
  hostile_finish();
  assert_int_equal(lb_trace_reader_open(trace_name, &reader), 0);
  while (lb_trace_reader_next(reader, &record) > 0)
    gaps += record.type == LB_TRACE_GAP;
  lb_trace_reader_close(reader);
  assert_true(gaps > 0);
}

/* Who is killed while writing a note leaves a hole: what comes behind it is found. */
static void test_broken_note(void **state)
{
  (void)state;
  struct map map = {0};
  uint32_t spaces[4] = {0};
  drain_begin(0);
  note_put(NOTE_MAP, 1, path_start(0, 0), path_start(0, PATHS), "/bin/true");
  __atomic_fetch_add(&control()->notes_used, 96, __ATOMIC_SEQ_CST);
  note_put(NOTE_MAP, 1, path_start(1, 0), path_start(1, PATHS), "/bin/true");
  drain_for(1);
  process_drain_finish(drain, true);
  drain_end(0);
  modules_check(&map, spaces);
  assert_true(map.is_there[1][0] && map.is_there[1][1]);
}

/* A program that makes the file shorter that it shares with us: reading behind its end would be SIGBUS. What came
 * before is in the trace. */
static void test_truncated(void **state)
{
  (void)state;
  struct player player = player_make(0, 13, 0);
  struct process_control saved = *control();
  struct map map = {0};
  uint32_t spaces[4] = {0};
  int fd = memfd_create("shared", MFD_CLOEXEC);
  assert_int_equal(ftruncate(fd, (off_t)process.memory_size), 0);
  assert_ptr_equal(
    mmap(process.memory, process.memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0),
    process.memory);
  *control() = saved;
  paths_make(0, 1);
  process_guard(&process);
  drain_begin(0);
  note_put(NOTE_MAP, 1, path_start(0, 0), path_start(0, PATHS), "/bin/true");
  thread_begin(0, 1, 1000000);
  player_enter(&player);
  player_play(&player, 3 * PART_ENTRIES);
  assert_int_equal(process_drain_step(drain, 0)->end, DRAIN_NONE);
  assert_false(process_is_destroyed(&process));
  assert_int_equal(ftruncate(fd, 0), 0);
  assert_int_equal(process_drain_step(drain, 0)->end, DRAIN_DESTROYED);
  assert_true(process_is_destroyed(&process));
  assert_int_equal(process_drain_finish(drain, true)->end, DRAIN_DESTROYED);
  drain_end(0);
  process_unguard(&process);
  close(fd);
  assert_true(modules_check(&map, spaces) >= PART_ENTRIES);
}

/* The same for memory that is given back: one thread's log is lost, and said to be. */
static void test_punched(void **state)
{
  (void)state;
  struct player player = player_make(0, 14, 0);
  int fd = memfd_create("shared", MFD_CLOEXEC);
  struct process_control saved = *control();
  assert_int_equal(ftruncate(fd, (off_t)process.memory_size), 0);
  assert_ptr_equal(
    mmap(process.memory, process.memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0),
    process.memory);
  *control() = saved;
  paths_make(0, 1);
  process.fd = fd;
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  player_enter(&player);
  player_play(&player, 2 * PART_ENTRIES);
  madvise(process.memory + process_log_offset(control(), 0), (size_t)PROCESS_PARTS * LOG_PART, MADV_REMOVE);
  const struct process_drain_state *now = process_drain_step(drain, 0);
  assert_int_equal(now->end, DRAIN_NONE);
  assert_int_equal(now->spoiled, 1);
  process_drain_step(drain, 0); /* its thread does not wait any more */
  assert_true(__atomic_load_n(&page_of(0)->read, __ATOMIC_SEQ_CST) == page_of(0)->written);
  assert_false(process_has(&process, process_log_offset(control(), 0), LOG_PART)); /* looking takes no memory */
  process_drain_finish(drain, true);
  drain_end(0);
  process.fd = 0;
  close(fd);
}

PART(TEST(test_hostile_pages), TEST(test_hostile_notes), TEST(test_hostile_entries), TEST(test_broken_note),
     TEST(test_truncated), TEST(test_punched));
