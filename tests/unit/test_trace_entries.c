/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of entries in traces (src/trace): whatever a producer of paths logs comes back as the branches it took, from
 * each chunk alone; what makes no sense, or was cut or damaged, comes back as a gap; and the bytes are those that
 * doc/trace-format.md describes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lastbranch/error.h"
#include "lastbranch/trace.h"
#include "test_trace_paths.h"
#include "trace_contents.h"
#include "trace_folder.h"

/* ---- a producer ---- */

/* A table as its producer has it: ties are made when they are first needed, and steps are asked for once. */
struct producer {
  const struct table *table;
  uint8_t asked[TABLE_MAX]; /* how often */
  uint8_t is_tied[TABLE_MAX];
};

static bool producer_lookup(void *context, uint32_t number, struct lb_step *ret_step)
{
  struct producer *producer = context;

  if (!number || number >= producer->table->count)
    return false;
  producer->asked[number] += producer->asked[number] < UINT8_MAX;
  memcpy(ret_step, &producer->table->steps[number], sizeof(*ret_step));
  if (!producer->is_tied[number])
    ret_step->next = 0;
  return true;
}

static struct producer *producer_new(const struct table *table)
{
  struct producer *producer = calloc(1, sizeof(*producer));

  producer->table = table;
  return producer;
}

/* What will be given to the writer: ties that it depends on are there before. */
static void producer_tie(struct producer *producer, const uint32_t *entries, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (entries[i] < producer->table->count)
      producer->is_tied[entries[i]] = 1;
}

static struct lb_trace_writer *writer_new(struct producer *producer, unsigned streams)
{
  struct lb_trace_writer *writer;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  for (unsigned i = 0; i < streams; i++)
    assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread"}, &number), 0);
  lb_trace_writer_paths(writer, producer_lookup, producer);
  return writer;
}

static void give(struct lb_trace_writer *writer, struct producer *producer, uint32_t stream, const uint32_t *entries,
                 size_t count)
{
  producer_tie(producer, entries, count);
  assert_int_equal(lb_trace_writer_entries(writer, stream, entries, count), 0);
}

/* ---- what comes back ---- */

static unsigned gaps_of(const struct contents *contents)
{
  unsigned sum = 0;

  for (unsigned i = 0; i < LB_TRACE_GAP_REASONS; i++)
    sum += contents->gaps[i];
  return sum;
}

/* All of these branches, in order, and nothing else. */
static void assert_stream(struct lb_trace_reader *reader, uint32_t stream, const struct lb_branch *branches,
                          size_t count)
{
  struct contents contents = contents_read(reader, stream, count);

  assert_int_equal(gaps_of(&contents), 0);
  assert_int_equal(contents.count, count);
  assert_true(branches_are_same(contents.branches, branches, count));
  for (size_t i = 0; i < count; i++)
    assert_int_equal(contents.numbers[i], i);
  contents_done(&contents);
}

static void assert_tail(struct lb_trace_reader *reader, uint32_t stream, const struct run *run, size_t asked)
{
  size_t want = asked < run->branch_count ? asked : run->branch_count;
  struct contents contents;

  assert_int_equal(lb_trace_reader_tail(reader, stream, asked), 0);
  lb_trace_reader_skip(reader);
  contents = contents_read(reader, stream, run->branch_count);
  assert_int_equal(contents.count, want);
  assert_int_equal(gaps_of(&contents), 0);
  assert_true(branches_are_same(contents.branches, run->branches + run->branch_count - want, want));
  contents_done(&contents);
}

/* ---- runs ---- */

#define STREAMS 5

