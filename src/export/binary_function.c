/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions as BOLT sees them. Any symbol in code makes one, unless it is inside another: then it is only another entry
 * of that one. A function extends to the next one. Names of local symbols are numbered in the order of addresses,
 * counting all symbols, including data: "cmp/1", "cmp/2".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "export/binary.h"
#include "symbol/symbol.h"

/* ---- the symbols ---- */

struct entries {
  struct symbol_entry *list;
  size_t count, capacity;
};

static int entry_take(void *data, const struct symbol_entry *entry)
{
  struct entries *entries = data;
  struct symbol_entry *added;

  if (!entry->name)
    return 0;
  added = array_append(&entries->list, &entries->count, &entries->capacity);
  if (!added)
    return -ENOMEM;
  *added = *entry;
  return 0;
}

/* Sorts by address, with functions first, then in the order of the file. That order is the order of the name pointers
 * here, not of the names themselves, so the sort must be stable. */
static int entry_compare(const struct symbol_entry *one, const struct symbol_entry *other)
{
  if (one->address != other->address)
    return one->address < other->address ? -1 : 1;
  return (int)other->is_function - (int)one->is_function;
}

static void entries_merge(struct symbol_entry *list, size_t count, struct symbol_entry *room)
{
  size_t half = count / 2, left = 0, right = half;

  if (count < 2)
    return;
  entries_merge(list, half, room);
  entries_merge(list + half, count - half, room);
  for (size_t i = 0; i < count; i++)
    if (right == count || (left < half && entry_compare(&list[left], &list[right]) <= 0))
      room[i] = list[left++];
    else
      room[i] = list[right++];
  memcpy(list, room, count * sizeof(*list));
}

/* ---- names ---- */

/* How often a local name has occurred so far. */
struct counter {
  const char *name;
  unsigned count;
};

struct counters {
  struct counter *list; /* room for all symbols */
  size_t count;
  struct hash_index index; /* of names */
};

/* Returns 0, or -ENOMEM. */
static int name_count(struct counters *counters, const char *name, unsigned *ret_count)
{
  uint64_t hash = hash_mix_string(hash_start(0), name);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&counters->index, hash, &at)) != HASH_NONE;)
    if (!strcmp(counters->list[number].name, name)) {
      *ret_count = ++counters->list[number].count;
      return 0;
    }
  counters->list[counters->count++] = (struct counter){name, 1};
  *ret_count = 1;
  return hash_index_add(&counters->index, hash, counters->count - 1);
}

/* The name in BOLT's form. Blanks would end a name in its files, and a backslash escapes. */
static char *name_make(const struct symbol_entry *entry, unsigned number)
{
  char *name = malloc(2 * strlen(entry->name) + 16), *end = name;

  if (!name)
    return NULL;
  for (const char *c = entry->name; *c; c++) {
    if (*c == ' ' || *c == '\\')
      *end++ = '\\';
    *end++ = *c;
  }
  *end = '\0';
  if (entry->is_local)
    sprintf(end, "/%u", number);
  return name;
}

/* ---- functions ---- */

/* Whether this symbol is inside the function before it, or a label in one of unknown size. */
static bool entry_is_inside(const struct binary_function *last, const struct symbol_entry *entry)
{
  if (!last || entry->address >= last->limit)
    return false;
  if (entry->address == last->start || entry->address < last->end)
    return true;
  return last->end == last->start && !entry->is_function && entry->is_local;
}

static int function_add(struct binary_functions *functions, const struct symbol_entry *entry, unsigned number)
{
  struct binary_function *last = functions->count ? &functions->functions[functions->count - 1] : NULL, *added;

  if (!entry->is_code || entry->address >= entry->limit)
    return 0;
  if (entry_is_inside(last, entry))
    return entry->is_local && !entry->is_function ? 0 : tally_add(&functions->entries, entry->address, 0, 1);
  if (last && last->limit > entry->address)
    last->limit = entry->address;
  added = array_append(&functions->functions, &functions->count, &functions->capacity);
  if (!added)
    return -ENOMEM;
  *added = (struct binary_function){
    .start = entry->address,
    .end = entry->address + (entry->size < entry->limit - entry->address ? entry->size : entry->limit - entry->address),
    .limit = entry->limit,
    .name = name_make(entry, number),
  };
  return added->name ? 0 : -ENOMEM;
}

static int functions_make(struct binary_functions *functions, struct entries *entries)
{
  struct symbol_entry *room = calloc(entries->count + 1, sizeof(*room));
  struct counters counters = {.list = calloc(entries->count + 1, sizeof(*counters.list))};
  int r = room && counters.list ? 0 : -ENOMEM;

  if (r >= 0)
    entries_merge(entries->list, entries->count, room);
  for (size_t i = 0; i < entries->count && r >= 0; i++) {
    const struct symbol_entry *entry = &entries->list[i];
    unsigned number = 0;

    if (entry->is_local)
      r = name_count(&counters, entry->name, &number);
    if (r >= 0)
      r = function_add(functions, entry, number);
  }
  hash_index_done(&counters.index);
  free(counters.list);
  free(room);
  return r;
}

int binary_functions_read(struct export_job *job, struct binary_functions *functions)
{
  struct symbol_module *module = NULL;
  struct entries entries = {0};
  uint32_t file;
  int r = binary_open(job, &file, &module);

  if (r < 0)
    return r;
  r = symbol_module_entries(module, entry_take, &entries);
  if (r >= 0)
    r = functions_make(functions, &entries);
  if (r == LB_E_TOO_BIG)
    r = export_fail(job, "%s has too many symbols", binary_name(job, file));
  else if (r == LB_E_NO_SYMBOLS || (r >= 0 && !functions->count))
    r = export_fail(job,
                    "%s has no symbol table: BOLT needs one, and relocations, in the file itself; link it with "
                    "-Wl,-q and do not strip it",
                    binary_name(job, file));
  free(entries.list);
  symbol_module_close(module);
  return r;
}

void binary_functions_done(struct binary_functions *functions)
{
  for (size_t i = 0; i < functions->count; i++)
    free(functions->functions[i].name);
  free(functions->functions);
  tally_done(&functions->entries);
  *functions = (struct binary_functions){0};
}

const struct binary_function *binary_functions_find(const struct binary_functions *functions, uint64_t address)
{
  struct search search = {.end = functions->count};
  const struct binary_function *function;

  while (search_next(&search))
    search_turn(&search, functions->functions[search.at].start <= address);
  function = search.first ? &functions->functions[search.first - 1] : NULL;
  return function && address < function->limit ? function : NULL;
}
