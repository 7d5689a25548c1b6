/* SPDX-License-Identifier: Apache-2.0
 *
 * The code mappings of a running process, from /proc/PID/maps: START-END MODE OFFSET DEVICE INODE PATH; the addresses
 * and the offset are hexadecimal. The kernel writes a newline in a path as \012 and escapes nothing else, so a path
 * extends to the end of the line.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "symbol/symbol.h"

#define REMOVED " (deleted)"

struct line {
  const char *at, *end;
};

/* A hexadecimal number followed by `stop`. */
static bool line_hex(struct line *line, char stop, uint64_t *ret_value)
{
  uint64_t value = 0;
  unsigned digits = 0;

  for (; line->at < line->end && isxdigit((unsigned char)*line->at) && digits < 16; digits++, line->at++)
    value =
      value << 4 | (uint64_t)(isdigit((unsigned char)*line->at) ? *line->at - '0' : (*line->at | 0x20) - 'a' + 10);
  if (!digits || line->at == line->end || *line->at != stop)
    return false;
  line->at++;
  *ret_value = value;
  return true;
}

/* A word and the blanks after it. */
static bool line_word(struct line *line, const char **ret_word, size_t *ret_length)
{
  const char *start = line->at;

  while (line->at < line->end && *line->at != ' ')
    line->at++;
  *ret_word = start;
  *ret_length = (size_t)(line->at - start);
  while (line->at < line->end && *line->at == ' ')
    line->at++;
  return *ret_length;
}

/* Reads a line that maps code of a file, or of the vdso. Returns whether it is one. */
static bool line_read(struct line line, struct symbol_mapping *mapping, struct line *ret_path)
{
  const char *mode, *skipped;
  size_t length;

  if (!line_hex(&line, '-', &mapping->start) || !line_hex(&line, ' ', &mapping->end) ||
      !line_word(&line, &mode, &length) || length != 4 || mode[2] != 'x' || !line_hex(&line, ' ', &mapping->offset) ||
      !line_word(&line, &skipped, &length) || !line_word(&line, &skipped, &length))
    return false;
  *ret_path = line;
  length = (size_t)(line.end - line.at);
  if (length == strlen("[vdso]") && !memcmp(line.at, "[vdso]", length))
    return true;
  if (length >= strlen(REMOVED) && !memcmp(line.end - strlen(REMOVED), REMOVED, strlen(REMOVED)))
    return false;
  return length && *line.at == '/' && !memchr(line.at, 0, length);
}

static int line_add(struct symbol_space *space, struct line line, const char *root)
{
  struct symbol_mapping mapping = {0};
  char path[PATH_MAX];
  struct line name;
  int length;

  if (!line_read(line, &mapping, &name))
    return 0;
  length = snprintf(path, sizeof(path), "%s%.*s", *name.at == '/' ? root : "", (int)(name.end - name.at), name.at);
  if (length < 0 || (size_t)length >= sizeof(path) || mapping.end <= mapping.start)
    return 0;
  mapping.path = path;
  return symbol_space_add(space, &mapping);
}

int symbol_space_add_maps(struct symbol_space *space, const char *text, size_t size, const char *root)
{
  const char *end = text + size;
  int r = 0;

  while (r >= 0 && text < end) {
    const char *line_end = memchr(text, '\n', (size_t)(end - text));

    line_end = line_end ? line_end : end;
    if (line_end - text < PATH_MAX + 128)
      r = line_add(space, (struct line){text, line_end}, root);
    text = line_end < end ? line_end + 1 : end;
  }
  return r;
}
