/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbols of an ELF file, 32 or 64 bits: functions and labels of .symtab, or of .dynsym where there is no .symtab. ELF
 * specification, "Symbol Table"; libelf reads the file and checks what it reads.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbol/table.h"

#define SEGMENTS_MAX 64

/* Functions come before labels, what others may see before what is local. */
static uint8_t symbol_rank(const GElf_Sym *symbol)
{
  unsigned bind = GELF_ST_BIND(symbol->st_info);

  return (uint8_t)((GELF_ST_TYPE(symbol->st_info) == STT_FUNC ? 0 : 4) + (bind == STB_GLOBAL ? 0
                                                                          : bind == STB_WEAK ? 1
                                                                                             : 2));
}

/* Functions, and the labels of hand-written code, which have no type. Constants and data are not for branches. */
static bool symbol_is_code(Elf *elf, const GElf_Sym *symbol, GElf_Shdr *section)
{
  unsigned type = GELF_ST_TYPE(symbol->st_info);
  Elf_Scn *scn;

  if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)
    return false;
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
    return false;
  scn = elf_getscn(elf, symbol->st_shndx);
  return scn && gelf_getshdr(scn, section) && (section->sh_flags & SHF_EXECINSTR);
}

/* `sh_link` is the section of the names. */
static int symbol_add(struct symbol_table *table, Elf *elf, const GElf_Sym *symbol, size_t names)
{
  struct symbol new = {.address = symbol->st_value, .rank = symbol_rank(symbol)};
  GElf_Shdr section;
  const char *name;

  if (!symbol_is_code(elf, symbol, &section))
    return 0;
  name = elf_strptr(elf, names, symbol->st_name);
  if (!name)
    return 0;
  if (symbol->st_size && symbol->st_value <= UINT64_MAX - symbol->st_size)
    new.end = symbol->st_value + symbol->st_size;
  return symbol_table_add(table, &new, name, strlen(name));
}

static int section_read(struct symbol_table *table, Elf *elf, Elf_Scn *scn, const GElf_Shdr *section)
{
  Elf_Data *data = elf_getdata(scn, NULL);
  GElf_Sym symbol;
  int r = 0;

  if (!data || data->d_type != ELF_T_SYM)
    return 0;
  for (int i = 0; r >= 0 && gelf_getsym(data, i, &symbol); i++)
    r = symbol_add(table, elf, &symbol, section->sh_link);
  return r;
}

static int sections_read(struct symbol_table *table, Elf *elf, unsigned type)
{
  GElf_Shdr section;
  Elf_Scn *scn = NULL;
  int r = 0;

  while (r >= 0 && (scn = elf_nextscn(elf, scn)))
    if (gelf_getshdr(scn, &section) && section.sh_type == type)
      r = section_read(table, elf, scn, &section);
  return r;
}

/* Where the program is loaded, if not where it is linked for. */
static int segments_read(struct symbol_table *table, Elf *elf)
{
  size_t count = 0;
  int r = 0;

  if (elf_getphdrnum(elf, &count) < 0)
    return 0;
  for (size_t i = 0; r >= 0 && i < count && i < SEGMENTS_MAX; i++) {
    GElf_Phdr program;

    if (gelf_getphdr(elf, (int)i, &program) && program.p_type == PT_LOAD && program.p_paddr != program.p_vaddr)
      r = symbol_table_add_segment(table, &(struct symbol_segment){program.p_paddr, program.p_vaddr, program.p_memsz});
  }
  return r;
}

int elf_open(struct elf_file *file, const void *bytes, size_t size)
{
  *file = (struct elf_file){NULL, malloc(size ? size : 1)}; /* libelf wants memory that it may write to */
  if (!file->copy)
    return -ENOMEM;
  memcpy(file->copy, bytes, size);
  if (elf_version(EV_CURRENT) != EV_NONE)
    file->elf = elf_memory(file->copy, size);
  if (file->elf && elf_kind(file->elf) == ELF_K_ELF && gelf_getclass(file->elf) != ELFCLASSNONE)
    return 0;
  elf_close(file);
  return LB_E_BAD_SYNTAX;
}

void elf_close(struct elf_file *file)
{
  elf_end(file->elf);
  free(file->copy);
}

int elf_read(struct symbol_table *table, const void *bytes, size_t size)
{
  struct elf_file file;
  int r = elf_open(&file, bytes, size);

  if (r < 0)
    return r;
  r = sections_read(table, file.elf, SHT_SYMTAB);
  if (r >= 0 && !table->count)
    r = sections_read(table, file.elf, SHT_DYNSYM);
  if (r >= 0)
    r = segments_read(table, file.elf);
  elf_close(&file);
  return r;
}
