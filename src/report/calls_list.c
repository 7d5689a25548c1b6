/* SPDX-License-Identifier: Apache-2.0
 *
 * One line for each call, or two: a call that calls others is opened and closed. Calls are not stored, so that a trace
 * of any length can be shown. In JSON a call is one object, in the order in which calls end. System calls are lines and
 * objects, too.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/calls_page.h"
#include "trace/trace.h"

#define FLUSH_SIZE (1u << 15) /* bytes */
#define SECOND 1e9

static const char *const how_words[] = {"start", "call", "tail", "signal", "return", "unwind", "end", "lost"};

/* ---- lines ---- */

static int list_flush(struct calls_list *list)
{
  fwrite(list->text.data, 1, list->text.length, list->page->output.file);
  list->text.length = 0;
  return ferror(list->page->output.file) ? -EIO : 0;
}

/* Ends a line. Returns 0, 1 if it was the last wanted line, or negative. */
static int line_end(struct calls_list *list)
{
  int r = text_add(&list->text, "\n");

  if (r >= 0 && list->text.length >= FLUSH_SIZE)
    r = list_flush(list);
  if (r >= 0 && ++list->lines >= list->walk->options->limit) {
    list->is_cut = true;
    return 1;
  }
  return r;
}

/* The titles of the columns. They are printed with the first line: by then it is known whether there are times. */
static int put_heading(struct calls_list *list)
{
  if (list->has_heading)
    return 0;
  list->has_heading = true;
  list->indent_max = calls_indent_max(&list->page->output, calls_walk_has_times(list->walk));
  return text_addf(&list->text, "%s%15s %13s%s  call\n", list->has_threads ? "thrd  " : "", "instructions", "branches",
                   calls_times_heading(list->walk));
}

/* The numbers of a call that has ended, and blanks for one that has not (`cost` is NULL). A system call has times only.
 */
static int put_numbers(struct calls_list *list, uint32_t stream, uint32_t level, const struct analysis_cost *cost,
                       bool is_function)
{
  char instructions[REPORT_NUMBER_SIZE] = "", branches[REPORT_NUMBER_SIZE] = "", times[CALLS_TIMES_SIZE] = "";
  int r = put_heading(list);

  if (r >= 0 && list->has_threads)
    r = text_addf(&list->text, "%5u ", stream);
  if (cost && is_function) {
    snprintf(instructions, sizeof(instructions), cost->unknown ? "-" : "%llu", (unsigned long long)cost->instructions);
    snprintf(branches, sizeof(branches), "%llu", (unsigned long long)cost->branches);
  }
  if (cost)
    calls_times(list->walk, cost, times);
  else if (calls_walk_has_times(list->walk))
    snprintf(times, sizeof(times), "%*s", (int)strlen(calls_times_heading(list->walk)), "");
  if (r >= 0)
    r = text_addf(&list->text, "%15s %13s%s  ", instructions, branches, times);
  if (r < 0)
    return r;
  return level <= list->indent_max ? text_addf(&list->text, "%*s", 2 * (int)level, "")
                                   : text_addf(&list->text, "%*s(level %u) ", 2 * (int)list->indent_max, "", level);
}

static int put_remarks(struct calls_list *list, const struct calls_node *node, bool is_entered, bool is_left)
{
  int r = 0;

  if (is_entered && node->how != ANALYSIS_CALL_CALL)
    r = text_addf(&list->text, "  [%s]", how_words[node->how]);
  if (r >= 0 && is_left && node->left != ANALYSIS_CALL_RETURN)
    r = text_addf(&list->text, "  [%s]", how_words[node->left]);
  return r;
}

/* "f {", "} f", or "f" for a call that calls nothing. */
static int put_call(struct calls_list *list, uint32_t stream, const struct calls_node *node, bool is_entered,
                    bool is_left)
{
  int r = put_numbers(list, stream, node->level, is_left ? &node->cost : NULL, true);

  if (r >= 0 && !is_entered)
    r = text_add(&list->text, "} ");
  if (r >= 0)
    r = calls_name(list->walk, node->function, &list->text);
  if (r >= 0 && !is_left)
    r = text_add(&list->text, " {");
  if (r >= 0)
    r = put_remarks(list, node, is_entered, is_left);
  return r < 0 ? r : line_end(list);
}

/* Prints the newest call as opened: it calls others, or another thread continues. */
static int list_settle(struct calls_list *list)
{
  struct calls_stream *stream = &list->walk->streams[list->stream];
  size_t i = stream->count;

  if (!list->has_pending)
    return 0;
  list->has_pending = false;
  while (i && !stream->nodes[i - 1].mark)
    i--;
  if (!i)
    return 0;
  stream->nodes[i - 1].mark = 0;
  return put_call(list, list->stream, &stream->nodes[i - 1], true, false);
}

static int list_enter(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  struct calls_list *list = data;
  int r = list_settle(list);

  nodes[count - 1].mark = 1;
  list->has_pending = true;
  list->stream = stream;
  return r;
}

static int list_leave(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  struct calls_node *node = &nodes[count - 1];
  struct calls_list *list = data;
  bool is_leaf = list->has_pending && list->stream == stream && node->mark;
  int r = is_leaf ? 0 : list_settle(list);

  if (is_leaf)
    list->has_pending = false;
  return r ? r : put_call(list, stream, node, is_leaf, true);
}

