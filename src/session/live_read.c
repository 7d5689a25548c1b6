/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the records of a processor for `lbr live`, once or repeatedly.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "session/live.h"

/* The function that shows the readings, and its data. */
struct live_shower {
  live_reading_function *show;
  void *data;
};

static int stack_read(struct live_session *session, uint64_t number, const struct live_shower *shower)
{
  struct lb_recorder *recorder = aligned_alloc(_Alignof(struct lb_recorder), sizeof(*recorder));
  struct hardware_reading reading;
  int r;

  if (!recorder) {
    message("no memory");
    return -ENOMEM;
  }
  r = hardware_live_read(&session->live, session->arguments->keeps_running, recorder, &reading);
  if (r < 0)
    live_session_complain(session);
  else
    r = shower->show(shower->data, session, &(struct live_reading){number, recorder, &reading});
  free(recorder);
  return r;
}

/* Uses the system call directly: on the watched processor, each branch of lbr replaces one of another program. */
static void interval_wait(void *data)
{
  const double *seconds = data;
  time_t whole = (time_t)*seconds;
  struct timespec time = {.tv_sec = whole, .tv_nsec = (long)((*seconds - (double)whole) * 1e9)};

  while (syscall(SYS_nanosleep, &time, &time) < 0 && errno == EINTR)
    ;
}

/* Waits and reads. If lbr runs on that processor, the wait ends with the stop of recording. */
static int wait_and_read(struct live_session *session, bool waits, uint64_t number, const struct live_shower *shower)
{
  double interval = session->arguments->interval;
  int r;

  if (waits && !session->is_here)
    interval_wait(&interval);
  session->live.data = &interval;
  session->live.wait = waits && session->is_here ? interval_wait : NULL;
  r = stack_read(session, number, shower);
  session->live.wait = NULL;
  return r;
}

int live_session_read(struct live_session *session, live_reading_function *show, void *data)
{
  const struct live_arguments *arguments = session->arguments;
  const struct live_shower shower = {show, data};
  uint64_t count = arguments->wants_watch ? arguments->count : 1;
  int r = 0;

  if (arguments->has_filter)
    r = live_session_switch_on(session);
  for (uint64_t i = 0; r >= 0 && (!count || i < count); i++)
    r = wait_and_read(session, i || arguments->has_filter, i, &shower);
  return r;
}
