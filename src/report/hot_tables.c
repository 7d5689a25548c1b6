/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of `lbr report` about code: functions, modules, lines and threads.
 */
#include <stdio.h>
#include <string.h>

#include "report/hot_page.h"
#include "report/words.h"

#define COLUMNS_MAX 11

/* The columns of a table. The bar is only for terminals. */
static void columns_make(const struct report_page *report, const struct page_column *wanted,
                         struct page_column columns[COLUMNS_MAX])
{
  size_t count = 0;

  for (; wanted->title; wanted++)
    if (*wanted->title || report->has_bars)
      columns[count++] = *wanted;
  columns[count] = (struct page_column){NULL, 0};
}

static void put_bar(const struct report_page *report, struct page *page, uint64_t part, uint64_t whole)
{
  if (report->has_bars)
    words_put_bar(page, part, whole, report->has_utf8);
}

static uint64_t all_instructions(const struct report_page *report)
{
  return analysis_counts_totals(report->reading->counts)->instructions;
}

static uint64_t all_taken(const struct report_page *report)
{
  return analysis_counts_totals(report->reading->counts)->taken;
}

/* The share of instructions, or of branches if instructions are unknown. */
static void put_share(const struct report_page *report, struct page *page, uint64_t instructions, uint64_t taken)
{
  bool is_known = all_instructions(report) > 0;
  uint64_t part = is_known ? instructions : taken, whole = is_known ? all_instructions(report) : all_taken(report);

  words_put_share(page, "share", part, whole);
  put_bar(report, page, part, whole);
}

/* Everything in a table has run. A row without instructions is code whose instructions, and branches not taken, are
 * unknown. */
static bool is_counted(const struct report_page *report, uint64_t instructions)
{
  return instructions || !analysis_counts_totals(report->reading->counts)->has_unknown_code;
}

static void put_count(struct page *page, const char *key, uint64_t value, bool is_known, int width)
{
  if (is_known)
    words_put_number(page, key, value, width);
  else if (page->is_json)
    page_put(page, key, NULL);
  else
    page_putf(page, key, "%*s", width, "-");
}

/* ---- functions ---- */

void report_put_function(struct page *page, const struct analysis_hot_function *function)
{
  char text[1400];

  if (page->is_json) {
    page_put(page, "symbol", function->symbol);
    if (function->mangled)
      page_put(page, "mangled", function->mangled);
    page_put(page, "module", function->module);
    if (function->source == ANALYSIS_EXTENT_BY_NOTHING)
      page_absent(page, "address");
    else
      page_put_hex(page, "address", function->start);
    page_put_number(page, "size", function->size);
    page_put_flag(page, "is_guess", function->source >= ANALYSIS_EXTENT_BY_CALL);
  } else {
    words_function(function, text, sizeof(text));
    page_put(page, NULL, text);
  }
}

void report_put_functions(const struct report_page *report, struct page *page)
{
  static const struct page_column wanted[] = {
    {"  share", 7},  {"", 10}, {"  instructions", 14}, {"         taken", 14}, {"       calls", 12},
    {"function", 0}, {NULL, 0}};
  struct page_column columns[COLUMNS_MAX];
  size_t count, i;
  const struct analysis_hot_function *functions = analysis_hot_functions(report->hot, &count);

  columns_make(report, wanted, columns);
  page_heading(page, "Functions");
  page_table(page, "functions", columns);
  for (i = 0; i < count && i < report->top; i++) {
    bool is_known = !functions[i].has_unknown;

    page_row(page, false);
    put_share(report, page, functions[i].instructions, functions[i].taken);
    put_count(page, "instructions", functions[i].instructions, is_known, 14);
    words_put_number(page, "taken", functions[i].taken, 14);
    if (page->is_json)
      put_count(page, "not_taken", functions[i].passed, is_known, 0);
    words_put_number(page, "calls", functions[i].calls, 12);
    report_put_function(page, &functions[i]);
    page_row_end(page);
  }
  page_table_end(page);
  report_put_rest(page, i, count);
}

/* ---- modules ---- */

void report_put_modules(const struct report_page *report, struct page *page)
{
  static const struct page_column wanted[] = {{"  share", 7},         {"", 10},
                                              {"  instructions", 14}, {"         taken", 14},
                                              {"     not taken", 14}, {"     entries", 12},
                                              {"module", 0},          {NULL, 0}};
  struct page_column columns[COLUMNS_MAX];
  size_t count, i;
  const struct analysis_hot_module *modules = analysis_hot_modules(report->hot, &count);
  struct analysis_file file;

  columns_make(report, wanted, columns);
  page_heading(page, "Modules");
  page_table(page, "modules", columns);
  for (i = 0; i < count && i < report->top; i++) {
    bool is_file = modules[i].module && analysis_names_file(report->reading->names, modules[i].file, &file);
    bool is_known = is_counted(report, modules[i].instructions);

    page_row(page, false);
    put_share(report, page, modules[i].instructions, modules[i].taken);
    put_count(page, "instructions", modules[i].instructions, is_known, 14);
    words_put_number(page, "taken", modules[i].taken, 14);
    put_count(page, "not_taken", modules[i].passed, is_known, 14);
    words_put_number(page, "entries", modules[i].entries, 12);
    page_put(page, "module", is_file ? file.name : page->is_json ? NULL : "[in no module]");
    page_row_end(page);
  }
  page_table_end(page);
  report_put_rest(page, i, count);
}

