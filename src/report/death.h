/* SPDX-License-Identifier: Apache-2.0
 *
 * The code that the layouts of a report on a program's end share: death.c for people, with death_stack.c and
 * death_table.c, death_json.c for programs; death_signal.c has the words. src/analysis computes the contents.
 */
#ifndef REPORT_DEATH_H
#define REPORT_DEATH_H

#include "report/printer.h"
#include "report/report.h"
#include "symbol/symbol.h"

/* A report that is being printed. Remembers its first failure, after which nothing is added any more. */
struct death_printer {
  struct text *text;
  size_t before; /* length that the text had */
  int error;
  const struct analysis_death *death;
  const struct report_death_options *options;
};

#define death_put(printer, ...) report_put((printer)->text, &(printer)->error, __VA_ARGS__)

/* Passes the text to `flush` if it has grown long. To be called between rows. */
void death_flush(struct death_printer *printer);

/* Finds what is at an address of a thread. Returns false if nothing is known. */
bool death_place(const struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                 uint64_t address, struct symbol_place *ret_place);

/* The instruction there as text; "" if it is not known. */
void death_instruction(const struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                       uint64_t address, char *text, size_t size);

/* ---- for people ---- */

#define DEATH_BOLD "\033[1m"
#define DEATH_RED "\033[1;31m"
#define DEATH_PLAIN "\033[0m"

/* Prints the escape sequence of a colour, if colours are wanted. */
void death_put_color(struct death_printer *printer, const char *color);

/* Prints function and offset, then file and line, as far as they are known. */
void death_put_place(struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                     uint64_t address);

/* Prints branches of a thread, at least one, in columns (death_table.c). `numbers` are their indices in its list, in
 * the order of printing. */
void death_put_table(struct death_printer *printer, const struct analysis_thread *thread, const size_t *numbers,
                     size_t count);

/* The call stack of a thread (death_stack.c). */
void death_put_stack(struct death_printer *printer, const struct analysis_thread *thread);

/* ---- both ---- */

/* Prints the contents of a recorder. */
void death_recorder(struct death_printer *printer, const struct analysis_thread *thread, enum report_format format);

/* The last part of a path. */
const char *death_base(const char *path);

void death_print_json(struct death_printer *printer);

/* The branches of a thread that are printed, and its call stack. Return 0 or -ENOMEM. */
int death_rows_make(const struct death_printer *printer, const struct analysis_thread *thread,
                    struct analysis_death_rows *ret_rows);
int death_stack_make(const struct death_printer *printer, const struct analysis_thread *thread,
                     struct analysis_backtrace *ret_backtrace);

/* The frames of a stack that are printed: all but some in the middle of a deep one. */
#define DEATH_FRAMES_NEWEST 64u
#define DEATH_FRAMES_OLDEST 16u
static inline bool death_frame_is_shown(size_t number, size_t count)
{
  return number < DEATH_FRAMES_NEWEST || count - number <= DEATH_FRAMES_OLDEST;
}

/* ---- words (death_signal.c) ---- */

/* "SEGV"; NULL for a number that is no signal. */
const char *death_signal_name(int signal);

/* "SEGV_MAPERR", NULL if it has no name. */
const char *death_code_name(int signal, int code);

/* Appends a sentence without full stop: "Segmentation fault: wrote to 0x0, which is not mapped". */
void death_put_signal(struct death_printer *printer, const struct analysis_fault *fault);

#endif
