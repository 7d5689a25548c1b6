/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for the other folders: the public header, and paths for code that makes entries or walks through them.
 * doc/trace-format.md describes the bytes.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "lastbranch/trace.h" /* IWYU pragma: export */
#include "trace/call.h"       /* IWYU pragma: export */
#include "trace/path.h"       /* IWYU pragma: export */

/* Tells whether the stream ended with an event without a target, such as the signal that kills a program, and at which
 * address. May be called when lb_trace_reader_next has returned 0 after lb_trace_reader_tail. Returns false, touching
 * nothing, if the stream ended otherwise, or the trace does not say. */
bool trace_reader_end(const struct lb_trace_reader *reader, uint64_t *ret_address);

/* Ends a stream that will not continue: writes its open chunk, and frees its memory for another stream. Returns 0, or
 * the error of the writer. */
int trace_writer_end(struct lb_trace_writer *writer, uint32_t stream);

/* Frees what the writer knows of the steps with numbers from `first` to before `end`. Entries will not name them any
 * more, and no stream of the space will continue. If they come again nevertheless, the writer looks them up as new
 * ones. */
void trace_writer_forget(struct lb_trace_writer *writer, uint32_t space, uint32_t first, uint32_t end);

/* Adds a description of a stream that became known only later: `key` is "title", the command line of its process or the
 * title that this has set, or "name", the name of the thread. The newest value counts. A value that is too long is cut.
 * Returns as lb_trace_writer_meta. */
int trace_writer_describe(struct lb_trace_writer *writer, uint32_t stream, const char *key, const char *value);

/* ---- names of code that is in no file ---- */

#define TRACE_NAME_MAX 1023u          /* bytes of a name */
#define TRACE_NAMES_MAX 65536u        /* names of one record */
#define TRACE_NAMES_BYTES (64u << 10) /* of texts in one record: a writer begins another one after that */

/* The name of the bytes from `address` on. It replaces earlier names there, from its place in the trace on. The first
 * name of an address holds from the beginning of the trace: a name may be read later than its code runs. */
struct trace_name {
  uint64_t address, size;
  const char *text; /* not terminated; any bytes but 0 */
  size_t length;    /* 0: the bytes have no name from here on */
};

/* Writes names of a space, at most TRACE_NAMES_MAX. With `is_ordered`, branches of the space that were added before are
 * written before them. Returns as the functions of trace.h; LB_E_TOO_BIG: too many names, or one is too long. */
int trace_writer_names(struct lb_trace_writer *writer, uint32_t space, const struct trace_name *names, size_t count,
                       bool is_ordered);

/* Writes that a space begins as a copy of another one, with the names that are valid there now. */
int trace_writer_names_copy(struct lb_trace_writer *writer, uint32_t space, uint32_t original);

/* A record of names. The reader gives all of them ahead whenever it begins anew, and each again in its place. */
struct trace_names {
  bool is_begin;  /* the reader begins anew: nothing was passed. It has no names */
  bool is_ahead;  /* its place was not reached yet */
  uint64_t place; /* grows from record to record */
  uint32_t space;
  uint32_t original; /* the space begins as a copy of this one; 0: it does not */
  const struct trace_name *names;
  size_t count;
};

/* Makes lb_trace_reader_next give records of names, too. Call it right after opening. */
void trace_reader_want_names(struct lb_trace_reader *reader);

/* The names of a record, or NULL for a record of another type. They are valid until the next call on the reader. */
const struct trace_names *trace_record_names(const struct lb_trace_record *record);

/* ---- stamps: when a stream was where, and what happened there ---- */

