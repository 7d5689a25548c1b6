/* SPDX-License-Identifier: Apache-2.0
 *
 * ELF files, 32 or 64 bits: opening one, and its symbols: functions and labels of .symtab, or of .dynsym where there is
 * no .symtab. ELF specification, "Symbol Table"; libelf reads and checks the file.
 */
#include "symbol/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define SEGMENTS_MAX 64
#define LOOKED_AT_MAX (4u * SYMBOL_COUNT_MAX) /* symbols, including those that are no branch targets */

/* Functions come before labels, global symbols before local ones, readable names before _IO_puts. */
static uint8_t symbol_rank(const GElf_Sym *symbol, const char *name)
{
  unsigned type = GELF_ST_TYPE(symbol->st_info);
  bool is_label = type != STT_FUNC && type != STT_GNU_IFUNC;
  bool is_local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL;

  return (uint8_t)(is_label << 2 | is_local << 1 | (*name == '_'));
}

/* Functions, and the labels of hand-written code, which have no type. Constants and data are no branch targets. */
static bool symbol_is_code(Elf *elf, const GElf_Sym *symbol, GElf_Shdr *section)
{
  unsigned type = GELF_ST_TYPE(symbol->st_info);

  Elf_Scn *scn;

  if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)
    return false;
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
    return false;
  scn = sym_elf_getscn(elf, symbol->st_shndx);
  return scn && sym_gelf_getshdr(scn, section) && (section->sh_flags & SHF_EXECINSTR);
}

/* The length without the version that linkers append to names: hcreate@@GLIBC_2.2.5. A name that is too long is cut
 * later, at the end of a character. */
static size_t name_size(const char *name)
{
  size_t size = strnlen(name, SYMBOL_NAME_MAX + 4);
  const char *at = size ? memchr(name + 1, '@', size - 1) : NULL;

  return at ? (size_t)(at - name) : size;
}

/* `sh_link` is the section of the names. */
static int symbol_add(struct symbol_table *table, Elf *elf, const GElf_Sym *symbol, size_t names)
{
  struct symbol new = {.address = symbol->st_value};

  GElf_Shdr section;
  const char *name;

  if (!symbol_is_code(elf, symbol, &section))
    return 0;
  name = sym_elf_strptr(elf, names, symbol->st_name);
  if (!name)
    return 0;
  new.rank = symbol_rank(symbol, name);
  if (symbol->st_size && symbol->st_value <= UINT64_MAX - symbol->st_size)
    new.end = symbol->st_value + symbol->st_size;
  if (section.sh_addr <= UINT64_MAX - section.sh_size)
    new.limit = section.sh_addr + section.sh_size;
  return symbol_table_add(table, &new, name, name_size(name));
}

static int section_read(struct symbol_table *table, Elf *elf, Elf_Scn *scn, const GElf_Shdr *section, uint32_t *work)
{
  Elf_Data *data = sym_elf_getdata(scn, NULL);
  GElf_Sym symbol;
  int r = 0;

  if (!data || data->d_type != ELF_T_SYM)
    return 0;
  for (int i = 0; r >= 0 && sym_gelf_getsym(data, i, &symbol); i++)
    r = ++*work > LOOKED_AT_MAX ? LB_E_TOO_BIG : symbol_add(table, elf, &symbol, section->sh_link);
  return r;
}

int elf_symbols(struct symbol_table *table, Elf *elf, unsigned type)
{
  GElf_Shdr section;
  Elf_Scn *scn = NULL;
  uint32_t work = 0;
  int r = 0;

  while (r >= 0 && (scn = sym_elf_nextscn(elf, scn)))
    if (sym_gelf_getshdr(scn, &section) && section.sh_type == type)
      r = section_read(table, elf, scn, &section, &work);
  return r;
}

/* Reads the segments whose physical address differs from their linked address. */
static int segments_read(struct symbol_table *table, Elf *elf)
{
  size_t count = 0;
  int r = 0;

  if (sym_elf_getphdrnum(elf, &count) < 0)
    return 0;
  for (size_t i = 0; r >= 0 && i < count && i < SEGMENTS_MAX; i++) {
    GElf_Phdr program;

    if (sym_gelf_getphdr(elf, (int)i, &program) && program.p_type == PT_LOAD && program.p_paddr != program.p_vaddr)
      r = symbol_table_add_segment(table, &(struct symbol_segment){program.p_paddr, program.p_vaddr, program.p_memsz});
  }
  return r;
}

