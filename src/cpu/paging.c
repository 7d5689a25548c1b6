/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks the page tables. One walk serves all formats: a table of levels gives the position of the index bits, the size
 * of entries, and the levels at which pages may be. SDM vol. 3, 4.3 to 4.7. Translations are cached by access.c and
 * block.c.
 */
#include "cpu/paging.h"

#include "cpu/access.h"
#include "cpu/fault.h"
#include "cpu/flags.h"
#include "cpu/key.h"
#include "cpu/system.h"

enum {
  ENTRY_P = 1u << 0,
  ENTRY_W = 1u << 1,
  ENTRY_U = 1u << 2,
  ENTRY_A = 1u << 5,
  ENTRY_D = 1u << 6,
  ENTRY_PS = 1u << 7,
  ENTRY_G = 1u << 8,
};
#define ENTRY_NX (UINT64_C(1) << 63)

enum { ERROR_P = 1u << 0, ERROR_RESERVED = 1u << 3, ERROR_KEY = 1u << 5 };

/* The structure of the tables of one paging mode. */
struct format {
  uint8_t levels;
  uint8_t entry; /* bytes */
  uint8_t bits;  /* of index per level */
  uint8_t pages; /* bit per level (0 the lowest) at which PS makes a page */
};

static const struct format format_32 = {2, 4, 10, 0}, format_pse = {2, 4, 10, 1 << 1}, format_pae = {2, 8, 9, 1 << 1},
                           format_4_level = {4, 8, 9, 1 << 1}, format_4_level_giant = {4, 8, 9, 1 << 1 | 1 << 2};

static const struct format *paging_format(const struct cpu *cpu)
{
  if (cpu->efer & EFER_LMA)
    return system_has(cpu, FEATURE_PDPE1GB) ? &format_4_level_giant : &format_4_level;
  if (cpu->cr4 & CR4_PAE)
    return &format_pae;
  return cpu->cr4 & CR4_PSE ? &format_pse : &format_32;
}

/* The result of a walk. */
struct walk {
  uint64_t entries[4]; /* by level */
  uint64_t addresses[4];
  unsigned level; /* of the page */
  uint64_t physical;
  bool is_writable, is_user, is_no_execute;
};

static uint64_t reserved_bits(const struct cpu *cpu, const struct format *format, unsigned level, uint64_t entry)
{
  bool is_page = level > 0 && (entry & ENTRY_PS) && (format->pages >> level & 1);

  if (format->entry == 4) /* PSE-36: bits 20:13 of a 4 MiB page are address bits 39:32 */
    return is_page ? entry & (1u << 21) : 0;
  uint64_t reserved = UINT64_C(0x7FFFFFFFFFFFFFFF) & ~((UINT64_C(1) << SYSTEM_PHYSICAL_BITS) - 1);
  if (cpu->efer & EFER_LMA)
    reserved &= ~(UINT64_C(0x7FF) << 52);
  if (!(cpu->efer & EFER_NXE))
    reserved |= ENTRY_NX;
  if (is_page)
    reserved |= ((UINT64_C(1) << (12 + 9 * level)) - 1) & ~UINT64_C(0x1FFF);
  else if (level > 0 && (entry & ENTRY_PS) && format->levels == 4)
    reserved |= ENTRY_PS;
  return entry & reserved;
}

static uint64_t page_address(const struct format *format, unsigned level, uint64_t entry, uint64_t linear)
{
  unsigned shift = 12 + format->bits * level;
  uint64_t offset = linear & ((UINT64_C(1) << shift) - 1) & ~PAGE_MASK;

  if (format->entry == 4 && level)
    return (entry & 0xFFC00000) | (entry & 0x1FE000) << 19 | offset;
  uint64_t bits = ((UINT64_C(1) << SYSTEM_PHYSICAL_BITS) - 1) & ~((UINT64_C(1) << shift) - 1);
  return (entry & bits) | offset;
}

