/* SPDX-License-Identifier: Apache-2.0
 *
 * The drain against memory that threads of this test fill as the runtime does: they wait when their log is full, end,
 * are killed, map and unmap files, fork. What they did they can do again, since it is random from a known start; that
 * is compared with what a reader finds in the trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lastbranch/trace.h"
#include "process/process.h"
#include "process/shared.h"

enum {
  PART = PROCESS_PART_LEAST,
  PART_ENTRIES = PART / 4,
  NOTES = 1 << 20,
  STEPS = 4096,
  PATHS = 8,
  PATH_NUMBERS = 3, /* a head and two steps */
};

/* ---- shared memory ---- */

static struct process process;
static char folder[64], trace_name[128];

static struct process_control *control(void)
{
  return (struct process_control *)process.memory;
}

static struct process_state *page_of(uint32_t slot)
{
  return (struct process_state *)(process.memory + process_thread_offset(slot));
}

static struct lb_step *step_of(uint32_t number)
{
  return (struct lb_step *)(process.memory + process_steps_offset(NOTES)) + number;
}

static uint64_t path_start(unsigned generation, unsigned path)
{
  return 0x400000 + 0x100000 * (uint64_t)generation + 0x1000 * path;
}

static uint32_t path_head(unsigned generation, unsigned path)
{
  return 1 + (generation * PATHS + path) * PATH_NUMBERS;
}

/* Where a path goes when it is left at its first or second step. */
static unsigned path_next(unsigned path, unsigned step)
{
  return (path * 5 + (step ? 3 : 1)) % PATHS;
}

/* Paths of two steps: a conditional branch that is mostly not taken, and a jump. Each is tied to the path it leads to,
 * but for the first steps of odd ones. */
static void paths_make(unsigned generation, uint32_t space)
{
  for (unsigned path = 0; path < PATHS; path++) {
    uint32_t head = path_head(generation, path);
    uint64_t start = path_start(generation, path);
    *step_of(head) = (struct lb_step){.from = start, .head = head, .flags = LB_STEP_HEAD, .count = 2, .space = space};
    for (unsigned i = 0; i < 2; i++)
      *step_of(head + 1 + i) = (struct lb_step){
        .from = start + 0x10 * (i + 1),
        .to = path_start(generation, path_next(path, i)),
        .head = head,
        .next = i == 0 && path % 2 ? 0 : path_head(generation, path_next(path, i)),
        .kind = i ? LB_BRANCH_NEAR_REL_JMP : LB_BRANCH_JCC,
        .length = 2,
        .space = space,
      };
  }
  __atomic_store_n(&control()->step_count, path_head(generation + 1, 0), __ATOMIC_RELEASE);
}

