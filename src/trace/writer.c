/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer of traces: streams, each with a chunk of branches that is being filled, and the chunks that describe them.
 * At most WRITER_ENCODERS chunks are open at the same time, which bounds the memory for any number of threads.
 */
#include "lastbranch/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "trace/trace.h"
#include "trace/writer.h"

#define CODE_PIECE (1u << 20) /* bytes of code in one chunk */
#define HUGE_PAGE (2u << 20)
#define DESCRIBED_MAX 1024u /* bytes of a thread's name or a process's title */

void *table_new(size_t size)
{
  void *table;

  if (size < HUGE_PAGE)
    return malloc(size);
  table = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  if (table)
    madvise(table, size, MADV_HUGEPAGE);
  return table;
}

int writer_fail(struct lb_trace_writer *writer, int error)
{
  if (writer->error >= 0)
    writer->error = error;
  return writer->error;
}

/* ---- branches ---- */

static int branches_end(struct lb_trace_writer *writer, struct writer_encoder *slot)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  struct encoder *encoder = slot->encoder;
  struct chunk_position position = {
    .first = stream->next - encoder->count,
    .previous = stream->previous,
    .stream = slot->stream,
    .count = encoder->count,
  };
  uint64_t place = writer->file.size;

  if (!encoder->count && !stamps_are_new(slot))
    return writer->error;
  writer->raw.size = 0;
  if (encoder_end(encoder, &writer->raw) < 0 || stamps_end(slot, &writer->raw) < 0)
    return writer_fail(writer, -ENOMEM);
  stream->previous = place;
  stream->chunks++;
  return chunk_write(writer, CHUNK_BRANCHES, &position);
}

int encoder_close(struct lb_trace_writer *writer, struct writer_encoder *slot)
{
  slot->used = 0;
  writer->streams[slot->stream].encoder = -1;
  return slot->has_entries ? entries_end(writer, slot) : branches_end(writer, slot);
}

/* A free encoder, or the least recently used one. */
static struct writer_encoder *encoder_choose(struct lb_trace_writer *writer)
{
  struct writer_encoder *best = &writer->encoders[0];

  for (unsigned i = 1; i < WRITER_ENCODERS && best->used; i++)
    if (writer->encoders[i].used < best->used)
      best = &writer->encoders[i];
  if (best->used)
    encoder_close(writer, best);
  return best;
}

uint32_t chunk_size(const struct writer_stream *stream)
{
  unsigned bits = CHUNK_FIRST_BITS + 8 * (stream->chunks < CHUNK_MOST_BITS ? stream->chunks : CHUNK_MOST_BITS);

  /* NOLINTNEXTLINE(misc-redundant-expression): they are equal, and must stay so */
  _Static_assert(1u << CHUNK_MOST_BITS == CHUNK_ENTRIES_MAX && CHUNK_ENTRIES_MAX == CHUNK_BRANCHES_MAX, "");
  return 1u << (bits < CHUNK_MOST_BITS ? bits : CHUNK_MOST_BITS);
}

static int branches_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t stream)
{
  if (!slot->encoder)
    slot->encoder = calloc(1, sizeof(*slot->encoder));
  return slot->encoder ? encoder_begin(slot->encoder, chunk_size(&writer->streams[stream])) : -ENOMEM;
}

struct writer_encoder *encoder_open(struct lb_trace_writer *writer, uint32_t stream, bool has_entries)
{
  struct writer_encoder *slot = NULL;

  if (writer->streams[stream].encoder >= 0)
    slot = &writer->encoders[writer->streams[stream].encoder];
  if (slot && slot->has_entries != has_entries) {
    encoder_close(writer, slot);
    slot = NULL;
  }
  if (!slot) {
    slot = encoder_choose(writer);
    slot->has_entries = has_entries;
    if ((has_entries ? entries_begin(writer, slot, stream) : branches_begin(writer, slot, stream)) < 0 ||
        stamps_begin(writer, slot, stream) < 0) {
      writer_fail(writer, -ENOMEM);
      return NULL;
    }
  }
  slot->stream = stream;
  slot->used = ++writer->clock;
  writer->streams[stream].encoder = (int8_t)(slot - writer->encoders);
  return slot;
}

