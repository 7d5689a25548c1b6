/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces standard output by a stream that fits each line to the terminal before it is written, so that every table of
 * a command fits, whichever code prints it.
 */
#include "cli/fit_stdout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

#define LINE_MOST (1u << 20) /* bytes: a longer line is written as it is */

static struct {
  struct text line; /* text that was not written yet: less than a line */
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

/* Writes a terminated line, and a newline after it if `has_end`. */
static bool string_write(char *line, size_t columns, bool has_end)
{
  struct text text = {0};
  bool is_written = fit_line(&text, line, columns, fitting.how) >= 0 && (!has_end || text_add(&text, "\n") >= 0) &&
                    bytes_write(text_string(&text), text.length);

  text_done(&text);
  return is_written;
}

/* Writes the collected text: a line, or the rest of one. */
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
