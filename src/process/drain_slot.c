/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread of a drain: how far its log has been written, and how its entries get into the trace. A part of the log is
 * given back to the thread once all of it was taken.
 */
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lastbranch/error.h"

#include "process/drain.h"
#include <assert.h>

void drain_wake(const void *word)
{
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

enum { WARM_SLOTS = 32 }; /* the logs of these stay in memory when their threads end */

/* The offset of a thread's log in the shared memory. */
static size_t slot_log(const struct process_drain *drain, uint32_t number)
{
  return process_logs_offset(drain->process->notes_size, drain->process->step_capacity) +
         (size_t)number * PROCESS_PARTS * drain->process->part_size;
}

/* Seconds that the thread waited for the drain: the value in its page, but not more than its lifetime. */
static double slot_waited(const struct process_drain *drain, uint32_t number)
{
  double waited = 1e-9 * (double)__atomic_load_n(&drain_page(drain, number)->waited, __ATOMIC_RELAXED);
  double most = drain->now - drain->slots[number].begun;

  return !drain->slots[number].is_open || waited <= 0 ? 0 : waited < most ? waited : most;
}

void process_drain_costs(const struct process_drain *drain, struct process_costs *ret_costs)
{
  uint32_t steps = __atomic_load_n(&drain_control(drain)->step_count, __ATOMIC_RELAXED);
  struct process_costs costs = {.entries = drain->entry_count, .waited = drain->waited};

  costs.processes = __atomic_load_n(&drain_control(drain)->space_count, __ATOMIC_RELAXED);
  costs.steps = steps < drain->process->step_capacity ? steps : drain->process->step_capacity;
  costs.steps -= costs.steps < drain->process->store.base ? costs.steps : drain->process->store.base;
  for (uint32_t i = 0; i < drain->high; i++)
    costs.waited += slot_waited(drain, i);
  *ret_costs = costs;
}

size_t process_drain_processes(const struct process_drain *drain, uint32_t *ret_processes, size_t most)
{
  size_t count = 0, known;

  for (uint32_t i = 0; i < drain->high && count < most; i++) {
    const struct drain_slot *slot = &drain->slots[i];

    for (known = 0; known < count && ret_processes[known] != slot->process;)
      known++;
    if (slot->is_open && slot->is_visible && known == count)
      ret_processes[count++] = slot->process;
  }
  return count;
}

static uint32_t part_entries(const struct process_drain *drain)
{
  return drain->process->part_size / sizeof(uint32_t);
}

/* The view of a thread whose entries are wanted up to a certain one. */
static struct drain_view window_look(const struct process_drain *drain, uint32_t number)
{
  const struct drain_window *window = &drain->windows[number];

  if (!window->is_wanted || drain_page(drain, number)->serial != window->serial)
    return (struct drain_view){.status = THREAD_FREE};
  return (struct drain_view){window->status, window->end / part_entries(drain),
                             (uint32_t)(window->end % part_entries(drain))};
}

struct drain_view slot_look(struct process_drain *drain, uint32_t number, bool is_whole)
{
  const struct process_state *page = drain_page(drain, number);
  struct drain_slot *slot = &drain->slots[number];
  struct drain_view view = {.status = __atomic_load_n(&page->status, __ATOMIC_ACQUIRE)};
  uint64_t again;

  if (drain->windows)
    return window_look(drain, number);
  if (slot->is_open && view.status != THREAD_GONE)
    view.status = THREAD_LIVE; /* only the drain frees pages: the program has overwritten the status */
  if (view.status != THREAD_LIVE && view.status != THREAD_GONE)
    return view;
  if (slot->is_dead)
    view.status = THREAD_GONE;
  view.written = __atomic_load_n(&page->written, __ATOMIC_ACQUIRE);
  if (view.status != THREAD_GONE && !is_whole)
    return view;
  view.position = process_position(drain->process, number, view.written, __atomic_load_n(&page->log, __ATOMIC_ACQUIRE),
                                   __atomic_load_n(&page->log_start, __ATOMIC_RELAXED),
                                   slot->seen_part == view.written && slot->is_open ? slot->seen : 0);
  again = __atomic_load_n(&page->written, __ATOMIC_ACQUIRE);
  bool is_cut = __atomic_load_n(&page->is_cut, __ATOMIC_ACQUIRE);
  if (again != view.written || is_cut) /* it moved to the next part meanwhile: take only the full ones */
    view.position = 0;
  slot->seen_part = view.written;
  slot->seen = view.position;
  return view;
}

/* Restores the count of parts that the drain has returned, if the program has overwritten it. A thread would otherwise
 * wait forever for a part that is free. */
void slot_mend(struct process_drain *drain, uint32_t number)
{
  const struct drain_slot *slot = &drain->slots[number];
  struct process_state *page = drain_page(drain, number);

  if (drain->windows || !slot->is_open || slot->is_ignored ||
      __atomic_load_n(&page->read, __ATOMIC_SEQ_CST) == slot->read)
    return;
  __atomic_store_n(&page->read, slot->read, __ATOMIC_SEQ_CST);
  drain_wake(&page->read);
}

/* The log is inconsistent, so the program must have written to it. The rest of it is lost. */
static int slot_spoil(struct process_drain *drain, struct drain_slot *slot)
{
  slot->is_ignored = true;
  drain->state.spoiled++;
  return lb_trace_writer_gap(drain->writer, &(struct lb_trace_gap){.stream = slot->stream, .reason = LB_TRACE_LOST});
}

static int stream_new(struct process_drain *drain, const struct process_state *page, struct drain_slot *slot)
{
  char name[sizeof(page->name) + 1] = "";
  struct lb_trace_stream stream = {
    .space = slot->space, .process = slot->process, .thread = slot->thread, .name = name};
  int r;

  memcpy(name, page->name, sizeof(page->name));
  memcpy(slot->name, name, sizeof(name));
  r = lb_trace_writer_stream(drain->writer, &stream, &slot->stream);
  if (r != LB_E_TOO_BIG)
    return r;
  slot->is_ignored = true;
  if (drain->is_out_of_streams)
    return 0;
  drain->is_out_of_streams = true;
  return lb_trace_writer_meta(drain->writer,
                              &(struct lb_trace_meta){"remark", "threads are missing: a trace cannot have so many"});
}

/* Entries that the thread logged before execve, in another page, go into the trace before the new ones. All notes about
 * them are taken already, because the new program's notes come later. */
static int past_take(struct process_drain *drain, uint32_t number)
{
  const struct process_state *page = drain_page(drain, number);
  const struct drain_slot *slot = &drain->slots[number];
  int r = 0;

  for (uint32_t i = 0; i < drain->high && r >= 0; i++) {
    const struct drain_slot *past = &drain->slots[i];
    struct drain_view view;

    if (i == number || !past->is_open || past->process != slot->process || past->thread != slot->thread ||
        drain_page(drain, i)->numbering != page->numbering)
      continue;
    view = slot_look(drain, i, true);
    if (view.status == THREAD_GONE)
      r = slot_take(drain, i, &view, 0);
  }
  return r;
}

/* Sets the slot to the first wanted entry. The oldest part is left out if its thread began to overwrite it just before
 * the ring was closed. */
static int window_begin(struct process_drain *drain, uint32_t number)
{
  struct drain_slot *slot = &drain->slots[number];
  const struct drain_window *window = &drain->windows[number];
  uint64_t kept = ring_first(drain->process, number), first = window->first > kept ? window->first : kept;

  first = first < window->end ? first : window->end;
  slot->read = first / part_entries(drain);
  slot->taken = (uint32_t)(first % part_entries(drain));
  if (!first || slot->is_ignored)
    return 0;
  return lb_trace_writer_gap(drain->writer, &(struct lb_trace_gap){.stream = slot->stream, .reason = LB_TRACE_LOST});
}

static int slot_open_one(struct process_drain *drain, uint32_t number)
{
  const struct process_state *page = drain_page(drain, number);
  struct drain_slot *slot = &drain->slots[number];
  int r;

  *slot = (struct drain_slot){
    .is_open = true,
    .space = __atomic_load_n(&page->space, __ATOMIC_RELAXED),
    .process = __atomic_load_n(&page->process, __ATOMIC_RELAXED),
    .thread = __atomic_load_n(&page->thread, __ATOMIC_RELAXED),
    .read = __atomic_load_n(&page->read, __ATOMIC_RELAXED),
    .view = slot->view,
    .moved = drain->now,
    .begun = drain->now,
  };
  drain_space_enter(drain, slot->space);
  slot->is_ignored = __atomic_load_n(&page->is_unwanted, __ATOMIC_RELAXED);
  if (slot->is_ignored)
    return 0;
  drain_thread_begins(drain, slot, __atomic_load_n(&page->creator, __ATOMIC_RELAXED));
  drain_title_begins(slot);
  r = drain_jit_attach(drain, slot->space);
  if (r >= 0)
    r = past_take(drain, number);
  if (r >= 0)
    r = stream_new(drain, page, slot);
  return r >= 0 && drain->windows ? window_begin(drain, number) : r;
}

/* Whether the thread is new and can be opened. Its space must be in the trace before it. */
static bool slot_is_new(const struct process_drain *drain, uint32_t number)
{
  const struct process_state *page = drain_page(drain, number);
  uint32_t status = __atomic_load_n(&page->status, __ATOMIC_ACQUIRE);

  if (drain->windows && !drain->windows[number].is_wanted)
    return false;
  return !drain->slots[number].is_open && (status == THREAD_LIVE || status == THREAD_GONE) &&
         drain_space_is_known(drain, __atomic_load_n(&page->space, __ATOMIC_RELAXED));
}

static uint32_t slot_place(const struct process_drain *drain, uint32_t number)
{
  return __atomic_load_n(&drain_page(drain, number)->place, __ATOMIC_RELAXED);
}

/* Opens new threads in the order of their creation, up to this one: streams are numbered in that order, whichever pages
 * the threads got. */
static int slot_open(struct process_drain *drain, uint32_t number)
{
  int r = 0;

  while (r >= 0 && !drain->slots[number].is_open) {
    uint32_t first = number;

    for (uint32_t i = 0; i < drain->high; i++)
      if (slot_is_new(drain, i) && (int32_t)(slot_place(drain, i) - slot_place(drain, first)) < 0)
        first = i;
    r = slot_open_one(drain, first);
  }
  return r;
}

/* The view was taken before the notes. While notes were taken, entries beyond the view may have been taken too. The
 * view then has nothing new. */
static void view_catch_up(struct drain_slot *slot)
{
  if ((int64_t)(slot->view.written - slot->read) >= 0)
    return;
  slot->view.written = slot->read;
  slot->view.position = 0;
}

/* A part is in the trace: lets the thread fill it again. */
static void part_return(struct process_drain *drain, uint32_t number)
{
  struct process_state *page = drain_page(drain, number);
  struct drain_slot *slot = &drain->slots[number];

  slot->read++;
  slot->taken = 0;
  view_catch_up(slot);
  if (drain->windows)
    return;
  __atomic_store_n(&page->read, slot->read, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&page->is_waiting, __ATOMIC_SEQ_CST))
    drain_wake(&page->read);
}