int lb_trace_writer_branches(struct lb_trace_writer *writer, uint32_t stream, const struct lb_branch *branches,
                             size_t count)
{
  if (writer->error < 0)
    return writer->error;
  if (stream >= writer->count)
    return -EINVAL;
  while (count > 0) {
    struct writer_encoder *slot = encoder_open(writer, stream, false);
    int done;

    if (!slot)
      return writer->error;
    done = encoder_add(slot->encoder, branches, count);
    if (done < 0)
      return done == -EINVAL ? done : writer_fail(writer, done);
    branches += done;
    count -= (size_t)done;
    writer->branches += (uint64_t)done;
    writer->streams[stream].next += (uint64_t)done;
    if (encoder_is_full(slot->encoder) && encoder_close(writer, slot) < 0)
      return writer->error;
  }
  return 0;
}

static void streams_close(struct lb_trace_writer *writer, uint32_t space, bool is_every)
{
  for (unsigned i = 0; i < WRITER_ENCODERS; i++) {
    struct writer_encoder *slot = &writer->encoders[i];

    if (slot->used && (is_every || writer->streams[slot->stream].space == space))
      encoder_close(writer, slot);
  }
}

int trace_writer_end(struct lb_trace_writer *writer, uint32_t stream)
{
  int encoder = stream < writer->count ? writer->streams[stream].encoder : -1;

  return encoder < 0 ? writer->error : encoder_close(writer, &writer->encoders[encoder]);
}

/* Open chunks hold the producer's numbers, so they are closed first. */
void trace_writer_forget(struct lb_trace_writer *writer, uint32_t space, uint32_t first, uint32_t end)
{
  streams_close(writer, space, false);
  paths_forget(&writer->paths, first, end);
}

int lb_trace_writer_flush(struct lb_trace_writer *writer)
{
  streams_close(writer, 0, true);
  return writer->error;
}

static int gap_write(struct lb_trace_writer *writer, uint32_t number, const struct lb_trace_gap *gap)
{
  struct writer_stream *stream = &writer->streams[number];
  struct chunk_position position = {.stream = number};
  uint64_t place;

  if (stream->encoder >= 0)
    encoder_close(writer, &writer->encoders[stream->encoder]);
  entries_interrupt(stream);
  position.first = stream->next;
  position.previous = stream->previous;
  place = writer->file.size;
  writer->raw.size = 0;
  if (raw_varint(writer, gap->reason) < 0 || raw_varint(writer, gap->count) < 0)
    return writer_fail(writer, -ENOMEM);
  if (chunk_write(writer, CHUNK_GAP, &position) >= 0) {
    stream->previous = place;
    stream->next += gap->count;
  }
  return writer->error;
}

int lb_trace_writer_gap(struct lb_trace_writer *writer, const struct lb_trace_gap *gap)
{
  if (gap->reason != LB_TRACE_LOST && gap->reason != LB_TRACE_PAUSED && gap->reason != LB_TRACE_SAMPLED)
    return -EINVAL;
  if (gap->stream != LB_TRACE_ALL)
    return gap->stream < writer->count ? gap_write(writer, gap->stream, gap) : -EINVAL;
  for (uint32_t i = 0; i < writer->count && writer->error >= 0; i++)
    gap_write(writer, i, gap);
  return writer->error;
}

/* ---- chunks that describe ---- */

/* A chunk that could not be put together for lack of memory would be missing in the trace: this is a failure. */
static int described_write(struct lb_trace_writer *writer, enum chunk_type type, int filled)
{
  return filled < 0 ? writer_fail(writer, filled) : chunk_write(writer, type, NULL);
}

static int raw_text(struct lb_trace_writer *writer, const char *text)
{
  return raw_bytes(writer, text ? text : "", text ? strlen(text) : 0);
}

static bool text_fits(const char *text)
{
  return !text || strlen(text) <= LB_TRACE_TEXT_MAX;
}

int lb_trace_writer_meta(struct lb_trace_writer *writer, const struct lb_trace_meta *meta)
{
  int r;

  if (!text_fits(meta->key) || !text_fits(meta->value))
    return LB_E_TOO_BIG;
  writer->raw.size = 0;
  r = raw_text(writer, meta->key);
  if (r >= 0)
    r = raw_text(writer, meta->value);
  return described_write(writer, CHUNK_META, r);
}

