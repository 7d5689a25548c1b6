/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiboot 1 kernels: the header in the first 8 KiB, the image as an ELF file of 32 or 64 bits or by the header's own
 * addresses, modules after it, and the state of the processor at its entry. Multiboot Specification 0.6.96, section 3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "machine/kernel.h"

#define HEADER_SEARCH 8192u
#define HEADER_MAGIC 0x1BADB002u
#define LOADER_MAGIC 0x2BADB002u
enum {
  HEADER_PAGE_ALIGN = 1u << 0, /* always done */
  HEADER_MEMORY = 1u << 1,     /* always told */
  HEADER_VIDEO = 1u << 2,
  HEADER_REQUIRED = 0xFFFFu, /* a loader that does not know one of these must not start the kernel */
  HEADER_ADDRESSES = 1u << 16,
};

struct header {
  size_t offset; /* in the image */
  uint32_t flags;
  uint32_t header_addr, load_addr, load_end_addr, bss_end_addr, entry_addr;
};

/* ---- the header ---- */

static const char *header_addresses(const struct machine_image *image, struct header *header)
{
  const uint8_t *bytes = image->bytes + header->offset;

  if (image->size - header->offset < 32)
    return "the file ends within its multiboot header";
  header->header_addr = bytes_get_u32(bytes + 12);
  header->load_addr = bytes_get_u32(bytes + 16);
  header->load_end_addr = bytes_get_u32(bytes + 20);
  header->bss_end_addr = bytes_get_u32(bytes + 24);
  header->entry_addr = bytes_get_u32(bytes + 28);
  return NULL;
}

static const char *header_find(const struct machine_image *image, struct header *ret_header)
{
  size_t limit = image->size < HEADER_SEARCH ? image->size : HEADER_SEARCH;

  for (size_t i = 0; i + 12 <= limit; i += 4) {
    uint32_t magic = bytes_get_u32(image->bytes + i), flags = bytes_get_u32(image->bytes + i + 4);

    if (magic != HEADER_MAGIC || magic + flags + bytes_get_u32(image->bytes + i + 8) != 0)
      continue;
    *ret_header = (struct header){.offset = i, .flags = flags};
    if (flags & HEADER_REQUIRED & ~(HEADER_PAGE_ALIGN | HEADER_MEMORY | HEADER_VIDEO))
      return "its multiboot header requires a feature that is not known";
    return flags & HEADER_ADDRESSES ? header_addresses(image, ret_header) : NULL;
  }
  return "no multiboot header in its first 8192 bytes";
}

/* ---- the plan ---- */

/* The header's address fields say which bytes of the file go where. */
static const char *plan_addresses(const struct machine_image *image, const struct header *h, struct plan *plan)
{
  if (h->load_addr > h->header_addr)
    return "its multiboot header lies below the address where the file is to be loaded";
  if (h->header_addr - h->load_addr > h->offset)
    return "its multiboot header is not as far from the start of the file as it says";
  uint64_t offset = h->offset - (h->header_addr - h->load_addr);
  uint64_t size = h->load_end_addr ? (uint64_t)h->load_end_addr - h->load_addr : image->size - offset;
  if (h->load_end_addr && h->load_end_addr < h->load_addr)
    return "its multiboot header ends the loaded part before it begins";
  if (size > image->size - offset)
    return "its multiboot header wants more bytes than the file has";
  uint64_t end = h->load_addr + size;
  if (h->bss_end_addr && h->bss_end_addr < end)
    return "its multiboot header ends the zeroed part before it begins";
  *plan = (struct plan){.count = 1, .entry = h->entry_addr};
  plan->pieces[0] = (struct piece){
    .address = h->load_addr,
    .memory_size = (h->bss_end_addr ? h->bss_end_addr : end) - h->load_addr,
    .offset = offset,
    .file_size = size,
  };
  return NULL;
}

static const char *plan_make(const struct machine_image *image, struct header *ret_header, struct plan *ret_plan)
{
  const char *why = header_find(image, ret_header);

  if (why)
    return why;
  if (ret_header->flags & HEADER_ADDRESSES)
    return plan_addresses(image, ret_header, ret_plan);
  if (!elf_is(image))
    return "it has a multiboot header, but is not an ELF file and has no address fields";
  return elf_plan(image, ret_plan);
}

