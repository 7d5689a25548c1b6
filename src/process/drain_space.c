/* SPDX-License-Identifier: Apache-2.0
 *
 * Address spaces come and go: a shell makes thousands. A space needs steps in the shared memory, the writer's data
 * about them, and modules. The drain gives all this back when the space is over: no thread is left in it or in a copy
 * of it. Copies count because they continue in paths that were translated before the fork. Numbers are not reused.
 *
 * Only a running thread makes another thread or announces a copy, and only the drain frees the pages of threads. If no
 * page names a space and all notes written by then are taken, nothing more of that space can appear.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "process/drain.h"

enum {
  SPACES_MOST = 1 << 20,
  NUMBERS_MOST = PROCESS_STEPS_MOST / PROCESS_STEPS_UNIT, /* most blocks of step numbers */
};

enum { PAGE_STEPS = PROCESS_PAGE / sizeof(struct lb_step) };

_Static_assert(PROCESS_STEPS_UNIT * sizeof(struct lb_step) % PROCESS_PAGE == 0, "whole pages");

struct drain_space *drain_space_get(struct process_drain *drain, uint32_t number)
{
  if (!number || number >= SPACES_MOST)
    return NULL;
  return array_at(&drain->spaces, number, &drain->space_count, &drain->space_capacity);
}

bool drain_space_is_known(const struct process_drain *drain, uint32_t number)
{
  return number < drain->space_count && drain->spaces[number].is_known;
}

bool drain_space_is_over(const struct process_drain *drain, uint32_t number)
{
  return number < drain->space_count && drain->spaces[number].is_over;
}

/* ---- what is known of a space ---- */

int drain_space_begins(struct process_drain *drain, uint32_t number, uint64_t parent)
{
  struct drain_space *space = drain_space_get(drain, number);

  if (!space)
    return number && number < SPACES_MOST ? -ENOMEM : 0;
  if (space->is_known || space->is_over)
    return 0;
  space->is_known = true;
  if (parent && parent < drain->space_count && parent != number) {
    space->parent = (uint32_t)parent;
    drain->spaces[parent].copies++;
  }
  return 0;
}

int drain_space_steps(struct process_drain *drain, uint32_t number, uint64_t first, uint64_t end)
{
  struct drain_space *space = drain_space_get(drain, number);
  struct drain_numbers *added;
  bool is_good = first % PROCESS_STEPS_UNIT == 0 && end % PROCESS_STEPS_UNIT == 0 && first < end &&
                 end - first <= PROCESS_STEPS_GIVEN && end <= drain->process->step_capacity;

  if (!space || space->is_over || !is_good || space->number_count >= NUMBERS_MOST)
    return 0;
  added = array_append(&space->numbers, &space->number_count, &space->number_capacity);
  if (!added)
    return -ENOMEM;
  *added = (struct drain_numbers){(uint32_t)first, (uint32_t)end};
  return 0;
}

void drain_space_keep(struct process_drain *drain, uint32_t number)
{
  if (number < drain->space_count)
    drain->spaces[number].is_kept = true;
}

/* ---- the end of a space ---- */

/* Without memory the space is kept to the end of the recording, which costs memory and nothing else. */
static int ending_add(struct process_drain *drain, uint32_t number)
{
  uint32_t *added;

  if (drain->spaces[number].is_ending)
    return 0;
  added = array_append(&drain->ending, &drain->ending_count, &drain->ending_capacity);
  if (!added)
    return -ENOMEM;
  *added = number;
  drain->spaces[number].is_ending = true;
  return 0;
}

void drain_space_enter(struct process_drain *drain, uint32_t number)
{
  struct drain_space *space = drain_space_get(drain, number);

  if (!space)
    return;
  space->threads++;
  space->is_born = true;
}

void drain_space_leave(struct process_drain *drain, uint32_t number)
{
  struct drain_space *space = number < drain->space_count ? &drain->spaces[number] : NULL;

  if (!space || !space->threads)
    return;
  if (--space->threads == 0)
    ending_add(drain, number);
}

int drain_space_fails(struct process_drain *drain, uint32_t number)
{
  struct drain_space *space = drain_space_get(drain, number);

  if (!space || space->is_born)
    return 0;
  space->is_born = true; /* and has no thread */
  return ending_add(drain, number);
}

/* Frees a space. The pages, streams and logs of its threads are no longer in use. */
static void space_end(struct process_drain *drain, uint32_t number)
{
  struct drain_space *space = &drain->spaces[number];
  uint8_t *steps = drain->process->memory + process_steps_offset(drain->process->notes_size);

  (void)drain_jit_end(drain, number); /* the writer remembers its error */
  for (size_t i = 0; i < space->number_count; i++) {
    const struct drain_numbers *numbers = &space->numbers[i];

    trace_writer_forget(drain->writer, number, numbers->first, numbers->end);
    madvise(steps + numbers->first * sizeof(struct lb_step), (numbers->end - numbers->first) * sizeof(struct lb_step),
            MADV_REMOVE);
    for (size_t page = numbers->first / PAGE_STEPS; page < numbers->end / PAGE_STEPS; page++)
      drain->step_pages[page / 8] &= (uint8_t) ~(1 << page % 8);
  }
  free(space->modules);
  free(space->numbers);
  *space = (struct drain_space){.parent = space->parent, .is_over = true};
  drain->spaces_over++;
  if (space->parent && drain->spaces[space->parent].copies && --drain->spaces[space->parent].copies == 0)
    ending_add(drain, space->parent);
}

/* Marks the spaces that pages name. Reads the status first: once it is set, the rest of the page is valid. */
static void pages_look(struct process_drain *drain)
{
  uint32_t high = __atomic_load_n(&drain_control(drain)->thread_high, __ATOMIC_ACQUIRE), space;

  drain->looks++;
  for (uint32_t i = 0; i < high && i < PROCESS_THREADS; i++) {
    const struct process_state *page = drain_page(drain, i);

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) == THREAD_FREE)
      continue;
    space = __atomic_load_n(&page->space, __ATOMIC_RELAXED);
    if (space < drain->space_count)
      drain->spaces[space].held = drain->looks;
  }
}

/* A page that is being claimed may still name the space of its previous thread. Such a space is looked at again in the
 * next round. */
void drain_spaces_end(struct process_drain *drain)
{
  size_t kept = 0;

  if (!drain->ending_count)
    return;
  pages_look(drain);
  for (size_t i = 0; i < drain->ending_count; i++) { /* parents may be appended meanwhile */
    uint32_t number = drain->ending[i];
    struct drain_space *space = &drain->spaces[number];
    bool is_idle = space->is_known && !space->is_over && !space->is_kept && !space->threads && !space->copies;

    if (is_idle && space->held == drain->looks) {
      drain->ending[kept++] = number;
      continue;
    }
    space->is_ending = false;
    if (is_idle && space->is_born)
      space_end(drain, number);
  }
  drain->ending_count = kept;
}

void drain_spaces_done(struct process_drain *drain)
{
  for (size_t i = 0; i < drain->space_count; i++) {
    free(drain->spaces[i].modules);
    free(drain->spaces[i].numbers);
  }
  free(drain->spaces);
  free(drain->ending);
}
