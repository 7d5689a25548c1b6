/* SPDX-License-Identifier: Apache-2.0
 *
 * The source of a function with the execution count of each line: that of its most executed instruction. It shows the
 * lines of the file that has most of the function's code: lines with code and a few around them. Source files are read
 * where the debug information says that they are, which is untrusted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/view_code.h"
#include "symbol/symbol.h"

#define AROUND 4u              /* lines around those with code */
#define BRIDGE 12u             /* gaps between them that are also shown */
#define LINES_MAX 600u         /* lines of one function */
#define SOURCE_MAX (16u << 20) /* bytes of a file */
#define WIDTH_MAX 240u         /* bytes of a line */

struct source_line {
  uint32_t line;
  uint64_t executed;
};

/* ---- which lines ---- */

static int line_compare(const void *a, const void *b)
{
  const struct source_line *one = a, *other = b;

  if (one->line != other->line)
    return one->line < other->line ? -1 : 1;
  return one->executed > other->executed ? -1 : one->executed < other->executed;
}

/* The function's own file: that of the real (not inlined) function, at its first instruction that has one. */
static const char *source_file(struct report_view *view, const struct view_code *code)
{
  for (size_t i = 0; i < code->count && i < 64; i++) {
    struct analysis_location at = {.file = code->file, .address = code->list[i].address};
    struct symbol_place place;

    if (analysis_names_place(view->options.names, &at, &place) && place.frame_count &&
        place.frames[place.frame_count - 1].file)
      return place.frames[place.frame_count - 1].file;
  }
  return NULL;
}

/* The line in that file: of the code itself, or of the function that it was inlined into. */
static uint32_t source_line(struct report_view *view, const struct analysis_location *at, const char *file)
{
  struct symbol_place place;

  if (!analysis_names_place(view->options.names, at, &place))
    return 0;
  for (size_t i = 0; i < place.frame_count; i++)
    if (place.frames[i].file && !strcmp(place.frames[i].file, file))
      return place.frames[i].line;
  return 0;
}

/* The lines with code, sorted, each once. Returns NULL without memory. */
static struct source_line *lines_read(struct report_view *view, struct view_code *code, const char *file,
                                      size_t *ret_count)
{
  struct source_line *lines = calloc(code->count, sizeof(*lines));
  size_t count = 0, kept = 0;

  if (!lines)
    return NULL;
  for (size_t i = 0; i < code->count; i++) {
    struct analysis_location at = {.file = code->file, .address = code->list[i].address};

    code->list[i].line = source_line(view, &at, file);
    if (code->list[i].line)
      lines[count++] = (struct source_line){code->list[i].line, code->list[i].executed};
  }
  if (count)
    qsort(lines, count, sizeof(*lines), line_compare);
  for (size_t i = 0; i < count; i++)
    if (!i || lines[i].line != lines[i - 1].line)
      lines[kept++] = lines[i];
  *ret_count = kept;
  return lines;
}

/* ---- their text ---- */

/* Whether this line is shown. `next` is the first line with code that is not before it. */
static bool line_is_shown(const struct source_line *lines, size_t count, size_t next, uint32_t line)
{
  bool has_next = next<count, has_last = next> 0;
  uint32_t after = has_next ? lines[next].line - line : UINT32_MAX;
  uint32_t before = has_last ? line - lines[next - 1].line : UINT32_MAX;

  return after <= AROUND || before <= AROUND || (has_next && has_last && after + before <= BRIDGE);
}

static int put_line(const struct source_line *lines, size_t count, size_t next, uint32_t line, const char *bytes,
                    size_t size, struct text *text)
{
  bool has_code = next < count && lines[next].line == line;
  char copy[WIDTH_MAX + 1];
  int r = text_addf(text, "%s[%u,", text->data[text->length - 1] == '[' ? "" : ",", line);

  size = size < WIDTH_MAX ? size : WIDTH_MAX;
  memcpy(copy, bytes, size);
  copy[size] = 0;
  copy[strcspn(copy, "\r")] = 0;
  if (r >= 0)
    r = has_code ? text_addf(text, "%llu,", (unsigned long long)lines[next].executed) : text_add(text, "null,");
  if (r >= 0)
    r = view_quote(text, copy);
  return r < 0 ? r : text_add(text, "]");
}

static int put_text(const struct source_line *lines, size_t count, const char *bytes, size_t size, struct text *text)
{
  const char *end = bytes + size;
  size_t next = 0, put = 0;
  int r = 0;

  for (uint32_t line = 1; bytes < end && put < LINES_MAX && r >= 0; line++) {
    const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));

    stop = stop ? stop : end;
    while (next < count && lines[next].line < line)
      next++;
    if (line_is_shown(lines, count, next, line)) {
      r = put_line(lines, count, next, line, bytes, (size_t)(stop - bytes), text);
      put++;
    } else if (next >= count)
      break;
    bytes = stop + 1;
  }
  return r;
}

/* ---- the whole source ---- */

static int put_file(struct report_view *view, struct view_code *code, const char *file, const void *bytes, size_t size,
                    bool is_changed, struct text *text)
{
  size_t count = 0;
  struct source_line *lines = lines_read(view, code, file, &count);
  int r = lines ? text_add(text, "\"source\":") : -ENOMEM;

  if (r >= 0)
    r = view_quote(text, file);
  if (r >= 0)
    r = text_addf(text, ",\"changed\":%s,\"lines\":[", is_changed ? "true" : "false");
  if (r >= 0)
    r = put_text(lines, count, bytes, size, text);
  free(lines);
  return r < 0 ? r : text_add(text, "],");
}

int view_source_put(struct report_view *view, struct view_code *code, struct text *text)
{
  const struct analysis_files *files = view->options.files;
  const char *file = files ? source_file(view, code) : NULL;
  const void *bytes;
  size_t size;
  int r = file && file[0] == '/' ? files->open(files->data, file, &bytes, &size) : -1;

  if (r < 0)
    return text_add(text, "\"source\":null,\"changed\":false,\"lines\":null,");
  r = put_file(view, code, file, bytes, size < SOURCE_MAX ? size : SOURCE_MAX, r > 0, text);
  files->close(files->data, bytes, size);
  return r;
}