/* Copies entries, some at a time, until one names step `step` or a later one. Returns the number of entries before it.
 * When code has changed and that entry enters a path that took the place of a stale one, the entry before it is the
 * branch to the stale path, and belongs to the new one, too. */
static uint32_t entries_copy(struct process_drain *drain, const uint32_t *entries, uint32_t count, uint32_t step)
{
  enum { BLOCK = 4096 };
  uint32_t copied = 0, at = 0, last = 0; /* `last`: the place of the entry before */

  while (at < count) {
    if (at >= copied) {
      uint32_t size = count - copied < BLOCK ? count - copied : BLOCK;

      memcpy(drain->entries + copied, entries + copied, (size_t)size * sizeof(uint32_t));
      copied += size;
    } else if (drain->entries[at] == LB_ENTRY_EVENT) {
      at += 1 + LB_ENTRY_EVENT_WORDS;
      last = at;
    } else if ((drain->entries[at] & ~LB_ENTRY_ENTER) >= step) {
      return drain->is_code_changing && drain->entries[at] & LB_ENTRY_ENTER ? last : at;
    } else {
      last = at++;
    }
  }
  if (copied < count) /* the words of an event at the end */
    memcpy(drain->entries + copied, entries + copied, (size_t)(count - copied) * sizeof(uint32_t));
  return count;
}

