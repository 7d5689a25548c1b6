/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the logs that programs fill in shared memory into the trace, part after part, while the programs run (`lbr
 * record`). Each round first reads how far all logs have been written, then takes the notes written by then, and then
 * the entries. A module is therefore in the trace before the branches that ran in it. The programs can write to the
 * shared memory, so all sizes come from lbr, and every other value is read once and then checked.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lastbranch/error.h"
#include "process/drain.h"

#define ROUND_SECONDS 0.5   /* for taking entries, before signals are checked again */
#define FINISH_SECONDS 20.0 /* for everything that is left at the end: the logs of all threads can be large */
#define IDLE_SECONDS 1.0    /* without new entries, before parts that are not full are taken and the file is flushed */

/* ---- the end ---- */

/* From now on, no thread waits for the drain. */
static void logs_release(struct process_drain *drain)
{
  __atomic_store_n(&drain_control(drain)->is_closed, 1, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < drain->high; i++) {
    struct process_state *page = drain_page(drain, i);

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) != THREAD_LIVE)
      continue;
    __atomic_store_n(&page->read, __atomic_load_n(&page->written, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
    drain_wake(&page->read);
  }
}

static int drain_stop(struct process_drain *drain, enum process_drain_end end, int error)
{
  if (drain->state.end == DRAIN_NONE) {
    drain->state.end = end;
    drain->state.error = error;
    logs_release(drain);
  }
  return drain->state.error;
}

int drain_limit_reached(struct process_drain *drain)
{
  const struct lb_trace_gap gap = {.stream = LB_TRACE_ALL, .reason = LB_TRACE_LOST};
  int r = lb_trace_writer_gap(drain->writer, &gap);

  if (r >= 0)
    r = lb_trace_writer_meta(drain->writer, &(struct lb_trace_meta){"remark", "reached its size limit"});
  return r < 0 ? drain_stop(drain, DRAIN_FAILED, r) : drain_stop(drain, DRAIN_LIMIT, -EFBIG);
}

/* ---- all threads ---- */

int drain_settle(struct process_drain *drain, uint32_t space, uint32_t step)
{
  int r = 0;

  for (uint32_t i = 0; i < drain->high && r >= 0; i++) {
    struct drain_view view = slot_look(drain, i, true);

    if (__atomic_load_n(&drain_page(drain, i)->space, __ATOMIC_RELAXED) == space)
      r = slot_take(drain, i, &view, step ? step : 1);
  }
  return r;
}

int drain_settle_code(struct process_drain *drain, uint32_t space, uint32_t step)
{
  int r;

  drain->is_code_changing = true;
  r = drain_settle(drain, space, step);
  drain->is_code_changing = false;
  return r;
}

/* Remembers how far all logs have been written. Entries that are logged later are not taken in this round. */
static void slots_look(struct process_drain *drain, bool is_whole)
{
  uint32_t high = __atomic_load_n(&drain_control(drain)->thread_high, __ATOMIC_ACQUIRE);

  if (high > PROCESS_THREADS)
    high = PROCESS_THREADS;
  for (; drain->high < high; drain->high++)
    drain->slots[drain->high].moved = drain->now;
  for (uint32_t i = 0; i < drain->high; i++) {
    slot_mend(drain, i);
    drain->slots[i].view = slot_look(drain, i, is_whole);
  }
}

/* Takes the entries that slots_look saw. Returns 1; 0 if the time ran out, in which case the next round continues from
 * there; or negative. */
static int slots_take(struct process_drain *drain)
{
  double end = clock_seconds() + ROUND_SECONDS;
  uint32_t first = drain->next < drain->high ? drain->next : 0;
  int r = 1;

  for (uint32_t i = 0; i < drain->high && r > 0; i++) {
    uint32_t number = (first + i) % drain->high;
    struct drain_view view = drain->slots[number].view;
    int taken = slot_take(drain, number, &view, 0);

    drain->next = (number + 1) % drain->high;
    if (taken < 0)
      r = taken;
    else if (view.status == THREAD_GONE) {
      taken = slot_end(drain, number);
      r = taken < 0 ? taken : r;
      slot_close(drain, number);
    }
    if (r > 0 && view.status != THREAD_FREE && i + 1 < drain->high && clock_seconds() > end)
      r = 0;
  }
  return r;
}

/* One round. With `is_whole`, also takes the parts that are still being filled. Returns 1; 0 if a note is incomplete or
 * not everything was taken; or negative. */
static int drain_round(struct process_drain *drain, bool is_whole)
{
  int r;

  slots_look(drain, is_whole);
  r = drain_notes(drain);
  if (r <= 0)
    return r;
  drain_spaces_end(drain);
  return slots_take(drain);
}

/* Recording has ended, but the pages of ended threads are still freed: new threads need them. */
static void drain_idle(struct process_drain *drain)
{
  slots_look(drain, false);
  for (uint32_t i = 0; i < drain->high; i++) {
    struct drain_slot *slot = &drain->slots[i];

    if (!slot->is_open && slot->view.status == THREAD_LIVE) {
      slot->is_open = true;
      slot->process = __atomic_load_n(&drain_page(drain, i)->process, __ATOMIC_RELAXED);
      slot->thread = __atomic_load_n(&drain_page(drain, i)->thread, __ATOMIC_RELAXED);
      drain_thread_begins(drain, slot, 1);
    } else if (slot->view.status == THREAD_GONE) {
      slot_close(drain, i);
    }
  }
}

/* ---- from outside ---- */

