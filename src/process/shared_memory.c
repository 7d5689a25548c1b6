/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the shared memory: threads, their entries, steps and notes. The programs write to it while we read, and may
 * write anything: every value is read once and checked before it is used, and all sizes come from struct process.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "process/process.h"
#include "process/shared.h"

static struct process_control *control_of(const struct process *process)
{
  return (struct process_control *)(void *)process->memory;
}

enum { MANY_PAGES = 256 };

/* Whether all pages of a range are in memory. A page that is not may still exist: it may be swapped out. */
static bool pages_are_resident(const struct process *process, uint64_t first, uint64_t end)
{
  unsigned char pages[MANY_PAGES];

  for (uint64_t at = first; at < end; at += (uint64_t)MANY_PAGES * PROCESS_PAGE) {
    uint64_t count = (end - at + PROCESS_PAGE - 1) / PROCESS_PAGE;

    count = count < MANY_PAGES ? count : MANY_PAGES;
    if (mincore(process->memory + at, count * PROCESS_PAGE, pages) < 0)
      return false;
    for (uint64_t i = 0; i < count; i++)
      if (!(pages[i] & 1))
        return false;
  }
  return true;
}

/* A page exists as a whole or not at all, so only a range of several pages needs SEEK_HOLE. SEEK_HOLE takes time for
 * each page up to the next hole, however far away that is, so mincore is asked first. */
bool process_has(const struct process *process, uint64_t offset, uint64_t size)
{
  bool is_one_page = offset % PROCESS_PAGE + size <= PROCESS_PAGE;

  if (process->fd <= 0 || (!is_one_page && pages_are_resident(process, offset - offset % PROCESS_PAGE, offset + size)))
    return true;
  return lseek(process->fd, (off_t)offset, SEEK_DATA) == (off_t)offset &&
         (is_one_page || lseek(process->fd, (off_t)offset, SEEK_HOLE) >= (off_t)(offset + size));
}

/* ---- threads ---- */

uint32_t process_slots(const struct process *process)
{
  uint32_t high = __atomic_load_n(&control_of(process)->thread_high, __ATOMIC_ACQUIRE);

  return high < PROCESS_THREADS ? high : PROCESS_THREADS;
}

static struct process_state *state_of(const struct process *process, uint32_t slot)
{
  return (struct process_state *)(void *)(process->memory + process_thread_offset(slot));
}

static const uint8_t *part_of(const struct process *process, uint32_t slot, uint64_t number)
{
  uint64_t logs = process_logs_offset(process->notes_size, process->step_capacity);

  return process->memory + logs + ((uint64_t)slot * PROCESS_PARTS + number % PROCESS_PARTS) * process->part_size;
}

uint32_t process_position(const struct process *process, uint32_t slot, uint64_t written, uint64_t log,
                          uint64_t log_start, uint32_t known)
{
  uint64_t stride = (uint64_t)process->part_size + PROCESS_PAGE, offset = log - log_start;
  uint32_t position, most = process->part_size / 4;

  if (offset / stride != written % PROCESS_PARTS || offset % stride > process->part_size)
    return 0;
  const uint32_t *part = (const uint32_t *)(const void *)part_of(process, slot, written);
  position = (uint32_t)(offset % stride / 4);
  for (position = position > known ? position : known; position < most; position++)
    if (!__atomic_load_n(&part[position], __ATOMIC_RELAXED))
      break;
  return position;
}

_Static_assert(PROCESS_COMMAND == PROCESS_COMMAND_MOST, "");

