/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the wanted calls. Each stream has a stack of the decisions made when functions were entered; the same
 * decisions apply when they are left.
 */
#include "analysis/calls_filter.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

/* Flags of a function. IS_GIVEN marks an entry of the stack whose function passed the filter when it was entered. */
enum { IS_JUDGED = 1 << 0, IS_FUNCTION = 1 << 1, IS_MODULE = 1 << 2, IS_GIVEN = 1 << 3 };

struct bytes {
  uint8_t *list;
  size_t count, capacity;
};

struct filter_stream {
  struct bytes open;
  uint32_t functions; /* open functions that were asked for */
  uint32_t given;     /* open functions that passed the filter */
};

struct analysis_calls_filter {
  struct analysis_filter *filter;
  struct bytes functions; /* flags by function number */
  struct filter_stream *streams;
  size_t count, capacity;
};

int analysis_calls_filter_new(struct analysis_filter *filter, struct analysis_calls_filter **ret_calls)
{
  struct analysis_calls_filter *calls = calloc(1, sizeof(*calls));

  if (!calls)
    return -ENOMEM;
  calls->filter = filter;
  *ret_calls = calls;
  return 0;
}

void analysis_calls_filter_free(struct analysis_calls_filter *calls)
{
  if (!calls)
    return;
  for (size_t i = 0; i < calls->count; i++)
    free(calls->streams[i].open.list);
  free(calls->streams);
  free(calls->functions.list);
  free(calls);
}

static int bytes_push(struct bytes *bytes, unsigned value)
{
  uint8_t *added = array_append(&bytes->list, &bytes->count, &bytes->capacity);

  if (!added)
    return -ENOMEM;
  *added = (uint8_t)value;
  return 0;
}

static struct filter_stream *stream_get(struct analysis_calls_filter *calls, uint32_t number)
{
  return array_at(&calls->streams, number, &calls->count, &calls->capacity);
}

/* The flags of a function, or -ENOMEM. */
static int function_judge(struct analysis_calls_filter *calls, const struct analysis_calls *from, uint32_t number)
{
  struct analysis_called called;
  unsigned bits = IS_JUDGED;

  while (number >= calls->functions.count)
    if (bytes_push(&calls->functions, 0) < 0)
      return -ENOMEM;
  if (calls->functions.list[number])
    return calls->functions.list[number];
  if (analysis_calls_function(from, number, &called)) {
    bits |= analysis_filter_function(calls->filter, &called.location) ? IS_FUNCTION : 0;
    bits |= analysis_filter_file(calls->filter, called.location.file) ? IS_MODULE : 0;
  }
  calls->functions.list[number] = (uint8_t)bits;
  return (int)bits;
}

static int call_enter(struct filter_stream *stream, struct analysis_call *call, int bits)
{
  stream->functions += (bits & IS_FUNCTION) != 0;
  if (stream->functions && bits & IS_MODULE)
    bits |= IS_GIVEN;
  call->depth = stream->given;
  stream->given += (bits & IS_GIVEN) != 0;
  return bytes_push(&stream->open, (unsigned)bits) < 0 ? -ENOMEM : (bits & IS_GIVEN) != 0;
}

static int call_leave(struct filter_stream *stream, struct analysis_call *call)
{
  unsigned bits = stream->open.count ? stream->open.list[--stream->open.count] : 0;

  stream->functions -= (bits & IS_FUNCTION) != 0;
  stream->given -= (bits & IS_GIVEN) != 0;
  call->depth = stream->given;
  return (bits & IS_GIVEN) != 0;
}

int analysis_calls_filter_take(struct analysis_calls_filter *calls, const struct analysis_calls *from,
                               struct analysis_call *call)
{
  struct filter_stream *stream = stream_get(calls, call->stream);
  int bits = call->is_enter ? function_judge(calls, from, call->function) : 0;

  if (!stream || bits < 0)
    return -ENOMEM;
  return call->is_enter ? call_enter(stream, call, bits) : call_leave(stream, call);
}