int elf_read(struct symbol_table *table, const void *bytes, size_t size)
{
  struct elf_file file;
  int r = elf_open(&file, bytes, size);

  if (r >= 0)
    r = elf_symbols(table, file.elf, SHT_SYMTAB);
  if (r >= 0 && !table->count)
    r = elf_symbols(table, file.elf, SHT_DYNSYM);
  if (r >= 0)
    r = segments_read(table, file.elf);
  elf_close(&file);
  return r;
}

/* ---- files ---- */

/* Sections do not overlap in a valid file. If many claimed to be the whole file, each would take its size in memory. */
static int sections_check(const struct elf_file *file)
{
  uint64_t packed = 0, unpacked = 0;

  Elf_Scn *scn = NULL;
  GElf_Shdr section;
  GElf_Chdr chunk;

  while ((scn = sym_elf_nextscn(file->elf, scn))) {
    if (!sym_gelf_getshdr(scn, &section) || section.sh_type == SHT_NOBITS || section.sh_size > file->size)
      continue;
    packed += section.sh_size;
    if ((section.sh_flags & SHF_COMPRESSED) && sym_gelf_getchdr(scn, &chunk))
      unpacked = chunk.ch_size > ELF_UNPACKED_MAX ? UINT64_MAX : unpacked + chunk.ch_size;
    if (packed > 2 * file->size || unpacked > ELF_UNPACKED_MAX)
      return LB_E_TOO_BIG;
  }
  return 0;
}

static int file_check(const struct elf_file *file)
{
  bool is_elf = file->elf && sym_elf_kind(file->elf) == ELF_K_ELF && sym_gelf_getclass(file->elf) != ELFCLASSNONE;

  return is_elf ? sections_check(file) : LB_E_BAD_SYNTAX;
}

int elf_open(struct elf_file *file, const void *bytes, size_t size)
{
  *file = (struct elf_file){.fd = -1, .copy = malloc(size ? size : 1), .size = size};
  if (!file->copy)
    return -ENOMEM;
  memcpy(file->copy, bytes, size);
  int r = elfutils_load(ELFUTILS_ELF);
  if (r < 0)
    return r;
  if (sym_elf_version(EV_CURRENT) != EV_NONE)
    file->elf = sym_elf_memory(file->copy, size);
  return file_check(file);
}

static int file_stat(struct elf_file *file)
{
  struct stat status;

  if (fstat(file->fd, &status) < 0)
    return -errno;
  if (!S_ISREG(status.st_mode))
    return S_ISDIR(status.st_mode) ? -EISDIR : -ESPIPE;
  if ((uint64_t)status.st_size > ELF_FILE_MAX)
    return LB_E_TOO_BIG;
  file->size = (uint64_t)status.st_size;
  return 0;
}

int elf_open_path(struct elf_file *file, const char *path)
{
  int r;

  /* The path may name a pipe or a terminal. */
  *file = (struct elf_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  r = file->fd < 0 ? -errno : file_stat(file);
  if (r >= 0)
    r = elfutils_load(ELFUTILS_ELF);
  if (r < 0)
    return r;
  if (sym_elf_version(EV_CURRENT) != EV_NONE)
    file->elf = sym_elf_begin(file->fd, ELF_C_READ, NULL);
  return file_check(file);
}

void elf_close(struct elf_file *file)
{
  if (file->elf)
    sym_elf_end(file->elf);
  free(file->copy);
  if (file->fd >= 0)
    close(file->fd);
  *file = (struct elf_file){.fd = -1};
}

Elf_Scn *elf_section(Elf *elf, const char *name)
{
  Elf_Scn *scn = NULL;
  GElf_Shdr header;
  size_t names;

  if (sym_elf_getshdrstrndx(elf, &names) < 0)
    return NULL;
  for (unsigned i = 0; i < ELF_SECTIONS_MAX && (scn = sym_elf_nextscn(elf, scn)); i++) {
    const char *found = sym_gelf_getshdr(scn, &header) ? sym_elf_strptr(elf, names, header.sh_name) : NULL;

    if (found && !strcmp(found, name))
      return scn;
  }
  return NULL;
}
