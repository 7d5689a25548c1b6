/* SPDX-License-Identifier: Apache-2.0
 *
 * The output at the end of a run: dumps one below the other, one JSON object, or the report on a guest that died.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "machine/machine.h"
#include "report/machine_page.h"
#include "report/report.h"
#include "symbol/symbol.h"

static bool symbol_find(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  return symbol_table_find(data, address, ret_name, ret_offset);
}

int machine_text_records(const struct machine_view *view, enum report_format format, bool wants_color,
                         struct text *text)
{
  const struct report_symbols symbols = {view->symbols, symbol_find};
  struct report_options options = {.wants_color = wants_color, .symbols = view->symbols ? &symbols : NULL};

  return report_print(text, &machine_cpu(view->machine)->recorder, format, &options);
}

/* ---- dumps ---- */

static const struct {
  enum machine_dump dump;
  void (*put)(const struct machine_view *view, struct page *page);
} dumps[] = {
  {DUMP_DS, machine_page_ds},     {DUMP_BTS, machine_page_bts},   {DUMP_PEBS, machine_page_pebs},
  {DUMP_REGS, machine_page_regs}, {DUMP_MSRS, machine_page_msrs},
};

#define DUMPS (sizeof(dumps) / sizeof(*dumps))

static void lbr_put(const struct machine_view *view, enum report_format format, const struct report_output *output)
{
  struct text text = {0};

  if (machine_text_records(view, format, output->wants_color, &text) < 0)
    message("no memory to print the records");
  fputs(text_string(&text), output->file);
  text_done(&text);
}

/* The requested dumps of the current processor. */
static void processor_put(const struct machine_view *view, enum report_format format,
                          const struct report_output *output)
{
  bool is_json = format == REPORT_JSON, is_first = true;

  if (view->dumps & DUMP_LBR) {
    lbr_put(view, format, output);
    is_first = false;
  }
  for (size_t i = 0; i < DUMPS; i++)
    if (view->dumps & dumps[i].dump) {
      struct page page;

      if (!is_first && !is_json)
        putc('\n', output->file);
      is_first = false;
      page_open(&page, output, is_json);
      dumps[i].put(view, &page);
      page_close(&page);
    }
}

/* For several processors, text has a heading for each; JSON has one object after the other, in the order of their
 * numbers. */
void machine_page_dumps(const struct machine_view *view, enum report_format format, const struct report_output *output)
{
  unsigned count = machine_cpu_count(view->machine);
  bool is_text = format != REPORT_JSON && view->dumps;

  for (unsigned i = 0; i < count; i++) {
    machine_show(view->machine, i);
    if (count > 1 && is_text)
      fprintf(output->file, "%sProcessor %u\n\n", i ? "\n" : "", i);
    processor_put(view, format, output);
  }
  machine_show(view->machine, 0);
}

void machine_page_screen(const struct machine_view *view, bool is_all, const struct report_output *output)
{
  struct machine_screen screen = is_all ? machine_screen_all(view->machine) : machine_screen(view->machine);
  unsigned rows = machine_screen_rows_used(&screen);

  for (unsigned row = 0; row < rows; row++) {
    struct text text = {0};

    machine_screen_row_text(&screen, row, &text);
    fprintf(output->file, "%s\n", text_string(&text));
    text_done(&text);
  }
}

/* ---- JSON ---- */

static void json_screen(const struct machine_view *view, bool is_all, struct page *page)
{
  struct machine_screen screen = is_all ? machine_screen_all(view->machine) : machine_screen(view->machine);
  unsigned rows = machine_screen_rows_used(&screen);

  page_list(page, "screen");
  for (unsigned row = 0; row < rows; row++) {
    struct text text = {0};

    machine_screen_row_text(&screen, row, &text);
    page_item(page, "%s", text_string(&text));
    text_done(&text);
  }
  page_list_end(page);
}

/* The output of the serial line, by lines. Bytes that are not UTF-8 become U+FFFD; JSON escapes control characters. */
static void json_serial(const char *at, struct page *page)
{

  page_list(page, "serial");
  while (*at) {
    struct text line = {0};

    for (; *at && *at != '\n'; at += utf8_size(at) ? utf8_size(at) : 1)
      if (*at != '\r' || (at[1] != '\n' && at[1]))
        text_add_bytes(&line, utf8_size(at) ? at : "\xEF\xBF\xBD", utf8_size(at) ? utf8_size(at) : 3);
    at += *at == '\n';
    page_item(page, "%s", text_string(&line));
    text_done(&line);
  }
  page_list_end(page);
}

static void json_records(const struct machine_view *view, struct page *page)
{
  struct text text = {0};

  if (machine_text_records(view, REPORT_JSON, false, &text) < 0)
    text_done(&text);
  while (text.length && text.data[text.length - 1] == '\n')
    text.data[--text.length] = '\0';
  page_put_json(page, "records", text.length ? text.data : "null");
  text_done(&text);
}

