/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that lbr runs transparently for its caller: it is found as a shell finds it, and lbr ends as the program
 * ends.
 */
#ifndef SESSION_PROGRAM_H
#define SESSION_PROGRAM_H

#include "process/process.h"
#include "source/source.h"

/* Exit statuses of lbr itself, the same as those of other commands that run a command. */
enum { PROGRAM_FAILURE = 125, PROGRAM_NO_EXECUTE = 126, PROGRAM_NOT_FOUND = 127 };

/* Finds it as execvp(3) does. Returns 0 with a path that the caller frees, or one of the exit statuses after a
 * message. */
int program_find(const char *name, char **ret_path);

enum program_aslr {
  ASLR_AUTO, /* off for the software source, so that its processes can share translations; on if the kernel refuses */
  ASLR_OFF,
  ASLR_ON, /* as it is without lbr */
};

/* Sets whether programs that this thread starts from now on, and programs that they execute, have address
 * randomisation. `name` is the program's, for messages. Returns 0, or an exit status after a message: a seccomp filter
 * may forbid ASLR_OFF. */
int program_aslr_set(enum program_aslr aslr, enum source_kind source, const char *name);

/* Undoes the change that program_aslr_set made, if any. */
void program_aslr_restore(void);

/* As process_launch, but also works under a limit on file sizes (ulimit -f), which the kernel applies to the memory
 * that is shared with the program. The program itself keeps the limit. Reports errors by message(). Returns 0 or
 * -errno. */
int program_launch(const struct process_options *options, const char *path, char *const arguments[],
                   struct process *ret_process);

/* Reports why the runtime gave up, if it did. `status` is that of waitpid(2) for the program. */
void program_show_error(const struct process *process, const char *name, int status);

/* The exit status of lbr when the trace could not be written. `status`: the program's end, from waitpid(2). Returns 0
 * if that is a failure already: the program's end then counts. */
int program_status_without_trace(int status);

/* Ends as the program did: returns its exit status, or dies by the signal that killed it. */
int program_pass_on(int status);

#endif
