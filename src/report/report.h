/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what a recording unit holds: as a table to read, as the two layouts of the WinDbg extension `!lbr` that Zhang
 * Yinkui shows in chapter 5 of 《软件调试》, or as JSON. Only looks: the recorder stays as it is.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "lastbranch/recorder.h"

enum report_format {
  REPORT_TABLE,
  REPORT_WINDBG,     /* the layout that the tool has for this CPU: old for combined registers, else new */
  REPORT_WINDBG_OLD, /* that of extension 1.0.0.2, made for the Pentium M */
  REPORT_JSON,
  REPORT_FORMATS,
};

/* "table", "windbg", "windbg-old", "json"; NULL past the last. */
const char *report_format_name(unsigned format);

/* The format with this name. Returns >= 0, or -EINVAL. */
int report_format_find(const char *word);

/* Names for addresses. */
struct report_symbols {
  void *data; /* handed to find */
  /* Which symbol `address` belongs to, and how far behind its start. Returns false, touching nothing, if there is none.
   * The name must stay good until the next call, and hold no control characters. */
  bool (*find)(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset);
};

/* What the head of the WinDbg layouts says. Zero means: what fits the layout and the CPU. */
struct report_windbg {
  const char *banner;     /* first line */
  const char *version;    /* second line */
  unsigned family, model; /* DisplayFamily and DisplayModel; by default those of the CPU's first model */
  unsigned flags; /* of the stack line. The book shows 0x4 for Kaby Lake and does not explain it; see windbg.c */
};

struct report_options {
  bool wants_color;                     /* table only */
  const struct report_symbols *symbols; /* NULL: addresses only */
  const struct report_windbg *windbg;   /* NULL: all zero */
};

/* Appends what `recorder` holds to `text`, each line ended. `options` may be NULL.
 * Returns 0, or -ENOMEM: the text is then as it was before.
 */
int report_print(struct text *text, const struct lb_recorder *recorder, enum report_format format,
                 const struct report_options *options);

#endif
