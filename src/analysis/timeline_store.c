/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of a timeline. The length of a call is known when it is left. A short call is merged into the last block
 * of its row, as long as that stays short, too. A row therefore has at most two blocks for each stretch of `merge`
 * branches and for each stretch of time that belongs to it, and doubling `merge` makes room in any trace. A call that
 * has few branches and takes long, because its thread waits, stays a block of its own.
 */
#include "analysis/timeline_store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

#define MERGE_END (UINT64_C(1) << 48) /* longer than any trace: merging does not help */

void timeline_store_init(struct timeline_store *store, size_t max, uint64_t merge)
{
  *store = (struct timeline_store){
    .max = max < 64 ? 64 : max, .merge = merge, .merge_min = merge, .depth_max = TIMELINE_DEPTH_MAX};
}

void timeline_store_done(struct timeline_store *store)
{
  for (size_t i = 0; i < store->streams; i++) {
    free(store->tails[i].blocks);
    free(store->rows[i].last);
  }
  free(store->tails);
  free(store->rows);
  free(store->blocks);
  *store = (struct timeline_store){0};
}

/* ---- streams and rows ---- */

/* Makes room for the stream. */
static int stream_get(struct timeline_store *store, uint32_t stream)
{
  size_t tails = store->streams, rows = store->streams;

  if (!array_at(&store->tails, stream, &tails, &store->streams_capacity) ||
      !array_at(&store->rows, stream, &rows, &store->rows_capacity))
    return -ENOMEM;
  store->streams = rows;
  return 0;
}

/* The variable that holds the last block of a row (struct timeline_rows). NULL without memory. */
static size_t *row_get(struct timeline_store *store, const struct timeline_block *block)
{
  struct timeline_rows *rows = &store->rows[block->stream];

  return array_at(&rows->last, block->depth, &rows->count, &rows->capacity);
}

static void rows_forget(struct timeline_store *store)
{
  for (size_t i = 0; i < store->streams; i++)
    for (size_t depth = 0; depth < store->rows[i].count; depth++)
      store->rows[i].last[depth] = 0;
}

/* ---- merging ---- */

static uint64_t block_size(const struct timeline_block *block)
{
  return block->end - block->start;
}

/* Do the blocks take so little time that they may be merged? */
static bool time_fits(const struct timeline_store *store, const struct timeline_block *into,
                      const struct timeline_block *block)
{
  return store->merge >= MERGE_END || block->end_time <= into->start_time ||
         block->end_time - into->start_time < store->merge * TIMELINE_MERGE_TIME;
}

static bool block_fits(const struct timeline_store *store, const struct timeline_block *into,
                       const struct timeline_block *block)
{
  return block_size(into) < store->merge && block_size(block) < store->merge && block->start >= into->end &&
         block->end - into->start < store->merge && time_fits(store, into, block) &&
         !((into->flags | block->flags) & TIMELINE_IS_TAIL);
}

/* The function that has more than half of the whole wins the vote of the whole. */
static void block_merge(struct timeline_store *store, struct timeline_block *into, const struct timeline_block *block)
{
  bool is_same = into->function == block->function;

  store->merged += (into->calls == 1) + (block->calls == 1);
  if (is_same)
    into->weight += block->weight;
  else if (into->weight >= block->weight)
    into->weight -= block->weight;
  else {
    into->function = block->function;
    into->weight = block->weight - into->weight;
  }
  into->end = block->end;
  into->end_count = block->end_count;
  if (block->end_time > into->end_time)
    into->end_time = block->end_time;
  into->waited += block->waited;
  into->held += block->held;
  into->busy += block->busy;
  into->calls += block->calls;
  into->flags |= block->flags;
  into->how = 0;
}

/* Appends a block. There must be room for it. */
static int block_put(struct timeline_store *store, const struct timeline_block *block)
{
  size_t *last;

  if (block->depth > store->depth_max) {
    store->has_deeper = true;
    return 0;
  }
  last = row_get(store, block);
  if (!last)
    return -ENOMEM;
  if (*last && block_fits(store, &store->blocks[*last - 1], block)) {
    block_merge(store, &store->blocks[*last - 1], block);
    return 0;
  }
  store->blocks[store->count++] = *block;
  *last = store->count;
  return 0;
}

