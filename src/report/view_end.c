/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a page, and how each of them ended. A thread that ends by itself does so in a system call, which is
 * its last branch. One whose last branch is another was stopped: by a fault or a signal, or because another thread
 * ended the process. The recording program may have noted what ended it ("end" of the trace's facts).
 */
#include <errno.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/view_page.h"

#define CALLERS 4u /* callers of the function in which a thread ended */

enum end {
  END_UNKNOWN, /* recording ended before the thread, or nothing is known about it */
  END_EXIT,    /* in a system call */
  END_DIED,
  END_STOPPED, /* with its process, which another thread ended */
  END_FAULT,   /* the last branch of a processor is the delivery of a fault */
};

static const char *const end_words[] = {"unknown", "exit", "died", "stopped", "fault"};

/* The end of a stream: its last branch, and its code. */
struct ending {
  const struct timeline_stream *stream;
  const struct analysis_stream *about;
  struct analysis_location from, to;
  bool is_call;    /* a system call */
  bool is_nowhere; /* the last branch leads to an address without code */
  bool is_unsure;  /* another thread may have died instead */
  enum end end;
};

/* ---- the code at the end ---- */

static bool name_has(const char *name, const char *const *words)
{
  for (; name && *words; words++)
    if (strstr(name, *words))
      return true;
  return false;
}

/* Whether the last branch is in one of these functions, or in one that they called. libc has names only for exported
 * functions. */
static bool ending_is_in(struct report_view *view, const struct ending *ending, const char *const *words)
{
  struct analysis_called called;
  struct analysis_name name;

  if (analysis_names_symbol(view->options.names, &ending->from, &name) && name_has(name.symbol, words))
    return true;
  for (size_t i = 0; i < ending->stream->stack_count && i < CALLERS; i++)
    if (analysis_calls_function(view->timeline.calls, ending->stream->stack[i], &called) &&
        name_has(called.symbol, words))
      return true;
  return false;
}

/* Whether the thread ended in libc's functions that end a process, or that send it a signal. */
static bool ending_exits(struct report_view *view, const struct ending *ending)
{
  static const char *const words[] = {"exit", NULL};

  return ending->is_call && ending_is_in(view, ending, words);
}

static bool ending_kills(struct report_view *view, const struct ending *ending)
{
  static const char *const words[] = {"kill", "raise", "abort", NULL};

  return ending->is_call && ending_is_in(view, ending, words);
}

static void ending_look(struct report_view *view, uint32_t number, struct ending *ret_ending)
{
  struct ending ending = {.stream = &view->timeline.streams[number], .about = &view->timeline.list.streams[number]};
  const struct lb_branch *last = &ending.stream->last;
  uint8_t byte;

  if (last->kind < LB_BRANCH_KINDS) {
    ending.from = analysis_names_locate(view->options.names, ending.about->space, analysis_from(last));
    ending.to = analysis_names_locate(view->options.names, ending.about->space, analysis_to(last));
    ending.is_call = last->kind == LB_BRANCH_SYSCALL || last->kind == LB_BRANCH_SYSENTER;
    ending.is_nowhere = ending.to.file == ANALYSIS_NO_FILE && !ending.is_call &&
                        !analysis_names_code(view->options.names, &ending.to, &byte, 1);
  }
  *ret_ending = ending;
}

/* ---- ended processes ---- */

struct processes {
  uint32_t *exited; /* sorted */
  size_t count, capacity;
  /* Of the process that a signal ended: how many threads had sent a signal, had jumped to an address without code, were
   * running; and its last stream. */
  size_t kills, nowheres, runs;
  uint32_t latest;
};

static int number_compare(const void *a, const void *b)
{
  const uint32_t *one = a, *other = b;

  return *one < *other ? -1 : *one > *other;
}

static int processes_add(struct report_view *view, struct processes *processes, uint32_t number)
{
  struct ending ending;
  uint32_t *added;

  ending_look(view, number, &ending);
  if (view->timeline.dead && ending.about->process == view->timeline.dead) {
    processes->latest = number;
    processes->kills += ending_kills(view, &ending);
    processes->nowheres += ending.is_nowhere;
    processes->runs += !ending.is_call && ending.stream->last.kind < LB_BRANCH_KINDS;
  }
  if (!ending_exits(view, &ending))
    return 0;
  added = array_append(&processes->exited, &processes->count, &processes->capacity);
  if (!added)
    return -ENOMEM;
  *added = ending.about->process;
  return 0;
}

static int processes_look(struct report_view *view, struct processes *processes)
{
  int r = 0;

  for (uint32_t i = 0; i < view->timeline.count && r >= 0; i++)
    r = processes_add(view, processes, i);
  if (processes->count)
    qsort(processes->exited, processes->count, sizeof(*processes->exited), number_compare);
  return r;
}

static bool process_exited(const struct processes *processes, uint32_t process)
{
  return processes->count &&
         bsearch(&process, processes->exited, processes->count, sizeof(*processes->exited), number_compare) != NULL;
}

/* A trace of a machine has no threads that could die, only faults. */
static enum end machine_end(const struct ending *ending)
{
  return ending->stream->last.kind == LB_BRANCH_FAULT ? END_FAULT : END_UNKNOWN;
}

/* Whether the signal that ended the process was this thread's. If several threads were running, the trace does not tell
 * which one. */
static bool ending_is_culprit(struct report_view *view, const struct processes *processes, const struct ending *ending,
                              uint32_t number)
{
  if (processes->kills)
    return ending_kills(view, ending);
  if (processes->nowheres)
    return ending->is_nowhere;
  return processes->runs ? !ending->is_call : processes->latest == number;
}

static enum end stream_end(struct report_view *view, const struct processes *processes, const struct ending *ending,
                           uint32_t number)
{
  uint32_t process = ending->about->process;

  if (ending->stream->last.kind >= LB_BRANCH_KINDS)
    return END_UNKNOWN;
  if (view->timeline.source && !strcmp(view->timeline.source, "machine"))
    return machine_end(ending);
  if (view->timeline.dead && process == view->timeline.dead)
    return ending_is_culprit(view, processes, ending, number) ? END_DIED : ending->is_call ? END_EXIT : END_STOPPED;
  if (view->timeline.is_unfinished || ending->stream->is_cut || !view->timeline.source ||
      strcmp(view->timeline.source, "process") != 0)
    return END_UNKNOWN;
  if (ending->is_nowhere)
    return END_DIED;
  if (ending->is_call && !ending_kills(view, ending))
    return END_EXIT;
  return process_exited(processes, process) ? END_STOPPED : END_DIED;
}

/* ---- as JSON ---- */

static int put_stack(const struct timeline_stream *stream, struct text *text)
{
  size_t count = stream->stack_count < TIMELINE_STACK_MAX ? stream->stack_count : TIMELINE_STACK_MAX;
  int r = text_addf(text, ",\"depth\":%zu,\"stack\":[", stream->stack_count);

  for (size_t i = 0; i < count && r >= 0; i++)
    r = text_addf(text, "%s%u", i ? "," : "", stream->stack[i]);
  return r < 0 ? r : text_add(text, "]");
}

/* The function in which it ended: the target of the last branch, unless there is no code. */
static int put_ending(struct report_view *view, const struct ending *ending, struct text *text)
{
  const struct lb_branch *last = &ending->stream->last;
  struct analysis_names *names = view->options.names;
  int r =
    text_addf(text, ",\"end\":{\"how\":\"%s\",\"signal\":%u,\"nowhere\":%s,\"unsure\":%s", end_words[ending->end],
              ending->end == END_DIED && view->timeline.dead == ending->about->process ? view->timeline.signal : 0,
              ending->is_nowhere ? "true" : "false", ending->is_unsure ? "true" : "false");

  if (r >= 0 && last->kind < LB_BRANCH_KINDS) {
    r = text_addf(text, ",\"kind\":\"%s\",\"in\":", lb_branch_kind_name(last->kind));
    if (r >= 0)
      r = view_quote_place(text, names, ending->is_nowhere || ending->is_call ? &ending->from : &ending->to, false);
    if (r >= 0)
      r = text_add(text, ",\"from\":");
    if (r >= 0)
      r = view_quote_place(text, names, &ending->from, true);
    if (r >= 0)
      r = text_add(text, ",\"to\":");
    if (r >= 0)
      r = view_quote_place(text, names, &ending->to, true);
  }
  if (r >= 0)
    r = put_stack(ending->stream, text);
  return r < 0 ? r : text_add(text, "}");
}

static int put_stream(struct report_view *view, const struct processes *processes, uint32_t number, struct text *text)
{
  struct ending ending;
  int r;

  ending_look(view, number, &ending);
  ending.end = stream_end(view, processes, &ending, number);
  ending.is_unsure = ending.end == END_DIED && view->timeline.dead == ending.about->process && !processes->kills &&
                     !processes->nowheres && processes->runs > 1;
  r = text_addf(text, "%s{\"number\":%u,\"process\":%u,\"thread\":%u,\"branches\":%llu,\"seen\":%llu,",
                number ? ",\n" : "", number, ending.about->process, ending.about->thread,
                (unsigned long long)ending.stream->branches, (unsigned long long)ending.stream->seen);
  if (r >= 0)
    r = text_addf(text, "\"instructions\":%llu,\"name\":", (unsigned long long)ending.stream->instructions);
  if (r >= 0)
    r = view_quote(text, ending.about->name ? ending.about->name : "");
  if (r >= 0 && ending.about->command)
    r = text_add(text, ",\"command\":");
  if (r >= 0 && ending.about->command)
    r = view_quote(text, ending.about->command);
  if (r >= 0)
    r = put_ending(view, &ending, text);
  return r < 0 ? r : text_add(text, "}");
}

int view_put_streams(struct report_view *view, struct text *text)
{
  struct processes processes = {0};
  int r = processes_look(view, &processes);

  if (r >= 0)
    r = text_add(text, "\"streams\":[\n");
  for (uint32_t i = 0; i < view->timeline.count && r >= 0; i++)
    r = put_stream(view, &processes, i, text);
  free(processes.exited);
  return r < 0 ? r : text_add(text, "]");
}
