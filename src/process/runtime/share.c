/* SPDX-License-Identifier: Apache-2.0
 *
 * The mappings of the shared memory. Steps and notes have room for far more than most programs need. They are mapped
 * piece by piece, so that only used pieces take address space. The addresses of all pieces are chosen at the start.
 */
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum {
  STEPS_PIECE = 1 << 20,      /* steps that are mapped at a time */
  NOTES_WINDOW = 32 << 20,    /* bytes of notes that are mapped; two of these */
  NOTES_FILTERED = 512 << 20, /* mapped before a filter is installed; nothing can be mapped after that */
  STEPS_FILTERED = 1 << 24,
  PIECES_LATER = 16, /* pieces of steps that must still fit within the program's limit */
};

/* A child of vfork may have its own table of descriptors. */
static int shared_fd(const struct runtime *runtime)
{
  return runtime->has_thread ? *thread_self()->fd : runtime->fd;
}

static bool piece_map(uint64_t address, uint64_t size, unsigned flags, int fd, uint64_t offset)
{
  int64_t result = kernel_map(address, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, offset);

  if (!is_failure(result) && result != (int64_t)address) { /* an old kernel takes the address as a hint */
    kernel_call(__NR_munmap, (uint64_t)result, size, 0, 0, 0, 0);
    return false;
  }
  if (!is_failure(result))
    kernel_call(__NR_madvise, address, size, MADV_DONTDUMP, 0, 0, 0);
  return !is_failure(result);
}

void share_init(struct runtime *runtime)
{
  uint64_t capacity = (runtime->step_capacity + (uint64_t)STEPS_PIECE - 1) / STEPS_PIECE * STEPS_PIECE;

  runtime->steps = (struct lb_step *)place_keep(capacity * sizeof(*runtime->steps));
  runtime->local = (union step_local *)place_keep(capacity * sizeof(*runtime->local));
  runtime->notes = (uint8_t *)place_keep(NOTES_FILTERED);
  runtime->ways = (struct way *)place_keep(CACHE_UNITS * sizeof(struct way));
}

/* ---- steps ---- */

static bool steps_map_piece(struct runtime *runtime, uint64_t first)
{
  uint64_t size = STEPS_PIECE * sizeof(*runtime->steps), local = STEPS_PIECE * sizeof(*runtime->local);
  uint64_t offset = process_steps_offset(runtime->notes_size) + first * sizeof(*runtime->steps);

  return piece_map((uint64_t)(runtime->steps + first), size, MAP_SHARED | MAP_FIXED_NOREPLACE, shared_fd(runtime),
                   offset) &&
         piece_map((uint64_t)(runtime->local + first), local, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

bool share_steps(struct runtime *runtime, uint32_t first, uint32_t end)
{
  for (uint32_t piece = first / STEPS_PIECE; piece <= (end - 1) / STEPS_PIECE; piece++) {
    uint8_t *mark = &runtime->steps_mapped[piece / 8], bit = (uint8_t)(1 << piece % 8);

    if (*mark & bit)
      continue;
    if (runtime->is_confined || !steps_map_piece(runtime, (uint64_t)piece * STEPS_PIECE))
      return false;
    *mark |= bit;
    runtime->piece_count++;
  }
  return true;
}

bool share_has_step(const struct runtime *runtime, uint32_t number)
{
  uint32_t piece = number / STEPS_PIECE;

  return number < runtime->step_capacity && runtime->steps_mapped[piece / 8] >> piece % 8 & 1;
}

/* ---- notes ---- */

static bool notes_map(struct runtime *runtime, uint64_t at, uint64_t size)
{
  uint64_t start = at / NOTES_WINDOW * NOTES_WINDOW;
  uint64_t end = start + size < runtime->notes_size ? start + size : runtime->notes_size;

  runtime->notes_start = runtime->notes_end = 0;
  if (!piece_map((uint64_t)runtime->notes, end - start, MAP_SHARED | MAP_FIXED, shared_fd(runtime),
                 process_notes_offset() + start))
    return false;
  runtime->notes_start = start;
  runtime->notes_end = end;
  return true;
}

uint8_t *share_note(struct runtime *runtime, uint64_t at, uint64_t size)
{
  if (at > runtime->notes_size || size > runtime->notes_size - at || size > NOTES_WINDOW)
    return NULL;
  bool is_there = at >= runtime->notes_start && at + size <= runtime->notes_end;
  if (!is_there && (runtime->is_confined || !notes_map(runtime, at, 2 * (uint64_t)NOTES_WINDOW)))
    return NULL;
  return runtime->notes + (at - runtime->notes_start);
}

/* ---- both ---- */

void share_for_filter(struct runtime *runtime)
{
  uint32_t first = __atomic_load_n(&runtime->control->step_count, __ATOMIC_RELAXED);
  uint64_t at = __atomic_load_n(&runtime->control->notes_used, __ATOMIC_RELAXED);

  if (first < runtime->step_capacity)
    share_steps(runtime, first,
                runtime->step_capacity - first > STEPS_FILTERED ? first + STEPS_FILTERED : runtime->step_capacity);
  if (at < runtime->notes_size)
    notes_map(runtime, at, NOTES_FILTERED);
}

uint64_t share_memory(const struct runtime *runtime, bool is_private)
{
  uint64_t steps = (uint64_t)STEPS_PIECE * (runtime->piece_count + PIECES_LATER);

  if (is_private)
    return steps * sizeof(*runtime->local);
  return steps * sizeof(*runtime->steps) + 2 * (uint64_t)NOTES_WINDOW;
}
