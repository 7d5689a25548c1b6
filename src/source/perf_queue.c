/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of several processors, brought into the order of their times: the records of one processor about a process
 * must come before the branches recorded by another.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "source/perf.h"

int perf_queue_add(struct perf_queue *queue, const struct perf_item *item, const uint8_t *record,
                   const struct perf_ring *aux, uint64_t aux_offset)
{
  struct perf_item new = *item, *added;

  new.bytes = malloc(item->size + item->aux_size + 1);
  added = new.bytes ? array_append(&queue->items, &queue->count, &queue->capacity) : NULL;
  if (!added) {
    free(new.bytes);
    return -ENOMEM;
  }
  memcpy(new.bytes, record, item->size);
  if (item->aux_size && perf_ring_copy(aux, aux_offset, item->aux_size, new.bytes + item->size) < 0)
    new.is_lost = true;
  new.order = queue->order++;
  queue->bytes += item->size + item->aux_size;
  *added = new;
  return 0;
}

void perf_queue_done(struct perf_queue *queue)
{
  for (size_t i = 0; i < queue->count; i++)
    free(queue->items[i].bytes);
  free(queue->items);
  *queue = (struct perf_queue){0};
}

static int item_compare(const void *one, const void *other)
{
  const struct perf_item *a = one, *b = other;

  if (a->time != b->time)
    return a->time < b->time ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

int perf_queue_take(struct perf_queue *queue, uint64_t time, int (*take)(void *data, const struct perf_item *item),
                    void *data)
{
  size_t done = 0;
  int r = 0;

  if (queue->count)
    qsort(queue->items, queue->count, sizeof(*queue->items), item_compare);
  for (; done < queue->count && queue->items[done].time <= time && r >= 0; done++) {
    struct perf_item *item = &queue->items[done];

    r = take(data, item);
    queue->bytes -= item->size + item->aux_size;
    free(item->bytes);
  }
  queue->count -= done;
  if (done && queue->count)
    memmove(queue->items, queue->items + done, queue->count * sizeof(*queue->items));
  return r;
}
