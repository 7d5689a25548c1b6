/* SPDX-License-Identifier: Apache-2.0
 *
 * Landing pads, out of a program's own tables: PT_GNU_EH_FRAME leads to the description of the function (an FDE of
 * .eh_frame), that to its list of calls (.gcc_except_table). Forms: Linux Standard Base, core, chapter "Exception
 * Frames"; the list of calls is that of the C++ ABI for Itanium, "Exception Handling Tables". The file is input from
 * anywhere: whatever does not fit ends the search.
 */
#include "report/calls_landing.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "report/names.h"
#include "symbol/symbol.h"

#define FETCH 64u       /* bytes at once */
#define HEADERS_MAX 64u /* program headers */
#define CALLS_MAX 8192u /* of a function */
#define ENTRY_SIZE 8u   /* of the table of functions */
#define ENCODING_NONE 0xFFu
#define ENCODING_TABLE 0x3Bu /* relative to the table, 4 bytes, signed: what linkers make */

/* Reads bytes of a file, by address, one after another. */
struct cursor {
  struct report_names *names;
  uint32_t file;
  uint64_t address;
  bool has_failed;
  uint8_t bytes[FETCH];
  uint64_t first;
  size_t size;
};

static uint8_t cursor_byte(struct cursor *cursor)
{
  if (cursor->address - cursor->first >= cursor->size) {
    struct report_location location = {.file = cursor->file, .address = cursor->address};

    cursor->first = cursor->address;
    cursor->size = report_names_code(cursor->names, &location, cursor->bytes, FETCH);
  }
  if (!cursor->size) {
    cursor->has_failed = true;
    return 0;
  }
  return cursor->bytes[cursor->address++ - cursor->first];
}

static uint64_t cursor_number(struct cursor *cursor, unsigned size)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < size; i++)
    value |= (uint64_t)cursor_byte(cursor) << 8 * i;
  return value;
}

/* LEB128; signed or not. */
static uint64_t cursor_leb(struct cursor *cursor, bool is_signed)
{
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte;

  do {
    byte = cursor_byte(cursor);
    if (shift < 64)
      value |= (uint64_t)(byte & 0x7F) << shift;
    shift += 7;
  } while (byte & 0x80 && shift < 70);
  if (is_signed && byte & 0x40 && shift < 64)
    value |= ~UINT64_C(0) << shift;
  return value;
}

