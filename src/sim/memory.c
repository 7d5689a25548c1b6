/* SPDX-License-Identifier: Apache-2.0
 *
 * The guest's memory: a few pieces of linear address space, and the page attributes for lb_ds_check.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/run.h"

int areas_add(struct areas *memory, uint64_t address, size_t size)
{
  unsigned char *bytes;

  for (unsigned i = 0; i < memory->count; i++)
    if (address <= memory->pieces[i].address + (memory->pieces[i].size - 1) &&
        memory->pieces[i].address <= address + (size - 1))
      return -EEXIST;
  if (memory->count == SIM_PIECES_MAX || size > SIM_MEMORY_MAX - memory->total)
    return LB_E_TOO_BIG;
  bytes = calloc(1, size);
  if (!bytes)
    return -ENOMEM;
  memory->pieces[memory->count].address = address;
  memory->pieces[memory->count].size = size;
  memory->pieces[memory->count].bytes = bytes;
  memory->count++;
  memory->total += size;
  return 0;
}

void areas_done(struct areas *memory)
{
  for (unsigned i = 0; i < memory->count; i++)
    free(memory->pieces[i].bytes);
  *memory = (struct areas){0};
}

unsigned char *areas_at(const struct areas *memory, uint64_t address, size_t size)
{
  for (unsigned i = 0; i < memory->count; i++) {
    uint64_t offset = address - memory->pieces[i].address; /* wraps to a large number if the address is below */

    if (offset < memory->pieces[i].size && size <= memory->pieces[i].size - offset)
      return memory->pieces[i].bytes + offset;
  }
  return NULL;
}

uint64_t areas_get(const unsigned char *bytes, unsigned size)
{
  uint64_t value = 0;

  while (size--)
    value = value << 8 | bytes[size];
  return value;
}

void areas_put(unsigned char *bytes, unsigned size, uint64_t value)
{
  for (unsigned i = 0; i < size; i++)
    bytes[i] = (unsigned char)(value >> 8 * i);
}

int pages_set(struct pages *pages, uint64_t address, unsigned attributes)
{
  unsigned i = 0;

  while (i < pages->count && pages->page[i].number != address >> 12)
    i++;
  if (i == SIM_PAGES_MAX)
    return LB_E_TOO_BIG;
  if (i == pages->count)
    pages->count++;
  pages->page[i].number = address >> 12;
  pages->page[i].attributes = attributes;
  return 0;
}

unsigned pages_get(const struct pages *pages, uint64_t address)
{
  for (unsigned i = 0; i < pages->count; i++)
    if (pages->page[i].number == address >> 12)
      return pages->page[i].attributes;
  return LB_DS_PAGE_PRESENT | LB_DS_PAGE_ACCESSED | LB_DS_PAGE_DIRTY | LB_DS_PAGE_SUPERVISOR | LB_DS_PAGE_GLOBAL;
}
