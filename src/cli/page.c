/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of output, as text or as JSON (RFC 8259). Goes to stdout, whose errors main looks at.
 */
#include "cli/page.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BOLD "\033[1m"
#define PLAIN "\033[0m"

enum {
  WIDTH_MIN = 80, /* narrower terminals may break lines themselves */
  WIDTH_MAX = 120,
  LABEL_WIDTH = 22,
  MARGIN = 2,
};

/* ---- JSON ---- */

static void json_string(const char *string)
{
  putchar('"');
  for (const unsigned char *s = (const unsigned char *)string; *s; s++)
    if (*s == '"' || *s == '\\')
      printf("\\%c", *s);
    else if (*s < 0x20 || *s == 0x7F)
      printf("\\u%04x", *s);
    else
      putchar(*s);
  putchar('"');
}

/* What stands before a member: comma, line, indentation, key. */
static void json_member(struct page *page, const char *key)
{
  printf("%s\n%*s", page->is_first ? "" : ",", (int)(2 * page->depth), "");
  page->is_first = false;
  if (key) {
    json_string(key);
    fputs(": ", stdout);
  }
}

static void json_begin(struct page *page, const char *key, char bracket)
{
  if (page->depth > 0)
    json_member(page, key);
  putchar(bracket);
  page->depth++;
  page->is_first = true;
}

static void json_end(struct page *page, char bracket)
{
  assert(page->depth > 0);
  page->depth--;
  if (!page->is_first)
    printf("\n%*s", (int)(2 * page->depth), "");
  putchar(bracket);
  page->is_first = false;
}

/* ---- text ---- */

/* Columns that a string takes: bytes that go on a UTF-8 character take none. */
static int text_width(const char *string)
{
  int width = 0;

  for (; *string; string++)
    width += ((unsigned char)*string & 0xC0) != 0x80;
  return width;
}

static void text_pad(struct page *page, int until)
{
  if (until > page->cursor) {
    printf("%*s", until - page->cursor, "");
    page->cursor = until;
  }
}

/* Prints words from the cursor on, breaking lines; those that follow begin at `indent`. */
static void text_wrap(struct page *page, const char *string, int indent)
{
  bool is_start = true;

  while (*string) {
    size_t length = strcspn(string, " ");
    int width = 0;

    for (size_t i = 0; i < length; i++)
      width += ((unsigned char)string[i] & 0xC0) != 0x80;
    if (!is_start && page->cursor + 1 + width > page->width) {
      putchar('\n');
      page->cursor = 0;
      text_pad(page, indent);
    } else if (!is_start) {
      putchar(' ');
      page->cursor++;
    }
    printf("%.*s", (int)length, string);
    page->cursor += width;
    is_start = false;
    string += length;
    string += *string == ' ';
  }
}

static void text_newline(struct page *page)
{
  putchar('\n');
  page->cursor = 0;
  page->is_blank = false;
}

static void text_label(struct page *page, const char *key)
{
  text_pad(page, MARGIN);
  for (; *key; key++, page->cursor++)
    putchar(*key == '_' ? ' ' : *key);
  if (page->cursor < MARGIN + LABEL_WIDTH)
    text_pad(page, MARGIN + LABEL_WIDTH);
  else
    page->cursor += printf(" ");
}

static int column_start(const struct page *page)
{
  int start = MARGIN;

  for (unsigned i = 0; i < page->column; i++)
    start += page->columns[i].width + 1;
  return start;
}

/* Blanks go before a cell, not behind it, so that no line ends in them. */
static void text_cell(struct page *page, const char *string)
{
  int start = column_start(page);

  assert(page->columns[page->column].title);
  if (!*string)
    return;
  if (page->cursor < start)
    text_pad(page, start);
  else if (page->column > 0)
    page->cursor += printf(" ");
  if (page->columns[page->column].width) {
    fputs(string, stdout);
    page->cursor += text_width(string);
  } else {
    text_wrap(page, string, start);
  }
}

static void text_bold(const struct page *page, const char *string)
{
  printf("%s%s%s", page->wants_color ? BOLD : "", string, page->wants_color ? PLAIN : "");
}

/* ---- values ---- */

/* `json` is the value as JSON has it, NULL to make a string of `text`. */
static void value_put(struct page *page, const char *key, const char *text, const char *json)
{
  if (page->is_json) {
    json_member(page, key);
    if (json)
      fputs(json, stdout);
    else
      json_string(text);
  } else if (page->columns) {
    text_cell(page, text);
  } else {
    text_label(page, key);
    text_wrap(page, text, MARGIN + LABEL_WIDTH);
    text_newline(page);
  }
  page->column++;
}

void page_put(struct page *page, const char *key, const char *value)
{
  value_put(page, key, value ? value : "-", value ? NULL : "null");
}

void page_absent(struct page *page, const char *key)
{
  if (page->is_json)
    page_put(page, key, NULL);
}

