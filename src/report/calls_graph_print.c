/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions, their times and the calls between them, as tables or as a JSON object in each line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/calls_page.h"
#include "report/words.h"

#define NOBODY UINT32_MAX
#define SECOND 1e9

struct printing {
  const struct calls_page *page;
  const struct calls_graph *graph;
  struct text name, other;
  uint64_t total; /* weight of all */
  bool is_known;  /* the weight is known for all code */
};

/* The name of a function, or the word for no caller. */
static const char *name_of(const struct printing *printing, uint32_t function, struct text *text)
{
  text->length = 0;
  if (function == NOBODY)
    return "-";
  return calls_name(printing->graph->walk, function, text) < 0 ? "?" : text_string(text);
}

static void print_function_name(struct printing *printing, uint32_t function)
{
  const char *symbol, *module;

  calls_names(printing->graph->walk, function, &symbol, &module);
  fprintf(printing->page->output.file, "  %s%s%s%s\n", name_of(printing, function, &printing->name),
          symbol && module ? " (" : "", symbol && module ? module : "", symbol && module ? ")" : "");
}

static void print_more(const struct printing *printing, uint64_t lines)
{
  uint64_t limit = printing->graph->walk->options->limit;

  if (lines > limit)
    fprintf(printing->page->output.file, "... and %llu more: --top\n", (unsigned long long)(lines - limit));
}

/* ---- text ---- */

static void print_function(struct printing *printing, const struct graph_function *function)
{
  const struct report_output *output = &printing->page->output;
  char numbers[5][REPORT_NUMBER_SIZE];

  fprintf(
    output->file, "%13s %15s %15s  %6s %13s", report_number(output, function->calls, numbers[0]),
    calls_number(output, function->cost.instructions, !function->cost.unknown, numbers[1]),
    calls_number(output, function->own.instructions, !function->own.unknown, numbers[2]),
    calls_share(calls_weight(printing->graph->walk, &function->own), printing->total, printing->is_known, numbers[4]),
    report_number(output, function->own.branches, numbers[3]));
  print_function_name(printing, function->number);
}

static void print_functions(struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;
  uint64_t limit = graph->walk->options->limit, lines = 0;

  fprintf(printing->page->output.file, "Functions\n%13s %15s %15s  %6s %13s  function\n", "calls", "instructions",
          "own", "share", "own branches");
  for (size_t i = 0; i < graph->count; i++)
    if (graph->functions[i].calls && lines++ < limit)
      print_function(printing, &graph->functions[i]);
  print_more(printing, lines);
}

static void print_edges(struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;
  const struct report_output *output = &printing->page->output;
  char numbers[2][REPORT_NUMBER_SIZE], times[CALLS_TIMES_SIZE];

  fprintf(output->file, "\nCalls\n%13s %15s%s  caller -> called\n", "calls", "instructions",
          calls_times_heading(graph->walk));
  for (size_t i = 0; i < graph->edge_count && i < graph->walk->options->limit; i++) {
    const struct graph_edge *edge = &graph->edges[i];
    const struct analysis_cost cost = {.time = edge->time, .waited = edge->waited};

    fprintf(output->file, "%13s %15s%s  %s -> %s\n", report_number(output, edge->calls, numbers[0]),
            calls_number(output, edge->instructions, !edge->unknown, numbers[1]),
            calls_times(graph->walk, &cost, times), name_of(printing, edge->caller, &printing->name),
            name_of(printing, edge->callee, &printing->other));
  }
  print_more(printing, graph->edge_count);
}

/* ---- times ---- */