/* Several threads, in pieces of any size, with flushes anywhere, also inside events. */
static void test_random_runs(void **state)
{
  (void)state;
  for (unsigned round = 0; round < 30; round++) {
    struct table *table = table_new(1 + (unsigned)(random_next() % 80));
    struct producer *producer = producer_new(table);
    struct lb_trace_writer *writer = writer_new(producer, STREAMS);
    struct run runs[STREAMS];
    size_t given[STREAMS] = {0};
    uint64_t branches = 0, left = STREAMS;

    for (unsigned i = 0; i < STREAMS; i++) {
      runs[i] = (struct run){.table = table};
      run_more(&runs[i], random_next() % 5000);
    }
    while (left) {
      unsigned i = random_next() % STREAMS;
      size_t count = random_next() % 300;

      count = count < runs[i].count - given[i] ? count : runs[i].count - given[i];
      give(writer, producer, i, runs[i].entries + given[i], count);
      given[i] += count;
      left -= count && given[i] == runs[i].count;
      if (chance(20))
        assert_int_equal(lb_trace_writer_flush(writer), 0);
    }
    for (unsigned i = 0; i < STREAMS; i++)
      branches += runs[i].branch_count + (runs[i].open != NULL);
    assert_int_equal(lb_trace_writer_size(writer).branches, branches);
    assert_int_equal(lb_trace_writer_close(writer), 0);
    for (unsigned i = 0; i < STREAMS; i++) {
      struct lb_trace_reader *reader;

      assert_int_equal(lb_trace_reader_open(path, &reader), 0);
      assert_tail(reader, i, &runs[i], random_next() % 3000);
      assert_tail(reader, i, &runs[i], SIZE_MAX);
      lb_trace_reader_rewind(reader);
      assert_stream(reader, i, runs[i].branches, runs[i].branch_count);
      lb_trace_reader_close(reader);
      run_done(&runs[i]);
    }
    for (uint32_t i = 1; i < table->count; i++) /* to find its head, for its path, for what it is tied to */
      assert_true(producer->asked[i] <= 3 || (!(table->steps[i].flags & LB_STEP_HEAD) && !table->steps[i].next));
    free(producer);
    free(table);
  }
}

/* More than a chunk. */
static void test_long_run(void **state)
{
  static const size_t asked[] = {1, 1000, 1000000, 2500000};
  struct table *table = table_new(40);
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 1);
  struct run run = {.table = table};
  struct lb_trace_reader *reader;

  (void)state;
  run_more(&run, 2300000);
  give(writer, producer, 0, run.entries, run.count);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  assert_stream(reader, 0, run.branches, run.branch_count);
  for (size_t i = 0; i < 4; i++)
    assert_tail(reader, 0, &run, asked[i]);
  lb_trace_reader_close(reader);
  run_done(&run);
  free(producer);
  free(table);
}

/* A loop costs next to nothing. Events and words of 0 are never repeated: it has none. */
static void test_loop_is_small(void **state)
{
  struct table *table = table_new(10);
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 1);
  struct run run = {.table = table, .is_calm = true};
  struct stat status;
  size_t count = 0;

  (void)state;
  run_more(&run, 1000);
  run_enter(&run, table->heads[0]);
  for (size_t i = 0; i < run.count; i++)
    if (run.entries[i])
      run.entries[count++] = run.entries[i];
  run.count = count;
  for (unsigned i = 0; i < 1000; i++)
    give(writer, producer, 0, run.entries, run.count);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(stat(path, &status), 0);
  assert_true((uint64_t)status.st_size * 100 < 1000 * run.count);
  run_done(&run);
  free(producer);
  free(table);
}

/* Entries that repeat earlier ones behind another entry. How many branches the first of them makes depends on that
 * entry: it ends the path that the entry began. */
static void test_repeat_behind_another(void **state)
{
  struct table *table = table_new(200);
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 1);
  struct run run = {.table = table};
  struct lb_trace_reader *reader;
  uint32_t count = 0;

  (void)state;
  for (uint32_t i = 0; i < table->head_count; i++) { /* those that are run through to their end */
    const struct lb_step *head = &table->steps[table->heads[i]];

    if (head[head->count].flags & LB_STEP_SILENT)
      table->heads[count++] = table->heads[i];
  }
  table->head_count = count;
  run_enter(&run, table->heads[0]);
  for (unsigned round = 0; round < 1000; round++) {
    run_through(&run, head_random(table));
    for (uint32_t i = 0; i < count && i < 40; i++)
      run_through(&run, table->heads[i]);
  }
  give(writer, producer, 0, run.entries, run.count);
  assert_int_equal(lb_trace_writer_size(writer).branches, run.branch_count);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  assert_stream(reader, 0, run.branches, run.branch_count);
  lb_trace_reader_close(reader);
  run_done(&run);
  free(producer);
  free(table);
}