/* Writes the entries of one part up to `end`. `step` is as in drain_settle, 0 for all. The writer reads each entry
 * once, in place. Returns 1; 0 if it reached `step`; or negative. */
static int part_give(struct process_drain *drain, uint32_t number, uint32_t end, uint32_t step)
{
  struct drain_slot *slot = &drain->slots[number];
  const uint8_t *log =
    drain->process->memory + slot_log(drain, number) + slot->read % PROCESS_PARTS * (size_t)drain->process->part_size;
  const uint32_t *entries = (const uint32_t *)log + slot->taken;
  uint32_t count = end - slot->taken, wanted = count;
  int r;

  if (!process_has(drain->process, (uint64_t)((const uint8_t *)entries - drain->process->memory),
                   (uint64_t)count * sizeof(uint32_t)))
    return slot_spoil(drain, slot); /* 0 or negative */
  if (step) {
    wanted = entries_copy(drain, entries, count, step);
    entries = drain->entries;
  }
  slot->taken += wanted;
  slot->moved = drain->moved = drain->now;
  drain->is_flushed = false;
  drain->entry_count += wanted;
  drain->giving = slot;
  r = lb_trace_writer_entries(drain->writer, slot->stream, entries, wanted);
  if (r >= 0 && drain->limit && lb_trace_writer_size(drain->writer).bytes >= drain->limit)
    r = drain_limit_reached(drain);
  return r < 0 ? r : wanted == count;
}

