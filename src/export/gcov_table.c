/* SPDX-License-Identifier: Apache-2.0
 *
 * The table in which a gcov profile is collected: two arrays with an index over each.
 */
#include "export/gcov_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t item_hash(const struct gcov_item *item)
{
  return hash_mix(hash_start((uint64_t)item->parent << 32 | item->offset), (uint64_t)item->name << 8 | item->kind);
}

static bool item_is(const struct gcov_item *one, const struct gcov_item *other)
{
  return one->parent == other->parent && one->kind == other->kind && one->offset == other->offset &&
         one->name == other->name;
}

/* ---- strings ---- */

static int string_add(struct gcov_table *table, const char *string, uint64_t hash)
{
  char *copy = strdup(string),
       **added = copy ? array_append(&table->strings, &table->string_count, &table->string_capacity) : NULL;

  if (!added) {
    free(copy);
    return -ENOMEM;
  }
  *added = copy;
  return hash_index_add(&table->string_index, hash, table->string_count - 1);
}

int gcov_string(struct gcov_table *table, const char *string, uint32_t *ret_number)
{
  uint64_t hash = hash_mix_string(hash_start(0), string);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&table->string_index, hash, &at)) != HASH_NONE;)
    if (!strcmp(table->strings[number], string)) {
      *ret_number = number;
      return 0;
    }
  *ret_number = (uint32_t)table->string_count;
  return string_add(table, string, hash);
}

/* ---- items ---- */

static struct gcov_item *item_add(struct gcov_table *table, const struct gcov_item *key)
{
  struct gcov_item *item = array_append(&table->items, &table->count, &table->capacity);

  if (!item)
    return NULL;
  *item = *key;
  item->instance = key->kind == GCOV_CALL ? ++table->instances : 0;
  return hash_index_add(&table->index, item_hash(key), table->count - 1) < 0 ? NULL : item;
}

struct gcov_item *gcov_item(struct gcov_table *table, const struct gcov_item *key)
{
  uint64_t hash = item_hash(key);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&table->index, hash, &at)) != HASH_NONE;)
    if (item_is(&table->items[number], key))
      return &table->items[number];
  return item_add(table, key);
}

static int item_compare(const void *one, const void *other)
{
  const struct gcov_item *a = one, *b = other;

  if (a->parent != b->parent)
    return a->parent < b->parent ? -1 : 1;
  if ((a->kind == GCOV_CALL) != (b->kind == GCOV_CALL))
    return a->kind == GCOV_CALL ? 1 : -1;
  if (a->offset != b->offset)
    return a->offset < b->offset ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  return a->name < b->name ? -1 : a->name > b->name;
}

void gcov_table_finish(struct gcov_table *table)
{
  if (table->count)
    qsort(table->items, table->count, sizeof(*table->items), item_compare);
}

static size_t items_before(const struct gcov_table *table, uint32_t parent)
{
  struct search search = {.end = table->count};

  while (search_next(&search))
    search_turn(&search, table->items[search.at].parent < parent);
  return search.first;
}

const struct gcov_item *gcov_items(const struct gcov_table *table, uint32_t parent, size_t *ret_count)
{
  size_t first = items_before(table, parent);

  *ret_count = items_before(table, parent + 1) - first;
  return table->items + first;
}

void gcov_table_done(struct gcov_table *table)
{
  for (size_t i = 0; i < table->string_count; i++)
    free(table->strings[i]);
  free(table->strings);
  hash_index_done(&table->string_index);
  free(table->items);
  hash_index_done(&table->index);
  *table = (struct gcov_table){0};
}