int trace_writer_describe(struct lb_trace_writer *writer, uint32_t stream, const char *key, const char *value)
{
  char text[sizeof("4294967295 ") + DESCRIBED_MAX];

  snprintf(text, sizeof(text), "%u %s", stream, value);
  return lb_trace_writer_meta(writer, &(struct lb_trace_meta){key, text});
}

static int module_fill(struct lb_trace_writer *writer, const struct lb_trace_module *module)
{
  uint64_t numbers[] = {module->space, module->is_gone, module->address, module->size, module->offset};
  int r = 0;

  writer->raw.size = 0;
  for (size_t i = 0; r >= 0 && i < sizeof(numbers) / sizeof(*numbers); i++)
    r = raw_varint(writer, numbers[i]);
  if (r >= 0)
    r = raw_text(writer, module->name);
  if (r >= 0)
    r = raw_bytes(writer, module->build_id, module->build_id_size);
  return r;
}

int lb_trace_writer_module(struct lb_trace_writer *writer, const struct lb_trace_module *module)
{
  if (!text_fits(module->name) || module->build_id_size > LB_TRACE_BUILD_ID_MAX)
    return LB_E_TOO_BIG;
  streams_close(writer, module->space, false);
  return described_write(writer, CHUNK_MODULE, module_fill(writer, module));
}

int lb_trace_writer_code(struct lb_trace_writer *writer, const struct lb_trace_code *code)
{
  streams_close(writer, code->space, false);
  for (size_t done = 0; done < code->size && writer->error >= 0; done += CODE_PIECE) {
    size_t size = code->size - done < CODE_PIECE ? code->size - done : CODE_PIECE;
    int r;

    writer->raw.size = 0;
    r = raw_varint(writer, code->space);
    if (r >= 0)
      r = raw_varint(writer, code->address + done);
    if (r >= 0)
      r = raw_bytes(writer, code->bytes + done, size);
    described_write(writer, CHUNK_CODE, r);
  }
  return writer->error;
}

static int names_begin(struct lb_trace_writer *writer, uint32_t space, uint32_t original, size_t count)
{
  int r;

  writer->raw.size = 0;
  r = raw_varint(writer, space);
  if (r >= 0)
    r = raw_varint(writer, original);
  return r < 0 ? r : raw_varint(writer, count);
}

static int names_fill(struct lb_trace_writer *writer, const struct trace_name *names, size_t count)
{
  uint64_t end = 0;
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    r = raw_varint(writer, zigzag(names[i].address - end));
    if (r >= 0)
      r = raw_varint(writer, names[i].size);
    if (r >= 0)
      r = raw_bytes(writer, names[i].text, names[i].length);
    end = names[i].address + names[i].size;
  }
  return r;
}

int trace_writer_names(struct lb_trace_writer *writer, uint32_t space, const struct trace_name *names, size_t count,
                       bool is_ordered)
{
  size_t bytes = 0;
  int r;

  for (size_t i = 0; i < count; i++) {
    if (names[i].length > TRACE_NAME_MAX)
      return LB_E_TOO_BIG;
    bytes += names[i].length;
  }
  if (count > TRACE_NAMES_MAX || bytes > TRACE_NAMES_BYTES + TRACE_NAME_MAX)
    return LB_E_TOO_BIG;
  if (is_ordered)
    streams_close(writer, space, false);
  r = names_begin(writer, space, 0, count);
  return described_write(writer, CHUNK_NAMES, r < 0 ? r : names_fill(writer, names, count));
}

int trace_writer_names_copy(struct lb_trace_writer *writer, uint32_t space, uint32_t original)
{
  return described_write(writer, CHUNK_NAMES, names_begin(writer, space, original, 0));
}

static int stream_fill(struct lb_trace_writer *writer, const struct lb_trace_stream *stream, uint32_t number)
{
  uint32_t numbers[] = {number, stream->space, stream->process, stream->thread};
  int r = 0;

  writer->raw.size = 0;
  for (size_t i = 0; r >= 0 && i < sizeof(numbers) / sizeof(*numbers); i++)
    r = raw_varint(writer, numbers[i]);
  return r < 0 ? r : raw_text(writer, stream->name);
}

