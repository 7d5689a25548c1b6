/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations and system calls in the views of `lbr calls`. A trace without times has none of them in its output.
 */
#include <stdio.h>

#include "report/call_text.h"
#include "report/calls_page.h"
#include "report/words.h"

#define SECOND 1e9
#define PATH_SHOWN 80u /* bytes of a path in a line of the tree */

const char *calls_times_heading(const struct calls_walk *walk)
{
  return calls_walk_has_times(walk) ? "      time    waited" : "";
}

const char *calls_times(const struct calls_walk *walk, const struct analysis_cost *cost, char buffer[CALLS_TIMES_SIZE])
{
  char time[WORDS_NUMBER_SIZE] = "", waited[WORDS_NUMBER_SIZE] = "";

  *buffer = '\0';
  if (!calls_walk_has_times(walk))
    return buffer;
  if (cost->time)
    words_duration(time, cost->time);
  if (cost->waited)
    words_duration(waited, cost->waited);
  snprintf(buffer, CALLS_TIMES_SIZE, " %9s %9s", time, waited);
  return buffer;
}

const char *calls_json_times(const struct calls_walk *walk, const char *prefix, const struct analysis_cost *cost,
                             char buffer[CALLS_TIMES_SIZE])
{
  *buffer = '\0';
  if (calls_walk_has_times(walk))
    snprintf(buffer, CALLS_TIMES_SIZE, ",\"%sduration\":%.9f,\"%swaited\":%.9f", prefix, (double)cost->time / SECOND,
             prefix, (double)cost->waited / SECOND);
  return buffer;
}

void calls_times_remark(const struct calls_page *page)
{
  if (calls_walk_has_times(page->walk))
    fputs(
      "Times are measured at system calls and signals, and interpolated by branches in between. 'waited' is the part in\nwhich the thread did not run.\n",
      page->output.file);
}

/* ---- system calls ---- */

int calls_syscall_text(const struct analysis_syscall *call, struct text *text)
{
  int r = call_text(text, call->call.code, call->call.arguments, call->call.argument_count, call->call.paths, 0);

  if (r < 0 || !call->has_returned)
    return r < 0 ? r : text_add(text, " = ?");
  return call_result_text(text, call->call.code, (uint64_t)call->result);
}

int calls_tree_syscall_text(const struct calls_tree *tree, const struct tree_line *line, struct text *text)
{
  const struct tree_syscall *call = &tree->syscalls.entries[line->entry];
  const char *const paths[2] = {call->paths[0], call->paths[1]};
  int r;

  if (call->number >= TREE_SMALL - 1)
    return text_add(text, "(system call)");
  r = call_text(text, call->number, call->arguments, call->argument_count, paths, PATH_SHOWN);
  if (r < 0 || !call->has_result)
    return r;
  return call->has_returned ? call_result_text(text, call->number, (uint64_t)call->result) : text_add(text, " = ?");
}
