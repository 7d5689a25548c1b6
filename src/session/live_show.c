/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of `lbr live`: reads the stack, finds names and makes a text, once or repeatedly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "session/live.h"

#define NOTES_MAX 8
#define NOTE_LENGTH 160

struct notes {
  const char *list[NOTES_MAX];
  size_t count;
  char missing[NOTE_LENGTH], tos[NOTE_LENGTH];
};

static void note_add(struct notes *notes, const char *note)
{
  if (note && notes->count < NOTES_MAX)
    notes->list[notes->count++] = note;
}

/* Registers besides the stack that this machine does not have. */
static void note_missing(struct notes *notes, const struct lb_cpu *cpu, uint64_t missing)
{
  int length = 0;

  for (unsigned id = 0; id < LB_REGISTERS && length < NOTE_LENGTH - 48; id++)
    if (missing >> id & 1)
      length += snprintf(notes->missing + length, sizeof(notes->missing) - (size_t)length, "%s0x%x",
                         length ? ", " : "cannot be read here: ", lb_cpu_register(cpu, (enum lb_register)id).first);
  if (length)
    note_add(notes, notes->missing);
}

static void notes_collect(struct notes *notes, struct live_session *session, const struct lb_recorder *recorder,
                          const struct hardware_reading *reading)
{
  if (reading->is_torn)
    note_add(notes, "recording continued while the records were read: they may not be from one moment");
  if (reading->tos_is_odd) {
    snprintf(notes->tos, sizeof(notes->tos), "TOS holds 0x%llx, which is not an entry: only its low bits were used",
             (unsigned long long)reading->tos);
    note_add(notes, notes->tos);
  }
  note_missing(notes, &session->row.cpu, reading->missing);
  if (!lb_recorder_is_recording(recorder) && !session->arguments->has_filter)
    note_add(notes, hardware_live_is_on(&session->live) == 1
                      ? "recording is on, but the stack is frozen or waits for a counter"
                      : "recording is off: 'lbr live --arm' switches it on");
  if (session->is_here && lb_recorder_is_recording(recorder))
    note_add(notes, "lbr live itself runs on this processor: the newest branches are its own");
  if (session->names) {
    note_add(notes, live_names_kernel_note(session->names));
    note_add(notes, live_names_user_note(session->names));
  }
}

/* ---- a page ---- */

/* DisplayFamily and DisplayModel: of this machine, or of the CPU that the user says it is. */
static struct report_windbg windbg_head(const struct live_session *session)
{
  const struct lb_model *model;

  for (size_t i = 0; session->arguments->cpu && (model = lb_model_at(i)); i++)
    if (model->cpu == session->arguments->cpu)
      return (struct report_windbg){.family = model->family, .model = model->first_model};
  return (struct report_windbg){.family = session->host.family, .model = session->host.model};
}

static int page_print(struct live_session *session, const struct lb_recorder *recorder,
                      const struct hardware_reading *reading, struct text *text)
{
  const struct live_arguments *arguments = session->arguments;
  const struct report_symbols symbols = {.data = session->names, .find = live_names_find};
  const struct report_windbg windbg = windbg_head(session);
  struct report_live live = {.number = arguments->number};
  struct report_options options = {.wants_color = arguments->wants_color,
                                   .symbols = session->names ? &symbols : NULL,
                                   .windbg = &windbg,
                                   .live = &live};
  struct notes notes = {0};
  struct text scratch = {0};
  int r;

  if (session->names)
    live_names_refresh(session->names);
  r = report_print(&scratch, recorder, arguments->format, &options); /* printing shows which names are missing */
  text_done(&scratch);
  if (r < 0)
    return r;
  notes_collect(&notes, session, recorder, reading);
  live.notes = notes.list;
  live.note_count = notes.count;
  return report_print(text, recorder, arguments->format, &options);
}

static int page_make(struct live_session *session, struct text *text)
{
  struct lb_recorder *recorder = aligned_alloc(_Alignof(struct lb_recorder), sizeof(*recorder));
  struct hardware_reading reading;
  int r;

  if (!recorder) {
    message("no memory");
    return -ENOMEM;
  }
  r = hardware_live_read(&session->live, session->arguments->keeps_running, recorder, &reading);
  if (r < 0) {
    live_session_complain(session);
  } else {
    r = page_print(session, recorder, &reading, text);
    if (r < 0)
      message("%s", lb_strerror(r));
  }
  free(recorder);
  return r;
}

/* ---- repeatedly ---- */

/* Uses the system call directly: on the watched processor, each branch of lbr replaces one of another program. */
static void interval_wait(void *data)
{
  const double *seconds = data;
  time_t whole = (time_t)*seconds;
  struct timespec time = {.tv_sec = whole, .tv_nsec = (long)((*seconds - (double)whole) * 1e9)};

  while (syscall(SYS_nanosleep, &time, &time) < 0 && errno == EINTR)
    ;
}

/* Waits and makes a page. If lbr runs on that processor, the wait ends with the stop of recording. */
static int page_wait(struct live_session *session, bool waits, struct text *text)
{
  double interval = session->arguments->interval;
  int r;

  if (waits && !session->is_here)
    interval_wait(&interval);
  session->live.data = &interval;
  session->live.wait = waits && session->is_here ? interval_wait : NULL;
  r = page_make(session, text);
  session->live.wait = NULL;
  return r;
}

int live_session_show(struct live_session *session, live_page_function *put)
{
  const struct live_arguments *arguments = session->arguments;
  uint64_t count = arguments->wants_watch ? arguments->count : 1;
  int r = 0;

  if (arguments->has_filter)
    r = live_session_switch_on(session);
  for (uint64_t i = 0; r >= 0 && (!count || i < count); i++) {
    struct text text = {0};

    r = page_wait(session, i || arguments->has_filter, &text);
    if (r >= 0)
      r = put(arguments, i, text_string(&text));
    text_done(&text);
  }
  return r;
}
