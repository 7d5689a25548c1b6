/* SPDX-License-Identifier: Apache-2.0
 *
 * The line of an address, and the chain of functions that were inlined there: the line table has the line of the code
 * itself, and the entries of inlined functions have their call sites. DWARF 5, 3.3.8 and 6.2. libdw reads DWARF 2 to 5;
 * if it cannot read something, that is unknown here.
 */
#include "symbol/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <search.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define CHAIN_MAX 64          /* functions inlined into each other */
#define STRING_MAX (1u << 14) /* bytes of a name or a path; a longer one is ignored */

/* ---- libdw without memory ---- */

/* Without memory, libdw would end the program. memory_fail jumps out of libdw in the middle of its work, so libdw's
 * data is not used any more. */
static _Thread_local jmp_buf memory_exit;

__attribute__((noreturn)) static void memory_fail(void)
{
  longjmp(memory_exit, 1);
}

static int lines_read(struct symbol_lines *lines)
{
  if (setjmp(memory_exit)) {
    lines->is_broken = true;
    return -ENOMEM;
  }
  return units_read(lines);
}

int lines_open(const struct elf_file *file, struct symbol_lines **ret_lines)
{
  struct symbol_lines *lines;

  Elf_Scn *table;
  int r = LB_E_NO_SYMBOLS;

  if (!debug_alt_is_usable(file) || elfutils_load(ELFUTILS_DW) < 0)
    return r;
  lines = calloc(1, sizeof(*lines));
  if (!lines)
    return -ENOMEM;
  lines->dwarf = sym_dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
  if (lines->dwarf) {
    sym_dwarf_new_oom_handler(lines->dwarf, memory_fail);
    r = lines_read(lines);
  }
  if (r >= 0 && !lines->ranges.count)
    r = LB_E_NO_SYMBOLS;
  if (r < 0) {
    lines_close(lines);
    return r;
  }
  table = elf_section(file->elf, ".debug_line");
  lines->table = table ? sym_elf_rawdata(table, NULL) : NULL; /* libdw has decompressed it if necessary */
  *ret_lines = lines;
  return 0;
}

void lines_close(struct symbol_lines *lines)
{
  if (!lines)
    return;
  for (size_t i = 0; i < lines->count; i++)
    range_list_done(&lines->units[i].functions);
  free(lines->units);
  range_list_done(&lines->ranges);
  tdestroy(lines->paths, free);
  if (!lines->is_broken)
    sym_dwarf_end(lines->dwarf);
  free(lines);
}

/* ---- strings and numbers ---- */

/* NULL for a string that is not printable. */
static const char *string_check(const char *string)
{
  size_t length = string ? strnlen(string, STRING_MAX) : 0;

  return length && length < STRING_MAX && text_is_fit(string, length) ? string : NULL;
}

static int path_compare(const void *one, const void *other)
{
  return strcmp(one, other);
}

/* Keeps one copy of each path. Returns it, or NULL without memory. */
static const char *path_keep(struct symbol_lines *lines, char *path)
{
  char **place = tsearch(path, &lines->paths, path_compare);

  if (!place || *place != path)
    free(path);
  else
    lines->path_bytes += strlen(path) + 1;
  return place ? *place : NULL;
}

/* Notes the directory in which a unit was compiled. */
static void directory_note(struct symbol_lines *lines, struct unit *unit)
{
  Dwarf_Attribute attribute;
  const char *directory;

  if (unit->is_noted || lines->directory_count >= LINES_DIRECTORIES_MAX)
    return;
  unit->is_noted = true;
  directory = string_check(sym_dwarf_formstring(sym_dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute)));
  if (!directory || *directory != '/')
    return;
  for (size_t i = 0; i < lines->directory_count; i++)
    if (!strcmp(lines->directories[i], directory))
      return;
  lines->directories[lines->directory_count++] = directory;
}

/* A path is relative to the directory of the compilation, if that is known. */
static const char *path_join(struct symbol_lines *lines, struct unit *unit, const char *file)
{
  Dwarf_Attribute attribute;
  const char *directory, *joined;
  char *path;

  directory_note(lines, unit);
  file = string_check(file);
  if (!file || *file == '/' || lines->path_bytes > LINES_PATHS_MAX)
    return file;
  directory = string_check(sym_dwarf_formstring(sym_dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute)));
  if (!directory || *directory != '/')
    return file;
  while (!strncmp(file, "./", 2))
    file += 2;
  if (asprintf(&path, "%s/%s", directory, file) < 0)
    return file;
  joined = path_keep(lines, path);
  return joined ? joined : file;
}