static int slot_give(struct process_drain *drain, uint32_t number, const struct drain_view *view, uint32_t step)
{
  struct drain_slot *slot = &drain->slots[number];
  int r = 1;

  while (r > 0 && (int64_t)(view->written - slot->read) > 0) { /* at most PROCESS_PARTS: slot_take */
    if (slot->taken < part_entries(drain))
      r = part_give(drain, number, part_entries(drain), step);
    if (slot->taken == part_entries(drain))
      part_return(drain, number);
  }
  if (r > 0 && slot->read == view->written && slot->taken < view->position)
    r = part_give(drain, number, view->position, step);
  return r < 0 ? r : 0;
}

/* Discards the entries of a thread that is ignored, so that the thread does not wait for the drain. */
static void slot_discard(struct process_drain *drain, uint32_t number, const struct drain_view *view)
{
  struct process_state *page = drain_page(drain, number);

  if (drain->windows)
    return;
  __atomic_store_n(&page->read, view->written, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&page->is_waiting, __ATOMIC_SEQ_CST))
    drain_wake(&page->read);
}

int slot_take(struct process_drain *drain, uint32_t number, const struct drain_view *view, uint32_t step)
{
  struct drain_slot *slot = &drain->slots[number];
  int64_t parts;
  int r = 0;

  assert(number < PROCESS_THREADS);
  if (view->status != THREAD_LIVE && view->status != THREAD_GONE)
    return 0;
  if (!slot->is_open)
    r = slot_open(drain, number);
  parts = (int64_t)(view->written - slot->read);
  if (r >= 0 && !slot->is_ignored && (parts > PROCESS_PARTS || parts < -PROCESS_PARTS))
    r = slot_spoil(drain, slot);
  if (r >= 0 && !slot->is_ignored)
    return slot_give(drain, number, view, step);
  slot_discard(drain, number, view);
  return r;
}

int slot_end(struct process_drain *drain, uint32_t number)
{
  const struct drain_slot *slot = &drain->slots[number];
  bool is_cut = drain->windows ? drain->windows[number].has_more
                               : __atomic_load_n(&drain_page(drain, number)->is_cut, __ATOMIC_RELAXED);
  int r = drain_title_ends(drain, number);

  if (r < 0 || !slot->is_open || slot->is_ignored)
    return r;
  if (is_cut)
    r = lb_trace_writer_gap(drain->writer, &(struct lb_trace_gap){.stream = slot->stream, .reason = LB_TRACE_LOST});
  if (r < 0)
    return r;
  return trace_writer_end(drain->writer, slot->stream);
}

void slot_close(struct process_drain *drain, uint32_t number)
{
  struct process_state *page = drain_page(drain, number);
  struct drain_slot *slot = &drain->slots[number];
  uint32_t status = __atomic_load_n(&page->status, __ATOMIC_ACQUIRE);

  assert(number < PROCESS_THREADS);
  if (status < THREAD_GONE) /* otherwise the thread has announced its end, even if it looked dead before, or the
                               program overwrote the status */
    status = slot->is_dead ? THREAD_LIVE : THREAD_GONE;
  drain_thread_ends(drain, slot, __atomic_load_n(&page->end, __ATOMIC_RELAXED));
  drain->waited += slot_waited(drain, number);
  if (slot->is_open)
    drain_space_leave(drain, slot->space);
  *slot = (struct drain_slot){0};
  if (drain->windows) {
    drain->windows[number].is_wanted = false;
    return;
  }
  if (number >= WARM_SLOTS)
    madvise(drain->process->memory + slot_log(drain, number), (size_t)PROCESS_PARTS * drain->process->part_size,
            MADV_REMOVE);
  __atomic_compare_exchange_n(&page->status, &status, THREAD_FREE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
