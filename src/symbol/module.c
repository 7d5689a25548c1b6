/* SPDX-License-Identifier: Apache-2.0
 *
 * A module: an ELF file and, if that is stripped, its debug file, with the data read from them so far.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "symbol/elf.h"
#include "symbol/lines.h"

#define DEBUG_ROOT "/usr/lib/debug"

struct symbol_module {
  struct elf_file file;
  char *path; /* NULL if it is in memory */
  char *debug_root;
  struct symbol_layout layout;
  bool has_names, has_lines, has_debug; /* the search was made */
  struct symbol_table *table;           /* NULL if there is none */
  struct symbol_lines *lines;           /* NULL if there is none */
  struct elf_file debug;                /* elf is NULL if there is none */
  struct address_list addresses;        /* of the line that was asked for last */
};

static struct symbol_module *module_new(void)
{
  struct symbol_module *module = calloc(1, sizeof(*module));

  if (module)
    module->file.fd = module->debug.fd = -1;
  return module;
}

static int module_finish(struct symbol_module *module, int r, struct symbol_module **ret_module)
{
  if (r < 0) {
    symbol_module_close(module);
    return r;
  }
  elf_layout(module->file.elf, &module->layout);
  *ret_module = module;
  return 0;
}

int symbol_module_open(const char *path, const char *debug_root, struct symbol_module **ret_module)
{
  struct symbol_module *module = module_new();
  int r;

  if (!module)
    return -ENOMEM;
  module->path = strdup(path);
  module->debug_root = strdup(debug_root ? debug_root : DEBUG_ROOT);
  r = module->path && module->debug_root ? elf_open_path(&module->file, path) : -ENOMEM;
  return module_finish(module, r, ret_module);
}

int symbol_module_open_bytes(const void *bytes, size_t size, struct symbol_module **ret_module)
{
  struct symbol_module *module = module_new();

  if (!module)
    return -ENOMEM;
  return module_finish(module, elf_open(&module->file, bytes, size), ret_module);
}

void symbol_module_close(struct symbol_module *module)
{
  if (!module)
    return;
  lines_close(module->lines);
  free(module->addresses.file);
  free(module->addresses.list);
  symbol_table_free(module->table);
  elf_close(&module->debug);
  elf_close(&module->file);
  free(module->debug_root);
  free(module->path);
  free(module);
}

const struct symbol_layout *symbol_module_layout(const struct symbol_module *module)
{
  return &module->layout;
}

/* ---- data that is read on first use ---- */

/* The debug file, or NULL. */
static Elf *module_debug(struct symbol_module *module)
{
  if (!module->has_debug && module->path)
    (void)debug_file_open(&module->file, &module->layout, module->path, module->debug_root, &module->debug);
  module->has_debug = true;
  return module->debug.elf;
}

static int table_fill(struct symbol_module *module, struct symbol_table *table)
{
  int r = elf_symbols(table, module->file.elf, SHT_SYMTAB);

  if (r >= 0 && !table->count && module_debug(module))
    r = elf_symbols(table, module->debug.elf, SHT_SYMTAB);
  if (r >= 0 && !table->count)
    r = elf_symbols(table, module->file.elf, SHT_DYNSYM);
  return r < 0 ? r : plt_symbols(table, module->file.elf);
}

static void module_read_names(struct symbol_module *module)
{
  struct symbol_table *table;

  if (module->has_names)
    return;
  module->has_names = true;
  table = calloc(1, sizeof(*table));
  if (!table || table_fill(module, table) < 0)
    symbol_table_free(table);
  else
    module->table = table;
}

static void module_read_lines(struct symbol_module *module)
{
  if (module->has_lines)
    return;
  module->has_lines = true;
  if (lines_open(&module->file, &module->lines) < 0 && module_debug(module))
    (void)lines_open(&module->debug, &module->lines);
}

/* ---- queries ---- */

bool symbol_module_find(struct symbol_module *module, uint64_t address, bool wants_lines,
                        struct symbol_place *ret_place)
{
  struct symbol_place place = {.address = address};
  bool is_found;