void page_putf(struct page *page, const char *key, const char *format, ...)
{
  char buffer[1024];
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  page_put(page, key, buffer);
}

void page_put_number(struct page *page, const char *key, uint64_t value)
{
  char buffer[24];

  snprintf(buffer, sizeof(buffer), "%llu", (unsigned long long)value);
  value_put(page, key, buffer, buffer);
}

void page_put_signed(struct page *page, const char *key, int64_t value)
{
  char buffer[24];

  snprintf(buffer, sizeof(buffer), "%lld", (long long)value);
  value_put(page, key, buffer, buffer);
}

void page_put_hex(struct page *page, const char *key, uint64_t value)
{
  page_putf(page, key, "0x%llx", (unsigned long long)value);
}

void page_put_flag(struct page *page, const char *key, bool value)
{
  value_put(page, key, value ? "yes" : "no", value ? "true" : "false");
}

void page_put_note(struct page *page, const char *key, const char *value)
{
  int indent;

  if (page->is_json) {
    page_put(page, key, value);
    return;
  }
  assert(page->columns && page->column > 0);
  page->column--;
  indent = column_start(page);
  text_newline(page);
  text_pad(page, indent);
  putchar('[');
  page->cursor++;
  text_wrap(page, value, indent);
  putchar(']');
  page->column++;
}

/* ---- structure ---- */

/* Where lines of text are broken: at the terminal's edge, if there is one. */
static int width_find(void)
{
  struct winsize size;

  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col > WIDTH_MAX)
    return WIDTH_MAX;
  return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

void page_open(struct page *page, bool is_json, bool wants_color)
{
  *page = (struct page){.is_json = is_json, .wants_color = wants_color, .is_blank = true, .width = width_find()};
  if (is_json)
    json_begin(page, NULL, '{');
}

int page_close(struct page *page)
{
  if (page->is_json) {
    json_end(page, '}');
    assert(page->depth == 0);
    putchar('\n');
  }
  return page->error;
}

void page_title(struct page *page, const char *format, ...)
{
  char buffer[512];
  va_list arguments;

  if (page->is_json)
    return;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  text_bold(page, buffer);
  text_newline(page);
}

void page_remark(struct page *page, const char *format, ...)
{
  char buffer[1024];
  va_list arguments;

  if (page->is_json)
    return;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  text_pad(page, MARGIN);
  text_wrap(page, buffer, MARGIN);
  text_newline(page);
}

void page_blank(struct page *page)
{
  if (!page->is_json)
    text_newline(page);
}

void page_section(struct page *page, const char *key, const char *title)
{
  if (page->is_json) {
    json_begin(page, key, '{');
    return;
  }
  if (!page->is_blank)
    text_newline(page);
  page_title(page, "%s", title);
}

void page_section_end(struct page *page)
{
  if (page->is_json)
    json_end(page, '}');
}

void page_array(struct page *page, const char *key, const char *title)
{
  if (page->is_json)
    json_begin(page, key, '[');
  else
    page_section(page, key, title);
}

void page_array_end(struct page *page)
{
  if (page->is_json)
    json_end(page, ']');
}

void page_list(struct page *page, const char *key)
{
  page->list_key = key;
  if (page->is_json)
    json_begin(page, key, '[');
}

void page_item(struct page *page, const char *format, ...)
{
  char buffer[256];
  va_list arguments;
  int r;

  va_start(arguments, format);
  vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  if (page->is_json) {
    json_member(page, NULL);
    json_string(buffer);
    return;
  }
  r = text_addf(&page->list, "%s%s", page->list.length ? ", " : "", buffer);
  if (r < 0)
    page->error = r;
}

void page_list_end(struct page *page)
{
  if (page->is_json)
    json_end(page, ']');
  else
    value_put(page, page->list_key, page->list.length ? text_string(&page->list) : "-", NULL);
  text_done(&page->list);
}

void page_table(struct page *page, const char *key, const struct page_column *columns)
{
  page->columns = columns;
  if (page->is_json) {
    json_begin(page, key, '[');
    return;
  }
  page_row(page, true);
  for (; columns->title; columns++) {
    text_cell(page, columns->title);
    page->column++;
  }
  page_row_end(page);
}

void page_row(struct page *page, bool is_bold)
{
  page->column = 0;
  page->is_bold = is_bold && page->wants_color;
  if (page->is_json)
    json_begin(page, NULL, '{');
  else if (page->is_bold)
    fputs(BOLD, stdout);
}

void page_row_end(struct page *page)
{
  if (page->is_json) {
    json_end(page, '}');
    return;
  }
  if (page->is_bold)
    fputs(PLAIN, stdout);
  text_newline(page);
}

void page_table_end(struct page *page)
{
  page->columns = NULL;
  if (page->is_json)
    json_end(page, ']');
}
