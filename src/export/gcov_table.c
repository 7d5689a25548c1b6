/* SPDX-License-Identifier: Apache-2.0
 *
 * The table that a gcov profile is put together in: two arrays with a hash over each.
 */
#include "export/gcov_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define FIRST_SIZE 1024u /* of a hash; always a power of two, and at least twice as great as what is in it */

/* ---- the hashes ---- */

static size_t string_hash(const char *string)
{
  uint64_t hash = UINT64_C(0xCBF29CE484222325);

  for (; *string; string++)
    hash = (hash ^ (unsigned char)*string) * UINT64_C(0x100000001B3);
  return (size_t)(hash ^ hash >> 29);
}

static size_t item_hash(const struct gcov_item *item)
{
  uint64_t hash = ((uint64_t)item->parent << 32 | item->offset) * UINT64_C(0x9E3779B97F4A7C15);

  hash ^= ((uint64_t)item->name << 8 | item->kind) * UINT64_C(0xC2B2AE3D27D4EB4F);
  return (size_t)(hash ^ hash >> 31);
}

static bool item_is(const struct gcov_item *one, const struct gcov_item *other)
{
  return one->parent == other->parent && one->kind == other->kind && one->offset == other->offset &&
         one->name == other->name;
}

static void place_put(uint32_t *places, size_t size, size_t hash, size_t number)
{
  size_t i = hash & (size - 1);

  while (places[i])
    i = (i + 1) & (size - 1);
  places[i] = (uint32_t)number + 1;
}

/* Another hash, if one more would make it too full. The caller fills it. Returns 1 if there is a new one, 0, or
 * -ENOMEM. */
static int places_grow(uint32_t **places, size_t *size, size_t count)
{
  size_t wanted = *size ? *size * 2 : FIRST_SIZE;
  uint32_t *grown;

  if (2 * (count + 1) <= *size)
    return 0;
  grown = count < UINT32_MAX / 2 ? calloc(wanted, sizeof(*grown)) : NULL;
  if (!grown)
    return -ENOMEM;
  free(*places);
  *places = grown;
  *size = wanted;
  return 1;
}

/* ---- strings ---- */

static int string_add(struct gcov_table *table, const char *string)
{
  char **strings = array_grow(table->strings, sizeof(*strings), table->string_count, &table->string_capacity);
  int r = strings ? places_grow(&table->string_places, &table->string_place_count, table->string_count) : -ENOMEM;

  table->strings = strings ? strings : table->strings;
  for (size_t i = 0; r > 0 && i < table->string_count; i++)
    place_put(table->string_places, table->string_place_count, string_hash(strings[i]), i);
  if (r < 0 || !(strings[table->string_count] = strdup(string)))
    return -ENOMEM;
  place_put(table->string_places, table->string_place_count, string_hash(string), table->string_count);
  table->string_count++;
  return 0;
}

int gcov_string(struct gcov_table *table, const char *string, uint32_t *ret_number)
{
  size_t mask = table->string_place_count - 1;

  for (size_t i = string_hash(string); table->string_place_count && table->string_places[i & mask]; i++)
    if (!strcmp(table->strings[table->string_places[i & mask] - 1], string)) {
      *ret_number = table->string_places[i & mask] - 1;
      return 0;
    }
  *ret_number = (uint32_t)table->string_count;
  return string_add(table, string);
}

/* ---- items ---- */

static struct gcov_item *item_add(struct gcov_table *table, const struct gcov_item *key)
{
  struct gcov_item *items = array_grow(table->items, sizeof(*items), table->count, &table->capacity);
  int r = items ? places_grow(&table->places, &table->place_count, table->count) : -ENOMEM;

  table->items = items ? items : table->items;
  for (size_t i = 0; r > 0 && i < table->count; i++)
    place_put(table->places, table->place_count, item_hash(&items[i]), i);
  if (r < 0)
    return NULL;
  place_put(table->places, table->place_count, item_hash(key), table->count);
  items[table->count] = *key;
  items[table->count].instance = key->kind == GCOV_CALL ? ++table->instances : 0;
  return &items[table->count++];
}

struct gcov_item *gcov_item(struct gcov_table *table, const struct gcov_item *key)
{
  size_t mask = table->place_count - 1;

  for (size_t i = item_hash(key); table->place_count && table->places[i & mask]; i++) {
    struct gcov_item *item = &table->items[table->places[i & mask] - 1];

    if (item_is(item, key))
      return item;
  }
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
  size_t low = 0, high = table->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (table->items[middle].parent < parent)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
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
  free(table->string_places);
  free(table->items);
  free(table->places);
  *table = (struct gcov_table){0};
}
