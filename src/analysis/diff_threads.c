/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs the threads of two traces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_side.h"

static void threads_join(struct diff_side sides[2], uint32_t one, uint32_t other)
{
  sides[0].threads[one].partner = other;
  sides[1].threads[other].partner = one;
}

static const char *thread_name(const struct diff_thread *thread)
{
  return thread->name ? thread->name : "";
}

/* Sorts by name, and threads of the same name by their order. */
static int thread_compare(const void *one, const void *other)
{
  const struct diff_thread *a = *(const struct diff_thread *const *)one, *b = *(const struct diff_thread *const *)other;
  int r = strcmp(thread_name(a), thread_name(b));

  return r ? r : a < b ? -1 : a > b;
}

static const struct diff_thread **threads_sort(const struct diff_side *side)
{
  const struct diff_thread **list = calloc(side->thread_count + 1, sizeof(*list));

  for (size_t i = 0; list && i < side->thread_count; i++)
    list[i] = &side->threads[i];
  if (list)
    qsort(list, side->thread_count, sizeof(*list), thread_compare);
  return list;
}

/* Pairs the nth thread of a name with the nth of that name. */
static int threads_pair_named(struct diff_side sides[2])
{
  const struct diff_thread **a = threads_sort(&sides[0]), **b = threads_sort(&sides[1]);
  bool has_memory = a && b;

  for (size_t i = 0, j = 0; has_memory && i < sides[0].thread_count && j < sides[1].thread_count;) {
    int r = strcmp(thread_name(a[i]), thread_name(b[j]));

    if (!r)
      threads_join(sides, (uint32_t)(a[i] - sides[0].threads), (uint32_t)(b[j] - sides[1].threads));
    i += r <= 0;
    j += r >= 0;
  }
  free(a);
  free(b);
  return has_memory ? 0 : -ENOMEM;
}

/* Pairs the remaining threads in their order. */
int diff_threads_pair(struct diff_side sides[2])
{
  uint32_t j = 0;

  if (threads_pair_named(sides) < 0)
    return -ENOMEM;
  for (uint32_t i = 0; i < sides[0].thread_count; i++) {
    if (sides[0].threads[i].partner != LB_TRACE_ALL)
      continue;
    while (j < sides[1].thread_count && sides[1].threads[j].partner != LB_TRACE_ALL)
      j++;
    if (j == sides[1].thread_count)
      break;
    threads_join(sides, i, j);
  }
  return 0;
}
