/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts branches instead of giving them: an entry adds one to the step where its path was left. The counts of each
 * branch of the path are computed when they are asked for. Indirect branches are counted together with the head they
 * went to. Rare entries (events, invalid ones) take the slow path, through the walker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/reader.h"
#include "trace/sparse.h"

/* ---- memory ---- */

static struct count_step step_learn(const struct reader_step *step, uint32_t number)
{
  bool is_head = step->flags & LB_STEP_HEAD, is_open = step->flags & (LB_STEP_OPEN | LB_STEP_SILENT);
  bool is_taken = !is_open && !(step->flags & LB_STEP_NONE);

  return (struct count_step){
    .running = is_head   ? number
               : is_open ? COUNT_RUNNING_OTHER
                         : step->next,
    .branches = (uint16_t)(step->count + is_taken),
    .not_taken = step->small[1],
    .index = (uint8_t)(number - step->head),
  };
}

void counts_learn(struct lb_trace_reader *reader, size_t first, size_t end)
{
  struct reader_counts *counts = &reader->counts;

  for (size_t i = first; i < end && i < counts->capacity; i++)
    if (reader->steps[i].head) {
      uint64_t left = counts->steps[i].left;

      counts->steps[i] = step_learn(&reader->steps[i], (uint32_t)i);
      counts->steps[i].left = left;
    }
}

int counts_reserve(struct lb_trace_reader *reader)
{
  struct reader_counts *counts = &reader->counts;
  size_t size = sizeof(*counts->steps), before = counts->capacity;
  struct count_step *steps;

  if (before < reader->step_capacity) {
    steps = sparse_grow(counts->steps, before * size, reader->step_capacity * size);
    if (!steps)
      return -ENOMEM;
    counts->steps = steps;
    counts->capacity = reader->step_capacity;
    steps[0].running = COUNT_RUNNING_OTHER;
    counts_learn(reader, before, reader->step_count);
  }
  if (reader->has_holes)
    sparse_scatter(counts->steps, counts->capacity * size);
  return 0;
}

void counts_done(struct lb_trace_reader *reader)
{
  sparse_free(reader->counts.steps, reader->counts.capacity * sizeof(*reader->counts.steps));
  free(reader->counts.pairs.pairs);
  chunk_counter_free(reader->counts.counter);
  reader->counts = (struct reader_counts){0};
}

void lb_trace_reader_count(struct lb_trace_reader *reader, uint32_t stream)
{
  lb_trace_reader_rewind(reader);
  reader->counts.is_on = true;
  reader->counts.stream = stream;
}

/* ---- entries ---- */

/* The position in the entries, and the counts. */
struct pass {
  struct lb_trace_reader *reader;
  const struct reader_step *steps;
  uint32_t running; /* head, 0: none */
  uint32_t open;    /* step that was left by a branch whose target comes next, 0: none */
  uint64_t branches, not_taken;
};

/* Counts an open branch as having gone to this head. */
static inline bool pass_close(struct pass *pass, uint32_t head)
{
  if (!pass->open)
    return true;
  if (!count_pair_add(&pass->reader->counts.pairs, count_pair_key(pass->open, head), 1))
    return false;
  pass->open = 0;
  pass->branches++;
  return true;
}

/* The running path was run to its end and went to this head. */
static inline bool pass_head(struct pass *pass, uint32_t number)
{
  uint32_t last = pass->running + pass->steps[pass->running].count;
  const struct reader_step *step = &pass->steps[last];

  if (!pass->running) {
    if (!pass->open || !pass_close(pass, number))
      return false;
    pass->running = number;
    return true;
  }
  if (!(step->flags & LB_STEP_SILENT) || !count_pair_add(&pass->reader->counts.pairs, count_pair_key(last, number), 1))
    return false;
  pass->reader->counts.steps[last].left++;
  pass->branches += step->count + 1u;
  pass->not_taken += step->small[1];
  pass->running = number;
  return true;
}

/* A path was left at this step. */
static inline bool pass_step(struct pass *pass, uint32_t number, const struct reader_step *step)
{
  if ((pass->running && step->head != pass->running) || !pass_close(pass, step->head))
    return false;
  pass->reader->counts.steps[number].left++;
  pass->branches += step->count;
  pass->not_taken += step->small[1];
  pass->running = step->next;
  if (step->flags & (LB_STEP_OPEN | LB_STEP_SILENT))
    pass->open = number;
  else
    pass->branches += !(step->flags & LB_STEP_NONE);
  return true;
}

static inline bool pass_word(struct pass *pass, uint32_t word)
{
  uint32_t number = word & ~LB_ENTRY_ENTER;
  const struct reader_step *step = number < pass->reader->step_count ? &pass->steps[number] : NULL;

  if (!step || !step->head)
    return false;
  if (!(word & LB_ENTRY_ENTER))
    return step->flags & LB_STEP_HEAD ? pass_head(pass, number) : pass_step(pass, number, step);
  if (!(step->flags & LB_STEP_HEAD) || !pass_close(pass, number))
    return false;
  pass->running = number;
  return true;
}

/* The address of execution after the last word. */
static uint64_t address_after(const struct lb_trace_reader *reader, uint32_t running, uint32_t open, uint32_t word)
{
  const struct reader_step *step = &reader->steps[word & ~LB_ENTRY_ENTER];

  if (open)
    return 0;
  if (running)
    return reader->steps[running].from;
  return step->flags & LB_STEP_FOLLOW && step->flags & LB_STEP_NONE ? step->from + step->length : step->to;
}

