/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the plain entries of a chunk, in one of two ways. If the table of arcs (count_arc.c) holds nearly all arcs
 * that the program takes, every entry is looked up there. Otherwise the count of a pass over a path goes to its step,
 * and the table is for the other entries: heads, which tell the targets of indirect branches.
 */
#include "trace/count_chunk.h"

#define ARCS_AHEAD 24u   /* arcs that are fetched before they are needed */
#define STEPS_AHEAD 16u  /* steps that are fetched before they are needed */
#define FRESH_SHARE 40u  /* a chunk is crowded if more than one of so many entries is not in the table */
#define FRESH_CHUNKS 2u  /* crowded chunks in a row after which the table is too small */
#define STEPS_CHUNKS 32u /* chunks that are then counted by steps */

/* ---- by arcs ---- */

/* Each entry is counted with the entry before it. */
static void arcs_add(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t end, uint32_t count)
{
  const struct count_arc *arcs = sum->counter->arcs;
  struct arc_total total = {0};
  int32_t sign = sum->sign;

  for (uint32_t i = 1; i <= count && i <= ARCS_AHEAD; i++)
    __builtin_prefetch(&arcs[arc_index(words[end - i - 1], words[end - i])], 1);
  for (; count > 0; count--) {
    end--;
    if (count > ARCS_AHEAD)
      __builtin_prefetch(&arcs[arc_index(words[end - ARCS_AHEAD - 1], words[end - ARCS_AHEAD])], 1);
    arc_count(sum, &total, words[end - 1], words[end], sign * (int32_t)(extra[end] + 1));
    extra[end] = 0;
  }
  sum->branches += (uint64_t)total.branches;
  sum->not_taken += (uint64_t)total.not_taken;
}

/* ---- by steps ---- */

/* Counts the entries that wait, each with the entry before it. */
static void others_add(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra)
{
  struct chunk_counter *counter = sum->counter;
  struct arc_total total = {0};
  unsigned count = counter->other;

  for (unsigned i = 0; i < count; i++) {
    uint32_t place = counter->others[i], ahead = counter->others[i + ARCS_AHEAD < count ? i + ARCS_AHEAD : i];

    __builtin_prefetch(&counter->arcs[arc_index(words[ahead - 1], words[ahead])], 1);
    arc_count(sum, &total, words[place - 1], words[place], sum->sign * (int32_t)(extra[place] + 1));
    extra[place] = 0;
  }
  counter->other = 0;
  sum->branches += (uint64_t)total.branches;
  sum->not_taken += (uint64_t)total.not_taken;
}

/* Prefetches a step. An invalid entry does no harm. */
static inline void step_fetch(const struct count_step *steps, uint32_t entry)
{
  __builtin_prefetch((const void *)((uintptr_t)steps + (uintptr_t)entry * sizeof(*steps)), 1);
}

/* Counts passes over paths, and keeps the places of other entries. The code does not branch on the kind of an entry:
 * the processor would often mispredict that branch. */
static inline void passes_add(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t end,
                              uint32_t count, int32_t sign)
{
  struct count_step *steps = sum->reader->counts.steps, *step;
  uint32_t step_count = sum->reader->step_count, entry = words[end - 1], branches = 0, not_taken = 0,
           *others = sum->counter->others + sum->counter->other;

  step = &steps[entry < step_count ? entry : 0];
  for (uint32_t i = end - 1; i >= end - count; i--) {
    uint32_t before = words[i - 1];
    struct count_step *step_before = &steps[before < step_count ? before : 0];
    uint32_t running = step_before->running;
    uint32_t is_pass = (step->index != 0) & ((running == 0) | (running == entry - step->index));
    uint32_t times = (extra[i] + 1) & -is_pass;

    step_fetch(steps, words[i > STEPS_AHEAD ? i - STEPS_AHEAD : 0]);
    extra[i] &= is_pass - 1;
    *others = i;
    others += !is_pass;
    step->left += (uint64_t)((int64_t)sign * times);
    branches += step->branches * times;
    not_taken += step->not_taken * times;
    step = step_before;
    entry = before;
  }
  sum->counter->other = (unsigned)(others - sum->counter->others);
  sum->branches += (uint64_t)((int64_t)sign * branches);
  sum->not_taken += (uint64_t)((int64_t)sign * not_taken);
}

static void steps_add(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t end, uint32_t count)
{
  while (count) {
    uint32_t block = count < OTHERS_MAX / 2 ? count : OTHERS_MAX / 2;

    if (sum->counter->other > OTHERS_MAX / 2)
      others_add(sum, words, extra);
    if (sum->sign > 0)
      passes_add(sum, words, extra, end, block, 1);
    else
      passes_add(sum, words, extra, end, block, -1);
    end -= block;
    count -= block;
  }
}

/* ---- both ---- */

void plain_fetch(const struct chunk_sum *sum, const uint32_t *words, uint32_t end)
{
  if (sum->counter->by_steps && end > STEPS_AHEAD)
    for (unsigned i = 1; i <= STEPS_AHEAD; i++)
      step_fetch(sum->reader->counts.steps, words[end - i]);
}

void plain_add(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t end, uint32_t count)
{
  if (sum->counter->by_steps)
    steps_add(sum, words, extra, end, count);
  else
    arcs_add(sum, words, extra, end, count);
}

void plain_end(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t plain)
{
  struct chunk_counter *counter = sum->counter;

  others_add(sum, words, extra);
  arcs_finish(sum);
  if (counter->by_steps) {
    counter->by_steps--;
  } else {
    counter->crowded = counter->entered > plain / FRESH_SHARE ? counter->crowded + 1 : 0;
    if (counter->crowded == FRESH_CHUNKS) {
      counter->by_steps = STEPS_CHUNKS;
      counter->crowded = 0;
    }
  }
  counter->entered = 0;
}
