/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr annotate`: a function as source lines, each with its instructions below it. Beside each instruction
 * are its execution count and arrows for the hot edges; after a branch are its targets.
 */
#include "report/annotate_page.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "report/words.h"

#define COUNT_WIDTH 14
#define CODE_WIDTH 44
#define TEXT_MAX 256
#define AHEAD_MAX 8u     /* source lines without code that are shown before one with code */
#define TARGETS_SHOWN 3u /* of a branch with several */

#define HOT "\033[1;31m" /* at least half as often as the hottest */
#define WARM "\033[33m"  /* a tenth */
#define IDLE "\033[2m"   /* never */
#define SOURCE "\033[36m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

/* The state of printing a function. */
struct printer {
  const struct annotate_page *page;
  const struct analysis_annotation *annotation;
  uint64_t instructions, hottest;
  struct text text; /* of the line */
  /* The source line printed last. */
  const char *file;
  unsigned line, reach; /* reach: the greatest line so far */
  uint64_t chain;
};

static void put_color(const struct printer *printer, const char *color)
{
  if (printer->page->output.wants_color)
    fputs(color, printer->page->output.file);
}

static const char *row_color(const struct printer *printer, uint64_t executed)
{
  if (!executed)
    return IDLE;
  if (executed >= printer->hottest / 2 + printer->hottest % 2)
    return HOT;
  return executed >= printer->hottest / 10 ? WARM : "";
}

/* ---- source ---- */

static void put_margin(struct printer *printer, size_t row, bool is_before)
{
  printer->text.length = 0;
  if (margin_add(&printer->text, printer->annotation, row, is_before, printer->page->has_utf8) >= 0 &&
      printer->text.length)
    fputs(text_string(&printer->text), printer->page->output.file);
}

static void put_source_line(struct printer *printer, size_t row, const char *file, unsigned line, const char *note)
{
  struct text text = {0};
  bool is_there = source_add_line(printer->page->sources, file, line, &text);

  if (!is_there && line != printer->annotation->rows[row].line) { /* the line would be empty */
    text_done(&text);
    return;
  }
  fprintf(printer->page->output.file, "%*s", COUNT_WIDTH + 10, "");
  put_margin(printer, row, true);
  put_color(printer, SOURCE);
  fprintf(printer->page->output.file, " %s:%u%s", words_base(file), line, note);
  if (is_there && text.length)
    fprintf(printer->page->output.file, "  %s", text_string(&text));
  put_color(printer, PLAIN);
  putc('\n', printer->page->output.file);
  text_done(&text);
}

/* Prints the lines up to the one of the row, including comments and braces before it. */
static void put_source(struct printer *printer, size_t row)
{
  const struct analysis_annotated *at = &printer->annotation->rows[row];
  char note[TEXT_MAX] = "";
  bool is_same_file = printer->file && at->file && !strcmp(printer->file, at->file) && printer->chain == at->chain;
  unsigned first = at->line;

  if (!printer->page->sources || !at->file || !at->line || (is_same_file && printer->line == at->line))
    return;
  if (is_same_file && at->line > printer->reach && at->line - printer->reach <= AHEAD_MAX && !at->is_inlined)
    first = printer->reach + 1;
  if (at->is_inlined && at->function)
    snprintf(note, sizeof(note), " (inlined %s)", at->function);
  for (unsigned line = first; line <= at->line; line++)
    put_source_line(printer, row, at->file, line, note);
  printer->reach = is_same_file && printer->reach > at->line ? printer->reach : at->line;
  printer->file = at->file;
  printer->line = at->line;
  printer->chain = at->chain;
}

/* ---- branches ---- */

static double percent(uint64_t part, uint64_t whole)
{
  return whole ? 100 * (double)part / (double)whole : 0;
}

static void note_conditional(struct text *text, const struct analysis_annotated *row)
{
  char taken[WORDS_NUMBER_SIZE], passed[WORDS_NUMBER_SIZE];

  if (row->taken + row->passed)
    text_addf(text, "taken %s (%.1f%%), not taken %s", words_number(taken, row->taken),
              percent(row->taken, row->taken + row->passed), words_number(passed, row->passed));
}

static void note_targets(const struct printer *printer, struct text *text, const struct analysis_annotated *row)
{
  const struct analysis_jump *jump = analysis_annotated_target(row, NULL);
  char count[WORDS_NUMBER_SIZE];
  size_t shown = 0;

  for (; jump && shown < TARGETS_SHOWN; jump = analysis_annotated_target(row, jump), shown++) {
    text_add(text, shown ? ", " : "-> ");
    (void)words_add_location(text, printer->page->reading->names, &jump->to, false);
    if (row->jump_count > 1)
      text_addf(text, " %s (%.1f%%)", words_number(count, jump->count), percent(jump->count, row->taken));
  }
  if (row->jump_count > shown)
    text_addf(text, ", %zu more", row->jump_count - shown);
}

static void row_note(const struct printer *printer, struct text *text, const struct analysis_annotated *row)
{
  const struct analysis_hot_function *function = &printer->annotation->function;
  bool is_inside = row->jump_count == 1 && row->jumps->to.file == function->file &&
                   row->jumps->to.address - function->start < function->size;

  if (row->kind == LB_BRANCH_JCC)
    note_conditional(text, row);
  else if (row->jump_count &&
           !(is_inside && row->kind == LB_BRANCH_NEAR_REL_JMP)) /* the arrows and the code show that one */
    note_targets(printer, text, row);
}

/* ---- rows ---- */

/* Addresses have all their digits; the leading zeros are dropped. */
static void zeros_drop(char *text)
{
  char *at = strstr(text, "0x000");

  for (; at; at = strstr(at + 2, "0x000")) {
    size_t zeros = strspn(at + 2, "0");

    zeros -= !isxdigit((unsigned char)at[2 + zeros]);
    memmove(at + 2, at + 2 + zeros, strlen(at + 2 + zeros) + 1);
  }
}

static void code_text(const struct printer *printer, const struct analysis_annotated *row, char text[TEXT_MAX])
{
  if (!row->length || !analysis_code_text(printer->page->reading->code, &row->at, text, TEXT_MAX))
    snprintf(text, TEXT_MAX, "(%s: the bytes are not known)",
             row->kind >= 0 ? lb_branch_kind_name((unsigned)row->kind) : "?");
  zeros_drop(text);
}

static void put_row(struct printer *printer, size_t number)
{
  const struct analysis_annotated *row = &printer->annotation->rows[number];
  char count[WORDS_NUMBER_SIZE], code[TEXT_MAX];
  struct text note = {0};

  put_source(printer, number);
  code_text(printer, row, code);
  row_note(printer, &note, row);
  put_color(printer, row_color(printer, row->executed));
  fprintf(printer->page->output.file, "%*s ", COUNT_WIDTH,
          !row->executed && printer->annotation->is_uncounted ? "?" : words_number(count, row->executed));
  if (row->executed)
    fprintf(printer->page->output.file, "%6.2f%%", percent(row->executed, printer->instructions));
  else
    fprintf(printer->page->output.file, "%7s", "");
  put_color(printer, PLAIN);
  fprintf(printer->page->output.file, "  ");
  put_margin(printer, number, false);
  put_color(printer, row_color(printer, row->executed));
  fprintf(printer->page->output.file, " %8llx  ", (unsigned long long)row->at.address);
  fprintf(printer->page->output.file, "%-*s", note.length ? CODE_WIDTH : 0, code);
  put_color(printer, PLAIN);
  if (note.length)
    fprintf(printer->page->output.file, "  %s", text_string(&note));
  putc('\n', printer->page->output.file);
  text_done(&note);
}

/* ---- the page ---- */

static void put_title(struct printer *printer)
{
  const struct analysis_hot_function *function = &printer->annotation->function;
  char instructions[WORDS_NUMBER_SIZE], calls[WORDS_NUMBER_SIZE], name[1400];

  put_color(printer, BOLD);
  words_function(function, name, sizeof(name));
  fputs(name, printer->page->output.file);
  put_color(printer, PLAIN);
  fprintf(printer->page->output.file, "  0x%llx to 0x%llx: %s instructions ran", (unsigned long long)function->start,
          (unsigned long long)(function->start + function->size),
          printer->annotation->is_uncounted ? "some" : words_number(instructions, printer->instructions));
  if (function->start)
    fprintf(printer->page->output.file, ", entered %s time%s", words_number(calls, function->calls),
            function->calls == 1 ? "" : "s");
  putc('\n', printer->page->output.file);
}

static void put_end(const struct printer *printer)
{
  const struct analysis_annotation *annotation = printer->annotation;

  if (annotation->has_unknown)
    fputs("  not known: some bytes of this code are missing, or are not instructions; counts are shown for the rest\n",
          printer->page->output.file);
  if (annotation->is_changed)
    fputs("  this code changed while the program ran: its last version is shown\n", printer->page->output.file);
  if (annotation->is_uncounted)
    fputs("  not known: how often its instructions ran, except for taken branches\n", printer->page->output.file);
  if (annotation->is_cut)
    fprintf(printer->page->output.file, "  the function is too long to show: the rest, from 0x%llx on, is left out\n",
            (unsigned long long)annotation->end);
  if (annotation->hidden_arrows)
    fprintf(printer->page->output.file, "  %zu more branches inside the function have no arrow\n",
            annotation->hidden_arrows);
}

static struct printer printer_make(const struct annotate_page *page, const struct analysis_annotation *annotation)
{
  struct printer printer = {.page = page, .annotation = annotation};

  for (size_t i = 0; i < annotation->row_count; i++) {
    uint64_t executed = annotation->rows[i].executed;

    printer.instructions += executed;
    printer.hottest = executed > printer.hottest ? executed : printer.hottest;
  }
  return printer;
}

static void head_print(const struct annotate_page *page)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(page->reading->counts);

  fprintf(page->output.file, "%s: every branch counted", page->reading->input.name);
  if (page->stream != LB_TRACE_ALL)
    fprintf(page->output.file, " of thread %u", page->stream);
  fputs("; exact counts, not samples\n", page->output.file);
  if (totals->has_forgotten)
    fputs("  not known: there were more different branches than lbr keeps; later ones are left out\n",
          page->output.file);
  if (totals->gaps)
    fprintf(page->output.file, "  not known: what ran in the gaps of the trace (%llu of them)\n",
            (unsigned long long)totals->gaps);
}

static void function_print(const struct annotate_page *page, const struct analysis_annotation *annotation)
{
  struct printer printer = printer_make(page, annotation);

  putc('\n', page->output.file);
  put_title(&printer);
  for (size_t i = 0; i < annotation->row_count; i++)
    put_row(&printer, i);
  put_end(&printer);
  text_done(&printer.text);
}

/* ---- JSON ---- */

static void put_row_json(const struct annotate_page *page, struct page *json, const struct printer *printer,
                         const struct analysis_annotated *row)
{
  char code[TEXT_MAX];

  code_text(printer, row, code);
  page_section(json, NULL, NULL);
  page_put_hex(json, "address", row->at.address);
  page_put_number(json, "length", row->length);
  page_put(json, "instruction", row->length ? code : NULL);
  if (row->executed || !printer->annotation->is_uncounted)
    page_put_number(json, "executed", row->executed);
  else
    page_absent(json, "executed");
  page_put(json, "kind", row->kind >= 0 ? lb_branch_kind_name((unsigned)row->kind) : NULL);
  if (row->kind >= 0) {
    page_put_number(json, "taken", row->taken);
    page_put_number(json, "not_taken", row->passed);
    page_array(json, "targets");
    for (size_t i = 0; i < row->jump_count; i++) {
      if (row->jumps[i].is_passed)
        continue;
      page_section(json, NULL, NULL);
      page_put_number(json, "count", row->jumps[i].count);
      words_put_location(json, "to", page->reading->names, &row->jumps[i].to, false);
      page_section_end(json);
    }
    page_array_end(json);
  }
  page_put(json, "file", row->file);
  page_put_number(json, "line", row->line);
  page_put(json, "function", row->function);
  page_put_flag(json, "is_inlined", row->is_inlined);
  page_section_end(json);
}

static void function_put_json(const struct annotate_page *page, struct page *json,
                              const struct analysis_annotation *annotation)
{
  const struct analysis_hot_function *function = &annotation->function;
  struct printer printer = printer_make(page, annotation);

  page_section(json, NULL, NULL);
  page_put(json, "symbol", function->symbol);
  if (function->mangled)
    page_put(json, "mangled", function->mangled);
  page_put(json, "module", function->module);
  page_put_hex(json, "start", function->start);
  page_put_hex(json, "end", function->start + function->size);
  page_put_flag(json, "is_guess", function->source >= ANALYSIS_EXTENT_BY_CALL);
  page_put_number(json, "instructions", printer.instructions);
  page_put_number(json, "calls", function->calls);
  page_put_flag(json, "has_unknown_code", annotation->has_unknown);
  page_put_flag(json, "is_changed", annotation->is_changed);
  page_put_flag(json, "is_uncounted", annotation->is_uncounted);
  page_put_flag(json, "is_cut", annotation->is_cut);
  page_array(json, "rows");
  for (size_t i = 0; i < annotation->row_count; i++)
    put_row_json(page, json, &printer, &annotation->rows[i]);
  page_array_end(json);
  page_section_end(json);
}

/* ---- all functions ---- */

static int function_show(const struct annotate_page *page, struct page *json,
                         const struct analysis_hot_function *function)
{
  const struct analysis_reading *reading = page->reading;
  struct analysis_annotation annotation;
  int r =
    analysis_annotate(reading->names, reading->code, reading->counts, function, page->sources != NULL, &annotation);

  if (r < 0)
    return r;
  if (json->is_json)
    function_put_json(page, json, &annotation);
  else
    function_print(page, &annotation);
  analysis_annotation_done(&annotation);
  return 0;
}

static void head_put_json(const struct annotate_page *page, struct page *json)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(page->reading->counts);

  page_put_flag(json, "exact",
                !totals->has_unknown_code && !totals->has_forgotten && !totals->gaps &&
                  !page->reading->input.has_failed);
  if (page->stream != LB_TRACE_ALL)
    page_put_number(json, "thread", page->stream);
  else
    page_absent(json, "thread");
  page_array(json, "functions");
}

int annotate_page_print(const struct annotate_page *page, bool is_json, const struct analysis_hot_function *functions,
                        size_t count)
{
  struct page json;
  int r = 0;

  page_open(&json, &page->output, is_json);
  if (is_json)
    head_put_json(page, &json);
  else
    head_print(page);
  for (size_t i = 0; i < count && r >= 0; i++)
    r = function_show(page, &json, &functions[i]);
  page_array_end(&json);
  page_close(&json);
  return r;
}