static uint64_t table_root(const struct cpu *cpu, const struct format *format, uint64_t linear, bool *ret_is_present)
{
  *ret_is_present = true;
  if (format != &format_pae)
    return format->entry == 4 ? cpu->cr3 & 0xFFFFF000 : cpu->cr3 & UINT64_C(0x000FFFFFFFFFF000);
  uint64_t entry = cpu->pdpte[linear >> 30 & 3];
  *ret_is_present = entry & ENTRY_P;
  return entry & UINT64_C(0x000FFFFFFFFFF000);
}

/* Returns 0, or the error-code bits (P and reserved) of a fault that the tables cause. */
static int paging_walk(struct cpu *cpu, uint64_t linear, struct walk *walk)
{
  const struct format *format = paging_format(cpu);
  bool is_present;
  uint64_t table = table_root(cpu, format, linear, &is_present);

  *walk = (struct walk){.is_writable = true, .is_user = true};
  if (!is_present)
    return -1;
  for (unsigned level = format->levels; level-- > 0;) {
    unsigned index = (unsigned)(linear >> (12 + format->bits * level)) & ((1u << format->bits) - 1);
    uint64_t address = table + (uint64_t)index * format->entry;
    uint64_t entry = access_load_physical(cpu, address, format->entry);

    walk->entries[level] = entry;
    walk->addresses[level] = address;
    walk->level = level;
    if (!(entry & ENTRY_P))
      return -1;
    if (reserved_bits(cpu, format, level, entry))
      return ERROR_P | ERROR_RESERVED;
    walk->is_writable &= (entry & ENTRY_W) != 0;
    walk->is_user &= (entry & ENTRY_U) != 0;
    walk->is_no_execute |= format->entry == 8 && (entry & ENTRY_NX) && (cpu->efer & EFER_NXE);
    bool is_page = level == 0 || ((entry & ENTRY_PS) && (format->pages >> level & 1));
    walk->physical = page_address(format, level, entry, linear);
    if (is_page)
      return 0;
    table = format->entry == 4 ? entry & 0xFFFFF000 : entry & UINT64_C(0x000FFFFFFFFFF000);
  }
  return 0;
}

static bool is_denied_by_key(const struct cpu *cpu, const struct walk *walk, unsigned wants)
{
  return key_denies(cpu, walk->entries[walk->level], walk->is_user, wants);
}

/* SDM vol. 3, 4.6: whether this access is allowed. Protection keys are checked separately. */
static bool is_allowed(const struct cpu *cpu, const struct walk *walk, unsigned wants)
{
  if (wants & PAGING_USER)
    return walk->is_user && !((wants & PAGING_WRITE) && !walk->is_writable) &&
           !((wants & PAGING_FETCH) && walk->is_no_execute);
  if (wants & PAGING_FETCH)
    return !walk->is_no_execute && !(walk->is_user && (cpu->cr4 & CR4_SMEP));
  bool is_guarded = walk->is_user && (cpu->cr4 & CR4_SMAP);
  if (is_guarded && ((wants & PAGING_IMPLICIT) || !(cpu->eflags & FLAG_AC)))
    return false;
  return !((wants & PAGING_WRITE) && !walk->is_writable && (cpu->cr0 & CR0_WP));
}

_Noreturn static void page_fault(struct cpu *cpu, uint64_t linear, unsigned wants, unsigned found)
{
  bool shows_fetch = ((cpu->efer & EFER_NXE) && (cpu->cr4 & CR4_PAE)) || (cpu->cr4 & CR4_SMEP);
  unsigned shown = PAGING_WRITE | PAGING_USER | (shows_fetch ? PAGING_FETCH : 0);

  cpu->cr2 = linear;
  fault_raise(cpu, EXCEPTION_PF, (wants & shown) | found);
}

