/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of threads in the shared memory, which have numbers (slots). All processes take pages from the same memory,
 * without a lock.
 */
#include <asm/unistd.h>

#include "process/runtime/runtime.h"

struct process_state *slot_state(const struct runtime *runtime, uint32_t slot)
{
  return (struct process_state *)((uint8_t *)runtime->threads + (uint64_t)slot * PROCESS_PAGE);
}

static uint32_t pages_count(const struct runtime *runtime)
{
  uint32_t high = __atomic_load_n(&runtime->control->thread_high, __ATOMIC_ACQUIRE);

  return high < PROCESS_THREADS ? high : PROCESS_THREADS;
}

bool slot_change(struct process_state *page, uint32_t from, uint32_t to)
{
  return __atomic_compare_exchange_n(&page->status, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Takes a page that was never used. This and the next function return THREAD_NO_SLOT if there is none. */
static uint32_t page_take_new(const struct runtime *runtime)
{
  uint32_t slot;

  while ((slot = pages_count(runtime)) < PROCESS_THREADS) {
    uint32_t expected = slot;

    __atomic_compare_exchange_n(&runtime->control->thread_high, &expected, slot + 1, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
    if (slot_change(slot_state(runtime, slot), THREAD_FREE, THREAD_STARTING))
      return slot;
  }
  return THREAD_NO_SLOT;
}

static uint32_t page_take_free(const struct runtime *runtime)
{
  uint32_t count = pages_count(runtime);

  for (uint32_t slot = 0; slot < count; slot++)
    if (slot_change(slot_state(runtime, slot), THREAD_FREE, THREAD_STARTING))
      return slot;
  return THREAD_NO_SLOT;
}

/* The page of the thread that ended first. Used where no drain frees pages. */
static uint32_t page_find_ended(const struct runtime *runtime)
{
  uint32_t now = __atomic_load_n(&runtime->control->bell, __ATOMIC_RELAXED), most = 0, oldest = THREAD_NO_SLOT;

  for (uint32_t slot = 0; slot < PROCESS_THREADS; slot++) {
    const struct process_state *page = slot_state(runtime, slot);
    uint32_t age = now - page->ended;

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) == THREAD_GONE && (age > most || oldest == THREAD_NO_SLOT)) {
      most = age;
      oldest = slot;
    }
  }
  return oldest;
}

/* Other threads may search at the same time. */
static uint32_t page_take_ended(const struct runtime *runtime)
{
  uint32_t slot;

  do
    slot = page_find_ended(runtime);
  while (slot != THREAD_NO_SLOT && !slot_change(slot_state(runtime, slot), THREAD_GONE, THREAD_STARTING));
  return slot;
}

/* Marks the pages of threads that were killed and could not announce their end. Threads of another PID namespace cannot
 * be checked. */
static void pages_bury(struct runtime *runtime, uint32_t numbering)
{
  for (uint32_t slot = 0; slot < PROCESS_THREADS; slot++) {
    const struct process_state *page = slot_state(runtime, slot);
    uint32_t serial = page->serial;

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) == THREAD_LIVE && page->numbering == numbering &&
        kernel_call(__NR_tgkill, page->process, page->thread, 0, 0, 0, 0) == -ESRCH)
      thread_bury(runtime, slot, serial);
  }
}

/* In mode PROCESS_ALL the parent frees pages once it has read their logs. Low pages are taken first; if there is none,
 * the thread waits, but not for ever, unless lbr has attached to the process, which must not fail because of that. In
 * the other mode the last logs must stay: pages that were never used are taken first. */
uint32_t slot_take(struct runtime *runtime, uint32_t numbering)
{
  enum { TRIES = 20000, LOOK = 64, MILLISECOND = 1000000 };
  const int64_t time[2] = {0, MILLISECOND};

  for (unsigned i = 0; i < TRIES || runtime->options & PROCESS_ATTACHED; i++) {
    bool is_read = runtime->mode == PROCESS_ALL && !__atomic_load_n(&runtime->control->is_closed, __ATOMIC_RELAXED);
    uint32_t slot = is_read ? page_take_free(runtime) : page_take_new(runtime);

    if (slot == THREAD_NO_SLOT)
      slot = is_read ? page_take_new(runtime) : page_take_free(runtime);
    if (slot == THREAD_NO_SLOT && !is_read)
      slot = page_take_ended(runtime);
    if (slot != THREAD_NO_SLOT)
      return slot;
    if (i == 0)
      pages_bury(runtime, numbering);
    else if (!is_read)
      break;
    runtime_ring(runtime);
    kernel_call(__NR_nanosleep, (uint64_t)time, 0, 0, 0, 0, 0);
    if (i % LOOK == LOOK - 1 && runtime->has_thread)
      log_look_for_parent(thread_self());
  }
  return THREAD_NO_SLOT;
}

static void page_end(struct runtime *runtime, struct process_state *page)
{
  page->ended = __atomic_load_n(&runtime->control->bell, __ATOMIC_RELAXED);
  __atomic_store_n(&page->status, THREAD_GONE, __ATOMIC_RELEASE);
  runtime_ring(runtime);
}

void thread_end(struct thread *thread, enum process_end end, uint64_t status)
{
  if (thread->is_unrecorded)
    return;
  stamp_used(thread, STAMP_TIME);
  stamp_put(thread, STAMP_END, end | status << 8);
  thread->state->end = end;
  thread->state->end_status = status;
  page_end(thread->runtime, thread->state);
}

void thread_bury(struct runtime *runtime, uint32_t slot, uint32_t serial)
{
  struct process_state *page = slot < PROCESS_THREADS ? slot_state(runtime, slot) : NULL;

  if (page && page->serial == serial && slot_change(page, THREAD_LIVE, THREAD_GONE))
    page_end(runtime, page);
}

/* Scans all pages only if there is more than one to find: under `lbr run` there are as many as there were threads. */
void thread_bury_all(struct runtime *runtime, uint32_t slot, bool is_alone)
{
  uint32_t count = pages_count(runtime), process = (uint32_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0);

  if (slot >= count || slot_state(runtime, slot)->process != process)
    return;
  runtime->numbering = slot_state(runtime, slot)->numbering;
  count = is_alone ? slot + 1 : count;
  for (slot = is_alone ? slot : 0; slot < count; slot++) {
    struct process_state *page = slot_state(runtime, slot);

    if (page->process != process || page->numbering != runtime->numbering ||
        __atomic_load_n(&page->status, __ATOMIC_ACQUIRE) != THREAD_LIVE)
      continue;
    page->end = END_EXEC;
    thread_bury(runtime, slot, page->serial);
  }
}
