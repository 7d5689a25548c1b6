/* SPDX-License-Identifier: Apache-2.0
 *
 * From entries to branches: see path.h. Entries and steps are untrusted. Every number is looked up before it is used,
 * no loop is longer than a path can be, and an invalid entry changes nothing.
 */
#include "trace/path.h"

#include <errno.h>
#include <string.h>

/* The destination of branches. It has room for all branches of one entry. */
struct sink {
  struct lb_branch *at;
};

void path_walker_init(struct path_walker *walker, path_lookup *lookup, void *context)
{
  *walker = (struct path_walker){.lookup = lookup, .context = context};
}

void path_walker_restart(struct path_walker *walker)
{
  walker->running = 0;
  walker->is_begun = false;
  walker->is_open = false;
  walker->event_size = 0;
  walker->is_ended = false;
}

/* ---- steps ---- */

static inline const struct lb_step *step_get(const struct path_walker *walker, uint32_t number)
{
  return walker->lookup(walker->context, number);
}

/* The head with this number, or NULL. */
static inline const struct lb_step *head_get(const struct path_walker *walker, uint32_t number)
{
  const struct lb_step *head = number && number <= LB_STEP_MAX ? step_get(walker, number) : NULL;

  return head && (head->flags & LB_STEP_HEAD) && head->head == number ? head : NULL;
}

/* A step of the path whose head is known, or NULL. */
static inline const struct lb_step *step_of(const struct path_walker *walker, uint32_t head, uint32_t number)
{
  const struct lb_step *step = step_get(walker, number);

  return step && step->head == head && !(step->flags & LB_STEP_HEAD) && step->kind < LB_BRANCH_KINDS ? step : NULL;
}

/* ---- branches ---- */

static inline void branch_put(struct sink *sink, uint64_t from, uint64_t to, unsigned kind, unsigned flags)
{
  *sink->at++ = (struct lb_branch){
    .from = from, .to = to, .kind = (uint8_t)kind, .to_cpl = 3, .flags = (uint8_t)flags, .from_cpl = 3};
}

static inline void step_take(struct sink *sink, const struct lb_step *step, uint64_t to)
{
  bool is_to_next = step->kind == LB_BRANCH_NEAR_REL_CALL && to == step->from + step->length;

  branch_put(sink, step->from, to, step->kind, is_to_next ? LB_BRANCH_TO_NEXT : 0);
}

/* Puts the open branch, if there is one, with this target. It stays open until the whole entry is known to be valid. */
static inline void open_take(const struct path_walker *walker, struct sink *sink, uint64_t to)
{
  if (walker->is_open)
    branch_put(sink, walker->branch.from, to, walker->branch.kind, 0);
}

/* Follows the path through its steps before `end`. Returns false if one of them is not a step of the path. */
static inline bool steps_pass(const struct path_walker *walker, struct sink *sink, uint32_t head, uint32_t end)
{
  for (uint32_t number = head + 1; number < end; number++) {
    const struct lb_step *step = step_of(walker, head, number);

    if (!step)
      return false;
    if (step->flags & LB_STEP_FOLLOW)
      step_take(sink, step, step->to);
  }
  return true;
}

/* ---- entries ---- */

/* A path was run up to this step and left there. */
static inline bool walk_step(struct path_walker *walker, struct sink *sink, uint32_t number, uint32_t head_number)
{
  const struct lb_step *head, *step;

  if ((walker->running && head_number != walker->running) || head_number >= number)
    return false;
  head = head_get(walker, head_number);
  if (!head || number - head_number > head->count)
    return false;
  open_take(walker, sink, head->from);
  if (!steps_pass(walker, sink, head_number, number))
    return false;
  step = step_of(walker, head_number, number);
  if (!step)
    return false;
  walker->is_open = step->flags & (LB_STEP_OPEN | LB_STEP_SILENT);
  if (walker->is_open)
    walker->branch = (struct lb_branch){.from = step->from, .kind = step->kind};
  else if (!(step->flags & LB_STEP_NONE))
    step_take(sink, step, step->to);
  walker->running = step->next;
  return true;
}

/* The running path was run to its end and went to an address. */
static bool walk_silent(struct path_walker *walker, struct sink *sink, uint64_t to)
{
  const struct lb_step *head = head_get(walker, walker->running), *last;
  uint32_t end;

  if (!head || !head->count)
    return false;
  open_take(walker, sink, head->from);
  end = walker->running + head->count;
  if (!steps_pass(walker, sink, walker->running, end))
    return false;
  last = step_of(walker, walker->running, end);
  if (!last || !(last->flags & LB_STEP_SILENT))
    return false;
  step_take(sink, last, to);
  return true;
}

