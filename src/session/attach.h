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
};

/* Attaches, with a message if that takes long. Returns 0, or -errno after a message. */
int attach_open(const struct process_options *options, const struct attach_list *list, struct process *ret_process);

/* Leaves the processes, if they still exist. `drain` may be NULL; else logs are read meanwhile. Returns 0, or -errno
 * after a message. */
int attach_close(struct process *process, struct process_drain *drain);

/* Have all processes of the list ended? */
bool attach_is_over(const struct attach_list *list);

/* The words of a process as a list that ends with NULL, which the caller frees together with its first element; NULL:
 * no memory. */
char **attach_words(int process);

#endif
