/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the contents of a recording unit: as a table to read, as the two layouts of the WinDbg extension `!lbr` that
 * Zhang Yinkui shows in chapter 5 of 《软件调试》, or as JSON. The recorder is only read, never changed.
 *
 * The rest is about traces: names for addresses, branches as lines, and numbers. Each takes the records of a trace one
 * after the other; the caller reads them, opens the files and prints.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "lastbranch/recorder.h"
#include "lastbranch/trace.h"
#include "report/annotate_page.h" /* IWYU pragma: export */
#include "report/call_text.h"     /* IWYU pragma: export */
#include "report/calls_page.h"    /* IWYU pragma: export */
#include "report/cpu_page.h"      /* IWYU pragma: export */
#include "report/decode.h"        /* IWYU pragma: export */
#include "report/diff_page.h"     /* IWYU pragma: export */
#include "report/fit.h"           /* IWYU pragma: export */
#include "report/format.h"        /* IWYU pragma: export */
#include "report/hot_page.h"      /* IWYU pragma: export */
#include "report/machine_page.h"  /* IWYU pragma: export */
#include "report/output.h"        /* IWYU pragma: export */
#include "report/page.h"          /* IWYU pragma: export */
#include "report/register.h"      /* IWYU pragma: export */
#include "report/replay_page.h"   /* IWYU pragma: export */
#include "report/script.h"        /* IWYU pragma: export */
#include "report/script_page.h"   /* IWYU pragma: export */
#include "report/source_lines.h"  /* IWYU pragma: export */
#include "report/source_paths.h"  /* IWYU pragma: export */
#include "report/stat_page.h"     /* IWYU pragma: export */
#include "report/syscalls_page.h" /* IWYU pragma: export */
#include "report/view.h"          /* IWYU pragma: export */
#include "report/words.h"         /* IWYU pragma: export */

/* Names for addresses. */
struct report_symbols {
  void *data; /* handed to find */
  /* Finds the symbol that `address` belongs to, and the offset from its start. Returns false, touching nothing, if
   * there is none. The name must stay valid until the next call, and contain no control characters. */
  bool (*find)(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset);
};

/* The head of the WinDbg layouts. A zero stands for a value that fits the layout and the CPU. */
struct report_windbg {
  const char *banner;     /* first line */
  const char *version;    /* second line */
  unsigned family, model; /* DisplayFamily and DisplayModel; by default those of the CPU's first model */
  unsigned flags; /* of the stack line. The book shows 0x4 for Kaby Lake and does not explain it; see windbg.c */
};

/* A recorder that holds what was read from a real processor: no model saw the branches, so their kinds are not known;
 * PERF_CAPABILITIES and the classic pair of Zen 3 and later are shown. */
struct report_live {
  unsigned number;          /* of the processor */
  const char *const *notes; /* remarks about the reading; not in the WinDbg layouts */
  size_t note_count;
};

struct report_options {
  bool wants_color;                     /* table only */
  const struct report_symbols *symbols; /* NULL: addresses only */
  const struct report_windbg *windbg;   /* NULL: all zero */
  const struct report_live *live;       /* NULL: the recorder itself recorded the branches */
};

/* Appends the contents of `recorder` to `text`, in whole lines. `options` may be NULL. Returns 0, or -ENOMEM: the text
 * is then as it was before. */
int report_print(struct text *text, const struct lb_recorder *recorder, enum report_format format,
                 const struct report_options *options);

/* ---- the end of a program, and its last branches ---- */

struct report_death_options {
  enum analysis_show show;
  size_t last; /* branches of one thread that are printed, of its own code and of libraries; 0: all */
  const struct analysis_files *files; /* for the call stack, as for analysis_names_new */
  enum report_format format;          /* without a recorder WINDBG is TABLE */
  bool wants_color;
  unsigned width; /* columns of a line: locations that do not fit are cut. 0: not known */
  const struct analysis_places *places;
  /* Not NULL: called with `data` and the text whenever that has grown long; it must empty the text. */
  void (*flush)(void *data, struct text *text);
  void *data;
};

/* Appends the report to `text`, in whole lines; as JSON, one object. Returns 0, or -ENOMEM: the text is then as it was
 * before, or as `flush` left it. */
int report_death_print(struct text *text, const struct analysis_death *death,
                       const struct report_death_options *options);

#endif
