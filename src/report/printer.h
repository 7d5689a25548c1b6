/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that the layouts of this folder share: a printer that remembers its first failure, so that the layouts need not
 * check after every piece, and the few queries that all of them make to a recorder.
 */
#ifndef REPORT_PRINTER_H
#define REPORT_PRINTER_H

#include "report/report.h"

struct printer {
  struct text *text;
  int error; /* 0, or the first failure, after which nothing is added any more */
  const struct lb_recorder *recorder;
  const struct lb_cpu *cpu;
  struct report_options options;
};

/* Appends to a text, unless `error` holds an earlier failure, and sets `error`. */
void report_put(struct text *text, int *error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define printer_put(printer, ...) report_put((printer)->text, &(printer)->error, __VA_ARGS__)

/* The symbol of an address. Returns false if there is none, or no symbols at all. */
bool printer_symbol(const struct printer *printer, uint64_t address, const char **ret_name, uint64_t *ret_offset);

/* The value of the first register of this id. Returns false if the CPU has none, or it cannot be read. */
bool printer_register(const struct printer *printer, enum lb_register id, uint64_t *ret_value);

/* The entry number in TOS, without its other bits. Returns false on a CPU without TOS. */
bool printer_tos(const struct printer *printer, unsigned *ret_tos);

/* The newest branch in registers beside the stack (Zen 3 and later). Returns false if there are none, or they are
 * empty.
 */
bool printer_pair(const struct printer *printer, uint64_t *ret_from, uint64_t *ret_to);

/* Entries in use. */
unsigned printer_depth(const struct printer *printer);

void printer_table(struct printer *printer);
void printer_windbg(struct printer *printer);
void printer_windbg_old(struct printer *printer);
void printer_json(struct printer *printer);

#endif
