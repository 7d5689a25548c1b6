/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a program for people: what happened and where, then the last branches of each thread (death_table.c). A
 * place is function+offset, then file:line. If functions were inlined, it is the innermost one with its line, followed
 * by < and the place of each inlining.
 */
#include "report/death.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/isa.h"

#define FLUSHED 65536u

/* ---- pieces ---- */

/* Prints a string from an untrusted source. */
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

bool death_place(const struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                 uint64_t address, struct symbol_place *ret_place)
{
  const struct analysis_places *places = printer->options->places;

  return places && places->find(places->data, thread->space, mark, address, ret_place);
}

int death_rows_make(const struct death_printer *printer, const struct analysis_thread *thread,
                    struct analysis_death_rows *ret_rows)
{
  const struct report_death_options *options = printer->options;

  return analysis_death_rows_make(printer->death, options->places, thread, options->show, options->last, ret_rows);
}

int death_stack_make(const struct death_printer *printer, const struct analysis_thread *thread,
                     struct analysis_backtrace *ret_backtrace)
{
  const struct report_death_options *options = printer->options;

  return analysis_backtrace_make(printer->death, options->places, thread, options->files, ret_backtrace);
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

void death_instruction(const struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                       uint64_t address, char *text, size_t size)
{
  const struct analysis_places *places = printer->options->places;
  struct isa_instruction instruction;
  uint8_t bytes[ISA_LENGTH_MAX];
  size_t count = places ? places->code(places->data, thread->space, mark, address, bytes, sizeof(bytes)) : 0;

  *text = 0;
  if (count && isa_decode(ISA_64, false, bytes, count, &instruction) > 0 &&
      isa_format(&instruction, address, text, size) < 0)
    *text = 0;
  squeeze_zeros(text);
}

void death_put_color(struct death_printer *printer, const char *color)
{
  if (printer->options->wants_color)
    death_put(printer, "%s", color);
}

/* file:line, and the functions that it was inlined into. */
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

void death_put_place(struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
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

/* A user who sets a timeout expects a signal. The signal is named only if the usual one did not end the program. */
static void put_timeout(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;

  death_put(printer, "timed out after %g s", death->timeout);
  if (death->ending == ANALYSIS_KILLED && death->signal == SIGKILL)
    death_put(printer, ", and had to be killed: SIGTERM did not end it");
}

static void put_what(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;
  const char *name = death_signal_name(death->signal);
  struct analysis_fault fault;

  if (death->timeout > 0) {
    put_timeout(printer);
    return;
  }
  switch (death->ending) {
  case ANALYSIS_DIED:
    fault = analysis_fault_find(death, printer->options->places);
    death_put_signal(printer, &fault);
    break;
  case ANALYSIS_EXITED:
    death_put(printer, "exited with status %d", death->status);
    if (death->panic)
      death_put(printer, ": a panic of %s; this is where it began", death->panic);
    break;
  case ANALYSIS_KILLED:
    if (name)
      death_put(printer, "killed by SIG%s", name);
    else
      death_put(printer, "ended without a record of why, as SIGKILL does it");
    break;
  case ANALYSIS_ALIVE:
    death_put(printer, "running");
    break;
  case ANALYSIS_UNKNOWN:
    death_put(printer, "executed a program that cannot be recorded; how that ended is not known");
    break;
  }
  if (death->is_native && death->ending != ANALYSIS_UNKNOWN)
    death_put(printer, ", in a program that it had executed and that cannot be recorded");
}

/* Prints the command line only if it has more words than the program's name. */
static void put_command(struct death_printer *printer)
{
  const char *command = printer->death->command;
  size_t first = command ? strcspn(command, " ") : 0;
  char *copy;

  if (!first || (!command[first] && !strncmp(death_base(command), death_base(printer->death->program), first + 1)))
    return;
  copy = printable_copy(command, strlen(command));
  if (copy)
    death_put(printer, ": %s", copy);
  else
    printer->error = -ENOMEM;
  free(copy);
}

/* "process 12 (name), thread 13 (name)"; a single thread has the process's number. */
static void put_who(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;
  const struct analysis_thread *thread = death->thread_count ? &death->threads[0] : NULL;

  death_put(printer, "  in process %u", death->process);
  if (*death->program)
    put_safe(printer, death_base(death->program));
  if (thread && death->ending != ANALYSIS_ALIVE && thread->thread != death->process) {
    death_put(printer, ", thread %u", thread->thread);
    if (*thread->name)
      put_safe(printer, thread->name);
  }
  put_command(printer);
  death_put(printer, "\n");
}

static void put_where(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;
  char instruction[128];

  if (death->ending != ANALYSIS_DIED || !death->thread_count)
    return;
  death_put(printer, "  at 0x%llx ", (unsigned long long)death->rip);
  size_t before = printer->text->length;
  death_put_place(printer, &death->threads[0], ANALYSIS_NOW, death->rip);
  if (printer->error >= 0 && !strncmp(printer->text->data + before, "0x", 2)) { /* only the address is known */
    printer->text->length = before - 1;
    printer->text->data[before - 1] = 0;
  }
  death_instruction(printer, &death->threads[0], ANALYSIS_NOW, death->rip, instruction, sizeof(instruction));
  death_put(printer, "%s%s\n", *instruction ? ": " : "", instruction);
}

/* ---- threads ---- */

/* The words before "of thread". */
static void put_count(struct death_printer *printer, size_t count)
{
  if (count == 1)
    death_put(printer, "last branch");
  else
    death_put(printer, "last %zu branches", count);
}

static void put_gaps(struct death_printer *printer, const struct analysis_thread *thread)
{
  death_put(printer, "%s",
            thread->is_damaged ? ", with gaps: parts of the log make no sense"
            : thread->has_gaps ? ", with gaps: some between them are missing"
                               : "");
}

static void put_thread_title(struct death_printer *printer, const struct analysis_thread *thread,
                             const struct analysis_death_rows *rows)
{
  death_put_color(printer, DEATH_BOLD);
  if (thread->recorder)
    death_put(printer, "last branches");
  else
    put_count(printer, rows->count);
  death_put(printer, " of thread %u", thread->thread);
  if (*thread->name)
    put_safe(printer, thread->name);
  if (!thread->recorder && rows->is_own && !analysis_death_rows_are_last(rows, thread))
    death_put(printer, " in the program's own code");
  death_put(printer, "%s", thread->recorder || rows->count ? ", newest first" : "");
  put_gaps(printer, thread);
  death_put(printer, ":");
  death_put_color(printer, DEATH_PLAIN);
  death_put(printer, "\n");
}

/* The thread and space of the addresses in a recorder. */
struct recorder_names {
  const struct death_printer *printer;
  const struct analysis_thread *thread;
};

static bool recorder_name(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct recorder_names *names = data;
  struct symbol_place place;

  if (!death_place(names->printer, names->thread, ANALYSIS_NOW, address, &place) || (!place.symbol && !place.module))
    return false;
  *ret_name = place.symbol ? place.symbol : death_base(place.module);
  *ret_offset = place.offset;
  return true;
}

void death_recorder(struct death_printer *printer, const struct analysis_thread *thread, enum report_format format)
{
  struct recorder_names names = {printer, thread};
  const struct report_symbols symbols = {&names, recorder_name};
  struct report_options options = {.wants_color = printer->options->wants_color, .symbols = &symbols};

  if (printer->error >= 0)
    printer->error = report_print(printer->text, thread->recorder, format, &options);
}

/* Shows the branches of libraries after the last one of the program's own code. */
static void put_tail(struct death_printer *printer, const struct analysis_thread *thread,
                     const struct analysis_death_rows *rows)
{
  death_put(printer, "\n");
  death_put_color(printer, DEATH_BOLD);
  if (rows->tail_count < rows->tail_total)
    death_put(printer, "the last %zu of %zu branches in libraries behind these, newest first:", rows->tail_count,
              rows->tail_total);
  else if (rows->tail_count == 1)
    death_put(printer, "the branch in libraries behind these:");
  else
    death_put(printer, "the %zu branches in libraries behind these, newest first:", rows->tail_count);
  death_put_color(printer, DEATH_PLAIN);
  death_put(printer, "\n");
  death_put_table(printer, thread, rows->numbers + rows->count, rows->tail_count);
}

static void put_rows(struct death_printer *printer, const struct analysis_thread *thread,
                     const struct analysis_death_rows *rows)
{
  put_thread_title(printer, thread, rows);
  if (!rows->count) {
    death_put(printer, "  none%s\n", rows->is_own && thread->count ? " in the program's own code" : "");
    return;
  }
  death_put_table(printer, thread, rows->numbers, rows->count);
  if (rows->has_no_own)
    death_put(printer, "  none of the %zu branches that are known is in the program's own code\n", thread->count);
  if (rows->tail_count)
    put_tail(printer, thread, rows);
  if (analysis_death_rows_are_all(rows, thread))
    death_put(printer, "  that is all: the thread began there\n");
}

static void put_thread(struct death_printer *printer, const struct analysis_thread *thread)
{
  struct analysis_death_rows rows = {0};

  if (printer->options->format == REPORT_TABLE)
    death_put_stack(printer, thread);
  if (thread->recorder) {
    put_thread_title(printer, thread, &rows);
    death_recorder(printer, thread, printer->options->format);
    return;
  }
  if (printer->error >= 0)
    printer->error = death_rows_make(printer, thread, &rows);
  if (printer->error >= 0) {
    put_rows(printer, thread, &rows);
    analysis_death_rows_done(&rows);
  }
}

static void print_text(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;

  death_put(printer, "lbr: ");
  death_put_color(printer, death->ending == ANALYSIS_DIED || death->ending == ANALYSIS_KILLED ? DEATH_RED : DEATH_BOLD);
  put_what(printer);
  death_put_color(printer, DEATH_PLAIN);
  death_put(printer, "\n");
  put_who(printer);
  put_where(printer);
  for (size_t i = 0; i < death->thread_count; i++) {
    death_put(printer, "\n");
    put_thread(printer, &death->threads[i]);
  }
}

int report_death_print(struct text *text, const struct analysis_death *death,
                       const struct report_death_options *options)
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
