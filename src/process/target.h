/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that lbr is to attach to: what /proc says about it, and whether it can be recorded.
 */
#ifndef PROCESS_TARGET_H
#define PROCESS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mapping of the process. */
struct target_map {
  uint64_t start, end, offset;
  uint64_t inode; /* of the file; 0: none */
  bool is_code, is_writable, is_shared;
  char *path; /* as /proc has it; "" if there is none */
};

struct target_maps {
  struct target_map *list;
  size_t count, capacity;
};

#define TARGET_RUNTIME "/memfd:lbr-runtime" /* how the link of the runtime's ELF file begins in /proc */

/* Can lbr suspend the seccomp filters of processes that it traces? */
bool target_can_suspend(void);

/* The process of a thread, and the parent of a process; 0: it does not exist. */
int target_process(int thread);
int target_parent(int process);

/* Whether the process can be attached to, as far as that can be told without stopping it. Returns 0, or -errno after a
 * message that tells the reason and what to do. */
int target_check(int process);

/* Whether its seccomp filters, if it has any, are an obstacle. Returns 0, or -EINVAL after a message. */
int target_check_filter(int process, bool can_suspend);

/* The reason why ptrace(2) was refused with this error, as a message. */
void target_complain(int process, int error);

/* Reads the mappings. Returns 0 or -errno. */
int target_maps_read(int process, struct target_maps *ret_maps);
void target_maps_done(struct target_maps *maps);

/* The address at which the runtime is mapped, or 0. */
uint64_t target_image(const struct target_maps *maps);

/* A path by which lbr can open the file of a mapping, for names: "/proc/PID/root/..." if the process sees other file
 * systems; "/proc/PID/exe" or "/proc/PID/map_files/..." if the file was deleted or its path leads nowhere. Returns
 * false: the mapping has no such file. */
bool target_file(int process, const struct target_map *map, bool is_elsewhere, char path[4200]);

/* What lbr must put before a path that the process itself gives: "/proc/PID/root" if the process sees other file
 * systems, or has another root; else "". */
void target_root(int process, char root[32]);

/* Does the process have another namespace of this type ("mnt", "pid") than lbr? */
bool target_is_elsewhere(int process, const char *type);

/* The number of the process in its own PID namespace. */
int target_inner_number(int process);

/* The state letter of a thread in /proc. Returns 0 if there is no such thread, -1 if the state is unknown. */
int target_thread_state(uint32_t process, uint32_t thread);

/* Have all threads of the process ended? */
bool target_has_ended(int process);

#endif
