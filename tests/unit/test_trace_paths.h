/* SPDX-License-Identifier: Apache-2.0
 *
 * A producer of entries for the tests: tables of random paths, and random runs through them, which note what happens
 * twice, as the branches that are taken and as the entries that path.h says a producer logs for them.
 */
#ifndef TEST_TRACE_PATHS_H
#define TEST_TRACE_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "trace/path.h"

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static bool chance(unsigned in)
{
  return random_next() % in == 0;
}

/* Member by member: there is padding between them. */
static inline bool branches_are_same(const struct lb_branch *one, const struct lb_branch *other, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (one[i].from != other[i].from || one[i].to != other[i].to || one[i].from_base != other[i].from_base ||
        one[i].to_base != other[i].to_base || one[i].kind != other[i].kind || one[i].flags != other[i].flags ||
        one[i].from_cpl != other[i].from_cpl || one[i].to_cpl != other[i].to_cpl)
      return false;
  return true;
}

/* ---- tables ---- */

#define TABLE_MAX (1u << 18)

struct table {
  struct lb_step steps[TABLE_MAX]; /* by their numbers */
  uint32_t count;                  /* numbers are below this */
  uint32_t heads[TABLE_MAX];
  uint32_t head_count;
};

static uint32_t head_random(const struct table *table)
{
  return table->heads[random_next() % table->head_count];
}

static void step_random(struct lb_step *step, bool is_last, uint64_t *address)
{
  static const uint8_t direct[] = {LB_BRANCH_JCC, LB_BRANCH_JCC, LB_BRANCH_JCC, LB_BRANCH_NEAR_REL_JMP,
                                   LB_BRANCH_NEAR_REL_CALL};
  static const uint8_t indirect[] = {LB_BRANCH_NEAR_RET, LB_BRANCH_NEAR_IND_JMP, LB_BRANCH_NEAR_IND_CALL};

  step->from = *address += random_next() % 50;
  step->length = (uint8_t)(1 + random_next() % 7);
  step->kind = direct[random_next() % 5];
  step->to = chance(4) ? step->from + step->length : 0x400000 + random_next() % 0x100000;
  if (is_last) {
    step->flags = (uint8_t[]){LB_STEP_SILENT, LB_STEP_SILENT, LB_STEP_OPEN, LB_STEP_NONE, 0}[random_next() % 5];
    if (step->flags == LB_STEP_SILENT || step->flags == LB_STEP_OPEN) {
      step->kind = indirect[random_next() % 3];
      step->to = 0;
    }
  } else if (chance(8)) {
    step->kind = indirect[random_next() % 3]; /* followed to where it mostly goes */
    step->flags = LB_STEP_FOLLOW | LB_STEP_OPEN;
  } else if (step->kind != LB_BRANCH_JCC || chance(3)) {
    step->flags = step->kind == LB_BRANCH_JCC ? LB_STEP_FOLLOW | LB_STEP_NONE : LB_STEP_FOLLOW;
  }
  *address = step->flags & LB_STEP_FOLLOW ? step->to : step->from + step->length;
}

static void table_path(struct table *table, unsigned steps)
{
  uint32_t head = table->count++;
  uint64_t address = 0x400000 + random_next() % 0x100000;

  table->heads[table->head_count++] = head;
  table->steps[head] =
    (struct lb_step){.from = address, .head = head, .flags = LB_STEP_HEAD, .count = (uint8_t)steps, .space = 1};
  for (unsigned i = 1; i <= steps; i++) {
    struct lb_step *step = &table->steps[table->count++];

    *step = (struct lb_step){.head = head, .space = 1};
    step_random(step, i == steps, &address);
  }
}

/* Paths of 1 to 8 steps, some long ones, and most steps tied to where they lead. */
static struct table *table_new(unsigned paths)
{
  struct table *table = calloc(1, sizeof(*table));

  table->count = 1;
  for (unsigned i = 0; i < paths; i++)
    table_path(table, chance(20) ? 255 - (unsigned)(random_next() % 40) : 1 + (unsigned)(random_next() % 8));
  for (uint32_t i = 1; i < table->count; i++) {
    struct lb_step *step = &table->steps[i];

    if ((step->flags & (LB_STEP_HEAD | LB_STEP_SILENT)) || chance(5))
      continue;
    step->next = head_random(table);
    if (!(step->flags & (LB_STEP_FOLLOW | LB_STEP_OPEN)))
      step->to = table->steps[step->next].from;
  }
  return table;
}

/* ---- runs ---- */

struct run {
  const struct table *table;
  uint32_t *entries;
  size_t count, capacity;
  struct lb_branch *branches;
  size_t branch_count, branch_capacity;
  uint32_t running;
  const struct lb_step *open; /* it was left here, to where the next entry begins */
  bool is_calm;               /* it has no events */
};

