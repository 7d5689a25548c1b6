/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of a timeline: calls with their place on all axes, in bounded memory. When there are too many, the
 * shortest are merged with their neighbours of the same row (thread and depth), until there are few enough. The last
 * calls of each stream are never merged, since programs die there.
 */
#ifndef ANALYSIS_TIMELINE_STORE_H
#define ANALYSIS_TIMELINE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_TAIL 4096u      /* last calls of a stream that are never merged, */
#define TIMELINE_DEPTH_MAX 1024u /* and rows that a stream has at most: deeper calls are counted, not shown */

#define TIMELINE_MERGE_TIME UINT64_C(1000) /* nanoseconds */

enum timeline_flag {
  TIMELINE_BEGINS_BEFORE = 1u << 0, /* the block was cut at the edge of the shown part */
  TIMELINE_ENDS_BEHIND = 1u << 1,
  TIMELINE_IS_TAIL = 1u << 2, /* no calls are merged here */
};

struct timeline_block {
  uint64_t start, end;             /* branches */
  uint64_t start_count, end_count; /* instructions */
  uint64_t start_time, end_time;   /* nanoseconds since the start of the recording; zeros without times */
  uint64_t waited, held;           /* of the calls: as in struct analysis_moment */
  uint64_t busy;                   /* branches of the calls in it, without the gaps between them */
  uint64_t calls;                  /* 1: a single call; more: the number of merged calls */
  uint64_t weight;                 /* lead of `function` in the Boyer-Moore majority vote */
  uint32_t stream;
  uint32_t function; /* of merged calls: the one that has more than half of `busy`, if there is one */
  uint16_t depth;
  uint8_t flags; /* enum timeline_flag */
  uint8_t how;   /* enum analysis_call_how, by which a call was left */
};

/* The last blocks of a stream. */
struct timeline_tail {
  struct timeline_block *blocks; /* NULL: it has none */
  size_t count, next;            /* next: index of the oldest, once the ring is full */
};

struct timeline_rows {
  size_t *last; /* by depth: the block that was stored last, plus 1; 0: none */
  size_t count, capacity;
};

struct timeline_store {
  struct timeline_block *blocks;
  size_t count, capacity, max;
  uint64_t merge; /* calls of fewer branches are merged, unless they took longer than TIMELINE_MERGE_TIME for each */
  uint64_t merge_min;
  uint32_t depth_max;          /* the deepest row that is kept */
  bool has_deeper;             /* rows deeper than depth_max were dropped */
  uint64_t merged;             /* calls in merged blocks */
  struct timeline_tail *tails; /* by stream */
  struct timeline_rows *rows;
  size_t streams, streams_capacity, rows_capacity;
  size_t tail_blocks; /* blocks that the tails have room for */
};

/* At most `max` blocks; calls of fewer than `merge` branches are merged from the beginning, if they are short in time,
 * too. */
void timeline_store_init(struct timeline_store *store, size_t max, uint64_t merge);
void timeline_store_done(struct timeline_store *store);

/* Blocks of a row come in their order. Returns 0, or -ENOMEM. */
int timeline_store_add(struct timeline_store *store, const struct timeline_block *block);

/* To be called after the last block: sorts the blocks by stream, depth and start. Returns 0, or -ENOMEM. */
int timeline_store_end(struct timeline_store *store);

/* Makes the store smaller, also after timeline_store_end: calls of up to twice the length are merged. Returns false
 * when that is not possible. */
bool timeline_store_shrink(struct timeline_store *store);

#endif
