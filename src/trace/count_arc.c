/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the meaning of each entry from the entry before it, which tells the running path and the open branch. A table
 * keeps the latest arcs (an entry after another) with their counts, so that the steps, which do not fit a cache, are
 * seldom looked up. When a step is linked to a path, the arcs that begin with it leave the table: their meaning may
 * change.
 */
#include "trace/count_chunk.h"

#include <string.h>

/* The path that runs after an entry, and the step whose branch is open; 0: none. */
struct state {
  uint32_t running, open;
};

/* The counts that an entry adds. */
struct meaning {
  uint32_t left; /* its path was left at this step; 0: none was */
  uint64_t pair; /* an indirect branch whose target it tells; 0: none */
  uint16_t branches;
  uint8_t not_taken;
  uint8_t kind; /* enum arc_pair */
};

static struct state state_after(const struct lb_trace_reader *reader, uint32_t entry)
{
  uint32_t number = entry & ~LB_ENTRY_ENTER;
  const struct reader_step *step = &reader->steps[number];

  return (struct state){
    .running = step->flags & LB_STEP_HEAD ? number : step->next,
    .open = step->flags & (LB_STEP_OPEN | LB_STEP_SILENT) ? number : 0,
  };
}

/* ---- meaning ---- */

/* The running path was run to its end, an indirect branch, and went to a head. */
static bool silent_mean(const struct lb_trace_reader *reader, uint32_t running, uint32_t head, struct meaning *meaning)
{
  uint32_t last = running + reader->steps[running].count;
  const struct reader_step *step = &reader->steps[last];

  *meaning = (struct meaning){.left = last,
                              .pair = count_pair_key(last, head),
                              .branches = (uint16_t)(step->count + 1u),
                              .not_taken = step->small[1],
                              .kind = ARC_OWN_PAIR};
  return step->flags & LB_STEP_SILENT;
}

/* A path was left at a step. */
static bool step_mean(const struct lb_trace_reader *reader, struct state state, uint32_t number,
                      struct meaning *meaning)
{
  const struct reader_step *step = &reader->steps[number];
  bool is_taken = !(step->flags & (LB_STEP_OPEN | LB_STEP_SILENT | LB_STEP_NONE));

  *meaning = (struct meaning){.left = number,
                              .pair = state.open ? count_pair_key(state.open, step->head) : 0,
                              .branches = (uint16_t)(step->count + is_taken + (state.open != 0)),
                              .not_taken = step->small[1],
                              .kind = state.open ? ARC_OPEN_PAIR : ARC_NO_PAIR};
  return !state.running || step->head == state.running;
}

/* Returns false if this is no pass over a path. */
static bool entry_mean(const struct lb_trace_reader *reader, struct state state, uint32_t entry,
                       struct meaning *meaning)
{
  uint32_t number = entry & ~LB_ENTRY_ENTER;
  bool is_enter = entry & LB_ENTRY_ENTER;

  if (number >= reader->step_count || !reader->steps[number].head)
    return false;
  if (!(reader->steps[number].flags & LB_STEP_HEAD))
    return !is_enter && step_mean(reader, state, number, meaning);
  if (!is_enter && state.running)
    return silent_mean(reader, state.running, number, meaning);
  *meaning = (struct meaning){.pair = state.open ? count_pair_key(state.open, number) : 0,
                              .branches = state.open != 0,
                              .kind = state.open ? ARC_OPEN_PAIR : ARC_NO_PAIR};
  return is_enter || state.open;
}

/* ---- counts ---- */

/* Returns false if there is no room for the pair; then nothing is added. */
static bool meaning_add(struct lb_trace_reader *reader, const struct meaning *meaning, int64_t times)
{
  if (meaning->pair && !count_pair_add(&reader->counts.pairs, meaning->pair, (uint64_t)times))
    return false;
  if (meaning->left)
    reader->counts.steps[meaning->left].left += (uint64_t)times;
  return true;
}

static bool arc_mean(const struct lb_trace_reader *reader, const struct count_arc *arc, struct meaning *meaning)
{
  if (arc->pair == ARC_NO_PAIR || arc->pair == ARC_OWN_PAIR) {
    *meaning = (struct meaning){.left = arc->left,
                                .pair = arc->pair == ARC_OWN_PAIR ? count_pair_key(arc->left, arc->entry) : 0};
    return true;
  }
  return (arc->before & ~LB_ENTRY_ENTER) < reader->step_count &&
         entry_mean(reader, state_after(reader, arc->before), arc->entry, meaning);
}

/* Adds the counts of an arc to those of the reader. Room for them was made when the arc became known. */
static void arc_flush(struct lb_trace_reader *reader, struct count_arc *arc)
{
  struct meaning meaning;

  if (arc->count && arc->entry && arc_mean(reader, arc, &meaning))
    (void)meaning_add(reader, &meaning, arc->count);
  arc->count = 0;
}

void counts_flush(struct lb_trace_reader *reader)
{
  struct chunk_counter *counter = reader->counts.counter;

  if (!counter)
    return;
  for (uint32_t i = 0; i < ARCS; i++)
    arc_flush(reader, &counter->arcs[i]);
  memset(counter->arcs, 0, sizeof(counter->arcs));
  counter->chunks = 0;
}

