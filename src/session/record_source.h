/* SPDX-License-Identifier: Apache-2.0
 *
 * `lbr record` with a source other than the software one.
 */
#ifndef SESSION_RECORD_SOURCE_H
#define SESSION_RECORD_SOURCE_H

#include "source/source.h"

struct record_source_options {
  struct source_options source;
  const char *output; /* name of the trace */
  uint64_t limit;     /* of its bytes; 0: none */
  bool is_quiet;
  const char *path;
  char **program; /* its words */
};

/* Runs the program, writes its branches with the writer and closes the writer. Returns an exit status of lbr's own, or
 * 0 with the program's status as waitpid(2) gives it. */
int record_source_run(const struct record_source_options *options, struct lb_trace_writer *writer, int *ret_status);

#endif
