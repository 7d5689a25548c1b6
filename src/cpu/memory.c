/* SPDX-License-Identifier: Apache-2.0
 *
 * Physical memory. See memory.h.
 */
#include "cpu/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int memory_init(struct memory *memory, uint64_t size)
{
  *memory = (struct memory){.size = size, .rom_start = 0x100000, .a20_mask = UINT64_MAX};
  memory->low = size < MEMORY_HOLE ? size : MEMORY_HOLE;
  void *ram = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ram == MAP_FAILED)
    return -ENOMEM;
  memory->ram = ram;
  memory->code = calloc(size / PAGE_SIZE, sizeof(*memory->code));
  if (!memory->code) {
    memory_done(memory);
    return -ENOMEM;
  }
  return 0;
}

void memory_done(struct memory *memory)
{
  if (memory->ram)
    munmap(memory->ram, memory->size);
  free(memory->code);
  *memory = (struct memory){0};
}

/* RAM is contiguous on the host, so it is enough that both ends are in RAM and on the same side of the hole. */
static uint8_t *memory_range(const struct memory *memory, uint64_t address, size_t size)
{
  uint8_t *first = memory_at(memory, address);

  if (!first || size == 0)
    return first;
  if (address + (size - 1) < address)
    return NULL;
  uint8_t *last = memory_at(memory, address + (size - 1));
  return last && (size_t)(last - first) == size - 1 ? first : NULL;
}

bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
  const uint8_t *at = memory_range(memory, address, size);

  if (!at)
    return false;
  memcpy(bytes, at, size);
  return true;
}

bool memory_write(struct memory *memory, uint64_t address, const void *bytes, size_t size)
{
  uint8_t *at = memory_range(memory, address, size);

  if (!at)
    return false;
  memcpy(at, bytes, size);
  return true;
}
