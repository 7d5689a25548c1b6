/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes out of a run at its end: dumps one below the other, one JSON object, or the report on a guest that died.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"
#include "session/session.h"

int session_records_text(struct machine_session *session, enum report_format format, bool wants_color,
                         struct text *text)
{
  struct report_options options = {.wants_color = wants_color,
                                   .symbols = session->symbols ? &session->report_symbols : NULL};

  return report_print(text, &machine_cpu(session->machine)->recorder, format, &options);
}

/* ---- dumps ---- */

static const struct {
  enum machine_dump dump;
  void (*put)(struct machine_session *session, struct page *page);
} dumps[] = {
  {DUMP_DS, dump_ds}, {DUMP_BTS, dump_bts}, {DUMP_PEBS, dump_pebs}, {DUMP_REGS, dump_regs}, {DUMP_MSRS, dump_msrs},
};

#define DUMPS (sizeof(dumps) / sizeof(*dumps))

static void lbr_print(struct machine_session *session)
{
  struct text text = {0};

  if (session_records_text(session, session->arguments->format, cli_wants_color(), &text) < 0)
    cli_error("no memory to print the records");
  fputs(text_string(&text), stdout);
  text_done(&text);
}

/* What --dump asks for of the processor that is shown. */
static void processor_print(struct machine_session *session)
{
  const struct machine_arguments *arguments = session->arguments;
  bool is_json = arguments->format == REPORT_JSON, is_first = true;

  if (arguments->dumps & DUMP_LBR) {
    lbr_print(session);
    is_first = false;
  }
  for (size_t i = 0; i < DUMPS; i++)
    if (arguments->dumps & dumps[i].dump) {
      struct page page;

      if (!is_first && !is_json)
        putchar('\n');
      is_first = false;
      cli_page_open(&page, is_json, cli_wants_color());
      dumps[i].put(session, &page);
      page_close(&page);
    }
}

/* With several, as text, each below its name; as JSON the objects follow each other in the order of their numbers. */
void session_print_dumps(struct machine_session *session)
{
  unsigned count = machine_cpu_count(session->machine);
  bool is_text = session->arguments->format != REPORT_JSON && session->arguments->dumps;

  for (unsigned i = 0; i < count; i++) {
    machine_show(session->machine, i);
    if (count > 1 && is_text)
      printf("%sProcessor %u\n\n", i ? "\n" : "", i);
    processor_print(session);
  }
  machine_show(session->machine, 0);
}

/* ---- JSON ---- */

static void json_screen(struct machine_session *session, struct page *page)
{
  struct machine_screen screen =
    session->screen == SCREEN_ALL ? machine_screen_all(session->machine) : machine_screen(session->machine);
  unsigned rows = screen_rows_used(&screen);

  page_list(page, "screen");
  for (unsigned row = 0; row < rows; row++) {
    struct text text = {0};

    screen_row_text(&screen, row, &text);
    page_item(page, "%s", text_string(&text));
    text_done(&text);
  }
  page_list_end(page);
}

