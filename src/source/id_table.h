/* SPDX-License-Identifier: Apache-2.0
 *
 * Items by the number that the system gives a process or a thread. Items are in the order in which they were added,
 * until one is removed: the last item then takes its place.
 */
#ifndef SOURCE_ID_TABLE_H
#define SOURCE_ID_TABLE_H

#include "base/base.h"

struct id_entry {
  uint32_t id;
  void *item; /* from the heap; the table frees it */
};

/* Starts as all zero. */
struct id_table {
  struct id_entry *entries;
  size_t count, capacity;
  struct hash_index index;
};

/* The item with this number, or NULL. */
void *id_table_find(const struct id_table *table, uint32_t id);

/* A new item of `size` bytes, all zero; the table has no item with this number. NULL without memory: the table is then
 * as before. */
void *id_table_new(struct id_table *table, uint32_t id, size_t size);

/* The item with this number, or else a new one. NULL without memory. */
void *id_table_get(struct id_table *table, uint32_t id, size_t size);

/* Frees the item with this number, if there is one. */
void id_table_drop(struct id_table *table, uint32_t id);

/* Frees the table and its items; the table is then empty and may be used again. */
void id_table_done(struct id_table *table);

#endif
