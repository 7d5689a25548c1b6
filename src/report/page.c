/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of output, as text or as JSON (RFC 8259). The owner of the file checks it for errors.
 */
#include "report/page.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_line.h"

#define WIDTH_MAX 120

/* ---- JSON ---- */

static void json_string(const struct page *page, const char *string)
{
  putc('"', page->file);
  for (const unsigned char *s = (const unsigned char *)string; *s; s++)
    if (*s == '"' || *s == '\\')
      fprintf(page->file, "\\%c", *s);
    else if (*s < 0x20 || *s == 0x7F)
      fprintf(page->file, "\\u%04x", *s);
    else
      putc(*s, page->file);
  putc('"', page->file);
}

/* The text before a member: comma, line, indentation, key. */
static void json_member(struct page *page, const char *key)
{
  fprintf(page->file, "%s\n%*s", page->is_first ? "" : ",", (int)(2 * page->depth), "");
  page->is_first = false;
  if (key) {
    json_string(page, key);
    fputs(": ", page->file);
  }
}

static void json_begin(struct page *page, const char *key, char bracket)
{
  if (page->depth > 0)
    json_member(page, key);
  putc(bracket, page->file);
  page->depth++;
  page->is_first = true;
}

static void json_end(struct page *page, char bracket)
{
  assert(page->depth > 0);
  page->depth--;
  if (!page->is_first)
    fprintf(page->file, "\n%*s", (int)(2 * page->depth), "");
  putc(bracket, page->file);
  page->is_first = false;
}

/* ---- values ---- */

/* `json` is the value in JSON; NULL makes a string of `text`. */
static void value_put(struct page *page, const char *key, const char *text, const char *json)
{
  if (page->is_json) {
    json_member(page, key);
    if (json)
      fputs(json, page->file);
    else
      json_string(page, text);
  } else if (page->columns) {
    line_cell(page, text);
  } else {
    line_begin(page, key);
    line_wrap(page, text, line_indent(page));
    line_end(page);
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

void page_put_count(struct page *page, const char *key, uint64_t value)
{
  char buffer[REPORT_NUMBER_SIZE];

  if (page->is_json)
    page_put_number(page, key, value);
  else
    value_put(page, key, report_number(&page->output, value, buffer), NULL);
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

void page_put_json(struct page *page, const char *key, const char *json)
{
  if (page->is_json)
    value_put(page, key, json, json);
}

void page_put_note(struct page *page, const char *key, const char *value)
{
  char buffer[512];
  int indent;

  if (page->is_json) {
    page_put(page, key, value);
    return;
  }
  assert(page->columns && page->column > 0);
  page->column--;
  indent = line_indent(page);
  page->column++;
  line_end(page);
  line_pad(page, indent);
  snprintf(buffer, sizeof(buffer), "[%s]", value);
  line_wrap(page, buffer, indent);
}

/* ---- structure ---- */

void page_open(struct page *page, const struct report_output *output, bool is_json)
{
  int width = output->columns && output->columns < WIDTH_MAX ? output->columns : WIDTH_MAX;

  *page = (struct page){
    .output = *output,
    .is_json = is_json,
    .file = output->file,
    .is_blank = true,
    .width = width,
    .row_width = output->has_whole_rows ? INT_MAX : width,
  };
  if (is_json)
    json_begin(page, NULL, '{');
}

void page_close(struct page *page)
{
  if (!page->is_json)
    return;
  json_end(page, '}');
  assert(page->depth == 0);
  putc('\n', page->file);
}

/* ---- deferred text ---- */

void page_hold(struct page *page)
{
  FILE *file = page->is_json ? NULL : open_memstream(&page->held, &page->held_size);

  if (file)
    page->file = file;
}

void page_release(struct page *page, const char *key, const char *value)
{
  bool is_held = page->file != page->output.file;

  if (is_held && fclose(page->file))
    page->held_size = 0;
  page->file = page->output.file;
  page_put(page, key, value);
  if (is_held)
    fwrite(page->held, 1, page->held_size, page->output.file);
  free(page->held);
  page->held = NULL;
}

void page_title(struct page *page, const char *title)
{
  if (page->is_json)
    return;
  line_bold(page, title);
  line_end(page);
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
  line_heading(page);
  line_pad(page, LINE_MARGIN);
  line_wrap(page, buffer, LINE_MARGIN);
  line_end(page);
}

void page_blank(struct page *page)
{
  if (!page->is_json)
    line_end(page);
}

void page_heading(struct page *page, const char *title)
{
  page->heading = title;
}

void page_section(struct page *page, const char *key, const char *title)
{
  if (page->is_json)
    json_begin(page, key, '{');
  page_heading(page, title);
}

void page_section_end(struct page *page)
{
  if (page->is_json)
    json_end(page, '}');
  page->heading = NULL;
}

void page_array(struct page *page, const char *key)
{
  if (page->is_json)
    json_begin(page, key, '[');
}

void page_array_end(struct page *page)
{
  if (page->is_json)
    json_end(page, ']');
}

void page_list(struct page *page, const char *key)
{
  if (page->is_json)
    json_begin(page, key, '[');
  else
    line_begin(page, key);
  page->is_first = true;
}

void page_item(struct page *page, const char *format, ...)
{
  char buffer[256] = ", ";
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(buffer + 2, sizeof(buffer) - 2, format, arguments);
  va_end(arguments);
  if (page->is_json) {
    json_member(page, NULL);
    json_string(page, buffer + 2);
    return;
  }
  page->width--, page->row_width--; /* the next item's comma must fit too */
  line_wrap(page, page->is_first ? buffer + 2 : buffer, line_indent(page));
  page->width++, page->row_width++;
  page->is_first = false;
}

void page_list_end(struct page *page)
{
  if (page->is_json) {
    json_end(page, ']');
    return;
  }
  if (page->is_first)
    page_item(page, "-");
  if (!page->columns)
    line_end(page);
  page->column++;
}

void page_table(struct page *page, const char *key, const struct page_column *columns)
{
  page->columns = columns;
  page->is_headed = false;
  page_array(page, key);
}

void page_row(struct page *page, bool is_bold)
{
  if (page->is_json) {
    json_begin(page, NULL, '{');
    return;
  }
  line_heading(page);
  if (!page->is_headed)
    line_columns(page);
  page->column = 0;
  page->is_bold = is_bold && page->output.wants_color;
  fputs(page->is_bold ? LINE_BOLD : "", page->file);
}

void page_row_end(struct page *page)
{
  if (page->is_json) {
    json_end(page, '}');
    return;
  }
  fputs(page->is_bold ? LINE_PLAIN : "", page->file);
  line_end(page);
}

void page_table_end(struct page *page)
{
  page_array_end(page);
  page->columns = NULL;
}
