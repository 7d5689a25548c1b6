/* SPDX-License-Identifier: Apache-2.0
 *
 * An ELF file that is open in libelf, and the data that this folder reads from it. libelf checks what it reads; this
 * folder limits the work that a file may cause.
 */
#ifndef SYMBOL_ELF_H
#define SYMBOL_ELF_H

#include "symbol/elfutils.h"
#include "symbol/table.h"

#define ELF_FILE_MAX (UINT64_C(2) << 30) /* bytes */
#define ELF_SECTIONS_MAX (1u << 20)
#define ELF_UNPACKED_MAX (UINT64_C(4) << 30) /* bytes of the compressed sections */

struct elf_file {
  Elf *elf;
  int fd;     /* -1: it is in memory */
  char *copy; /* that memory */
  uint64_t size;
};

/* Both leave a file that elf_close accepts, even if they fail. */

/* Opens a copy of a file in memory: libelf needs memory that it may write to. Returns 0, LB_E_BAD_SYNTAX, -ENOMEM, or
 * -ELIBACC: there is no libelf. */
int elf_open(struct elf_file *file, const void *bytes, size_t size);

/* Opens a file whose parts are read when they are needed. Nothing is mapped, so a file that is truncated meanwhile does
 * no harm. Returns as symbol_module_open. */
int elf_open_path(struct elf_file *file, const char *path);

void elf_close(struct elf_file *file);

/* Adds the symbols of all tables of a type, SHT_SYMTAB or SHT_DYNSYM. Returns 0, LB_E_TOO_BIG, or -ENOMEM. */
int elf_symbols(struct symbol_table *table, Elf *elf, unsigned type);

/* As symbol_module_entries, for the first table of a type, SHT_SYMTAB or SHT_DYNSYM. */
int elf_entries(Elf *elf, unsigned type, int (*visit)(void *data, const struct symbol_entry *entry), void *data);

/* The section with this name. Returns NULL if there is none. */
Elf_Scn *elf_section(Elf *elf, const char *name);

void elf_layout(Elf *elf, struct symbol_layout *ret_layout);

/* Adds a name for each entry of the procedure linkage tables. The table is finished before and after that. Returns 0,
 * LB_E_TOO_BIG, or -ENOMEM. */
int plt_symbols(struct symbol_table *table, Elf *elf);

/* Looks for the debug file of a file that lies at `path`. Returns 0 with the file open, or LB_E_NO_SYMBOLS if there is
 * none that fits. */
int debug_file_open(const struct elf_file *file, const struct symbol_layout *layout, const char *path,
                    const char *debug_root, struct elf_file *ret_file);

/* Fetches the debug file of a file that lies at `path` from a server: symbol_fetch_enable. Sets the path of the copy,
 * which is to be freed. Returns 0, or -ENOENT: there is none, or none may be asked for. */
int debug_fetch(const struct symbol_layout *layout, const char *path, char **ret_path);

/* libdw may open the file that .gnu_debugaltlink names at any time. Returns false if that is not a regular file. */
bool debug_alt_is_usable(const struct elf_file *file);

#endif
