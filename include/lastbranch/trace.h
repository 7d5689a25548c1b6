/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace: every branch of every thread of a run, in a file. The writer takes branches in the order in which each
 * thread takes them, or entries that stand for the branches of whole paths, and keeps them at a few bits each; the
 * reader gives branches back exactly. doc/trace-format.md describes the bytes.
 *
 * A trace stands in NAME.incomplete until it is closed, and in NAME after that. A file that was cut anywhere is
 * readable up to its last whole chunk. Loss is never silent: whatever is missing comes out of the reader as a gap.
 *
 * Writers and readers are independent objects; calls on one of them must not overlap.
 */
#ifndef LASTBRANCH_TRACE_H
#define LASTBRANCH_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"
#include "lastbranch/step.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_TRACE_STREAMS_MAX 65536u /* streams of one trace */
#define LB_TRACE_TEXT_MAX 65535u    /* bytes of a name, key or value */
#define LB_TRACE_BUILD_ID_MAX 64u   /* bytes of a build-id */
#define LB_TRACE_BATCH_MAX 4096u    /* branches that the reader gives at once */
#define LB_TRACE_ALL UINT32_MAX     /* as a stream: all of them, or not known which */

/* ---- what a trace holds ---- */

/* A fact about the run. Keys that our producers write: "producer" (program and version), "source" ("machine" or
 * "process"), "recorder" (the source of "lbr record --source" that made it), "sampling" (in a trace of samples: what
 * was sampled), "cpu", "command", "host", "time" (seconds since 1970), "clock" (in a trace with times: what they are;
 * doc/trace-format.md), and at the end "instructions" (how many ran), or "end" (how the program ended: "PROCESS exit
 * STATUS" or "PROCESS signal NUMBER"), and "trigger" (around which the trace is: "PROCESS THREAD ADDRESS NANOSECONDS
 * [DURATION] PLACE"). Of a stream, "STREAM TEXT": "title" (the command
 * line of its process, with blanks between the words, or the title that the process has set) and "name" (the thread has
 * another name than its stream record says); the last of each counts. */
struct lb_trace_meta {
  const char *key;
  const char *value;
};

/* A mapping of a file, or of no file, in an address space, from here on in the trace. */
struct lb_trace_module {
  uint32_t space; /* address space: 0 for a machine, one for each process image */
  bool is_gone;   /* it is unmapped from here on; only space, address and size count */
  uint64_t address, size;
  uint64_t offset; /* in the file, of the byte at `address` */
  const char *name;
  const uint8_t *build_id;
  size_t build_id_size;
};

/* The bytes of code that is in no file. */
struct lb_trace_code {
  uint32_t space;
  uint64_t address;
  const uint8_t *bytes;
  size_t size;
};

/* Whose branches a stream holds: a thread, or a processor of a machine. Numbers are given out from 0 on. */
struct lb_trace_stream {
  uint32_t number; /* the writer gives it */
  uint32_t space;
  uint32_t process, thread; /* the system's numbers; 0 for a machine */
  const char *name;
};

/* Branches of one stream, one after another. */
struct lb_trace_branches {
  uint32_t stream;
  uint64_t first; /* number in its stream of the first of them, counted from 0, lost ones included */
  size_t count;
  const struct lb_branch *branches;
  uint64_t start; /* where execution was before the first of them; 0: where the branch before led, or not known */
};

enum lb_trace_gap_reason {
  LB_TRACE_LOST,    /* the producer could not keep them */
  LB_TRACE_PAUSED,  /* recording was switched off for a while */
  LB_TRACE_DAMAGED, /* found when reading: bytes whose checksum is wrong, or invalid entries */
  LB_TRACE_MISSING, /* found when reading: branch numbers jump */
  LB_TRACE_CUT,     /* found when reading: the end marker is missing */
  LB_TRACE_SAMPLED, /* the trace holds samples, and this gap is between two of them */
  LB_TRACE_GAP_REASONS,
};

/* "lost", "paused", ...; "?" for a number that is none. */
const char *lb_trace_gap_name(unsigned reason);

/* Branches that happened here and are not in the trace. */
struct lb_trace_gap {
  uint32_t stream; /* LB_TRACE_ALL: any may be concerned */
  uint8_t reason;  /* enum lb_trace_gap_reason */
  uint64_t first;  /* number of the first that is missing; of no meaning with LB_TRACE_ALL */
  uint64_t count;  /* how many are missing; 0: not known */
  uint64_t bytes;  /* of the file that could not be read, with LB_TRACE_DAMAGED; of what was written, 0 */
};

/* Branches of one stream that were counted instead of given: lb_trace_reader_count. */
struct lb_trace_counted {
  uint32_t stream;
  uint64_t first; /* as of branches */
  uint64_t count;
  uint64_t at; /* where execution is after them; 0: not known until the next record */
};

/* A stream stopped without a branch: a signal killed it, or another thread ended the process. */
struct lb_trace_stop {
  uint32_t stream;
  uint64_t at; /* the instruction there was not executed */
};