static void run_log(struct run *run, uint32_t entry)
{
  if (run->count == run->capacity) {
    run->capacity = run->capacity ? 2 * run->capacity : 1024;
    run->entries = realloc(run->entries, run->capacity * sizeof(*run->entries));
  }
  run->entries[run->count++] = entry;
}

static void run_take(struct run *run, uint64_t from, uint64_t to, unsigned kind, unsigned flags)
{
  if (run->branch_count == run->branch_capacity) {
    run->branch_capacity = run->branch_capacity ? 2 * run->branch_capacity : 1024;
    run->branches = realloc(run->branches, run->branch_capacity * sizeof(*run->branches));
  }
  run->branches[run->branch_count++] = (struct lb_branch){
    .from = from, .to = to, .kind = (uint8_t)kind, .flags = (uint8_t)flags, .from_cpl = 3, .to_cpl = 3};
}

static void run_take_step(struct run *run, const struct lb_step *step, uint64_t to)
{
  bool is_to_next = step->kind == LB_BRANCH_NEAR_REL_CALL && to == step->from + step->length;

  run_take(run, step->from, to, step->kind, is_to_next ? LB_BRANCH_TO_NEXT : 0);
}

/* The next entry begins at this address. */
static void run_begin(struct run *run, uint64_t address)
{
  if (run->open)
    run_take_step(run, run->open, address);
  run->open = NULL;
}

static void run_pass(struct run *run, unsigned steps)
{
  for (unsigned i = 1; i <= steps; i++) {
    const struct lb_step *step = &run->table->steps[run->running + i];

    if (step->flags & LB_STEP_FOLLOW)
      run_take_step(run, step, step->to);
  }
}

static void run_enter(struct run *run, uint32_t head)
{
  run_begin(run, run->table->steps[head].from);
  run_log(run, LB_ENTRY_ENTER | head);
  run->running = head;
}

static void run_event(struct run *run)
{
  uint64_t from = random_next() >> (random_next() & 63), to = random_next() >> (random_next() & 63);
  unsigned kind = chance(4) ? LB_ENTRY_NOWHERE : LB_BRANCH_INTERRUPT, passed = 0;

  if (run->running) {
    passed = (unsigned)(random_next() % (run->table->steps[run->running].count + 1u));
    run_begin(run, run->table->steps[run->running].from);
    run_pass(run, passed);
  } else {
    run_begin(run, from);
  }
  run_log(run, LB_ENTRY_EVENT);
  run_log(run, kind | passed << 8);
  run_log(run, (uint32_t)from);
  run_log(run, (uint32_t)(from >> 32));
  run_log(run, (uint32_t)to);
  run_log(run, (uint32_t)(to >> 32));
  if (kind != LB_ENTRY_NOWHERE)
    run_take(run, from, to, kind, 0);
  run->running = 0;
}

static void run_leave(struct run *run, uint32_t number)
{
  const struct lb_step *step = &run->table->steps[number];

  run_begin(run, run->table->steps[step->head].from);
  run_pass(run, number - step->head - 1);
  run_log(run, number);
  if (step->flags & (LB_STEP_OPEN | LB_STEP_SILENT))
    run->open = step;
  else if (!(step->flags & LB_STEP_NONE))
    run_take_step(run, step, step->to);
  run->running = step->next;
}

/* Through to the end of the path that is running, and on to another. */
static void run_through(struct run *run, uint32_t head)
{
  const struct lb_step *before = &run->table->steps[run->running];

  run_begin(run, before->from);
  run_pass(run, before->count - 1u);
  run_take_step(run, before + before->count, run->table->steps[head].from);
  run_log(run, head);
  run->running = head;
}

static void run_one(struct run *run)
{
  const struct lb_step *head = &run->table->steps[run->running];

  if (chance(50)) {
    run_log(run, 0);
  } else if (!run->is_calm && chance(40)) {
    run_event(run);
  } else if (!run->running) {
    run_enter(run, head_random(run->table));
  } else if (chance(60)) {
    run_enter(run, head_random(run->table)); /* nothing of what was to run has run */
  } else if (head[head->count].flags & LB_STEP_SILENT && !chance(3)) {
    run_through(run, head_random(run->table));
  } else {
    run_leave(run, run->running + 1 + (uint32_t)(random_next() % head->count));
  }
}

/* An open branch may also be followed by a plain head. */
static void run_more(struct run *run, size_t entries)
{
  size_t end = run->count + entries;

  if (!run->running)
    run_enter(run, head_random(run->table));
  while (run->count < end) {
    if (run->open && !run->running && chance(2)) {
      uint32_t head = head_random(run->table);

      run_begin(run, run->table->steps[head].from);
      run_log(run, head);
      run->running = head;
    } else {
      run_one(run);
    }
  }
}

static void run_done(struct run *run)
{
  free(run->entries);
  free(run->branches);
}

#endif