static void set_bits(struct cpu *cpu, const struct walk *walk, unsigned levels, unsigned entry_size, bool is_write)
{
  for (unsigned level = walk->level; level < levels; level++) {
    uint64_t bits = ENTRY_A | (level == walk->level && is_write ? ENTRY_D : 0);

    if ((walk->entries[level] & bits) != bits)
      access_store_physical(cpu, walk->addresses[level], entry_size, walk->entries[level] | bits);
  }
}

struct paging_page paging_translate(struct cpu *cpu, uint64_t linear, unsigned wants)
{
  if (!(cpu->cr0 & CR0_PG))
    return (struct paging_page){.physical = linear & ~PAGE_MASK & cpu->memory->a20_mask, .is_writable = true};
  struct walk walk;
  int found = paging_walk(cpu, linear, &walk);
  if (found)
    page_fault(cpu, linear, wants, found < 0 ? 0 : (unsigned)found);
  bool is_denied = is_denied_by_key(cpu, &walk, wants);
  if (is_denied || !is_allowed(cpu, &walk, wants))
    page_fault(cpu, linear, wants, ERROR_P | (is_denied ? ERROR_KEY : 0));
  const struct format *format = paging_format(cpu);
  set_bits(cpu, &walk, format->levels, format->entry, wants & PAGING_WRITE);
  bool is_dirty = (wants & PAGING_WRITE) || (walk.entries[walk.level] & ENTRY_D);
  unsigned writes = wants | PAGING_WRITE;
  if (!(wants & PAGING_FETCH))
    key_note(cpu, walk.entries[walk.level], walk.is_user);
  return (struct paging_page){
    .physical = walk.physical & cpu->memory->a20_mask,
    .is_writable = is_dirty && is_allowed(cpu, &walk, writes) && !is_denied_by_key(cpu, &walk, writes),
    .is_guarded = !(wants & PAGING_USER) && walk.is_user && (cpu->cr4 & CR4_SMAP),
    .shift = (uint8_t)(12 + format->bits * walk.level),
  };
}

bool paging_look(struct cpu *cpu, uint64_t linear, uint64_t *ret_physical, unsigned *ret_bits)
{
  unsigned bits = LB_DS_PAGE_PRESENT | LB_DS_PAGE_ACCESSED | LB_DS_PAGE_DIRTY | LB_DS_PAGE_SUPERVISOR;
  uint64_t physical = linear;

  if (cpu->cr0 & CR0_PG) {
    struct walk walk;

    if (paging_walk(cpu, linear, &walk))
      return false;
    uint64_t entry = walk.entries[walk.level];
    physical = walk.physical | (linear & PAGE_MASK);
    bits = LB_DS_PAGE_PRESENT | (entry & ENTRY_A ? LB_DS_PAGE_ACCESSED : 0) | (entry & ENTRY_D ? LB_DS_PAGE_DIRTY : 0) |
           (walk.is_user ? 0 : LB_DS_PAGE_SUPERVISOR) | (entry & ENTRY_G ? LB_DS_PAGE_GLOBAL : 0);
    bits |= walk.is_writable || !(cpu->cr0 & CR0_WP) ? 0 : PAGING_LOOK_READ_ONLY;
  }
  *ret_physical = physical & cpu->memory->a20_mask;
  if (ret_bits)
    *ret_bits = bits;
  return true;
}

bool paging_load_pdptes(struct cpu *cpu, uint64_t cr3)
{
  uint64_t entries[4];
  uint64_t reserved = (UINT64_MAX << SYSTEM_PHYSICAL_BITS) | 0x1E6;

  for (unsigned i = 0; i < 4; i++) {
    entries[i] = access_load_physical(cpu, (cr3 & 0xFFFFFFE0) + 8u * i, 8);
    if ((entries[i] & ENTRY_P) && (entries[i] & reserved))
      return false;
  }
  for (unsigned i = 0; i < 4; i++)
    cpu->pdpte[i] = entries[i];
  return true;
}
