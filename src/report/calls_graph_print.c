/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions and the calls between them, as two tables or as a JSON object in each line.
 */
#include <stdio.h>

#include "report/calls_page.h"

#define NOBODY UINT32_MAX

struct printing {
  const struct calls_page *page;
  const struct calls_graph *graph;
  struct text name, other;
  uint64_t total; /* instructions */
  bool is_known;  /* of all executed code */
};

/* The name of a function, or the word for no caller. */
static const char *name_of(const struct printing *printing, uint32_t function, struct text *text)
{
  text->length = 0;
  if (function == NOBODY)
    return "-";
  return calls_name(printing->graph->walk, function, text) < 0 ? "?" : text_string(text);
}

/* ---- text ---- */

static void print_functions(struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;
  uint64_t limit = graph->walk->options->limit, lines = 0;
  const char *symbol, *module;
  char numbers[5][REPORT_NUMBER_SIZE];

  fprintf(printing->page->output.file, "Functions\n%13s %15s %15s  %6s %13s  function\n", "calls", "instructions",
          "own", "share", "own branches");
  for (size_t i = 0; i < graph->count; i++) {
    const struct graph_function *function = &graph->functions[i];

    if (!function->calls || lines++ >= limit)
      continue;
    calls_names(graph->walk, function->number, &symbol, &module);
    fprintf(printing->page->output.file, "%13s %15s %15s  %6s %13s  %s%s%s%s\n",
            report_number(&printing->page->output, function->calls, numbers[0]),
            calls_number(&printing->page->output, function->instructions, !function->unknown, numbers[1]),
            calls_number(&printing->page->output, function->own_instructions, !function->own_unknown, numbers[2]),
            calls_share(function->own_instructions, printing->total, printing->is_known, numbers[4]),
            report_number(&printing->page->output, function->own_branches, numbers[3]),
            name_of(printing, function->number, &printing->name), symbol && module ? " (" : "",
            symbol && module ? module : "", symbol && module ? ")" : "");
  }
  if (lines > limit)
    fprintf(printing->page->output.file, "... and %llu more: --top\n", (unsigned long long)(lines - limit));
}

static void print_edges(struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;
  uint64_t limit = graph->walk->options->limit;
  char numbers[2][REPORT_NUMBER_SIZE];

  fprintf(printing->page->output.file, "\nCalls\n%13s %15s  caller -> called\n", "calls", "instructions");
  for (size_t i = 0; i < graph->edge_count && i < limit; i++) {
    const struct graph_edge *edge = &graph->edges[i];

    fprintf(printing->page->output.file, "%13s %15s  %s -> %s\n",
            report_number(&printing->page->output, edge->calls, numbers[0]),
            calls_number(&printing->page->output, edge->instructions, !edge->unknown, numbers[1]),
            name_of(printing, edge->caller, &printing->name), name_of(printing, edge->callee, &printing->other));
  }
  if (graph->edge_count > limit)
    fprintf(printing->page->output.file, "... and %llu more: --top\n", (unsigned long long)(graph->edge_count - limit));
}

static void print_remarks(const struct printing *printing)
{
  const struct calls_graph *graph = printing->graph;

  fputs(
    "\nEvery number is an exact count. 'instructions' are those of a function and of all that it called; a recursive\nfunction counts once, for its outermost call. '-' is the caller of a function that was entered without a call.\n",
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

static void json_function(const struct printing *printing, const struct graph_function *function)
{
  struct analysis_called called = {0};
  char numbers[2][REPORT_NUMBER_SIZE];

  analysis_calls_function(printing->graph->walk->calls, function->number, &called);
  fprintf(printing->page->output.file, "{\"type\":\"function\",\"number\":%u,\"function\":", function->number);
  if (called.symbol)
    calls_json_string(printing->page->output.file, called.symbol);
  else
    fputs("null", printing->page->output.file);
  fputs(",\"module\":", printing->page->output.file);
  if (called.module)
    calls_json_string(printing->page->output.file, called.module);
  else
    fputs("null", printing->page->output.file);
  fprintf(
    printing->page->output.file,
    ",\"address\":\"0x%llx\",\"is_guess\":%s,\"calls\":%llu,\"instructions\":%s,\"own_instructions\":%s,\"branches\":%llu,"
    "\"own_branches\":%llu%s}\n",
    (unsigned long long)called.location.address, called.source >= ANALYSIS_EXTENT_BY_CALL ? "true" : "false",
    (unsigned long long)function->calls, calls_json_number(function->instructions, !function->unknown, numbers[0]),
    calls_json_number(function->own_instructions, !function->own_unknown, numbers[1]),
    (unsigned long long)function->branches, (unsigned long long)function->own_branches,
    calls_json_unknown(printing->graph->walk, !function->unknown && !function->own_unknown));
}

static void json_edge(struct printing *printing, const struct graph_edge *edge)
{
  char number[REPORT_NUMBER_SIZE];

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
  fprintf(printing->page->output.file, ",\"calls\":%llu,\"instructions\":%s%s}\n", (unsigned long long)edge->calls,
          calls_json_number(edge->instructions, !edge->unknown, number),
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

int calls_graph_print(const struct calls_page *page, const struct calls_graph *graph)
{
  struct printing printing = {
    .page = page, .graph = graph, .is_known = !analysis_calls_has_unknown(graph->walk->calls)};

  for (size_t i = 0; i < graph->count; i++)
    printing.total += graph->functions[i].own_instructions;
  if (page->is_json) {
    print_json(&printing);
  } else if (graph->edge_count) {
    print_functions(&printing);
    print_edges(&printing);
    print_remarks(&printing);
  }
  text_done(&printing.name);
  text_done(&printing.other);
  return 0;
}
