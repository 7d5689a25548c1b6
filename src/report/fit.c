/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits lines into a number of columns: names lose their arguments and their middle, prose is broken at blanks.
 */
#include "report/fit.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"

#define DOTS "..."
#define DOTS_SIZE 3u
#define ARROW " -> "            /* between the ends of a branch */
#define ARROW_INDENT "        " /* before the second end, if it gets a line of its own */
#define WORD_READABLE 24u       /* columns of a word for which one line is better than two */
#define WORD_LEAST 16u          /* columns that a word keeps at least */
#define NAMES_MOST 4096u        /* bytes: the end of a longer line is cut off, and it stays one line */
#define ANONYMOUS "anonymous namespace"

/* ---- columns ---- */

/* Bytes of the escape sequence that begins here, "\033[...m"; 0 if there is none. */
static size_t escape_size(const char *bytes)
{
  size_t size = 2;

  if (bytes[0] != '\033' || bytes[1] != '[')
    return 0;
  size += strspn(bytes + size, "0123456789;");
  return bytes[size] ? size + 1 : size;
}

/* Bytes of the first `columns` columns. */
static size_t columns_size(const char *line, size_t columns)
{
  size_t at = 0, escape;

  while (line[at]) {
    if ((escape = escape_size(line + at))) {
      at += escape;
      continue;
    }
    if (((unsigned char)line[at] & 0xC0) != 0x80 && !columns--)
      break;
    at++;
  }
  return at;
}

static size_t columns_of(const char *bytes, size_t size)
{
  size_t columns = 0, escape;

  for (size_t at = 0; at < size && bytes[at]; at += escape ? escape : 1) {
    escape = escape_size(bytes + at);
    columns += !escape && ((unsigned char)bytes[at] & 0xC0) != 0x80;
  }
  return columns;
}

/* Replaces some bytes, at least as many as the dots, by dots. */
static void dots_put(char *line, size_t from, size_t to)
{
  memset(line + from, '.', DOTS_SIZE);
  memmove(line + from + DOTS_SIZE, line + to, strlen(line + to) + 1);
}

/* ---- brackets ---- */

/* Bytes of an operator's name, such as "operator->" or "operator<<", whose characters are not brackets. */
static size_t operator_size(const char *bytes)
{
  static const char word[] = "operator";
  size_t size = sizeof(word) - 1;

  if (strncmp(bytes, word, size) != 0 || isalnum((unsigned char)bytes[size]) || bytes[size] == '_')
    return 0;
  return !strncmp(bytes + size, "()", 2) ? size + 2 : size + strspn(bytes + size, "<>-=*!");
}

static bool is_opening(const char *line, size_t at, char open)
{
  return line[at] == open && at && !isblank((unsigned char)line[at - 1]);
}

/* Finds the inside of the longest outermost group of brackets. Returns false if there is none to shorten. */
static bool group_find(const char *line, const char pair[2], size_t *ret_from, size_t *ret_to)
{
  size_t depth = 0, start = 0, longest = DOTS_SIZE, skip;

  for (size_t at = 0; line[at]; at += skip ? skip : 1) {
    skip = operator_size(line + at);
    if (skip)
      continue;
    if (is_opening(line, at, pair[0]) && !depth++)
      start = at + 1;
    if (line[at] != pair[1] || !depth || (at && line[at - 1] == '-') || --depth)
      continue;
    if (at - start > longest && strncmp(line + start, ANONYMOUS, sizeof(ANONYMOUS) - 1) != 0) {
      longest = at - start;
      *ret_from = start;
      *ret_to = at;
    }
  }
  return longest > DOTS_SIZE;
}

static void groups_shorten(char *line, size_t columns)
{
  static const char pairs[][2] = {{'(', ')'}, {'<', '>'}};
  size_t from = 0, to = 0;

  for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
    while (columns_of(line, SIZE_MAX) > columns && group_find(line, pairs[i], &from, &to))
      dots_put(line, from, to);
}

/* ---- words ---- */

struct word {
  size_t at, size, columns;
};