/* Lines of the serial line. What is not UTF-8 becomes U+FFFD; control characters are left to JSON. */
static void json_serial(struct machine_session *session, struct page *page)
{
  const char *at = text_string(&session->heard);

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

static void json_records(struct machine_session *session, struct page *page)
{
  struct text text = {0};

  if (session_records_text(session, REPORT_JSON, false, &text) < 0)
    text_done(&text);
  while (text.length && text.data[text.length - 1] == '\n')
    text.data[--text.length] = '\0';
  page_put_json(page, "records", text.length ? text.data : "null");
  text_done(&text);
}

static void json_dumps(struct machine_session *session, struct page *page)
{
  json_records(session, page);
  for (size_t i = 0; i < DUMPS; i++)
    if (session->arguments->dumps & dumps[i].dump & ~(unsigned)DUMP_REGS)
      dumps[i].put(session, page);
}

/* The others: what stands outside the list is the bootstrap processor's. */
static void json_others(struct machine_session *session, struct page *page)
{
  unsigned count = machine_cpu_count(session->machine);

  if (count == 1)
    return;
  page_array(page, "other_processors");
  for (unsigned i = 1; i < count; i++) {
    machine_show(session->machine, i);
    page_section(page, NULL, NULL);
    page_put_number(page, "number", i);
    page_put_number(page, "instructions", cpu_retired(machine_cpu(session->machine)));
    dump_regs(session, page);
    json_dumps(session, page);
    page_section_end(page);
  }
  page_array_end(page);
  machine_show(session->machine, 0);
}

void session_print_json(struct machine_session *session)
{
  const struct machine_arguments *arguments = session->arguments;
  struct page page;

  machine_show(session->machine, 0);
  cli_page_open(&page, true, false);
  page_put(&page, "cpu", arguments->cpu->name);
  page_put(&page, "end", session_end_name(session->end));
  page_put(&page, "reason", *machine_stop_reason(session->machine) ? machine_stop_reason(session->machine) : NULL);
  if (session->end == END_EXIT)
    page_put_number(&page, "exit_value", machine_exit_value(session->machine));
  else
    page_absent(&page, "exit_value");
  page_put_number(&page, "instructions", machine_retired(session->machine));
  page_put_number(&page, "nanoseconds", machine_time(session->machine));
  page_put_number(&page, "milliseconds_taken", (uint64_t)(session->seconds * 1000));
  dump_regs(session, &page);
  json_screen(session, &page);
  json_serial(session, &page);
  page_put_number(&page, "serial_bytes_dropped", session->heard_dropped);
  session_put_events(session, &page);
  json_dumps(session, &page);
  json_others(session, &page);
  page_close(&page);
}

/* ---- a guest that died ---- */

static void bytes_text(struct machine_session *session, struct text *text)
{
  struct cpu *cpu = machine_cpu(session->machine);
  uint8_t bytes[16];
  char line[128];
  size_t size = cpu_peek(cpu, cpu->segment[CS].linear_base + cpu->rip, bytes, sizeof(bytes));

  text_add(text, "  bytes at CS:RIP");
  for (size_t i = 0; i < size; i++)
    text_addf(text, " %02x", bytes[i]);
  text_add(text, size ? "\n" : " not in memory\n");
  if (cpu_disassemble(cpu, cpu->rip, line, sizeof(line)) > 0)
    text_addf(text, "  instruction     %s\n", line);
}

static void address_text(struct machine_session *session, uint64_t address, struct text *text)
{
  const char *name;
  uint64_t offset;

  text_addf(text, "0x%llx", (unsigned long long)address);
  if (symbol_table_find(session->symbols, address, &name, &offset))
    text_addf(text, " %s+0x%llx", name, (unsigned long long)offset);
}

/* The branches that happened, if the trace heard of them: the unit may have been off. */
static void last_text(struct machine_session *session, struct text *text)
{
  const struct machine_trace *trace = &session->trace;
  uint64_t count = trace->total < TRACE_LAST ? trace->total : TRACE_LAST;

  if (count)
    text_addf(text, "The last %u branches, newest first:\n", (unsigned)count);
  for (uint64_t i = 1; i <= count; i++) {
    const struct lb_branch *branch = &trace->last[(trace->total - i) % TRACE_LAST];

    text_add(text, "  ");
    address_text(session, branch->from + (branch->flags & LB_BRANCH_FROM_32 ? branch->from_base : 0), text);
    text_add(text, " -> ");
    address_text(session, branch->to + (branch->flags & LB_BRANCH_TO_32 ? branch->to_base : 0), text);
    text_addf(text, "  %s\n", lb_branch_kind_name(branch->kind));
  }
}

void session_print_death(struct machine_session *session)
{
  const char *what = session->end == END_SHUTDOWN ? "the guest shut down" : "not implemented";
  const char *reason = machine_stop_reason(session->machine);
  struct text text = {0};

  cli_error("%s%s%s, after %llu instructions", what, *reason ? ": " : "", reason,
            (unsigned long long)machine_retired(session->machine));
  registers_text(machine_cpu(session->machine), &text);
  bytes_text(session, &text);
  last_text(session, &text);
  if (lb_recorder_used(&machine_cpu(session->machine)->recorder))
    session_records_text(session, REPORT_TABLE, false, &text);
  else if (!session->trace.total)
    text_add(&text, "  The recording unit holds no branches; --trace FILE keeps them all, whatever the guest does.\n");
  fputs(text_string(&text), stderr);
  text_done(&text);
}
