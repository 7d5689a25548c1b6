/* SPDX-License-Identifier: Apache-2.0
 *
 * The size of the file that `lbr export` writes.
 */
#ifndef CLI_EXPORT_SIZE_H
#define CLI_EXPORT_SIZE_H

#include "export/export.h"
#include "session/session.h"

/* Announces a large file before it is written. Returns negative if there is no room for it. How many of the branches
 * are calls is not known in advance, so formats made of calls are never refused. Rewinds the reader. */
int export_size_check(const struct export_options *options, struct lb_trace_reader *reader,
                      const struct new_file *output);

/* Prints what was written. */
void export_size_tell(const struct new_file *output);

#endif
