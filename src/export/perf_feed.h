/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace as perf would have sampled it: programs that begin, pieces of files that are mapped, and samples, each with a
 * stack of taken branches. perf.data and the text of `perf script` share this. Each branch of a thread is in exactly
 * one sample: no branch is in two samples, and none is left out.
 */
#ifndef EXPORT_PERF_FEED_H
#define EXPORT_PERF_FEED_H

#include "export/export.h"

#define PERF_WINDOW 32u      /* branches of a sample: as many as processors keep */
#define PERF_WINDOW_MAX 127u /* perf treats longer chains of branches as damaged */

#define PERF_BUILD_ID_SIZE 20u /* the most that perf supports */

/* A branch as perf keeps it: enum perf_branch_sample's numbers for types. */
struct perf_branch {
  uint64_t from, to; /* linear */
  uint8_t type;
  bool is_mispredicted, is_predicted; /* neither: not known */
  bool is_in_transaction, is_abort;
};

struct perf_stream {
  bool is_begun;   /* it was announced to the writer */
  bool is_pending; /* it may have branches in `branches` */
  uint32_t space, process, thread;
  char name[16];
  uint64_t next; /* number of the branch that follows those in `branches` */
  size_t count;
  struct perf_branch *branches; /* in the order in which they were taken */
};

/* The functions that receive the samples. */
struct perf_writer {
  bool is_single; /* samples do not name their process: whenever another process runs, its modules are given again */
  /* A thread begins; `is_first`: the first of a program, which has mapped nothing yet. May be NULL. */
  void (*begin)(struct export_job *job, const struct perf_stream *stream, bool is_first);
  void (*module)(struct export_job *job, uint32_t process, const struct lb_trace_module *module);
  void (*sample)(struct export_job *job, const struct perf_stream *stream);
};

/* ---- modules that are mapped, by space (perf_module.c) ---- */

#define PERF_NO_MODULE UINT32_MAX
#define PERF_SPACES 4096u /* chains */

struct perf_module {
  struct lb_trace_module module; /* its pointers point to copies */
  uint32_t next;                 /* next in the same chain; for an unused one, the next unused one */
  size_t bytes;
};

struct perf_modules {
  struct perf_module *modules;
  size_t count, capacity;
  uint32_t *chains; /* first modules by space */
  uint32_t free;    /* first that is not in use */
  uint64_t bytes;
  bool is_full;
};

/* Keeps the module or, if the record unmaps it, forgets what lies there. Returns 0, or -ENOMEM. */
int perf_modules_take(struct perf_modules *modules, const struct lb_trace_module *module);

/* The modules of a space, one after the other; NULL at the end. */
const struct perf_module *perf_modules_first(const struct perf_modules *modules, uint32_t space);
const struct perf_module *perf_modules_next(const struct perf_modules *modules, const struct perf_module *module);

void perf_modules_done(struct perf_modules *modules);

/* ---- all of it ---- */

struct perf_image;

struct perf_feed {
  const struct perf_writer *writer;
  struct perf_stream *streams;
  size_t stream_count, stream_capacity;
  struct perf_image *images; /* the current program of each process */
  size_t image_count, image_capacity;
  uint32_t *pending; /* numbers of streams */
  size_t pending_count, pending_capacity;
  struct perf_modules modules;
  bool has_predictions; /* every branch that was not mispredicted was predicted */
  uint64_t branches;    /* so far; also used as the time */
  uint64_t samples;
};

/* Must be called first. Returns 0. */
int perf_feed_begin(struct perf_feed *feed, const struct perf_writer *writer);

/* As the functions of a format. Return 0, or -ENOMEM. */
int perf_feed_record(struct perf_feed *feed, struct export_job *job, const struct lb_trace_record *record);
int perf_feed_branches(struct perf_feed *feed, struct export_job *job, const struct lb_trace_branches *branches);

/* Writes the samples that are not full. Returns 0, or LB_E_NO_ENTRY after export_fail: there were no branches. */
int perf_feed_end(struct perf_feed *feed, struct export_job *job);

void perf_feed_done(struct perf_feed *feed);

#endif
