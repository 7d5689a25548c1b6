/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports traces for other tools. One loop reads the trace (export.c); a format is a row of export.def and a file with
 * a struct export_format: functions that are called as the trace is read. A format asks for what it needs: branches in
 * their order, calls, exact counts by location, or the times, system calls and signals of a trace.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "analysis/analysis.h"
#include "base/base.h"
#include "trace/trace.h"

enum export_need {
  EXPORT_BRANCHES = 1u << 0, /* `branches` is called, with the branches that pass the filter */
  EXPORT_CALLS = 1u << 1,    /* `call` is called */
  EXPORT_COUNTS = 1u << 2,   /* `end` finds counts */
  EXPORT_TIMES = 1u << 3,    /* `stamp`, `syscall` and `signal` are called, if the time axis is time; goes with CALLS */
};

/* The time axis of a format that draws calls. */
enum export_by {
  EXPORT_BY_DEFAULT, /* as the format prefers */
  EXPORT_BY_TIME,
  EXPORT_BY_INSTRUCTIONS, /* of the thread; one takes a nanosecond */
};

struct export_job;
struct times_stream;

/* A format. Functions that it does not need are NULL. They return 0, or negative to stop; problems of the trace, as
 * opposed to system errors, are reported by export_fail. */
struct export_format {
  const char *name;
  const char *what;        /* in a few words, for the list of formats */
  const char *suffix;      /* of the file: ".fdata" */
  unsigned needs;          /* enum export_need; BRANCHES and CALLS may go together, COUNTS goes alone. With TIMES, the
                              axis is time by default if the trace has times */
  bool wants_instructions; /* calls come with numbers of instructions */
  bool has_axis;           /* it has a time axis: export_call_time */
  /* Approximate bytes in the file per branch; for a format made from calls, of a typical program. 0: the size does not
   * grow with the trace. */
  unsigned bytes_per_branch;
  size_t state_size; /* of job->state, which is zero at first */
  int (*begin)(struct export_job *job);
  /* Takes every record that describes the trace or is a gap, after `names` has taken it. */
  int (*record)(struct export_job *job, const struct lb_trace_record *record);
  int (*branches)(struct export_job *job, const struct lb_trace_branches *branches);
  int (*call)(struct export_job *job, const struct analysis_call *call);
  /* Each stamp, a system call that has ended, and a signal, in the order of their stream. The latter two come before
   * the stamp that ends them or that they are. */
  int (*stamp)(struct export_job *job, const struct trace_stamp *stamp);
  int (*syscall)(struct export_job *job, const struct analysis_syscall *call);
  int (*signal)(struct export_job *job, const struct trace_stamp *stamp);
  int (*end)(struct export_job *job);
  void (*done)(struct export_job *job); /* frees what the state holds; also after a failure */
};

/* Text for people, which the caller has functions for. They append to the text and return 0, or -ENOMEM. */
struct export_words {
  int (*call)(struct text *text, const struct trace_stamp *stamp);   /* the beginning of a system call */
  int (*result)(struct text *text, uint32_t number, int64_t result); /* what it returned */
  int (*signal)(struct text *text, const struct trace_stamp *stamp);
};

struct export_options {
  const struct export_format *format;
  enum export_by by;                /* for a format that has an axis */
  const struct export_words *words; /* needed for a format with EXPORT_TIMES */
  uint32_t stream;                  /* the only stream to export, or LB_TRACE_ALL */
  /* NULL: all. Its modules also select the binary of a profile of one binary; without any, it is the program that was
   * recorded first. Only functions (what happens in them) and modules (frames of others are left out) apply to calls.
   */
  const struct analysis_filter_options *filter;
  bool has_all_sources; /* lcov: includes sources of the system */
  unsigned window;      /* branches in a sample; 0: the format's default */
  const char *version;  /* for a format that has several; NULL: the default */
};

/* The destination of an export. */
struct export_sink {
  void *data;
  int (*write)(void *data, const void *bytes, size_t size); /* writes all bytes; returns 0, or -errno */
  /* Overwrites bytes that were written before; the new bytes do not reach beyond them. Returns as above; -ESPIPE: the
   * sink cannot do that, for example a pipe. May be NULL. */
  int (*rewrite)(void *data, uint64_t offset, const void *bytes, size_t size);
};

