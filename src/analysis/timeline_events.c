/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the events of a timeline. A list may grow to twice its size; then its longest events are sorted out, which
 * costs each event a constant number of comparisons and copies, times the logarithm of the size. Signals have no
 * length: of too many, every second one is dropped, and the last one is kept.
 */
#include "analysis/timeline_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void timeline_events_init(struct timeline_events *events, size_t max)
{
  struct timeline_event_list list = {.max = max && max < TIMELINE_EVENTS_MAX ? max : TIMELINE_EVENTS_MAX};

  *events = (struct timeline_events){.calls = list, .waits = list, .signals = list};
}

/* What counts as the length of an event. */
static uint64_t event_length(const struct timeline_event *event)
{
  return event->kind == TIMELINE_IDLE ? event->waited : event->duration;
}

static void event_leave_out(struct timeline_event_list *list, const struct timeline_event *event)
{
  list->left_out++;
  if (event_length(event) > list->longest_left_out)
    list->longest_left_out = event_length(event);
}

/* Counts an event as left out, and frees what it has. */
static void event_drop(struct timeline_event_list *list, struct timeline_event *event)
{
  free(event->paths[0]);
  free(event->paths[1]);
  event->paths[0] = event->paths[1] = NULL;
  event_leave_out(list, event);
}

static void list_done(struct timeline_event_list *list)
{
  for (size_t i = 0; i < list->count; i++)
    event_drop(list, &list->events[i]);
  free(list->events);
  *list = (struct timeline_event_list){0};
}

void timeline_events_done(struct timeline_events *events)
{
  list_done(&events->calls);
  list_done(&events->waits);
  list_done(&events->signals);
}

/* ---- too many ---- */

/* The longest first; of equal ones, the earliest. */
static int event_compare(const void *a, const void *b)
{
  const struct timeline_event *one = a, *other = b;

  if (event_length(one) != event_length(other))
    return event_length(one) > event_length(other) ? -1 : 1;
  if (one->start != other->start)
    return one->start < other->start ? -1 : 1;
  return one->stream < other->stream ? -1 : one->stream > other->stream;
}

static void list_keep_longest(struct timeline_event_list *list)
{
  if (list->count)
    qsort(list->events, list->count, sizeof(*list->events), event_compare);
  while (list->count > list->max)
    event_drop(list, &list->events[--list->count]);
  if (list->left_out && list->count)
    list->least = event_length(&list->events[list->count - 1]);
}

static void list_thin(struct timeline_event_list *list)
{
  size_t kept = 0;

  for (size_t i = 0; i < list->count; i++) {
    struct timeline_event event = list->events[i];

    if ((list->count - 1 - i) % 2)
      event_drop(list, &event);
    else
      list->events[kept++] = event;
  }
  list->count = kept;
}

/* ---- adding ---- */

static int path_copy(char **path)
{
  if (*path && !(*path = strdup(*path)))
    return -ENOMEM;
  return 0;
}

static int list_add(struct timeline_event_list *list, const struct timeline_event *event)
{
  struct timeline_event copy = *event;
  struct timeline_event *added;
  int r = path_copy(&copy.paths[0]);

  if (r < 0)
    return r;
  r = path_copy(&copy.paths[1]);
  added = r < 0 ? NULL : array_append(&list->events, &list->count, &list->capacity);
  if (!added) {
    free(copy.paths[0]);
    if (r >= 0)
      free(copy.paths[1]);
    return -ENOMEM;
  }
  *added = copy;
  return 0;
}

int timeline_events_add(struct timeline_events *events, const struct timeline_event *event)
{
  struct timeline_event_list *list = event->kind == TIMELINE_SYSCALL  ? &events->calls
                                     : event->kind == TIMELINE_SIGNAL ? &events->signals
                                                                      : &events->waits;

  if (event_length(event) < list->least) {
    event_leave_out(list, event);
    return 0;
  }
  if (list->count >= 2 * list->max && event->kind == TIMELINE_SIGNAL)
    list_thin(list);
  else if (list->count >= 2 * list->max)
    list_keep_longest(list);
  return list_add(list, event);
}

void timeline_events_end(struct timeline_events *events)
{
  list_keep_longest(&events->calls);
  list_keep_longest(&events->waits);
  while (events->signals.count > events->signals.max)
    list_thin(&events->signals);
  if (events->signals.count)
    qsort(events->signals.events, events->signals.count, sizeof(*events->signals.events), event_compare);
}
