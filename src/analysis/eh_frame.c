/* SPDX-License-Identifier: Apache-2.0
 *
 * The unwind tables of a program: PT_GNU_EH_FRAME leads to a sorted table of functions (.eh_frame_hdr), which leads to
 * a description of each (an FDE of .eh_frame) with its exact range. Stripped files keep them. Forms: Linux Standard
 * Base, core, chapter "Exception Frames". The file is untrusted: any inconsistency ends the search.
 */
#include "analysis/eh_frame.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names_inside.h"
#include "base/base.h"
#include "symbol/symbol.h"

#define HEADERS_MAX 64u        /* program headers */
#define ENTRY_SIZE 8u          /* of the table of functions */
#define ENTRIES_MAX (1u << 24) /* more than any program has */
#define ENTRY_BATCH 4096u      /* entries that are read at once */
#define ENCODING_TABLE 0x3Bu   /* relative to the table, 4 bytes, signed: the form that linkers write */

uint8_t eh_byte(struct eh_cursor *cursor)
{
  if (cursor->address - cursor->first >= cursor->size) {
    struct analysis_location location = {.file = cursor->file, .address = cursor->address};

    cursor->first = cursor->address;
    cursor->size = analysis_names_code(cursor->names, &location, cursor->bytes, EH_FETCH);
  }
  if (!cursor->size) {
    cursor->has_failed = true;
    return 0;
  }
  return cursor->bytes[cursor->address++ - cursor->first];
}

uint64_t eh_number(struct eh_cursor *cursor, unsigned size)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < size; i++)
    value |= (uint64_t)eh_byte(cursor) << 8 * i;
  return value;
}

/* LEB128; signed or not. */
uint64_t eh_leb(struct eh_cursor *cursor, bool is_signed)
{
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte;

  do {
    byte = eh_byte(cursor);
    if (shift < 64)
      value |= (uint64_t)(byte & 0x7F) << shift;
    shift += 7;
  } while (byte & 0x80 && shift < 70);
  if (is_signed && byte & 0x40 && shift < 64)
    value |= ~UINT64_C(0) << shift;
  return value;
}

/* A number in one of the DW_EH_PE_ forms: the low four bits are the format, the next three its base. */
uint64_t eh_encoded(struct eh_cursor *cursor, uint8_t encoding, uint64_t data)
{
  uint64_t at = cursor->address, value;

  switch (encoding & 0x0F) {
  case 0x00:
  case 0x04:
  case 0x0C:
    value = eh_number(cursor, 8);
    break;
  case 0x01:
    value = eh_leb(cursor, false);
    break;
  case 0x02:
    value = eh_number(cursor, 2);
    break;
  case 0x03:
    value = eh_number(cursor, 4);
    break;
  case 0x09:
    value = eh_leb(cursor, true);
    break;
  case 0x0A:
    value = (uint64_t)(int16_t)eh_number(cursor, 2);
    break;
  case 0x0B:
    value = (uint64_t)(int32_t)eh_number(cursor, 4);
    break;
  default:
    cursor->has_failed = true;
    return 0;
  }
  if ((encoding & 0x70) == 0x10 && value)
    value += at;
  else if ((encoding & 0x70) == 0x30)
    value += data;
  else if ((encoding & 0x70) != 0)
    cursor->has_failed |= value != 0;
  return value;
}

/* ---- from an address to the description of its function ---- */

/* The address of the table of functions. Returns false if there is none. */
static bool table_find(struct eh_cursor *cursor, uint64_t *ret_address)
{
  const struct symbol_layout *layout = cursor->names->list[cursor->file].layout;
  uint64_t header = 0, count, size;
  bool is_found = false;

  for (size_t i = 0; layout && i < layout->count && !is_found; i++)
    if (!layout->pieces[i].offset) {
      header = layout->pieces[i].address;
      is_found = true;
    }
  if (!is_found)
    return false;
  cursor->address = header + offsetof(Elf64_Ehdr, e_phoff);
  header += eh_number(cursor, 8);
  cursor->address += offsetof(Elf64_Ehdr, e_phentsize) - offsetof(Elf64_Ehdr, e_shoff);
  size = eh_number(cursor, 2);
  count = eh_number(cursor, 2);
  for (uint64_t i = 0; i < count && i < HEADERS_MAX && !cursor->has_failed; i++) {
    cursor->address = header + i * size;
    if (eh_number(cursor, 4) != PT_GNU_EH_FRAME)
      continue;
    cursor->address = header + i * size + offsetof(Elf64_Phdr, p_vaddr);
    *ret_address = eh_number(cursor, 8);
    return !cursor->has_failed;
  }
  return false;
}

/* Reads all entries into memory, because they are searched often. */
static int entries_read(struct eh_cursor *cursor, struct eh_table *table, uint64_t count)
{
  table->entries = calloc(count, sizeof(*table->entries));
  table->sizes = calloc(count, sizeof(*table->sizes));
  if (!table->entries || !table->sizes)
    return -ENOMEM;
  while (table->count < count) {
    struct analysis_location location = {.file = cursor->file, .address = cursor->address + table->count * ENTRY_SIZE};
    size_t batch = count - table->count < ENTRY_BATCH ? (size_t)(count - table->count) : ENTRY_BATCH;
    size_t size =
      analysis_names_code(cursor->names, &location, (uint8_t *)&table->entries[table->count], batch * ENTRY_SIZE);

    table->count += size / ENTRY_SIZE;
    if (size < batch * ENTRY_SIZE)
      break;
  }
  return 0;
}