/* ---- gaps ---- */

/* Behind a gap anything may come; an event that was cut by it is dropped. */
static void test_gap(void **state)
{
  static const uint32_t cut[] = {LB_ENTRY_EVENT, LB_BRANCH_INTERRUPT, 5};
  struct table *table = table_new(40);
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 1);
  struct run first = {.table = table}, second = {.table = table};
  struct lb_trace_reader *reader;
  struct contents contents;
  size_t count;

  (void)state;
  run_more(&first, 500);
  while (first.open)
    run_more(&first, 1);
  run_more(&second, 500);
  count = first.branch_count;
  give(writer, producer, 0, first.entries, first.count);
  give(writer, producer, 0, cut, 3);
  assert_int_equal(lb_trace_writer_gap(writer, &(struct lb_trace_gap){.reason = LB_TRACE_LOST, .count = 77}), 0);
  give(writer, producer, 0, second.entries, second.count);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  contents = contents_read(reader, 0, count + second.branch_count);
  assert_int_equal(contents.gaps[LB_TRACE_LOST], 1);
  assert_int_equal(gaps_of(&contents), 1);
  assert_int_equal(contents.count, count + second.branch_count);
  assert_true(branches_are_same(contents.branches, first.branches, count));
  assert_true(branches_are_same(contents.branches + count, second.branches, second.branch_count));
  assert_int_equal(contents.numbers[count], count + 77);
  contents_done(&contents);
  lb_trace_reader_close(reader);
  run_done(&first);
  run_done(&second);
  free(producer);
  free(table);
}

/* Nonsense in the middle, or first of all, is one gap, and what comes behind it is there. */
static void test_nonsense(void **state)
{
  static const uint32_t nonsense[][3] = {{TABLE_MAX + 5, 0x7FFFFFFE, 0x7FFFFFFF},
                                         {LB_ENTRY_ENTER, LB_ENTRY_ENTER | 0x7FFFFFF0, 0},
                                         {LB_ENTRY_ENTER | 2, 0, 0}};

  (void)state;
  for (unsigned i = 0; i < 6; i++) {
    struct table *table = table_new(40);
    struct producer *producer = producer_new(table);
    struct lb_trace_writer *writer = writer_new(producer, 1);
    struct run run = {.table = table};
    struct lb_trace_reader *reader;
    struct contents contents;
    size_t half;

    run_more(&run, i < 3 ? 500 : 0);
    while (run.open)
      run_more(&run, 1);
    half = run.count;
    run_enter(&run, table->heads[3]);
    run_more(&run, 500);
    give(writer, producer, 0, run.entries, half);
    give(writer, producer, 0, nonsense[i % 3], 3);
    give(writer, producer, 0, run.entries + half, run.count - half);
    assert_int_equal(lb_trace_writer_close(writer), 0);
    assert_int_equal(lb_trace_reader_open(path, &reader), 0);
    contents = contents_read(reader, 0, run.branch_count);
    assert_int_equal(contents.gaps[LB_TRACE_DAMAGED], 1);
    assert_int_equal(gaps_of(&contents), 1);
    assert_int_equal(contents.count, run.branch_count);
    assert_true(branches_are_same(contents.branches, run.branches, contents.count));
    contents_done(&contents);
    lb_trace_reader_close(reader);
    run_done(&run);
    free(producer);
    free(table);
  }
}

/* A step of another path than the one that runs: known only to the reader. Numbers stay what they were. */
static void test_wrong_step(void **state)
{
  struct table *table = table_new(40);
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 1);
  struct run run = {.table = table};
  uint32_t wrong[] = {LB_ENTRY_ENTER | table->heads[1], table->heads[2] + 1, LB_ENTRY_ENTER | table->heads[1]};
  struct lb_trace_reader *reader;
  struct contents contents;

  (void)state;
  run_more(&run, 500);
  while (run.open)
    run_more(&run, 1);
  give(writer, producer, 0, run.entries, run.count);
  give(writer, producer, 0, wrong, 3);
  assert_int_equal(lb_trace_writer_flush(writer), 0);
  give(writer, producer, 0, run.entries, run.count);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  contents = contents_read(reader, 0, 2 * run.branch_count);
  assert_true(contents.gaps[LB_TRACE_DAMAGED] >= 1);
  assert_int_equal(contents.gaps[LB_TRACE_DAMAGED], gaps_of(&contents));
  assert_int_equal(contents.count, 2 * run.branch_count);
  assert_true(branches_are_same(contents.branches + run.branch_count, run.branches, run.branch_count));
  contents_done(&contents);
  lb_trace_reader_close(reader);
  run_done(&run);
  free(producer);
  free(table);
}