static const char *plan_check(const struct machine *m, const struct plan *plan)
{
  for (unsigned i = 0; i < plan->count; i++)
    if (!machine_is_free(m, plan->pieces[i].address, plan->pieces[i].memory_size))
      return "a part of it does not fit into memory, or lies where the firmware is";
  return plan->entry > UINT32_MAX ? "its entry lies above 4 GiB" : NULL;
}

/* ---- into memory ---- */

static void plan_load(struct machine *m, const struct machine_image *image, const struct plan *plan)
{
  for (unsigned i = 0; i < plan->count; i++) {
    const struct piece *piece = &plan->pieces[i];
    uint8_t *at = memory_at(&m->memory, piece->address);

    if (!at)
      continue; /* of no bytes, at the very end */
    memcpy(at, image->bytes + piece->offset, piece->file_size);
    memset(at + piece->file_size, 0, piece->memory_size - piece->file_size);
  }
}

/* The first address above 1 MiB after everything that is loaded there. */
static uint64_t plan_end(const struct plan *plan)
{
  uint64_t end = EXTENDED_START;

  for (unsigned i = 0; i < plan->count; i++) {
    uint64_t piece_end = plan->pieces[i].address + plan->pieces[i].memory_size;

    if (piece_end > end && piece_end <= MEMORY_HOLE)
      end = piece_end;
  }
  return end;
}

static bool modules_load(struct machine *m, const struct start *start, uint64_t end, uint64_t *ret_places)
{
  for (size_t i = 0; i < start->count; i++) {
    end = (end + PAGE_MASK) & ~PAGE_MASK;
    if (!machine_is_free(m, end, start->modules[i].size))
      return false;
    memory_write(&m->memory, end, start->modules[i].bytes, start->modules[i].size);
    ret_places[i] = end;
    end += start->modules[i].size;
  }
  return true;
}

/* ---- the processor ---- */

static void enter(struct machine *m, const struct plan *plan, uint32_t info)
{
  struct cpu *cpu = m->cpu;

  memset(cpu->r, 0, sizeof(cpu->r));
  cpu_set_flags(cpu, FLAG_1);
  cpu_enter_flat_protected(cpu, (uint32_t)plan->entry);
  cpu->r[RAX] = LOADER_MAGIC;
  cpu->r[RBX] = info;
  cpu->r[RSP] = 0x7C00; /* the specification promises no stack; early pushes go to conventional memory */
  cpu->fpu.control = 0x37F;
  cpu->fpu.status = 0;
  cpu->fpu.top = 0;
  cpu->fpu.tags = 0;
  cpu_changed(cpu);
}

static int load(struct machine *m, const struct start *start, const struct header *header, const struct plan *plan,
                const char **ret_why)
{
  uint64_t *modules = calloc(start->count + 1, sizeof(*modules)), end = plan_end(plan);
  struct multiboot_facts facts = {
    .start = start, .plan = plan, .modules = modules, .wants_video = header->flags & HEADER_VIDEO};
  int r = -ENOMEM;

  if (!modules)
    goto out;
  plan_load(m, &start->image, plan);
  facts.symbols = elf_load_symbols(m, &start->image, &plan->sections, &end);
  r = LB_E_TOO_BIG;
  *ret_why = "no room in memory for its modules";
  if (!modules_load(m, start, end, modules))
    goto out;
  uint32_t info = multiboot_info(m, &facts);
  *ret_why = "no room in memory for its command line and modules' names";
  if (!info)
    goto out;
  enter(m, plan, info);
  *ret_why = NULL;
  r = 0;
out:
  free(modules);
  return r;
}

int multiboot_load(struct machine *machine, const struct start *start, const char **ret_why)
{
  struct header header;
  struct plan plan;
  const char *why = plan_make(&start->image, &header, &plan);
  int r = LB_E_BAD_IMAGE;

  if (!why) {
    why = plan_check(machine, &plan);
    r = LB_E_TOO_BIG;
  }
  if (!why)
    r = load(machine, start, &header, &plan, &why);
  if (r < 0 && ret_why)
    *ret_why = why ? why : lb_strerror(r);
  return r;
}
