/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a reader: bytes from a file or memory, chunks out of them (load.c), records out of these (unpack.c),
 * the order in which they are read (reader.c), and the end of a stream without reading all before it (tail.c).
 */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <zstd.h>

#include "lastbranch/trace.h"
#include "trace/branches.h"
#include "trace/format.h"

struct reader_stream {
  uint64_t next; /* number of the branch that comes next if none is missing */
  uint64_t last; /* place of its last chunk; 0: not known */
};

/* Places of chunks to be read in this order, instead of from front to end. */
struct reader_plan {
  bool is_on;
  bool is_broken; /* the way back through the stream ended too early */
  bool is_cut;    /* the file lacks its end */
  uint64_t *places;
  size_t count, capacity;
  size_t at;
  size_t described; /* places that come before those of the stream */
  uint64_t skip;    /* branches of the stream's first chunk that were not asked for */
};

struct lb_trace_reader {
  int fd; /* -1: bytes in memory */
  const uint8_t *bytes;
  uint64_t size;
  uint64_t offset; /* where the next chunk is */
  bool is_over;    /* the end was given */
  /* the chunk that was loaded last */
  uint64_t place;
  struct chunk_head head;
  struct chunk_position position;
  struct buffer stored, raw;
  ZSTD_DCtx *zstd;
  /* branches that come out of it */
  struct decoder decoder;
  uint64_t number; /* of the next one */
  uint64_t skip;
  struct reader_stream *streams;
  size_t count, capacity;
  struct reader_plan plan;
  char texts[2][LB_TRACE_TEXT_MAX + 1];
  struct lb_branch batch[LB_TRACE_BATCH_MAX];
};

/* ---- load.c ---- */

/* Bytes of the file. Returns 0, -errno, or LB_E_TRUNCATED. */
int reader_read(struct lb_trace_reader *reader, uint64_t offset, void *bytes, size_t size);

/* The head of the chunk at `offset`. Returns 0; LB_E_TRUNCATED when the file ends before the chunk does; LB_E_DAMAGED
 * when there is no chunk; -errno. */
int chunk_find(struct lb_trace_reader *reader, uint64_t offset, struct chunk_head *ret_head);

/* The same with its position; LB_E_DAMAGED for a chunk that has none. */
int chunk_find_position(struct lb_trace_reader *reader, uint64_t offset, struct chunk_head *ret_head,
                        struct chunk_position *ret_position);

/* Looks for the next head of a chunk behind `offset`. Returns 0, LB_E_TRUNCATED when there is none, or -errno. */
int chunk_search(struct lb_trace_reader *reader, uint64_t offset, uint64_t *ret_offset);

/* Loads the chunk that chunk_find found: head, position, and contents in reader->raw. Returns 0, -errno, -ENOMEM, or
 * LB_E_DAMAGED. */
int chunk_load(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head);

/* ---- unpack.c ---- */

/* Is it a chunk that describes, and that this reader knows? */
bool chunk_describes(unsigned type);

/* What the loaded chunk says. Returns 0 or LB_E_DAMAGED. */
int record_unpack(struct lb_trace_reader *reader, struct lb_trace_record *ret_record);
int gap_unpack(struct lb_trace_reader *reader, struct lb_trace_gap *ret_gap);

/* ---- reader.c ---- */

/* The stream with this number, as long as numbers are in range: LB_E_DAMAGED, or -ENOMEM. */
int stream_get(struct lb_trace_reader *reader, uint32_t number, struct reader_stream **ret_stream);

#endif
