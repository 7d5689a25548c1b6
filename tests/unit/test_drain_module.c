/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a recorded program maps and unmaps, forks, and code that it writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drain_rig.h"

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

enum { FIRST = PROCESS_STEPS_UNIT, OTHER = 2 * PROCESS_STEPS_UNIT, END = 3 * PROCESS_STEPS_UNIT };

/* Space 1 has a thread and the steps from FIRST on. */
static void first_space_begin(void)
{
  drain_begin(0);
  thread_begin(0, 1, 1000000);
  note_put(NOTE_SPACE, 1, 1000000, 0, "/bin/true");
  note_put(NOTE_STEPS, 1, FIRST, OTHER, "");
}

/* The memory of a space's steps is given back when nothing runs in it any more: neither its threads nor those of a
 * copy, which may not have begun when the original ends. */
static void test_steps_given_back(void **state)
{
  (void)state;
  first_space_begin();
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

/* Not if other processes use them. */
static void test_steps_kept(void **state)
{
  (void)state;
  first_space_begin();
  note_put(NOTE_KEPT, 1, 0, 0, "");
  note_put(NOTE_KEPT, 77, 0, 0, ""); /* of no use */
  step_of(FIRST)->head = step_of(OTHER)->head = 1;
  thread_end(0);
  drain_until_free(1);
  thread_begin(0, 2, 1000001);
  note_put(NOTE_SPACE, 2, 1000001, 0, "/bin/true");
  note_put(NOTE_STEPS, 2, OTHER, END, "");
  thread_end(0);
  drain_until_free(1);
  for (unsigned i = 0; i < 3; i++)
    process_drain_step(drain, 0);
  assert_true(step_is_there(FIRST) && !step_is_there(OTHER));
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

PART(TEST(test_unmap), TEST(test_fork), TEST(test_code), TEST(test_build_id), TEST(test_steps_given_back),
     TEST(test_steps_kept), TEST(test_order), TEST(test_exec_order), TEST(test_notes_take_long));
