/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the entries of the procedure linkage tables of x86-64, NAME@plt. Symbol tables have none of them. An entry
 * jumps through a slot of the global offset table, and a relocation tells which function's address goes into that slot.
 * An entry that only pushes a number (with -z ibtplt, where .plt.sec has the jump) gives the number of its relocation
 * in .rela.plt. System V ABI for AMD64, "Procedure Linkage Table".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbol/elf.h"

#define SLOTS_MAX (1u << 20)
#define ENTRY_SIZE 16u
#define ENTRY_SIZE_MAX 64u
#define OPCODE_PUSH 0x68 /* PUSH imm32 */

/* A word of the global offset table that the dynamic linker fills. */
struct slot {
  uint64_t address;
  uint64_t function; /* IRELATIVE: the resolver; otherwise 0 */
  const char *name;  /* otherwise the name of the symbol */
};

struct slot_list {
  struct slot *slots; /* those of .rela.plt first and in its order, until all are sorted */
  size_t count, capacity;
};

struct plt {
  const struct symbol_table *table;
  struct symbol_table entries; /* separate, so that the table can be searched meanwhile */
  Elf *elf;
  struct slot_list by_number, by_address;
};

/* ---- relocations ---- */

static const char *symbol_name(Elf *elf, Elf_Scn *symbols, size_t number)
{
  Elf_Data *data = symbols ? sym_elf_getdata(symbols, NULL) : NULL;
  GElf_Shdr header;
  GElf_Sym symbol;

  if (!data || !sym_gelf_getshdr(symbols, &header) || !sym_gelf_getsym(data, (int)number, &symbol))
    return NULL;
  return sym_elf_strptr(elf, header.sh_link, symbol.st_name);
}

static bool slot_make(Elf *elf, Elf_Scn *symbols, const GElf_Rela *relocation, struct slot *ret_slot)
{
  struct slot slot = {.address = relocation->r_offset};
  uint32_t type = GELF_R_TYPE(relocation->r_info);

  if (type == R_X86_64_IRELATIVE)
    slot.function = (uint64_t)relocation->r_addend;
  else if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
    slot.name = symbol_name(elf, symbols, GELF_R_SYM(relocation->r_info));
  *ret_slot = slot;
  return slot.function || slot.name;
}

static int slot_add(struct slot_list *list, const struct slot *slot)
{
  struct slot *added;

  if (list->count >= SLOTS_MAX)
    return LB_E_TOO_BIG;
  added = array_append(&list->slots, &list->count, &list->capacity);
  if (!added)
    return -ENOMEM;
  *added = *slot;
  return 0;
}

/* Adds all relocations of one section in their order, including those that are no functions, because entries count
 * them. */
static int relocations_read(struct plt *plt, Elf_Scn *scn, const GElf_Shdr *header, bool is_numbered)
{
  Elf_Scn *symbols = header->sh_link ? sym_elf_getscn(plt->elf, header->sh_link) : NULL;
  Elf_Data *data = sym_elf_getdata(scn, NULL);
  GElf_Rela relocation;
  int r = 0;

  if (!data || data->d_type != ELF_T_RELA)
    return 0;
  for (int i = 0; r >= 0 && i < (int)SLOTS_MAX && sym_gelf_getrela(data, i, &relocation); i++) {
    struct slot slot;
    bool is_used = slot_make(plt->elf, symbols, &relocation, &slot);

    if (is_numbered)
      r = slot_add(&plt->by_number, &slot);
    if (r >= 0 && is_used)
      r = slot_add(&plt->by_address, &slot);
  }
  return r;
}

static int slot_compare(const void *one, const void *other)
{
  const struct slot *a = one, *b = other;

  return a->address < b->address ? -1 : a->address > b->address;
}

static int slots_read(struct plt *plt)
{
  static const char *const names[] = {".rela.plt", ".rela.dyn"};
  int r = 0;

  for (size_t i = 0; r >= 0 && i < sizeof(names) / sizeof(*names); i++) {
    Elf_Scn *scn = elf_section(plt->elf, names[i]);
    GElf_Shdr header;

    if (scn && sym_gelf_getshdr(scn, &header) && header.sh_type == SHT_RELA)
      r = relocations_read(plt, scn, &header, i == 0);
  }
  if (plt->by_address.count)
    qsort(plt->by_address.slots, plt->by_address.count, sizeof(struct slot), slot_compare);
  return r;
}

/* ---- entries ---- */

