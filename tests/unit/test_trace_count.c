/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting instead of giving branches: random runs through random paths, which know their branches, are written, and
 * what the reader counts and gives together must be those; how often each step was come to is what its entries say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lastbranch/trace.h"
#include "test_trace_paths.h"
#include "trace_folder.h"

#define STREAMS 3u

/* ---- lists of numbers that are compared ---- */

struct fact {
  uint64_t from, to, kind, count;
};

struct facts {
  struct fact *list;
  size_t count, capacity;
};

static void fact_add(struct facts *facts, uint64_t from, uint64_t to, unsigned kind, uint64_t count)
{
  if (!count)
    return;
  if (facts->count == facts->capacity) {
    facts->capacity = facts->capacity ? 2 * facts->capacity : 1024;
    facts->list = realloc(facts->list, facts->capacity * sizeof(*facts->list));
  }
  facts->list[facts->count++] = (struct fact){from, to, kind, count};
}

static int fact_compare(const void *one, const void *other)
{
  return memcmp(one, other, offsetof(struct fact, count));
}

/* Sorts, and adds up what is the same. */
static void facts_finish(struct facts *facts)
{
  size_t kept = 0;

  if (facts->count)
    qsort(facts->list, facts->count, sizeof(*facts->list), fact_compare);
  for (size_t i = 0; i < facts->count; i++)
    if (kept && !fact_compare(&facts->list[kept - 1], &facts->list[i]))
      facts->list[kept - 1].count += facts->list[i].count;
    else
      facts->list[kept++] = facts->list[i];
  facts->count = kept;
}

static void assert_facts(struct facts *one, struct facts *other)
{
  facts_finish(one);
  facts_finish(other);
  assert_int_equal(one->count, other->count);
  for (size_t i = 0; i < one->count; i++)
    assert_memory_equal(&one->list[i], &other->list[i], sizeof(*one->list));
  free(one->list);
  free(other->list);
}

/* ---- what the entries say ---- */

/* A part of a path that ran: from its head to a step, at which it was left or an event interrupted it. */
struct stretch {
  uint32_t head, last;
  bool is_left;
};

typedef void stretch_visit(void *data, const struct table *table, const struct stretch *stretch);

static void run_walk(const struct run *run, stretch_visit *visit, void *data)
{
  const struct lb_step *steps = run->table->steps;
  uint32_t running = 0;

  for (size_t i = 0; i < run->count; i++) {
    uint32_t entry = run->entries[i];

    if (entry == LB_ENTRY_EVENT) {
      if (running)
        visit(data, run->table, &(struct stretch){running, running + (run->entries[i + 1] >> 8), false});
      i += LB_ENTRY_EVENT_WORDS;
      running = 0;
    } else if (entry & LB_ENTRY_ENTER) {
      running = entry & ~LB_ENTRY_ENTER;
    } else if (steps[entry].flags & LB_STEP_HEAD) {
      if (running)
        visit(data, run->table, &(struct stretch){running, running + steps[running].count, true});
      running = entry;
    } else if (entry) {
      visit(data, run->table, &(struct stretch){steps[entry].head, entry, true});
      running = steps[entry].next;
    }
  }
}

/* Each step that was come to, by entries other than events: what is run before an event is given, not counted. */
static void reached_add(struct facts *facts, const struct table *table, uint32_t head, uint32_t last)
{
  uint64_t start = table->steps[head].from;

  for (uint32_t i = head + 1; i <= last; i++) {
    const struct lb_step *step = &table->steps[i];

    if (!(step->flags & LB_STEP_NONE && !(step->flags & LB_STEP_FOLLOW) && step->from == step->to))
      fact_add(facts, start, step->from, 0, 1);
    start = step->flags & LB_STEP_FOLLOW ? step->to : step->from + step->length;
  }
}

static void reached_visit(void *data, const struct table *table, const struct stretch *stretch)
{
  if (stretch->is_left)
    reached_add(data, table, stretch->head, stretch->last);
}

