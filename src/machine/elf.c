/* SPDX-License-Identifier: Apache-2.0
 *
 * ELF kernels of 32 and 64 bits: the addresses of segments, and the symbols for kernels that use them. System V ABI,
 * chapters 4 and 5. Both classes are read into one form first.
 */
#include <elf.h>
#include <string.h>

#include "machine/kernel.h"

#define SECTIONS_MAX 4096u

/* The fields that are used of a header of either class. */
struct header {
  uint64_t entry, phoff, shoff;
  uint32_t phentsize, phnum, shentsize, shnum, shstrndx;
  bool is_64;
};

struct segment {
  uint32_t type;
  uint64_t offset, vaddr, paddr, filesz, memsz;
};

/* Copies `size` bytes at `offset` out of the image, if they are all there. */
static bool image_get(const struct machine_image *image, uint64_t offset, void *ret_bytes, size_t size)
{
  if (offset > image->size || size > image->size - offset)
    return false;
  memcpy(ret_bytes, image->bytes + offset, size);
  return true;
}

bool elf_is(const struct machine_image *image)
{
  return image->size >= EI_NIDENT && memcmp(image->bytes, ELFMAG, SELFMAG) == 0;
}

/* The fields of both classes have the same names. */
#define HEADER(e)                                                                                                      \
  ((struct header){.entry = (e).e_entry,                                                                               \
                   .phoff = (e).e_phoff,                                                                               \
                   .shoff = (e).e_shoff,                                                                               \
                   .phentsize = (e).e_phentsize,                                                                       \
                   .phnum = (e).e_phnum,                                                                               \
                   .shentsize = (e).e_shentsize,                                                                       \
                   .shnum = (e).e_shnum,                                                                               \
                   .shstrndx = (e).e_shstrndx})

static bool header_read(const struct machine_image *image, bool is_64, struct header *ret_header)
{
  Elf64_Ehdr e64;
  Elf32_Ehdr e32;

  if (!(is_64 ? image_get(image, 0, &e64, sizeof(e64)) : image_get(image, 0, &e32, sizeof(e32))))
    return false;
  *ret_header = is_64 ? HEADER(e64) : HEADER(e32);
  ret_header->is_64 = is_64;
  return is_64 ? e64.e_machine == EM_X86_64 : e32.e_machine == EM_386 || e32.e_machine == EM_X86_64;
}

static const char *header_get(const struct machine_image *image, struct header *ret_header)
{
  const uint8_t *identity = image->bytes;

  if (identity[EI_DATA] != ELFDATA2LSB)
    return "the ELF file is not little-endian";
  if (identity[EI_CLASS] != ELFCLASS32 && identity[EI_CLASS] != ELFCLASS64)
    return "the ELF file is neither of 32 nor of 64 bits";
  bool is_good = header_read(image, identity[EI_CLASS] == ELFCLASS64, ret_header);
  return is_good ? NULL : "the ELF file ends within its header or is for another processor";
}

static bool segment_get(const struct machine_image *image, const struct header *header, uint32_t index,
                        struct segment *ret_segment)
{
  uint64_t offset = header->phoff + (uint64_t)index * header->phentsize;

  Elf64_Phdr p64;
  Elf32_Phdr p32;
  if (offset < header->phoff)
    return false;
  if (header->is_64) {
    if (!image_get(image, offset, &p64, sizeof(p64)))
      return false;
    *ret_segment = (struct segment){p64.p_type, p64.p_offset, p64.p_vaddr, p64.p_paddr, p64.p_filesz, p64.p_memsz};
  } else {
    if (!image_get(image, offset, &p32, sizeof(p32)))
      return false;
    *ret_segment = (struct segment){p32.p_type, p32.p_offset, p32.p_vaddr, p32.p_paddr, p32.p_filesz, p32.p_memsz};
  }
  return true;
}

static const char *segment_check(const struct machine_image *image, const struct segment *s)
{
  if (s->offset > image->size || s->filesz > image->size - s->offset)
    return "a segment of the ELF file ends behind the end of the file";
  if (s->filesz > s->memsz)
    return "a segment of the ELF file is longer in the file than in memory";
  return NULL;
}

/* The entry is a virtual address: the segment that holds it gives its physical address. */
static void plan_entry(struct plan *plan, const struct header *header, const struct segment *s)
{
  if (header->entry >= s->vaddr && header->entry - s->vaddr < s->memsz)
    plan->entry = header->entry - s->vaddr + s->paddr;
}

/* Linkers give the ELF headers a segment of their own, a page below the text: in a kernel at 1 MiB, that segment
 * overlaps the firmware. A write to the ROM has no effect, and no kernel needs the headers there. */