static int time_compare(const void *one, const void *other, void *walk)
{
  const struct graph_function *a = *(const struct graph_function *const *)one;
  const struct graph_function *b = *(const struct graph_function *const *)other;
  bool is_running = ((const struct calls_walk *)walk)->options->by == CALLS_BY_RUNNING;
  uint64_t time = a->own.time - (is_running ? a->own.waited : 0);
  uint64_t others = b->own.time - (is_running ? b->own.waited : 0);

  if (time != others)
    return time < others ? 1 : -1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static void print_time(struct printing *printing, const struct graph_function *function)
{
  const struct graph_call *longest = &function->longest;
  char own[WORDS_NUMBER_SIZE], most[WORDS_NUMBER_SIZE], times[CALLS_TIMES_SIZE];

  fprintf(printing->page->output.file, "%s %9s %9s %14.9f %6u %13llu",
          calls_times(printing->graph->walk, &function->cost, times) + 1, words_duration(own, function->own.time),
          words_duration(most, longest->cost.time), (double)longest->start / SECOND, longest->stream,
          (unsigned long long)longest->branch);
  print_function_name(printing, function->number);
}

/* The times of each function, and its longest call. */
static int print_times(struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;
  const struct graph_function **order = malloc((graph->count + 1) * sizeof(const struct graph_function *));
  uint64_t limit = graph->walk->options->limit;
  size_t count = 0;

  if (!order)
    return -ENOMEM;
  for (size_t i = 0; i < graph->count; i++)
    if (graph->functions[i].calls && graph->functions[i].longest.cost.time)
      order[count++] = &graph->functions[i];
  qsort_r(order, count, sizeof(const struct graph_function *), time_compare, (void *)graph->walk);
  fprintf(printing->page->output.file, "\nTimes\n%9s %9s %9s %9s %14s %6s %13s  function\n", "time", "waited", "own",
          "longest", "from second", "thread", "branch");
  for (size_t i = 0; i < count && i < limit; i++)
    print_time(printing, order[i]);
  print_more(printing, count);
  free(order);
  return 0;
}

static void print_remarks(const struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;

  fputs(
    "\nEvery number is an exact count. 'instructions' are those of a function and of all that it called; a recursive\nfunction counts once, for its outermost call. '-' is the caller of a function that was entered without a call.\n",
    printing->page->output.file);
  calls_times_remark(printing->page);
  if (calls_walk_has_times(graph->walk))
    fputs(
      "'longest' is the longest call of the function, which began at that second of the recording with that branch of\nthat thread: 'lbr calls --all --thread --between BRANCH..' or --time shows it.\n",
      printing->page->output.file);
  if (graph->has_forgotten)
    fputs("There were too many pairs of caller and callee: some are left out.\n", printing->page->output.file);
  if (analysis_code_is_exhausted(graph->walk->code))
    fputs("'-' for instructions: the trace names more code than lbr decodes for a file.\n",
          printing->page->output.file);
  else if (analysis_calls_has_unknown(graph->walk->calls))
    fputs("'-' for instructions: some of the code that ran there is not known, or not 64-bit code.\n",
          printing->page->output.file);
}

/* ---- JSON ---- */

void calls_json_string(FILE *file, const char *string)
{
  putc('"', file);
  for (; *string; string++) {
    if (*string == '"' || *string == '\\')
      putc('\\', file);
    putc(*string, file);
  }
  putc('"', file);
}

static void json_name(FILE *file, const char *key, const char *name)
{
  fprintf(file, ",\"%s\":", key);
  if (name)
    calls_json_string(file, name);
  else
    fputs("null", file);
}

static void json_function_times(const struct printing *printing, const struct graph_function *function)
{
  FILE *file = printing->page->output.file;
  const struct graph_call *longest = &function->longest;
  char times[CALLS_TIMES_SIZE];

  if (!calls_walk_has_times(printing->graph->walk))
    return;
  fputs(calls_json_times(printing->graph->walk, "", &function->cost, times), file);
  fputs(calls_json_times(printing->graph->walk, "own_", &function->own, times), file);
  if (longest->cost.time)
    fprintf(file, ",\"longest\":{\"time\":%.9f,\"thread\":%u,\"branch\":%llu%s}", (double)longest->start / SECOND,
            longest->stream, (unsigned long long)longest->branch,
            calls_json_times(printing->graph->walk, "", &longest->cost, times));
  else
    fputs(",\"longest\":null", file);
}

static void json_function(const struct printing *printing, const struct graph_function *function)
{
  FILE *file = printing->page->output.file;
  struct analysis_called called = {0};
  char numbers[2][REPORT_NUMBER_SIZE];

  analysis_calls_function(printing->graph->walk->calls, function->number, &called);
  fprintf(file, "{\"type\":\"function\",\"number\":%u", function->number);
  json_name(file, "function", called.symbol);
  json_name(file, "module", called.module);
  fprintf(
    file,
    ",\"address\":\"0x%llx\",\"is_guess\":%s,\"calls\":%llu,\"instructions\":%s,\"own_instructions\":%s,\"branches\":%llu,"
    "\"own_branches\":%llu",
    (unsigned long long)called.location.address, called.source >= ANALYSIS_EXTENT_BY_CALL ? "true" : "false",
    (unsigned long long)function->calls,
    calls_json_number(function->cost.instructions, !function->cost.unknown, numbers[0]),
    calls_json_number(function->own.instructions, !function->own.unknown, numbers[1]),
    (unsigned long long)function->cost.branches, (unsigned long long)function->own.branches);
  json_function_times(printing, function);
  fprintf(file, "%s}\n", calls_json_unknown(printing->graph->walk, !function->cost.unknown && !function->own.unknown));
}

static void json_edge(struct printing *printing, const struct graph_edge *edge)
{
  const struct analysis_cost cost = {.time = edge->time, .waited = edge->waited};
  char number[REPORT_NUMBER_SIZE], times[CALLS_TIMES_SIZE];

  fputs("{\"type\":\"calls\",\"caller\":", printing->page->output.file);
  if (edge->caller == NOBODY)
    fputs("null", printing->page->output.file);
  else
    fprintf(printing->page->output.file, "%u", edge->caller);
  fprintf(printing->page->output.file, ",\"called\":%u,\"caller_name\":", edge->callee);
  if (edge->caller == NOBODY)
    fputs("null", printing->page->output.file);
  else
    calls_json_string(printing->page->output.file, name_of(printing, edge->caller, &printing->name));
  fputs(",\"called_name\":", printing->page->output.file);
  calls_json_string(printing->page->output.file, name_of(printing, edge->callee, &printing->other));
  fprintf(printing->page->output.file, ",\"calls\":%llu,\"instructions\":%s%s%s}\n", (unsigned long long)edge->calls,
          calls_json_number(edge->instructions, !edge->unknown, number),
          calls_json_times(printing->graph->walk, "", &cost, times),
          calls_json_unknown(printing->graph->walk, !edge->unknown));
}

static void print_json(struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;

  for (size_t i = 0; i < graph->count; i++)
    if (graph->functions[i].calls)
      json_function(printing, &graph->functions[i]);
  for (size_t i = 0; i < graph->edge_count; i++)
    json_edge(printing, &graph->edges[i]);
}

static int print_text(struct printing *printing)
{
  int r;

  print_functions(printing);
  r = calls_walk_has_times(printing->graph->walk) ? print_times(printing) : 0;
  if (r < 0)
    return r;
  print_edges(printing);
  print_remarks(printing);
  return 0;
}

int calls_graph_print(const struct calls_page *page, const struct calls_graph *graph)
{
  const struct calls_walk *walk = graph->walk;
  struct printing printing = {
    .page = page,
    .graph = graph,
    .is_known = walk->options->by != CALLS_BY_INSTRUCTIONS || !analysis_calls_has_unknown(walk->calls),
  };
  int r = 0;

  for (size_t i = 0; i < graph->count; i++)
    printing.total += calls_weight(walk, &graph->functions[i].own);
  if (page->is_json)
    print_json(&printing);
  else if (graph->edge_count)
    r = print_text(&printing);
  text_done(&printing.name);
  text_done(&printing.other);
  return r;
}
