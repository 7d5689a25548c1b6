/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a chunk of entries into branches: decodes the entries (entry_decode.c) and expands them with the steps that the
 * file has. Common cases are handled here, with steps prepared for that (steps.c). The walker (path.c) handles the
 * rest, including invalid entries. The chunk stores the state before it, so that it can be read without the previous
 * chunk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/reader.h"

/* ---- for the walker ---- */

static const struct lb_step *step_lookup(void *context, uint32_t number)
{
  struct lb_trace_reader *reader = context;
  const struct reader_step *step = number < reader->step_count ? &reader->steps[number] : NULL;

  if (!step || !step->head)
    return NULL;
  reader->entries->step = (struct lb_step){
    .from = step->from,
    .to = step->to,
    .head = step->head,
    .next = step->next,
    .kind = step->small[0],
    .flags = step->flags,
    .count = step->count,
    .length = step->length,
  };
  return &reader->entries->step;
}

/* Sets the walker to the state after the last entry before the chunk. */
static void walker_place(struct lb_trace_reader *reader, uint64_t before)
{
  struct path_walker *walker = &reader->entries->walker;
  uint64_t number = before - BEFORE_NUMBER;
  const struct reader_step *step;

  path_walker_restart(walker);
  reader->entries->open = 0;
  walker->is_begun = before == BEFORE_EVENT;
  if (before <= BEFORE_EVENT || number >= reader->step_count || !reader->steps[number].head)
    return; /* without the step the running path is unknown: the next entry counts as the first */
  step = &reader->steps[number];
  walker->is_begun = true;
  walker->running = step->flags & LB_STEP_HEAD ? (uint32_t)number : step->next;
  walker->is_open = step->flags & (LB_STEP_OPEN | LB_STEP_SILENT);
  walker->branch = (struct lb_branch){.from = step->from, .kind = step->small[0]};
  reader->entries->open = walker->is_open ? (uint32_t)number : 0;
}

int entries_open(struct lb_trace_reader *reader)
{
  struct reader_entries *entries = reader->entries;
  int r;

  if (!entries)
    entries = reader->entries = calloc(1, sizeof(*entries));
  if (!entries)
    return -ENOMEM;
  r = entry_decoder_begin(&entries->decoder, reader->raw.bytes, reader->raw.size);
  if (r < 0)
    return r;
  path_walker_init(&entries->walker, step_lookup, reader);
  walker_place(reader, entries->decoder.before);
  reader->has_not_taken = true;
  entries->at = entries->count = 0;
  entries->is_lost = false;
  entries->is_excess = false;
  entries->has_stop = false;
  return 0;
}

/* ---- the fast path ---- */

static inline void branch_put(struct lb_branch *branch, const struct reader_step *step, uint64_t to)
{
  *branch = (struct lb_branch){
    .from = step->from, .to = to, .kind = step->small[0], .to_cpl = 3, .flags = step->small[2], .from_cpl = 3};
}

/* Puts the branches of an execution that stays in the path up to a step. Returns the end of them. */
static inline struct lb_branch *follows_put(struct lb_branch *at, const struct reader_step *step)
{
  struct lb_branch *end = at + step->count, *branch = end;

  while (branch > at) {
    step -= step->back;
    branch_put(--branch, step, step->to);
  }
  return end;
}

/* Puts the branches of a path that was run to its end, which is an indirect branch. Returns the end of them, or NULL if
 * the path does not end so. */
static inline struct lb_branch *silent_put(const struct lb_trace_reader *reader, struct lb_branch *at, uint32_t running,
                                           uint64_t to)
{
  const struct reader_step *last = &reader->steps[running] + reader->steps[running].count;

  if (!(last->flags & LB_STEP_SILENT))
    return NULL;
  at = follows_put(at, last);
  branch_put(at, last, to);
  at->flags = 0;
  return at + 1;
}

/* Expands entries that are steps, or heads after known paths, while there is room for the branches of one entry.
 * Returns the number of entries. Puts the branches at `*at` and moves it. */
static size_t steps_expand(struct lb_trace_reader *reader, const uint32_t *words, size_t count, struct lb_branch **at,
                           const struct lb_branch *end)
{
  struct path_walker *walker = &reader->entries->walker;
  uint32_t running = walker->running;
  struct lb_branch *branch = *at;
  uint64_t not_taken = 0;
  size_t i = 0;

  if (walker->is_open || walker->event_size)
    return 0;
  for (; i < count && end - branch >= PATH_BRANCHES_MAX; i++) {
    const struct reader_step *step;

    /* A program's steps do not fit into the cache. A prefetch of an invalid address does no harm. */
    __builtin_prefetch((const void *)((uintptr_t)reader->steps + (uintptr_t)words[i + READER_AHEAD] * sizeof(*step)));

    if (words[i] >= reader->step_count)
      break;
    step = &reader->steps[words[i]];
    if (!step->head)
      break;
    if (step->flags & LB_STEP_HEAD) {
      struct lb_branch *behind = running ? silent_put(reader, branch, running, step->from) : NULL;

      if (!behind)
        break;
      branch = behind;
      not_taken += reader->steps[running + reader->steps[running].count].small[1];
      running = words[i];
    } else {
      if ((step->head != running && running) || (step->flags & (LB_STEP_OPEN | LB_STEP_SILENT)))
        break;
      branch = follows_put(branch, step);
      branch_put(branch, step, step->to);
      branch += !(step->flags & LB_STEP_NONE);
      not_taken += step->small[1];
      running = step->next;
    }
  }
  walker->running = running;
  walker->is_begun |= i > 0;
  walker->is_ended &= i == 0;
  reader->not_taken += not_taken;
  *at = branch;
  return i;
}

