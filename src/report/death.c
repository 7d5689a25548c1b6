/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a program for people: what happened and where, then the last branches of each thread, newest first, in
 * columns. A place is function+offset, then file:line; where functions were inlined, the innermost one with its line,
 * and behind each < where it was inlined.
 */
#include "report/death.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"
#include "report/printable.h"

#define BOLD "\033[1m"
#define RED "\033[1;31m"
#define PLAIN "\033[0m"

#define FLUSHED 65536u
#define MEASURED 256u /* rows that the width of the columns is made for */
#define WIDEST 48u    /* what is wider stands out of its column */

/* ---- pieces ---- */

void death_put(struct death_printer *printer, const char *format, ...)
{
  va_list list;

  if (printer->error < 0)
    return;
  va_start(list, format);
  printer->error = text_addv(printer->text, format, list);
  va_end(list);
}

/* What a stranger may have written. */
static void put_safe(struct death_printer *printer, const char *string)
{
  char *copy = printable_copy(string, strlen(string));

  if (copy)
    death_put(printer, " (%s)", copy);
  else
    printer->error = -ENOMEM;
  free(copy);
}

void death_flush(struct death_printer *printer)
{
  if (!printer->options->flush || printer->text->length < FLUSHED || printer->error < 0)
    return;
  printer->options->flush(printer->options->data, printer->text);
  printer->before = printer->text->length;
}

const char *death_base(const char *path)
{
  const char *slash = strrchr(path, '/');

  return slash && slash[1] ? slash + 1 : path;
}

bool death_place(const struct death_printer *printer, const struct report_thread *thread, uint32_t mark,
                 uint64_t address, struct symbol_place *ret_place)
{
  const struct report_places *places = printer->options->places;

  return places && places->find(places->data, thread->space, mark, address, ret_place);
}

/* "0x0000000000401000" becomes "0x401000". */
static void squeeze_zeros(char *text)
{
  char *to = text;

  for (const char *from = text; (*to = *from); to++, from++)
    if (from > text && from[-1] == '0' && *from == 'x')
      while (from[1] == '0' && from[2] && strchr("0123456789ABCDEFabcdef", from[2]))
        from++;
}

void death_instruction(const struct death_printer *printer, const struct report_thread *thread, uint32_t mark,
                       uint64_t address, char *text, size_t size)
{
  const struct report_places *places = printer->options->places;
  struct isa_instruction instruction;
  uint8_t bytes[ISA_LENGTH_MAX];
  size_t count = places ? places->code(places->data, thread->space, mark, address, bytes, sizeof(bytes)) : 0;

  *text = 0;
  if (count && isa_decode(ISA_64, false, bytes, count, &instruction) > 0 &&
      isa_format(&instruction, address, text, size) < 0)
    *text = 0;
  squeeze_zeros(text);
}

static void put_color(struct death_printer *printer, const char *color)
{
  if (printer->options->wants_color)
    death_put(printer, "%s", color);
}

/* file:line, and what it was inlined into. */
static void put_lines(struct death_printer *printer, const struct symbol_place *place)
{
  for (size_t i = 0; i < place->frame_count; i++) {
    const struct symbol_frame *frame = &place->frames[i];

    if (i)
      death_put(printer, " <");
    if (frame->file && frame->line)
      death_put(printer, " %s:%u", death_base(frame->file), frame->line);
    else if (frame->file)
      death_put(printer, " %s", death_base(frame->file));
    if (frame->function && i + 1 < place->frame_count)
      death_put(printer, " %s", frame->function);
  }
}

static void put_place(struct death_printer *printer, const struct report_thread *thread, uint32_t mark,
                      uint64_t address)
{
  struct symbol_place place;

  if (!death_place(printer, thread, mark, address, &place)) {
    death_put(printer, "0x%llx", (unsigned long long)address);
    return;
  }
  if (place.symbol)
    death_put(printer, "%s+0x%llx", place.symbol, (unsigned long long)place.offset);
  else if (place.module)
    death_put(printer, "%s+0x%llx", death_base(place.module), (unsigned long long)place.offset);
  else
    death_put(printer, "0x%llx", (unsigned long long)address);
  put_lines(printer, &place);
}

/* ---- the head ---- */

