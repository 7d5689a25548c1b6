/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a page, and how each of them ended (analysis/timeline_ending.c), as JSON.
 */
#include <stdlib.h>

#include "report/report.h"
#include "report/view_page.h"

static const char *const end_words[] = {[TIMELINE_END_UNKNOWN] = "unknown",
                                        [TIMELINE_END_EXIT] = "exit",
                                        [TIMELINE_END_DIED] = "died",
                                        [TIMELINE_END_STOPPED] = "stopped",
                                        [TIMELINE_END_FAULT] = "fault"};

static int put_stack(const struct timeline_stream *stream, struct text *text)
{
  size_t count = stream->stack_count < TIMELINE_STACK_MAX ? stream->stack_count : TIMELINE_STACK_MAX;
  int r = text_addf(text, ",\"depth\":%zu,\"stack\":[", stream->stack_count);

  for (size_t i = 0; i < count && r >= 0; i++)
    r = text_addf(text, "%s%u", i ? "," : "", stream->stack[i]);
  return r < 0 ? r : text_add(text, "]");
}

/* The function in which it ended: the target of the last branch, unless there is no code. */
static int put_ending(struct report_view *view, const struct timeline_ending *ending, struct text *text)
{
  const struct lb_branch *last = &ending->stream->last;
  struct analysis_names *names = view->options.names;
  int r = text_addf(text, ",\"end\":{\"how\":\"%s\",\"signal\":%u,\"nowhere\":%s,\"unsure\":%s", end_words[ending->how],
                    ending->signal, ending->is_nowhere ? "true" : "false", ending->is_unsure ? "true" : "false");

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

/* When the shown part of the stream begins and ends, and for how long it waited for others and for the recorder. */
static int put_time(const struct timeline_stream *stream, struct text *text)
{
  const struct analysis_moment *begin = &stream->begin, *now = &stream->now;

  return text_addf(text, "\"time\":[%llu,%llu,%llu,%llu],\"past\":%s,", (unsigned long long)begin->time,
                   (unsigned long long)now->time, (unsigned long long)(now->waited - begin->waited),
                   (unsigned long long)(now->held - begin->held), stream->is_past ? "true" : "false");
}

static int put_stream(struct report_view *view, const struct timeline_ending *ending, uint32_t number,
                      struct text *text)
{
  int r = text_addf(text, "%s{\"number\":%u,\"process\":%u,\"thread\":%u,\"branches\":%llu,\"seen\":%llu,",
                    number ? ",\n" : "", number, ending->about->process, ending->about->thread,
                    (unsigned long long)ending->stream->branches, (unsigned long long)ending->stream->seen);

  if (r >= 0 && ending->stream->has_time)
    r = put_time(ending->stream, text);
  if (r >= 0)
    r = text_addf(text, "\"instructions\":%llu,\"name\":", (unsigned long long)ending->stream->instructions);
  if (r >= 0)
    r = view_quote(text, ending->about->name ? ending->about->name : "");
  if (r >= 0 && ending->about->command)
    r = text_add(text, ",\"command\":");
  if (r >= 0 && ending->about->command)
    r = view_quote(text, ending->about->command);
  if (r >= 0)
    r = put_ending(view, ending, text);
  return r < 0 ? r : text_add(text, "}");
}

int view_put_streams(struct report_view *view, struct text *text)
{
  struct timeline_ending *endings;
  int r = timeline_endings(&view->timeline, &endings);

  if (r < 0)
    return r;
  r = text_add(text, "\"streams\":[\n");
  for (uint32_t i = 0; i < view->timeline.count && r >= 0; i++)
    r = put_stream(view, &endings[i], i, text);
  free(endings);
  return r < 0 ? r : text_add(text, "]");
}