static unsigned entry_number(Dwarf_Die *die, unsigned name)
{
  Dwarf_Attribute attribute;
  Dwarf_Word value;

  if (sym_dwarf_formudata(sym_dwarf_attr(die, name, &attribute), &value) != 0 || value > INT32_MAX)
    return 0;
  return (unsigned)value;
}

/* ---- the chain ---- */

static bool tag_is_block(int tag)
{
  return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* Finds the outermost inlined function below an entry that contains the address. Descends into blocks that contain it,
 * or that have no ranges. */
static bool inlined_find(struct symbol_lines *lines, Dwarf_Die *entry, uint64_t address, Dwarf_Die *ret_die)
{
  Dwarf_Die stack[LINES_DEPTH_MAX];
  Dwarf_Die *top = stack;

  if (!entry_child(lines, entry, top))
    return false;
  for (;;) {
    int tag = sym_dwarf_tag(top);

    if (tag == DW_TAG_inlined_subroutine && entry_holds(lines, top, address) > 0) {
      *ret_die = *top;
      return true;
    }
    if (tag_is_block(tag) && top + 1 < stack + LINES_DEPTH_MAX && entry_holds(lines, top, address) &&
        entry_child(lines, top, top + 1)) {
      top++;
      continue;
    }
    while (!entry_next(lines, top, top))
      if (top-- == stack)
        return false;
  }
}

/* The function that contains an address, and all functions inlined there, outermost first. Returns their number. */
static size_t chain_read(struct symbol_lines *lines, struct unit *unit, uint64_t address, Dwarf_Die chain[CHAIN_MAX])
{
  const struct range *range = range_list_find(&unit->functions, address);
  size_t count = 1;

  if (!range || !sym_dwarf_offdie(lines->dwarf, range->value, &chain[0]))
    return 0;
  while (count < CHAIN_MAX && inlined_find(lines, &chain[count - 1], address, &chain[count]))
    count++;
  return count;
}

/* ---- frames ---- */

/* Size of a unit's line table; 0 if it has none that can be read. DWARF 5, 6.2.4: the length comes first. */
static uint64_t table_size(const struct symbol_lines *lines, struct unit *unit)
{
  Dwarf_Attribute attribute;
  const uint8_t *bytes = lines->table ? lines->table->d_buf : NULL;
  Dwarf_Word at;

  if (!bytes || sym_dwarf_formudata(sym_dwarf_attr(&unit->die, DW_AT_stmt_list, &attribute), &at) != 0 ||
      lines->table->d_size < 12 || at > lines->table->d_size - 12)
    return 0;
  if (bytes_get_u32(bytes + at) == UINT32_MAX)
    return bytes_get_u64(bytes + at + 4);
  return bytes_get_u32(bytes + at);
}

/* Whether libdw may read the line table of a unit. */
static bool table_is_usable(struct symbol_lines *lines, struct unit *unit)
{
  uint64_t size;

  if (unit->has_table)
    return true;
  size = table_size(lines, unit);
  if (!size || size > LINES_UNIT_MAX || lines->table_bytes + size > LINES_TABLES_MAX)
    return false;
  lines->table_bytes += size;
  unit->has_table = true;
  return true;
}

static bool frame_line(struct symbol_lines *lines, struct unit *unit, uint64_t address, struct symbol_frame *frame)
{
  Dwarf_Line *line = sym_dwarf_getsrc_die(&unit->die, address);
  int number = 0, column = 0;

  frame->file = line ? path_join(lines, unit, sym_dwarf_linesrc(line, NULL, NULL)) : NULL;
  if (!frame->file || sym_dwarf_lineno(line, &number) != 0 || number < 0)
    return frame->file;
  frame->line = (unsigned)number;
  if (sym_dwarf_linecol(line, &column) == 0 && column > 0)
    frame->column = (unsigned)column;
  return true;
}

static void frame_call(struct symbol_lines *lines, struct unit *unit, Dwarf_Die *inlined, struct symbol_frame *frame)
{
  Dwarf_Attribute attribute;
  Dwarf_Files *files;
  Dwarf_Word number;
  size_t count;

  if (sym_dwarf_formudata(sym_dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) != 0 ||
      sym_dwarf_getsrcfiles(&unit->die, &files, &count) != 0 || number >= count)
    return;
  frame->file = path_join(lines, unit, sym_dwarf_filesrc(files, number, NULL, NULL));
  if (!frame->file)
    return;
  frame->line = entry_number(inlined, DW_AT_call_line);
  frame->column = entry_number(inlined, DW_AT_call_column);
}

/* The compiler's name of a function, and the line of its declaration. */
static void frame_name(Dwarf_Die *function, struct symbol_frame *frame)
{
  Dwarf_Attribute attribute;
  int line = 0;

  frame->function = string_check(sym_dwarf_diename(function));
  frame->linkage =
    string_check(sym_dwarf_formstring(sym_dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute)));
  if (!frame->linkage)
    frame->linkage = frame->function;
  if (sym_dwarf_decl_line(function, &line) == 0 && line > 0)
    frame->declared = (unsigned)line;
}

