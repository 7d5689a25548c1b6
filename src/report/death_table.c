/* SPDX-License-Identifier: Apache-2.0
 *
 * The last branches of a thread for people: newest first, in columns. The two places of a branch are as wide as the
 * line allows. A longer place is cut in its middle, so that all rows stay aligned.
 */
#include <string.h>

#include "report/death.h"

#define MEASURED 256u   /* rows that determine the width of the columns with places */
#define LINE_USUAL 200u /* characters, if the width of a line is unknown */
#define PLACE_LEAST 40u /* the least width of a place */
#define TAIL_MOST 40u   /* columns that are kept free for the instruction */

struct rows {
  const struct analysis_thread *thread;
  const size_t *numbers;
  size_t count;
};

/* ---- cells ---- */

static void put_number(struct death_printer *printer, const struct analysis_thread *thread, size_t number)
{
  death_put(printer, "%zu", thread->count - 1 - number);
}

static void put_from(struct death_printer *printer, const struct analysis_thread *thread, size_t number)
{
  death_put_place(printer, thread, thread->marks[number], thread->branches[number].from);
}

static void put_to(struct death_printer *printer, const struct analysis_thread *thread, size_t number)
{
  death_put_place(printer, thread, analysis_thread_to_mark(thread, number), thread->branches[number].to);
}

static void put_kind(struct death_printer *printer, const struct analysis_thread *thread, size_t number)
{
  death_put(printer, "%s", lb_branch_kind_name(thread->branches[number].kind));
}

static void put_instruction(struct death_printer *printer, const struct analysis_thread *thread, size_t number)
{
  char text[128];

  death_instruction(printer, thread, thread->marks[number], thread->branches[number].from, text, sizeof(text));
  death_put(printer, "%s", text);
}

static const struct {
  const char *title;
  void (*put)(struct death_printer *printer, const struct analysis_thread *thread, size_t number);
} columns[] = {
  {"#", put_number}, {"from", put_from}, {"to", put_to}, {"kind", put_kind}, {"instruction", put_instruction}};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), NUMBER = 0, FROM, TO, KIND, INSTRUCTION };

/* ---- widths ---- */

/* Characters, not bytes. */
static size_t width_from(const struct text *text, size_t start)
{
  size_t width = 0;

  for (size_t i = start; i < text->length; i++)
    width += ((unsigned char)text->data[i] & 0xC0) != 0x80;
  return width;
}

/* The bytes of the first `count` characters from `start` on. */
static size_t bytes_of(const struct text *text, size_t start, size_t count)
{
  size_t at = start;

  for (; at < text->length; at++)
    if (((unsigned char)text->data[at] & 0xC0) != 0x80 && !count--)
      break;
  return at - start;
}

/* Cuts the text from `start` on in its middle, to `width` characters: a place begins with its function and ends with
 * its line. */
static void cut_from(struct text *text, size_t start, size_t width)
{
  static const char dots[] = "...";
  size_t all = width_from(text, start), left = (width - strlen(dots)) / 2, right = width - strlen(dots) - left;

  if (all <= width)
    return;
  size_t head = start + bytes_of(text, start, left), tail = start + bytes_of(text, start, all - right);
  memcpy(text->data + head, dots, strlen(dots)); /* more characters are removed than added: it fits */
  memmove(text->data + head + strlen(dots), text->data + tail, text->length - tail);
  text->length = head + strlen(dots) + (text->length - tail);
  text->data[text->length] = '\0';
}

/* Names are read from files, which takes time: only the first rows are measured. */
static size_t column_width(struct death_printer *printer, const struct rows *rows, unsigned column)
{
  size_t count = column == KIND || rows->count < MEASURED ? rows->count : MEASURED, widest;

  widest = strlen(columns[column].title);
  for (size_t i = 0; i < count && printer->error >= 0; i++) {
    printer->text->length = 0;
    columns[column].put(printer, rows->thread, rows->numbers[column == NUMBER ? rows->count - 1 : i]);
    size_t width = width_from(printer->text, 0);
    if (width > widest)
      widest = width;
    if (column == NUMBER)
      break; /* the last one is the greatest */
  }
  return widest;
}

/* The two places share the space that the other columns leave. */
static void places_fit(size_t widths[COLUMNS], size_t line)
{
  size_t tail = widths[INSTRUCTION] < TAIL_MOST ? widths[INSTRUCTION] : TAIL_MOST;
  size_t taken = widths[NUMBER] + widths[KIND] + tail + 2 * (size_t)COLUMNS;
  size_t room = line > taken + 2 * PLACE_LEAST ? line - taken : 2 * PLACE_LEAST, half = room / 2;

  if (widths[FROM] + widths[TO] <= room)
    return;
  if (widths[FROM] <= half)
    widths[TO] = room - widths[FROM];
  else if (widths[TO] <= half)
    widths[FROM] = room - widths[TO];
  else
    widths[FROM] = widths[TO] = half;
}

static void measure(struct death_printer *printer, const struct rows *rows, size_t widths[COLUMNS])
{
  struct text scratch = {0};
  struct death_printer measuring = *printer;

  measuring.text = &scratch;
  for (unsigned column = 0; column < COLUMNS; column++)
    widths[column] = column_width(&measuring, rows, column);
  places_fit(widths, printer->options->width ? printer->options->width : LINE_USUAL);
  text_done(&scratch);
  printer->error = measuring.error;
}

/* ---- rows ---- */

/* Blanks are written only when something follows, so that no line ends with them. */
static void put_row(struct death_printer *printer, const struct analysis_thread *thread, size_t number,
                    const size_t widths[COLUMNS])
{
  size_t owed = 2;

  for (unsigned column = 0; column < COLUMNS && printer->error >= 0; column++) {
    size_t before = printer->text->length + owed, width;

    death_put(printer, "%*s", (int)owed, "");
    columns[column].put(printer, thread, number);
    if (printer->error < 0)
      return;
    if (column == FROM || column == TO)
      cut_from(printer->text, before, widths[column]);
    width = width_from(printer->text, before);
    owed = width < widths[column] ? widths[column] - width + 2 : 2;
  }
  while (printer->text->length && printer->text->data[printer->text->length - 1] == ' ')
    printer->text->length--;
  death_put(printer, "\n");
}

static void put_titles(struct death_printer *printer, const size_t widths[COLUMNS])
{
  death_put_color(printer, DEATH_BOLD);
  for (unsigned column = 0; column < COLUMNS; column++)
    death_put(printer, "  %-*s", column + 1 < COLUMNS ? (int)widths[column] : 0, columns[column].title);
  death_put_color(printer, DEATH_PLAIN);
  death_put(printer, "\n");
}

void death_put_table(struct death_printer *printer, const struct analysis_thread *thread, const size_t *numbers,
                     size_t count)
{
  const struct rows rows = {thread, numbers, count};
  size_t widths[COLUMNS];

  measure(printer, &rows, widths);
  put_titles(printer, widths);
  for (size_t i = 0; i < count && printer->error >= 0; i++) {
    put_row(printer, thread, numbers[i], widths);
    death_flush(printer);
  }
}
