/* SPDX-License-Identifier: Apache-2.0
 *
 * Stamps on their way into a chunk. A chunk begins with the time of the stamp before it, so that its branches have
 * times without the chunk before.
 */
#include <errno.h>
#include <string.h>

#include "trace/writer.h"

void trace_writer_stamps(struct lb_trace_writer *writer, trace_stamp_make *make, void *context)
{
  writer->stamp_make = make;
  writer->stamp_context = context;
}

int stamps_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t stream)
{
  const struct writer_stream *info = &writer->streams[stream];
  const struct trace_stamp known = {.type = TRACE_STAMP_TIME, .time = info->stamp_time};
  int r = 0;

  stamp_encoder_begin(&slot->stamps);
  if (info->has_stamp)
    r = stamp_encoder_add(&slot->stamps, &known, 0);
  slot->stamps_known = slot->stamps.count;
  return r;
}

/* Readers take such a stamp for the time of the one before it, if a chunk begins with it. */
static bool is_like_known(const struct writer_encoder *slot, const struct trace_stamp *stamp, uint64_t number)
{
  return !slot->stamps.count && !number && stamp->type == TRACE_STAMP_TIME && !stamp->has_cpu && !stamp->has_used;
}

int stamps_put(struct lb_trace_writer *writer, struct writer_encoder *slot, const struct trace_stamp *stamp,
               uint64_t number)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  int r = 0;

  if (is_like_known(slot, stamp, number))
    r = stamp_encoder_add(&slot->stamps, stamp, 0);
  if (r >= 0)
    r = stamp_encoder_add(&slot->stamps, stamp, number);
  if (r < 0)
    return r;
  stream->has_stamp = true;
  stream->stamp_time = stamp->time;
  return 0;
}

int stamps_end(struct writer_encoder *slot, struct buffer *raw)
{
  const struct buffer *bytes = &slot->stamps.bytes;

  if (!bytes->size)
    return 0;
  if (buffer_reserve(raw, bytes->size) < 0)
    return -ENOMEM;
  memcpy(raw->bytes + raw->size, bytes->bytes, bytes->size);
  raw->size += bytes->size;
  return 0;
}

/* A chunk of branches that is nearly full ends with a stamp, so that the time of its last branches is known. */
static bool is_enough(const struct lb_trace_writer *writer, const struct writer_encoder *slot)
{
  return slot->stamps.bytes.size >= STAMPS_FULL ||
         (!slot->has_entries && slot->encoder->count >= chunk_size(&writer->streams[slot->stream]) / 16 * 15);
}

int trace_writer_stamp(struct lb_trace_writer *writer, uint32_t stream, const struct trace_stamp *stamp)
{
  struct writer_encoder *slot;
  bool has_entries;
  int r;

  if (writer->error < 0)
    return writer->error;
  if (stream >= writer->count)
    return -EINVAL;
  has_entries = writer->streams[stream].encoder >= 0 && writer->encoders[writer->streams[stream].encoder].has_entries;
  slot = encoder_open(writer, stream, has_entries);
  if (!slot)
    return writer->error;
  r = stamps_put(writer, slot, stamp, has_entries ? entries_made(writer, slot) : slot->encoder->count);
  if (r < 0)
    return r == -ENOMEM ? writer_fail(writer, r) : r;
  return is_enough(writer, slot) ? encoder_close(writer, slot) : 0;
}
