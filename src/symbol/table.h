/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of symbols. elf.c or map.c fills it; then it answers queries.
 */
#ifndef SYMBOL_TABLE_H
#define SYMBOL_TABLE_H

#include "symbol/symbol.h"

struct symbol {
  uint64_t address;
  uint64_t end;   /* first address that is not its own; 0: not known */
  uint64_t limit; /* the latest address at which it ends, if its end is not known; 0: not known either */
  uint32_t name;  /* where its name begins in `names` */
  uint8_t rank;   /* of several at one address, the one with the lowest is taken */
};

/* A piece of a program whose physical address differs from its linked address. */
struct symbol_segment {
  uint64_t physical, address, size;
};

struct symbol_table {
  struct symbol *symbols; /* by address, each with an end, once it is finished */
  size_t count, capacity;
  char *names;
  size_t names_size, names_capacity;
  struct symbol_segment *segments;
  size_t segment_count, segment_capacity;
  bool is_unfinished; /* symbols were added since symbol_table_finish */
};

/* Adds a symbol; `end` 0: up to the next. A name that is empty or not fit to be printed is left out. Returns 0,
 * LB_E_TOO_BIG, or -ENOMEM. */
int symbol_table_add(struct symbol_table *table, const struct symbol *symbol, const char *name, size_t length);
int symbol_table_add_segment(struct symbol_table *table, const struct symbol_segment *segment);

/* Is a string whole UTF-8 without control characters? */
bool text_is_fit(const char *text, size_t length);

/* Makes the table ready for queries; must be called again after symbols were added. */
void symbol_table_finish(struct symbol_table *table);

/* Fill a table. Return 0, or as symbol_table_read. */
int elf_read(struct symbol_table *table, const void *bytes, size_t size);
int map_read(struct symbol_table *table, const char *text, size_t size);

#endif
