/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of the shared memory, on memory that is filled by hand: threads, entries, steps, notes, branches and
 * address spaces. What is expected follows from shared.h and path.h; nothing of the runtime takes part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lastbranch/branch.h"
#include "process/process.h"
#include "process/resolve.h"
#include "process/shared.h"

enum { PART = PROCESS_PART_LEAST, PART_ENTRIES = PART / 4, NOTES = 65536, STEPS = 1024 };

#define LOG_START UINT64_C(0x7f0000000000)

/* ---- made-up memory ---- */

static struct process made;
static uint64_t notes_used;

static int set_up(void **state)
{
  (void)state;
  made = (struct process){.notes_size = NOTES, .step_capacity = STEPS, .part_size = PART};
  made.memory_size = process_logs_offset(NOTES, STEPS) + (size_t)PROCESS_THREADS * PROCESS_PARTS * PART;
  made.memory =
    mmap(NULL, made.memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_ptr_not_equal(made.memory, MAP_FAILED);
  notes_used = 0;
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  munmap(made.memory, made.memory_size);
  return 0;
}

static struct process_control *control(void)
{
  return (struct process_control *)(void *)made.memory;
}

static struct process_state *page(uint32_t slot)
{
  return (struct process_state *)(void *)(made.memory + process_thread_offset(slot));
}

static uint32_t *part(uint32_t slot, unsigned number)
{
  uint64_t offset = process_logs_offset(NOTES, STEPS) + ((uint64_t)slot * PROCESS_PARTS + number) * PART;

  return (uint32_t *)(void *)(made.memory + offset);
}

/* A thread that has filled so many parts and then some entries. */
static void put_thread(uint32_t slot, uint32_t status, uint64_t written, uint32_t position)
{
  struct process_state *state = page(slot);

  state->status = status;
  state->space = 1;
  state->process = 100;
  state->thread = 100 + slot;
  state->log_start = LOG_START;
  state->written = written;
  state->log = LOG_START + written % PROCESS_PARTS * (PART + PROCESS_PAGE) + position * 4;
  memcpy(state->name, "0123456789abcdef", 16);
  if (control()->thread_high <= slot)
    control()->thread_high = slot + 1;
}

static void put_step(uint32_t number, const struct lb_step *step)
{
  memcpy(made.memory + process_steps_offset(NOTES) + number * sizeof(*step), step, sizeof(*step));
}

static void put_note(unsigned type, uint32_t space, uint32_t step, uint64_t start, uint64_t end, uint64_t offset,
                     const char *text)
{
  size_t length = strlen(text);
  struct process_note note = {.size = (uint32_t)(sizeof(note) + ((length + 7) & ~7u)),
                              .type = type,
                              .space = space,
                              .step = step,
                              .start = start,
                              .end = end,
                              .offset = offset,
                              .length = (uint32_t)length};
  uint8_t *at = made.memory + process_notes_offset() + notes_used;

  memcpy(at, &note, sizeof(note));
  memcpy(at + sizeof(note), text, length);
  notes_used += note.size;
}

static struct process_thread get_thread(uint32_t slot)
{
  struct process_thread thread;

  assert_true(process_thread(&made, slot, &thread));
  return thread;
}

/* ---- threads ---- */

static void test_threads(void **state)
{
  (void)state;
  struct process_thread thread;
  bool is_group = false;

  assert_int_equal(process_slots(&made), 0);
  assert_false(process_thread(&made, 0, &thread));
  put_thread(3, THREAD_LIVE, 5, 7);
  page(3)->serial = 9;
  page(3)->creator = 42;
  page(3)->read = 4;
  page(1)->status = THREAD_STARTING;
  page(2)->status = 77;
  assert_int_equal(process_slots(&made), 4);
  for (uint32_t slot = 0; slot < 3; slot++)
    assert_false(process_thread(&made, slot, &thread));
  assert_false(process_thread(&made, 4, &thread));
  thread = get_thread(3);
  assert_int_equal(thread.slot, 3);
  assert_int_equal(thread.serial, 9);
  assert_int_equal(thread.space, 1);
  assert_int_equal(thread.process, 100);
  assert_int_equal(thread.thread, 103);
  assert_int_equal(thread.creator, 42);
  assert_int_equal(thread.written, 5);
  assert_int_equal(thread.read, 4);
  assert_int_equal(thread.position, 7);
  assert_string_equal(thread.name, "0123456789abcdef");
  assert_true(process_thread_is_live(&thread));
  assert_false(process_thread_has_died(&thread));
  assert_false(process_thread_has_exited(&thread, &is_group));
  control()->thread_high = UINT32_MAX;
  assert_int_equal(process_slots(&made), PROCESS_THREADS);
  assert_false(process_thread(&made, UINT32_MAX, &thread));
}

static void test_ends(void **state)
{
  (void)state;
  struct process_thread thread;
  bool is_group = false;

  put_thread(0, THREAD_GONE, 0, 0);
  page(0)->end = END_SIGNAL;
  page(0)->end_status = 11;
  page(0)->signal_code = 1;
  page(0)->signal_address = 0x10;
  page(0)->death_rip = 0x401000;
  page(0)->death_flags = 0x246;
  page(0)->death_registers[15] = 15;
  thread = get_thread(0);
  assert_true(process_thread_has_died(&thread));
  assert_false(process_thread_is_live(&thread));
  assert_int_equal(thread.end_status, 11);
  assert_int_equal(thread.signal_code, 1);
  assert_int_equal(thread.signal_address, 0x10);
  assert_int_equal(thread.rip, 0x401000);
  assert_int_equal(thread.flags, 0x246);
  assert_int_equal(thread.registers[15], 15);
  page(0)->end_status = 1000; /* no signal has such a number */
  thread = get_thread(0);
  assert_false(process_thread_has_died(&thread));
  page(0)->end = END_EXIT_GROUP;
  thread = get_thread(0);
  assert_true(process_thread_has_exited(&thread, &is_group));
  assert_true(is_group);
  page(0)->end = END_EXIT;
  thread = get_thread(0);
  assert_true(process_thread_has_exited(&thread, &is_group));
  assert_false(is_group);
  page(0)->end = 99;
  thread = get_thread(0);
  assert_int_equal(thread.end, END_NONE);
}

/* ---- entries ---- */

/* The address of the next entry when the part's number was moved and the address was not yet, and nonsense. */
static void test_positions(void **state)
{
  (void)state;
  put_thread(0, THREAD_LIVE, 2, PART_ENTRIES);
  assert_int_equal(get_thread(0).position, PART_ENTRIES);
  page(0)->written = 3;
  assert_int_equal(get_thread(0).position, 0);
  page(0)->log = LOG_START - 4;
  assert_int_equal(get_thread(0).position, 0);
  page(0)->log = LOG_START + 3 * (PART + PROCESS_PAGE) + PART + 4; /* in the page that faults */
  assert_int_equal(get_thread(0).position, 0);
  page(0)->log = UINT64_MAX;
  assert_int_equal(get_thread(0).position, 0);
}

/* What was written since the address was moved last, up to the first 0. */
static void test_positions_behind(void **state)
{
  (void)state;
  put_thread(0, THREAD_LIVE, 1, 10);
  for (uint32_t i = 10; i < 15; i++)
    part(0, 1)[i] = 1;
  assert_int_equal(get_thread(0).position, 15);
  for (uint32_t i = 15; i < PART_ENTRIES; i++)
    part(0, 1)[i] = 1;
  assert_int_equal(get_thread(0).position, PART_ENTRIES);
}

static void check_entries(uint32_t status, uint64_t written, uint32_t position, uint64_t first, bool is_cut)
{
  struct process_thread thread;
  uint32_t *entries = NULL;
  size_t count = 0;
  bool cut = !is_cut;

  put_thread(5, status, written, position);
  /* each entry is its number since the beginning; behind the last ones is nothing */
  for (uint64_t number = written < 3 ? 0 : written - 3; number <= written; number++)
    for (uint32_t i = 0; i < PART_ENTRIES; i++)
      part(5, number % PROCESS_PARTS)[i] = number < written || i < position ? (uint32_t)(number * PART_ENTRIES + i) : 0;
  thread = get_thread(5);
  assert_int_equal(process_entries(&made, &thread, &entries, &count, &cut), 0);
  assert_int_equal(count, (written - first) * PART_ENTRIES + position);
  assert_int_equal(cut, is_cut);
  for (size_t i = 0; i < count; i++)
    assert_int_equal(entries[i], (uint32_t)(first * PART_ENTRIES + i));
  free(entries);
}

static void test_entries(void **state)
{
  (void)state;
  check_entries(THREAD_GONE, 0, 0, 0, false);
  check_entries(THREAD_GONE, 0, 10, 0, false);
  check_entries(THREAD_GONE, 0, PART_ENTRIES, 0, false);
  check_entries(THREAD_GONE, 3, 5, 0, false);
  check_entries(THREAD_GONE, 4, 5, 1, true);
  check_entries(THREAD_GONE, 1000003, 5, 1000000, true);
  check_entries(THREAD_LIVE, 2, 5, 0, false);
  check_entries(THREAD_LIVE, 3, 5, 1, true); /* it may begin with the oldest part at any time */
}

/* The thread goes on while its log is read: what it wrote over is not in the copy. */
static void test_entries_that_move(void **state)
{
  (void)state;
  struct process_thread thread;
  uint32_t *entries = NULL;
  size_t count = 0;
  bool is_cut = false;

  put_thread(0, THREAD_LIVE, 5, 100);
  for (unsigned number = 0; number < PROCESS_PARTS; number++)
    part(0, number)[0] = number;
  thread = get_thread(0);
  page(0)->written = 7; /* begins with the part that had number 3 */
  assert_int_equal(process_entries(&made, &thread, &entries, &count, &is_cut), 0);
  assert_int_equal(count, PART_ENTRIES + 100);
  assert_int_equal(entries[0], 0); /* number 4 */
  assert_true(is_cut);
  page(0)->written = 100;
  count = 0;
  assert_int_equal(process_entries(&made, &thread, &entries, &count, &is_cut), 0);
  assert_int_equal(count, 0);
  free(entries);
}

/* ---- steps and notes ---- */

static void test_steps(void **state)
{
  (void)state;
  struct lb_step step;

  assert_false(process_step(&made, 0, &step));
  assert_false(process_step(&made, 1, &step)); /* not filled */
  assert_false(process_step(&made, STEPS, &step));
  assert_false(process_step(&made, UINT32_MAX, &step));
  put_step(4, &(struct lb_step){.from = 0x1000, .head = 4, .flags = LB_STEP_HEAD, .count = 1, .space = 7});
  put_step(5, &(struct lb_step){.from = 0x1010, .to = 0x1000, .head = 4, .kind = LB_BRANCH_JCC});
  assert_true(process_step(&made, 4, &step));
  assert_int_equal(step.space, 7);
  assert_true(process_step(&made, 5, &step));
  assert_int_equal(step.from, 0x1010);
  put_step(5, &(struct lb_step){.head = 4, .kind = LB_BRANCH_KINDS});
  assert_false(process_step(&made, 5, &step));
  put_step(5, &(struct lb_step){.head = 6});
  assert_false(process_step(&made, 5, &step));
  put_step(5, &(struct lb_step){.head = 5}); /* says that it is its own head, and is none */
  assert_false(process_step(&made, 5, &step));
  put_step(5, &(struct lb_step){.head = 4, .flags = LB_STEP_HEAD});
  assert_false(process_step(&made, 5, &step));
}

static struct process_note *note_at(uint64_t offset)
{
  return (struct process_note *)(void *)(made.memory + process_notes_offset() + offset);
}

static void test_notes(void **state)
{
  (void)state;
  struct process_note note;
  const uint8_t *bytes;
  uint64_t offset = 0;

  assert_false(process_note(&made, &offset, &note, &bytes));
  assert_int_equal(offset, 0);
  put_note(NOTE_MAP, 1, 2, 3, 4, 5, "/bin/a");
  put_note(NOTE_UNMAP, 6, 7, 8, 9, 0, "");
  assert_true(process_note(&made, &offset, &note, &bytes));
  assert_int_equal(note.type, NOTE_MAP);
  assert_int_equal(note.start, 3);
  assert_int_equal(note.length, 6);
  assert_memory_equal(bytes, "/bin/a", 6);
  assert_int_equal(offset, 56);
  assert_true(process_note(&made, &offset, &note, &bytes));
  assert_int_equal(note.space, 6);
  assert_false(process_note(&made, &offset, &note, &bytes)); /* not there yet */
  for (unsigned i = 0; i < 6; i++) {
    static const struct process_note bad[] = {
      {.size = 47, .type = NOTE_MAP},   {.size = 56, .type = NOTE_MAP, .length = 9}, {.size = 48, .type = 0},
      {.size = 48, .type = NOTE_TYPES}, {.size = 8 << 20, .type = NOTE_MAP},         {.size = 52, .type = NOTE_MAP},
    };

    *note_at(0) = bad[i];
    offset = 0;
    assert_false(process_note(&made, &offset, &note, &bytes));
  }
  static const uint64_t offsets[] = {NOTES, NOTES - 40, NOTES + 8, UINT64_MAX, UINT64_MAX - 7, 4};
  for (unsigned i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
    offset = offsets[i];
    assert_false(process_note(&made, &offset, &note, &bytes));
  }
}

/* ---- branches ---- */

enum { F = 0x1000, G = 0x2000 };

/* Two paths. F: a conditional jump that is mostly not taken, a call that is followed into G's code, a conditional jump
 * back to F, and a return. G: a jump to F, tied to it. */
static void put_paths(void)
{
  put_step(1, &(struct lb_step){.from = F, .head = 1, .flags = LB_STEP_HEAD, .count = 4, .space = 1});
  put_step(2, &(struct lb_step){.from = F + 2, .to = F + 99, .head = 1, .kind = LB_BRANCH_JCC, .length = 2});
  put_step(
    3,
    &(struct lb_step){
      .from = F + 4, .to = F + 32, .head = 1, .kind = LB_BRANCH_NEAR_REL_CALL, .flags = LB_STEP_FOLLOW, .length = 5});
  put_step(4, &(struct lb_step){.from = F + 34, .to = F, .head = 1, .next = 1, .kind = LB_BRANCH_JCC, .length = 2});
  put_step(
    5, &(struct lb_step){.from = F + 36, .head = 1, .kind = LB_BRANCH_NEAR_RET, .flags = LB_STEP_SILENT, .length = 1});
  put_step(6, &(struct lb_step){.from = G, .head = 6, .flags = LB_STEP_HEAD, .count = 1, .space = 2});
  put_step(
    7, &(struct lb_step){.from = G + 8, .to = F, .head = 6, .next = 1, .kind = LB_BRANCH_NEAR_REL_JMP, .length = 5});
}

static void put_log(uint32_t status, const uint32_t *entries, uint32_t count)
{
  put_thread(0, status, 0, count);
  memcpy(part(0, 0), entries, count * sizeof(*entries));
}

struct expected {
  uint64_t from, to;
  unsigned kind;
  uint32_t step; /* of the same path */
};

static void expect_branches(const struct process_branches *list, const struct expected *expected, size_t count)
{
  assert_int_equal(list->count, count);
  for (size_t i = 0; i < count; i++) {
    struct lb_step one, other;

    assert_int_equal(list->branches[i].from, expected[i].from);
    assert_int_equal(list->branches[i].to, expected[i].to);
    assert_int_equal(list->branches[i].kind, expected[i].kind);
    assert_true(process_step(&made, list->steps[i], &one) && process_step(&made, expected[i].step, &other));
    assert_int_equal(one.head, other.head);
  }
}

static const struct expected whole[] = {
  {F + 4, F + 32, LB_BRANCH_NEAR_REL_CALL, 1}, /* entry 4: round once */
  {F + 34, F, LB_BRANCH_JCC, 1},
  {F + 4, F + 32, LB_BRANCH_NEAR_REL_CALL, 1}, /* entry 6: to the end, and the return went to G */
  {F + 36, G, LB_BRANCH_NEAR_RET, 1},
  {G + 8, F, LB_BRANCH_NEAR_REL_JMP, 6},       /* entry 7 */
  {F + 4, F + 32, LB_BRANCH_NEAR_REL_CALL, 1}, /* the event: the call was passed, then a fault that goes nowhere */
};

static const uint32_t whole_log[] = {LB_ENTRY_ENTER | 1,        4,      6, 7, LB_ENTRY_EVENT,
                                     LB_ENTRY_NOWHERE | 2 << 8, F + 33, 0, 0, 0};

enum { WHOLE = sizeof(whole) / sizeof(*whole), WHOLE_LOG = sizeof(whole_log) / sizeof(*whole_log) };

static void test_rebuild(void **state)
{
  (void)state;
  struct process_branches list;
  struct process_thread thread;

  put_paths();
  put_log(THREAD_GONE, whole_log, WHOLE_LOG);
  thread = get_thread(0);
  assert_int_equal(process_rebuild(&made, &thread, &list), 0);
  expect_branches(&list, whole, WHOLE);
  assert_false(list.is_cut);
  process_branches_done(&list);
  for (unsigned most = 0; most <= WHOLE; most++) {
    assert_int_equal(process_rebuild_last(&made, &thread, most, &list), 0);
    expect_branches(&list, whole + WHOLE - most, most);
    assert_int_equal(list.is_cut, most < WHOLE);
    assert_false(list.is_damaged);
    process_branches_done(&list);
  }
}

static void test_rebuild_damaged(void **state)
{
  (void)state;
  static const uint32_t entries[] = {LB_ENTRY_ENTER | 1, 4, 999, 7, 5000, 0, 7};
  static const struct expected found[] = {
    {F + 4, F + 32, LB_BRANCH_NEAR_REL_CALL, 1},
    {F + 34, F, LB_BRANCH_JCC, 1},
    {G + 8, F, LB_BRANCH_NEAR_REL_JMP, 6},
    {G + 8, F, LB_BRANCH_NEAR_REL_JMP, 6},
  };
  struct process_branches list;
  struct process_thread thread;

  put_paths();
  put_log(THREAD_GONE, entries, sizeof(entries) / sizeof(*entries));
  thread = get_thread(0);
  assert_int_equal(process_rebuild(&made, &thread, &list), -EBADMSG);
  expect_branches(&list, found, 2);
  process_branches_done(&list);
  assert_int_equal(process_rebuild_last(&made, &thread, 100, &list), 0);
  expect_branches(&list, found, 4);
  assert_true(list.is_damaged);
  process_branches_done(&list);
}

/* A log of four parts that went round; an event lies across the place where a short tail would begin. */
static void test_rebuild_long(void **state)
{
  (void)state;
  struct process_branches list;
  struct process_thread thread;

  put_paths();
  put_thread(0, THREAD_GONE, 7, 0);
  for (unsigned number = 0; number < PROCESS_PARTS - 1; number++)
    for (uint32_t i = 0; i < PART_ENTRIES; i++)
      part(0, number)[i] = 4;
  thread = get_thread(0);
  assert_int_equal(process_rebuild(&made, &thread, &list), 0);
  assert_int_equal(list.count, 3 * PART_ENTRIES * 2);
  assert_true(list.is_cut);
  process_branches_done(&list);
  /* events of signals at F, whose words look like steps */
  for (uint32_t i = 0; i + 6 < PART_ENTRIES; i += 7) {
    const uint32_t event[] = {LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT, 7, 0, F, 0, LB_ENTRY_ENTER | 1};

    memcpy(part(0, 6 % PROCESS_PARTS) + i, event, sizeof(event));
  }
  for (size_t most = 1; most < 30; most++) {
    assert_int_equal(process_rebuild_last(&made, &thread, most, &list), 0);
    assert_int_equal(list.count, most);
    assert_false(list.is_damaged);
    process_branches_done(&list);
  }
}

/* ---- address spaces ---- */

static void expect_module(struct process_spaces *spaces, uint32_t space, uint32_t step, uint64_t address,
                          const char *path, uint64_t offset)
{
  struct process_module module = {0};
  bool is_found = process_spaces_find(spaces, space, step, address, &module);

  assert_int_equal(is_found, path != NULL);
  if (!path)
    return;
  assert_string_equal(module.path, path);
  assert_int_equal(module.offset + (address - module.start), offset);
}

/* A head of this space, so that there is a step with this number. */
static void put_head(uint32_t number, uint32_t space)
{
  put_step(number, &(struct lb_step){.from = 1, .head = number, .flags = LB_STEP_HEAD, .space = space});
}

static void test_spaces(void **state)
{
  (void)state;
  struct process_spaces *spaces;

  put_note(NOTE_SPACE, 1, 1, 100, 0, 0, "/bin/program");
  put_note(NOTE_MAP, 1, 1, 0x10000, 0x20000, 0x1000, "/bin/program");
  put_note(NOTE_MAP, 1, 10, 0x30000, 0x40000, 0, "/lib/one");
  put_note(NOTE_SPACE, 2, 20, 101, 1, 0, "");                      /* fork */
  put_note(NOTE_UNMAP, 1, 30, 0x34000, 0x38000, 0, "");            /* a hole in one */
  put_note(NOTE_MAP, 2, 40, 0x30000, 0x31000, 0x5000, "/lib/two"); /* in the child only */
  put_note(NOTE_SPACE, 3, 50, 101, 0, 0, "/bin/other");            /* execve */
  put_note(NOTE_MAP, 3, 50, 0x10000, 0x11000, 0, "/bin/other");
  for (uint32_t number = 5; number < 60; number += 10)
    put_head(number, number < 20 || number == 35 ? 1 : number < 50 ? 2 : 3);
  assert_int_equal(process_spaces_new(&made, &spaces), 0);
  assert_string_equal(process_spaces_program(spaces, 1), "/bin/program");
  assert_string_equal(process_spaces_program(spaces, 2), "/bin/program");
  assert_string_equal(process_spaces_program(spaces, 3), "/bin/other");
  assert_string_equal(process_spaces_program(spaces, 4), "");

  expect_module(spaces, 1, PROCESS_NOW, 0x10010, "/bin/program", 0x1010);
  expect_module(spaces, 1, PROCESS_NOW, 0x1ffff, "/bin/program", 0x10fff);
  expect_module(spaces, 1, PROCESS_NOW, 0x20000, NULL, 0);
  expect_module(spaces, 1, PROCESS_NOW, 0x33fff, "/lib/one", 0x3fff);
  expect_module(spaces, 1, PROCESS_NOW, 0x34000, NULL, 0);
  expect_module(spaces, 1, PROCESS_NOW, 0x38000, "/lib/one", 0x8000);
  expect_module(spaces, 2, PROCESS_NOW, 0x34000, "/lib/one", 0x4000); /* the child has no hole */
  expect_module(spaces, 2, PROCESS_NOW, 0x30010, "/lib/two", 0x5010);
  expect_module(spaces, 2, PROCESS_NOW, 0x31000, "/lib/one", 0x1000);
  expect_module(spaces, 3, PROCESS_NOW, 0x10000, "/bin/other", 0);
  expect_module(spaces, 3, PROCESS_NOW, 0x30000, NULL, 0);
  expect_module(spaces, 9, PROCESS_NOW, 0x10000, NULL, 0);

  /* Before the hole was made it was there; the step says which space, whatever else is said. */
  expect_module(spaces, 3, 15, 0x34000, "/lib/one", 0x4000);
  expect_module(spaces, 3, 35, 0x34000, NULL, 0);
  expect_module(spaces, 3, 25, 0x30010, "/lib/one", 0x10);
  expect_module(spaces, 3, 45, 0x30010, "/lib/two", 0x5010);
  /* What was not there at that step is as it is now. */
  expect_module(spaces, 1, 5, 0x30000, "/lib/one", 0);
  expect_module(spaces, 1, 777, 0x30000, "/lib/one", 0);
  process_spaces_free(spaces);
}

static void test_code(void **state)
{
  (void)state;
  struct process_spaces *spaces;
  uint8_t bytes[16];

  put_note(NOTE_SPACE, 1, 1, 100, 0, 0, "/bin/program");
  put_note(NOTE_CODE, 1, 10, 0x50000, 0, 0, "first");
  put_note(NOTE_CODE, 1, 20, 0x50000, 0, 0, "again");
  put_note(NOTE_CODE, 1, 30, 0x50002, 0, 0, "overlapping");
  put_head(15, 1);
  put_head(25, 1);
  put_head(35, 1);
  assert_int_equal(process_spaces_new(&made, &spaces), 0);
  assert_int_equal(process_spaces_code(spaces, 9, 15, 0x50000, bytes, 15), 5);
  assert_memory_equal(bytes, "first", 5);
  assert_int_equal(process_spaces_code(spaces, 9, 25, 0x50001, bytes, 15), 4);
  assert_memory_equal(bytes, "gain", 4);
  assert_int_equal(process_spaces_code(spaces, 9, 35, 0x50003, bytes, 3), 3);
  assert_memory_equal(bytes, "ver", 3);
  assert_int_equal(process_spaces_code(spaces, 1, PROCESS_NOW, 0x5000c, bytes, 15), 1);
  assert_int_equal(process_spaces_code(spaces, 1, PROCESS_NOW, 0x5000d, bytes, 15), 0);
  assert_int_equal(process_spaces_code(spaces, 1, PROCESS_NOW, 0x4ffff, bytes, 15), 0);
  assert_int_equal(process_spaces_code(spaces, 2, PROCESS_NOW, 0x50000, bytes, 15), 0);
  process_spaces_free(spaces);
}

/* Spaces that are copies of each other, of themselves and of spaces to come. */
static void test_bad_spaces(void **state)
{
  (void)state;
  struct process_spaces *spaces;

  put_note(NOTE_SPACE, 1, 1, 100, 1, 0, "");
  put_note(NOTE_SPACE, 2, 1, 100, 3, 0, "");
  put_note(NOTE_SPACE, 3, 1, 100, 2, 0, "");
  put_note(NOTE_SPACE, 4, 1, 100, UINT64_MAX, 0, "");
  put_note(NOTE_MAP, 2, 1, 0x1000, 0x1000, 0, "/empty");
  put_note(NOTE_MAP, 2, 1, 0x2000, 0x1000, 0, "/negative");
  put_note(NOTE_MAP, 2, 1, 0, UINT64_MAX, UINT64_MAX, "/all");
  put_note(NOTE_CODE, 2, 1, UINT64_MAX, 0, 0, "behind the end");
  assert_int_equal(process_spaces_new(&made, &spaces), 0);
  for (uint32_t space = 0; space < 6; space++) {
    expect_module(spaces, space, PROCESS_NOW, 0x1234, space == 2 ? "/all" : NULL, 0x1233);
    assert_string_equal(process_spaces_program(spaces, space), "");
  }
  process_spaces_free(spaces);
}

/* ---- scripts ---- */

static void script_make(const char *path, const char *text, size_t size)
{
  FILE *file = fopen(path, "w");

  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, size, file), size);
  fclose(file);
  assert_int_equal(chmod(path, 0700), 0);
}

