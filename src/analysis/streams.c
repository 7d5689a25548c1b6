/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a trace: their threads, and how many branches of each were seen. The reader promises fewer than
 * LB_TRACE_STREAMS_MAX. A damaged trace may have branches of a stream that nothing describes.
 */
#include "analysis/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define STREAM_NAME_MAX 255u

struct analysis_stream *stream_list_get(struct stream_list *list, uint32_t number)
{
  while (number >= list->count) {
    struct analysis_stream *stream = array_append(&list->streams, &list->count, &list->capacity);

    if (!stream)
      return NULL;
    *stream = (struct analysis_stream){.space = STREAM_NO_SPACE};
  }
  return &list->streams[number];
}

int stream_list_describe(struct stream_list *list, const struct lb_trace_stream *stream)
{
  struct analysis_stream *mine = stream_list_get(list, stream->number);
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

/* The name or the title of a stream that a meta record has. Returns its text, the stream, and whether it is the title;
 * NULL: the record is of another kind. */
static const char *meta_parse(const struct lb_trace_meta *meta, uint32_t *ret_stream, bool *ret_is_title)
{
  bool is_title = !strcmp(meta->key, "title");
  const char *at = meta->value;
  uint32_t number = 0;

  if (!is_title && strcmp(meta->key, "name") != 0)
    return NULL;
  for (; *at >= '0' && *at <= '9' && number < LB_TRACE_STREAMS_MAX; at++)
    number = number * 10 + (uint32_t)(*at - '0');
  if (at == meta->value || *at != ' ' || number >= LB_TRACE_STREAMS_MAX)
    return NULL;
  *ret_stream = number;
  *ret_is_title = is_title;
  return at + 1;
}

int stream_list_meta(struct stream_list *list, const struct lb_trace_meta *meta)
{
  uint32_t number;
  bool is_title;
  const char *text = meta_parse(meta, &number, &is_title);
  struct analysis_stream *stream = text && number < list->count ? &list->streams[number] : NULL;
  char *copy;

  if (!stream)
    return 0;
  copy = printable_copy(text, STREAM_NAME_MAX);
  if (!copy)
    return -ENOMEM;
  free((char *)(uintptr_t)(is_title ? stream->command : stream->name));
  *(is_title ? &stream->command : &stream->name) = copy;
  return 0;
}

void stream_list_done(struct stream_list *list)
{
  for (size_t i = 0; i < list->count; i++) {
    free((char *)(uintptr_t)list->streams[i].name);
    free((char *)(uintptr_t)list->streams[i].command);
  }
  free(list->streams);
  *list = (struct stream_list){0};
}
