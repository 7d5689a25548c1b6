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
#include "report/view.h"          /* IWYU pragma: export */
#include "report/words.h"         /* IWYU pragma: export */

/* Names for addresses. */
struct report_symbols {
  void *data; /* handed to find */
  /* Which symbol `address` belongs to, and how far behind its start. Returns false, touching nothing, if there is none.
   * The name must stay good until the next call, and hold no control characters. */
  bool (*find)(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset);
};

/* The head of the WinDbg layouts. Zero means: a value that fits the layout and the CPU. */
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

/* Appends what `recorder` holds to `text`, each line ended. `options` may be NULL.
 * Returns 0, or -ENOMEM: the text is then as it was before.
 */
int report_print(struct text *text, const struct lb_recorder *recorder, enum report_format format,
                 const struct report_options *options);

/* ---- the end of a program, and its last branches ---- */

struct symbol_place;

/* Resolves addresses: to files, and to the code that is there. `mark` is the branch's own mark; REPORT_NOW stands for
 * the end of the program. */
#define REPORT_NOW UINT32_MAX

struct report_piece {
  uint64_t start, size; /* addresses */
  uint64_t offset;      /* of `start` in the file */
  const char *path;
};

struct report_places {
  void *data; /* handed to the functions */
  /* What is at an address of a thread's address space. Returns false, touching nothing, if nothing is known. The
   * strings are fit to be printed, and good until the report is printed. */
  bool (*find)(void *data, uint32_t space, uint32_t mark, uint64_t address, struct symbol_place *ret_place);
  /* The bytes of code there. Returns how many there are, at most `size`. */
  size_t (*code)(void *data, uint32_t space, uint32_t mark, uint64_t address, uint8_t *bytes, size_t size);
  /* The piece of a file there; the path is good as long as the places. Returns false, touching nothing, if there is
   * none. May be NULL: there is then no call stack, and all code is the program's own. */
  bool (*piece)(void *data, uint32_t space, uint32_t mark, uint64_t address, struct report_piece *ret_piece);
};

struct report_thread {
  uint32_t thread; /* the system's number */
  uint32_t space;  /* for the places */
  const char *name;
  const struct lb_branch *branches; /* in the order in which they were taken */
  const uint32_t *marks;            /* of each branch */
  size_t count;
  size_t first;                       /* branches before this one are cut off from those behind by a gap */
  bool is_cut;                        /* there were older branches, which are gone */
  bool is_damaged;                    /* some are missing between them: the log is invalid there */
  bool has_gaps;                      /* some are missing between them: the source did not give them */
  const struct lb_recorder *recorder; /* not NULL: what this recorder holds is printed instead of the branches */
};

enum report_ending {
  REPORT_DIED,    /* a signal killed it, and left a record of it */
  REPORT_EXITED,  /* it ended by itself */
  REPORT_KILLED,  /* a signal that cannot be observed killed it: SIGKILL */
  REPORT_ALIVE,   /* it runs on */
  REPORT_UNKNOWN, /* it ended in a program that cannot be recorded, and how is not known */
};

struct report_death {
  enum report_ending ending;
  uint32_t process;    /* the system's number */
  const char *program; /* path; "": not known */
  const char *command; /* its words, or the title that it has set; "" or NULL: not known */
  double timeout;      /* seconds after which the program was made to end; 0: it was not */
  int signal, code;    /* REPORT_DIED: number and si_code, REPORT_KILLED: number */
  uint64_t address;    /* si_addr */
  int status;          /* REPORT_EXITED */
  const char *panic; /* REPORT_EXITED: the language whose runtime ended it, NULL: none. The branches of the first thread
                        end where that began */
  bool is_native;    /* it had executed a program that cannot be recorded, and that program ended */
  uint64_t rip, flags, registers[16]; /* REPORT_DIED: at the end; in the order of the encoding */
  bool has_top;                       /* `top` is the word that RSP pointed to */
  uint64_t top;
  const struct report_thread *threads; /* the thread that ended the process comes first */
  size_t thread_count;
};

/* Which branches of a thread are printed. The program's own code is that of its executable, of files outside the
 * system's folders of libraries (/lib*, /usr/lib*, /nix/store, /gnu/store), and code in no file. */
enum report_show {
  REPORT_SHOW_OWN_FIRST, /* the last ones in its own code, and then those of libraries behind them */
  REPORT_SHOW_OWN,       /* the last ones in its own code */
  REPORT_SHOW_ALL,       /* the last ones */
};

struct report_death_options {
  enum report_show show;
  size_t last; /* branches of one thread that are printed, of its own code and of libraries; 0: all */
  const struct analysis_files *files; /* for the call stack, as for analysis_names_new */
  enum report_format format;          /* without a recorder WINDBG is TABLE */
  bool wants_color;
  unsigned width; /* columns of a line: locations that do not fit are cut. 0: not known */
  const struct report_places *places;
  /* Not NULL: called with `data` and the text whenever that has grown long; it must empty the text. */
  void (*flush)(void *data, struct text *text);
  void *data;
};

/* Appends it to `text`, each line ended; as JSON, one object. Returns 0, or -ENOMEM: the text is then as it was before,
 * or as `flush` left it. */
int report_death_print(struct text *text, const struct report_death *death, const struct report_death_options *options);

#endif
