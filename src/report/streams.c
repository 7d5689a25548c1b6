/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a trace: whose branches they are and how many were seen. The reader promises fewer than
 * LB_TRACE_STREAMS_MAX; a damaged trace may have branches of a stream that nothing describes.
 */
#include "report/streams.h"

#include <errno.h>
#include <stdlib.h>

#include "report/printable.h"

#define STREAM_NAME_MAX 255u

struct report_stream *stream_list_get(struct stream_list *list, uint32_t number)
{
  while (number >= list->count) {
    struct report_stream *streams = array_grow(list->streams, sizeof(*streams), list->count, &list->capacity);

    if (!streams)
      return NULL;
    list->streams = streams;
    streams[list->count++] = (struct report_stream){.space = STREAM_NO_SPACE};
  }
  return &list->streams[number];
}

int stream_list_describe(struct stream_list *list, const struct lb_trace_stream *stream)
{
  struct report_stream *mine = stream_list_get(list, stream->number);
  char *name = mine ? printable_copy(stream->name, STREAM_NAME_MAX) : NULL;

  if (!name)
    return -ENOMEM;
  free((char *)(uintptr_t)mine->name);
  mine->name = name;
  mine->is_described = true;
  mine->space = stream->space;
  mine->process = stream->process;
  mine->thread = stream->thread;
  return 0;
}

void stream_list_done(struct stream_list *list)
{
  for (size_t i = 0; i < list->count; i++)
    free((char *)(uintptr_t)list->streams[i].name);
  free(list->streams);
  *list = (struct stream_list){0};
}
