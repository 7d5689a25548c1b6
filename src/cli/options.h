/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that several commands have, with the same spelling and meaning everywhere. Each group below is an argp of its
 * own. A command lists its groups in the `children` of its argp and, at ARGP_KEY_INIT, calls shared_options_give. The
 * groups store what they read in a struct shared_options of the command.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/report.h"

struct shared_options {
  uint64_t top;    /* --top: rows; UINT64_MAX: all of them, or the option was not given */
  uint64_t tail;   /* --tail: branches of each thread; UINT64_MAX: not given */
  uint64_t limit;  /* --limit: bytes; 0: not given */
  uint32_t stream; /* --thread; LB_TRACE_ALL: not given */
  const char
    *thread_name; /* --thread with a word that is no number, for shared_options_settle; NULL: it was a number */
  const char *output;
  bool has_symbols; /* no --no-symbols */
  bool is_mangled;  /* --no-demangle */
  bool is_json;
  /* Set by the command before it parses: */
  const char *top_default, *tail_default, *limit_default; /* defaults for the help; NULL: "all" */
  bool is_cut_off; /* lines that are too long for the terminal are cut off; otherwise their names are shortened */
  const char *output_default; /* the command writes to `output` itself, and this is where it writes without it; NULL:
                                 the options redirect standard output */
};

void shared_options_init(struct shared_options *options);

/* The groups, for `children`: a command's list ends with SHARED_COMMON and {0}. */
#define SHARED_GROUP(name)                                                                                             \
  {                                                                                                                    \
    &shared_##name, 0, NULL, 0                                                                                         \
  }
#define SHARED_COMMON SHARED_GROUP(common)     /* -h, --color, --quiet: every command has them */
#define SHARED_JSON SHARED_GROUP(json)         /* -j, --json */
#define SHARED_OUTPUT SHARED_GROUP(output)     /* -o, --output */
#define SHARED_TOP SHARED_GROUP(top)           /* --top */
#define SHARED_TAIL SHARED_GROUP(tail)         /* -n, --tail */
#define SHARED_LIMIT SHARED_GROUP(limit)       /* --limit */
#define SHARED_THREAD SHARED_GROUP(thread)     /* --thread */
#define SHARED_SYMBOLS SHARED_GROUP(symbols)   /* --no-symbols */
#define SHARED_DEMANGLE SHARED_GROUP(demangle) /* --no-demangle */
#define SHARED_NAMES SHARED_GROUP(names)       /* --long-names */

extern const struct argp shared_common, shared_json, shared_output, shared_top, shared_tail, shared_limit,
  shared_thread, shared_symbols, shared_demangle, shared_names;

/* For commands without other groups. */
extern const struct argp_child shared_only_common[];

/* Tells argp where the groups among `children` store their values. Call it at ARGP_KEY_INIT. */
void shared_options_give(struct argp_state *state, const struct argp_child *children, struct shared_options *options);

/* --thread with a word: finds its thread in the trace `file` and sets `stream`. Returns 0, or negative after a
 * message. */
int shared_options_settle(const char *file, struct shared_options *options);

/* ---- values ---- */

/* ARGP_KEY_ARG of a command with one trace: its name. A second one is reported by argp. */
void option_trace(const char **file, char *argument, struct argp_state *state);

/* A number from `least` to `most`; anything else is a usage error. `name` is the option with its dashes. */
uint64_t option_number(const char *name, const char *argument, uint64_t least, uint64_t most, struct argp_state *state);

/* The same, or the word "all" for UINT64_MAX. */
uint64_t option_rows(const char *name, const char *argument, struct argp_state *state);

/* A size in bytes: digits, and K, M, G or T for powers of 1024. */
uint64_t option_size(const char *name, const char *argument, uint64_t least, uint64_t most, struct argp_state *state);

/* A time, as seconds: a number with a suffix ms, s, m or h, without one in seconds. */
double option_seconds(const char *name, const char *argument, struct argp_state *state);

/* "FROM,TO", "FROM," or ",TO": a span of time for --time, in nanoseconds. A missing start is 0, and so is a missing
 * end. Changes `argument`. */
void option_time_span(char *argument, uint64_t *from, uint64_t *to, struct argp_state *state);

/* "A..B", "A.." or "..B": numbers of branches for --between; a missing side is unchanged. */
void option_between(const char *argument, uint64_t *first, uint64_t *last, struct argp_state *state);

/* The name of a format for --format; anything else is a usage error. */
enum report_format option_format(const char *argument, struct argp_state *state);

/* Prints to stderr that an option has a new name. Old names are hidden in the help and work for one version. */
void option_renamed(const char *old, const char *name);

#endif
