/* SPDX-License-Identifier: Apache-2.0
 *
 * The views of a machine: the contents of its recording unit, its registers, the DS area in the guest's memory
 * (machine_dump.c), its performance counters (machine_events.c), and the result of a run (machine_result.c).
 */
#ifndef REPORT_MACHINE_PAGE_H
#define REPORT_MACHINE_PAGE_H

#include "base/base.h"
#include "lastbranch/branch.h"
#include "report/format.h"
#include "report/page.h"

struct cpu;
struct machine;
struct symbol_table;

/* The parts of --dump. */
enum machine_dump {
  DUMP_LBR = 1 << 0,
  DUMP_DS = 1 << 1,
  DUMP_BTS = 1 << 2,
  DUMP_PEBS = 1 << 3,
  DUMP_REGS = 1 << 4,
  DUMP_MSRS = 1 << 5,
};

struct machine_view {
  struct machine *machine;
  struct symbol_table *symbols; /* NULL: none */
  unsigned dumps;               /* that are wanted: enum machine_dump */
};

/* ---- pieces of a page: each a section, a table or a list ---- */

void machine_page_regs(const struct machine_view *view, struct page *page);
void machine_page_msrs(const struct machine_view *view, struct page *page);
void machine_page_ds(const struct machine_view *view, struct page *page);
void machine_page_bts(const struct machine_view *view, struct page *page);
void machine_page_pebs(const struct machine_view *view, struct page *page);
/* Prints the events that the guest's counters are programmed for although the model does not count them. */
void machine_page_events(const struct machine_view *view, struct page *page);

/* ---- text ---- */

/* Registers in a few lines. */
void machine_text_registers(const struct cpu *cpu, struct text *text);

/* Appends what the recording unit holds. Returns as report_print. */
int machine_text_records(const struct machine_view *view, enum report_format format, bool wants_color,
                         struct text *text);

/* Appends the events that are not modelled, "A, B". Returns how many there are. */
unsigned machine_text_unmodelled(const struct machine_view *view, struct text *text);
/* Appends these events, and what the counters of the shown processor count. Returns 0 or -ENOMEM. */
int machine_text_events(const struct machine_view *view, struct text *output);

/* ---- results ---- */

/* Writes what view->dumps asks for, of every processor. */
void machine_page_dumps(const struct machine_view *view, enum report_format format, const struct report_output *output);

/* A run that is over. */
struct machine_result {
  const char *end;    /* why: a word */
  bool has_exit;      /* the guest wrote an exit value */
  double seconds;     /* of the user's clock */
  bool wants_screens; /* all of the text memory, not only what is shown */
  const char *serial; /* output of the serial line; only its end if it was long */
  size_t serial_dropped;
  const struct lb_branch *last; /* the last branches that a trace was given, a ring: the newest is at total - 1 */
  size_t last_size;
  uint64_t total;
};

/* The one object of --json. */
void machine_page_result(const struct machine_view *view, const struct machine_result *result,
                         const struct report_output *output);

/* The rows of the screen. */
void machine_page_screen(const struct machine_view *view, bool is_all, const struct report_output *output);

/* Appends everything that may explain why a guest died. */
void machine_text_death(const struct machine_view *view, const struct machine_result *result, struct text *text);

#endif