/* Inserts all blocks again. The rows exist already, so this cannot fail. */
static void blocks_again(struct timeline_store *store)
{
  size_t count = store->count;

  store->count = 0;
  rows_forget(store);
  for (size_t i = 0; i < count; i++) {
    struct timeline_block block = store->blocks[i];

    block_put(store, &block);
  }
}

bool timeline_store_shrink(struct timeline_store *store)
{
  size_t before = store->count;

  if (store->merge >= MERGE_END && store->depth_max == 0)
    return false;
  if (store->merge < MERGE_END)
    store->merge = store->merge ? 2 * store->merge : 2;
  else
    store->depth_max /= 2;
  blocks_again(store);
  return store->count <= before;
}

/* ---- adding ---- */

/* Room for a quarter more: tails come on top of `max`. */
static int room_make(struct timeline_store *store)
{
  if (store->count < store->capacity)
    return 0;
  if (store->count >= store->max) {
    while (store->count > store->max / 4 * 3 && timeline_store_shrink(store))
      ;
    return store->count < store->capacity ? 0 : -ENOMEM;
  }
  size_t wanted = store->capacity ? 2 * store->capacity : 1024;
  wanted = wanted < store->max ? wanted : store->max;
  struct timeline_block *blocks = realloc(store->blocks, wanted * sizeof(*blocks));

  if (!blocks)
    return -ENOMEM;
  store->blocks = blocks;
  store->capacity = wanted;
  return 0;
}

static int block_store(struct timeline_store *store, const struct timeline_block *block)
{
  int r = room_make(store);

  return r < 0 ? r : block_put(store, block);
}

/* Tails take a quarter of the room at most: with very many streams, the later ones have none. */
static bool tail_begin(struct timeline_store *store, struct timeline_tail *tail)
{
  if (tail->blocks)
    return true;
  if (store->tail_blocks + TIMELINE_TAIL > store->max / 4)
    return false;
  tail->blocks = malloc(TIMELINE_TAIL * sizeof(*tail->blocks));
  store->tail_blocks += tail->blocks ? TIMELINE_TAIL : 0;
  return tail->blocks != NULL;
}

int timeline_store_add(struct timeline_store *store, const struct timeline_block *block)
{
  struct timeline_tail *tail;
  int r = stream_get(store, block->stream);

  assert(block->start <= block->end && block->start_count <= block->end_count && block->depth <= TIMELINE_DEPTH_MAX);
  if (r < 0)
    return r;
  tail = &store->tails[block->stream];
  if (!tail_begin(store, tail))
    return block_store(store, block);
  if (tail->count < TIMELINE_TAIL) {
    tail->blocks[tail->count++] = *block;
    return 0;
  }
  r = block_store(store, &tail->blocks[tail->next]);
  tail->blocks[tail->next] = *block;
  tail->next = (tail->next + 1) % TIMELINE_TAIL;
  return r;
}

/* ---- the end ---- */

static int block_compare(const void *a, const void *b)
{
  const struct timeline_block *one = a, *other = b;

  if (one->stream != other->stream)
    return one->stream < other->stream ? -1 : 1;
  if (one->depth != other->depth)
    return one->depth < other->depth ? -1 : 1;
  if (one->start != other->start)
    return one->start < other->start ? -1 : 1;
  return one->end < other->end ? -1 : one->end > other->end;
}

static int tail_end(struct timeline_store *store, struct timeline_tail *tail)
{
  for (size_t i = 0; i < tail->count; i++) {
    struct timeline_block *block = &tail->blocks[(tail->next + i) % TIMELINE_TAIL];
    int r;

    block->flags |= TIMELINE_IS_TAIL;
    r = block_store(store, block);
    if (r < 0)
      return r;
  }
  tail->count = tail->next = 0;
  return 0;
}

int timeline_store_end(struct timeline_store *store)
{
  int r = 0;

  for (size_t i = 0; i < store->streams && r >= 0; i++)
    r = tail_end(store, &store->tails[i]);
  if (store->count)
    qsort(store->blocks, store->count, sizeof(*store->blocks), block_compare);
  rows_forget(store); /* sorting has moved the blocks */
  return r;
}
