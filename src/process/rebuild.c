/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a thread's log into its taken branches. The entries come from shared_memory.c and trace/path.c walks them. Each
 * branch gets a mark, the number of a step of the path it was in, which tells the address space and the time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/process.h"
#include "process/shared.h"

enum { ENTRIES_PER_BRANCH = 2, ENTRIES_AT_LEAST = 4096 };

/* The state of a walk through a log. */
struct walk {
  const struct process *process;
  struct path_walker walker;
  struct lb_step step; /* the last one looked up */
  uint8_t *pages;      /* pages of steps that are known to be valid */
  uint32_t mark;       /* number of a step of the path that the branches are in */
  struct process_branches list;
  size_t most; /* number of branches wanted, the last ones */
};

static const struct lb_step *walk_lookup(void *context, uint32_t number)
{
  struct walk *walk = context;

  return process_step_known(walk->process, number, walk->pages, &walk->step) ? &walk->step : NULL;
}

/* ---- the list ---- */

static int list_reserve(struct process_branches *list, size_t more)
{
  size_t capacity = list->capacity ? list->capacity : 1024;
  struct lb_branch *branches;
  uint32_t *steps;

  if (list->capacity - list->count >= more)
    return 0;
  while (capacity - list->count < more)
    capacity *= 2;
  branches = reallocarray(list->branches, capacity, sizeof(*branches));
  if (branches)
    list->branches = branches;
  steps = reallocarray(list->steps, capacity, sizeof(*steps));
  if (steps)
    list->steps = steps;
  if (!branches || !steps)
    return -ENOMEM;
  list->capacity = capacity;
  return 0;
}

/* Drops the oldest branches and keeps the last `most`. */
static void list_cut(struct process_branches *list, size_t most)
{
  size_t gone;

  if (list->count <= most)
    return;
  gone = list->count - most;
  memmove(list->branches, list->branches + gone, most * sizeof(*list->branches));
  memmove(list->steps, list->steps + gone, most * sizeof(*list->steps));
  list->count = most;
  list->is_cut = true;
}

void process_branches_done(struct process_branches *branches)
{
  free(branches->branches);
  free(branches->steps);
  *branches = (struct process_branches){0};
}

/* ---- walking ---- */

/* The mark of the branches that an entry makes: the path that it names, or the running one. A branch that is still open
 * belongs to the entry before. */
static uint32_t entry_mark(const struct walk *walk, uint32_t entry)
{
  bool is_number = entry && entry <= LB_STEP_MAX && !walk->walker.event_size;
  struct lb_step step;

  if (is_number && process_step_known(walk->process, entry, walk->pages, &step) && !(step.flags & LB_STEP_HEAD))
    return entry;
  return walk->walker.running ? walk->walker.running : walk->mark;
}

/* Returns 0, or -ENOMEM, -EBADMSG. */
static int walk_entry(struct walk *walk, uint32_t entry)
{
  struct process_branches *list = &walk->list;
  bool was_open = walk->walker.is_open;
  uint32_t mark = entry_mark(walk, entry);
  size_t taken;
  int count;

  if (list_reserve(list, PATH_BRANCHES_MAX) < 0)
    return -ENOMEM;
  count = path_walker_next(&walk->walker, &entry, 1, &taken, list->branches + list->count, PATH_BRANCHES_MAX);
  if (count < 0)
    return count;
  for (int i = 0; i < count; i++)
    list->steps[list->count++] = i == 0 && was_open ? walk->mark : mark;
  walk->mark = mark;
  if (walk->most < SIZE_MAX / 4 && list->count > 2 * walk->most + ENTRIES_AT_LEAST)
    list_cut(list, walk->most);
  return 0;
}

/* With `is_lax`, skips invalid entries and continues. */
static int walk_entries(struct walk *walk, const uint32_t *entries, size_t count, bool is_lax)
{
  for (size_t i = 0; i < count; i++) {
    int result = walk_entry(walk, entries[i]);

    if (result == -EBADMSG && is_lax) {
      walk->list.is_damaged = true;
      path_walker_restart(&walk->walker);
      result = 0;
    }
    if (result < 0)
      return result;
  }
  return 0;
}

/* ---- whole ---- */

/* Where to start if the first entries may be the rest of an event: after as many words as an event has, or at an event
 * that begins among them. */
static size_t entries_start(const uint32_t *entries, size_t count)
{
  for (size_t at = 0; at < LB_ENTRY_EVENT_WORDS && at < count; at++)
    if (entries[at] == LB_ENTRY_EVENT)
      return at;
  return count < LB_ENTRY_EVENT_WORDS ? count : LB_ENTRY_EVENT_WORDS;
}

/* Walks the last entries. */
static int walk_last(struct walk *walk, const struct process_thread *thread, size_t wanted, bool is_lax)
{
  uint32_t *entries = NULL;
  size_t count = 0, start = 0;
  bool is_cut = false;
  int result = process_entries_last(walk->process, thread, wanted, &entries, &count, &is_cut);

  if (result < 0)
    return result;
  if (is_cut && count == wanted) /* otherwise the entries begin with a part, and no event spans two parts */
    start = entries_start(entries, count);
  path_walker_init(&walk->walker, walk_lookup, walk);
  walk->mark = 0;
  walk->list.count = 0;
  walk->list.is_damaged = false;
  walk->list.is_cut = is_cut;
  if (count) /* the array may be NULL if there are none */
    result = walk_entries(walk, entries + start, count - start, is_lax);
  free(entries);
  if (result >= 0 && walk->list.count < walk->most && count == wanted)
    return 1;
  return result;
}

static int rebuild(const struct process *process, const struct process_thread *thread, size_t most, bool is_lax,
                   struct process_branches *ret_branches)
{
  struct walk walk = {.process = process, .most = most};
  size_t wanted = most < SIZE_MAX / 8 ? most * ENTRIES_PER_BRANCH + ENTRIES_AT_LEAST : SIZE_MAX;
  int result;

  walk.pages = calloc(process_step_pages(process), 1);
  result = walk.pages ? walk_last(&walk, thread, wanted, is_lax) : -ENOMEM;
  while (result == 1) { /* the entries held too few branches */
    wanted = wanted < SIZE_MAX / 8 ? wanted * 4 : SIZE_MAX;
    result = walk_last(&walk, thread, wanted, is_lax);
  }
  free(walk.pages);
  if (result < 0 && result != -EBADMSG) {
    process_branches_done(&walk.list);
    return result;
  }
  list_cut(&walk.list, most);
  *ret_branches = walk.list;
  return result;
}

int process_rebuild(const struct process *process, const struct process_thread *thread,
                    struct process_branches *ret_branches)
{
  return rebuild(process, thread, SIZE_MAX, false, ret_branches);
}

int process_rebuild_last(const struct process *process, const struct process_thread *thread, size_t most,
                         struct process_branches *ret_branches)
{
  return rebuild(process, thread, most, true, ret_branches);
}
