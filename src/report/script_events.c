/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in a script: lines for system calls, signals and the start and end of threads between those of branches, in
 * the order in which they end; and the span of time that is printed.
 */
#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "report/call_text.h"
#include "report/script_lines.h"

#define SECOND 1e9

static bool is_event_wanted(const struct report_script *script, uint32_t stream, uint64_t time)
{
  const struct report_script_options *options = &script->options;

  return options->events && script->printed < options->limit &&
         (options->stream == LB_TRACE_ALL || options->stream == stream) && time >= options->from &&
         (!options->to || time < options->to);
}

static void event_count(struct report_script *script)
{
  if (script->options.events == REPORT_EVENTS_ONLY)
    script->printed++;
}

/* The beginning of a line. */
static int event_begin(struct report_script *script, const char *type, uint32_t stream, uint64_t number, uint64_t time)
{
  struct text *text = &script->event;
  double seconds = (double)time / SECOND;

  event_count(script);
  if (!script->options.is_json)
    return text_addf(text, "%u %llu %.9f ", stream, (unsigned long long)number, seconds);
  return text_addf(text, "{\"type\": \"%s\", \"thread\": %u, \"number\": %llu, \"time\": %.9f", type, stream,
                   (unsigned long long)number, seconds);
}

/* The writer is empty between records. */
static int string_add(struct report_script *script, const char *key, const char *string)
{
  struct writer *writer = &script->writer;
  int r = text_addf(&script->event, ", \"%s\": ", key);

  writer_quoted(writer, string);
  if (r >= 0)
    r = text_add_bytes(&script->event, writer->bytes, writer->length);
  writer->length = 0;
  return r;
}

/* ---- system calls ---- */

static int call_add(struct text *text, const struct analysis_syscall *call)
{
  int r = call_text(text, call->call.code, call->call.arguments, call->call.argument_count, call->call.paths, 0);

  if (r < 0 || !call->has_returned)
    return r < 0 ? r : text_add(text, " = ?");
  return call_result_text(text, call->call.code, (uint64_t)call->result);
}

static int call_add_json(struct report_script *script, const struct analysis_syscall *call)
{
  struct text *text = &script->event;
  const struct trace_call_info *info = trace_call_info(call->call.code);
  struct text words = {0};
  int r = call_add(&words, call);

  if (r >= 0)
    r = text_addf(text, ", \"call\": %u", call->call.code);
  if (r >= 0)
    r = info ? string_add(script, "name", info->name) : text_add(text, ", \"name\": null");
  if (r >= 0)
    r = string_add(script, "text", text_string(&words));
  if (r >= 0)
    r = call->has_returned ? text_addf(text, ", \"result\": %lld", (long long)call->result)
                           : text_add(text, ", \"result\": null");
  text_done(&words);
  return r < 0 ? r
               : text_addf(text, ", \"duration\": %.9f, \"waited\": %.9f}\n", (double)call->duration / SECOND,
                           (double)call->waited / SECOND);
}

static int script_call(void *data, const struct analysis_syscall *call)
{
  struct report_script *script = data;
  int r;

  if (!is_event_wanted(script, call->stream, call->start))
    return 0;
  r = event_begin(script, "syscall", call->stream, call->branch, call->start);
  if (r >= 0 && script->options.is_json)
    return call_add_json(script, call);
  if (r >= 0)
    r = call_add(&script->event, call);
  return r < 0 ? r : text_addf(&script->event, " <%.6f>\n", (double)call->duration / SECOND);
}

/* ---- signals, threads ---- */

static int script_signal(void *data, const struct trace_stamp *stamp)
{
  struct report_script *script = data;
  struct text words = {0};
  int r;

  if (!is_event_wanted(script, stamp->stream, stamp->time))
    return 0;
  r = event_begin(script, "signal", stamp->stream, stamp->number, stamp->time);
  if (r >= 0)
    r = signal_text(&words, (int)stamp->code, (int)stamp->result, stamp->value);
  if (r >= 0 && script->options.is_json)
    r = text_addf(&script->event, ", \"signal\": %u, \"code\": %lld", stamp->code, (long long)stamp->result);
  if (r >= 0 && script->options.is_json)
    r = string_add(script, "text", text_string(&words));
  if (r >= 0)
    r = script->options.is_json ? text_add(&script->event, "}\n")
                                : text_addf(&script->event, "--- %s ---\n", text_string(&words));
  text_done(&words);
  return r;
}

static int life_add(struct report_script *script, const struct trace_stamp *stamp)
{
  bool is_end = stamp->type == TRACE_STAMP_END;
  int r;

  if ((!is_end && stamp->type != TRACE_STAMP_START) || !is_event_wanted(script, stamp->stream, stamp->time))
    return 0;
  r = event_begin(script, "thread", stamp->stream, stamp->number, stamp->time);
  if (r >= 0)
    r = text_addf(&script->event, script->options.is_json ? ", \"event\": \"%s\"}\n" : "+++ %s +++\n",
                  is_end ? "end" : "start");
  return r;
}

/* ---- all ---- */

bool script_needs_times(const struct report_script_options *options)
{
  bool has_field = false;

  for (size_t i = 0; i < options->field_count; i++)
    has_field |= options->fields[i] == REPORT_FIELD_TIME || options->fields[i] == REPORT_FIELD_CPU;
  return has_field || options->events || options->from || options->to;
}

int script_events_begin(struct report_script *script)
{
  const struct analysis_clock_listener listener = {script, script_call, script_signal};

  return script_needs_times(&script->options) ? analysis_clock_new(&listener, &script->clock) : 0;
}

void script_events_done(struct report_script *script)
{
  analysis_clock_free(script->clock);
  text_done(&script->event);
}

/* Moves the lines of events to the output. */
static int events_flush(struct report_script *script, struct text *text)
{
  int r = script->event.length ? text_add_bytes(text, script->event.data, script->event.length) : 0;

  script->event.length = 0;
  return r;
}

int script_events_record(struct report_script *script, const struct lb_trace_record *record, struct text *text)
{
  const struct trace_stamp *stamp = trace_record_stamp(record);
  int r;

  if (!script->clock)
    return 0;
  r = analysis_clock_record(script->clock, record);
  if (r >= 0 && stamp)
    r = life_add(script, stamp);
  return r < 0 ? r : events_flush(script, text);
}

int script_events_end(struct report_script *script, struct text *text)
{
  int r = script->clock ? analysis_clock_end(script->clock) : 0;

  return r < 0 ? r : events_flush(script, text);
}

/* The first branch of the record that is not before the time. */
static size_t first_at(const struct report_script *script, const struct lb_trace_branches *branches, uint64_t time)
{
  size_t low = 0, high = branches->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (trace_reader_time(script->options.reader, branches->first + middle) < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void script_cut(const struct report_script *script, struct lb_trace_branches *branches)
{
  size_t first, end;

  if (!script->options.from && !script->options.to)
    return;
  first = first_at(script, branches, script->options.from);
  end = !script->options.to ? branches->count : first_at(script, branches, script->options.to);
  branches->start = first ? 0 : branches->start;
  branches->first += first;
  branches->branches += first;
  branches->count = end > first ? end - first : 0;
}