static void json_dumps(const struct machine_view *view, struct page *page)
{
  json_records(view, page);
  for (size_t i = 0; i < DUMPS; i++)
    if (view->dumps & dumps[i].dump & ~(unsigned)DUMP_REGS)
      dumps[i].put(view, page);
}

/* The other processors: data outside of the list belongs to the bootstrap processor. */
static void json_others(const struct machine_view *view, struct page *page)
{
  unsigned count = machine_cpu_count(view->machine);

  if (count == 1)
    return;
  page_array(page, "other_processors");
  for (unsigned i = 1; i < count; i++) {
    machine_show(view->machine, i);
    page_section(page, NULL, NULL);
    page_put_number(page, "number", i);
    page_put_number(page, "instructions", cpu_retired(machine_cpu(view->machine)));
    machine_page_regs(view, page);
    json_dumps(view, page);
    page_section_end(page);
  }
  page_array_end(page);
  machine_show(view->machine, 0);
}

void machine_page_result(const struct machine_view *view, const struct machine_result *result,
                         const struct report_output *output)
{
  struct page page;

  machine_show(view->machine, 0);
  page_open(&page, output, true);
  page_put(&page, "cpu", machine_cpu(view->machine)->model->name);
  page_put(&page, "end", result->end);
  page_put(&page, "reason", *machine_stop_reason(view->machine) ? machine_stop_reason(view->machine) : NULL);
  if (result->has_exit)
    page_put_number(&page, "exit_value", machine_exit_value(view->machine));
  else
    page_absent(&page, "exit_value");
  page_put_number(&page, "instructions", machine_retired(view->machine));
  page_put_number(&page, "nanoseconds", machine_time(view->machine));
  page_put_number(&page, "milliseconds_taken", (uint64_t)(result->seconds * 1000));
  machine_page_regs(view, &page);
  json_screen(view, result->wants_screens, &page);
  json_serial(result->serial, &page);
  page_put_number(&page, "serial_bytes_dropped", result->serial_dropped);
  machine_page_events(view, &page);
  json_dumps(view, &page);
  json_others(view, &page);
  page_close(&page);
}

/* ---- a guest that died ---- */

static void bytes_text(const struct machine_view *view, struct text *text)
{
  struct cpu *cpu = machine_cpu(view->machine);
  uint8_t bytes[16];
  char line[128];
  size_t size = cpu_peek(cpu, cpu->segment[CS].linear_base + cpu->rip, bytes, sizeof(bytes));

  text_add(text, "  bytes at CS:RIP");
  for (size_t i = 0; i < size; i++)
    text_addf(text, " %02x", bytes[i]);
  text_add(text, size ? "\n" : " (not mapped)\n");
  if (cpu_disassemble(cpu, cpu->rip, line, sizeof(line)) > 0)
    text_addf(text, "  instruction     %s\n", line);
}

static void address_text(const struct machine_view *view, uint64_t address, struct text *text)
{
  const char *name;
  uint64_t offset;

  text_addf(text, "0x%llx", (unsigned long long)address);
  if (symbol_table_find(view->symbols, address, &name, &offset))
    text_addf(text, " %s+0x%llx", name, (unsigned long long)offset);
}

/* The last branches, if a trace recorded them: the recording unit may have been off. */
static void last_text(const struct machine_view *view, const struct machine_result *result, struct text *text)
{
  uint64_t count = result->total < result->last_size ? result->total : result->last_size;

  if (count)
    text_addf(text, "The last %u branches, newest first:\n", (unsigned)count);
  for (uint64_t i = 1; i <= count; i++) {
    const struct lb_branch *branch = &result->last[(result->total - i) % result->last_size];

    text_add(text, "  ");
    address_text(view, branch->from + (branch->flags & LB_BRANCH_FROM_32 ? branch->from_base : 0), text);
    text_add(text, " -> ");
    address_text(view, branch->to + (branch->flags & LB_BRANCH_TO_32 ? branch->to_base : 0), text);
    text_addf(text, "  %s\n", lb_branch_kind_name(branch->kind));
  }
}

void machine_text_death(const struct machine_view *view, const struct machine_result *result, struct text *text)
{
  const struct cpu *cpu = machine_cpu(view->machine);

  machine_text_registers(cpu, text);
  bytes_text(view, text);
  last_text(view, result, text);
  if (lb_recorder_used(&cpu->recorder))
    machine_text_records(view, REPORT_TABLE, false, text);
  else if (!result->total)
    text_add(text,
             "  The recording unit holds no branches; --trace FILE records all of them, whatever the guest does.\n");
}
