/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies where in the address spaces of a trace: pieces of files, none over another.
 */
#ifndef ANALYSIS_MAPPING_H
#define ANALYSIS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPPINGS_MAX 65536u

struct mapping {
  uint32_t space;
  uint32_t file;
  uint64_t first, last; /* addresses, both inclusive: the last page of all can be mapped too */
  uint64_t offset;      /* in the file, of `first` */
};

struct mapping_list {
  struct mapping *mappings; /* sorted by space and address */
  size_t count, capacity;
};

/* Nothing lies from `first` to `last` any more. Returns 0, LB_E_TOO_BIG, or -ENOMEM: nothing has changed then. */
int mapping_list_clear(struct mapping_list *list, uint32_t space, uint64_t first, uint64_t last);

/* Adds one, over what lay there. Returns as mapping_list_clear. */
int mapping_list_add(struct mapping_list *list, const struct mapping *mapping);

/* What lies at an address, or NULL. */
const struct mapping *mapping_list_find(const struct mapping_list *list, uint32_t space, uint64_t address);

/* Does anything lie from `first` to `last`? */
bool mapping_list_overlaps(const struct mapping_list *list, uint32_t space, uint64_t first, uint64_t last);

void mapping_list_done(struct mapping_list *list);

#endif