/* Any entries, any table: the writer takes them and the reader comes to the end of the file. */
static void test_random_nonsense(void **state)
{
  size_t damaged = 0, count = 0;

  (void)state;
  for (unsigned round = 0; round < 200; round++) {
    struct table *table = table_new(8);
    struct producer *producer = producer_new(table);
    struct lb_trace_writer *writer = writer_new(producer, 1);
    struct lb_trace_reader *reader;
    struct contents contents;

    for (unsigned i = 0; i < 30 * (round % 3); i++)
      ((uint8_t *)table->steps)[random_next() % (table->count * sizeof(struct lb_step))] = (uint8_t)random_next();
    for (unsigned i = 0; i < 1000; i++) {
      uint32_t entry = (uint32_t)random_next() % (table->count + 2);

      entry |= chance(8) ? LB_ENTRY_ENTER : 0;
      entry = chance(50) ? LB_ENTRY_EVENT : chance(100) ? (uint32_t)random_next() : entry;
      give(writer, producer, 0, &entry, 1);
      if (chance(100))
        assert_int_equal(lb_trace_writer_flush(writer), 0);
    }
    assert_int_equal(lb_trace_writer_close(writer), 0);
    assert_int_equal(lb_trace_reader_open(path, &reader), 0);
    contents = contents_read(reader, 0, 1000000);
    assert_int_equal(contents.gaps[LB_TRACE_DAMAGED], gaps_of(&contents));
    damaged += contents.gaps[LB_TRACE_DAMAGED];
    count += contents.count;
    contents_done(&contents);
    lb_trace_reader_close(reader);
    free(producer);
    free(table);
  }
  assert_true(damaged > 1000 && count > 1000);
}

static void test_branches_between(void **state)
{
  struct table *table = table_new(40);
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 2);
  struct run run = {.table = table};
  struct lb_trace_reader *reader;
  uint32_t entry = 1;

  (void)state;
  run_more(&run, 300);
  while (run.open)
    run_more(&run, 1);
  give(writer, producer, 1, run.entries, run.count);
  run_take(&run, 5, 6, LB_BRANCH_FAR_JMP, 0);
  assert_int_equal(lb_trace_writer_branches(writer, 1, &run.branches[run.branch_count - 1], 1), 0);
  run.running = 0;
  run.count = 0;
  run_more(&run, 300);
  give(writer, producer, 1, run.entries, run.count);
  assert_int_equal(lb_trace_writer_entries(writer, 2, &entry, 1), -EINVAL);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  assert_stream(reader, 1, run.branches, run.branch_count);
  lb_trace_reader_close(reader);
  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){0}, &entry), 0);
  assert_int_equal(lb_trace_writer_entries(writer, 0, &entry, 1), -EINVAL); /* nobody to ask */
  assert_int_equal(lb_trace_writer_close(writer), 0);
  run_done(&run);
  free(producer);
  free(table);
}

/* ---- cut and damaged files ---- */

#define PIECES 6

/* A small file with some chunks; `ends` are the branches up to the end of each. */
static uint8_t *small_make(struct run *run, struct table *table, size_t ends[PIECES], size_t *ret_size)
{
  struct producer *producer = producer_new(table);
  struct lb_trace_writer *writer = writer_new(producer, 1);

  *run = (struct run){.table = table};
  for (unsigned i = 0; i < PIECES; i++) {
    size_t from = run->count;

    run_more(run, 25);
    give(writer, producer, 0, run->entries + from, run->count - from);
    ends[i] = run->branch_count;
    assert_int_equal(lb_trace_writer_flush(writer), 0);
  }
  assert_int_equal(lb_trace_writer_close(writer), 0);
  free(producer);
  return file_load(path, ret_size);
}

