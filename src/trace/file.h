/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a trace that is being written: NAME.incomplete, which becomes NAME when all is well.
 */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct trace_file {
  int fd;
  uint64_t size;
  char *path;      /* NULL: the caller's descriptor */
  char *temporary; /* NULL: a device or pipe, which is written to directly */
};

/* See lb_trace_writer_open. */
int trace_file_open(struct trace_file *file, const char *path);

/* Takes a descriptor, which is written to directly. */
void trace_file_take(struct trace_file *file, int fd);

/* Appends. Returns 0 or -errno. */
int trace_file_write(struct trace_file *file, const void *bytes, size_t size);

/* Closes, and gives the file its name if `error` is 0. Returns `error`, or 0, or -errno. */
int trace_file_close(struct trace_file *file, int error);

#endif