/* ---- writing ---- */

struct lb_trace_writer;

/* Begins a trace that will be called `path`. Creates PATH.incomplete, which must not exist, readable by the owner only;
 * a symbolic link there is not followed. If PATH is a device or a pipe it is written to directly. Returns 0, -errno
 * (-EEXIST: PATH.incomplete is there already; -EISDIR: PATH is a folder; -ELOOP: PATH is a link to something that is
 * not a regular file), or -ENOMEM. */
int lb_trace_writer_open(const char *path, struct lb_trace_writer **ret_writer);

/* Begins a trace that is written to a descriptor: a pipe, a socket, standard output. lb_trace_writer_close closes the
 * descriptor. Returns 0, or -ENOMEM: the descriptor stays open. */
int lb_trace_writer_open_fd(int fd, struct lb_trace_writer **ret_writer);

/* Ends the trace: writes what is buffered and the index, gives the file its name (replacing a file that had it), and
 * frees the writer, also on failure; PATH.incomplete then stays. Returns 0, or the first error that any call on this
 * writer met: later records are not in the file. Takes NULL. */
int lb_trace_writer_close(struct lb_trace_writer *writer);

/* The functions below return 0; -errno when the file could not be written, as does every call after that; -ENOMEM; or
 * what is said beside them. */

/* LB_E_TOO_BIG: a key or value longer than LB_TRACE_TEXT_MAX. */
int lb_trace_writer_meta(struct lb_trace_writer *writer, const struct lb_trace_meta *meta);

/* Branches that were added before are written before it. LB_E_TOO_BIG: a name or build-id is too long. */
int lb_trace_writer_module(struct lb_trace_writer *writer, const struct lb_trace_module *module);

/* Likewise. Of any size: the reader gives it in pieces. */
int lb_trace_writer_code(struct lb_trace_writer *writer, const struct lb_trace_code *code);

/* A new stream. `stream->number` is not looked at. LB_E_TOO_BIG: the name is too long or there are too many streams. */
int lb_trace_writer_stream(struct lb_trace_writer *writer, const struct lb_trace_stream *stream, uint32_t *ret_number);

/* Branches of a stream, in their order. A base whose flag is not set comes back as 0. -EINVAL, with those before it
 * added: no such stream, kind or CPL. */
int lb_trace_writer_branches(struct lb_trace_writer *writer, uint32_t stream, const struct lb_branch *branches,
                             size_t count);

/* Branches are missing: of one stream, or of all. `first` is not looked at; the numbers of the branches that follow
 * leave room for `count`. -EINVAL: no such stream, or a reason other than LB_TRACE_LOST, LB_TRACE_PAUSED and
 * LB_TRACE_SAMPLED. */
int lb_trace_writer_gap(struct lb_trace_writer *writer, const struct lb_trace_gap *gap);

/* ---- writing entries: branches of a producer that knows its paths ---- */

/* Steps and entries: lastbranch/step.h. The producer numbers heads and steps. */

/* Gives the step with this number as it is now. Returns false if there is none. */
typedef bool lb_trace_step_lookup(void *context, uint32_t number, struct lb_step *ret_step);

/* Sets the function that gives steps to the writer. lb_trace_writer_entries calls it for the head and all steps of a
 * path when an entry first names the path, and again for a step whose `next` was 0 when a head or an event follows the
 * step. The writer never asks again for what it knows: steps are constant, and `next` is constant once it is set. Call
 * this before the first entries; the context must stay valid until the writer is closed. */
void lb_trace_writer_paths(struct lb_trace_writer *writer, lb_trace_step_lookup *lookup, void *context);

/* Writes entries of a stream, in order, divided between calls in any way. The writer does not check them: the reader
 * gives an invalid entry (no such step, an incomplete path, a step of another path than the running one) as a gap,
 * LB_TRACE_DAMAGED, and continues after it. After a gap (lb_trace_writer_gap), and at first, any entry may come; a gap
 * drops an event whose words are not complete. The memory of the entries may be written to meanwhile: each is read
 * once. Made for large batches of some 100,000 entries. -EINVAL: no such stream, or no function that gives steps was
 * set. */
int lb_trace_writer_entries(struct lb_trace_writer *writer, uint32_t stream, const uint32_t *entries, size_t count);

/* ---- what is in the file so far ---- */

/* Writes everything that was added to the file. The file is less compact if this is done often. */
int lb_trace_writer_flush(struct lb_trace_writer *writer);

/* Bytes in the file so far, and branches added; of entries, as many as they stand for. */
struct lb_trace_size {
  uint64_t bytes, branches;
};

struct lb_trace_size lb_trace_writer_size(const struct lb_trace_writer *writer);

/* ---- reading ---- */

struct lb_trace_reader;

