/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of `lbr live`: the records that were read, with names and remarks.
 */
#include "cli/live_page.h"

#include <stdio.h>

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

int live_page_print(struct text *text, struct live_session *session, const struct live_reading *reading,
                    const struct live_show *show)
{
  const struct report_symbols symbols = {.data = session->names, .find = live_names_find};
  const struct report_windbg windbg = windbg_head(session);
  struct report_live live = {.number = session->arguments->number};
  struct report_options options = {
    .wants_color = show->wants_color, .symbols = session->names ? &symbols : NULL, .windbg = &windbg, .live = &live};
  struct notes notes = {0};
  struct text scratch = {0};
  int r;

  if (session->names)
    live_names_refresh(session->names);
  /* Printing shows which names are missing. */
  r = report_print(&scratch, reading->recorder, show->format, &options);
  text_done(&scratch);
  if (r < 0)
    return r;
  notes_collect(&notes, session, reading->recorder, reading->reading);
  live.notes = notes.list;
  live.note_count = notes.count;
  return report_print(text, reading->recorder, show->format, &options);
}
