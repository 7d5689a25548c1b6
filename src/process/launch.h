/* SPDX-License-Identifier: Apache-2.0
 *
 * What starting a program and attaching to processes have in common: the two files in memory.
 */
#ifndef PROCESS_LAUNCH_H
#define PROCESS_LAUNCH_H

struct process;
struct process_options;
struct resolution;

/* Takes the sizes from the options. Returns 0, or -EINVAL: one is out of range. */
int launch_options(struct process *process, const struct process_options *options);

/* Makes the file of the runtime. Returns a descriptor, or -errno. */
int launch_runtime(void);

/* Makes the shared memory, maps it and fills in its control page. Returns a descriptor for the programs, or -errno. */
int launch_memory(struct process *process, const struct process_options *options, const struct resolution *program);

#endif
