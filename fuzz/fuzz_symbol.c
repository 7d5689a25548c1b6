/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbol tables, map files and debug information from a stranger: whatever the bytes are, the answer is something in
 * which every address can be looked up and every name can be printed, or an error.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void string_check(const char *string, size_t max)
{
  if (!*string || strlen(string) > max)
    abort();
  for (; *string; string += utf8_size(string))
    if (!utf8_size(string) || iscntrl((unsigned char)*string))
      abort();
}

/* ---- tables ---- */

static void address_try(const struct symbol_table *table, uint64_t address)
{
  const char *name;
  uint64_t offset;

  if (symbol_table_find(table, address, &name, &offset))
    string_check(name, SYMBOL_NAME_MAX);
}

static void table_try(const uint8_t *data, size_t size)
{
  struct symbol_table *table;
  uint64_t address;

  if (symbol_table_read(data, size, &table) < 0)
    return;
  if (!symbol_table_count(table))
    abort();
  for (size_t i = 0; i + 8 <= size && i < 4096; i += 4) {
    address_try(table, bytes_get_u64(data + i));
    address_try(table, bytes_get_u32(data + i));
  }
  for (unsigned shift = 0; shift < 64; shift++)
    address_try(table, UINT64_C(1) << shift);
  (void)symbol_table_address(table, "main", &address);
  symbol_table_free(table);
}

/* ---- modules ---- */

static void frame_check(const struct symbol_frame *frame)
{
  if (frame->function)
    string_check(frame->function, 1 << 14);
  if (frame->linkage)
    string_check(frame->linkage, 1 << 14);
  if (frame->file)
    string_check(frame->file, 1 << 14);
  else if (frame->line || frame->column)
    abort();
}

static int entry_try(void *data, const struct symbol_entry *entry)
{
  (void)data;
  if (entry->name)
    string_check(entry->name, SYMBOL_NAME_MAX);
  return 0;
}

static void place_try(struct symbol_module *module, uint64_t address)
{
  struct symbol_place place;
  uint8_t code[16];

  if (symbol_module_code(module, address, code, sizeof(code)) > sizeof(code))
    abort();
  if (!symbol_module_find(module, address, true, &place))
    return;
  if (place.symbol)
    string_check(place.symbol, SYMBOL_NAME_MAX);
  if (place.frame_count > SYMBOL_FRAMES_MAX || (!place.symbol && !place.frame_count))
    abort();
  for (size_t i = 0; i < place.frame_count; i++)
    frame_check(&place.frames[i]);
}

/* Addresses in its code, and those that its bytes are. */
static void module_try(const uint8_t *data, size_t size)
{
  const struct symbol_layout *layout;
  struct symbol_module *module;
  bool is_separate;
  uint64_t address;

  if (symbol_module_open_bytes(data, size, &module) < 0)
    return;
  layout = symbol_module_layout(module);
  for (size_t i = 0; i < layout->count; i++)
    for (uint64_t at = 0; at < layout->pieces[i].size && at < 1024; at++)
      place_try(module, layout->pieces[i].address + at);
  for (size_t i = 0; i + 8 <= size && i < 4096; i += 8)
    place_try(module, bytes_get_u64(data + i));
  (void)symbol_layout_address(layout, size / 2, &address);
  (void)symbol_module_entries(module, entry_try, NULL);
  (void)symbol_module_dwarf(module, &is_separate);
  symbol_module_close(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct symbol_layout layout;

  (void)symbol_layout_read(data, size, &layout);
  table_try(data, size);
  module_try(data, size);
  return 0;
}