static void put_what(struct death_printer *printer)
{
  const struct report_death *death = printer->death;
  const char *name = death_signal_name(death->signal);

  switch (death->ending) {
  case REPORT_DIED:
    death_put_signal(printer);
    break;
  case REPORT_EXITED:
    death_put(printer, "exited with status %d", death->status);
    break;
  case REPORT_KILLED:
    if (name)
      death_put(printer, "killed by SIG%s", name);
    else
      death_put(printer, "ended without a record of why, as SIGKILL does it");
    break;
  case REPORT_ALIVE:
    death_put(printer, "running");
    break;
  }
}

/* "process 12 (name), thread 13 (name)"; a single thread has the process's number. */
static void put_who(struct death_printer *printer)
{
  const struct report_death *death = printer->death;
  const struct report_thread *thread = death->thread_count ? &death->threads[0] : NULL;

  death_put(printer, "  in process %u", death->process);
  if (*death->program)
    put_safe(printer, death_base(death->program));
  if (thread && death->ending != REPORT_ALIVE && thread->thread != death->process) {
    death_put(printer, ", thread %u", thread->thread);
    if (*thread->name)
      put_safe(printer, thread->name);
  }
  death_put(printer, "\n");
}

static void put_where(struct death_printer *printer)
{
  const struct report_death *death = printer->death;
  char instruction[128];

  if (death->ending != REPORT_DIED || !death->thread_count)
    return;
  death_put(printer, "  at 0x%llx ", (unsigned long long)death->rip);
  size_t before = printer->text->length;
  put_place(printer, &death->threads[0], REPORT_NOW, death->rip);
  if (printer->error >= 0 && !strncmp(printer->text->data + before, "0x", 2)) { /* nothing is known but the address */
    printer->text->length = before - 1;
    printer->text->data[before - 1] = 0;
  }
  death_instruction(printer, &death->threads[0], REPORT_NOW, death->rip, instruction, sizeof(instruction));
  death_put(printer, "%s%s\n", *instruction ? ": " : "", instruction);
}

/* ---- the branches ---- */

static void put_number(struct death_printer *printer, const struct report_thread *thread, size_t number)
{
  death_put(printer, "%zu", thread->count - 1 - number);
}

static void put_from(struct death_printer *printer, const struct report_thread *thread, size_t number)
{
  put_place(printer, thread, thread->marks[number], thread->branches[number].from);
}

static void put_to(struct death_printer *printer, const struct report_thread *thread, size_t number)
{
  put_place(printer, thread, death_to_mark(thread, number), thread->branches[number].to);
}

static void put_kind(struct death_printer *printer, const struct report_thread *thread, size_t number)
{
  death_put(printer, "%s", lb_branch_kind_name(thread->branches[number].kind));
}

static void put_instruction(struct death_printer *printer, const struct report_thread *thread, size_t number)
{
  char text[128];

  death_instruction(printer, thread, thread->marks[number], thread->branches[number].from, text, sizeof(text));
  death_put(printer, "%s", text);
}

static const struct {
  const char *title;
  void (*put)(struct death_printer *printer, const struct report_thread *thread, size_t number);
} columns[] = {
  {"#", put_number}, {"from", put_from}, {"to", put_to}, {"kind", put_kind}, {"instruction", put_instruction}};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* Letters, not bytes. */
static size_t width_from(const struct text *text, size_t start)
{
  size_t width = 0;

  for (size_t i = start; i < text->length; i++)
    width += ((unsigned char)text->data[i] & 0xC0) != 0x80;
  return width;
}

static void measure(struct death_printer *printer, const struct report_thread *thread, size_t widths[COLUMNS])
{
  struct text scratch = {0};
  struct death_printer measuring = *printer;

  measuring.text = &scratch;
  for (unsigned column = 0; column < COLUMNS; column++) {
    widths[column] = strlen(columns[column].title);
    for (size_t i = 0; i < thread->count && i < MEASURED; i++) {
      scratch.length = 0;
      columns[column].put(&measuring, thread, column ? thread->count - 1 - i : 0);
      size_t width = width_from(&scratch, 0);
      if (width > widths[column])
        widths[column] = width < WIDEST ? width : WIDEST;
    }
  }
  text_done(&scratch);
  printer->error = measuring.error;
}

