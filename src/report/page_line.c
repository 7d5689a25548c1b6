/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a text page: labels, cells, and words that are wrapped at the page's width.
 */
#include "report/page_line.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 22
#define ROOM_MIN 20 /* columns that words need: with fewer, they continue near the left edge of a terminal */

/* The columns that bytes take: continuation bytes of UTF-8 take none. */
static int width_of(const char *bytes, size_t length)
{
  int width = 0;

  for (size_t i = 0; i < length; i++)
    width += ((unsigned char)bytes[i] & 0xC0) != 0x80;
  return width;
}

static void line_put(struct page *page, const char *bytes, size_t length)
{
  fwrite(bytes, 1, length, page->file);
  page->cursor += width_of(bytes, length);
}

void line_pad(struct page *page, int until)
{
  if (until > page->cursor) {
    fprintf(page->file, "%*s", until - page->cursor, "");
    page->cursor = until;
  }
}

void line_end(struct page *page)
{
  putc('\n', page->file);
  page->cursor = 0;
  page->is_blank = false;
}

void line_wrap(struct page *page, const char *string, int indent)
{
  int width = page->columns ? page->row_width : page->width;

  if (width - indent < ROOM_MIN && !page->output.columns)
    width = INT_MAX;
  else if (width - indent < ROOM_MIN)
    indent = 2 * LINE_MARGIN;
  for (bool is_start = true; *string; is_start = false) {
    size_t length = strcspn(string, " ");

    if (!is_start && page->cursor + 1 + width_of(string, length) > width) {
      line_end(page);
      line_pad(page, indent);
    } else if (!is_start) {
      line_pad(page, page->cursor + 1);
    }
    line_put(page, string, length);
    string += length;
    string += *string == ' ';
  }
}

void line_bold(const struct page *page, const char *string)
{
  fprintf(page->file, "%s%s%s", page->output.wants_color ? LINE_BOLD : "", string,
          page->output.wants_color ? LINE_PLAIN : "");
}

int line_indent(const struct page *page)
{
  int start = LINE_MARGIN;

  if (!page->columns)
    return LINE_MARGIN + LABEL_WIDTH;
  for (unsigned i = 0; i < page->column; i++)
    start += page->columns[i].width + 1;
  return start;
}

void line_heading(struct page *page)
{
  if (!page->heading)
    return;
  if (!page->is_blank)
    line_end(page);
  line_bold(page, page->heading);
  line_end(page);
  page->heading = NULL;
}

static void label_put(struct page *page, const char *key)
{
  line_heading(page);
  line_pad(page, LINE_MARGIN);
  for (; *key; key++, page->cursor++)
    putc(*key == '_' ? ' ' : *key, page->file);
}

/* Blanks are written before a value, not after it, so that no line ends with them. */
void line_begin(struct page *page, const char *key)
{
  int start = line_indent(page);

  if (!page->columns)
    label_put(page, key);
  line_pad(page, page->cursor >= start ? page->cursor + 1 : start);
}

void line_cell(struct page *page, const char *string)
{
  assert(page->columns[page->column].title);
  if (!*string)
    return;
  line_begin(page, NULL);
  if (page->columns[page->column].width)
    line_put(page, string, strlen(string));
  else
    line_wrap(page, string, line_indent(page));
}

void line_columns(struct page *page)
{
  fputs(page->output.wants_color ? LINE_BOLD : "", page->file);
  for (page->column = 0; page->columns[page->column].title; page->column++)
    line_cell(page, page->columns[page->column].title);
  fputs(page->output.wants_color ? LINE_PLAIN : "", page->file);
  line_end(page);
  page->is_headed = true;
}