enum trace_stamp_type {
  TRACE_STAMP_TIME,   /* nothing but the time */
  TRACE_STAMP_START,  /* the thread begins, or lbr has attached to it */
  TRACE_STAMP_CALL,   /* a system call begins. The branch before it is its SYSCALL instruction, except for rt_sigreturn,
                         exit and execve, and if a signal comes before the kernel has begun the call: then another such
                         stamp follows, and no return */
  TRACE_STAMP_RETURN, /* the system call has returned; there is no branch between the two */
  TRACE_STAMP_SIGNAL, /* a signal arrives. Its handler, if it has one, begins with one of the next branches */
  TRACE_STAMP_END,    /* the thread ends, or lbr leaves it */
  TRACE_STAMP_HELD,   /* the thread goes on after it has waited for the recorder */
  TRACE_STAMP_TYPES,
};

#define TRACE_ARGUMENTS_MAX TRACE_CALL_ARGUMENTS
#define TRACE_PATH_MAX 255u /* bytes of a path: a longer one is cut */

struct trace_stamp {
  uint32_t stream; /* the writer does not look at it */
  uint8_t type;    /* enum trace_stamp_type */
  bool has_cpu, has_used;
  uint16_t cpu;    /* processor that the thread ran on, with has_cpu */
  uint64_t number; /* branches of the stream before it, lost ones included; the writer does not look at it */
  uint64_t time;   /* nanoseconds since the moment that the meta "clock" names */
  uint64_t used;   /* nanoseconds for which a processor has run the thread since it began, with has_used */
  uint32_t code;   /* CALL: number of the system call; SIGNAL: of the signal */
  int64_t result;  /* RETURN: what the kernel returned; SIGNAL: si_code; END: status, HELD: nanoseconds of waiting */
  uint64_t value;  /* SIGNAL: the address of a fault, or the process that sent it */
  uint8_t argument_count;                  /* CALL */
  uint64_t arguments[TRACE_ARGUMENTS_MAX]; /* values of pointers are 0 or 1 */
  const char *paths[2];                    /* of the first and second argument that is a path; NULL: not known */
};

/* The name of a type: "call", "return", ... */
const char *trace_stamp_name(unsigned type);

/* Puts a stamp after the branches that were written last. Returns as the functions of lastbranch/trace.h do. */
int trace_writer_stamp(struct lb_trace_writer *writer, uint32_t stream, const struct trace_stamp *stamp);

/* Makes a stamp of the words of an LB_ENTRY_EVENT whose kind is LB_ENTRY_STAMP: words[0] >> 8 and four words that the
 * producer of entries defines. Several of them may be needed for one stamp. Returns the stamp, or NULL: there is none,
 * or it is not complete yet. */
typedef const struct trace_stamp *trace_stamp_make(void *context, uint32_t stream,
                                                   const uint32_t words[LB_ENTRY_EVENT_WORDS]);
void trace_writer_stamps(struct lb_trace_writer *writer, trace_stamp_make *make, void *context);

/* Makes lb_trace_reader_next give stamps, too, each between the branches before and after it, and no record of branches
 * with a stamp in its middle. If branches are counted, the stamps of a chunk come after its count. Call it right after
 * opening. */
void trace_reader_want_stamps(struct lb_trace_reader *reader);

/* The stamp of a record, or NULL for a record of another type. It is valid until the next call on the reader. */
const struct trace_stamp *trace_record_stamp(const struct lb_trace_record *record);

/* The time at which branch `number` of the record that was given last was taken: the times of the stamps before and
 * after it are exact, and those between them are interpolated by branches, up to the moment from which the thread
 * waited for the recorder. Returns TRACE_NO_TIME if the trace has none, or the reader was not asked for stamps. */
#define TRACE_NO_TIME UINT64_MAX
uint64_t trace_reader_time(const struct lb_trace_reader *reader, uint64_t number);

/* The address space of `to` of a count that lb_trace_reader_counts gives. It differs from that of `from` where several
 * processes share the translation of a file's code, and each of them goes on from it to code of its own. */
uint32_t trace_count_target(const struct lb_trace_count *count);

/* The loss by damage so far: branches that are known to be missing, and bytes that could not be read. Each is counted
 * once, however often the trace was read. */
void trace_reader_lost(const struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_bytes);

#endif
