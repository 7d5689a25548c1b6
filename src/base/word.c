/* SPDX-License-Identifier: Apache-2.0
 *
 * The characters of words: the length of a UTF-8 character, and the distance between two words, for "did you mean". It
 * is the optimal string alignment distance, in which two swapped letters count as one mistake, the most common typing
 * error. The file also converts command lines to strings.
 */
#include <ctype.h>
#include <string.h>

#include "base/base.h"

#define WORD_MAX 64

static size_t lead_size(unsigned char lead)
{
  if (lead < 0x80)
    return 1;
  if (lead < 0xC2)
    return 0;
  if (lead < 0xE0)
    return 2;
  if (lead < 0xF0)
    return 3;
  return lead < 0xF5 ? 4 : 0;
}

size_t utf8_size(const char *string)
{
  const unsigned char *s = (const unsigned char *)string;
  size_t size = lead_size(s[0]);

  for (size_t i = 1; i < size; i++)
    if ((s[i] & 0xC0) != 0x80)
      return 0;
  if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF0 && s[1] < 0x90) ||
      (s[0] == 0xF4 && s[1] >= 0x90))
    return 0;
  return size;
}

static size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

static int is_same(char a, char b)
{
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t word_distance(const char *one, const char *other)
{
  size_t rows[3][WORD_MAX + 1]; /* the last three rows of the table, row i at rows[i % 3] */
  size_t height = strnlen(one, WORD_MAX + 1), width = strnlen(other, WORD_MAX + 1);

  if (height > WORD_MAX || width > WORD_MAX)
    return SIZE_MAX;
  for (size_t j = 0; j <= width; j++)
    rows[0][j] = j;
  for (size_t i = 1; i <= height; i++) {
    size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];

    row[0] = i;
    for (size_t j = 1; j <= width; j++) {
      row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + !is_same(one[i - 1], other[j - 1]));
      if (i > 1 && j > 1 && is_same(one[i - 1], other[j - 2]) && is_same(one[i - 2], other[j - 1]))
        row[j] = least(row[j], two_above[j - 2] + 1);
    }
  }
  return rows[height % 3][width];
}

size_t words_join(char *to, const char *words, size_t size)
{
  while (size && !words[size - 1])
    size--;
  for (size_t i = 0; i < size; i++)
    to[i] = words[i] ? words[i] : ' ';
  to[size] = '\0';
  return size;
}