enum lb_trace_type {
  LB_TRACE_META,
  LB_TRACE_MODULE,
  LB_TRACE_CODE,
  LB_TRACE_STREAM,
  LB_TRACE_BRANCHES,
  LB_TRACE_GAP,
  LB_TRACE_COUNTED, /* only after lb_trace_reader_count */
  LB_TRACE_STOP,    /* not after lb_trace_reader_tail */
};

/* One thing out of a trace. Pointers are good until the next call on the reader. Texts hold no zero bytes, but may hold
 * any others: they are not trusted. */
struct lb_trace_record {
  enum lb_trace_type type;
  union {
    struct lb_trace_meta meta;
    struct lb_trace_module module;
    struct lb_trace_code code;
    struct lb_trace_stream stream;
    struct lb_trace_branches branches;
    struct lb_trace_gap gap;
    struct lb_trace_counted counted;
    struct lb_trace_stop stop;
  };
};

/* Opens a trace, finished or not. Memory in use stays below 64 MiB, 32 bytes for each stream and chunk, and 32 bytes
 * for each step; a file has fewer steps than bytes. Returns 0; -errno (-ESPIPE: not a regular file); LB_E_NOT_TRACE;
 * LB_E_TRACE_VERSION; -ENOMEM. */
int lb_trace_reader_open(const char *path, struct lb_trace_reader **ret_reader);

/* The same for bytes in memory, which must stay good. */
int lb_trace_reader_open_bytes(const void *bytes, size_t size, struct lb_trace_reader **ret_reader);

/* Takes NULL. */
void lb_trace_reader_close(struct lb_trace_reader *reader);

/* The next thing in the trace. Chunks that are damaged are passed over and come out as gaps, so do branches that are
 * missing; a trace without its end has LB_TRACE_CUT as its last gap. Returns 1; 0 at the end; -errno when the file
 * could not be read, -ENOMEM. */
int lb_trace_reader_next(struct lb_trace_reader *reader, struct lb_trace_record *ret_record);

/* From here on lb_trace_reader_next gives everything that is not a branch or a gap, and then the last `count` branches
 * of `stream` with the gaps between them; nothing of it with LB_TRACE_ALL. Takes constant time in a trace that has its
 * index. Returns 0; LB_E_NO_ENTRY: no such stream; -errno, -ENOMEM. */
int lb_trace_reader_tail(struct lb_trace_reader *reader, uint32_t stream, uint64_t count);

/* Call right after lb_trace_reader_tail: leaves out the records that belong to no stream, for a caller that reads the
 * tails of several streams and needs those records once. */
void lb_trace_reader_skip(struct lb_trace_reader *reader);

/* How many conditional branches were passed and not taken, among what lb_trace_reader_next has given so far and what is
 * left out between. Returns false, touching nothing, if the trace does
 * not say: only those that the process recorder wrote do. */
bool lb_trace_reader_not_taken(const struct lb_trace_reader *reader, uint64_t *ret_count);

/* From here on lb_trace_reader_next begins again at the start. */
void lb_trace_reader_rewind(struct lb_trace_reader *reader);

/* ---- counting: exact numbers without making branches of every entry ---- */

/* How often a straight piece of code ran, and what the branch at its end did. */
struct lb_trace_count {
  uint32_t space;
  uint64_t start;    /* instructions from here up to the branch at `from`, which is one of them, */
  uint64_t executed; /* ran so often; 0: this says only how often the branch went to `to` */
  uint64_t from;
  uint8_t length;  /* of the branch instruction */
  uint8_t kind;    /* enum lb_branch_kind */
  bool is_cut;     /* there is no branch at `from`, and the instruction there is not one of them */
  uint64_t to;     /* of the branch, if it was taken */
  uint64_t taken;  /* so often it was taken to `to`, */
  uint64_t passed; /* and so often, as a conditional branch, not taken. lb_trace_reader_not_taken has these and those
                      that lie before branches that are given: in a path that an event interrupted */
};

/* Is given a count. Returns 0, or negative to stop. */
typedef int lb_trace_count_function(void *context, const struct lb_trace_count *count);

/* Goes to the start, as lb_trace_reader_rewind does. From there on, until the reader is rewound or a tail is asked for,
 * branches that stand in the trace as passes over its paths are counted and not given: LB_TRACE_COUNTED tells how many,
 * and where that leaves the stream. All others come as LB_TRACE_BRANCHES: every branch is either given or counted. What
 * ran before the first branch that is given began where the stream was left. `stream` other than LB_TRACE_ALL: branches
 * of other streams are neither counted nor given. */
void lb_trace_reader_count(struct lb_trace_reader *reader, uint32_t stream);

/* Gives the counts so far, of all streams together, and resets them to zero. A piece of code may be given more than
 * once. Memory for counting is 8 bytes for each step, 20 MiB, and at most 128 MiB for targets of indirect branches.
 * Returns 0, or what `function` returned. */
int lb_trace_reader_counts(struct lb_trace_reader *reader, lb_trace_count_function *function, void *context);

#ifdef __cplusplus
}
#endif
#endif