static bool segment_is_lost(const struct header *header, const struct segment *s)
{
  bool has_entry = header->entry >= s->vaddr && header->entry - s->vaddr < s->memsz;

  return s->offset == 0 && !has_entry && s->paddr >= FIRMWARE_START && s->paddr < EXTENDED_START &&
         s->memsz <= EXTENDED_START - s->paddr;
}

static const char *plan_segments(const struct machine_image *image, const struct header *header, struct plan *plan)
{
  for (uint32_t i = 0; i < header->phnum; i++) {
    struct segment s;

    if (!segment_get(image, header, i, &s))
      return "the program headers of the ELF file end behind the end of the file";
    if (s.type != PT_LOAD || s.memsz == 0 || segment_is_lost(header, &s))
      continue;
    const char *why = segment_check(image, &s);
    if (why)
      return why;
    if (plan->count == PIECES_MAX)
      return "the ELF file has more than 64 segments";
    plan->pieces[plan->count++] =
      (struct piece){.address = s.paddr, .memory_size = s.memsz, .offset = s.offset, .file_size = s.filesz};
    plan_entry(plan, header, &s);
  }
  return plan->count ? NULL : "the ELF file has no segment to load";
}

/* Sections are for debuggers: an invalid table is left out. */
static void plan_sections(const struct machine_image *image, const struct header *header, struct plan *plan)
{
  uint32_t least = header->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
  uint64_t size = (uint64_t)header->shnum * header->shentsize;

  if (header->shentsize != least || header->shnum == 0 || header->shnum > SECTIONS_MAX)
    return;
  if (header->shoff > image->size || size > image->size - header->shoff)
    return;
  plan->sections = (struct sections){
    .offset = header->shoff, .count = header->shnum, .size = least, .names = header->shstrndx, .is_64 = header->is_64};
}

const char *elf_plan(const struct machine_image *image, struct plan *ret_plan)
{
  struct header header;
  struct plan plan = {0};
  const char *why = header_get(image, &header);

  if (why)
    return why;
  uint32_t least = header.is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  if (header.phnum && header.phentsize < least)
    return "the program headers of the ELF file are too small";
  plan.entry = header.entry;
  why = plan_segments(image, &header, &plan);
  if (why)
    return why;
  plan_sections(image, &header, &plan);
  *ret_plan = plan;
  return NULL;
}

/* ---- symbols ---- */

/* The fields that are used of a section header of either class. */
struct section_place {
  uint32_t type;
  uint64_t address, offset, size;
};

static struct section_place section_get(const struct sections *sections, const uint8_t *header)
{
  Elf64_Shdr s64;
  Elf32_Shdr s32;
  if (sections->is_64) {
    memcpy(&s64, header, sizeof(s64));
    return (struct section_place){s64.sh_type, s64.sh_addr, s64.sh_offset, s64.sh_size};
  }
  memcpy(&s32, header, sizeof(s32));
  return (struct section_place){s32.sh_type, s32.sh_addr, s32.sh_offset, s32.sh_size};
}

static void section_set_address(const struct sections *sections, uint8_t *header, uint64_t address)
{
  Elf32_Addr address_32 = (Elf32_Addr)address;
  if (sections->is_64)
    memcpy(header + offsetof(Elf64_Shdr, sh_addr), &address, sizeof(address));
  else
    memcpy(header + offsetof(Elf32_Shdr, sh_addr), &address_32, sizeof(address_32));
}

/* Copies a symbol or string table that no segment loads to memory of its own. */
static void section_load(struct machine *m, const struct machine_image *image, const struct sections *sections,
                         uint8_t *header, uint64_t *end)
{
  struct section_place s = section_get(sections, header);
  uint64_t at = (*end + 15) & ~UINT64_C(15);

  if ((s.type != SHT_SYMTAB && s.type != SHT_STRTAB) || s.address || s.size == 0)
    return;
  if (s.offset > image->size || s.size > image->size - s.offset || !machine_is_free(m, at, s.size))
    return;
  memory_write(&m->memory, at, image->bytes + s.offset, s.size);
  section_set_address(sections, header, at);
  *end = at + s.size;
}

uint64_t elf_load_symbols(struct machine *machine, const struct machine_image *image, const struct sections *sections,
                          uint64_t *end)
{
  uint64_t at = (*end + 15) & ~UINT64_C(15), size = (uint64_t)sections->count * sections->size;

  if (sections->count == 0 || !machine_is_free(machine, at, size))
    return 0;
  memory_write(&machine->memory, at, image->bytes + sections->offset, size);
  *end = at + size;
  uint8_t *headers = memory_at(&machine->memory, at);
  for (uint32_t i = 0; i < sections->count; i++)
    section_load(machine, image, sections, headers + (size_t)i * sections->size, end);
  return at;
}
