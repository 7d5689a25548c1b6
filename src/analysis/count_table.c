/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table of the counts.
 */
#include "analysis/count_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define TABLE_LEAST 1024u

static bool key_is(const struct count_item *one, const struct count_item *other)
{
  return analysis_location_is(&one->from, &other->from) && analysis_location_is(&one->to, &other->to) &&
         one->start == other->start && one->kind == other->kind && one->is_passed == other->is_passed;
}

static struct count_item *item_place(const struct count_table *table, const struct count_item *key)
{
  uint64_t hash = hash_mix(hash_start(key->from.address), key->to.address);
  size_t i;

  hash = hash_mix(hash, (uint64_t)key->from.file << 32 | key->to.file);
  hash = hash_mix(hash, key->start ^ (uint64_t)key->from.space << 32 ^ (uint64_t)key->is_passed << 63);
  i = (size_t)(hash >> 32) & (table->capacity - 1);
  while (table->items[i].count && !key_is(&table->items[i], key))
    i = (i + 1) & (table->capacity - 1);
  return &table->items[i];
}

int count_table_grow(struct count_table *table)
{
  struct count_table next = {.count = table->count, .capacity = table->capacity ? 2 * table->capacity : TABLE_LEAST};

  next.items = calloc(next.capacity, sizeof(*next.items));
  if (!next.items)
    return -ENOMEM;
  for (size_t i = 0; i < table->capacity; i++)
    if (table->items[i].count)
      *item_place(&next, &table->items[i]) = table->items[i];
  free(table->items);
  *table = next;
  return 0;
}

struct count_item *count_table_find(const struct count_table *table, const struct count_item *key)
{
  struct count_item *item = table->capacity ? item_place(table, key) : NULL;

  return item && item->count ? item : NULL;
}

struct count_item *count_table_get(struct count_table *table, const struct count_item *key)
{
  struct count_item *item = item_place(table, key);

  if (item->count)
    return item;
  assert(!count_table_is_full(table));
  *item = *key;
  table->count++;
  return item;
}

void count_table_clear(struct count_table *table)
{
  if (table->capacity)
    memset(table->items, 0, table->capacity * sizeof(*table->items));
  table->count = 0;
}

void count_table_done(struct count_table *table)
{
  free(table->items);
  *table = (struct count_table){0};
}