/* Whatever comes out was taken, in this order; and as long as no unknown number of branches is missing, with this
 * number. */
static struct contents assert_part(struct lb_trace_reader *reader, const struct run *run)
{
  struct contents contents = contents_read(reader, 0, run->branch_count);
  bool is_numbered = !contents.gaps[LB_TRACE_DAMAGED];
  size_t at = 0;

  for (size_t i = 0; i < contents.count; i++, at++) {
    assert_true(contents.numbers[i] < run->branch_count);
    assert_true(i == 0 || contents.numbers[i] > contents.numbers[i - 1]);
    if (is_numbered)
      at = contents.numbers[i];
    while (!is_numbered && at < run->branch_count && !branches_are_same(&contents.branches[i], &run->branches[at], 1))
      at++;
    assert_true(at < run->branch_count);
    assert_true(branches_are_same(&contents.branches[i], &run->branches[at], 1));
  }
  contents_done(&contents);
  return contents;
}

static void test_cut_anywhere(void **state)
{
  struct table *table = table_new(12);
  size_t ends[PIECES], size, whole = 0;
  struct run run;
  uint8_t *bytes = small_make(&run, table, ends, &size);

  (void)state;
  for (size_t cut = 16; cut < size; cut++) {
    uint8_t *copy = malloc(cut); /* so that reading past the end shows */
    struct lb_trace_reader *reader;
    struct contents contents;

    memcpy(copy, bytes, cut);
    assert_int_equal(lb_trace_reader_open_bytes(copy, cut, &reader), 0);
    contents = assert_part(reader, &run);
    assert_int_equal(contents.gaps[LB_TRACE_CUT], 1);
    assert_int_equal(gaps_of(&contents), 1);
    while (whole < PIECES && contents.count > (whole ? ends[whole - 1] : 0))
      whole++;
    assert_int_equal(contents.count, whole ? ends[whole - 1] : 0);
    if (lb_trace_reader_tail(reader, 0, 10) >= 0) {
      contents = assert_part(reader, &run);
      assert_int_equal(contents.count, whole ? 10 : 0);
    } else {
      assert_int_equal(whole, 0);
    }
    lb_trace_reader_close(reader);
    free(copy);
  }
  assert_int_equal(whole, PIECES);
  run_done(&run);
  free(bytes);
  free(table);
}

/* A flipped bit costs what depends on it, never silently, and nothing that comes out is wrong. */
static void test_damage_anywhere(void **state)
{
  struct table *table = table_new(12);
  size_t ends[PIECES], size, lost = 0;
  struct run run;
  uint8_t *bytes = small_make(&run, table, ends, &size);

  (void)state;
  for (size_t at = 16; at < size; at++) {
    struct lb_trace_reader *reader;
    struct contents contents;

    bytes[at] ^= (uint8_t)(1u << at % 8);
    assert_int_equal(lb_trace_reader_open_bytes(bytes, size, &reader), 0);
    contents = assert_part(reader, &run);
    assert_true(contents.count == run.branch_count || gaps_of(&contents));
    lost += contents.count < run.branch_count;
    if (lb_trace_reader_tail(reader, 0, 50) >= 0) {
      contents = assert_part(reader, &run);
      assert_true(contents.count == 50 || gaps_of(&contents));
    }
    lb_trace_reader_close(reader);
    bytes[at] ^= (uint8_t)(1u << at % 8);
  }
  assert_true(lost > size / 2);
  run_done(&run);
  free(bytes);
  free(table);
}

/* ---- the bytes, by hand from doc/trace-format.md ---- */

static uint32_t crc(uint32_t sum, const uint8_t *bytes, size_t size)
{
  sum = ~sum;
  for (size_t i = 0; i < 8 * size; i++)
    sum = sum >> 1 ^ ((sum ^ bytes[i / 8] >> i % 8) & 1 ? 0x82F63B78u : 0);
  return ~sum;
}

static uint8_t hand[4096];
static size_t hand_size;

static void hand_number(size_t at, uint64_t value, unsigned size)
{
  for (unsigned i = 0; i < size; i++)
    hand[at + i] = (uint8_t)(value >> 8 * i);
}

