/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that a command makes from a trace. It is written under a temporary name in the same folder and gets its name
 * when it is complete. Like the trace, only its owner may read it: it shows what a program of the owner did.
 */
#ifndef SESSION_NEW_FILE_H
#define SESSION_NEW_FILE_H

#include <stddef.h>
#include <stdint.h>

struct new_file {
  int fd;
  char *name;      /* NULL: standard file */
  char *temporary; /* NULL: a pipe or a device, which is written to directly */
  uint64_t size;   /* bytes so far */
};

/* `name` NULL: a file in the current folder, named as the trace with `suffix` in place of its own; "-": standard file.
 * Returns 0, or negative after a message; new_file_done is to be called in any case. */
int new_file_open(struct new_file *file, const char *trace, const char *name, const char *suffix);

/* Creates a file that has its name from the start, to be written while others read it. Replaces an existing file or
 * symbolic link. A pipe or a device is opened as it is. Returns a descriptor or -errno. */
int new_file_create(const char *name);

/* Keeps a regular file that is about to be replaced: links it as NAME.old. An existing NAME.old is replaced. */
void new_file_back_up(const char *name);

/* Writes all of it; `data` is the file. Returns 0, or -errno. */
int new_file_write(void *data, const void *bytes, size_t size);

/* Overwrites bytes at an offset, none of them beyond the end of the file. Returns 0; -ESPIPE if it is a pipe or the
 * like, also for a size of 0; or -errno. */
int new_file_rewrite(void *data, uint64_t offset, const void *bytes, size_t size);

/* Gives the file its name or, if `error` is negative, removes it. Returns `error`, or the -errno of its own failure. */
int new_file_close(struct new_file *file, int error);

void new_file_done(struct new_file *file);

/* Reports why lb_trace_writer_open could not make the trace. */
void new_file_complain_trace(const char *name, int error);

#endif
