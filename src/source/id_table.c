/* SPDX-License-Identifier: Apache-2.0
 *
 * Items by number: an array of entries with a hash index.
 */
#include "source/id_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static uint32_t entry_find(const struct id_table *table, uint32_t id)
{
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&table->index, hash_start(id), &at)) != HASH_NONE;)
    if (table->entries[number].id == id)
      break;
  return number;
}

void *id_table_find(const struct id_table *table, uint32_t id)
{
  uint32_t number = entry_find(table, id);

  return number == HASH_NONE ? NULL : table->entries[number].item;
}

static int entry_add(struct id_table *table, uint32_t id, void *item)
{
  struct id_entry *entry = array_append(&table->entries, &table->count, &table->capacity);

  if (!entry)
    return -ENOMEM;
  *entry = (struct id_entry){id, item};
  if (hash_index_add(&table->index, hash_start(id), table->count - 1) < 0) {
    table->count--;
    return -ENOMEM;
  }
  return 0;
}

void *id_table_new(struct id_table *table, uint32_t id, size_t size)
{
  void *item = calloc(1, size);

  assert(entry_find(table, id) == HASH_NONE);
  if (item && entry_add(table, id, item) < 0) {
    free(item);
    return NULL;
  }
  return item;
}

void *id_table_get(struct id_table *table, uint32_t id, size_t size)
{
  void *item = id_table_find(table, id);

  return item ? item : id_table_new(table, id, size);
}

void id_table_drop(struct id_table *table, uint32_t id)
{
  uint32_t number = entry_find(table, id), last;

  if (number == HASH_NONE)
    return;
  free(table->entries[number].item);
  last = (uint32_t)--table->count;
  hash_index_remove(&table->index, hash_start(id), number);
  if (number != last) {
    hash_index_renumber(&table->index, hash_start(table->entries[last].id), last, number);
    table->entries[number] = table->entries[last];
  }
}

void id_table_done(struct id_table *table)
{
  for (size_t i = 0; i < table->count; i++)
    free(table->entries[i].item);
  free(table->entries);
  hash_index_done(&table->index);
  *table = (struct id_table){0};
}
