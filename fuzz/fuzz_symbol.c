/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbol tables and map files from a stranger: whatever the bytes are, the answer is a table in which every address can
 * be looked up and every name can be printed, or an error.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void name_check(const char *name)
{
  if (!*name || strlen(name) > SYMBOL_NAME_MAX)
    abort();
  for (; *name; name += utf8_size(name))
    if (!utf8_size(name) || iscntrl((unsigned char)*name))
      abort();
}

static void address_try(const struct symbol_table *table, uint64_t address)
{
  const char *name;
  uint64_t offset;

  if (symbol_table_find(table, address, &name, &offset))
    name_check(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct symbol_layout layout;
  struct symbol_table *table;
  uint64_t address;

  (void)symbol_layout_read(data, size, &layout);
  if (symbol_table_read(data, size, &table) < 0)
    return 0;
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
  return 0;
}
