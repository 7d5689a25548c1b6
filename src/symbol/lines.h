/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of source code and inlined functions, from the DWARF of an ELF file. unit.c finds the unit and the function of
 * an address; lines.c makes frames from these.
 */
#ifndef SYMBOL_LINES_H
#define SYMBOL_LINES_H

#include "symbol/elf.h"

/* Limits on the entries and ranges that are looked at, against files that were made to take long. */
#define LINES_INDEX_MAX (UINT64_C(1) << 28) /* to find units and functions, in all; the greatest programs have 10^8 */
#define LINES_QUERY_MAX (UINT64_C(1) << 20) /* to answer one query */
#define LINES_DEPTH_MAX 256                 /* of the tree of entries */
#define LINES_UNIT_MAX (16u << 20)          /* bytes of a line table: libdw needs some 50 bytes of memory for each */
#define LINES_DIRECTORIES_MAX 256u
#define LINES_PATHS_MAX (64u << 20)   /* bytes of paths that are built */
#define LINES_TABLES_MAX (256u << 20) /* bytes of all line tables that are read */

/* Addresses [start, end), and the unit or function that they belong to. */
struct range {
  uint64_t start, end;
  uint64_t value; /* number of a unit; offset of a function's entry */
};

struct range_list {
  struct range *ranges; /* by start, once it is finished */
  size_t count, capacity;
};

int range_list_add(struct range_list *list, const struct range *range); /* 0, or -ENOMEM */
void range_list_finish(struct range_list *list);
/* The range with the greatest start that holds the address, or NULL. */
const struct range *range_list_find(const struct range_list *list, uint64_t address);
void range_list_done(struct range_list *list);

/* The result of the last query for the addresses of a line. */
struct address_list {
  char *file; /* NULL: there was no query */
  unsigned line;
  uint64_t *list;
  size_t count, capacity;
};

struct unit {
  Dwarf_Die die;
  bool is_asked, has_table; /* functions were read; the line table may be used */
  bool is_noted;            /* its folder is among the directories */
  struct range_list functions;
};

struct symbol_lines {
  Dwarf *dwarf;
  Elf_Data *table; /* .debug_line, or NULL */
  uint64_t table_bytes;
  unsigned version; /* of DWARF: the highest of its units */
  bool is_broken;   /* libdw ran out of memory in the middle of something */
  struct unit *units;
  size_t count, capacity;
  struct range_list ranges; /* of units */
  uint64_t work;            /* entries that may still be looked at for the current query, */
  uint64_t index_work;      /* and to find units and functions */
  void *paths;              /* a tree (tsearch) of the paths that were built */
  size_t path_bytes;
  const char
    *directories[LINES_DIRECTORIES_MAX]; /* compilation folders of the units that were asked about: each once */
  size_t directory_count;
};

/* Reads the address ranges of the units. `file` must stay. Returns 0; LB_E_NO_SYMBOLS if there is nothing that can be
 * used; -ENOMEM. */
int lines_open(const struct elf_file *file, struct symbol_lines **ret_lines);
void lines_close(struct symbol_lines *lines); /* takes NULL */

/* Fills the frames of a place. Returns false if nothing is known. */
bool lines_find(struct symbol_lines *lines, uint64_t address, struct symbol_place *place);

/* Sets file, line and column of a frame to those of the code at an address. Returns false if they are not known. */
bool lines_line(struct symbol_lines *lines, uint64_t address, struct symbol_frame *frame);

/* Adds the addresses of code of a line. Returns 0, or -ENOMEM. */
int lines_addresses(struct symbol_lines *lines, const char *file, unsigned line, struct address_list *addresses);

/* ---- unit.c ---- */

/* Counts an entry. Returns false when the limit is reached. */
bool lines_work(struct symbol_lines *lines);

int units_read(struct symbol_lines *lines); /* 0, or -ENOMEM */

/* The unit of an address, with its functions read, or NULL. */
struct unit *unit_find(struct symbol_lines *lines, uint64_t address);

/* Is the address in one of the ranges of an entry? -1: the entry has no ranges. */
int entry_holds(struct symbol_lines *lines, Dwarf_Die *die, uint64_t address);

/* The next entry on the same level, and the first entry below it. The result always lies later in the file, whatever
 * the file says. Return false if there is none. */
bool entry_next(struct symbol_lines *lines, Dwarf_Die *die, Dwarf_Die *ret_die);
bool entry_child(struct symbol_lines *lines, Dwarf_Die *die, Dwarf_Die *ret_die);

#endif
