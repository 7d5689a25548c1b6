/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes untrusted strings printable: a terminal obeys control characters, and JSON requires UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Bytes of the character that starts here; 0 if it must not be printed. */
static size_t printable_size(const char *string)
{
  const unsigned char *s = (const unsigned char *)string;

  if (s[0] < 0x20 || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0)) /* U+0080 to U+009F are control characters, too */
    return 0;
  return utf8_size(string);
}

char *printable_copy(const char *string, size_t max)
{
  size_t size = strnlen(string, max), at = 0;
  char *copy = malloc(size + 1);

  if (!copy)
    return NULL;
  while (at < size) {
    size_t character = printable_size(string + at);

    if (character > size - at)
      break;
    if (character)
      memcpy(copy + at, string + at, character);
    else
      copy[at] = '?';
    at += character ? character : 1;
  }
  copy[at] = '\0';
  return copy;
}
