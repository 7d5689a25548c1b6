/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of symbols: sorted by address once it is complete, then searched.
 */
#include "symbol/table.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define NAMES_MAX (UINT32_C(1) << 31) /* bytes of names */
#define NESTED_MAX 16                 /* nested symbols that a search goes back over */

/* ---- filling ---- */

/* Bytes of the character at the start of `text`; 0 if it is not UTF-8, or a terminal control character. */
static size_t character_size(const char *text, size_t length)
{
  unsigned char c = (unsigned char)*text;
  char copy[5] = {0}; /* utf8_size needs a terminated string */
  size_t size;

  if (c < 0x80)
    return iscntrl(c) ? 0 : 1;
  memcpy(copy, text, length < 4 ? length : 4);
  size = utf8_size(copy);
  return size < 2 || (c == 0xC2 && (unsigned char)copy[1] < 0xA0) ? 0 : size; /* U+0080 to U+009F, too */
}

bool text_is_fit(const char *text, size_t length)
{
  size_t size;

  for (size_t at = 0; at < length; at += size) {
    size = character_size(text + at, length - at);
    if (!size)
      return false;
  }
  return true;
}

/* The bytes of a name that are kept: whole characters. 0 if it is not printable. */
static size_t name_length(const char *name, size_t length)
{
  size_t at = 0;

  while (at < length) {
    size_t size = character_size(name + at, length - at);

    if (!size || name[at] == ' ')
      return 0;
    if (at + size > SYMBOL_NAME_MAX)
      return at;
    at += size;
  }
  return at;
}

static int names_reserve(struct symbol_table *table, size_t more)
{
  size_t wanted = table->names_size + more;
  char *names;

  if (wanted > NAMES_MAX)
    return LB_E_TOO_BIG;
  names = array_reserve(table->names, 1, wanted, &table->names_capacity);
  if (!names)
    return -ENOMEM;
  table->names = names;
  return 0;
}

int symbol_table_add(struct symbol_table *table, const struct symbol *symbol, const char *name, size_t length)
{
  struct symbol *added;
  int r;

  length = name_length(name, length);
  if (!length)
    return 0;
  if (table->count >= SYMBOL_COUNT_MAX)
    return LB_E_TOO_BIG;
  r = names_reserve(table, length + 1);
  if (r < 0)
    return r;
  added = array_append(&table->symbols, &table->count, &table->capacity);
  if (!added)
    return -ENOMEM;
  *added = *symbol;
  added->name = (uint32_t)table->names_size;
  memcpy(table->names + table->names_size, name, length);
  table->names[table->names_size + length] = '\0';
  table->names_size += length + 1;
  table->is_unfinished = true;
  return 0;
}

int symbol_table_add_segment(struct symbol_table *table, const struct symbol_segment *segment)
{
  struct symbol_segment *added = array_append(&table->segments, &table->segment_count, &table->segment_capacity);

  if (!added)
    return -ENOMEM;
  *added = *segment;
  return 0;
}

/* ---- finishing ---- */

static int symbol_compare(const void *one, const void *other)
{
  const struct symbol *a = one, *b = other;

  if (a->address != b->address)
    return a->address < b->address ? -1 : 1;
  if (a->rank != b->rank)
    return a->rank < b->rank ? -1 : 1;
  return a->name < b->name ? -1 : a->name > b->name; /* in the order of the file */
}

/* Of several symbols at one address the best is kept, with the size of another if it has none. */
static void symbols_join(struct symbol_table *table)
{
  size_t kept = 0;

  for (size_t i = 0; i < table->count; i++) {
    struct symbol *last = kept ? &table->symbols[kept - 1] : NULL;

    if (last && last->address == table->symbols[i].address)
      last->end = last->end ? last->end : table->symbols[i].end;
    else
      table->symbols[kept++] = table->symbols[i];
  }
  table->count = kept;
}

/* Symbols without a size extend to the next one. */
static void symbols_close(struct symbol_table *table)
{
  for (size_t i = 0; i < table->count; i++) {
    struct symbol *symbol = &table->symbols[i];
    uint64_t reach = symbol->address + SYMBOL_REACH;

    if (symbol->end)
      continue;
    if (reach < symbol->address)
      reach = UINT64_MAX;
    if (symbol->limit > symbol->address && symbol->limit < reach)
      reach = symbol->limit;
    symbol->end = i + 1 < table->count && symbol[1].address < reach ? symbol[1].address : reach;
  }
}

