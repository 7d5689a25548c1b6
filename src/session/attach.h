/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that were running before `lbr record -p` and `lbr run -p`, and run on afterwards: what both sessions need.
 */
#ifndef SESSION_ATTACH_H
#define SESSION_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

#include "process/process.h"

/* The processes to attach to. */
struct attach_list {
  int *processes;
  size_t count;
  int *threads; /* of these only the threads here are recorded; none: all */
  size_t thread_count;
  bool has_descendants; /* the descendants of the processes, too */
};

/* Adds a process or a thread. Return 1; 0: it is there already; -ENOMEM. attach_open complains of those that do not
 * exist. */
int attach_list_add(struct attach_list *list, int process);
int attach_list_add_thread(struct attach_list *list, int thread);

/* If there are threads and no processes, adds the processes of the threads. Returns 0 or -ENOMEM. */
int attach_list_complete(struct attach_list *list);
void attach_list_done(struct attach_list *list);

/* Attaches, with a message if that takes long. Returns 0, or -errno after a message. */
int attach_open(const struct process_options *options, const struct attach_list *list, struct process *ret_process);

/* Leaves the processes, if they still exist. `drain` may be NULL; else logs are read meanwhile. Returns 0, or -errno
 * after a message. */
int attach_close(struct process *process, struct process_drain *drain);

/* Have all processes of the list ended, or all threads, if there are any in the list? */
bool attach_is_over(const struct attach_list *list);

/* The words of a process as a list that ends with NULL, which the caller frees together with its first element; NULL:
 * no memory. */
char **attach_words(int process);

#endif
