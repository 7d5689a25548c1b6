/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that libc would provide: memory, bytes and strings.
 */
#include <linux/mman.h>

#include "process/runtime/kernel.h"

static uint64_t used; /* bytes of the runtime's places */

uint64_t place_end(void)
{
  return PLACE_START + used;
}

/* A mapping at another address than the hint is fine, too. It is excluded from core files: it is large, and not the
 * program's. */
int64_t place_map(uint64_t size, int fd, uint64_t offset)
{
  enum { GRAIN = 2 << 20 };
  unsigned flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
  int64_t address = kernel_map(PLACE_START + used, size, PROT_READ | PROT_WRITE, flags, fd, offset);

  if (is_failure(address))
    return address;
  used += (size + 2 * (uint64_t)GRAIN - 1) & ~(uint64_t)(GRAIN - 1);
  kernel_call(__NR_madvise, (uint64_t)address, size, MADV_DONTDUMP, 0, 0, 0);
  return address;
}

uint64_t place_keep(uint64_t size)
{
  enum { GRAIN = 2 << 20 };
  uint64_t address = PLACE_START + used;

  used += (size + 2 * (uint64_t)GRAIN - 1) & ~(uint64_t)(GRAIN - 1);
  return address;
}

void *memcpy(void *to, const void *from, size_t size)
{
  void *at = to;

  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
  return to;
}

void *memset(void *to, int byte, size_t size)
{
  void *at = to;

  __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(byte) : "memory");
  return to;
}

size_t text_length(const char *text)
{
  size_t length = 0;

  while (text[length])
    length++;
  return length;
}

bool text_is(const char *text, const char *other)
{
  while (*text && *text == *other) {
    text++;
    other++;
  }
  return *text == *other;
}

bool text_begins(const char *text, const char *begin)
{
  while (*begin)
    if (*text++ != *begin++)
      return false;
  return true;
}

char *text_put(char *at, const char *text)
{
  uint64_t length = text_length(text);

  memcpy(at, text, length + 1);
  return at + length;
}

char *text_put_number(char *at, uint64_t number)
{
  char digits[20];
  unsigned count = 0;

  do
    digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  while (count)
    *at++ = digits[--count];
  *at = 0;
  return at;
}