/* Blanks are written when something follows: no line ends with them. */
static void put_row(struct death_printer *printer, const struct report_thread *thread, size_t number,
                    const size_t widths[COLUMNS])
{
  size_t owed = 2;

  for (unsigned column = 0; column < COLUMNS && printer->error >= 0; column++) {
    size_t before = printer->text->length + owed, width;

    death_put(printer, "%*s", (int)owed, "");
    columns[column].put(printer, thread, number);
    if (printer->error < 0)
      return;
    width = width_from(printer->text, before);
    owed = width < widths[column] ? widths[column] - width + 2 : 2;
  }
  while (printer->text->length && printer->text->data[printer->text->length - 1] == ' ')
    printer->text->length--;
  death_put(printer, "\n");
}

static void put_titles(struct death_printer *printer, const size_t widths[COLUMNS])
{
  put_color(printer, BOLD);
  for (unsigned column = 0; column < COLUMNS; column++)
    death_put(printer, "  %-*s", column + 1 < COLUMNS ? (int)widths[column] : 0, columns[column].title);
  put_color(printer, PLAIN);
  death_put(printer, "\n");
}

static void put_thread_title(struct death_printer *printer, const struct report_thread *thread)
{
  put_color(printer, BOLD);
  if (thread->recorder)
    death_put(printer, "last branches of thread %u", thread->thread);
  else if (thread->count == 1)
    death_put(printer, "last branch of thread %u", thread->thread);
  else
    death_put(printer, "last %zu branches of thread %u", thread->count, thread->thread);
  if (*thread->name)
    put_safe(printer, thread->name);
  death_put(printer, "%s%s:", thread->count || thread->recorder ? ", newest first" : "",
            thread->is_damaged ? ", with gaps: parts of the log make no sense" : "");
  put_color(printer, PLAIN);
  death_put(printer, "\n");
}

/* Whose addresses a recorder holds. */
struct recorder_names {
  const struct death_printer *printer;
  const struct report_thread *thread;
};

static bool recorder_name(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct recorder_names *names = data;
  struct symbol_place place;

  if (!death_place(names->printer, names->thread, REPORT_NOW, address, &place) || (!place.symbol && !place.module))
    return false;
  *ret_name = place.symbol ? place.symbol : death_base(place.module);
  *ret_offset = place.offset;
  return true;
}

void death_recorder(struct death_printer *printer, const struct report_thread *thread, enum report_format format)
{
  struct recorder_names names = {printer, thread};
  const struct report_symbols symbols = {&names, recorder_name};
  struct report_options options = {.wants_color = printer->options->wants_color, .symbols = &symbols};

  if (printer->error >= 0)
    printer->error = report_print(printer->text, thread->recorder, format, &options);
}

static void put_thread(struct death_printer *printer, const struct report_thread *thread)
{
  size_t widths[COLUMNS];

  put_thread_title(printer, thread);
  if (thread->recorder) {
    death_recorder(printer, thread, printer->options->format);
    return;
  }
  if (!thread->count) {
    death_put(printer, "  none\n");
    return;
  }
  measure(printer, thread, widths);
  put_titles(printer, widths);
  for (size_t i = thread->count; i-- > 0 && printer->error >= 0;) {
    put_row(printer, thread, i, widths);
    death_flush(printer);
  }
  if (!thread->is_cut)
    death_put(printer, "  that is all: the thread began there\n");
}

static void print_text(struct death_printer *printer)
{
  const struct report_death *death = printer->death;

  death_put(printer, "lbr: ");
  put_color(printer, death->ending == REPORT_DIED || death->ending == REPORT_KILLED ? RED : BOLD);
  put_what(printer);
  put_color(printer, PLAIN);
  death_put(printer, "\n");
  put_who(printer);
  put_where(printer);
  for (size_t i = 0; i < death->thread_count; i++) {
    death_put(printer, "\n");
    put_thread(printer, &death->threads[i]);
  }
}

int report_death_print(struct text *text, const struct report_death *death, const struct report_death_options *options)
{
  struct death_printer printer = {.text = text, .before = text->length, .death = death, .options = options};

  if (options->format == REPORT_JSON)
    death_print_json(&printer);
  else
    print_text(&printer);
  if (printer.error < 0 && text->data) {
    text->length = printer.before;
    text->data[printer.before] = '\0';
  }
  return printer.error;
}
