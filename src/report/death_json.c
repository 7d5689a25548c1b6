/* SPDX-License-Identifier: Apache-2.0
 *
 * The report on the end of a program as one JSON object, for other programs. All keys are always present; unknown
 * values are null. Addresses are strings, since JSON readers keep only 53 bits of a number.
 */
#include <string.h>

#include "report/death.h"

/* The characters of most strings: copied without escapes, many at once. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+/ [],*"

static void put_string(struct death_printer *printer, const char *string)
{
  if (!string) {
    death_put(printer, "null");
    return;
  }
  death_put(printer, "\"");
  while (*string) {
    size_t plain = strspn(string, PLAIN), size = utf8_size(string);

    if (plain)
      death_put(printer, "%.*s", (int)(size = plain), string);
    else if (!size)
      death_put(printer, "\\ufffd");
    else if (*string == '"' || *string == '\\')
      death_put(printer, "\\%c", *string);
    else if (size == 1 && ((unsigned char)*string < 0x20 || *string == 0x7F))
      death_put(printer, "\\u%04x", (unsigned)*string);
    else
      death_put(printer, "%.*s", (int)size, string);
    string += size ? size : 1;
  }
  death_put(printer, "\"");
}

static void put_key_string(struct death_printer *printer, const char *key, const char *string)
{
  death_put(printer, ", \"%s\": ", key);
  put_string(printer, string);
}

static void put_line(struct death_printer *printer, const struct symbol_frame *frame)
{
  put_key_string(printer, "file", frame ? frame->file : NULL);
  if (frame && frame->line)
    death_put(printer, ", \"line\": %u", frame->line);
  else
    death_put(printer, ", \"line\": null");
}

/* `file` and `line` are those of the code itself; `inlines` the functions that were inlined there, innermost first,
 * each with its call site. */
static void put_place(struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                      uint64_t address)
{
  struct symbol_place place = {0};
  bool is_known = death_place(printer, thread, mark, address, &place);

  death_put(printer, "{\"address\": \"0x%llx\"", (unsigned long long)address);
  put_key_string(printer, "symbol", place.symbol);
  if (place.mangled)
    put_key_string(printer, "mangled", place.mangled);
  if (is_known && (place.symbol || place.module))
    death_put(printer, ", \"offset\": \"0x%llx\"", (unsigned long long)place.offset);
  else
    death_put(printer, ", \"offset\": null");
  put_key_string(printer, "module", place.module);
  put_line(printer, place.frame_count ? &place.frames[0] : NULL);
  death_put(printer, ", \"inlines\": [");
  for (size_t i = 0; i + 1 < place.frame_count; i++) {
    death_put(printer, "%s{\"function\": ", i ? ", " : "");
    put_string(printer, place.frames[i].function);
    put_line(printer, &place.frames[i + 1]);
    death_put(printer, "}");
  }
  death_put(printer, "]}");
}

static void put_instruction(struct death_printer *printer, const struct analysis_thread *thread, uint32_t mark,
                            uint64_t address)
{
  char text[128];

  death_instruction(printer, thread, mark, address, text, sizeof(text));
  put_key_string(printer, "instruction", *text ? text : NULL);
}

static void put_fault(struct death_printer *printer)
{
  static const char *const accesses[] = {[ANALYSIS_ACCESS_UNKNOWN] = NULL,
                                         [ANALYSIS_ACCESS_READ] = "read",
                                         [ANALYSIS_ACCESS_WRITE] = "write",
                                         [ANALYSIS_ACCESS_EXECUTE] = "execute"};
  const struct analysis_death *death = printer->death;
  struct analysis_fault fault = analysis_fault_find(death, printer->options->places);

  death_put(printer, ", \"text\": \"");
  death_put_signal(printer, &fault);
  death_put(printer, "\"");
  put_key_string(printer, "code", death_code_name(death->signal, death->code));
  death_put(printer, ", \"address\": \"0x%llx\"", (unsigned long long)death->address);
  put_key_string(printer, "access", accesses[fault.access]);
  if (fault.has_target)
    death_put(printer, ", \"target\": \"0x%llx\"", (unsigned long long)fault.target);
  else
    death_put(printer, ", \"target\": null");
}

static void put_signal(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;
  const char *name = death_signal_name(death->signal);

  death_put(printer, ",\n  \"signal\": ");
  if (death->ending != ANALYSIS_DIED && death->ending != ANALYSIS_KILLED) {
    death_put(printer, "null");
    return;
  }
  death_put(printer, "{\"number\": %d, \"name\": ", death->signal);
  if (name)
    death_put(printer, "\"SIG%s\"", name);
  else
    death_put(printer, "null");
  if (death->ending == ANALYSIS_DIED)
    put_fault(printer);
  else
    death_put(printer, ", \"text\": null, \"code\": null, \"address\": null, \"access\": null, \"target\": null");
  death_put(printer, "}");
}

static void put_registers(struct death_printer *printer)
{
  static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  const struct analysis_death *death = printer->death;

  death_put(printer, ",\n  \"registers\": ");
  if (death->ending != ANALYSIS_DIED) {
    death_put(printer, "null");
    return;
  }
  death_put(printer, "{\"rip\": \"0x%llx\", \"rflags\": \"0x%llx\"", (unsigned long long)death->rip,
            (unsigned long long)death->flags);
  for (unsigned i = 0; i < 16; i++)
    death_put(printer, ", \"%s\": \"0x%llx\"", names[i], (unsigned long long)death->registers[i]);
  death_put(printer, "}");
}

