/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a writer: streams with their chunks that are being filled (writer.c), chunks on their way to the file
 * (chunk.c), the index.
 */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <zstd.h>

#include "lastbranch/trace.h"
#include "trace/branches.h"
#include "trace/file.h"
#include "trace/format.h"

#define WRITER_ENCODERS 32u /* streams that are being filled at the same time: 4 MiB each at most */

struct writer_stream {
  uint64_t next;     /* number of the branch that comes next */
  uint64_t previous; /* place of its last chunk; 0: none */
  uint32_t space;
  int8_t encoder; /* its encoder; -1: none */
};

struct writer_encoder {
  struct encoder *encoder;
  uint32_t stream;
  uint64_t used; /* when, as a number that grows; 0: free */
};

struct lb_trace_writer {
  struct trace_file file;
  int error; /* the first failure: nothing is written any more */
  ZSTD_CCtx *zstd;
  struct buffer raw;    /* contents of a chunk */
  struct buffer packed; /* the same compressed, behind its head */
  struct writer_stream *streams;
  size_t count, capacity;
  struct writer_encoder encoders[WRITER_ENCODERS];
  uint64_t clock;
  uint64_t branches;
  uint64_t *described; /* places of the chunks that describe, for the index */
  size_t described_count, described_capacity;
};

/* Writes writer->raw as a chunk; `position` is NULL for the types that have none. Returns 0 or the writer's error. */
int chunk_write(struct lb_trace_writer *writer, enum chunk_type type, const struct chunk_position *position);

/* Appends to writer->raw. Return 0 or -ENOMEM. */
int raw_varint(struct lb_trace_writer *writer, uint64_t value);
int raw_bytes(struct lb_trace_writer *writer, const void *bytes, size_t size); /* behind its size */

/* The index and the end, behind everything else. */
int index_write(struct lb_trace_writer *writer);

#endif
