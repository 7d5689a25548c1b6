/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of values and places in `lbr report` and `lbr annotate`.
 */
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

#define TAB 8
#define BAR_WIDTH 10

const char *words_number(char buffer[WORDS_NUMBER_SIZE], uint64_t value)
{
  char digits[WORDS_NUMBER_SIZE];
  size_t length = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value), at = 0;

  for (size_t i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0)
      buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = '\0';
  return buffer;
}

const char *words_duration(char buffer[WORDS_NUMBER_SIZE], uint64_t nanoseconds)
{
  static const char *const units[] = {"ns", "us", "ms", "s"};
  double value = (double)nanoseconds;
  size_t unit = 0;
  int places = 0;

  for (; value >= 999.5 && unit < 3; unit++)
    value /= 1000;
  if (unit && value < 99.95)
    places = value < 9.995 ? 2 : 1;
  snprintf(buffer, WORDS_NUMBER_SIZE, "%.*f %s", places, value, units[unit]);
  return buffer;
}

bool words_has_utf8(void)
{
  static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

  for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
    const char *value = getenv(variables[i]);

    if (value && *value)
      return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
  }
  return true;
}

/* Bytes of a printable character; 0 if it is not printable. */
static size_t character_size(const char *bytes, size_t length)
{
  char copy[5] = {0}; /* utf8_size needs a terminated string */
  size_t size;

  if ((unsigned char)*bytes < 0x20 || *bytes == 0x7F)
    return 0;
  memcpy(copy, bytes, length < 4 ? length : 4);
  size = utf8_size(copy);
  return size == 2 && (unsigned char)copy[0] == 0xC2 && (unsigned char)copy[1] < 0xA0 ? 0 : size;
}

int words_add_printable(struct text *text, const char *bytes, size_t length)
{
  size_t column = 0;
  int r = 0;

  for (size_t at = 0, size; at < length && r >= 0; at += size ? size : 1) {
    size = character_size(bytes + at, length - at);
    if (bytes[at] == '\t') {
      r = text_add_bytes(text, "        ", TAB - column % TAB);
      column += TAB - column % TAB;
      continue;
    }
    r = size ? text_add_bytes(text, bytes + at, size) : text_add(text, "?");
    column++;
  }
  return r;
}

void words_put_number(struct page *page, const char *key, uint64_t value, int width)
{
  char buffer[WORDS_NUMBER_SIZE];

  if (page->is_json)
    page_put_number(page, key, value);
  else
    page_putf(page, key, "%*s", width, words_number(buffer, value));
}

void words_put_duration(struct page *page, const char *key, uint64_t nanoseconds, int width)
{
  char buffer[WORDS_NUMBER_SIZE];

  if (page->is_json) {
    snprintf(buffer, sizeof(buffer), "%.9f", (double)nanoseconds / 1e9);
    page_put_json(page, key, buffer);
  } else {
    page_putf(page, key, "%*s", width, words_duration(buffer, nanoseconds));
  }
}

void words_put_share(struct page *page, const char *key, uint64_t part, uint64_t whole)
{
  double share = whole ? (double)part / (double)whole : 0;
  char text[32];

  if (page->is_json) {
    snprintf(text, sizeof(text), "%.6g", share);
    page_put_json(page, key, whole ? text : "null");
  } else if (whole) {
    page_putf(page, key, "%6.2f%%", 100 * share);
  } else {
    page_put(page, key, "      -");
  }
}

void words_put_bar(struct page *page, uint64_t part, uint64_t whole, bool has_utf8)
{
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  unsigned filled = whole ? (unsigned)(8 * BAR_WIDTH * ((double)part / (double)whole) + 0.5) : 0;
  char text[4 * BAR_WIDTH + 1] = "";
  size_t at = 0;

  if (page->is_json)
    return;
  filled = filled > 8 * BAR_WIDTH ? 8 * BAR_WIDTH : filled;
  for (unsigned i = 0; i < filled / 8; i++)
    at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", has_utf8 ? "█" : "#");
  if (has_utf8)
    snprintf(text + at, sizeof(text) - at, "%s", eighths[filled % 8]);
  page_put(page, NULL, text);
}

const char *words_base(const char *path)
{
  const char *slash = strrchr(path, '/');

  return slash && slash[1] ? slash + 1 : path;
}

/* ---- places ---- */

void words_function(const struct analysis_hot_function *function, char *buffer, size_t size)
{
  struct text text = {0};

  if (function->symbol) { /* modules that are no files, such as [jit], have brackets already */
    const char *module = function->module ? function->module : "[in no module]";

    snprintf(buffer, size, *module == '[' ? "%s  %s" : "%s  [%s]", function->symbol, module);
    return;
  }
  (void)analysis_extent_name(&text, function->module, function->start, function->source);
  snprintf(buffer, size, "%s", text_string(&text));
  text_done(&text);
}

static bool line_find(struct analysis_names *names, const struct analysis_location *location,
                      struct symbol_frame *ret_frame)
{
  struct symbol_place place;

  if (!analysis_names_place(names, location, &place) || !place.frame_count || !place.frames[0].file)
    return false;
  *ret_frame = place.frames[0];
  return true;
}

int words_add_location(struct text *text, struct analysis_names *names, const struct analysis_location *location,
                       bool wants_lines)
{
  unsigned long long address = location->address;
  struct symbol_frame frame;
  struct analysis_name name;
  int r;

  if (!analysis_names_symbol(names, location, &name))
    r = text_addf(text, "0x%llx", address);
  else if (!name.symbol)
    r = text_addf(text, "%s+0x%llx", name.module, address);
  else if (name.offset)
    r = text_addf(text, "%s+0x%llx", name.symbol, (unsigned long long)name.offset);
  else
    r = text_add(text, name.symbol);
  if (r >= 0 && wants_lines && line_find(names, location, &frame))
    r = text_addf(text, " (%s:%u)", words_base(frame.file), frame.line);
  return r;
}

void words_put_location(struct page *page, const char *key, struct analysis_names *names,
                        const struct analysis_location *location, bool wants_lines)
{
  struct analysis_name name = {0};
  struct symbol_frame frame = {0};
  bool is_known = analysis_names_symbol(names, location, &name);

  page_section(page, key, NULL);
  page_put_hex(page, "address", location->address);
  page_put(page, "symbol", name.symbol);
  if (name.mangled)
    page_put(page, "mangled", name.mangled);
  page_put(page, "module", is_known ? name.module : NULL);
  if (name.symbol)
    page_put_hex(page, "offset", name.offset);
  else
    page_absent(page, "offset");
  if (wants_lines && line_find(names, location, &frame)) {
    page_put(page, "file", frame.file);
    page_put_number(page, "line", frame.line);
  }
  page_section_end(page);
}