/* The longest word, and the columns of the second one. */
static struct word word_find(const char *line, size_t *ret_second)
{
  struct word longest = {0, 0, 0};

  *ret_second = 0;
  for (size_t at = strspn(line, " "), size; line[at]; at += size + strspn(line + at + size, " ")) {
    size_t columns;

    size = strcspn(line + at, " ");
    columns = memchr(line + at, '\033', size) ? 0 : columns_of(line + at, size);
    if (columns > longest.columns) {
      *ret_second = longest.columns;
      longest = (struct word){at, size, columns};
    } else if (columns > *ret_second) {
      *ret_second = columns;
    }
  }
  return longest;
}

/* Removes the middle of the longest words, until the line fits or no word has more than `most` columns. */
static void words_shorten(char *line, size_t columns, size_t most)
{
  size_t all, second;

  while ((all = columns_of(line, SIZE_MAX)) > columns) {
    struct word word = word_find(line, &second);
    size_t least = second > most ? second - 1 : most;
    size_t excess = all - columns, left, right;

    if (word.columns <= most)
      return;
    if (word.columns - excess > least && word.columns > excess)
      least = word.columns - excess;
    left = (least - DOTS_SIZE + 1) / 2;
    right = least - DOTS_SIZE - left;
    dots_put(line, word.at + columns_size(line + word.at, left),
             word.at + columns_size(line + word.at, word.columns - right));
  }
}

/* ---- lines ---- */

static void end_cut(char *line, size_t columns)
{
  bool has_escape = strchr(line, '\033');
  size_t at = columns_size(line, columns > DOTS_SIZE ? columns - DOTS_SIZE : 0);

  if (columns_of(line, SIZE_MAX) > columns && strlen(line + at) >= DOTS_SIZE + (has_escape ? 4 : 0))
    strcpy(line + at, has_escape ? DOTS "\033[0m" : DOTS);
}

/* Breaks prose at blanks. Rows of tables do not begin with a letter. */
static void prose_break(char *line, size_t columns)
{
  while (columns_of(line, SIZE_MAX) > columns) {
    char *blank = memrchr(line, ' ', columns_size(line, columns) + 1);

    if (!blank)
      return;
    *blank = '\n';
    line = blank + 1;
  }
}

static void line_fit(char *line, size_t columns, enum fit_how how)
{
  if (columns_of(line, SIZE_MAX) <= columns)
    return;
  if (isalpha((unsigned char)*line)) {
    prose_break(line, columns);
    return;
  }
  if (how == FIT_NAMES && strlen(line) < NAMES_MOST) {
    groups_shorten(line, columns);
    words_shorten(line, columns, WORD_LEAST);
  }
  end_cut(line, columns);
}

static int line_put(struct text *text, char *line, size_t columns, enum fit_how how)
{
  line_fit(line, columns, how);
  return text_add(text, line);
}

/* A branch gets two lines if its ends do not fit side by side and stay readable. */
static int ends_put(struct text *text, char *line, char *arrow, size_t columns)
{
  int r;

  *arrow = '\0';
  r = line_put(text, line, columns, FIT_NAMES);
  if (r >= 0)
    r = text_add(text, "\n" ARROW_INDENT);
  return r < 0 ? r
               : line_put(text, arrow + 1, columns > sizeof(ARROW_INDENT) ? columns - sizeof(ARROW_INDENT) + 1 : 1,
                          FIT_NAMES);
}

int fit_line(struct text *text, char *line, size_t columns, enum fit_how how)
{
  char copy[NAMES_MOST], *arrow = how == FIT_NAMES ? strstr(line, ARROW) : NULL;
  size_t size = strlen(line);

  if (!arrow || size >= sizeof(copy) || columns_of(line, size) <= columns)
    return line_put(text, line, columns, how);
  memcpy(copy, line, size + 1);
  groups_shorten(copy, columns);
  words_shorten(copy, columns, WORD_READABLE);
  if (columns_of(copy, SIZE_MAX) > columns)
    return ends_put(text, line, arrow, columns);
  return line_put(text, copy, columns, how);
}