void counts_forget(struct lb_trace_reader *reader, uint32_t step)
{
  struct chunk_counter *counter = reader->counts.counter;
  uint32_t start = arc_index(step, 0) & ~(ARC_GROUP - 1);

  for (uint32_t i = start; counter && i < start + ARC_GROUP; i++)
    if (counter->arcs[i].before == step) {
      arc_flush(reader, &counter->arcs[i]);
      counter->arcs[i] = (struct count_arc){0};
    }
}

static void sum_add(struct chunk_sum *sum, const struct meaning *meaning, int32_t times)
{
  sum->branches += (uint64_t)((int64_t)meaning->branches * times);
  sum->not_taken += (uint64_t)((int64_t)meaning->not_taken * times);
}

void arc_count_first(struct chunk_sum *sum, uint32_t entry)
{
  const struct reader_entries *entries = sum->reader->entries;
  struct state state = {entries->walker.running, entries->walker.is_open ? entries->open : 0};
  struct meaning meaning;

  if (entry_mean(sum->reader, state, entry, &meaning) && meaning_add(sum->reader, &meaning, sum->sign))
    sum_add(sum, &meaning, sum->sign);
  else
    sum->is_bad = true;
}

/* ---- the queue ---- */

/* Adds the counts of an arc that left the table. */
static void gone_finish(struct chunk_sum *sum, const struct count_arc *arc)
{
  struct meaning meaning;

  if (!arc->entry || (arc->pair && !arc->count))
    return;
  if (!arc_mean(sum->reader, arc, &meaning) || !meaning_add(sum->reader, &meaning, arc->count))
    sum->is_bad = true;
  else if (!arc->pair)
    sum_add(sum, &meaning, arc->count);
}

/* Finds the meaning of an arc that came into the table and may have left it since. */
static void fresh_finish(struct chunk_sum *sum, struct count_arc *arc)
{
  struct meaning meaning;

  if (arc->pair || !arc->entry)
    return;
  if (!arc_mean(sum->reader, arc, &meaning) || !meaning_add(sum->reader, &meaning, 0)) { /* makes room for its pair */
    sum->is_bad = true;
    *arc = (struct count_arc){0};
    return;
  }
  arc->pair = meaning.kind;
  arc->left = meaning.left;
  arc->branches = meaning.branches;
  arc->not_taken = meaning.not_taken;
  sum_add(sum, &meaning, arc->count);
}

/* Prefetches a step. An invalid number does no harm. */
static inline void step_fetch(const struct lb_trace_reader *reader, uint32_t number)
{
  __builtin_prefetch((const void *)((uintptr_t)reader->steps + (uintptr_t)number * sizeof(*reader->steps)));
}

static void arc_fetch_steps(const struct lb_trace_reader *reader, const struct count_arc *arc)
{
  if (arc->pair == ARC_UNKNOWN) {
    step_fetch(reader, arc->before & ~LB_ENTRY_ENTER);
    step_fetch(reader, arc->entry & ~LB_ENTRY_ENTER);
  }
}

static void arc_fetch_path(const struct lb_trace_reader *reader, const struct count_arc *arc)
{
  if (arc->pair == ARC_UNKNOWN && (arc->before & ~LB_ENTRY_ENTER) < reader->step_count)
    step_fetch(reader, state_after(reader, arc->before).running);
}

static void arc_fetch_counts(const struct lb_trace_reader *reader, const struct count_arc *arc)
{
  const struct count_pairs *pairs = &reader->counts.pairs;
  struct meaning meaning;

  if (!arc_mean(reader, arc, &meaning))
    return;
  __builtin_prefetch(&reader->counts.steps[meaning.left], 1);
  if (meaning.pair && pairs->capacity)
    __builtin_prefetch(&pairs->pairs[count_pair_index(pairs, meaning.pair)], 1);
}

void arcs_finish(struct chunk_sum *sum)
{
  static void (*const fetches[])(const struct lb_trace_reader *,
                                 const struct count_arc *) = {arc_fetch_steps, arc_fetch_path, arc_fetch_counts};
  struct chunk_counter *counter = sum->counter;

  for (unsigned k = 0; k < sizeof(fetches) / sizeof(fetches[0]); k++)
    for (unsigned i = 0; i < counter->queued; i++) {
      fetches[k](sum->reader, &counter->gone[i]);
      fetches[k](sum->reader, &counter->arcs[counter->fresh[i]]);
    }
  for (unsigned i = 0; i < counter->queued; i++) {
    gone_finish(sum, &counter->gone[i]);
    fresh_finish(sum, &counter->arcs[counter->fresh[i]]);
  }
  counter->queued = 0;
}

void arc_enter(struct chunk_sum *sum, uint32_t before, uint32_t entry, int32_t times)
{
  struct chunk_counter *counter = sum->counter;
  uint32_t place = arc_index(before, entry);

  if (counter->queued == ARC_QUEUE)
    arcs_finish(sum);
  counter->gone[counter->queued] = counter->arcs[place];
  counter->fresh[counter->queued++] = place;
  counter->entered++;
  counter->arcs[place] = (struct count_arc){.before = before, .entry = entry, .count = times};
}

uint64_t counts_stop_after(struct lb_trace_reader *reader, uint32_t entry)
{
  struct state state = state_after(reader, entry);

  return counts_stop(reader, state.running, state.open, entry);
}