static void expect_words(const char *text, size_t size, unsigned error, unsigned count, const char *const *words)
{
  char path[] = "/tmp/lbr-script-XXXXXX";
  struct resolution resolution;
  int fd = mkstemp(path);

  assert_true(fd >= 0);
  close(fd);
  script_make(path, text, size);
  resolve_program(path, &resolution);
  unlink(path);
  assert_int_equal(resolution.error, error);
  if (error)
    return;
  assert_int_equal(resolution.count, count);
  for (unsigned i = 0; i < count; i++)
    assert_string_equal(resolution.words[resolution.first + i], words[i] ? words[i] : path);
}

#define SCRIPT(text, error, ...)                                                                                       \
  do {                                                                                                                 \
    const char *const words[] = {__VA_ARGS__, ""};                                                                     \
    expect_words(text, sizeof(text) - 1, error, sizeof(words) / sizeof(*words) - 1, words);                            \
  } while (0)

/* NULL stands for the script's own path. test_run.sh compares with what the kernel does. */
static void test_scripts(void **state)
{
  (void)state;
  char longest[300];

  SCRIPT("#!/bin/sh\nexit\n", 0, "/bin/sh", NULL);
  SCRIPT("#! \t/bin/sh \t\n", 0, "/bin/sh", NULL);
  SCRIPT("#!/bin/sh -e -u \nexit\n", 0, "/bin/sh", "-e -u", NULL);
  SCRIPT("#!/bin/sh", 0, "/bin/sh", NULL);
  SCRIPT("#!/bin/sh\0junk -e\n", 0, "/bin/sh", NULL);
  SCRIPT("#!\n", PROCESS_E_NOT_ELF, NULL);
  SCRIPT("#!   ", PROCESS_E_NOT_ELF, NULL);
  SCRIPT("#!/nonexistent/sh\n", PROCESS_E_NO_SCRIPT, NULL);
  SCRIPT("#!/tmp\n", PROCESS_E_NO_ACCESS, NULL);
  memset(longest, 'x', sizeof(longest));
  memcpy(longest, "#!/", 3);
  expect_words(longest, sizeof(longest), PROCESS_E_NOT_ELF, 0, NULL); /* the path may go on behind what is read */
  memset(longest, ' ', sizeof(longest));
  memcpy(longest, "#!/bin/sh -a", 12);
  expect_words(longest, sizeof(longest), 0, 3, (const char *const[]){"/bin/sh", "-a", NULL});
}