static void hand_begin(void)
{
  memset(hand, 0, sizeof(hand));
  memcpy(hand, "\x89LBR\r\n\x1a\n\3\0\3\0", 12);
  hand_number(12, crc(0, hand, 12), 4);
  hand_size = 16;
}

/* A chunk; with a position if `branches` is not negative. */
static void hand_chunk(unsigned type, int branches, const uint8_t *bytes, size_t size)
{
  size_t at = hand_size, before = branches >= 0 ? 24 : 0;
  uint8_t place[8] = {0};

  memcpy(hand + at, "CHNK", 4);
  hand_number(at + 4, type, 2);
  hand_number(at + 8, before + size, 4);
  hand_number(at + 12, size, 4);
  if (before)
    hand_number(at + 24 + 20, (uint64_t)branches, 4);
  memcpy(hand + at + 24 + before, bytes, size);
  hand_number(at + 16, crc(0, hand + at + 24, before + size), 4);
  for (unsigned i = 0; i < 8; i++)
    place[i] = (uint8_t)(at >> 8 * i);
  hand_number(at + 20, crc(crc(0, hand + at, 20), place, 8), 4);
  hand_size = at + 24 + before + size;
}

#define HAND(type, branches, ...)                                                                                      \
  hand_chunk(type, branches, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static struct contents hand_read(void)
{
  struct lb_trace_reader *reader;
  struct contents contents;

  assert_int_equal(lb_trace_reader_open_bytes(hand, hand_size, &reader), 0);
  contents = contents_read(reader, 0, 100);
  lb_trace_reader_close(reader);
  return contents;
}

/* Two paths: 1 at 0x1000: 2, a jcc at 0x1004 of 2 bytes to 0x1000; 3, a jmp that is followed, at 0x1008, 5 bytes, to
 * 0x1020; 4, a ret at 0x1021, silent. 5 at 0x1010: 6, a jmp at 0x1012, 2 bytes, to 0x1000. */
static void hand_paths(void)
{
  HAND(4, -1, 0, 0, 0, 0, 0);
  /* from 1, six; three steps, space 0, at +0x1000; flags, kind, length, +4, -4; ... */
  HAND(9, -1, 1, 6, 3, 0, 0x80, 0x40, 0, 0, 2, 8, 7, 2, 5, 5, 4, 48, 4, 3, 1, 2, /**/ 1, 0, 35, 0, 5, 2, 4, 35);
  HAND(10, -1, 2, 4, 1, 8, 9); /* 2 is tied to 1, 6 to 1 */
}

static void test_bytes(void **state)
{
  static const uint64_t want[][2] = {{0x1004, 0x1000}, {0x1004, 0x1000}, {0x1004, 0x1000},
                                     {0x1004, 0x1000}, {0x1008, 0x1020}, {0x1021, 0x1010},
                                     {0x1012, 0x1000}, {0x1008, 0x1020}, {0x7, 0x9}};
  struct contents contents;

  (void)state;
  hand_begin();
  hand_paths();
  /* Entries: ENTER|1, 2, 2, 2, 2, 5, 6, EVENT; nine branches. One piece, all plain. Contexts begin with 0 and are made
   * of the last four entries: here each is new, so there are no guesses: eight times the lower bit, four in a byte, the
   * odd fours in the second half of the block. Symbols, the zigzag difference to the entry before:
   *   ENTER|1 behind nothing: 0x80000001 - 0 = -0x7FFFFFFF: zigzag 0xFFFFFFFD
   *   2 behind ENTER|1: 2 - 0x80000001 = 0x80000001: again 0xFFFFFFFD
   *   2 behind 2: 0, three times; 5 behind 2: 6; 6 behind 5: 2; EVENT behind 6: -1 - 6 = -7: 13 */
  HAND(11, 9, 0, 8, 1, 16, 16, 4, /**/ 8, /**/ 0x0F, 0, 0, 0, 0, 0, 0, 0, 0x0F, 0, 0, 0, 0, 0, 0, 0, /**/ 0xFD, 0xFF,
       0xFF, 0xFF, 0x0F, 0xFD, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0, 0, 6, 2, 13, /**/ LB_BRANCH_INTERRUPT, 2, 14, 18);
  contents = hand_read();
  assert_int_equal(contents.gaps[LB_TRACE_CUT], 1);
  assert_int_equal(gaps_of(&contents), 1);
  assert_int_equal(contents.count, 9);
  for (unsigned i = 0; i < 9; i++) {
    assert_int_equal(contents.branches[i].from, want[i][0]);
    assert_int_equal(contents.branches[i].to, want[i][1]);
  }
  assert_int_equal(contents.branches[5].kind, LB_BRANCH_NEAR_RET);
  contents_done(&contents);
}

/* Entries: ENTER|1, seven plain with six times 2, of which the last is guessed, since it came in the same context
 * before; 2 three times more, repeated from one before; and, plain again, 5, which is not what is guessed, 6, and five
 * times 2, of which the last is the second guess behind four of them, where 5 came last. */
static const uint8_t repeat[] = {
  0,    17,   4,    16,   20,   0,             /* */
  7,    3,    1,    7,                         /* pieces: 7 plain, 3 repeated from 1 before; 7 plain, and that is all */
  0x0F, 0x0F, 0,    0,    0,    0,    0,    0, /* misses: 1111, 1111 */
  0x0B, 0x23, 0,    0,    0,    0,    0,    0, /* 1101, 11 and a second */
  0xFD, 0xFF, 0xFF, 0xFF, 0x0F, 0xFD, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0, 0, 0, 6, 2, 7, 0, 0, 0, /* symbols, as above */
};

static void test_bytes_repeat(void **state)
{
  struct contents contents;

  (void)state;
  hand_begin();
  hand_paths();
  hand_chunk(11, 17, repeat, sizeof(repeat));
  contents = hand_read();
  assert_int_equal(gaps_of(&contents), 1); /* it is cut */
  assert_int_equal(contents.count, 17);
  for (unsigned i = 0; i < 9; i++)
    assert_int_equal(contents.branches[i].from, 0x1004);
  assert_int_equal(contents.branches[9].from, 0x1008);
  assert_int_equal(contents.branches[10].to, 0x1010);
  assert_int_equal(contents.branches[11].from, 0x1012);
  for (unsigned i = 12; i < 17; i++)
    assert_int_equal(contents.branches[i].from, 0x1004);
  contents_done(&contents);
}

/* One byte is another: pieces that do not fit, guesses where there are none, strings that end too early or too late. */
static void test_bytes_bad(void **state)
{
  static const uint8_t bad[][2] = {{1, 18},    {1, 16},    {3, 15},    {6, 18},    {6, 8},    {7, 0},
                                   {7, 4},     {7, 6},     {8, 0},     {8, 8},     {9, 1},    {9, 8},
                                   {10, 0x0E}, {10, 0x1F}, {18, 0x0A}, {19, 0x03}, {45, 0x80}};
  static const uint8_t event[] = {
    0, 2,  3, 16, 1, 4, /**/ 1, 1, 1, /**/ 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, /**/ LB_BRANCH_INTERRUPT,
    0, 14, 18};
  uint8_t bytes[sizeof(repeat)];

  (void)state;
  for (unsigned i = 0; i <= sizeof(bad) / sizeof(*bad); i++) {
    bool is_event = i == sizeof(bad) / sizeof(*bad); /* which cannot be repeated */
    struct contents contents;

    memcpy(bytes, repeat, sizeof(bytes));
    if (!is_event)
      bytes[bad[i][0]] = bad[i][1];
    hand_begin();
    hand_paths();
    hand_chunk(11, 17, is_event ? event : bytes, is_event ? sizeof(event) : sizeof(bytes));
    contents = hand_read();
    assert_int_equal(contents.gaps[LB_TRACE_DAMAGED], 1);
    contents_done(&contents);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_random_runs),
    cmocka_unit_test(test_long_run),
    cmocka_unit_test(test_loop_is_small),
    cmocka_unit_test(test_repeat_behind_another),
    cmocka_unit_test(test_gap),
    cmocka_unit_test(test_nonsense),
    cmocka_unit_test(test_wrong_step),
    cmocka_unit_test(test_random_nonsense),
    cmocka_unit_test(test_branches_between),
    cmocka_unit_test(test_cut_anywhere),
    cmocka_unit_test(test_damage_anywhere),
    cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_bytes_repeat),
    cmocka_unit_test(test_bytes_bad),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
