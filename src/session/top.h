/* SPDX-License-Identifier: Apache-2.0
 *
 * `lbr top`: page after page of the newest branches of processes. lbr records them itself for a moment, or reads what
 * another lbr records.
 */
#ifndef SESSION_TOP_H
#define SESSION_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "process/process.h"
#include "session/record.h"

/* What a page shows. */
struct top_view {
  const char *trace;                    /* the file with the branches, named after a process */
  bool is_new_screen;                   /* the page replaces those that the terminal shows */
  const struct process_peek_view *peek; /* the recording that it is from; NULL: lbr has recorded it itself */
};

/* Shows a page. Returns 0, or negative to end. */
typedef int top_show_function(void *data, const struct top_view *view);

struct top_session {
  struct record_arguments record; /* which processes, and for how long for each page. No processes: those that are
                                     recorded now */
  double interval;                /* seconds from one page to the next */
  uint64_t count;                 /* of pages, of each recording; 0: until the user ends it */
  top_show_function *show;
  void *data;
};

/* Shows pages until there were enough, the processes or recordings have ended, or the user ends it by the key q or a
 * signal. Returns 0, or -errno after a message. */
int top_run(const struct top_session *session);

#endif
