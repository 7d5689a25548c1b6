/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of an ELF file one by one, for code that must see them as another tool does: local or not, functions or
 * not, including aliases. ELF specification, "Symbol Table".
 */
#include <string.h>

#include "base/base.h"
#include "symbol/elf.h"

/* NULL for a name that is not printable or too long: a truncated name would be another name. */
static const char *name_check(const char *name)
{
  size_t length = name ? strnlen(name, SYMBOL_NAME_MAX + 1) : 0;

  return length && length <= SYMBOL_NAME_MAX && text_is_fit(name, length) ? name : NULL;
}

/* Returns false for a symbol without an address. */
static bool entry_read(Elf *elf, const GElf_Sym *symbol, size_t names, struct symbol_entry *entry)
{
  unsigned type = GELF_ST_TYPE(symbol->st_info);

  Elf_Scn *scn;
  GElf_Shdr section;

  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE || type == STT_SECTION || type == STT_FILE ||
      type == STT_TLS)
    return false;
  scn = sym_elf_getscn(elf, symbol->st_shndx);
  if (!scn || !sym_gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_ALLOC) ||
      section.sh_addr > UINT64_MAX - section.sh_size)
    return false;
  *entry = (struct symbol_entry){
    .name = name_check(sym_elf_strptr(elf, names, symbol->st_name)),
    .address = symbol->st_value,
    .size = symbol->st_size,
    .limit = section.sh_addr + section.sh_size,
    .is_function = type == STT_FUNC || type == STT_GNU_IFUNC,
    .is_local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL,
    .is_code = section.sh_flags & SHF_EXECINSTR,
  };
  return true;
}

static int section_visit(Elf *elf, Elf_Scn *scn, size_t names,
                         int (*visit)(void *data, const struct symbol_entry *entry), void *data)
{
  Elf_Data *table = sym_elf_getdata(scn, NULL);
  struct symbol_entry entry;
  GElf_Sym symbol;
  int r = 0;

  if (!table || table->d_type != ELF_T_SYM)
    return LB_E_NO_SYMBOLS;
  for (unsigned i = 0; r >= 0 && sym_gelf_getsym(table, (int)i, &symbol); i++) {
    if (i >= SYMBOL_COUNT_MAX)
      return LB_E_TOO_BIG;
    if (entry_read(elf, &symbol, names, &entry))
      r = visit(data, &entry);
  }
  return r;
}

int elf_entries(Elf *elf, unsigned type, int (*visit)(void *data, const struct symbol_entry *entry), void *data)
{
  GElf_Shdr section;
  Elf_Scn *scn = NULL;

  while ((scn = sym_elf_nextscn(elf, scn)))
    if (sym_gelf_getshdr(scn, &section) && section.sh_type == type)
      return section_visit(elf, scn, section.sh_link, visit, data);
  return LB_E_NO_SYMBOLS;
}
