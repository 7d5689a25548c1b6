/* SPDX-License-Identifier: Apache-2.0
 *
 * The code that the layouts of a report on a program's end share: death.c for people, with death_stack.c and
 * death_table.c, death_json.c for programs; death_rows.c chooses the branches, death_signal.c has the words.
 */
#ifndef REPORT_DEATH_H
#define REPORT_DEATH_H

#include "report/report.h"
#include "symbol/symbol.h"

/* A report that is being printed. Remembers its first failure, after which nothing is added any more. */
struct death_printer {
  struct text *text;
  size_t before; /* length that the text had */
  int error;
  const struct report_death *death;
  const struct report_death_options *options;
};

void death_put(struct death_printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Hands the text to `flush` if it has grown long. To be called between rows. */
void death_flush(struct death_printer *printer);

/* What is at an address of a thread. Returns false if nothing is known. */
bool death_place(const struct death_printer *printer, const struct report_thread *thread, uint32_t mark,
                 uint64_t address, struct symbol_place *ret_place);

/* The instruction there as text; "" if it is not known. */
void death_instruction(const struct death_printer *printer, const struct report_thread *thread, uint32_t mark,
                       uint64_t address, char *text, size_t size);

/* The mark for the target of a branch: that of the next branch, which is in the same path. */
static inline uint32_t death_to_mark(const struct report_thread *thread, size_t number)
{
  return number + 1 < thread->count ? thread->marks[number + 1] : REPORT_NOW;
}

/* ---- for people ---- */

#define DEATH_BOLD "\033[1m"
#define DEATH_RED "\033[1;31m"
#define DEATH_PLAIN "\033[0m"

/* Only if colours are wanted. */
void death_put_color(struct death_printer *printer, const char *color);

/* Function and offset, then file and line, as far as they are known. */
void death_put_place(struct death_printer *printer, const struct report_thread *thread, uint32_t mark,
                     uint64_t address);

/* Branches of a thread, at least one, in columns (death_table.c): their numbers in its list, in the order in which they
 * are printed. */
void death_put_table(struct death_printer *printer, const struct report_thread *thread, const size_t *numbers,
                     size_t count);

/* The call stack of a thread (death_stack.c). */
void death_put_stack(struct death_printer *printer, const struct report_thread *thread);

/* ---- both ---- */

/* What a recorder holds. */
void death_recorder(struct death_printer *printer, const struct report_thread *thread, enum report_format format);

/* The last part of a path. */
const char *death_base(const char *path);

void death_print_json(struct death_printer *printer);

/* Which branches of a thread are printed (death_rows.c): numbers in its list, the newest first. */
struct death_rows {
  size_t *numbers; /* `count` of them; behind these `tail_count` of libraries' */
  size_t count, capacity;
  size_t tail_count,
    tail_total;    /* of the newer branches, all in libraries: how many are printed, and how many there are */
  bool is_own;     /* only those in the program's own code */
  bool has_no_own; /* own code was wanted, but there is none: branches of all code are printed */
};

/* Returns 0 or -ENOMEM. */
int death_rows_make(const struct death_printer *printer, const struct report_thread *thread,
                    struct death_rows *ret_rows);
void death_rows_done(struct death_rows *rows);

/* Are these all that the thread took? */
bool death_rows_are_all(const struct death_rows *rows, const struct report_thread *thread);
bool death_rows_are_last(const struct death_rows *rows, const struct report_thread *thread);

/* Does this branch of a thread come from the program's own code, or lead there? */
bool death_branch_is_own(const struct death_printer *printer, const struct report_thread *thread, size_t number);

/* Where a thread is: for the thread that died, where it died; for others, where their last branch led. Returns false:
 * not known. */
bool death_at(const struct death_printer *printer, const struct report_thread *thread, uint64_t *ret_address);

/* The call stack of a thread; an empty one if none can be made. Returns 0 or -ENOMEM. */
struct report_backtrace;
int death_stack_make(const struct death_printer *printer, const struct report_thread *thread,
                     struct report_backtrace *ret_backtrace);

/* The frames of a stack that are printed: all but some in the middle of a deep one. */
#define DEATH_FRAMES_NEWEST 64u
#define DEATH_FRAMES_OLDEST 16u
static inline bool death_frame_is_shown(size_t number, size_t count)
{
  return number < DEATH_FRAMES_NEWEST || count - number <= DEATH_FRAMES_OLDEST;
}

/* ---- words (death_signal.c) ---- */

enum death_access { ACCESS_UNKNOWN, ACCESS_READ, ACCESS_WRITE, ACCESS_EXECUTE };

/* How the faulting instruction accessed the address: worked out from its bytes and the registers. */
enum death_access death_access(const struct death_printer *printer);

/* The address, of those that the instruction used, that is not canonical: a general protection fault does not report
 * it. Returns false if it had none. */
bool death_bad_address(const struct death_printer *printer, uint64_t *ret_address);

/* The target of a return, call or jump that failed because the target cannot be an address: the processor stays at the
 * branch then. Returns false if the program did not die so. */
bool death_bad_target(const struct death_printer *printer, uint64_t *ret_target);

/* "SEGV"; NULL for a number that is no signal. */
const char *death_signal_name(int signal);

/* "SEGV_MAPERR", NULL if it has no name. */
const char *death_code_name(int signal, int code);

/* Appends a sentence without full stop: "Segmentation fault: wrote to 0x0, which is not mapped". */
void death_put_signal(struct death_printer *printer);

#endif