/* A thread that executes another program continues as another stream. Its earlier branches come first in the file. */
static int thread_close(struct lb_trace_writer *writer, uint32_t thread)
{
  for (unsigned i = 0; thread && i < WRITER_ENCODERS; i++) {
    struct writer_encoder *slot = &writer->encoders[i];

    if (slot->used && writer->streams[slot->stream].thread == thread && encoder_close(writer, slot) < 0)
      return writer->error;
  }
  return 0;
}

int lb_trace_writer_stream(struct lb_trace_writer *writer, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  struct writer_stream *streams;
  uint32_t number = (uint32_t)writer->count;
  int r;

  if (!text_fits(stream->name) || writer->count >= LB_TRACE_STREAMS_MAX)
    return LB_E_TOO_BIG;
  streams = array_grow(writer->streams, sizeof(*streams), writer->count, &writer->capacity);
  if (!streams)
    return -ENOMEM;
  writer->streams = streams;
  r = thread_close(writer, stream->thread);
  if (r < 0)
    return r;
  r = described_write(writer, CHUNK_STREAM, stream_fill(writer, stream, number));
  if (r < 0)
    return r;
  streams[writer->count++] = (struct writer_stream){.space = stream->space, .thread = stream->thread, .encoder = -1};
  *ret_number = number;
  return 0;
}

/* ---- beginning and end ---- */

struct lb_trace_size lb_trace_writer_size(const struct lb_trace_writer *writer)
{
  return (struct lb_trace_size){writer->file.size, writer->branches};
}

static int head_write(struct lb_trace_writer *writer)
{
  uint8_t bytes[TRACE_HEAD_SIZE] = TRACE_MAGIC;

  bytes_put_u32(bytes + TRACE_MAGIC_SIZE, TRACE_VERSION | TRACE_LEAST << 16);
  bytes_put_u32(bytes + 12, checksum_add(0, bytes, 12));
  writer->error = trace_file_write(&writer->file, bytes, sizeof(bytes));
  return writer->error;
}

static void writer_free(struct lb_trace_writer *writer)
{
  for (unsigned i = 0; i < WRITER_ENCODERS; i++) {
    if (writer->encoders[i].encoder)
      encoder_done(writer->encoders[i].encoder);
    free(writer->encoders[i].encoder);
    entries_done(writer->encoders[i].entries);
    buffer_done(&writer->encoders[i].stamps.bytes);
  }
  ZSTD_freeCCtx(writer->zstd);
  buffer_done(&writer->raw);
  buffer_done(&writer->packed);
  free(writer->streams);
  free(writer->described.places);
  free(writer->paths_at.places);
  free(writer->names_at.places);
  paths_done(&writer->paths);
  free(writer);
}

/* Creates a writer without a file. Returns NULL without memory. */
static struct lb_trace_writer *writer_new(void)
{
  struct lb_trace_writer *writer = calloc(1, sizeof(*writer));

  if (!writer)
    return NULL;
  writer->zstd = ZSTD_createCCtx();
  if (writer->zstd)
    return writer;
  writer_free(writer);
  return NULL;
}

int lb_trace_writer_open(const char *path, struct lb_trace_writer **ret_writer)
{
  struct lb_trace_writer *writer = writer_new();
  int r = writer ? trace_file_open(&writer->file, path) : -ENOMEM;

  if (r < 0) {
    if (writer)
      writer_free(writer);
    return r;
  }
  head_write(writer); /* a failure is kept in the writer, and close returns it */
  *ret_writer = writer;
  return 0;
}

int lb_trace_writer_open_fd(int fd, struct lb_trace_writer **ret_writer)
{
  struct lb_trace_writer *writer = writer_new();

  if (!writer)
    return -ENOMEM;
  trace_file_take(&writer->file, fd);
  head_write(writer);
  *ret_writer = writer;
  return 0;
}

int lb_trace_writer_close(struct lb_trace_writer *writer)
{
  int r;

  if (!writer)
    return 0;
  if (lb_trace_writer_flush(writer) >= 0) {
    r = index_write(writer);
    if (r < 0)
      writer_fail(writer, r);
  }
  r = trace_file_close(&writer->file, writer->error);
  writer_free(writer);
  return r;
}