/* ---- lines ---- */

static void put_line(const struct report_page *report, struct page *page, const struct analysis_hot_line *line)
{
  struct text text = {0}, source = {0};

  if (page->is_json) {
    page_put(page, "file", line->file);
    page_put_number(page, "line", line->line);
    page_put(page, "function", line->function);
    page_put(page, "module", line->module);
    page_put_flag(page, "is_inlined", line->is_inlined);
    return;
  }
  text_addf(&text, "%s:", words_base(line->file));
  if (line->line)
    text_addf(&text, "%u", line->line);
  else
    text_add(&text, "?");
  text_addf(&text, " %s%s", line->function ? line->function : "", line->is_inlined ? " (inlined)" : "");
  if (source_add_line(report->sources, line->file, line->line, &source))
    text_addf(&text, "  %s", text_string(&source) + strspn(text_string(&source), " "));
  page_put(page, NULL, text_string(&text));
  text_done(&source);
  text_done(&text);
}

void report_put_lines(const struct report_page *report, struct page *page)
{
  static const struct page_column wanted[] = {{"  share", 7},         {"", 10},    {"  instructions", 14},
                                              {"         times", 14}, {"line", 0}, {NULL, 0}};
  struct page_column columns[COLUMNS_MAX];
  size_t count, i;
  const struct analysis_hot_line *lines = analysis_hot_lines(report->hot, &count);
  char number[WORDS_NUMBER_SIZE];

  columns_make(report, wanted, columns);
  if (page->is_json)
    page_put_number(page, "instructions_without_line", analysis_hot_without_line(report->hot));
  page_heading(page, "Lines");
  page_table(page, "lines", columns);
  for (i = 0; i < count && i < report->top; i++) {
    page_row(page, false);
    put_share(report, page, lines[i].instructions, 0);
    words_put_number(page, "instructions", lines[i].instructions, 14);
    words_put_number(page, "executed", lines[i].executed, 14);
    if (page->is_json) {
      page_put_number(page, "taken", lines[i].taken);
      page_put_number(page, "not_taken", lines[i].passed);
    }
    put_line(report, page, &lines[i]);
    page_row_end(page);
  }
  page_table_end(page);
  report_put_rest(page, i, count);
  if (analysis_hot_without_line(report->hot))
    page_remark(page, "%s instructions ran in code without line numbers (built without debug information)",
                words_number(number, analysis_hot_without_line(report->hot)));
}

/* ---- threads ---- */

/* The names of a thread and its process: null in JSON if unknown. */
static void put_called(const struct analysis_reading *reading, struct page *page, uint32_t number)
{
  struct analysis_stream stream = {0};

  (void)analysis_names_stream(reading->names, number, &stream);
  page_put(page, "name", stream.name || page->is_json ? stream.name : "");
  page_put(page, "command", stream.command || page->is_json ? stream.command : "");
}

void report_put_threads(const struct report_page *report, struct page *page)
{
  static const struct page_column wanted[] = {
    {"  share", 7}, {"", 10},       {"  instructions", 14}, {"         taken", 14}, {"     not taken", 14},
    {"thread", 7},  {"process", 8}, {"system's", 9},        {"name", 16},           {"command", 0},
    {NULL, 0}};
  const struct analysis_reading *reading = report->reading;
  struct page_column columns[COLUMNS_MAX];
  size_t i;

  columns_make(report, wanted, columns);
  page_heading(page, "Threads");
  page_table(page, "threads", columns);
  for (i = 0; i < reading->thread_count && i < report->top; i++) {
    const struct analysis_reading_thread *thread = &reading->threads[i];
    bool is_known = is_counted(report, thread->totals.instructions);

    page_row(page, false);
    put_share(report, page, thread->totals.instructions, thread->branches);
    put_count(page, "instructions", thread->totals.instructions, is_known, 14);
    words_put_number(page, "taken", thread->branches, 14);
    put_count(page, "not_taken", thread->totals.passed, is_known, 14);
    page_put_number(page, "thread", thread->number);
    page_put_number(page, "process", thread->process);
    page_put_number(page, "system_thread", thread->thread);
    put_called(reading, page, thread->number);
    page_row_end(page);
  }
  page_table_end(page);
  report_put_rest(page, i, reading->thread_count);
}