static void test_scripts_in_a_row(void **state)
{
  (void)state;
  char folder[] = "/tmp/lbr-scripts-XXXXXX", path[6][64], text[128];
  struct resolution resolution;

  assert_non_null(mkdtemp(folder));
  for (unsigned i = 0; i < 6; i++) {
    snprintf(path[i], sizeof(path[i]), "%s/%u", folder, i);
    snprintf(text, sizeof(text), "#!%s -%u\n", i ? path[i - 1] : "/bin/sh", i);
    script_make(path[i], text, strlen(text));
  }
  resolve_program(path[1], &resolution);
  assert_int_equal(resolution.error, 0);
  const char *const words[] = {"/bin/sh", "-0", path[0], "-1", path[1]};
  assert_int_equal(resolution.count, 5);
  for (unsigned i = 0; i < 5; i++)
    assert_string_equal(resolution.words[resolution.first + i], words[i]);
  resolve_program(path[3], &resolution);
  assert_int_equal(resolution.error, 0);
  assert_int_equal(resolution.count, 9);
  resolve_program(path[4], &resolution);
  assert_int_equal(resolution.error, PROCESS_E_NO_SCRIPT);
  for (unsigned i = 0; i < 6; i++)
    unlink(path[i]);
  rmdir(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_threads),
    TEST(test_ends),
    TEST(test_positions),
    TEST(test_positions_behind),
    TEST(test_entries),
    TEST(test_entries_that_move),
    TEST(test_steps),
    TEST(test_notes),
    TEST(test_rebuild),
    TEST(test_rebuild_damaged),
    TEST(test_rebuild_long),
    TEST(test_spaces),
    TEST(test_code),
    TEST(test_bad_spaces),
    cmocka_unit_test(test_scripts),
    cmocka_unit_test(test_scripts_in_a_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
