/* SPDX-License-Identifier: Apache-2.0
 *
 * What libc would have: bytes and strings.
 */
#include "process/runtime.h"

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
