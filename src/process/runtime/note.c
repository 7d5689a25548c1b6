/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes for the parent: mappings, code that is in no file, new address spaces. All processes append to the same notes.
 */
#include "process/runtime/runtime.h"

/* The last quarter is reserved for notes about mappings and programs. */
static bool is_nearly_full(const struct runtime *runtime)
{
  return __atomic_load_n(&runtime->control->notes_used, __ATOMIC_RELAXED) > runtime->notes_size / 4 * 3;
}

static void lose_code(struct process_control *control, uint32_t step)
{
  uint32_t lost = __atomic_load_n(&control->code_lost, __ATOMIC_RELAXED);

  while ((!lost || step < lost) &&
         !__atomic_compare_exchange_n(&control->code_lost, &lost, step, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

static uint64_t put(struct runtime *runtime, const struct process_note *from, const void *bytes)
{
  uint64_t size = (sizeof(*from) + from->length + 7) & ~7ull;
  uint64_t at = __atomic_fetch_add(&runtime->control->notes_used, size, __ATOMIC_RELAXED);
  struct process_note *note = (struct process_note *)share_note(runtime, at, size);

  if (!note)
    runtime_fail(PROCESS_E_NOTES_FULL, 0, from->start);
  runtime_assert(!from->size);
  *note = *from;
  memcpy(note + 1, bytes, from->length);
  __atomic_store_n(&note->size, (uint32_t)size, __ATOMIC_RELEASE);
  return at;
}

uint64_t note_put(struct runtime *runtime, enum process_note_type type, uint32_t space, uint64_t start, uint64_t end,
                  uint64_t offset, const void *bytes, uint32_t length)
{
  struct process_control *control = runtime->control;
  bool has_numbers = runtime->number_space == space && runtime->number_next < runtime->number_end;
  uint32_t step = has_numbers ? runtime->number_next : __atomic_load_n(&control->step_count, __ATOMIC_RELAXED);

  if (type == NOTE_CODE && is_nearly_full(runtime)) {
    lose_code(control, step);
    return 0;
  }
  return put(
    runtime,
    &(struct process_note){
      .type = type, .space = space, .step = step, .start = start, .end = end, .offset = offset, .length = length},
    bytes);
}

void note_put_stored(struct runtime *runtime, uint32_t space, const struct module *module, const char *path)
{
  put(runtime,
      &(struct process_note){.type = NOTE_MAP,
                             .space = space,
                             .start = module->start,
                             .end = module->end,
                             .offset = module->offset,
                             .length = (uint32_t)text_length(path)},
      path);
}
