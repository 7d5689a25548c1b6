/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of a trace as lines, in their order: all of them, those that a filter lets pass, or those around certain
 * ones.
 */
#ifndef REPORT_SCRIPT_H
#define REPORT_SCRIPT_H

#include "analysis/analysis.h"

struct text;

/* The fields that a line can have. */
enum report_field {
  REPORT_FIELD_THREAD,
  REPORT_FIELD_PROCESS,
  REPORT_FIELD_TID,
  REPORT_FIELD_NAME,
  REPORT_FIELD_NUMBER,
  REPORT_FIELD_FROM,
  REPORT_FIELD_TO,
  REPORT_FIELD_FROM_SYM,
  REPORT_FIELD_TO_SYM,
  REPORT_FIELD_FROM_MODULE,
  REPORT_FIELD_TO_MODULE,
  REPORT_FIELD_MODULE,
  REPORT_FIELD_FROM_LINE,
  REPORT_FIELD_TO_LINE,
  REPORT_FIELD_KIND,
  REPORT_FIELD_FLAGS,
  REPORT_FIELD_CPL,
  REPORT_FIELD_INSN,
  REPORT_FIELD_TIME,
  REPORT_FIELD_CPU,
  REPORT_FIELDS,
};

/* "thread", "from_sym", ...; NULL past the last. */
const char *report_field_name(unsigned field);

/* The field with this name. Returns >= 0, or -EINVAL. */
int report_field_find(const char *word);

/* Lines for system calls, signals, and threads that begin and end. */
enum report_events { REPORT_EVENTS_NONE, REPORT_EVENTS_TOO, REPORT_EVENTS_ONLY };

struct report_script_options {
  bool is_json;                   /* an object in each line */
  uint32_t stream;                /* the only stream to print, or LB_TRACE_ALL */
  uint64_t limit;                 /* most branches to print; UINT64_MAX: all */
  struct analysis_names *names;   /* NULL: addresses only. The script passes modules to it */
  struct analysis_filter *filter; /* NULL: all branches. The script passes streams and modules to it */
  /* Not NULL: of the branches that pass the filter, only `context` before and after each entry to this target are
   * printed. It is entered when a branch leads to it from elsewhere, or calls it. */
  const struct analysis_target *around;
  uint32_t context;
  uint8_t fields[REPORT_FIELDS]; /* enum report_field, each once, */
  size_t field_count;            /* 0: thread, number, from and to with their symbols, kind, flags */
  struct analysis_code *code;    /* for REPORT_FIELD_INSN; else may be NULL */
  enum report_events events;
  uint64_t from, to; /* only what happened from `from` on and before `to`, in nanoseconds. `to` 0: no end */
  const struct lb_trace_reader *reader; /* for times: asked for stamps */
};

/* Do these options need times? The reader must then be asked for stamps. */
bool script_needs_times(const struct report_script_options *options);

#define REPORT_CONTEXT_MAX 65536u
#define REPORT_CONTEXT_BYTES (UINT64_C(128) << 20) /* for branches before an entry, of all streams together */

struct report_script;

/* Returns 0, or -ENOMEM. */
int report_script_new(const struct report_script_options *options, struct report_script **ret_script);
void report_script_free(struct report_script *script); /* takes NULL */

/* Appends the lines of a record, if it has any: a line for each branch, or for a gap. Returns 1; 0 when as many
 * branches as wanted were printed; LB_E_TOO_BIG: REPORT_CONTEXT_BYTES is not enough for so many streams; -ENOMEM: some
 * of the lines may be missing. */
int report_script_record(struct report_script *script, const struct lb_trace_record *record, struct text *text);

/* To be called after the last record: appends lines for what has not ended. Returns 0, or -ENOMEM. */
int report_script_end(struct report_script *script, struct text *text);

/* Whether times were needed, and the records had none. */
bool report_script_lacks_times(const struct report_script *script);

/* Skips the next `count` branches that would get a line. Not for use with `around`. */
void report_script_skip(struct report_script *script, uint64_t count);

/* The number of branches printed so far. */
uint64_t report_script_count(const struct report_script *script);

#endif