bool process_thread(const struct process *process, uint32_t slot, struct process_thread *ret_thread)
{
  struct process_state *shared, state;

  if (slot >= process_slots(process))
    return false;
  shared = state_of(process, slot);
  uint32_t status = __atomic_load_n(&shared->status, __ATOMIC_ACQUIRE);
  if (status != THREAD_LIVE && status != THREAD_GONE)
    return false;
  uint64_t written = __atomic_load_n(&shared->written, __ATOMIC_ACQUIRE);
  memcpy(&state, shared, sizeof(state));
  if (state.is_unwanted)
    return false;
  state.written = written;
  state.log = __atomic_load_n(&shared->log, __ATOMIC_ACQUIRE);
  struct process_thread thread = {
    .slot = slot,
    .serial = state.serial,
    .status = status,
    .space = state.space,
    .process = state.process,
    .thread = state.thread,
    .creator = state.creator,
    .is_elsewhere = state.numbering != 0,
    .written = written,
    .read = state.read,
    .position = process_position(process, slot, written, state.log, state.log_start, 0),
    .end = state.end <= END_LEFT ? state.end : END_NONE,
    .end_status = state.end_status,
    .signal_code = state.signal_code,
    .signal_address = state.signal_address,
    .rip = state.death_rip,
    .flags = state.death_flags,
  };
  memcpy(thread.registers, state.death_registers, sizeof(thread.registers));
  memcpy(thread.name, state.name, sizeof(state.name));
  thread.has_top = state.has_top;
  thread.top = state.death_top;
  words_join(thread.command, state.command, sizeof(state.command) - 1);
  *ret_thread = thread;
  return true;
}

