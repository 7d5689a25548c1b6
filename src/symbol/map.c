/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbols of a map file, one in a line; lines of other forms are headlines and are passed over. Addresses are
 * hexadecimal, with or without 0x.
 *   ADDRESS NAME              a plain list; at least four digits or 0x, since "be" is a word as well
 *   ADDRESS TYPE NAME         nm, System.map, /proc/kallsyms
 *   ADDRESS SIZE TYPE NAME    nm -S
 *   REAL VIRTUAL NAME         NASM's [map symbols]
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbol/table.h"

#define WORDS_MAX 5

struct word {
  const char *text;
  size_t length;
};

/* Splits a line. Returns the number of words; WORDS_MAX if there are that many or more. */
static size_t line_split(const char *line, const char *end, struct word words[WORDS_MAX])
{
  size_t count = 0;

  while (count < WORDS_MAX) {
    while (line < end && isspace((unsigned char)*line))
      line++;
    if (line == end)
      break;
    words[count].text = line;
    while (line < end && !isspace((unsigned char)*line))
      line++;
    words[count].length = (size_t)(line - words[count].text);
    count++;
  }
  return count;
}

/* A hexadecimal number of at most 64 bits. */
static bool word_hex(const struct word *word, uint64_t *ret_value)
{
  char digits[20] = "0x";
  bool has_prefix = word->length > 2 && word->text[0] == '0' && (word->text[1] == 'x' || word->text[1] == 'X');
  size_t skip = has_prefix ? 2 : 0;

  if (!word->length || word->length - skip > 16)
    return false;
  memcpy(digits + 2, word->text + skip, word->length - skip);
  return number_parse(digits, ret_value) >= 0;
}

static bool word_is_type(const struct word *word)
{
  return word->length == 1 && (isalpha((unsigned char)*word->text) || *word->text == '?' || *word->text == '-');
}

/* Code comes before data before the rest. Returns -1 for symbols without an address: undefined, absolute and debug
 * symbols. */
static int type_rank(char type)
{
  if (strchr("UaANn-", type))
    return -1;
  if (strchr("TtWwVvi", type))
    return isupper((unsigned char)type) ? 0 : 1;
  return isupper((unsigned char)type) ? 2 : 3;
}

static int symbol_put(struct symbol_table *table, struct symbol symbol, const struct word *type,
                      const struct word *name)
{
  int rank = type ? type_rank(*type->text) : 0;

  if (rank < 0)
    return 0;
  symbol.rank = (uint8_t)rank;
  return symbol_table_add(table, &symbol, name->text, name->length);
}

static int line_read(struct symbol_table *table, const char *line, const char *end)
{
  struct word words[WORDS_MAX];
  size_t count = line_split(line, end, words);
  struct symbol symbol = {0};
  uint64_t second;

  if (count == 4 && word_is_type(&words[1]) && words[3].text[0] == '[')
    count = 3; /* kallsyms: the module after the name */
  if (count < 2 || count > 4 || !word_hex(&words[0], &symbol.address))
    return 0;
  if (count == 2)
    return words[0].length < 4 && words[0].text[1] != 'x' ? 0 : symbol_put(table, symbol, NULL, &words[1]);
  if (word_is_type(&words[1]))
    return count == 3 ? symbol_put(table, symbol, &words[1], &words[2]) : 0;
  if (!word_hex(&words[1], &second))
    return 0;
  if (count == 3) {
    symbol.address = second;
    return symbol_put(table, symbol, NULL, &words[2]);
  }
  if (second && second <= UINT64_MAX - symbol.address)
    symbol.end = symbol.address + second;
  return word_is_type(&words[2]) ? symbol_put(table, symbol, &words[2], &words[3]) : 0;
}

int map_read(struct symbol_table *table, const char *text, size_t size)
{
  const char *end = text + size;
  int r = 0;

  if (size && memchr(text, 0, size))
    return LB_E_BAD_SYNTAX;
  while (r >= 0 && text < end) {
    const char *line_end = memchr(text, '\n', (size_t)(end - text));

    line_end = line_end ? line_end : end;
    r = line_read(table, text, line_end);
    text = line_end < end ? line_end + 1 : end;
  }
  return r;
}
