/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks. When a processor changes from one thread to another whose events were inherited from the same ones, Linux does
 * not stop the events: it lets the two threads swap their lists of events, which are equivalent (context_equiv in its
 * kernel/events/core.c). The AUX data of both threads is then in one piece, without a boundary. A list with an event
 * that was not inherited is not equivalent to another. Each thread therefore gets an event of its own, which does
 * nothing.
 */
#include <errno.h>

#include "base/base.h"
#include "source/perf.h"

int perf_mark_add(struct perf_session *session, int thread)
{
  struct perf_event_attr attributes = {.size = sizeof(attributes),
                                       .type = PERF_TYPE_SOFTWARE,
                                       .config = PERF_COUNT_SW_DUMMY,
                                       .disabled = 1,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
  struct perf_mark *mark;
  int fd;

  for (size_t i = 0; i < session->mark_count; i++)
    if (session->marks[i].thread == thread)
      return 0;
  fd = session->kernel->open(session->kernel->data, &attributes, thread, -1);
  if (fd < 0)
    return fd;
  mark = array_append(&session->marks, &session->mark_count, &session->mark_capacity);
  if (!mark) {
    session->kernel->close(session->kernel->data, fd);
    return -ENOMEM;
  }
  *mark = (struct perf_mark){thread, fd};
  return 0;
}

void perf_mark_drop(struct perf_session *session, int thread)
{
  for (size_t i = 0; i < session->mark_count; i++)
    if (session->marks[i].thread == thread) {
      session->kernel->close(session->kernel->data, session->marks[i].fd);
      session->marks[i] = session->marks[--session->mark_count];
      return;
    }
}