void process_release(const struct process *process, const struct process_thread *thread)
{
  struct process_state *shared = state_of(process, thread->slot);

  __atomic_store_n(&shared->released, thread->serial, __ATOMIC_RELEASE);
  syscall(SYS_futex, &shared->released, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool process_thread_is_live(const struct process_thread *thread)
{
  return thread->status == THREAD_LIVE;
}

bool process_thread_has_died(const struct process_thread *thread)
{
  return thread->end == END_SIGNAL && thread->end_status > 0 && thread->end_status < 65;
}

bool process_thread_has_exited(const struct process_thread *thread, bool *ret_is_group)
{
  *ret_is_group = thread->end == END_EXIT_GROUP;
  return thread->end == END_EXIT || thread->end == END_EXIT_GROUP;
}

/* If the executed program is recorded too, it sets the status of the old thread to GONE. A thread that is still LIVE
 * has executed a program that is not recorded. */
bool process_thread_is_native(const struct process_thread *thread)
{
  return thread->status == THREAD_LIVE && thread->end == END_EXEC;
}

/* ---- entries ---- */

/* Copies the entries from `first` to `last`, counted since the start of the log. They may lie in several parts. */
static void entries_copy(const struct process *process, uint32_t slot, uint64_t first, uint64_t last, uint32_t *to)
{
  const uint64_t size = process->part_size / 4;

  while (first < last) {
    uint64_t number = first / size, end = (number + 1) * size < last ? (number + 1) * size : last;

    memcpy(to, part_of(process, slot, number) + first % size * 4, (end - first) * 4);
    to += end - first;
    first = end;
  }
}

/* Whether the pages of these entries exist: a program can free the memory of its log. */
static bool entries_are_there(const struct process *process, uint32_t slot, uint64_t first, uint64_t last)
{
  const uint64_t size = process->part_size / 4;
  bool is_there = true;

  while (first < last && is_there) {
    uint64_t number = first / size, end = (number + 1) * size < last ? (number + 1) * size : last;
    const uint8_t *start = part_of(process, slot, number) + first % size * 4;

    is_there = process_has(process, (uint64_t)(start - process->memory), (end - first) * 4);
    first = end;
  }
  return is_there;
}

/* Returns the number of the first entry that was not overwritten while the entries were copied. */
static uint64_t entries_kept(const struct process *process, uint32_t slot)
{
  uint64_t written = __atomic_load_n(&state_of(process, slot)->written, __ATOMIC_SEQ_CST);

  return written < PROCESS_PARTS ? 0 : (written - PROCESS_PARTS + 1) * (process->part_size / 4);
}

int process_entries_last(const struct process *process, const struct process_thread *thread, size_t most,
                         uint32_t **ret_entries, size_t *ret_count, bool *ret_is_cut)
{
  const uint64_t size = process->part_size / 4,
                 parts = thread->status == THREAD_LIVE ? PROCESS_PARTS - 2 : PROCESS_PARTS - 1;

  if (thread->slot >= PROCESS_THREADS || thread->position > size || thread->written > UINT64_MAX / size - 1)
    return 0;
  uint64_t last = thread->written * size + thread->position;
  uint64_t first = thread->written > parts ? (thread->written - parts) * size : 0;
  if (last - first > most)
    first = last - most;
  uint32_t *entries = reallocarray(*ret_entries, *ret_count + (size_t)(last - first) + 1, sizeof(*entries));
  if (!entries)
    return -ENOMEM;
  *ret_entries = entries;
  entries += *ret_count;
  if (!entries_are_there(process, thread->slot, first, last))
    return 0;
  entries_copy(process, thread->slot, first, last, entries);
  uint64_t kept = entries_kept(process, thread->slot);
  if (kept > first) {
    uint64_t lost = kept < last ? kept - first : last - first;

    memmove(entries, entries + lost, (size_t)(last - first - lost) * sizeof(*entries));
    first += lost;
  }
  *ret_count += (size_t)(last - first);
  *ret_is_cut = first > 0;
  return 0;
}

int process_entries(const struct process *process, const struct process_thread *thread, uint32_t **ret_entries,
                    size_t *ret_count, bool *ret_is_cut)
{
  return process_entries_last(process, thread, SIZE_MAX, ret_entries, ret_count, ret_is_cut);
}

/* ---- steps ---- */

bool process_step(const struct process *process, uint32_t number, struct lb_step *ret_step)
{
  struct lb_step step;

  if (number == 0 || number >= process->step_capacity)
    return false;
  memcpy(&step, process->memory + process_steps_offset(process->notes_size) + (uint64_t)number * sizeof(step),
         sizeof(step));
  bool is_head = step.flags & LB_STEP_HEAD;
  if (step.head == 0 || step.head > number || is_head != (step.head == number) || number - step.head > UINT8_MAX)
    return false;
  if (!is_head && step.kind >= LB_BRANCH_KINDS)
    return false;
  *ret_step = step;
  return true;
}

size_t process_step_pages(const struct process *process)
{
  return (uint64_t)process->step_capacity * sizeof(struct lb_step) / PROCESS_PAGE / 8 + 1;
}

bool process_step_known(const struct process *process, uint32_t number, uint8_t *pages, struct lb_step *ret_step)
{
  uint64_t page = (uint64_t)number * sizeof(*ret_step) / PROCESS_PAGE;
  uint8_t bit = (uint8_t)(1 << page % 8);

  if (number >= process->step_capacity)
    return false;
  if (!(pages[page / 8] & bit)) {
    if (!process_has(process, process_steps_offset(process->notes_size) + page * PROCESS_PAGE, PROCESS_PAGE))
      return false;
    pages[page / 8] |= bit;
  }
  return process_step(process, number, ret_step);
}

/* ---- notes ---- */

bool process_note(const struct process *process, uint64_t *offset, struct process_note *ret_note,
                  const uint8_t **ret_bytes)
{
  struct process_note note;
  uint64_t at = *offset;

  if (at > process->notes_size || process->notes_size - at < sizeof(note) || at % 8)
    return false;
  const uint8_t *bytes = process->memory + process_notes_offset() + at;
  uint32_t size = __atomic_load_n((const uint32_t *)(const void *)bytes, __ATOMIC_ACQUIRE);
  if (size < sizeof(note) || size % 8 || size > process->notes_size - at || size > PROCESS_NOTE_MOST)
    return false;
  memcpy(&note, bytes, sizeof(note));
  note.size = size;
  if (note.length > size - sizeof(note) || note.type < NOTE_MAP || note.type >= NOTE_TYPES)
    return false;
  *offset = at + size;
  *ret_note = note;
  *ret_bytes = bytes + sizeof(note);
  return true;
}
