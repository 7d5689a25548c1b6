/* SPDX-License-Identifier: Apache-2.0
 *
 * The multiboot information structure, with all that it points to in one piece of conventional memory: memory map,
 * command line, modules, section headers, the loader's name. Multiboot Specification 0.6.96, section 3.3.
 */
#include <string.h>

#include "base/base.h"
#include "machine/firmware.h"
#include "machine/kernel.h"

#define INFO_START UINT64_C(0x9000)
#define INFO_SIZE 116u
#define LOADER_NAME "lastbranch " LB_VERSION

enum {
  INFO_MEMORY = 1u << 0,
  INFO_COMMAND_LINE = 1u << 2,
  INFO_MODULES = 1u << 3,
  INFO_SECTIONS = 1u << 5,
  INFO_MAP = 1u << 6,
  INFO_LOADER = 1u << 9,
  INFO_FRAMEBUFFER = 1u << 12,
};

/* Memory that is handed out from `at` upwards. */
struct arena {
  struct machine *machine;
  uint64_t at;
  bool is_full;
};

/* Returns the address of the bytes. */
static uint32_t arena_add(struct arena *arena, const void *bytes, size_t size)
{
  uint64_t at = (arena->at + 3) & ~UINT64_C(3);

  if (at > EBDA_START || size > EBDA_START - at) {
    arena->is_full = true;
    return 0;
  }
  memory_write(&arena->machine->memory, at, bytes, size);
  arena->at = at + size;
  return (uint32_t)at;
}

static uint32_t arena_add_string(struct arena *arena, const char *string)
{
  return arena_add(arena, string, strlen(string) + 1);
}

/* Below 640 KiB: at 0x9000, or after the last part of the kernel that lies there. */
static uint64_t info_start(const struct plan *plan)
{
  uint64_t start = INFO_START;

  for (unsigned i = 0; i < plan->count; i++) {
    uint64_t address = plan->pieces[i].address, end = address + plan->pieces[i].memory_size;

    if (address < EBDA_START && end > start)
      start = end;
  }
  return start;
}

static void info_memory(struct arena *arena, uint8_t *info)
{
  struct machine *m = arena->machine;
  struct map_range ranges[MAP_MAX];
  unsigned count = memory_map(m, ranges);
  uint8_t entries[MAP_MAX][24];

  for (unsigned i = 0; i < count; i++) {
    bytes_put_u32(entries[i], 20); /* bytes that follow */
    bytes_put_u64(entries[i] + 4, ranges[i].start);
    bytes_put_u64(entries[i] + 12, ranges[i].size);
    bytes_put_u32(entries[i] + 20, ranges[i].type);
  }
  bytes_put_u32(info + 4, (uint32_t)(EBDA_START / 1024));
  bytes_put_u32(info + 8, (uint32_t)((m->tables - EXTENDED_START) / 1024));
  bytes_put_u32(info + 44, count * 24);
  bytes_put_u32(info + 48, arena_add(arena, entries, (size_t)count * 24));
}

static void info_modules(struct arena *arena, const struct multiboot_facts *facts, uint8_t *info)
{
  const struct start *start = facts->start;
  uint8_t zeros[16] = {0};
  uint32_t list = 0;

  for (size_t i = 0; i < start->count; i++) {
    uint32_t at = arena_add(arena, zeros, sizeof(zeros)); /* one after the other: all are multiples of four */

    if (i == 0)
      list = at;
  }
  for (size_t i = 0; i < start->count && !arena->is_full; i++) {
    uint8_t entry[16] = {0};

    bytes_put_u32(entry, (uint32_t)facts->modules[i]);
    bytes_put_u32(entry + 4, (uint32_t)(facts->modules[i] + start->modules[i].size));
    bytes_put_u32(entry + 8, arena_add_string(arena, start->names[i]));
    memory_write(&arena->machine->memory, list + 16 * i, entry, sizeof(entry));
  }
  bytes_put_u32(info + 20, (uint32_t)start->count);
  bytes_put_u32(info + 24, list);
}

static void info_sections(const struct multiboot_facts *facts, uint8_t *info)
{
  const struct sections *sections = &facts->plan->sections;

  bytes_put_u32(info + 28, sections->count);
  bytes_put_u32(info + 32, sections->size);
  bytes_put_u32(info + 36, (uint32_t)facts->symbols);
  bytes_put_u32(info + 40, sections->names);
}

/* The text screen: 80x25 cells of two bytes, type 2. */
static void info_framebuffer(uint8_t *info)
{
  bytes_put_u64(info + 88, VIDEO_START);
  bytes_put_u32(info + 96, 160);
  bytes_put_u32(info + 100, 80);
  bytes_put_u32(info + 104, 25);
  info[108] = 16;
  info[109] = 2;
}

uint32_t multiboot_info(struct machine *machine, const struct multiboot_facts *facts)
{
  uint8_t info[INFO_SIZE] = {0};
  struct arena arena = {.machine = machine, .at = info_start(facts->plan)};
  uint32_t flags = INFO_MEMORY | INFO_MAP | INFO_LOADER | INFO_COMMAND_LINE | INFO_MODULES;
  uint32_t at = arena_add(&arena, info, sizeof(info));

  info_memory(&arena, info);
  info_modules(&arena, facts, info);
  bytes_put_u32(info + 16, arena_add_string(&arena, facts->start->command_line ? facts->start->command_line : ""));
  bytes_put_u32(info + 64, arena_add_string(&arena, LOADER_NAME));
  if (facts->symbols) {
    flags |= INFO_SECTIONS;
    info_sections(facts, info);
  }
  if (facts->wants_video) {
    flags |= INFO_FRAMEBUFFER;
    info_framebuffer(info);
  }
  bytes_put_u32(info, flags);
  if (arena.is_full)
    return 0;
  memory_write(&machine->memory, at, info, sizeof(info));
  return at;
}
