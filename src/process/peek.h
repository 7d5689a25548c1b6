/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a peek: a recording that another lbr makes now, whose shared memory this process can read.
 */
#ifndef PROCESS_PEEK_H
#define PROCESS_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/process.h"
#include "process/shared.h"

/* A process that has the shared memory open: a recorded one, or lbr itself. */
struct peek_holder {
  int process;     /* the number that /proc shows here, */
  uint32_t number; /* and the one that the process has for itself: its thread pages have this one */
};

/* How far the log of a thread was at the last look. */
struct peek_log {
  uint32_t serial;
  uint64_t end; /* entries since the start of the log */
};

struct process_peek {
  struct process process; /* its descriptor and its memory can only be read */
  uint64_t device, inode; /* of the file */
  bool is_found;          /* by the search that goes on */
  double looked;          /* time of the last look, 0: there was none */
  struct peek_holder *holders;
  size_t holder_count, holder_capacity;
  struct peek_log logs[PROCESS_THREADS];
};

#endif