uint64_t counts_stop(struct lb_trace_reader *reader, uint32_t running, uint32_t open, uint32_t word)
{
  struct path_walker *walker = &reader->entries->walker;

  reader->entries->open = open;
  walker->running = running;
  walker->is_open = open != 0;
  walker->is_begun = true;
  if (open)
    walker->branch = (struct lb_branch){.from = reader->steps[open].from, .kind = reader->steps[open].small[0]};
  reader->entries->is_lost = false;
  return address_after(reader, running, open, word);
}

size_t counts_take(struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_at)
{
  struct reader_entries *entries = reader->entries;
  struct path_walker *walker = &entries->walker;
  struct pass pass = {.reader = reader, .steps = reader->steps, .running = walker->running};
  const uint32_t *words = entries->words;
  size_t i = entries->at, taken;

  if (walker->event_size || (walker->is_open && !entries->open))
    return 0;
  pass.open = walker->is_open ? entries->open : 0;
  for (; i < entries->count; i++) {
    __builtin_prefetch((const void *)((uintptr_t)pass.steps +
                                      (uintptr_t)(words[i + READER_AHEAD] & ~LB_ENTRY_ENTER) * sizeof(*pass.steps)));
    if (!pass_word(&pass, words[i]))
      break;
  }
  taken = i - entries->at;
  if (!taken)
    return 0;
  *ret_branches = pass.branches;
  *ret_at = counts_stop(reader, pass.running, pass.open, words[i - 1]);
  reader->not_taken += pass.not_taken;
  entries->at = i;
  return taken;
}

/* ---- results ---- */

/* Computes the counts of a step's branch, which was executed `executed` times; the path was left there `left` times. */
static void count_branch(struct lb_trace_count *count, const struct reader_step *step, uint64_t left)
{
  uint64_t stayed = count->executed - left;
  bool is_followed = step->flags & LB_STEP_FOLLOW, is_none = step->flags & LB_STEP_NONE;

  count->from = step->from;
  count->to = step->to;
  count->kind = step->small[0];
  count->length = step->length;
  count->is_cut = is_none && !is_followed && step->from == step->to;
  count->taken = is_followed ? stayed : 0;
  if (!is_none && !(step->flags & (LB_STEP_OPEN | LB_STEP_SILENT)))
    count->taken += left;
  count->passed = 0;
  if (step->small[0] == LB_BRANCH_JCC && (is_followed || !is_none))
    count->passed = count->executed - count->taken;
}

/* A count as it is given: the public struct, and what does not fit into it. */
struct count_given {
  struct lb_trace_count count;
  uint32_t target; /* space of `to` */
};

uint32_t trace_count_target(const struct lb_trace_count *count)
{
  return ((const struct count_given *)(const void *)count)->target; /* the first member: they have the same address */
}

/* The address space of the path that follows a step; that of its own path, if it is not known. */
static uint32_t step_target(const struct lb_trace_reader *reader, const struct reader_step *step, uint32_t space)
{
  const struct reader_step *next = step->next && step->next < reader->step_count ? &reader->steps[step->next] : NULL;

  return next && next->flags & LB_STEP_HEAD && next->from == step->to ? (uint32_t)next->to : space;
}

/* Gives the counts of a path and sets them to zero. Steps that were never reached are left out. */
static int path_give(struct lb_trace_reader *reader, uint32_t number, lb_trace_count_function *function, void *context)
{
  const struct reader_step *head = &reader->steps[number];
  struct count_step *counts = &reader->counts.steps[number];
  struct count_given given = {.count = {.space = (uint32_t)head->to, .start = head->from}};
  struct lb_trace_count *count = &given.count;
  int r = 0;

  for (unsigned i = 1; i <= head->count; i++)
    count->executed += counts[i].left;
  for (unsigned i = 1; i <= head->count && count->executed; i++) {
    const struct reader_step *step = &head[i];

    count_branch(count, step, counts[i].left);
    given.target = step_target(reader, step, count->space);
    if (r >= 0)
      r = function(context, count);
    count->executed -= counts[i].left;
    count->start = step->flags & LB_STEP_FOLLOW ? step->to : step->from + step->length;
    counts[i].left = 0;
  }
  return r;
}

static int pairs_give(struct lb_trace_reader *reader, lb_trace_count_function *function, void *context)
{
  struct count_pairs *pairs = &reader->counts.pairs;

  for (size_t i = 0; i < pairs->capacity; i++) {
    const struct count_pair *pair = &pairs->pairs[i];
    const struct reader_step *step = &reader->steps[pair->key >> 32];
    const struct reader_step *head = &reader->steps[(uint32_t)pair->key];
    struct count_given given;
    int r;

    if (!pair->count)
      continue;
    given = (struct count_given){
      .count = {.space = (uint32_t)reader->steps[step->head].to,
                .from = step->from,
                .length = step->length,
                .kind = step->small[0],
                .to = head->from,
                .taken = pair->count},
      .target = (uint32_t)head->to,
    };
    r = function(context, &given.count);
    if (r < 0)
      return r;
  }
  if (pairs->capacity)
    memset(pairs->pairs, 0, pairs->capacity * sizeof(*pairs->pairs));
  pairs->count = 0;
  return 0;
}

int lb_trace_reader_counts(struct lb_trace_reader *reader, lb_trace_count_function *function, void *context)
{
  /* The file may have steps that no entry has used yet, and a path may extend beyond the reserved part. */
  uint32_t count = reader->counts.capacity ? reader->step_count : 0;

  if (count && counts_reserve(reader) < 0)
    return -ENOMEM;
  counts_flush(reader);
  for (uint32_t i = 0; i < count; i++)
    if (reader->steps[i].head == i && reader->steps[i].flags & LB_STEP_HEAD) {
      int r = path_give(reader, i, function, context);

      if (r < 0)
        return r;
      i += reader->steps[i].count;
    }
  return pairs_give(reader, function, context);
}