/* A number in one of the DW_EH_PE_ forms: the low four bits are the format, the next three what it is relative to. */
static uint64_t cursor_encoded(struct cursor *cursor, uint8_t encoding, uint64_t data)
{
  uint64_t at = cursor->address, value;

  switch (encoding & 0x0F) {
  case 0x00:
  case 0x04:
  case 0x0C:
    value = cursor_number(cursor, 8);
    break;
  case 0x01:
    value = cursor_leb(cursor, false);
    break;
  case 0x02:
    value = cursor_number(cursor, 2);
    break;
  case 0x03:
    value = cursor_number(cursor, 4);
    break;
  case 0x09:
    value = cursor_leb(cursor, true);
    break;
  case 0x0A:
    value = (uint64_t)(int16_t)cursor_number(cursor, 2);
    break;
  case 0x0B:
    value = (uint64_t)(int32_t)cursor_number(cursor, 4);
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
static bool table_find(struct cursor *cursor, uint64_t *ret_address)
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
  header += cursor_number(cursor, 8);
  cursor->address += offsetof(Elf64_Ehdr, e_phentsize) - offsetof(Elf64_Ehdr, e_shoff);
  size = cursor_number(cursor, 2);
  count = cursor_number(cursor, 2);
  for (uint64_t i = 0; i < count && i < HEADERS_MAX && !cursor->has_failed; i++) {
    cursor->address = header + i * size;
    if (cursor_number(cursor, 4) != PT_GNU_EH_FRAME)
      continue;
    cursor->address = header + i * size + offsetof(Elf64_Phdr, p_vaddr);
    *ret_address = cursor_number(cursor, 8);
    return !cursor->has_failed;
  }
  return false;
}

/* The description of the function that an address is in, or perhaps of one before it. Returns false if there is none.
 */
static bool function_find(struct cursor *cursor, uint64_t address, uint64_t *ret_description)
{
  uint64_t table, entries, low = 0, high;
  uint8_t encodings[4];

  if (!table_find(cursor, &table))
    return false;
  cursor->address = table;
  for (unsigned i = 0; i < 4; i++)
    encodings[i] = cursor_byte(cursor);
  if (encodings[0] != 1 || encodings[3] != ENCODING_TABLE)
    return false;
  cursor_encoded(cursor, encodings[1], table);
  high = cursor_encoded(cursor, encodings[2], table);
  entries = cursor->address;
  if (cursor->has_failed || !high || high > UINT32_MAX)
    return false;
  while (high - low > 1) { /* the last that does not begin behind the address */
    uint64_t middle = low + (high - low) / 2;

    cursor->address = entries + middle * ENTRY_SIZE;
    if (cursor_encoded(cursor, ENCODING_TABLE, table) <= address)
      low = middle;
    else
      high = middle;
  }
  cursor->address = entries + low * ENTRY_SIZE + ENTRY_SIZE / 2;
  *ret_description = cursor_encoded(cursor, ENCODING_TABLE, table);
  return !cursor->has_failed;
}

/* ---- from there to its list of calls ---- */

struct encodings {
  uint8_t address, list;
};

/* What the common part says about the forms of its functions. */
static bool common_read(struct cursor *cursor, uint64_t address, struct encodings *ret_encodings)
{
  char letters[8] = "";
  uint8_t version;

  cursor->address = address + 8; /* length, 0 */
  version = cursor_byte(cursor);
  for (unsigned i = 0; i < sizeof(letters); i++)
    if (!(letters[i] = (char)cursor_byte(cursor)))
      break;
  if ((version != 1 && version != 3) || letters[0] != 'z' || letters[sizeof(letters) - 1])
    return false;
  cursor_leb(cursor, false);
  cursor_leb(cursor, true);
  cursor_leb(cursor, false); /* the column of the return address: below 128, so that version 1 has the same byte */
  cursor_leb(cursor, false);
  *ret_encodings = (struct encodings){.list = ENCODING_NONE};
  for (const char *letter = letters + 1; *letter; letter++)
    if (*letter == 'R')
      ret_encodings->address = cursor_byte(cursor);
    else if (*letter == 'L')
      ret_encodings->list = cursor_byte(cursor);
    else if (*letter == 'P')
      cursor_encoded(cursor, cursor_byte(cursor) & 0x0F, 0);
  return !cursor->has_failed;
}

/* Start of the function, and of its list of calls (0: it has none). Returns 1, 0 if the address is in no function, or
 * -ENOENT. */
static int function_read(struct cursor *cursor, uint64_t description, uint64_t address, uint64_t *ret_start,
                         uint64_t *ret_list)
{
  struct encodings encodings;
  uint64_t length, common, size;

  cursor->address = description;
  length = cursor_number(cursor, 4);
  common = cursor->address;
  common -= cursor_number(cursor, 4);
  if (cursor->has_failed || length == UINT32_MAX || !common_read(cursor, common, &encodings))
    return -ENOENT;
  cursor->address = description + 8;
  *ret_start = cursor_encoded(cursor, encodings.address, 0);
  size = cursor_encoded(cursor, encodings.address & 0x0F, 0);
  cursor_leb(cursor, false);
  *ret_list = encodings.list == ENCODING_NONE ? 0 : cursor_encoded(cursor, encodings.list, 0);
  if (cursor->has_failed)
    return -ENOENT;
  return address - *ret_start < size;
}

/* ---- the list of calls ---- */

static int list_search(struct cursor *cursor, uint64_t list, uint64_t start, uint64_t address, uint64_t *ret_landing)
{
  uint64_t base = start, end;
  uint8_t encoding;

  cursor->address = list;
  encoding = cursor_byte(cursor);
  if (encoding != ENCODING_NONE)
    base = cursor_encoded(cursor, encoding, 0);
  if (cursor_byte(cursor) != ENCODING_NONE)
    cursor_leb(cursor, false);
  encoding = cursor_byte(cursor);
  end = cursor_leb(cursor, false);
  end += cursor->address;
  for (unsigned i = 0; i < CALLS_MAX && cursor->address < end && !cursor->has_failed; i++) {
    uint64_t first = start + cursor_encoded(cursor, encoding, 0);
    uint64_t size = cursor_encoded(cursor, encoding, 0);
    uint64_t landing = cursor_encoded(cursor, encoding, 0);

    cursor_leb(cursor, false);
    if (address - first >= size)
      continue;
    *ret_landing = base + landing;
    return cursor->has_failed ? -ENOENT : landing != 0;
  }
  return cursor->has_failed ? -ENOENT : 0;
}

int landing_find(struct report_names *names, const struct report_location *location, uint64_t *ret_address)
{
  struct cursor cursor = {.names = names, .file = location->file};
  uint64_t description, start, list;
  int r;

  if (location->file >= names->count || !function_find(&cursor, location->address, &description))
    return -ENOENT;
  r = function_read(&cursor, description, location->address, &start, &list);
  if (r <= 0 || !list)
    return r < 0 ? r : 0;
  return list_search(&cursor, list, start, location->address, ret_address);
}
