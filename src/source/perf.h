/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording with perf_event_open(2): one event per processor. Its records come from rings of shared memory, are sorted
 * by time (perf_queue.c) and reported to the task table (perf_feed.c).
 */
#ifndef SOURCE_PERF_H
#define SOURCE_PERF_H

#include "source/kernel.h"
#include "source/perf_record.h"
#include "source/pt.h"
#include "source/tasks.h"

/* The event of a processor. */
struct perf_cpu {
  int cpu, fd;
  struct perf_event_mmap_page *page; /* NULL: not mapped */
  size_t map_size;
  struct perf_ring ring;
  void *aux;
  size_t aux_size;
  bool is_full; /* there was no room for AUX data: the kernel waits until it is resumed */
  struct pt_state pt;
};

/* The event that separates the data of a thread from that of others. */
struct perf_mark {
  int thread, fd;
};

/* A record in the queue. */
struct perf_item {
  uint64_t time, order;
  uint8_t *bytes; /* the record, then its AUX data */
  size_t size, aux_size;
  uint32_t place; /* of its processor in the array */
  bool is_lost;   /* not a record: marks that some were lost here */
};

struct perf_queue {
  struct perf_item *items;
  size_t count, capacity;
  uint64_t order, bytes;
};

struct perf_session {
  const struct source_kernel *kernel;
  enum source_kind kind;
  uint32_t kinds; /* of branches that are wanted; 0: all */
  struct perf_event_attr attributes;
  struct perf_layout layout;
  struct tasks *tasks;
  struct perf_cpu *cpus;
  size_t count;
  int *fds; /* of the events, and room for one more */
  struct perf_mark *marks;
  size_t mark_count, mark_capacity;
  struct perf_queue queue;
  uint64_t before; /* the time of the last round */
  struct pt_model model;
  char sampling[160];
};

/* Opens the events of a process. The attributes are set for the kind of source; SOURCES: a dummy event that only
 * reports processes. Returns 0, or negative with the problem. */
int perf_session_open(struct perf_session *session, int process, const struct source_options *options,
                      struct source_problem *ret_problem);
void perf_session_close(struct perf_session *session);

/* Waits at most `milliseconds`, then takes the available records. `is_all`: no more will come. Returns 0, or as the
 * functions of tasks.h. */
int perf_session_step(struct perf_session *session, unsigned milliseconds, bool is_all);

/* Waits as perf_session_step does, also for something to read from `fd`. */
void perf_session_wait(struct perf_session *session, unsigned milliseconds, int fd);

/* ---- marks ---- */

/* Adds a mark for a thread that is stopped and has started nothing yet: from now on its AUX data is separate from that
 * of its children. Returns 0, also if it has a mark; or negative: its AUX data may then be followed by that of others
 * without a boundary. */
int perf_mark_add(struct perf_session *session, int thread);
void perf_mark_drop(struct perf_session *session, int thread); /* it is gone */

/* ---- the queue ---- */

#define PERF_QUEUE_BYTES (256u << 20) /* most bytes that are kept before all of them are taken */

/* Adds a copy. Returns 0, or -ENOMEM. */
int perf_queue_add(struct perf_queue *queue, const struct perf_item *item, const uint8_t *record,
                   const struct perf_ring *aux, uint64_t aux_offset);
void perf_queue_done(struct perf_queue *queue);

/* Passes the items up to `time` to `take` in the order of their times, and removes them. `take` returns 0, or negative
 * to stop: that value is returned, and the rest stays. */
int perf_queue_take(struct perf_queue *queue, uint64_t time, int (*take)(void *data, const struct perf_item *item),
                    void *data);

/* ---- what records mean ---- */

/* Reports a record to the task table. A perf_queue_take function with the session as `data`. */
int perf_feed(void *session, const struct perf_item *item);

/* Takes the newest branches of a thread as a separate window. */
int perf_feed_stack(struct perf_session *session, struct task_thread *thread, const struct perf_branch_stack *stack);

#endif