/* ---- all ---- */

bool entries_lose(struct lb_trace_reader *reader)
{
  struct reader_entries *entries = reader->entries;
  bool is_new = !entries->is_lost;

  path_walker_restart(&entries->walker);
  entries->at++;
  entries->is_lost = true;
  return is_new;
}

int entries_read(struct lb_trace_reader *reader)
{
  struct reader_entries *entries = reader->entries;
  int r;

  if (entries->at < entries->count)
    return (int)(entries->count - entries->at);
  r = entry_decoder_next(&entries->decoder, entries->words, READER_WORDS);
  entries->at = 0;
  entries->count = r > 0 ? (size_t)r : 0;
  return r;
}

/* The conditional branches that one entry passed without taking them; none for the words of an event. */
static unsigned not_taken_by(const struct lb_trace_reader *reader, uint32_t word)
{
  const struct path_walker *walker = &reader->entries->walker;
  const struct reader_step *step = word < reader->step_count && !walker->event_size ? &reader->steps[word] : NULL;

  if (step && step->head && step->flags & LB_STEP_HEAD)
    step = walker->running && !walker->is_open && walker->running < reader->step_count
             ? &reader->steps[walker->running] + reader->steps[walker->running].count
             : NULL;
  return step && step->head && !(step->flags & LB_STEP_HEAD) ? step->small[1] : 0;
}

/* The conditional branches that a path had passed when an event, whose last word comes next, interrupted it. */
static unsigned not_taken_before(const struct lb_trace_reader *reader)
{
  const struct path_walker *walker = &reader->entries->walker;
  const struct reader_step *head = walker->running < reader->step_count ? &reader->steps[walker->running] : NULL;
  uint32_t steps = walker->event[0] >> 8;
  unsigned count = 0;

  if (walker->event_size != LB_ENTRY_EVENT_WORDS || !walker->running || !head || steps > head->count)
    return 0;
  for (uint32_t i = 1; i <= steps; i++)
    count += head[i].small[0] == LB_BRANCH_JCC && !(head[i].flags & (LB_STEP_FOLLOW | LB_STEP_NONE));
  return count;
}

uint64_t entries_start(const struct lb_trace_reader *reader)
{
  const struct reader_entries *entries = reader->entries;
  const struct path_walker *walker = &entries->walker;
  uint32_t word = entries->at < entries->count ? entries->words[entries->at] : 0, head = walker->running;

  if (walker->is_open || walker->event_size)
    return 0;
  if (!head && word & LB_ENTRY_ENTER)
    head = word & ~LB_ENTRY_ENTER;
  else if (!head && word < reader->step_count && !(reader->steps[word].flags & LB_STEP_HEAD))
    head = reader->steps[word].head;
  return head && head < reader->step_count && reader->steps[head].flags & LB_STEP_HEAD ? reader->steps[head].from : 0;
}

int entries_walk(struct lb_trace_reader *reader, struct lb_branch *branches, size_t room)
{
  struct reader_entries *entries = reader->entries;
  uint64_t not_taken = not_taken_by(reader, entries->words[entries->at]) + not_taken_before(reader);
  bool is_event = entries->walker.event_size == LB_ENTRY_EVENT_WORDS;
  size_t taken;
  int r = path_walker_next(&entries->walker, entries->words + entries->at, 1, &taken, branches, room);

  if (r < 0)
    return r;
  reader->not_taken += not_taken;
  entries->at += taken;
  entries->has_stop |= is_event && entries->walker.is_ended;
  entries->open = 0;
  entries->is_lost &= r == 0;
  return r;
}

/* Expands the next words, or some of them. Returns the number of branches, or -EBADMSG if the first word is invalid. */
static int words_expand(struct lb_trace_reader *reader, struct lb_branch *branches, size_t room)
{
  struct reader_entries *entries = reader->entries;
  struct lb_branch *at = branches;
  size_t taken = steps_expand(reader, entries->words + entries->at, entries->count - entries->at, &at, branches + room);

  if (!taken)
    return entries_walk(reader, branches, room);
  entries->at += taken;
  entries->is_lost &= at == branches;
  return (int)(at - branches);
}

int entries_next(struct lb_trace_reader *reader)
{
  size_t done = 0;

  while (LB_TRACE_BATCH_MAX - done >= PATH_BRANCHES_MAX && !reader->entries->has_stop) {
    int r = entries_read(reader);

    if (r < 0)
      return r;
    if (r == 0)
      break;
    r = words_expand(reader, reader->batch + done, LB_TRACE_BATCH_MAX - done);
    if (r >= 0)
      done += (size_t)r;
    else if (done)
      break; /* give the branches before it first */
    else if (entries_lose(reader))
      return r;
  }
  return (int)done;
}
