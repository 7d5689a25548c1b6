/* SPDX-License-Identifier: Apache-2.0
 *
 * Perf maps: text files in which a just-in-time compiler writes a line for each function, "START SIZE NAME". The
 * numbers are hexadecimal, with or without 0x. The format is that of the file jit-interface.txt of Linux's perf.
 */
#include <string.h>

#include "process/jit.h"
#include "trace/trace.h"

size_t jit_text_copy(char *copy, const char *text, size_t length)
{
  length = length < TRACE_NAME_MAX ? length : TRACE_NAME_MAX;
  for (size_t i = 0; i < length; i++)
    copy[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7F ? '?' : text[i];
  return length;
}

static int digit_value(char digit)
{
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  digit |= 0x20;
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Reads a number and the blanks after it. Returns the address after them, or NULL. */
static const char *number_read(const char *at, const char *end, uint64_t *ret_number)
{
  const char *first;
  uint64_t number = 0;

  if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
    at += 2;
  for (first = at; at < end && digit_value(*at) >= 0; at++) {
    if (number >> 60)
      return NULL;
    number = number << 4 | (unsigned)digit_value(*at);
  }
  if (at == first || at == end || (*at != ' ' && *at != '\t'))
    return NULL;
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  *ret_number = number;
  return at;
}

static bool line_read(const char *line, size_t length, struct jit_name *name, char text[TRACE_NAME_MAX])
{
  const char *end = line + length, *at = number_read(line, end, &name->start);

  at = at ? number_read(at, end, &name->size) : NULL;
  while (at && end > at && (end[-1] == '\r' || end[-1] == ' '))
    end--;
  if (!at || at == end || !name->start || name->size > UINT64_MAX - name->start)
    return false;
  name->text = text;
  name->length = jit_text_copy(text, at, (size_t)(end - at));
  return true;
}

static int line_take(struct jit_map *map, jit_name_function *function, void *data)
{
  char text[TRACE_NAME_MAX];
  struct jit_name name = {0};
  bool is_good = line_read(map->line, map->length, &name, text);
  bool is_empty = !map->length;

  map->lines++;
  map->length = 0;
  map->is_long = false;
  if (!is_good) {
    map->bad += !is_empty;
    return 0;
  }
  return name.size ? function(data, &name) : 0;
}

int jit_map_take(struct jit_map *map, const char *bytes, size_t size, jit_name_function *function, void *data)
{
  int r = 0;

  while (size && r >= 0) {
    const char *feed = memchr(bytes, '\n', size);
    size_t part = feed ? (size_t)(feed - bytes) : size, room = sizeof(map->line) - map->length;

    map->is_long |= part > room;
    memcpy(map->line + map->length, bytes, part < room ? part : room);
    map->length += part < room ? part : room;
    if (feed)
      r = line_take(map, function, data);
    bytes += part + !!feed;
    size -= part + !!feed;
  }
  return r < 0 ? r : 0;
}