static void table_read(struct eh_cursor *cursor, struct eh_table *table)
{
  uint8_t encodings[4];
  uint64_t count;

  if (!table_find(cursor, &table->address))
    return;
  cursor->address = table->address;
  for (unsigned i = 0; i < 4; i++)
    encodings[i] = eh_byte(cursor);
  if (encodings[0] != 1 || encodings[3] != ENCODING_TABLE)
    return;
  eh_encoded(cursor, encodings[1], table->address);
  count = eh_encoded(cursor, encodings[2], table->address);
  if (cursor->has_failed || !count || count > ENTRIES_MAX || entries_read(cursor, table, count) < 0)
    table->count = 0;
}

/* The tables of a file, read on first use. Returns NULL if there are none. */
static struct eh_table *table_get(struct analysis_names *names, uint32_t file)
{
  struct eh_table *table = file < names->count ? &names->list[file].unwind : NULL;

  if (table && !table->is_read) {
    struct eh_cursor cursor = {.names = names, .file = file};

    table->is_read = true;
    table_read(&cursor, table);
  }
  return table && table->count ? table : NULL;
}

void eh_table_done(struct eh_table *table)
{
  free(table->entries);
  free(table->sizes);
  *table = (struct eh_table){0};
}

static uint64_t entry_start(const struct eh_table *table, size_t i)
{
  return table->address + (uint64_t)(int64_t)table->entries[i].start;
}

/* The number of functions that begin at or before an address. */
static size_t entries_up_to(const struct eh_table *table, uint64_t address)
{
  struct search search = {.end = table->count};

  while (search_next(&search))
    search_turn(&search, entry_start(table, search.at) <= address);
  return search.first;
}

/* ---- descriptions ---- */

struct encodings {
  uint8_t address, list;
};

/* Reads the forms that the common part (CIE) defines for its functions. */
static bool common_read(struct eh_cursor *cursor, uint64_t address, struct encodings *ret_encodings)
{
  char letters[8] = "";
  uint8_t version;

  cursor->address = address + 8; /* length, 0 */
  version = eh_byte(cursor);
  for (unsigned i = 0; i < sizeof(letters); i++)
    if (!(letters[i] = (char)eh_byte(cursor)))
      break;
  if ((version != 1 && version != 3) || letters[0] != 'z' || letters[sizeof(letters) - 1])
    return false;
  eh_leb(cursor, false);
  eh_leb(cursor, true);
  eh_leb(cursor, false); /* the column of the return address: below 128, so that version 1 has the same byte */
  eh_leb(cursor, false);
  *ret_encodings = (struct encodings){.list = EH_NONE};
  for (const char *letter = letters + 1; *letter; letter++)
    if (*letter == 'R')
      ret_encodings->address = eh_byte(cursor);
    else if (*letter == 'L')
      ret_encodings->list = eh_byte(cursor);
    else if (*letter == 'P')
      eh_encoded(cursor, eh_byte(cursor) & 0x0F, 0);
  return !cursor->has_failed;
}

static int function_read(struct eh_cursor *cursor, uint64_t description, struct eh_function *ret_function)
{
  struct eh_function function = {0};
  struct encodings encodings;
  uint64_t length, common;

  cursor->address = description;
  length = eh_number(cursor, 4);
  common = cursor->address;
  common -= eh_number(cursor, 4);
  if (cursor->has_failed || length == UINT32_MAX || !common_read(cursor, common, &encodings))
    return -ENOENT;
  cursor->address = description + 8;
  function.start = eh_encoded(cursor, encodings.address, 0);
  function.end = function.start + eh_encoded(cursor, encodings.address & 0x0F, 0);
  eh_leb(cursor, false);
  function.list = encodings.list == EH_NONE ? 0 : eh_encoded(cursor, encodings.list, 0);
  if (cursor->has_failed || function.end < function.start)
    return -ENOENT;
  *ret_function = function;
  return 0;
}

static int entry_read(struct analysis_names *names, uint32_t file, const struct eh_table *table, size_t i,
                      struct eh_function *ret_function)
{
  struct eh_cursor cursor = {.names = names, .file = file};

  return function_read(&cursor, table->address + (uint64_t)(int64_t)table->entries[i].description, ret_function);
}

int eh_function_find(struct analysis_names *names, uint32_t file, uint64_t address, struct eh_function *ret_function)
{
  struct eh_table *table = table_get(names, file);
  size_t i = table ? entries_up_to(table, address) : 0;
  struct eh_function function;

  if (!i)
    return -ENOENT;
  if (entry_read(names, file, table, i - 1, &function) < 0)
    return -ENOENT;
  if (address - function.start >= function.end - function.start)
    return 0;
  *ret_function = function;
  return 1;
}

/* ---- ranges ---- */

/* Size of a function in bytes; 0 if its description is invalid. */
static uint32_t entry_size(struct analysis_names *names, uint32_t file, struct eh_table *table, size_t i)
{
  struct eh_function function;

  if (table->sizes[i] == 0 && entry_read(names, file, table, i, &function) >= 0 &&
      function.start == entry_start(table, i) && function.end - function.start < UINT32_MAX)
    table->sizes[i] = (uint32_t)(function.end - function.start) + 1;
  else if (table->sizes[i] == 0)
    table->sizes[i] = 1;
  return table->sizes[i] - 1;
}

bool eh_range_find(struct analysis_names *names, uint32_t file, uint64_t address, struct eh_range *ret_range)
{
  struct eh_table *table = table_get(names, file);
  struct eh_range range = {.after = UINT64_MAX};
  size_t i = table ? entries_up_to(table, address) : 0;

  if (table && i < table->count)
    range.after = entry_start(table, i);
  if (i) {
    uint64_t start = entry_start(table, i - 1), end = start + entry_size(names, file, table, i - 1);

    if (address < end) {
      *ret_range = (struct eh_range){.start = start, .end = end};
      return true;
    }
    range.before = end;
  }
  *ret_range = range;
  return false;
}
