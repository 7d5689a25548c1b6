/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr stat`: facts about the trace, then tables of kinds, threads, modules, functions, edges, gaps.
 */
#include "report/stat_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "report/page.h"
#include "report/words.h"

#define ROWS_MAX 50u /* threads and modules that the text shows; JSON has all */

/* ---- values ---- */

/* A number with a fraction; negative if unknown. */
static void put_fraction(struct page *page, const char *key, double value)
{
  char text[64];

  if (value < 0) {
    page_absent(page, key);
    return;
  }
  snprintf(text, sizeof(text), page->is_json ? "%.6g" : "%.3f", value);
  if (page->is_json)
    page_put_json(page, key, text);
  else
    page_put(page, key, text);
}

static void put_share(struct page *page, uint64_t part, uint64_t whole)
{
  double share = whole ? (double)part / (double)whole : 0;

  if (page->is_json)
    put_fraction(page, "share", share);
  else
    page_putf(page, "share", "%5.1f%%", 100 * share);
}

/* An unknown value is null in JSON and "" in a cell of text. */
static void put_word(struct page *page, const char *key, const char *word)
{
  page_put(page, key, word || page->is_json ? word : "");
}

static void put_optional(struct page *page, const char *key, const char *word)
{
  if (word)
    page_put(page, key, word);
  else
    page_absent(page, key);
}

static void put_time(struct page *page, const char *word)
{
  uint64_t seconds;
  struct tm parts;
  time_t time;
  char text[64];

  if (!word || number_parse(word, &seconds) < 0 || seconds > INT32_MAX * UINT64_C(100)) {
    page_absent(page, "time");
    return;
  }
  time = (time_t)seconds;
  if (gmtime_r(&time, &parts) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts))
    page_put(page, "time", text);
}

/* ---- the head ---- */

/* Whether the trace has all branches of the run. Only then their number can be compared with that of instructions. */
static bool has_all(const struct stat_page *stat)
{
  const struct analysis_totals *totals = analysis_summary_totals(stat->summary);

  for (unsigned i = 0; i < LB_TRACE_GAP_REASONS; i++)
    if (totals->gaps[i])
      return false;
  return !stat->input->has_failed;
}

static void put_metas(const struct stat_page *stat, struct page *page)
{
  static const char *const keys[] = {"producer", "source", "recorder", "sampling", "cpu", "command", "host"};

  for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
    put_optional(page, keys[i], analysis_summary_meta(stat->summary, keys[i]));
  put_time(page, analysis_summary_meta(stat->summary, "time"));
  put_optional(page, "trigger", analysis_summary_meta(stat->summary, "trigger"));
  put_optional(page, "remark", analysis_summary_meta(stat->summary, "remark"));
}

/* The conditional branches that were not taken, and the share of those that were, if the trace has the numbers. */
static void put_conditional(const struct stat_page *stat, struct page *page, uint64_t taken)
{
  uint64_t not_taken = stat->module ? stat->module->not_taken : 0;
  bool is_known = stat->module ? stat->module->is_known : lb_trace_reader_not_taken(stat->input->reader, &not_taken);

  if (!is_known) {
    page_absent(page, "not_taken");
    put_fraction(page, "taken_rate", -1);
    return;
  }
  page_put_count(page, "not_taken", not_taken);
  put_fraction(page, "taken_rate", taken + not_taken ? (double)taken / (double)(taken + not_taken) : -1);
}

/* Only the machine and LBR records mark mispredicted branches; other sources do not. */
static void put_mispredicted(const struct stat_page *stat, struct page *page, uint64_t count)
{
  const char *source = analysis_summary_meta(stat->summary, "source");
  const char *recorder = analysis_summary_meta(stat->summary, "recorder");

  if (count || (source && !strcmp(source, "machine")) || (recorder && !strcmp(recorder, "lbr")))
    page_put_count(page, "mispredicted", count);
  else
    page_put(page, "mispredicted", page->is_json ? NULL : "not known");
}

/* The instructions of a run are in the trace; those of a module were counted. Returns 0 if unknown. */
static uint64_t put_instructions(const struct stat_page *stat, struct page *page)
{
  const char *word = analysis_summary_meta(stat->summary, "instructions");
  uint64_t instructions = 0;
  bool is_known = stat->module ? stat->module->is_known : word && number_parse(word, &instructions) >= 0;

  if (stat->module && is_known)
    instructions = stat->module->instructions;
  if (is_known)
    page_put_count(page, "instructions", instructions);
  else
    page_absent(page, "instructions");
  return instructions;
}

static void put_head(const struct stat_page *stat, struct page *page)
{
  const struct analysis_totals *totals = analysis_summary_totals(stat->summary);
  uint64_t instructions;

  put_optional(page, "module", stat->module ? stat->module->name : NULL);
  page_put_flag(page, "complete", trace_input_is_whole(stat->input) && !stat->input->is_incomplete);
  put_metas(stat, page);
  page_put_count(page, "branches", totals->branches);
  put_conditional(stat, page, totals->kinds[LB_BRANCH_JCC]);
  put_mispredicted(stat, page, totals->mispredicted);
  page_put_count(page, "cpl_changes", totals->cpl_changes);
  instructions = put_instructions(stat, page);
  put_fraction(page, "taken_per_instruction",
               instructions && has_all(stat) ? (double)totals->branches / (double)instructions : -1);
  page_put_count(page, "bytes", stat->input->size);
  put_fraction(page, "bits_per_branch",
               totals->branches && !stat->module ? 8 * (double)stat->input->size / (double)totals->branches : -1);
  page_put_count(page, "code_bytes", totals->code_bytes);
}

/* ---- tables ---- */

static void put_kinds(const struct stat_page *stat, struct page *page)
{
  static const struct page_column columns[] = {{"kind", 16}, {"branches", 16}, {"share", 0}, {NULL, 0}};
  const struct analysis_totals *totals = analysis_summary_totals(stat->summary);

  page_heading(page, "Kinds");
  page_table(page, "kinds", columns);
  for (unsigned i = 0; i < LB_BRANCH_KINDS; i++) {
    if (!totals->kinds[i])
      continue;
    page_row(page, false);
    page_put(page, "kind", lb_branch_kind_name(i));
    page_put_count(page, "branches", totals->kinds[i]);
    put_share(page, totals->kinds[i], totals->branches);
    page_row_end(page);
  }
  page_table_end(page);
}

/* When a thread began, and how long it ran and waited. A trace without times has no such columns. */
static void put_times(const struct stat_page *stat, struct page *page, uint32_t number, bool has_times)
{
  static const char *const keys[] = {"start", "duration", "running", "waiting"};
  struct analysis_thread_time time = {0};
  bool is_known = analysis_thread_times_of(analysis_summary_times(stat->summary), number, &time);
  const uint64_t values[] = {time.start, time.all, time.all - time.waited, time.waited};

  for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && (has_times || page->is_json); i++) {
    if (is_known)
      words_put_duration(page, keys[i], values[i], 0);
    else
      page_put(page, keys[i], NULL);
  }
}

static void put_threads(const struct stat_page *stat, struct page *page)
{
  static const struct page_column plain[] = {{"thread", 7},   {"branches", 14}, {"lost", 12},   {"process", 8},
                                             {"system's", 9}, {"name", 16},     {"command", 0}, {NULL, 0}};
  static const struct page_column timed[] = {{"thread", 7},   {"branches", 14}, {"lost", 12},   {"process", 8},
                                             {"system's", 9}, {"name", 15},     {"start", 8},   {"duration", 8},
                                             {"running", 8},  {"waiting", 8},   {"command", 0}, {NULL, 0}};
  struct analysis_thread_time time;
  bool has_times = analysis_thread_times_sum(analysis_summary_times(stat->summary), LB_TRACE_ALL, &time);
  struct analysis_stream stream;

  page_heading(page, "Threads");
  page_table(page, "threads", has_times ? timed : plain);
  for (size_t i = 0; analysis_summary_stream(stat->summary, i, &stream); i++) {
    if (i >= ROWS_MAX && !page->is_json)
      continue;
    page_row(page, false);
    page_put_number(page, "thread", i);
    page_put_count(page, "branches", stream.branches);
    page_put_count(page, "lost", stream.lost);
    page_put_number(page, "process", stream.process);
    page_put_number(page, "system_thread", stream.thread);
    put_word(page, "name", stream.name);
    put_times(stat, page, (uint32_t)i, has_times);
    put_word(page, "command", stream.command);
    page_row_end(page);
  }
  page_table_end(page);
}

static void put_build_id(struct page *page, const struct analysis_file *file)
{
  char text[2 * LB_TRACE_BUILD_ID_MAX + 1] = "";

  for (size_t i = 0; i < file->build_id_size; i++)
    sprintf(text + 2 * i, "%02x", file->build_id[i]);
  put_word(page, "build_id", *text ? text : NULL);
}

static void put_modules(const struct stat_page *stat, struct page *page)
{
  static const struct page_column columns[] = {{"address", 18},  {"pieces", 7}, {"symbols", 8},
                                               {"build-id", 41}, {"file", 0},   {NULL, 0}};
  struct analysis_file file;
  size_t rows = 0;

  page_heading(page, "Modules");
  page_table(page, "modules", columns);
  for (size_t i = 0; analysis_names_file(stat->names, i, &file); i++) {
    if ((stat->module && !analysis_module_is(stat->names, (uint32_t)i, stat->module->name)) ||
        (rows++ >= ROWS_MAX && !page->is_json))
      continue;
    page_row(page, false);
    page_put_hex(page, "address", file.address);
    page_put_number(page, "pieces", file.pieces);
    page_put_count(page, "symbols", file.symbols);
    put_build_id(page, &file);
    page_put(page, "file", file.name);
    if (file.problem)
      page_put_note(page, "problem", file.problem);
    else
      page_absent(page, "problem");
    page_row_end(page);
  }
  page_table_end(page);
}

static void put_extent(struct page *page, const struct analysis_function *function)
{
  struct text text = {0};

  (void)analysis_extent_name(&text, function->module, function->start, function->source);
  page_put(page, NULL, text_string(&text));
  text_done(&text);
}

static int put_functions(const struct stat_page *stat, struct page *page)
{
  static const struct page_column columns[] = {
    {"branches", 14}, {"share", 7}, {"from outside", 14}, {"function", 0}, {NULL, 0}};
  struct analysis_function *functions = calloc(stat->top + 1, sizeof(*functions));
  int count = functions ? analysis_summary_functions(stat->summary, functions, stat->top) : -ENOMEM;

  page_heading(page, "Functions, by branches into them");
  page_table(page, "functions", columns);
  for (int i = 0; i < count; i++) {
    const struct analysis_function *function = &functions[i];

    page_row(page, false);
    page_put_count(page, "branches", function->branches);
    put_share(page, function->branches, analysis_summary_totals(stat->summary)->all_branches);
    page_put_count(page, "from_outside", function->entries);
    if (page->is_json) {
      page_put(page, "symbol", function->symbol);
      page_put(page, "module", function->module);
      if (function->source == ANALYSIS_EXTENT_BY_NOTHING)
        page_absent(page, "address");
      else
        page_put_hex(page, "address", function->start);
      page_put_flag(page, "is_guess", function->source >= ANALYSIS_EXTENT_BY_CALL);
    } else if (function->symbol) {
      page_put(page, NULL, function->symbol);
    } else {
      put_extent(page, function);
    }
    page_row_end(page);
  }
  page_table_end(page);
  free(functions);
  return count;
}

static void put_end_json(struct page *page, const char *key, const struct analysis_end *end)
{
  page_section(page, key, NULL);
  page_put_hex(page, "address", end->address);
  page_put(page, "symbol", end->symbol);
  page_put(page, "module", end->module);
  if (end->has_offset)
    page_put_hex(page, "offset", end->offset);
  else
    page_absent(page, "offset");
  page_section_end(page);
}

static int end_text(struct text *text, const struct analysis_end *end)
{
  const char *name = end->symbol ? end->symbol : end->module;
  int r = text_addf(text, "0x%llx", (unsigned long long)end->address);

  if (r >= 0 && name)
    r = text_addf(text, " %s", name);
  if (r >= 0 && name && end->has_offset)
    r = text_addf(text, "+0x%llx", (unsigned long long)end->offset);
  return r;
}

static void put_ends(struct page *page, const struct analysis_edge *edge)
{
  struct text text = {0};

  if (page->is_json) {
    put_end_json(page, "from", &edge->from);
    put_end_json(page, "to", &edge->to);
    return;
  }
  if (end_text(&text, &edge->from) >= 0 && text_add(&text, " -> ") >= 0)
    (void)end_text(&text, &edge->to);
  page_put(page, NULL, text_string(&text));
  text_done(&text);
}

static int put_edges(const struct stat_page *stat, struct page *page)
{
  static const struct page_column columns[] = {{"branches", 14}, {"share", 7}, {"kind", 14}, {"edge", 0}, {NULL, 0}};
  struct analysis_edge *edges = calloc(stat->top + 1, sizeof(*edges));
  int count = edges ? analysis_summary_edges(stat->summary, edges, stat->top) : -ENOMEM;

  page_heading(page, "Edges");
  page_table(page, "edges", columns);
  for (int i = 0; i < count; i++) {
    page_row(page, false);
    page_put_count(page, "branches", edges[i].count);
    put_share(page, edges[i].count, analysis_summary_totals(stat->summary)->all_branches);
    page_put(page, "kind", lb_branch_kind_name(edges[i].kind));
    put_ends(page, &edges[i]);
    page_row_end(page);
  }
  page_table_end(page);
  if (analysis_summary_totals(stat->summary)->has_forgotten)
    page_remark(page, "too many edges to keep: counts may be too low, and rare edges are left out");
  free(edges);
  return count;
}

static void put_gaps(const struct stat_page *stat, struct page *page)
{
  static const struct page_column columns[] = {{"reason", 16}, {"gaps", 16}, {"branches lost", 0}, {NULL, 0}};
  const struct analysis_totals *totals = analysis_summary_totals(stat->summary);

  page_heading(page, "Gaps");
  page_table(page, "gaps", columns);
  for (unsigned i = 0; i < LB_TRACE_GAP_REASONS; i++) {
    if (!totals->gaps[i])
      continue;
    page_row(page, false);
    page_put(page, "reason", lb_trace_gap_name(i));
    page_put_count(page, "gaps", totals->gaps[i]);
    page_put_count(page, "lost", totals->lost[i]);
    page_row_end(page);
  }
  page_table_end(page);
  if (stat->input->is_sampled)
    page_remark(page, "the trace holds samples: its numbers are not those of the whole run");
  else if (totals->has_unknown_loss)
    page_remark(page, "not every gap says how many branches it lost");
}

/* ---- the page ---- */

int stat_page_print(const struct stat_page *stat, const struct report_output *output, bool is_json)
{
  struct page page;
  int functions, edges;

  page_open(&page, output, is_json);
  page_title(&page, stat->input->name);
  page_put_json(&page, "edges_are_exact", analysis_summary_totals(stat->summary)->has_forgotten ? "false" : "true");
  put_head(stat, &page);
  put_kinds(stat, &page);
  put_threads(stat, &page);
  put_modules(stat, &page);
  functions = put_functions(stat, &page);
  edges = put_edges(stat, &page);
  put_gaps(stat, &page);
  page_close(&page);
  if (functions >= 0 && edges >= 0)
    return 0;
  message("%s: %s", stat->input->name, lb_strerror(-ENOMEM));
  return -ENOMEM;
}