static bool walk_head(struct path_walker *walker, struct sink *sink, uint32_t number, uint64_t address)
{
  if (walker->running) {
    if (!walk_silent(walker, sink, address))
      return false;
  } else if (walker->is_open) {
    open_take(walker, sink, address);
  } else if (walker->is_begun) {
    return false;
  }
  walker->running = number;
  walker->is_open = false;
  return true;
}

static bool walk_enter(struct path_walker *walker, struct sink *sink, uint32_t number)
{
  const struct lb_step *head = head_get(walker, number);

  if (!head)
    return false;
  open_take(walker, sink, head->from);
  walker->running = number;
  walker->is_open = false;
  return true;
}

/* Passes the steps that the running path had passed when it was interrupted at an address. */
static bool event_pass(struct path_walker *walker, struct sink *sink, uint32_t passed, uint64_t address)
{
  const struct lb_step *head;

  if (!walker->running) {
    open_take(walker, sink, address);
    return !passed || !walker->is_begun;
  }
  head = head_get(walker, walker->running);
  if (!head || passed > head->count)
    return false;
  open_take(walker, sink, head->from);
  return steps_pass(walker, sink, walker->running, walker->running + passed + 1);
}

/* Takes an event whose words are complete. */
static bool walk_event(struct path_walker *walker, struct sink *sink)
{
  const uint32_t *words = walker->event;
  uint64_t from = words[1] | (uint64_t)words[2] << 32, to = words[3] | (uint64_t)words[4] << 32;
  unsigned kind = words[0] & 0xFF;

  if (kind > LB_ENTRY_NOWHERE)
    return false;
  if (!event_pass(walker, sink, words[0] >> 8, from))
    return false;
  if (kind != LB_ENTRY_NOWHERE)
    branch_put(sink, from, to, kind, 0);
  walker->is_ended = kind == LB_ENTRY_NOWHERE;
  walker->end = from;
  walker->running = 0;
  walker->is_open = false;
  return true;
}

/* Takes a word of an event. If the event is invalid, its last word is the one that is not taken. */
static bool walk_event_word(struct path_walker *walker, struct sink *sink, uint32_t word)
{
  walker->event[walker->event_size - 1] = word;
  if (walker->event_size < LB_ENTRY_EVENT_WORDS) {
    walker->event_size++;
    return true;
  }
  if ((walker->event[0] & 0xFF) == LB_ENTRY_STAMP) {
    walker->event_size = 0;
    return true;
  }
  if (!walk_event(walker, sink))
    return false;
  walker->event_size = 0;
  walker->is_begun = true;
  return true;
}

/* Takes an entry that is not a word of an event and most likely not a step. */
static bool walk_other(struct path_walker *walker, struct sink *sink, uint32_t entry, const struct lb_step *step)
{
  if (entry == 0)
    return true;
  if (entry == LB_ENTRY_EVENT) {
    walker->event_size = 1;
    return true;
  }
  if (entry & LB_ENTRY_ENTER)
    return walk_enter(walker, sink, entry & ~LB_ENTRY_ENTER);
  return step && step->head == entry && walk_head(walker, sink, entry, step->from);
}

static inline bool walk(struct path_walker *walker, struct sink *sink, uint32_t entry)
{
  const struct lb_step *step;
  bool is_good;

  if (walker->event_size)
    return walk_event_word(walker, sink, entry);
  walker->is_ended &= !entry;
  step = entry && entry <= LB_STEP_MAX ? step_get(walker, entry) : NULL;
  if (step && !(step->flags & LB_STEP_HEAD))
    is_good = walk_step(walker, sink, entry, step->head);
  else
    is_good = walk_other(walker, sink, entry, step);
  walker->is_begun |= is_good && entry && entry != LB_ENTRY_EVENT;
  return is_good;
}

int path_walker_next(struct path_walker *walker, const uint32_t *entries, size_t count, size_t *ret_taken,
                     struct lb_branch *branches, size_t room)
{
  struct sink sink = {branches};
  size_t taken = 0;

  if (room > INT32_MAX)
    room = INT32_MAX;
  while (taken < count && room - (size_t)(sink.at - branches) >= PATH_BRANCHES_MAX) {
    struct lb_branch *before = sink.at;

    if (!walk(walker, &sink, entries[taken])) {
      sink.at = before;
      break;
    }
    taken++;
  }
  *ret_taken = taken;
  if (taken < count && !taken)
    return -EBADMSG; /* there was room: only an invalid entry stops at once */
  return (int)(sink.at - branches);
}