void symbol_table_finish(struct symbol_table *table)
{
  if (table->count)
    qsort(table->symbols, table->count, sizeof(*table->symbols), symbol_compare);
  symbols_join(table);
  symbols_close(table);
  table->is_unfinished = false;
}

int symbol_table_read(const void *bytes, size_t size, struct symbol_table **ret_table)
{
  struct symbol_table *table = calloc(1, sizeof(*table));
  bool is_elf = size >= 4 && memcmp(bytes, "\177ELF", 4) == 0;
  int r;

  if (!table)
    return -ENOMEM;
  r = is_elf ? elf_read(table, bytes, size) : map_read(table, bytes, size);
  if (r >= 0 && !table->count)
    r = LB_E_NO_SYMBOLS;
  if (r < 0) {
    symbol_table_free(table);
    return r;
  }
  symbol_table_finish(table);
  *ret_table = table;
  return 0;
}

void symbol_table_free(struct symbol_table *table)
{
  if (!table)
    return;
  free(table->symbols);
  free(table->names);
  free(table->segments);
  free(table);
}

size_t symbol_table_count(const struct symbol_table *table)
{
  return table->count;
}

/* ---- queries ---- */

/* The number of symbols that begin at or before an address. */
static size_t symbols_up_to(const struct symbol_table *table, uint64_t address)
{
  struct search search = {.end = table->count};

  assert(!table->is_unfinished);
  while (search_next(&search))
    search_turn(&search, table->symbols[search.at].address <= address);
  return search.first;
}

/* The nearest symbol before the address that contains it: a label inside a function may end before the function
 * does. */
static const struct symbol *symbol_at(const struct symbol_table *table, uint64_t address)
{
  size_t i = symbols_up_to(table, address);

  for (unsigned step = 0; i > 0 && step < NESTED_MAX; step++, i--)
    if (address < table->symbols[i - 1].end)
      return &table->symbols[i - 1];
  return NULL;
}

static const struct symbol *symbol_at_physical(const struct symbol_table *table, uint64_t *address)
{
  for (size_t i = 0; i < table->segment_count; i++) {
    const struct symbol_segment *segment = &table->segments[i];

    if (*address - segment->physical < segment->size) {
      *address = *address - segment->physical + segment->address;
      return symbol_at(table, *address);
    }
  }
  return NULL;
}

/* Converts a physical address to the linked one. */
static const struct symbol *symbol_find(const struct symbol_table *table, uint64_t *address)
{
  const struct symbol *symbol = table ? symbol_at(table, *address) : NULL;

  return !symbol && table ? symbol_at_physical(table, address) : symbol;
}

uint64_t symbol_table_size(const struct symbol_table *table, uint64_t address)
{
  const struct symbol *symbol = symbol_find(table, &address);

  return symbol ? symbol->end - symbol->address : 0;
}

bool symbol_table_find(const struct symbol_table *table, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct symbol *symbol = symbol_find(table, &address);

  if (!symbol)
    return false;
  *ret_name = table->names + symbol->name;
  *ret_offset = address - symbol->address;
  return true;
}

void symbol_table_around(const struct symbol_table *table, uint64_t address, uint64_t *ret_before, uint64_t *ret_after)
{
  size_t i = table ? symbols_up_to(table, address) : 0;
  uint64_t before = 0;

  *ret_after = table && i < table->count ? table->symbols[i].address : UINT64_MAX;
  for (unsigned step = 0; i > 0 && step < NESTED_MAX; step++, i--)
    if (table->symbols[i - 1].end <= address && table->symbols[i - 1].end > before)
      before = table->symbols[i - 1].end;
  *ret_before = before;
}

bool symbol_table_address(const struct symbol_table *table, const char *name, uint64_t *ret_address)
{
  for (size_t i = 0; table && i < table->count; i++)
    if (!strcmp(table->names + table->symbols[i].name, name)) {
      *ret_address = table->symbols[i].address;
      return true;
    }
  return false;
}
