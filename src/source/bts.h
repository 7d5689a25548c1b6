/* SPDX-License-Identifier: Apache-2.0
 *
 * Intel's branch trace store as the kernel's intel_bts delivers it: an array of 64-bit BTS records.
 */
#ifndef SOURCE_BTS_H
#define SOURCE_BTS_H

#include "source/tasks.h"

#define BTS_RECORD_SIZE 24u

/* Decodes the records of a thread from a piece of AUX data that begins with a record, and passes them to flow_jump. An
 * incomplete record at the end is lost. Returns 0, or as tasks_branch. */
int bts_decode(struct tasks *tasks, struct task_thread *thread, const uint8_t *bytes, size_t size);

#endif
