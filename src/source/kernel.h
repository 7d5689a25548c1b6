/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel as the sources see it: events, their memory, and processes. It is a struct of functions, so that a test
 * can simulate any kernel with any hardware.
 */
#ifndef SOURCE_KERNEL_H
#define SOURCE_KERNEL_H

#include <linux/perf_event.h>

#include "source/source.h"

struct source_kernel {
  void *data; /* passed to every function */
  /* The numbers of the processors that are online. Returns how many there are, at most `room`. */
  size_t (*cpus)(void *data, int *cpus, size_t room);
  /* perf_event_open(2) of a process on a processor. Returns a descriptor, or -errno. */
  int (*open)(void *data, struct perf_event_attr *attributes, int process, int cpu);
  void (*close)(void *data, int fd);
  /* Switches an event, and those that were inherited from it, on again after the kernel switched them off because the
   * AUX area was full. */
  void (*resume)(void *data, int fd);
  /* mmap(2), for reading and writing. Returns 0, or -errno. */
  int (*map)(void *data, int fd, size_t size, uint64_t offset, void **ret_memory);
  void (*unmap)(void *data, void *memory, size_t size);
  /* Waits until one of the events has something to read. */
  void (*wait)(void *data, const int *fds, size_t count, unsigned milliseconds);
  uint64_t (*clock)(void *data); /* nanoseconds of CLOCK_MONOTONIC */
  /* As of struct hardware_system. */
  int (*file_read)(void *data, const char *path, char *buffer, size_t size);
  /* A child that waits before it executes the program. Returns 0, or -errno. */
  int (*launch)(void *data, const char *path, char *const arguments[], char *const environment[], int *ret_process);
  /* Lets it execute. Returns 0, or the -errno of execve(2): the child is gone then. */
  int (*go)(void *data, int process);
  /* Ends a child that was not let go. */
  void (*drop)(void *data, int process);
  /* Reaps a child, or an orphaned descendant, that has ended. Returns 1; 0: none yet; -ECHILD: there are no more. */
  int (*reap)(void *data, int *ret_process, int *ret_status);
  /* Bytes of the memory of a process, or of that of a thread. Returns how many there are, at most `size`. */
  size_t (*memory)(void *data, uint32_t process, uint64_t address, void *buffer, size_t size);
  bool is_traceable; /* processes are real: ptrace(2) can attach to them */
};

/* `launch` of the real kernel; `go` lets the child execute. The caller reaps the child. */
int kernel_launch(const char *path, char *const arguments[], char *const environment[], int *ret_process);

#endif