#define EXPORT_MESSAGE 256u

struct export_job {
  struct export_options options;
  struct export_sink sink;
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_counts *counts; /* with EXPORT_COUNTS, in `end` */
  struct analysis_calls *calls;   /* with EXPORT_CALLS */
  struct analysis_clock *clock;   /* NULL: times are not wanted */
  bool is_by_time;                /* the axis is time; known when the first call, stamp, system call or signal comes */
  bool has_start;                 /* the trace says when time 0 was: */
  uint64_t monotonic, realtime;   /* nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME */
  void *state;                    /* of the format */
  uint64_t branches;              /* branches read so far */
  char message[EXPORT_MESSAGE];   /* why it failed, if the error alone does not say it; or a warning */
  struct analysis_filter *filter; /* NULL: all is wanted. Branches, calls and counts have passed it */
  struct text text;               /* private to export.c: text that has not been written yet */
  struct analysis_calls_filter *calls_filter;
  struct times_stream *times; /* private to times.c */
  size_t time_count, time_capacity;
  bool is_axis_chosen, has_untimed;
  int error;
};

/* The formats, from 0 on; NULL past the last. The one with this name; NULL if there is none. */
const struct export_format *export_format_get(size_t number);
const struct export_format *export_format_find(const char *name);

/* Gives the next record: as lb_trace_reader_next. */
typedef int export_next(void *data, struct lb_trace_record *ret_record);

struct export_input {
  struct lb_trace_reader *reader;
  export_next *next;           /* reads from the reader; NULL: lb_trace_reader_next */
  analysis_progress *progress; /* NULL: progress is not wanted */
  void *data;                  /* handed to both */
  struct analysis_names *names;
};

/* Reads the trace and writes the export. Returns 0; LB_E_NO_ENTRY, with a message: the trace has nothing that this
 * format could contain (no file is to be kept then); the error of the sink; an error of reading; -ENOMEM. The message
 * is "" if the error says it all; after success it is a warning, or "". */
int export_run(const struct export_options *options, const struct export_input *input, const struct export_sink *sink,
               char ret_message[EXPORT_MESSAGE]);

/* ---- for formats ---- */

/* Write. An error is kept, and export_run returns it: callers need not check after each piece. */
void export_put(struct export_job *job, const void *bytes, size_t size);
void export_print(struct export_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void export_u8(struct export_job *job, unsigned value);
void export_u16(struct export_job *job, unsigned value);
void export_u32(struct export_job *job, uint32_t value);
void export_u64(struct export_job *job, uint64_t value);
void export_json(struct export_job *job, const char *string); /* quoted; "null" for NULL */

/* Overwrites bytes that were written before, for a header that is known last. A size of 0 only asks whether this is
 * possible. Returns 0, -ESPIPE if it cannot, or another error, which is kept. */
int export_rewrite(struct export_job *job, uint64_t offset, const void *bytes, size_t size);

/* Fails because there is nothing to export. Returns LB_E_NO_ENTRY; the message is kept. */
int export_fail(struct export_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Warns the user although the export is written. Only the last warning is kept. */
void export_warn(struct export_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Is any code of this file, or the code at this location, wanted? */
bool export_has_file(const struct export_job *job, uint32_t file);
bool export_has_location(const struct export_job *job, const struct analysis_location *location);

/* The place of a call on the time axis, in nanoseconds since the start of the recording or in instructions. It is never
 * before that of an earlier call of the same stream. Returns 0, or -ENOMEM. */
int export_call_time(struct export_job *job, const struct analysis_call *call, uint64_t *ret_time);

/* The name of a module that was asked for; NULL: none was. */
const char *export_module(const struct export_job *job);

/* The binary that a profile of one binary describes. Returns its number, or LB_E_NO_ENTRY after export_fail: no module
 * of that name ran. */
int export_file(struct export_job *job, uint32_t *ret_file);

#endif