static bool frames_read(struct symbol_lines *lines, uint64_t address, struct symbol_place *place)
{
  struct unit *unit = unit_find(lines, address);

  Dwarf_Die chain[CHAIN_MAX];
  size_t count = 0;
  bool has_table = unit && table_is_usable(lines, unit);
  bool has_line = has_table && frame_line(lines, unit, address, &place->frames[0]);

  lines->work = LINES_QUERY_MAX;
  if (unit)
    count = chain_read(lines, unit, address, chain);
  for (size_t i = 0; i < count && i < SYMBOL_FRAMES_MAX; i++) {
    struct symbol_frame *frame = &place->frames[i];

    frame_name(&chain[count - 1 - i], frame);
    if (i > 0 && has_table)
      frame_call(lines, unit, &chain[count - i], frame);
  }
  place->frame_count = count < SYMBOL_FRAMES_MAX ? count : SYMBOL_FRAMES_MAX;
  if (!count && has_line)
    place->frame_count = 1;
  return place->frame_count;
}

bool lines_find(struct symbol_lines *lines, uint64_t address, struct symbol_place *place)
{
  if (lines->is_broken)
    return false;
  if (setjmp(memory_exit)) {
    lines->is_broken = true;
    memset(place->frames, 0, sizeof(place->frames));
    place->frame_count = 0;
    return false;
  }
  return frames_read(lines, address, place);
}

bool lines_line(struct symbol_lines *lines, uint64_t address, struct symbol_frame *frame)
{
  struct unit *unit;

  if (lines->is_broken)
    return false;
  if (setjmp(memory_exit)) {
    lines->is_broken = true;
    return false;
  }
  lines->work = LINES_QUERY_MAX;
  unit = unit_find(lines, address);
  return unit && table_is_usable(lines, unit) && frame_line(lines, unit, address, frame);
}

/* ---- from lines to addresses ---- */

/* "sort.c" and "lib/sort.c" match "/home/me/lib/sort.c". */
static bool path_is(const char *word, const char *path)
{
  size_t length = strlen(word), whole = strlen(path);

  return whole >= length && !strcmp(path + whole - length, word) &&
         (whole == length || path[whole - length - 1] == '/');
}

static int address_add(struct address_list *addresses, uint64_t address)
{
  uint64_t *added;

  if (addresses->count >= LINES_QUERY_MAX)
    return 0;
  added = array_append(&addresses->list, &addresses->count, &addresses->capacity);
  if (!added)
    return -ENOMEM;
  *added = address;
  return 0;
}

static int unit_addresses(struct symbol_lines *lines, struct unit *unit, const char *file, unsigned wanted,
                          struct address_list *addresses)
{
  Dwarf_Lines *table;
  size_t count;
  int r = 0;

  if (!table_is_usable(lines, unit) || sym_dwarf_getsrclines(&unit->die, &table, &count) != 0)
    return 0;
  for (size_t i = 0; i < count && r >= 0; i++) {
    Dwarf_Line *line = sym_dwarf_onesrcline(table, i);
    bool is_end = true;
    int number = 0;
    Dwarf_Addr address;
    const char *path;

    if (!line || sym_dwarf_lineno(line, &number) != 0 || number < 0 || (unsigned)number != wanted ||
        sym_dwarf_lineendsequence(line, &is_end) != 0 || is_end || sym_dwarf_lineaddr(line, &address) != 0)
      continue;
    path = path_join(lines, unit, sym_dwarf_linesrc(line, NULL, NULL));
    if (path && path_is(file, path))
      r = address_add(addresses, address);
  }
  return r;
}

int lines_addresses(struct symbol_lines *lines, const char *file, unsigned line, struct address_list *addresses)
{
  int r = 0;

  if (lines->is_broken)
    return 0;
  if (setjmp(memory_exit)) {
    lines->is_broken = true;
    return -ENOMEM;
  }
  for (size_t i = 0; i < lines->count; i++) {
    r = unit_addresses(lines, &lines->units[i], file, line, addresses);
    if (r < 0)
      return r;
  }
  return 0;
}
