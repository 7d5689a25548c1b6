/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for addresses: symbols out of an ELF file's symbol table, or out of a map file as `nm`, System.map and NASM
 * write them. Files are input from anywhere; what cannot be used is left out, and a file with nothing that can be used
 * says so. Lines of source code and inlined functions come later.
 */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_NAME_MAX 1023 /* bytes: longer names are cut */
#define SYMBOL_COUNT_MAX (4u << 20)
#define SYMBOL_REACH (1u << 20) /* a symbol of unknown size reaches up to the next one, at most so far */

struct symbol_table;

/* Reads the symbols out of a file in memory, which need not stay: an ELF file if it begins like one, else a map.
 * Returns 0; LB_E_NO_SYMBOLS for a file without any; LB_E_BAD_SYNTAX for an ELF file that cannot be understood, or a
 * map that holds zero bytes; LB_E_TOO_BIG for more than SYMBOL_COUNT_MAX; -ENOMEM. */
int symbol_table_read(const void *bytes, size_t size, struct symbol_table **ret_table);

/* Takes NULL. */
void symbol_table_free(struct symbol_table *table);

/* How many there are. */
size_t symbol_table_count(const struct symbol_table *table);

/* The symbol that `address` belongs to, and how far behind its start. Of a kernel that is linked for one address and
 * loaded at another (p_vaddr and p_paddr of an ELF file), the physical address finds it too. Names are UTF-8 without
 * control characters, and good as long as the table. Returns false, touching nothing, if there is none. Takes NULL. */
bool symbol_table_find(const struct symbol_table *table, uint64_t address, const char **ret_name, uint64_t *ret_offset);

/* The address of the symbol with this name. Returns false, touching nothing, if there is none. Takes NULL. */
bool symbol_table_address(const struct symbol_table *table, const char *name, uint64_t *ret_address);

/* ---- where an ELF file says that it lies ---- */

#define SYMBOL_PIECES_MAX 16
#define SYMBOL_BUILD_ID_MAX 64

struct symbol_piece {
  uint64_t address, physical, size; /* as it is linked, as it is loaded, bytes in the file */
  uint64_t offset;                  /* in the file */
};

struct symbol_layout {
  struct symbol_piece pieces[SYMBOL_PIECES_MAX]; /* of PT_LOAD, the first so many */
  size_t count;
  uint8_t build_id[SYMBOL_BUILD_ID_MAX];
  size_t build_id_size; /* 0: it has none */
};

/* Returns 0, LB_E_BAD_SYNTAX for what is no ELF file, or -ENOMEM. */
int symbol_layout_read(const void *bytes, size_t size, struct symbol_layout *ret_layout);

#endif