static bool step_lookup(void *context, uint32_t number, struct lb_step *ret_step)
{
  struct process_drain *drain = context;

  return process_step_known(drain->process, number, drain->step_pages, ret_step);
}

int process_drain_new(struct process *process, struct lb_trace_writer *writer, uint64_t limit,
                      struct process_drain **ret_drain)
{
  struct process_drain *drain = calloc(1, sizeof(*drain));

  if (!drain)
    return -ENOMEM;
  drain->entries = malloc(process->part_size);
  drain->step_pages = calloc(process_step_pages(process), 1);
  if (!drain->entries || !drain->step_pages) {
    free(drain->entries);
    free(drain->step_pages);
    free(drain);
    return -ENOMEM;
  }
  drain->process = process;
  drain->writer = writer;
  drain->limit = limit;
  drain->now = drain->moved = drain->looked = clock_seconds();
  drain->is_flushed = true;
  lb_trace_writer_paths(writer, step_lookup, drain);
  (void)drain_stamps_begin(drain); /* the writer keeps its error */
  *ret_drain = drain;
  return 0;
}

int process_drain_window(struct process *process, struct lb_trace_writer *writer, uint64_t limit,
                         struct process_ring *ring, struct process_drain **ret_drain)
{
  int r = process_drain_new(process, writer, limit, ret_drain);

  if (r >= 0)
    (*ret_drain)->windows = ring_windows(ring);
  return r;
}

void process_drain_free(struct process_drain *drain)
{
  if (!drain)
    return;
  drain_notes_done(drain);
  drain_spaces_done(drain);
  drain_jit_done(drain);
  free(drain->entries);
  free(drain->step_pages);
  free(drain);
}

void process_drain_ring(const struct process *process)
{
  struct process_control *control = (struct process_control *)process->memory;

  __atomic_add_fetch(&control->bell, 1, __ATOMIC_SEQ_CST);
  drain_wake(&control->bell);
}

static void bell_wait(struct process_drain *drain, uint32_t heard, unsigned milliseconds)
{
  struct process_control *control = drain_control(drain);
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

  __atomic_store_n(&control->is_listening, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &control->bell, FUTEX_WAIT, heard, &time, NULL, 0); /* returns at once if it has rung */
  __atomic_store_n(&control->is_listening, 0, __ATOMIC_SEQ_CST);
}

/* One round, and the work for quiet times. */
static int drain_work(struct process_drain *drain)
{
  bool is_idle = drain->now - drain->moved > IDLE_SECONDS;
  int r = drain_round(drain, is_idle);

  if (r > 0 && is_idle && drain->moved < drain->now && !drain->is_flushed) {
    r = lb_trace_writer_flush(drain->writer);
    drain->is_flushed = true;
  }
  return r;
}

const struct process_drain_state *process_drain_step(struct process_drain *drain, unsigned milliseconds)
{
  uint32_t heard = __atomic_load_n(&drain_control(drain)->bell, __ATOMIC_SEQ_CST);
  bool is_missing = false; /* a note that is being written now */
  int r = 0;

  drain->now = clock_seconds();
  if (drain->state.end == DRAIN_NONE && process_is_destroyed(drain->process))
    drain_stop(drain, DRAIN_DESTROYED, LB_E_DAMAGED);
  if (drain->state.end == DRAIN_NONE) {
    r = drain_work(drain);
    is_missing = r == 0;
  } else {
    drain_idle(drain);
  }
  if (r > 0) {
    r = drain_jit_look(drain);
    if (r >= 0)
      r = drain_titles_look(drain, false);
  }
  if (r < 0)
    drain_stop(drain, DRAIN_FAILED, r);
  drain_look_for_dead(drain);
  if (drain->state.end != DRAIN_NONE || drain->moved < drain->now)
    bell_wait(drain, heard, is_missing ? 1 : milliseconds);
  return &drain->state;
}

/* Takes everything. Waits for a note that is being written. */
static int drain_all(struct process_drain *drain)
{
  double end = clock_seconds() + FINISH_SECONDS;
  int r = 0;

  for (unsigned i = 0; r == 0 && clock_seconds() < end; i++) {
    drain->now = clock_seconds();
    r = drain_round(drain, true);
    if (r == 0)
      usleep(1000);
  }
  return r;
}

/* Marks the end of recording in every thread that is still alive. */
static int gaps_put(struct process_drain *drain)
{
  int r = 0;

  for (uint32_t i = 0; i < drain->high && r >= 0; i++) {
    const struct drain_slot *slot = &drain->slots[i];

    if (slot->is_open && !slot->is_ignored && slot->view.status == THREAD_LIVE)
      r = lb_trace_writer_gap(drain->writer, &(struct lb_trace_gap){.stream = slot->stream, .reason = LB_TRACE_LOST});
  }
  return r;
}

const struct process_drain_state *process_drain_finish(struct process_drain *drain, bool is_over)
{
  int r;

  if (drain->state.end == DRAIN_NONE && process_is_destroyed(drain->process))
    drain_stop(drain, DRAIN_DESTROYED, LB_E_DAMAGED);
  if (drain->state.end != DRAIN_NONE)
    return &drain->state;
  r = drain_all(drain);
  if (r >= 0)
    r = drain_jit_end(drain, 0);
  if (r >= 0)
    r = drain_titles_look(drain, true);
  if (r >= 0 && !is_over)
    r = gaps_put(drain);
  if (r < 0)
    drain_stop(drain, DRAIN_FAILED, r);
  else
    drain_stop(drain, DRAIN_DONE, 0);
  return &drain->state;
}
