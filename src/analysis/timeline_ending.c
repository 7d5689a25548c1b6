/* SPDX-License-Identifier: Apache-2.0
 *
 * How each stream of a timeline ended. A thread that ends by itself does so in a system call, which is its last branch.
 * A thread with any other last branch was stopped: by a fault or a signal, or because another thread ended the process.
 * The recording program may have noted what ended it ("end" of the trace's facts).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names.h"
#include "analysis/timeline.h"
#include "base/base.h"

#define CALLERS 4u /* callers of the function in which a thread ended */

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
static bool ending_is_in(struct timeline *timeline, const struct timeline_ending *ending, const char *const *words)
{
  struct analysis_called called;
  struct analysis_name name;

  if (analysis_names_symbol(timeline->options.names, &ending->from, &name) && name_has(name.symbol, words))
    return true;
  for (size_t i = 0; i < ending->stream->stack_count && i < CALLERS; i++)
    if (analysis_calls_function(timeline->calls, ending->stream->stack[i], &called) && name_has(called.symbol, words))
      return true;
  return false;
}

/* Whether the thread ended in libc's functions that end a process, or that send it a signal. */
static bool ending_exits(struct timeline *timeline, const struct timeline_ending *ending)
{
  static const char *const words[] = {"exit", NULL};

  return ending->is_call && ending_is_in(timeline, ending, words);
}

static bool ending_kills(struct timeline *timeline, const struct timeline_ending *ending)
{
  static const char *const words[] = {"kill", "raise", "abort", NULL};

  return ending->is_call && ending_is_in(timeline, ending, words);
}

static void ending_look(struct timeline *timeline, uint32_t number, struct timeline_ending *ret_ending)
{
  struct timeline_ending ending = {.stream = &timeline->streams[number], .about = &timeline->list.streams[number]};
  const struct lb_branch *last = &ending.stream->last;
  uint8_t byte;

  if (last->kind < LB_BRANCH_KINDS) {
    ending.from = analysis_names_locate(timeline->options.names, ending.about->space, analysis_from(last));
    ending.to = analysis_names_locate(timeline->options.names, ending.about->space, analysis_to(last));
    ending.is_call = last->kind == LB_BRANCH_SYSCALL || last->kind == LB_BRANCH_SYSENTER;
    ending.is_nowhere = ending.to.file == ANALYSIS_NO_FILE && !ending.is_call &&
                        !analysis_names_code(timeline->options.names, &ending.to, &byte, 1);
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

static int processes_add(struct timeline *timeline, struct processes *processes, uint32_t number)
{
  struct timeline_ending ending;
  uint32_t *added;

  ending_look(timeline, number, &ending);
  if (timeline->dead && ending.about->process == timeline->dead) {
    processes->latest = number;
    processes->kills += ending_kills(timeline, &ending);
    processes->nowheres += ending.is_nowhere;
    processes->runs += !ending.is_call && ending.stream->last.kind < LB_BRANCH_KINDS;
  }
  if (!ending_exits(timeline, &ending))
    return 0;
  added = array_append(&processes->exited, &processes->count, &processes->capacity);
  if (!added)
    return -ENOMEM;
  *added = ending.about->process;
  return 0;
}

static int processes_look(struct timeline *timeline, struct processes *processes)
{
  int r = 0;

  for (uint32_t i = 0; i < timeline->count && r >= 0; i++)
    r = processes_add(timeline, processes, i);
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
static enum timeline_end_how machine_end(const struct timeline_ending *ending)
{
  return ending->stream->last.kind == LB_BRANCH_FAULT ? TIMELINE_END_FAULT : TIMELINE_END_UNKNOWN;
}

/* Whether the signal that ended the process was this thread's. If several threads were running, the trace does not tell
 * which one. */
static bool ending_is_culprit(struct timeline *timeline, const struct processes *processes,
                              const struct timeline_ending *ending, uint32_t number)
{
  if (processes->kills)
    return ending_kills(timeline, ending);
  if (processes->nowheres)
    return ending->is_nowhere;
  return processes->runs ? !ending->is_call : processes->latest == number;
}

static enum timeline_end_how stream_end(struct timeline *timeline, const struct processes *processes,
                                        const struct timeline_ending *ending, uint32_t number)
{
  uint32_t process = ending->about->process;

  if (ending->stream->last.kind >= LB_BRANCH_KINDS)
    return TIMELINE_END_UNKNOWN;
  if (timeline->source && !strcmp(timeline->source, "machine"))
    return machine_end(ending);
  if (timeline->dead && process == timeline->dead)
    return ending_is_culprit(timeline, processes, ending, number) ? TIMELINE_END_DIED
           : ending->is_call                                      ? TIMELINE_END_EXIT
                                                                  : TIMELINE_END_STOPPED;
  if (timeline->is_unfinished || ending->stream->is_cut || !timeline->source ||
      strcmp(timeline->source, "process") != 0)
    return TIMELINE_END_UNKNOWN;
  if (ending->is_nowhere)
    return TIMELINE_END_DIED;
  if (ending->is_call && !ending_kills(timeline, ending))
    return TIMELINE_END_EXIT;
  return process_exited(processes, process) ? TIMELINE_END_STOPPED : TIMELINE_END_DIED;
}

int timeline_endings(struct timeline *timeline, struct timeline_ending **ret_endings)
{
  struct timeline_ending *endings = calloc(timeline->count + 1, sizeof(*endings));
  struct processes processes = {0};
  int r = endings ? processes_look(timeline, &processes) : -ENOMEM;

  for (uint32_t i = 0; i < timeline->count && r >= 0; i++) {
    struct timeline_ending *ending = &endings[i];
    bool is_dead;

    ending_look(timeline, i, ending);
    ending->how = stream_end(timeline, &processes, ending, i);
    is_dead = ending->how == TIMELINE_END_DIED && timeline->dead == ending->about->process;
    ending->is_unsure = is_dead && !processes.kills && !processes.nowheres && processes.runs > 1;
    ending->signal = is_dead ? timeline->signal : 0;
  }
  free(processes.exited);
  if (r < 0)
    free(endings);
  else
    *ret_endings = endings;
  return r;
}
