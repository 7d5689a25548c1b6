/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes for the parent: what is mapped where, code that is in no file, new address spaces. All processes write to the
 * same notes, one behind another.
 */
#include "process/runtime.h"

void note_put(struct runtime *runtime, enum process_note_type type, uint32_t space, uint64_t start, uint64_t end,
              uint64_t offset, const void *bytes, uint32_t length)
{
  struct process_control *control = runtime->control;
  uint64_t size = (sizeof(struct process_note) + length + 7) & ~7ull;
  uint64_t at = __atomic_fetch_add(&control->notes_used, size, __ATOMIC_RELAXED);
  if (at > runtime->notes_size || size > runtime->notes_size - at)
    runtime_fail(PROCESS_E_NOTES_FULL, 0, start);
  struct process_note *note = (struct process_note *)(runtime->notes + at);
  note->type = type;
  note->space = space;
  bool has_numbers = runtime->number_space == space && runtime->number_next < runtime->number_end;
  note->step = has_numbers ? runtime->number_next : __atomic_load_n(&control->step_count, __ATOMIC_RELAXED);
  note->start = start;
  note->end = end;
  note->offset = offset;
  note->length = length;
  memcpy(note + 1, bytes, length);
  __atomic_store_n(&note->size, (uint32_t)size, __ATOMIC_RELEASE);
}