static int list_syscall(void *data, uint32_t level, const struct analysis_syscall *call)
{
  struct calls_list *list = data;
  const struct analysis_cost cost = {.time = call->duration, .waited = call->waited};
  int r = list_settle(list);

  if (r)
    return r;
  r = put_numbers(list, call->stream, level, &cost, false);
  if (r >= 0)
    r = calls_syscall_text(call, &list->text);
  return r < 0 ? r : line_end(list);
}

/* ---- JSON ---- */

static int put_quoted(struct text *text, const char *key, const char *string)
{
  int r = text_addf(text, ",\"%s\":", key);

  if (!string)
    return r < 0 ? r : text_add(text, "null");
  if (r >= 0)
    r = text_add(text, "\"");
  for (; r >= 0 && *string; string++) {
    if (*string == '"' || *string == '\\')
      r = text_add(text, "\\");
    if (r >= 0)
      r = text_add_bytes(text, string, 1);
  }
  return r < 0 ? r : text_add(text, "\"");
}

static int json_enter(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  (void)data;
  (void)stream;
  (void)nodes;
  (void)count;
  return 0;
}

/* The costs of a call. */
static int json_costs(struct calls_list *list, const struct calls_node *node)
{
  struct analysis_cost own = calls_cost_own(node);
  char numbers[2][REPORT_NUMBER_SIZE], times[2][CALLS_TIMES_SIZE];
  int r =
    text_addf(&list->text, ",\"branch\":%llu,\"branches\":%llu,\"own_branches\":%llu", (unsigned long long)node->branch,
              (unsigned long long)node->cost.branches, (unsigned long long)own.branches);

  if (r >= 0)
    r = text_addf(&list->text, ",\"instructions\":%s,\"own_instructions\":%s%s",
                  calls_json_number(node->cost.instructions, !node->cost.unknown, numbers[0]),
                  calls_json_number(own.instructions, !own.unknown, numbers[1]),
                  calls_json_unknown(list->walk, !node->cost.unknown));
  if (r >= 0 && calls_walk_has_times(list->walk))
    r = text_addf(&list->text, ",\"time\":%.9f%s%s", (double)node->start.time / SECOND,
                  calls_json_times(list->walk, "", &node->cost, times[0]),
                  calls_json_times(list->walk, "own_", &own, times[1]));
  return r < 0 ? r : text_add(&list->text, "}");
}

static int json_leave(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  const struct calls_node *node = &nodes[count - 1];
  struct calls_list *list = data;
  struct text *text = &list->text;
  struct analysis_called called = {0};
  int r = text_addf(text, "{\"thread\":%u,\"level\":%u", stream, node->level);

  analysis_calls_function(list->walk->calls, node->function, &called);
  if (r >= 0)
    r = put_quoted(text, "function", called.symbol);
  if (r >= 0)
    r = put_quoted(text, "module", called.module);
  if (r >= 0)
    r = text_addf(text, ",\"address\":\"0x%llx\",\"is_guess\":%s,\"entered\":\"%s\",\"left\":\"%s\"",
                  (unsigned long long)called.location.address,
                  called.source >= ANALYSIS_EXTENT_BY_CALL ? "true" : "false", how_words[node->how],
                  how_words[node->left]);
  if (r >= 0)
    r = json_costs(list, node);
  return r < 0 ? r : line_end(list);
}

static int json_syscall(void *data, uint32_t level, const struct analysis_syscall *call)
{
  const struct analysis_cost cost = {.time = call->duration, .waited = call->waited};
  const struct trace_call_info *info = trace_call_info(call->call.code);
  struct calls_list *list = data;
  struct text words = {0};
  char times[CALLS_TIMES_SIZE], result[REPORT_NUMBER_SIZE] = "null";
  int r = calls_syscall_text(call, &words);

  if (call->has_returned)
    snprintf(result, sizeof(result), "%lld", (long long)call->result);
  if (r >= 0)
    r = text_addf(&list->text, "{\"type\":\"syscall\",\"thread\":%u,\"level\":%u,\"call\":%u", call->stream, level,
                  call->call.code);
  if (r >= 0)
    r = put_quoted(&list->text, "name", info ? info->name : NULL);
  if (r >= 0)
    r = put_quoted(&list->text, "text", text_string(&words));
  if (r >= 0)
    r = text_addf(&list->text, ",\"result\":%s,\"branch\":%llu,\"time\":%.9f%s}", result,
                  (unsigned long long)call->branch, (double)call->start / SECOND,
                  calls_json_times(list->walk, "", &cost, times));
  text_done(&words);
  return r < 0 ? r : line_end(list);
}

/* ---- all of it ---- */

void calls_list_begin(struct calls_list *list, const struct calls_page *page, bool has_threads)
{
  *list = (struct calls_list){.page = page, .walk = page->walk, .has_threads = has_threads};
  page->walk->view = page->is_json ? (struct calls_view){json_enter, json_leave, list, json_syscall}
                                   : (struct calls_view){list_enter, list_leave, list, list_syscall};
}

int calls_list_end(struct calls_list *list)
{
  return list->text.length ? list_flush(list) : 0;
}

void calls_list_done(struct calls_list *list)
{
  text_done(&list->text);
}
