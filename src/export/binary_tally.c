/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by pairs of addresses: items are appended, and merged when there are many. One such sum is the execution count
 * of each instruction.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "export/binary.h"

#define LOOSE_MAX (1u << 20) /* items before they are merged for the first time */

static int item_compare(const void *one, const void *other)
{
  const struct tally_item *a = one, *b = other;

  if (a->from != b->from)
    return a->from < b->from ? -1 : 1;
  return a->to < b->to ? -1 : a->to > b->to;
}

void tally_finish(struct tally *tally)
{
  size_t kept = 0;

  if (tally->count)
    qsort(tally->items, tally->count, sizeof(*tally->items), item_compare);
  for (size_t i = 0; i < tally->count; i++)
    if (kept && !item_compare(&tally->items[kept - 1], &tally->items[i]))
      tally->items[kept - 1].count += tally->items[i].count;
    else
      tally->items[kept++] = tally->items[i];
  tally->count = kept;
}

/* Makes room. If merging did not remove half of the items, the array grows; otherwise it would be sorted again and
 * again. */
static int tally_grow(struct tally *tally)
{
  size_t full = tally->capacity;
  struct tally_item *items;

  if (tally->count >= LOOSE_MAX)
    tally_finish(tally);
  if (full && tally->count <= full / 2)
    return 0;
  items = array_grow(tally->items, sizeof(*items), full, &tally->capacity);
  if (!items)
    return -ENOMEM;
  tally->items = items;
  return 0;
}

int tally_add(struct tally *tally, uint64_t from, uint64_t to, uint64_t count)
{
  if (tally->count == tally->capacity && tally_grow(tally) < 0)
    return -ENOMEM;
  tally->items[tally->count++] = (struct tally_item){from, to, count};
  return 0;
}

size_t tally_seek(const struct tally *tally, uint64_t from)
{
  struct search search = {.end = tally->count};

  while (search_next(&search))
    search_turn(&search, tally->items[search.at].from < from);
  return search.first;
}

void tally_done(struct tally *tally)
{
  free(tally->items);
  *tally = (struct tally){0};
}

/* ---- instructions ---- */

static int ran_add(void *data, const struct analysis_ran *ran)
{
  return tally_add(data, ran->at.address, 0, ran->executed);
}

/* Blocks are sorted by file, so the blocks of one file are contiguous. */
int binary_instructions(struct export_job *job, struct tally *tally)
{
  size_t count, first = 0, end;
  const struct analysis_block *blocks = analysis_counts_blocks(job->counts, &count);
  uint32_t file;
  int r = export_file(job, &file);

  if (r < 0)
    return r;
  while (first < count && blocks[first].first.file != file)
    first++;
  for (end = first; end < count && blocks[end].first.file == file;)
    end++;
  r = analysis_blocks_walk(job->code, blocks + first, end - first, ran_add, tally);
  tally_finish(tally);
  if (r >= 0 && !tally->count)
    return binary_fail(job, file);
  return r;
}