/* Conditional branches that were not taken up to a step, at which the path was left or not. */
static uint64_t path_passed(const struct table *table, uint32_t head, uint32_t last, bool is_left)
{
  uint64_t passed = 0;

  for (uint32_t i = head + 1; i <= last; i++) {
    const struct lb_step *step = &table->steps[i];
    bool is_followed = step->flags & LB_STEP_FOLLOW, is_none = step->flags & LB_STEP_NONE;

    if (step->kind != LB_BRANCH_JCC)
      continue;
    if (i == last && is_left)
      passed += is_followed && is_none; /* left where staying would have taken it */
    else
      passed += !is_followed && !is_none;
  }
  return passed;
}

/* What the entries of a run passed: in paths that were left, and before events that interrupted them. */
struct passes {
  uint64_t left, interrupted;
};

static void passed_visit(void *data, const struct table *table, const struct stretch *stretch)
{
  struct passes *passes = data;
  uint64_t passed = path_passed(table, stretch->head, stretch->last, stretch->is_left);

  *(stretch->is_left ? &passes->left : &passes->interrupted) += passed;
}

/* ---- what the reader says ---- */

struct counted {
  struct facts taken, reached;
  uint64_t passed;    /* of what was counted */
  uint64_t not_taken; /* of all that was read */
};

static int count_take(void *context, const struct lb_trace_count *count)
{
  struct counted *counted = context;

  assert_int_equal(count->space, 1);
  fact_add(&counted->taken, count->from, count->to, count->kind, count->taken);
  if (!count->is_cut)
    fact_add(&counted->reached, count->start, count->from, 0, count->executed);
  counted->passed += count->passed;
  return 0;
}

static uint64_t count_read(struct lb_trace_reader *reader, uint32_t stream, struct counted *counted)
{
  struct lb_trace_record record;
  uint64_t branches = 0, numbers[STREAMS] = {0};
  int r;

  lb_trace_reader_count(reader, stream);
  while ((r = lb_trace_reader_next(reader, &record)) > 0) {
    if (record.type == LB_TRACE_BRANCHES) {
      assert_int_equal(record.branches.first, numbers[record.branches.stream]);
      numbers[record.branches.stream] += record.branches.count;
      for (size_t i = 0; i < record.branches.count; i++)
        fact_add(&counted->taken, record.branches.branches[i].from, record.branches.branches[i].to,
                 record.branches.branches[i].kind, 1);
    } else if (record.type == LB_TRACE_COUNTED) {
      assert_int_equal(record.counted.first, numbers[record.counted.stream]);
      numbers[record.counted.stream] += record.counted.count;
      if (chance(50))
        assert_int_equal(lb_trace_reader_counts(reader, count_take, counted), 0);
    } else {
      assert_int_not_equal(record.type, LB_TRACE_GAP);
    }
  }
  assert_int_equal(r, 0);
  assert_int_equal(lb_trace_reader_counts(reader, count_take, counted), 0);
  assert_true(lb_trace_reader_not_taken(reader, &counted->not_taken));
  for (unsigned i = 0; i < STREAMS; i++)
    branches += numbers[i];
  return branches;
}

/* ---- tests ---- */

static bool table_lookup(void *context, uint32_t number, struct lb_step *ret_step)
{
  const struct table *table = context;

  if (!number || number >= table->count)
    return false;
  memcpy(ret_step, &table->steps[number], sizeof(*ret_step));
  return true;
}