static void put_where(struct death_printer *printer)
{
  const struct analysis_death *death = printer->death;

  death_put(printer, ",\n  \"place\": ");
  if (death->ending != ANALYSIS_DIED || !death->thread_count) {
    death_put(printer, "null, \"instruction\": null");
    return;
  }
  put_place(printer, &death->threads[0], ANALYSIS_NOW, death->rip);
  put_instruction(printer, &death->threads[0], ANALYSIS_NOW, death->rip);
}

static void put_branch(struct death_printer *printer, const struct analysis_thread *thread, size_t number)
{
  const struct lb_branch *branch = &thread->branches[number];

  death_put(printer, "\n      {\"number\": %zu, \"from\": ", thread->count - 1 - number);
  put_place(printer, thread, thread->marks[number], branch->from);
  death_put(printer, ", \"to\": ");
  put_place(printer, thread, analysis_thread_to_mark(thread, number), branch->to);
  death_put(printer, ", \"kind\": \"%s\"", lb_branch_kind_name(branch->kind));
  put_instruction(printer, thread, thread->marks[number], branch->from);
  death_put(printer, ", \"own\": %s}",
            analysis_death_branch_is_own(printer->death, printer->options->places, thread, number) ? "true" : "false");
  death_flush(printer);
}

/* Newest first: branches of libraries after the program's own code come before it. */
static void put_branches(struct death_printer *printer, const struct analysis_thread *thread,
                         const struct analysis_death_rows *rows)
{
  const char *comma = "";

  for (size_t i = 0; i < rows->tail_count + rows->count && printer->error >= 0; i++, comma = ",") {
    death_put(printer, "%s", comma);
    put_branch(printer, thread, rows->numbers[i < rows->tail_count ? rows->count + i : i - rows->tail_count]);
  }
}

static void put_frame(struct death_printer *printer, const struct analysis_thread *thread,
                      const struct analysis_frame *frame, size_t number)
{
  death_put(printer, "\n      {\"number\": %zu, \"place\": ", number);
  put_place(printer, thread, frame->mark, frame->address);
  if (frame->kind == ANALYSIS_FRAME_HERE)
    death_put(printer, ", \"left\": null}");
  else
    death_put(printer, ", \"left\": \"%s\"}", lb_branch_kind_name((unsigned)frame->kind));
}

/* A deep stack is given without its middle; the frame numbers show the gap. */
static void put_stack(struct death_printer *printer, const struct analysis_thread *thread)
{
  struct analysis_backtrace backtrace;
  const char *comma = "";

  if (printer->error >= 0)
    printer->error = death_stack_make(printer, thread, &backtrace);
  if (printer->error < 0)
    return;
  death_put(printer, ", \"stack_complete\": %s, \"stack\": [", backtrace.is_complete ? "true" : "false");
  for (size_t i = 0; i < backtrace.count && printer->error >= 0; i++) {
    if (!death_frame_is_shown(i, backtrace.count))
      continue;
    death_put(printer, "%s", comma);
    put_frame(printer, thread, &backtrace.frames[i], i);
    comma = ",";
  }
  death_put(printer, "]");
  analysis_backtrace_done(&backtrace);
}

static void put_thread(struct death_printer *printer, const struct analysis_thread *thread)
{
  struct analysis_death_rows rows = {0};

  if (printer->error >= 0 && !thread->recorder)
    printer->error = death_rows_make(printer, thread, &rows);
  death_put(printer, "\n    {\"thread\": %u", thread->thread);
  put_key_string(printer, "name", thread->name);
  death_put(printer, ", \"complete\": %s, \"damaged\": %s, \"branches\": [",
            analysis_death_rows_are_all(&rows, thread) ? "true" : "false",
            thread->is_damaged || thread->has_gaps ? "true" : "false");
  put_branches(printer, thread, &rows);
  analysis_death_rows_done(&rows);
  death_put(printer, "], \"lbr\": ");
  if (thread->recorder)
    death_recorder(printer, thread, REPORT_JSON);
  else
    death_put(printer, "null");
  put_stack(printer, thread);
  death_put(printer, "}");
}

void death_print_json(struct death_printer *printer)
{
  static const char *const endings[] = {[ANALYSIS_DIED] = "died",
                                        [ANALYSIS_EXITED] = "exited",
                                        [ANALYSIS_KILLED] = "killed",
                                        [ANALYSIS_ALIVE] = "alive",
                                        [ANALYSIS_UNKNOWN] = "unknown"};
  const struct analysis_death *death = printer->death;

  death_put(printer, "{\n  \"ending\": \"%s\",\n  \"process\": %u", endings[death->ending], death->process);
  put_key_string(printer, "program", *death->program ? death->program : NULL);
  put_key_string(printer, "command", death->command && *death->command ? death->command : NULL);
  if (death->timeout > 0)
    death_put(printer, ", \"timeout\": %g", death->timeout);
  else
    death_put(printer, ", \"timeout\": null");
  put_signal(printer);
  if (death->ending == ANALYSIS_EXITED)
    death_put(printer, ",\n  \"status\": %d", death->status);
  else
    death_put(printer, ",\n  \"status\": null");
  put_key_string(printer, "panic", death->ending == ANALYSIS_EXITED ? death->panic : NULL);
  death_put(printer, ", \"native\": %s", death->is_native ? "true" : "false");
  put_where(printer);
  put_registers(printer);
  death_put(printer, ",\n  \"threads\": [");
  for (size_t i = 0; i < death->thread_count; i++) {
    death_put(printer, "%s", i ? "," : "");
    put_thread(printer, &death->threads[i]);
  }
  death_put(printer, "]\n}\n");
}
