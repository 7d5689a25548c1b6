/* SPDX-License-Identifier: Apache-2.0
 *
 * The times of a page as JSON: system calls, signals, and waits. The longest come first, and only as many as have room;
 * the page says how many are missing.
 */
#include "report/call_text.h"
#include "report/view_page.h"

#define PATH_SHOWN 100u /* bytes of a path */
#define ROOM_SHARE 12u  /* each list gets this part of the page at most */

static int call_put(const struct timeline_event *event, struct text *text)
{
  const char *const paths[2] = {event->paths[0], event->paths[1]};
  int r = call_text(text, event->code, event->arguments, event->argument_count, paths, PATH_SHOWN);

  if (r >= 0 && event->has_returned)
    r = call_result_text(text, event->code, (uint64_t)event->result);
  return r;
}

/* The text of a call or signal, quoted. */
static int put_words(const struct timeline_event *event, struct text *text)
{
  struct text words = {0};
  int r = event->kind == TIMELINE_SYSCALL
            ? call_put(event, &words)
            : signal_text(&words, (int)(event->code & 0x7F), (int)event->result, event->value);

  if (r >= 0)
    r = text_add(text, ",");
  if (r >= 0)
    r = view_quote(text, text_string(&words));
  text_done(&words);
  return r;
}

/* [stream, start, end, duration, waited, kind], and of calls and signals also depth, function and text. */
static int put_event(const struct timeline_event *event, struct text *text)
{
  int r = text_addf(text, "[%u,%llu,%llu,%llu,%llu,%u", event->stream, (unsigned long long)event->start,
                    (unsigned long long)event->end, (unsigned long long)event->duration,
                    (unsigned long long)event->waited, event->kind);

  if (r >= 0 && (event->kind == TIMELINE_SYSCALL || event->kind == TIMELINE_SIGNAL)) {
    r = text_addf(text, ",%u,%lld", event->depth,
                  event->function == TIMELINE_NO_FUNCTION ? -1LL : (long long)event->function);
    if (r >= 0)
      r = put_words(event, text);
  }
  return r < 0 ? r : text_add(text, "]");
}

static int put_list(const struct report_view *view, const char *name, const struct timeline_event_list *list,
                    struct text *text)
{
  size_t end = text->length + (size_t)(view->options.size / ROOM_SHARE), count = 0;
  uint64_t longest = list->longest_left_out;
  int r = text_addf(text, ",\n\"%s\":{\"events\":[", name);

  for (; count < list->count && text->length < end && r >= 0; count++) {
    if (count)
      r = text_add(text, ",\n");
    if (r >= 0)
      r = put_event(&list->events[count], text);
  }
  if (count < list->count && list->events[count].duration > longest)
    longest = list->events[count].duration;
  if (r < 0)
    return r;
  return text_addf(text, "],\"left\":%llu,\"longest\":%llu}",
                   (unsigned long long)(list->left_out + list->count - count), (unsigned long long)longest);
}

int view_put_times(struct report_view *view, struct text *text)
{
  const struct timeline *timeline = &view->timeline;
  const struct report_view_options *options = &view->options;
  bool has_part = options->time_from || options->time_to != UINT64_MAX;
  int r;

  if (!timeline->has_times)
    return text_add(text, "\"times\":null");
  r = text_addf(text, "\"times\":{\"lasted\":%llu,\"part\":", (unsigned long long)timeline->time_end);
  if (r >= 0)
    r =
      has_part
        ? text_addf(text, "[%llu,%llu]", (unsigned long long)options->time_from,
                    (unsigned long long)(options->time_to < timeline->time_end ? options->time_to : timeline->time_end))
        : text_add(text, "null");
  if (r >= 0)
    r = put_list(view, "calls", &timeline->events.calls, text);
  if (r >= 0)
    r = put_list(view, "waits", &timeline->events.waits, text);
  if (r >= 0)
    r = put_list(view, "signals", &timeline->events.signals, text);
  return r < 0 ? r : text_add(text, "}");
}