  module_read_names(module);
  is_found = symbol_table_find(module->table, address, &place.symbol, &place.offset);
  place.size = symbol_table_size(module->table, address);
  if (wants_lines) {
    module_read_lines(module);
    is_found |= module->lines && lines_find(module->lines, address, &place);
  }
  if (is_found)
    *ret_place = place;
  return is_found;
}

bool symbol_module_line(struct symbol_module *module, uint64_t address, const char **ret_file, unsigned *ret_line)
{
  struct symbol_frame frame = {0};

  module_read_lines(module);
  if (!module->lines || !lines_line(module->lines, address, &frame) || !frame.line)
    return false;
  *ret_file = frame.file;
  *ret_line = frame.line;
  return true;
}

size_t symbol_module_addresses(struct symbol_module *module, const char *file, unsigned line,
                               const uint64_t **ret_addresses)
{
  struct address_list *addresses = &module->addresses;

  module_read_lines(module);
  if (!addresses->file || strcmp(addresses->file, file) || addresses->line != line) {
    free(addresses->file);
    addresses->file = strdup(file);
    addresses->line = line;
    addresses->count = 0;
    if (module->lines)
      (void)lines_addresses(module->lines, file, line, addresses);
  }
  *ret_addresses = addresses->list;
  return addresses->count;
}

const char *symbol_module_directory(const struct symbol_module *module, size_t index)
{
  return module->lines && index < module->lines->directory_count ? module->lines->directories[index] : NULL;
}

void symbol_module_around(struct symbol_module *module, uint64_t address, uint64_t *ret_before, uint64_t *ret_after)
{
  module_read_names(module);
  symbol_table_around(module->table, address, ret_before, ret_after);
}

bool symbol_module_address(struct symbol_module *module, const char *name, uint64_t *ret_address)
{
  module_read_names(module);
  return symbol_table_address(module->table, name, ret_address);
}

static size_t file_read(const struct elf_file *file, uint64_t offset, void *buffer, size_t size)
{
  ssize_t count;

  if (offset >= file->size)
    return 0;
  size = size < file->size - offset ? size : (size_t)(file->size - offset);
  if (file->fd < 0) {
    memcpy(buffer, file->copy + offset, size);
    return size;
  }
  count = pread(file->fd, buffer, size, (off_t)offset);
  return count < 0 ? 0 : (size_t)count;
}

size_t symbol_module_code(struct symbol_module *module, uint64_t address, void *buffer, size_t size)
{
  for (size_t i = 0; i < module->layout.count; i++) {
    const struct symbol_piece *piece = &module->layout.pieces[i];
    uint64_t at = address - piece->address;

    if (at < piece->size && piece->offset <= UINT64_MAX - at)
      return file_read(&module->file, piece->offset + at, buffer, size < piece->size - at ? size : piece->size - at);
  }
  return 0;
}

int symbol_module_entries(struct symbol_module *module, int (*visit)(void *data, const struct symbol_entry *entry),
                          void *data)
{
  return elf_entries(module->file.elf, SHT_SYMTAB, visit, data);
}

int symbol_module_names(struct symbol_module *module, int (*visit)(void *data, const struct symbol_entry *entry),
                        void *data)
{
  int r = elf_entries(module->file.elf, SHT_SYMTAB, visit, data);

  if (r == LB_E_NO_SYMBOLS && module_debug(module))
    r = elf_entries(module->debug.elf, SHT_SYMTAB, visit, data);
  if (r >= 0 || r == LB_E_NO_SYMBOLS) {
    int dynamic = elf_entries(module->file.elf, SHT_DYNSYM, visit, data);

    r = dynamic == LB_E_NO_SYMBOLS ? r : dynamic;
  }
  return r;
}

unsigned symbol_module_dwarf(struct symbol_module *module, bool *ret_is_separate)
{
  module_read_lines(module);
  *ret_is_separate = module->lines && sym_dwarf_getelf(module->lines->dwarf) != module->file.elf;
  return module->lines ? module->lines->version : 0;
}
