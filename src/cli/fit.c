/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes lines fit in the terminal. Standard output becomes a stream that looks at each line before it is written, so
 * that every table of a command fits, whoever prints it.
 */
#include "cli/fit.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

#define DOTS "..."
#define DOTS_SIZE 3u
#define ARROW " -> "            /* between the ends of a branch */
#define ARROW_INDENT "        " /* before the second one, where it gets a line of its own */
#define WORD_READABLE 24u       /* columns of a word with which a line is better than two */
#define WORD_LEAST 16u          /* columns that are left of a word */
#define LINE_MOST (1u << 20)    /* bytes: a longer line is written as it is */
#define NAMES_MOST 4096u        /* bytes: of a longer line the end is cut off */
#define ANONYMOUS "anonymous namespace"

/* ---- columns ---- */

/* Bytes of the escape sequence that begins here: "\033[...m"; 0: there is none. */
static size_t escape_size(const char *bytes)
{
  size_t size = 2;

  if (bytes[0] != '\033' || bytes[1] != '[')
    return 0;
  size += strspn(bytes + size, "0123456789;");
  return bytes[size] ? size + 1 : size;
}

/* Bytes of the first so many columns. */
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

/* Puts dots in the place of some bytes, which are at least as many. */
static void dots_put(char *line, size_t from, size_t to)
{
  memset(line + from, '.', DOTS_SIZE);
  memmove(line + from + DOTS_SIZE, line + to, strlen(line + to) + 1);
}

/* ---- brackets ---- */

/* Bytes of the name of an operator, "operator->" or "operator<<", which are no brackets. */
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

/* The longest group of brackets that stands in no other: its inside. Returns false: there is none to shorten. */
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

/* Takes the middle of the longest words away, until the line fits or no word has more than `most` columns. */
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

/* Prose is broken at its blanks. Rows of tables do not begin with a letter. */
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

void fit_line(char *line, size_t columns, enum fit_how how)
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

/* ---- standard output ---- */

static struct {
  struct text line; /* what was not written yet: less than a line */
  enum fit_how how;
} fitting;

static bool bytes_write(const char *bytes, size_t size)
{
  while (size) {
    ssize_t done = write(STDOUT_FILENO, bytes, size);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return false;
    bytes += done;
    size -= (size_t)done;
  }
  return true;
}

static bool fitted_write(char *line, size_t columns, bool has_end)
{
  fit_line(line, columns, fitting.how);
  return bytes_write(line, strlen(line)) && (!has_end || bytes_write("\n", 1));
}

/* A branch whose ends do not fit in a line side by side, without being hard to read, gets two lines. */
static bool ends_write(char *line, char *arrow, size_t columns, bool has_end)
{
  *arrow = '\0';
  return fitted_write(line, columns, true) && bytes_write(ARROW_INDENT, sizeof(ARROW_INDENT) - 1) &&
         fitted_write(arrow + 1, columns > sizeof(ARROW_INDENT) ? columns - sizeof(ARROW_INDENT) + 1 : 1, has_end);
}

/* Writes a line that ends with a terminator, and a newline behind it. */
static bool string_write(char *line, size_t columns, bool has_end)
{
  char copy[NAMES_MOST], *arrow = fitting.how == FIT_NAMES ? strstr(line, ARROW) : NULL;
  size_t size = strlen(line);

  if (!arrow || size >= sizeof(copy) || columns_of(line, size) <= columns)
    return fitted_write(line, columns, has_end);
  memcpy(copy, line, size + 1);
  groups_shorten(copy, columns);
  words_shorten(copy, columns, WORD_READABLE);
  if (columns_of(copy, SIZE_MAX) > columns)
    return ends_write(line, arrow, columns, has_end);
  return fitted_write(copy, columns, has_end);
}

/* Writes what was put together: a line, or what is left of one. */
static bool line_write(void)
{
  struct text *line = &fitting.line;
  int columns = cli_columns();
  bool has_end = line->length && line->data[line->length - 1] == '\n', is_written;

  if (columns && line->length && line->length < LINE_MOST && !memchr(line->data, '\0', line->length)) {
    line->data[line->length - has_end] = '\0';
    is_written = string_write(line->data, (size_t)columns, has_end);
  } else {
    is_written = bytes_write(text_string(line), line->length);
  }
  line->length = 0;
  return is_written;
}

static ssize_t cookie_write(void *cookie, const char *bytes, size_t size)
{
  size_t at = 0;

  (void)cookie;
  while (at < size) {
    const char *end = memchr(bytes + at, '\n', size - at);
    size_t part = end ? (size_t)(end - bytes) + 1 - at : size - at;

    if (text_add_bytes(&fitting.line, bytes + at, part) < 0)
      return 0;
    if ((end || fitting.line.length >= LINE_MOST) && !line_write())
      return 0;
    at += part;
  }
  return (ssize_t)size;
}

/* Runs before main's check of standard output, which was registered first. */
static void fit_finish(void)
{
  if (fflush(stdout) == 0)
    (void)line_write();
  text_done(&fitting.line);
}

void fit_stdout(enum fit_how how)
{
  FILE *stream;

  fflush(stdout);
  fitting.how = how;
  stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = cookie_write});
  if (!stream || atexit(fit_finish) != 0)
    return;
  setvbuf(stream, NULL, _IOLBF, 0);
  stdout = stream;
}