static void runs_write(struct table *table, struct run *runs)
{
  struct lb_trace_writer *writer;
  size_t given[STREAMS] = {0};
  unsigned left = STREAMS;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  for (unsigned i = 0; i < STREAMS; i++)
    assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread"}, &number), 0);
  lb_trace_writer_paths(writer, table_lookup, table);
  while (left) {
    unsigned i = random_next() % STREAMS;
    size_t rest = runs[i].count - given[i], count = random_next() % 3000;

    count = count < rest ? count : rest;
    assert_int_equal(lb_trace_writer_entries(writer, i, runs[i].entries + given[i], count), 0);
    given[i] += count;
    left -= count && given[i] == runs[i].count;
    if (chance(10))
      assert_int_equal(lb_trace_writer_flush(writer), 0);
  }
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

/* One run after another, each in as few chunks as the writer makes of it. */
static void runs_write_whole(struct table *table, const struct run *runs)
{
  struct lb_trace_writer *writer;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  for (unsigned i = 0; i < STREAMS; i++)
    assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread"}, &number), 0);
  lb_trace_writer_paths(writer, table_lookup, table);
  for (unsigned i = 0; i < STREAMS; i++)
    assert_int_equal(lb_trace_writer_entries(writer, i, runs[i].entries, runs[i].count), 0);
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

/* The same reader gives branches instead: what was not taken are the same. */
static void not_taken_check(struct lb_trace_reader *reader, uint64_t want)
{
  struct lb_trace_record record;
  uint64_t not_taken;

  lb_trace_reader_rewind(reader);
  while (lb_trace_reader_next(reader, &record) > 0)
    ;
  assert_true(lb_trace_reader_not_taken(reader, &not_taken));
  assert_int_equal(not_taken, want);
}

/* All streams of a trace that was written, or one. Returns how many branches were passed before events. */
static uint64_t runs_check(const struct run *runs, uint32_t stream)
{
  struct facts taken = {0}, reached = {0};
  struct lb_trace_reader *reader;
  struct counted counted = {0};
  struct passes passes = {0};
  uint64_t branches = 0;

  for (unsigned i = 0; i < STREAMS; i++) {
    if (stream != LB_TRACE_ALL && stream != i)
      continue;
    branches += runs[i].branch_count;
    for (size_t k = 0; k < runs[i].branch_count; k++)
      fact_add(&taken, runs[i].branches[k].from, runs[i].branches[k].to, runs[i].branches[k].kind, 1);
    run_walk(&runs[i], reached_visit, &reached);
    run_walk(&runs[i], passed_visit, &passes);
  }
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  assert_int_equal(count_read(reader, stream, &counted), branches);
  assert_int_equal(counted.passed, passes.left);
  assert_int_equal(counted.not_taken, passes.left + passes.interrupted);
  if (stream == LB_TRACE_ALL)
    not_taken_check(reader, passes.left + passes.interrupted);
  lb_trace_reader_close(reader);
  assert_facts(&counted.taken, &taken);
  assert_facts(&counted.reached, &reached);
  return passes.interrupted;
}

static void test_random_counts(void **state)
{
  uint64_t interrupted = 0;

  (void)state;
  for (unsigned round = 0; round < 30; round++) {
    struct table *table = table_new(1 + (unsigned)(random_next() % 80));
    struct run runs[STREAMS];

    for (unsigned i = 0; i < STREAMS; i++) {
      runs[i] = (struct run){.table = table};
      do
        run_more(&runs[i], 1 + random_next() % 5000);
      while (runs[i].open); /* the end of an open branch is not in the trace */
    }
    runs_write(table, runs);
    interrupted += runs_check(runs, LB_TRACE_ALL);
    runs_check(runs, (uint32_t)(random_next() % STREAMS));
    for (unsigned i = 0; i < STREAMS; i++)
      run_done(&runs[i]);
    free(table);
  }
  assert_true(interrupted > 0); /* that was tried, too */
}

/* Appends what the run has from here to there once more. */
static void run_copy(struct run *run, size_t first, size_t end, size_t first_branch, size_t end_branch)
{
  for (size_t k = first; k < end; k++)
    run_log(run, run->entries[k]);
  for (size_t k = first_branch; k < end_branch; k++) {
    const struct lb_branch *branch = &run->branches[k];

    run_take(run, branch->from, branch->to, branch->kind, branch->flags);
  }
}

/* Appends random entries, several times the same: a run that begins with LB_ENTRY_ENTER can be repeated anywhere. */
static void run_repeat(struct run *run, size_t entries, unsigned times)
{
  size_t first = run->count, first_branch = run->branch_count, end, end_branch;

  run_enter(run, head_random(run->table));
  do
    run_more(run, entries);
  while (run->open);
  end = run->count;
  end_branch = run->branch_count;
  for (unsigned i = 1; i < times; i++)
    run_copy(run, first, end, first_branch, end_branch);
}

/* Long runs without events, which are counted a chunk at a time, and repetitions in them; some with an event, which are
 * not. */
static void test_long_runs(void **state)
{
  (void)state;
  for (unsigned round = 0; round < 6; round++) {
    struct table *table = table_new(1 + (unsigned)(random_next() % 80));
    struct run runs[STREAMS];

    for (unsigned i = 0; i < STREAMS; i++) {
      runs[i] = (struct run){.table = table, .is_calm = true};
      for (unsigned k = 0; k < 6; k++) {
        run_repeat(&runs[i], 1 + random_next() % 1500, 1 + (unsigned)(random_next() % 6));
        if (chance(20))
          run_event(&runs[i]);
      }
    }
    runs_write(table, runs);
    runs_check(runs, LB_TRACE_ALL);
    runs_check(runs, (uint32_t)(random_next() % STREAMS));
    for (unsigned i = 0; i < STREAMS; i++)
      run_done(&runs[i]);
    free(table);
  }
}

/* All branches that a trace has, given or counted, and its gaps. */
static size_t all_read(struct lb_trace_reader *reader, bool is_counted, struct facts *taken)
{
  struct counted counted = {0};
  struct lb_trace_record record;
  size_t gaps = 0;

  if (is_counted)
    lb_trace_reader_count(reader, LB_TRACE_ALL);
  while (lb_trace_reader_next(reader, &record) > 0) {
    gaps += record.type == LB_TRACE_GAP;
    for (size_t i = 0; record.type == LB_TRACE_BRANCHES && i < record.branches.count; i++)
      fact_add(&counted.taken, record.branches.branches[i].from, record.branches.branches[i].to,
               record.branches.branches[i].kind, 1);
  }
  assert_int_equal(lb_trace_reader_counts(reader, count_take, &counted), 0);
  free(counted.reached.list);
  *taken = counted.taken;
  return gaps;
}

/* An entry that most often makes no sense where it is: a step or none, or a head, with LB_ENTRY_ENTER or without. */
static uint32_t entry_bad(const struct table *table)
{
  uint32_t number = chance(2) ? head_random(table) : (uint32_t)(1 + random_next() % (table->count + 5));

  return chance(2) ? LB_ENTRY_ENTER | number : number;
}

/* Replaces an entry, or appends one between two that are right; of a step, leaving there would be no branch. */
static void run_spoil(struct run *run)
{
  uint32_t head = head_random(run->table);

  if (chance(2)) {
    run->entries[random_next() % run->count] = entry_bad(run->table);
    return;
  }
  for (unsigned i = 0; i < 100 && !(run->table->steps[head + 1].flags & LB_STEP_NONE); i++)
    head = head_random(run->table);
  run_log(run, LB_ENTRY_ENTER | head);
  run_log(run, chance(2) ? head_random(run->table) : LB_ENTRY_ENTER | (head + 1));
  run_log(run, LB_ENTRY_ENTER | head);
}

/* Entries that make no sense in a long chunk: what is counted is what is given. */
static void test_bad_entries(void **state)
{
  (void)state;
  for (unsigned round = 0; round < 24; round++) {
    struct table *table = table_new(1 + (unsigned)(random_next() % 80));
    struct run runs[STREAMS];
    struct lb_trace_reader *reader;
    struct facts given, counted;
    size_t gaps;

    for (unsigned i = 0; i < STREAMS; i++) {
      runs[i] = (struct run){.table = table, .is_calm = true};
      run_repeat(&runs[i], 900, 1);
      if (i)
        run_spoil(&runs[i]);
      for (unsigned k = 0; k < 3; k++) /* the same mistake in several chunks */
        run_copy(&runs[i], 0, runs[i].count, 0, 0);
    }
    if (round % 2)
      runs_write(table, runs);
    else
      runs_write_whole(table, runs);
    assert_int_equal(lb_trace_reader_open(path, &reader), 0);
    gaps = all_read(reader, false, &given);
    assert_int_equal(all_read(reader, true, &counted), gaps);
    assert_facts(&counted, &given);
    lb_trace_reader_close(reader);
    for (unsigned i = 0; i < STREAMS; i++)
      run_done(&runs[i]);
    free(table);
  }
}

/* ---- whole chunks ---- */

static uint32_t silent_random(const struct table *table)
{
  for (;;) {
    uint32_t head = head_random(table);

    if (table->steps[head + table->steps[head].count].flags & LB_STEP_SILENT)
      return head;
  }
}

/* Nothing is given, each chunk is one record, and each stream is left where its run ends. */
static void whole_check(const struct run *runs)
{
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  uint64_t at[STREAMS] = {0};
  unsigned records = 0;

  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  lb_trace_reader_count(reader, LB_TRACE_ALL);
  while (lb_trace_reader_next(reader, &record) > 0) {
    assert_int_not_equal(record.type, LB_TRACE_BRANCHES);
    if (record.type == LB_TRACE_COUNTED)
      at[record.counted.stream] = record.counted.at;
    records += record.type == LB_TRACE_COUNTED;
  }
  assert_in_range(records, STREAMS, 3 * STREAMS); /* entry by entry, there are many more */
  for (unsigned i = 0; i < STREAMS; i++)
    assert_int_equal(at[i], runs[i].table->steps[runs[i].running].from);
  lb_trace_reader_close(reader);
}

static void runs_done(struct run *runs, struct table *table)
{
  for (unsigned i = 0; i < STREAMS; i++)
    run_done(&runs[i]);
  free(table);
}

static void test_whole_chunks(void **state)
{
  (void)state;
  for (unsigned round = 0; round < 2; round++) {
    struct table *table = table_new(40 + (unsigned)(random_next() % 80));
    struct run runs[STREAMS];

    for (unsigned i = 0; i < STREAMS; i++) {
      runs[i] = (struct run){.table = table, .is_calm = true};
      run_repeat(&runs[i], 1 + random_next() % 1500, 4);
      run_repeat(&runs[i], 6000, 2);
      run_enter(&runs[i], silent_random(table));
      run_through(&runs[i], head_random(table));
    }
    runs_write_whole(table, runs);
    whole_check(runs);
    runs_check(runs, LB_TRACE_ALL);
    runs_done(runs, table);
  }
}

/* Arcs of so many paths that they do not all fit the reader's table. One head comes after all of them. */
static void test_many_paths(void **state)
{
  struct table *table = table_new(10000);
  struct run runs[STREAMS];

  (void)state;
  for (unsigned i = 0; i < STREAMS; i++) {
    runs[i] = (struct run){.table = table, .is_calm = true};
    for (unsigned k = 0; k < table->head_count; k++) {
      uint32_t head = table->heads[k];

      run_enter(&runs[i], head);
      if (table->steps[head + table->steps[head].count].flags & LB_STEP_SILENT)
        run_through(&runs[i], table->heads[i]);
    }
    run_enter(&runs[i], table->heads[0]);
  }
  runs_write_whole(table, runs);
  whole_check(runs);
  runs_check(runs, LB_TRACE_ALL);
  runs_done(runs, table);
}

/* A reader that was counting gives branches again when it is rewound, and for a tail. */
static void test_back(void **state)
{
  struct table *table = table_new(40);
  struct run runs[STREAMS];
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  size_t given = 0, all = 0;

  (void)state;
  for (unsigned i = 0; i < STREAMS; i++) {
    runs[i] = (struct run){.table = table};
    do
      run_more(&runs[i], 2000);
    while (runs[i].open);
    all += runs[i].branch_count;
  }
  runs_write(table, runs);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  lb_trace_reader_count(reader, LB_TRACE_ALL);
  while (lb_trace_reader_next(reader, &record) > 0)
    ;
  lb_trace_reader_rewind(reader);
  while (lb_trace_reader_next(reader, &record) > 0)
    given += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
  assert_int_equal(given, all);
  lb_trace_reader_count(reader, LB_TRACE_ALL);
  assert_int_equal(lb_trace_reader_tail(reader, 1, 100), 0);
  given = 0;
  while (lb_trace_reader_next(reader, &record) > 0)
    given += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
  assert_int_equal(given, 100);
  lb_trace_reader_close(reader);
  for (unsigned i = 0; i < STREAMS; i++)
    run_done(&runs[i]);
  free(table);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_random_counts), cmocka_unit_test(test_long_runs),  cmocka_unit_test(test_bad_entries),
    cmocka_unit_test(test_whole_chunks),  cmocka_unit_test(test_many_paths), cmocka_unit_test(test_back),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
