/* SPDX-License-Identifier: Apache-2.0
 *
 * One line for each call, or two: a call that calls others is opened and closed. Calls are not stored, so that a trace
 * of any length can be shown. In JSON a call is one object, in the order in which calls end.
 */
#include <errno.h>
#include <stdio.h>

#include "report/calls_page.h"

#define FLUSH_SIZE (1u << 15) /* bytes */

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

static int put_numbers(struct calls_list *list, uint32_t stream, const struct calls_node *node, bool is_done)
{
  char number[REPORT_NUMBER_SIZE];
  int r = list->has_threads ? text_addf(&list->text, "%5u ", stream) : 0;

  if (r >= 0 && is_done)
    r =
      text_addf(&list->text, "%15s %13llu  ", node->unknown ? "-" : calls_json_number(node->instructions, true, number),
                (unsigned long long)node->branches);
  else if (r >= 0)
    r = text_addf(&list->text, "%15s %13s  ", "", "");
  if (r >= 0)
    r = node->level <= list->indent_max
          ? text_addf(&list->text, "%*s", 2 * (int)node->level, "")
          : text_addf(&list->text, "%*s(level %u) ", 2 * (int)list->indent_max, "", node->level);
  return r;
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
  int r = put_numbers(list, stream, node, is_left);

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

static int json_leave(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  const struct calls_node *node = &nodes[count - 1];
  struct calls_list *list = data;
  struct text *text = &list->text;
  struct analysis_called called = {0};
  char numbers[2][REPORT_NUMBER_SIZE];
  int r = text_addf(text, "{\"thread\":%u,\"level\":%u", stream, node->level);

  analysis_calls_function(list->walk->calls, node->function, &called);
  if (r >= 0)
    r = put_quoted(text, "function", called.symbol);
  if (r >= 0)
    r = put_quoted(text, "module", called.module);
  if (r >= 0)
    r = text_addf(
      text,
      ",\"address\":\"0x%llx\",\"is_guess\":%s,\"entered\":\"%s\",\"left\":\"%s\",\"branch\":%llu,\"branches\":%llu,"
      "\"own_branches\":%llu",
      (unsigned long long)called.location.address, called.source >= ANALYSIS_EXTENT_BY_CALL ? "true" : "false",
      how_words[node->how], how_words[node->left], (unsigned long long)node->branch, (unsigned long long)node->branches,
      (unsigned long long)(node->branches - node->inner_branches));
  if (r >= 0)
    r = text_addf(text, ",\"instructions\":%s,\"own_instructions\":%s%s}",
                  calls_json_number(node->instructions, !node->unknown, numbers[0]),
                  calls_json_number(node->instructions - node->inner_instructions, node->unknown == node->inner_unknown,
                                    numbers[1]),
                  calls_json_unknown(list->walk, !node->unknown));
  return r < 0 ? r : line_end(list);
}

/* ---- all of it ---- */

void calls_list_begin(struct calls_list *list, const struct calls_page *page, bool has_threads)
{
  *list = (struct calls_list){
    .page = page, .indent_max = calls_indent_max(&page->output), .walk = page->walk, .has_threads = has_threads};
  page->walk->view = page->is_json ? (struct calls_view){json_enter, json_leave, list}
                                   : (struct calls_view){list_enter, list_leave, list};
  if (!page->is_json)
    fprintf(page->output.file, "%s%15s %13s  call\n", has_threads ? "thrd  " : "", "instructions", "branches");
}

int calls_list_end(struct calls_list *list)
{
  return list->text.length ? list_flush(list) : 0;
}

void calls_list_done(struct calls_list *list)
{
  text_done(&list->text);
}