static const struct slot *slot_at(const struct plt *plt, uint64_t address)
{
  struct slot wanted = {.address = address};

  if (!plt->by_address.count)
    return NULL;
  return bsearch(&wanted, plt->by_address.slots, plt->by_address.count, sizeof(wanted), slot_compare);
}

/* JMP [RIP + disp32] anywhere in the entry: linkers put ENDBR64, a BND prefix or a load before it. */
static const struct slot *entry_slot(const struct plt *plt, const uint8_t *code, size_t size, uint64_t address)
{
  for (size_t at = 0; at + 6 <= size; at++)
    if (code[at] == 0xFF && code[at + 1] == 0x25) {
      int64_t displacement = (int32_t)bytes_get_u32(code + at + 2);
      const struct slot *slot = slot_at(plt, address + at + 6 + (uint64_t)displacement);

      if (slot)
        return slot;
    }
  return NULL;
}

/* PUSH imm32 as the first instruction or after ENDBR64, and no jump through a slot in the entry. */
static const struct slot *entry_number(const struct plt *plt, const uint8_t *code, size_t size)
{
  static const uint8_t endbr64[] = {0xF3, 0x0F, 0x1E, 0xFA};
  size_t at = size >= 4 && !memcmp(code, endbr64, 4) ? 4 : 0;
  uint32_t number;

  if (at + 5 > size || code[at] != OPCODE_PUSH)
    return NULL;
  number = bytes_get_u32(code + at + 1);
  return number < plt->by_number.count ? &plt->by_number.slots[number] : NULL;
}

static int entry_add(struct plt *plt, const struct slot *slot, uint64_t address, uint64_t size)
{
  struct symbol symbol = {.address = address, .end = address + size, .rank = 3};
  char name[SYMBOL_NAME_MAX + 1];
  const char *function = slot->name;
  uint64_t offset = 0;
  int length;

  if (slot->function && (!symbol_table_find(plt->table, slot->function, &function, &offset) || offset))
    return 0;
  if (!function || !*function || address > UINT64_MAX - size)
    return 0;
  length = snprintf(name, sizeof(name), "%.*s@plt", SYMBOL_NAME_MAX - 4, function);
  return symbol_table_add(&plt->entries, &symbol, name, (size_t)length);
}

/* Linkers omit the size of entries in static programs, where an entry is only a jump. */
static size_t entry_size(const GElf_Shdr *header)
{
  if (header->sh_entsize >= 8 && header->sh_entsize <= ENTRY_SIZE_MAX)
    return (size_t)header->sh_entsize;
  return header->sh_addralign == 8 ? 8 : ENTRY_SIZE;
}

static int section_entries(struct plt *plt, const char *name)
{
  Elf_Scn *scn = elf_section(plt->elf, name);
  Elf_Data *data = scn ? sym_elf_getdata(scn, NULL) : NULL;
  GElf_Shdr header;
  size_t step;
  int r = 0;

  if (!data || !data->d_buf || !sym_gelf_getshdr(scn, &header))
    return 0;
  step = entry_size(&header);
  for (size_t at = 0, i = 0; r >= 0 && at + step <= data->d_size && i < SLOTS_MAX; at += step, i++) {
    const uint8_t *code = (const uint8_t *)data->d_buf + at;
    const struct slot *slot = entry_slot(plt, code, step, header.sh_addr + at);

    slot = slot ? slot : entry_number(plt, code, step);
    if (slot)
      r = entry_add(plt, slot, header.sh_addr + at, step);
  }
  return r;
}

static int entries_join(struct symbol_table *table, const struct symbol_table *entries)
{
  int r = 0;

  for (size_t i = 0; r >= 0 && i < entries->count; i++) {
    const char *name = entries->names + entries->symbols[i].name;

    r = symbol_table_add(table, &entries->symbols[i], name, strlen(name));
  }
  symbol_table_finish(table);
  return r;
}

int plt_symbols(struct symbol_table *table, Elf *elf)
{
  static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
  struct plt plt = {.table = table, .elf = elf};

  GElf_Ehdr header;
  int r;

  symbol_table_finish(table);
  if (!sym_gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 || sym_gelf_getclass(elf) != ELFCLASS64)
    return 0;
  r = slots_read(&plt);
  for (size_t i = 0; r >= 0 && i < sizeof(names) / sizeof(*names); i++)
    r = section_entries(&plt, names[i]);
  if (r >= 0)
    r = entries_join(table, &plt.entries);
  free(plt.by_number.slots);
  free(plt.by_address.slots);
  free(plt.entries.symbols);
  free(plt.entries.names);
  return r;
}