static int memory_begin(void **state)
{
  (void)state;
  process = (struct process){.pid = getpid(), .notes_size = NOTES, .step_capacity = STEPS, .part_size = PART};
  process.memory_size = process_logs_offset(NOTES, STEPS) + (size_t)PROCESS_THREADS * PROCESS_PARTS * PART;
  process.memory =
    mmap(NULL, process.memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (process.memory == MAP_FAILED)
    return -1;
  *control() = (struct process_control){.magic = PROCESS_MAGIC,
                                        .mode = PROCESS_ALL,
                                        .part_size = PART,
                                        .notes_size = NOTES,
                                        .step_capacity = STEPS,
                                        .step_count = 1,
                                        .space_count = 1};
  paths_make(0, 1);
  strcpy(folder, "/tmp/lbr-drain-XXXXXX");
  if (!mkdtemp(folder))
    return -1;
  snprintf(trace_name, sizeof(trace_name), "%s/trace", folder);
  return 0;
}

static int memory_end(void **state)
{
  char name[160];
  (void)state;
  unlink(trace_name);
  snprintf(name, sizeof(name), "%s.incomplete", trace_name);
  unlink(name);
  rmdir(folder);
  munmap(process.memory, process.memory_size);
  return 0;
}

/* ---- a thread of a program ---- */

struct player {
  uint32_t slot;
  uint64_t random;
  unsigned generation, path;
  uint64_t count; /* branches */
  bool is_killed;
};

static uint64_t random_next(uint64_t *random)
{
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random;
}

/* The next branch, and the entries that stand for it. */
static struct lb_branch player_branch(struct player *player, uint32_t entries[10], unsigned *ret_count)
{
  struct lb_branch branch = {.from_cpl = 3, .to_cpl = 3};
  uint64_t random = random_next(&player->random);
  uint64_t start = path_start(player->generation, player->path);
  unsigned step = random >> 8 & 1, count = 0, next = path_next(player->path, step);
  if (random % 1000 == 0) { /* a signal after the first step */
    next = random >> 16 & (PATHS - 1);
    branch.from = start + 0x18;
    branch.to = path_start(player->generation, next);
    branch.kind = LB_BRANCH_INTERRUPT;
    entries[count++] = LB_ENTRY_EVENT;
    entries[count++] = LB_BRANCH_INTERRUPT | 1 << 8;
    entries[count++] = (uint32_t)branch.from;
    entries[count++] = (uint32_t)(branch.from >> 32);
    entries[count++] = (uint32_t)branch.to;
    entries[count++] = (uint32_t)(branch.to >> 32);
    entries[count++] = LB_ENTRY_ENTER | path_head(player->generation, next);
  } else {
    branch.from = start + 0x10 * (step + 1);
    branch.to = path_start(player->generation, next);
    branch.kind = step ? LB_BRANCH_NEAR_REL_JMP : LB_BRANCH_JCC;
    entries[count++] = path_head(player->generation, player->path) + 1 + step;
    if (step == 0 && player->path % 2)
      entries[count++] = LB_ENTRY_ENTER | path_head(player->generation, next);
  }
  player->path = next;
  *ret_count = count;
  return branch;
}

static struct player player_make(uint32_t slot, uint64_t start, uint64_t count)
{
  return (struct player){.slot = slot, .random = 0x9E3779B97F4A7C15 * (start + 1), .count = count};
}

static uint64_t part_start(uint32_t slot, uint64_t number)
{
  return page_of(slot)->log_start + number % PROCESS_PARTS * (uint64_t)(PART + PROCESS_PAGE);
}

/* The parts of a log are empty before they are filled: its end is the first 0. */
static void part_clear(uint32_t slot, uint64_t number)
{
  memset(process.memory + process_log_offset(control(), slot) + number % PROCESS_PARTS * PART, 0, PART);
}

static void bell_ring(void)
{
  __atomic_add_fetch(&control()->bell, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&control()->is_listening, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, &control()->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Takes as long as the drain needs: there is no time-out, so whoever is not woken stays here for ever. */
static void part_turn(struct process_state *page, uint32_t slot)
{
  __atomic_store_n(&page->written, page->written + 1, __ATOMIC_RELEASE);
  bell_ring();
  for (;;) {
    uint64_t read = __atomic_load_n(&page->read, __ATOMIC_SEQ_CST);
    __atomic_store_n(&page->is_waiting, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&control()->is_closed, __ATOMIC_SEQ_CST) || page->written - read < PROCESS_PARTS)
      break;
    syscall(SYS_futex, &page->read, FUTEX_WAIT, (uint32_t)read, NULL, NULL, 0);
  }
  __atomic_store_n(&page->is_waiting, 0, __ATOMIC_SEQ_CST);
  part_clear(slot, page->written);
  __atomic_store_n(&page->log, part_start(slot, page->written), __ATOMIC_RELEASE);
}

static void entries_log(uint32_t slot, const uint32_t *entries, unsigned count)
{
  struct process_state *page = page_of(slot);
  uint64_t offset = page->log - part_start(slot, page->written);
  uint8_t *log = process.memory + process_log_offset(control(), slot);
  if (offset + count * 4 > PART) {
    memset(log + page->written % PROCESS_PARTS * PART + offset, 0, PART - offset);
    part_turn(page, slot);
    offset = 0;
  }
  memcpy(log + page->written % PROCESS_PARTS * PART + offset, entries, count * 4);
  __atomic_store_n(&page->log, page->log + count * 4, __ATOMIC_RELEASE);
}

static void thread_begin(uint32_t slot, uint32_t space, uint32_t thread)
{
  struct process_state *page = page_of(slot);
  page->log_start = page->log = 0x7000000000 + slot * UINT64_C(0x10000000);
  page->written = page->read = 0;
  part_clear(slot, 0);
  page->serial++;
  page->space = space;
  page->process = 1000000; /* none that the system has */
  page->thread = thread;
  page->creator = 1;
  page->end = END_NONE;
  snprintf(page->name, sizeof(page->name), "player %u", thread % 10);
  uint32_t high = __atomic_load_n(&control()->thread_high, __ATOMIC_SEQ_CST);
  while (high <= slot && !__atomic_compare_exchange_n(&control()->thread_high, &high, slot + 1, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST))
    ;
  __atomic_store_n(&page->status, THREAD_LIVE, __ATOMIC_RELEASE);
}

static void thread_end(uint32_t slot)
{
  page_of(slot)->end = END_EXIT;
  __atomic_store_n(&page_of(slot)->status, THREAD_GONE, __ATOMIC_RELEASE);
  bell_ring();
}

static void player_play(struct player *player, uint64_t count)
{
  for (uint64_t i = 0; i < count; i++) {
    uint32_t entries[10];
    unsigned size;
    player_branch(player, entries, &size);
    entries_log(player->slot, entries, size);
  }
}

static void player_enter(const struct player *player)
{
  uint32_t entry = LB_ENTRY_ENTER | path_head(player->generation, player->path);
  entries_log(player->slot, &entry, 1);
}

static void *player_run(void *data)
{
  struct player player = *(struct player *)data;
  thread_begin(player.slot, 1, 1000000 + player.slot);
  player_enter(&player);
  player_play(&player, player.count);
  if (!player.is_killed)
    thread_end(player.slot);
  return NULL;
}

/* ---- notes ---- */

static void note_put(unsigned type, uint32_t space, uint64_t start, uint64_t end, const char *path)
{
  uint32_t length = (uint32_t)strlen(path);
  uint32_t size = (uint32_t)((sizeof(struct process_note) + length + 7) & ~7ull);
  struct process_note *note =
    (struct process_note *)(process.memory + process_notes_offset() +
                            __atomic_fetch_add(&control()->notes_used, size, __ATOMIC_SEQ_CST));
  note->type = type;
  note->space = space;
  note->step = control()->step_count;
  note->start = start;
  note->end = end;
  note->length = length;
  memcpy(note + 1, path, length);
  __atomic_store_n(&note->size, size, __ATOMIC_RELEASE);
}

/* ---- the trace ---- */

static struct lb_trace_writer *writer;
static struct process_drain *drain;

static void drain_begin(uint64_t limit)
{
  assert_int_equal(lb_trace_writer_open(trace_name, &writer), 0);
  assert_int_equal(process_drain_new(&process, writer, limit, &drain), 0);
}

static void drain_end(int error)
{
  assert_int_equal(lb_trace_writer_close(writer), error);
  process_drain_free(drain);
}

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void drain_for(double seconds)
{
  for (double end = seconds_now() + seconds; seconds_now() < end;)
    process_drain_step(drain, 20);
}

/* Steps until this many threads have ended and their pages are free, or it takes too long. */
static void drain_until_free(uint32_t slots)
{
  for (double end = seconds_now() + 60; seconds_now() < end;) {
    bool is_free = true;
    process_drain_step(drain, 10);
    for (uint32_t slot = 0; slot < slots; slot++)
      is_free &= __atomic_load_n(&page_of(slot)->status, __ATOMIC_SEQ_CST) == THREAD_FREE;
    if (is_free)
      return;
  }
  fail_msg("not all pages became free");
}

/* Steps while a thread plays, which may not have begun yet, and until its page is free. */
static void drain_until_joined(pthread_t thread)
{
  double end = seconds_now() + 60;

  while (pthread_tryjoin_np(thread, NULL) != 0) {
    if (seconds_now() >= end)
      fail_msg("the thread did not end");
    process_drain_step(drain, 10);
  }
  drain_until_free(1);
}

struct found {
  uint64_t branches, gaps;
  uint32_t streams;
};

static void branch_compare(const struct lb_branch *found, const struct lb_branch *wanted, uint64_t number)
{
  if (found->from != wanted->from || found->to != wanted->to || found->kind != wanted->kind)
    fail_msg("branch %llu is %#llx -> %#llx %s, not %#llx -> %#llx %s", (unsigned long long)number,
             (unsigned long long)found->from, (unsigned long long)found->to, lb_branch_kind_name(found->kind),
             (unsigned long long)wanted->from, (unsigned long long)wanted->to, lb_branch_kind_name(wanted->kind));
}

/* Reads the trace; the branches of stream i must be those of player i, from its beginning. */
static struct found trace_compare(struct player *players, uint32_t count)
{
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  struct found found = {0};
  assert_int_equal(lb_trace_reader_open(trace_name, &reader), 0);
  while (lb_trace_reader_next(reader, &record) > 0) {
    found.streams += record.type == LB_TRACE_STREAM;
    found.gaps += record.type == LB_TRACE_GAP;
    for (size_t i = 0; record.type == LB_TRACE_BRANCHES && i < record.branches.count; i++) {
      uint32_t entries[10];
      unsigned size;
      assert_true(record.branches.stream < count);
      struct lb_branch wanted = player_branch(&players[record.branches.stream], entries, &size);
      branch_compare(&record.branches.branches[i], &wanted, record.branches.first + i);
      found.branches++;
    }
  }
  lb_trace_reader_close(reader);
  return found;
}

/* ---- tests ---- */

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
  drain_for(1.5);
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
  process_drain_step(drain, 20000);
  assert_true(seconds_now() - before < 10);
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

/* ---- modules ---- */

struct map {
  bool is_there[4][3]; /* by space and generation of paths */
  char names[4][3][64];
};

static void map_take(struct map *map, const struct lb_trace_module *module)
{
  for (unsigned generation = 0; generation < 3 && module->space < 4; generation++)
    if (module->address == path_start(generation, 0)) {
      map->is_there[module->space][generation] = !module->is_gone;
      snprintf(map->names[module->space][generation], 64, "%s", module->name);
    }
}

/* The module that a branch lies in must be there when it comes. */
static uint64_t modules_check(struct map *map, uint32_t *ret_spaces)
{
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  uint64_t count = 0;
  assert_int_equal(lb_trace_reader_open(trace_name, &reader), 0);
  while (lb_trace_reader_next(reader, &record) > 0) {
    if (record.type == LB_TRACE_MODULE)
      map_take(map, &record.module);
    if (record.type == LB_TRACE_STREAM)
      ret_spaces[record.stream.number] = record.stream.space;
    for (size_t i = 0; record.type == LB_TRACE_BRANCHES && i < record.branches.count; i++) {
      uint64_t generation = (record.branches.branches[i].from - path_start(0, 0)) / 0x100000;
      if (!map->is_there[ret_spaces[record.branches.stream]][generation])
        fail_msg("branch %llu of stream %u lies in no module", (unsigned long long)(record.branches.first + i),
                 record.branches.stream);
      count++;
    }
  }
  lb_trace_reader_close(reader);
  return count;
}

/* One thread goes from a module to the next, unmapping the one before, all in one part of its log. */
static void test_unmap(void **state)
{
  (void)state;
  struct player player = player_make(0, 9, 0);
  struct map map = {0};
  uint32_t spaces[4] = {0};
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  for (unsigned generation = 0; generation < 3; generation++) {
    note_put(NOTE_MAP, 1, path_start(generation, 0), path_start(generation, PATHS), "/bin/true");
    paths_make(generation, 1);
    player.generation = generation;
    player_enter(&player);
    player_play(&player, 1000);
    note_put(NOTE_UNMAP, 1, path_start(generation, 0), path_start(generation, PATHS), "");
  }
  thread_end(0);
  drain_until_free(1);
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(modules_check(&map, spaces), 3000);
  for (unsigned generation = 0; generation < 3; generation++) {
    assert_false(map.is_there[1][generation]);
    assert_string_equal(map.names[1][generation], "");
  }
}

/* While a round takes notes, what a thread logs is taken with them, many parts of it: the round's view of the thread is
 * far behind then. */
static void test_notes_take_long(void **state)
{
  (void)state;
  struct player player = player_make(0, 12, 60 * PART_ENTRIES);
  const uint64_t place = path_start(9, 0);
  pthread_t thread;
  drain_begin(0);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  note_put(NOTE_MAP, 1, path_start(0, 0), path_start(0, PATHS), "/bin/true");
  for (unsigned i = 0; i < 4000; i++) {
    note_put(NOTE_MAP, 1, place, place + 0x1000, "/bin/false");
    note_put(NOTE_UNMAP, 1, place, place + 0x1000, "");
  }
  assert_int_equal(pthread_create(&thread, NULL, player_run, &player), 0);
  while (__atomic_load_n(&page_of(0)->written, __ATOMIC_ACQUIRE) == 0)
    ;
  drain_until_joined(thread);
  assert_int_equal(process_drain_finish(drain, true)->spoiled, 0);
  drain_end(0);
  struct found found = trace_compare(&player, 1);
  assert_int_equal(found.branches, player.count);
  assert_int_equal(found.gaps, 0);
}

/* A copy of a space has the modules of the original, and not those that it got later. */
static void test_fork(void **state)
{
  (void)state;
  struct player parent = player_make(0, 10, 0), child = player_make(1, 11, 0);
  struct map map = {0};
  uint32_t spaces[4] = {0};
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  note_put(NOTE_MAP, 1, path_start(0, 0), path_start(0, PATHS), "/bin/true");
  note_put(NOTE_MAP, 1, path_start(1, 0), path_start(1, PATHS), "/bin/false");
  note_put(NOTE_UNMAP, 1, path_start(1, 0), path_start(1, PATHS), "");
  note_put(NOTE_SPACE, 2, 1000001, 1, "/bin/true");
  note_put(NOTE_MAP, 1, path_start(2, 0), path_start(2, PATHS), "/bin/false");
  player_enter(&parent);
  player_play(&parent, 500);
  thread_begin(1, 2, 1000001);
  player_enter(&child);
  player_play(&child, 700);
  thread_end(0);
  thread_end(1);
  drain_until_free(2);
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(modules_check(&map, spaces), 1200);
  assert_true(map.is_there[1][0] && !map.is_there[1][1] && map.is_there[1][2]);
  assert_true(map.is_there[2][0] && !map.is_there[2][1] && !map.is_there[2][2]);
  assert_string_equal(map.names[2][0], "/bin/true");
}

/* A whole life that the drain sees only when it is over. */
static void player_live(struct player *player, uint32_t place, uint32_t thread)
{
  page_of(player->slot)->place = place;
  thread_begin(player->slot, 1, thread);
  player_enter(player);
  player_play(player, player->count);
  thread_end(player->slot);
}

/* Streams are numbered as threads were made, not as their pages lie. */
static void test_order(void **state)
{
  (void)state;
  static const uint32_t slots[] = {3, 0, 2, 1};
  enum { COUNT = sizeof(slots) / sizeof(slots[0]) };
  struct player players[COUNT], copies[COUNT];
  drain_begin(0);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  for (uint32_t i = 0; i < COUNT; i++) {
    players[i] = copies[i] = player_make(slots[i], i, 100 * (i + 1));
    player_live(&copies[i], UINT32_MAX - 1 + i, 1000000 + i); /* the numbers may begin anew */
  }
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(trace_compare(players, COUNT).branches, 1000);
}

/* execve: what the thread did before it stands before what it does afterwards, whatever pages it got. */
static void test_exec_order(void **state)
{
  (void)state;
  struct player before = player_make(1, 1, 300), after = player_make(0, 2, 200);
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  uint32_t last = 0;
  uint64_t branches = 0;
  drain_begin(0);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  page_of(1)->place = 0;
  thread_begin(1, 1, 1000000);
  process_drain_step(drain, 0); /* it is open, and has not logged anything */
  player_enter(&before);
  player_play(&before, before.count);
  page_of(1)->end = END_EXEC;
  __atomic_store_n(&page_of(1)->status, THREAD_GONE, __ATOMIC_RELEASE);
  player_live(&after, 1, 1000000);
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(lb_trace_reader_open(trace_name, &reader), 0);
  while (lb_trace_reader_next(reader, &record) > 0) {
    if (record.type != LB_TRACE_BRANCHES)
      continue;
    assert_true(record.branches.stream >= last);
    last = record.branches.stream;
    branches += record.branches.count;
  }
  lb_trace_reader_close(reader);
  assert_int_equal(branches, 500);
}

/* Does the page of this step take memory? */
static bool step_is_there(uint32_t number)
{
  uint8_t *page = (uint8_t *)((uintptr_t)step_of(number) & ~(uintptr_t)(PROCESS_PAGE - 1));
  unsigned char is_there = 0;
  assert_int_equal(mincore(page, PROCESS_PAGE, &is_there), 0);
  return is_there & 1;
}

/* The memory of a space's steps is given back when nothing runs in it any more: neither its threads nor those of a
 * copy, which may not have begun when the original ends. */
static void test_steps_given_back(void **state)
{
  (void)state;
  enum { FIRST = PROCESS_STEPS_UNIT, OTHER = 2 * PROCESS_STEPS_UNIT, END = 3 * PROCESS_STEPS_UNIT };
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  note_put(NOTE_STEPS, 1, FIRST, OTHER, "");
  note_put(NOTE_STEPS, 1, 1, 4097, ""); /* of no use */
  note_put(NOTE_SPACE, 2, 0, 1, "/bin/true");
  note_put(NOTE_SPACE, 3, 0, 1, "/bin/true");
  note_put(NOTE_STEPS, 2, OTHER, END, "");
  step_of(FIRST)->head = step_of(OTHER)->head = 1;
  thread_end(0);
  drain_until_free(1);
  for (unsigned i = 0; i < 3; i++)
    process_drain_step(drain, 0);
  assert_true(step_is_there(FIRST) && step_is_there(OTHER)); /* space 2 has not begun */
  thread_begin(0, 2, 1000001);
  thread_end(0);
  drain_until_free(1);
  for (unsigned i = 0; i < 3; i++)
    process_drain_step(drain, 0);
  assert_true(step_is_there(FIRST) && !step_is_there(OTHER)); /* and space 3 may still */
  note_put(NOTE_NONE, 3, 0, 0, "");
  for (unsigned i = 0; i < 3; i++)
    process_drain_step(drain, 0);
  assert_false(step_is_there(FIRST));
  assert_true(step_is_there(1)); /* nobody's */
  process_drain_finish(drain, true);
  drain_end(0);
}

static void code_put(uint32_t space, uint64_t address, const char *bytes)
{
  note_put(NOTE_CODE, space, address, address + strlen(bytes), bytes);
}

/* Code is in the trace once; when it changes, behind what ran before. `shown` is what comes, in its order: the letters
 * of code, and a digit for branches of that generation. */
static void test_code(void **state)
{
  (void)state;
  struct player player = player_make(0, 12, 0);
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  char shown[200] = "";
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  code_put(1, 0x1000 - 3, "abcdef");
  code_put(1, 0x1000 - 2, "bcd"); /* known */
  code_put(1, 0x1000, "defgh");   /* more of it */
  code_put(2, 0x1000, "d");       /* elsewhere */
  player_enter(&player);
  player_play(&player, 100);
  code_put(1, 0x1000 + 1, "X"); /* changed */
  paths_make(1, 1);
  player.generation = 1;
  player_enter(&player);
  player_play(&player, 100);
  thread_end(0);
  drain_until_free(1);
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(lb_trace_reader_open(trace_name, &reader), 0);
  while (lb_trace_reader_next(reader, &record) > 0) {
    size_t length = strlen(shown);
    if (record.type == LB_TRACE_CODE)
      snprintf(shown + length, sizeof(shown) - length, "%.*s ", (int)record.code.size, (const char *)record.code.bytes);
    else if (record.type == LB_TRACE_BRANCHES)
      snprintf(shown + length, sizeof(shown) - length, "%u ",
               (unsigned)((record.branches.branches[record.branches.count - 1].from - path_start(0, 0)) / 0x100000));
  }
  lb_trace_reader_close(reader);
  assert_string_equal(shown, "abcdef defgh d 0 X 1 ");
}

/* The build-id as readelf(1) shows it. */
static void test_build_id(void **state)
{
  (void)state;
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  char wanted[160] = "", found[160] = "";
  FILE *pipe = popen("LC_ALL=C readelf -n /bin/true | sed -n 's/ *Build ID: //p'", "r");
  assert_non_null(pipe);
  if (!fgets(wanted, sizeof(wanted), pipe))
    wanted[0] = 0;
  pclose(pipe);
  wanted[strcspn(wanted, "\n")] = 0;
  if (!*wanted)
    skip();
  drain_begin(0);
  note_put(NOTE_MAP, 1, path_start(0, 0), path_start(0, PATHS), "/bin/true");
  note_put(NOTE_MAP, 1, path_start(1, 0), path_start(1, PATHS), "/dev/zero");
  note_put(NOTE_MAP, 1, path_start(2, 0), path_start(2, PATHS), "[vdso]");
  process_drain_finish(drain, true);
  drain_end(0);
  assert_int_equal(lb_trace_reader_open(trace_name, &reader), 0);
  while (lb_trace_reader_next(reader, &record) > 0)
    for (size_t i = 0; record.type == LB_TRACE_MODULE && i < record.module.build_id_size; i++)
      sprintf(found + strlen(found), "%02x", record.module.build_id[i]);
  lb_trace_reader_close(reader);
  assert_string_equal(found, wanted);
}

/* ---- programs that write to the memory ---- */

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
  madvise(process.memory + process_log_offset(control(), 0), (size_t)PROCESS_PARTS * PART, MADV_REMOVE);
  const struct process_drain_state *now = process_drain_step(drain, 0);
  assert_int_equal(now->end, DRAIN_NONE);
  assert_int_equal(now->spoiled, 1);
  process_drain_step(drain, 0); /* its thread does not wait any more */
  assert_true(__atomic_load_n(&page_of(0)->read, __ATOMIC_SEQ_CST) == page_of(0)->written);
  assert_false(process_has(&process, process_log_offset(control(), 0), PART)); /* looking takes no memory */
  process_drain_finish(drain, true);
  drain_end(0);
  process.fd = 0;
  close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_begin, memory_end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_one_thread),
    TEST(test_threads),
    TEST(test_killed),
    TEST(test_left_behind),
    TEST(test_idle),
    TEST(test_limit),
    TEST(test_full_disk),
    TEST(test_ring),
    TEST(test_unknown_process),
    TEST(test_unmap),
    TEST(test_fork),
    TEST(test_code),
    TEST(test_build_id),
    TEST(test_hostile_pages),
    TEST(test_hostile_notes),
    TEST(test_hostile_entries),
    TEST(test_broken_note),
    TEST(test_steps_given_back),
    TEST(test_truncated),
    TEST(test_punched),
    TEST(test_order),
    TEST(test_exec_order),
    TEST(test_notes_take_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
