/* SPDX-License-Identifier: Apache-2.0
 *
 * A program, its threads and its trace for the tests of the drain: drain_rig.h.
 */
#include "drain_rig.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- shared memory ---- */

struct process process;
char folder[64], trace_name[128];

struct process_control *control(void)
{
  return (struct process_control *)process.memory;
}

struct process_state *page_of(uint32_t slot)
{
  return (struct process_state *)(process.memory + process_thread_offset(slot));
}

struct lb_step *step_of(uint32_t number)
{
  return (struct lb_step *)(process.memory + process_steps_offset(NOTES)) + number;
}

uint64_t path_start(unsigned generation, unsigned path)
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

void paths_make(unsigned generation, uint32_t space)
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

int memory_begin(void **state)
{
  (void)state;
  process = (struct process){.pid = getpid(), .notes_size = NOTES, .step_capacity = STEPS, .part_size = LOG_PART};
  process.memory_size = process_logs_offset(NOTES, STEPS) + (size_t)PROCESS_THREADS * PROCESS_PARTS * LOG_PART;
  process.memory =
    mmap(NULL, process.memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (process.memory == MAP_FAILED)
    return -1;
  *control() = (struct process_control){.magic = PROCESS_MAGIC,
                                        .mode = PROCESS_ALL,
                                        .part_size = LOG_PART,
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

int memory_end(void **state)
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

uint64_t random_next(uint64_t *random)
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

struct player player_make(uint32_t slot, uint64_t start, uint64_t count)
{
  return (struct player){.slot = slot, .random = 0x9E3779B97F4A7C15 * (start + 1), .count = count};
}

static uint64_t part_start(uint32_t slot, uint64_t number)
{
  return page_of(slot)->log_start + number % PROCESS_PARTS * (uint64_t)(LOG_PART + PROCESS_PAGE);
}

/* The parts of a log are empty before they are filled: its end is the first 0. */
static void part_clear(uint32_t slot, uint64_t number)
{
  memset(process.memory + process_log_offset(control(), slot) + number % PROCESS_PARTS * LOG_PART, 0, LOG_PART);
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

void entries_log(uint32_t slot, const uint32_t *entries, unsigned count)
{
  struct process_state *page = page_of(slot);
  uint64_t offset = page->log - part_start(slot, page->written);
  uint8_t *log = process.memory + process_log_offset(control(), slot);

  if (offset + count * 4 > LOG_PART) {
    memset(log + page->written % PROCESS_PARTS * LOG_PART + offset, 0, LOG_PART - offset);
    part_turn(page, slot);
    offset = 0;
  }
  memcpy(log + page->written % PROCESS_PARTS * LOG_PART + offset, entries, count * 4);
  __atomic_store_n(&page->log, page->log + count * 4, __ATOMIC_RELEASE);
}

void thread_begin(uint32_t slot, uint32_t space, uint32_t thread)
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

void thread_end(uint32_t slot)
{
  page_of(slot)->end = END_EXIT;
  __atomic_store_n(&page_of(slot)->status, THREAD_GONE, __ATOMIC_RELEASE);
  bell_ring();
}

void player_play(struct player *player, uint64_t count)
{
  for (uint64_t i = 0; i < count; i++) {
    uint32_t entries[10];
    unsigned size;

    player_branch(player, entries, &size);
    entries_log(player->slot, entries, size);
  }
}

void player_enter(const struct player *player)
{
  uint32_t entry = LB_ENTRY_ENTER | path_head(player->generation, player->path);

  entries_log(player->slot, &entry, 1);
}

void *player_run(void *data)
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

void note_put(unsigned type, uint32_t space, uint64_t start, uint64_t end, const char *path)
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

struct lb_trace_writer *writer;
struct process_drain *drain;

void drain_begin(uint64_t limit)
{
  assert_int_equal(lb_trace_writer_open(trace_name, &writer), 0);
  assert_int_equal(process_drain_new(&process, writer, limit, &drain), 0);
}

void drain_end(int error)
{
  assert_int_equal(lb_trace_writer_close(writer), error);
  process_drain_free(drain);
}

double seconds_now(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void drain_for(double seconds)
{
  for (double end = seconds_now() + seconds; seconds_now() < end;)
    process_drain_step(drain, 20);
}

void drain_until_free(uint32_t slots)
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

void drain_until_joined(pthread_t thread)
{
  double end = seconds_now() + 60;

  while (pthread_tryjoin_np(thread, NULL) != 0) {
    if (seconds_now() >= end)
      fail_msg("the thread did not end");
    process_drain_step(drain, 10);
  }
  drain_until_free(1);
}

static void branch_compare(const struct lb_branch *found, const struct lb_branch *wanted, uint64_t number)
{
  if (found->from != wanted->from || found->to != wanted->to || found->kind != wanted->kind)
    fail_msg("branch %llu is %#llx -> %#llx %s, not %#llx -> %#llx %s", (unsigned long long)number,
             (unsigned long long)found->from, (unsigned long long)found->to, lb_branch_kind_name(found->kind),
             (unsigned long long)wanted->from, (unsigned long long)wanted->to, lb_branch_kind_name(wanted->kind));
}

struct found trace_compare(struct player *players, uint32_t count)
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

static void map_take(struct map *map, const struct lb_trace_module *module)
{
  for (unsigned generation = 0; generation < 3 && module->space < 4; generation++)
    if (module->address == path_start(generation, 0)) {
      map->is_there[module->space][generation] = !module->is_gone;
      snprintf(map->names[module->space][generation], 64, "%s", module->name);
    }
}

uint64_t modules_check(struct map *map, uint32_t *ret_spaces)
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
