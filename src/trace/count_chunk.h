/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting whole chunks of entries: the declarations that count_chunk.c (the open chunk and the next one) and
 * count_arc.c (the meaning of entries) share.
 */
#ifndef TRACE_COUNT_CHUNK_H
#define TRACE_COUNT_CHUNK_H

#include "trace/reader.h"

#define ARC_BITS 17
#define ARCS (1u << ARC_BITS)
#define ARC_GROUP 64u /* places in the table for the arcs that begin with one entry */

#define ARC_QUEUE 256u
#define OTHERS_MAX 1024u

/* An arc: an entry after another entry, how often that occurred, and the meaning of each occurrence. */
struct count_arc {
  uint32_t before, entry; /* both 0: the place is empty */
  int32_t count;          /* occurrences that are not yet added to the counts of the reader */
  uint32_t left;          /* the path was left at this step; 0: none was */
  uint16_t branches;
  uint8_t not_taken;
  uint8_t pair; /* enum arc_pair; ARC_UNKNOWN: the arc waits in the queue, and the fields before this are 0 */
};

/* The indirect branch whose target an arc tells. */
enum arc_pair {
  ARC_UNKNOWN,
  ARC_NO_PAIR,
  ARC_OWN_PAIR, /* the branch of the step `left` went to `entry` */
  ARC_OPEN_PAIR,
};

struct chunk_counter {
  /* The next chunk of entries, which is read and decoded together with the one that is open. */
  struct {
    uint64_t place;
    struct chunk_head head;
    struct chunk_position position;
    struct buffer raw;
    bool is_loaded;  /* the fields above are valid */
    bool is_decoded; /* the entries of the chunk with this place */
    struct entry_decoder decoder;
    struct entry_pieces pieces;
  } ahead;
  struct entry_pieces pieces;  /* of the chunk that is open */
  uint32_t *extra;             /* by place of an entry: how often it is repeated; all zero between chunks */
  unsigned chunks;             /* since the counts of arcs were added to the counts of the reader */
  unsigned by_steps;           /* number of further chunks that are counted by steps (count_plain.c) */
  unsigned entered;            /* arcs that came into the table with this chunk */
  unsigned crowded;            /* chunks in a row with too many of these */
  unsigned other;              /* entries that wait, */
  uint32_t others[OTHERS_MAX]; /* and their places */
  struct count_arc arcs[ARCS];
  /* Work that waits until fetching many steps at once is worth while: */
  unsigned queued;
  uint32_t fresh[ARC_QUEUE];        /* places of arcs that are new in the table, */
  struct count_arc gone[ARC_QUEUE]; /* and the arcs that were there before */
};

/* Counts some entries, or takes their counts back. */
struct chunk_sum {
  struct lb_trace_reader *reader;
  struct chunk_counter *counter;
  int sign;
  bool is_bad; /* an entry was no pass over a path, or there was no room for its counts: it was left out */
  uint64_t branches, not_taken;
};

static inline uint32_t arc_index(uint32_t before, uint32_t entry)
{
  return (before * 0x9E3779B1u >> (32 - ARC_BITS)) ^ (entry * 0x85EBCA77u >> 26);
}

_Static_assert(ARC_GROUP == 1u << (32 - 26), "");

/* The sum of some arcs, small enough to stay in registers. */
struct arc_total {
  int64_t branches, not_taken;
};

/* Enters a new arc into the table. */
void arc_enter(struct chunk_sum *sum, uint32_t before, uint32_t entry, int32_t times);

/* Counts an entry after another one. The sum is right after arcs_finish. */
static inline void arc_count(struct chunk_sum *sum, struct arc_total *total, uint32_t before, uint32_t entry,
                             int32_t times)
{
  struct count_arc *arc = &sum->counter->arcs[arc_index(before, entry)];

  if (arc->before != before || arc->entry != entry) {
    arc_enter(sum, before, entry, times);
    return;
  }
  arc->count += times;
  total->branches += arc->branches * times;
  total->not_taken += arc->not_taken * times;
}

/* The same for the first entry of a chunk. */
void arc_count_first(struct chunk_sum *sum, uint32_t entry);

/* Does the queued work. */
void arcs_finish(struct chunk_sum *sum);

/* ---- count_plain.c ---- */

/* Counts `count` entries before a place, the last first. */
void plain_add(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t end, uint32_t count);

/* Prefetches the steps of the entries before a place. */
void plain_fetch(const struct chunk_sum *sum, const uint32_t *words, uint32_t end);

/* Ends a chunk after all of its entries were added, `plain` of them as plain ones. */
void plain_end(struct chunk_sum *sum, const uint32_t *words, uint32_t *extra, uint32_t plain);

#endif
