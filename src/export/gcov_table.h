/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a gcov profile while it is built: functions, the functions inlined into them and where, and counts of
 * their lines.
 */
#ifndef EXPORT_GCOV_TABLE_H
#define EXPORT_GCOV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum gcov_kind {
  GCOV_LINE,   /* of a function: its count is the greatest count of its instructions */
  GCOV_TARGET, /* a target of an indirect call in a line, and how often it was called */
  GCOV_CALL,   /* a function that is inlined there; under the root, a function, with how often it was entered */
};

/* One item of an instance of a function. */
struct gcov_item {
  uint32_t parent; /* instance; 0: the root of all */
  uint8_t kind;
  uint32_t offset;   /* lines after the function's own */
  uint32_t name;     /* string; of a line 0 */
  uint32_t instance; /* of the inlined function; else 0 */
  uint64_t count;
};

struct gcov_table {
  struct gcov_item *items;
  size_t count, capacity;
  struct hash_index index; /* of items by parent, kind, offset and name */
  uint32_t instances;
  char **strings;
  size_t string_count, string_capacity;
  struct hash_index string_index;
};

/* The number of a string, which is kept. Returns 0, or -ENOMEM. */
int gcov_string(struct gcov_table *table, const char *string, uint32_t *ret_number);

/* Finds the item with the parent, kind, offset and name of `key`, or adds it. It is valid until the next call. Returns
 * NULL without memory. */
struct gcov_item *gcov_item(struct gcov_table *table, const struct gcov_item *key);

/* Sorts: by parent, lines with their targets before calls, by offset. Nothing can be added afterwards. */
void gcov_table_finish(struct gcov_table *table);

/* The items of an instance, of a table that is finished. */
const struct gcov_item *gcov_items(const struct gcov_table *table, uint32_t parent, size_t *ret_count);

void gcov_table_done(struct gcov_table *table);

#endif
