/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash of counted items. The key is from, to and whatever else tells them apart. A slot whose count is 0 is empty.
 */
#ifndef ANALYSIS_COUNT_TABLE_H
#define ANALYSIS_COUNT_TABLE_H

#include "analysis/location.h"

struct count_item {
  struct analysis_location from, to;
  uint64_t start;
  int8_t kind;
  bool is_passed;
  /* of a block, no part of the key: */
  bool is_known; /* these were looked up: */
  int8_t last;   /* kind of its last instruction, -1: no branch */
  uint32_t instructions;
  uint32_t length; /* of the last */
  uint64_t count;
};

struct count_table {
  struct count_item *items;
  size_t count, capacity; /* a power of two, or 0 */
};

static inline bool count_table_is_full(const struct count_table *table)
{
  return table->count >= table->capacity / 4 * 3;
}

/* Makes it twice as large. Returns 0, or -ENOMEM. */
int count_table_grow(struct count_table *table);

/* The item with this key, or NULL. */
struct count_item *count_table_find(const struct count_table *table, const struct count_item *key);

/* The same, or a new item with a count of 0, for which there must be room. The caller increments the count. */
struct count_item *count_table_get(struct count_table *table, const struct count_item *key);

void count_table_clear(struct count_table *table);
void count_table_done(struct count_table *table);

#endif
