/* SPDX-License-Identifier: Apache-2.0
 *
 * gdb's `monitor` commands for a machine: functions that gdb itself has no commands for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/target_machine.h"
#include "report/report.h"

#define PHYSICAL_MAX 4096u /* bytes that are shown */

/* Each command gets the text after its name and appends its output. Returns 0; -EINVAL for wrong arguments; or
 * negative, after it has given the reason. */
typedef int monitor_command(struct gdb_machine *gdb, const char *rest, struct text *output);

/* ---- the recording unit ---- */

static struct machine_view machine_view(const struct gdb_machine *gdb)
{
  return (struct machine_view){.machine = gdb->session->machine, .symbols = gdb->session->symbols};
}

static int monitor_lbr(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  int format = *rest ? report_format_find(rest) : REPORT_TABLE;

  struct machine_view view = machine_view(gdb);

  return format < 0 ? -EINVAL : machine_text_records(&view, (enum report_format)format, false, output);
}

/* A part of --dump. */
static int dump_text(struct gdb_machine *gdb, void (*put)(const struct machine_view *, struct page *),
                     struct text *output)
{
  char *bytes = NULL;
  size_t size = 0;
  struct report_output memory = {.file = open_memstream(&bytes, &size)};
  struct machine_view view = machine_view(gdb);
  struct page page;
  int r;

  if (!memory.file)
    return -ENOMEM;
  page_open(&page, &memory, false);
  put(&view, &page);
  page_close(&page);
  r = fclose(memory.file) ? -ENOMEM : 0;
  if (r >= 0)
    r = text_add_bytes(output, bytes, size);
  free(bytes);
  return r;
}

static int monitor_bts(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  return *rest ? -EINVAL : dump_text(gdb, machine_page_bts, output);
}

static int monitor_ds(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  return *rest ? -EINVAL : dump_text(gdb, machine_page_ds, output);
}

static int monitor_events(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  struct machine_view view = machine_view(gdb);

  return *rest ? -EINVAL : machine_text_events(&view, output);
}

/* ---- MSRs ---- */

/* The address of a register given as a number or by its name in the catalogue. Returns 0, or -EINVAL. */
static int msr_find(const struct lb_cpu *cpu, const char *word, uint32_t *ret_msr)
{
  struct lb_register_range range;
  uint64_t address;
  unsigned number;
  int id;

  if (number_parse(word, &address) >= 0) {
    *ret_msr = (uint32_t)address;
    return address > UINT32_MAX ? -EINVAL : 0;
  }
  if (!strcmp(word, "efer")) {
    *ret_msr = 0xC0000080;
    return 0;
  }
  id = lb_cpu_register_find(cpu, word, &number);
  if (id < 0)
    return -EINVAL;
  range = lb_cpu_register(cpu, (enum lb_register)id);
  *ret_msr = range.first + number * range.stride;
  return 0;
}

static int msr_show(struct cpu *cpu, uint32_t msr, struct text *output)
{
  uint64_t value;

  if (!cpu_read_msr(cpu, msr, &value)) {
    text_addf(output, "#GP(0): RDMSR of 0x%" PRIx32 " faults\n", msr);
    return -EIO;
  }
  return text_addf(output, "0x%" PRIx32 " = 0x%" PRIx64 "\n", msr, value);
}

static int msr_set(struct cpu *cpu, uint32_t msr, uint64_t value, struct text *output)
{
  if (cpu_write_msr(cpu, msr, value))
    return msr_show(cpu, msr, output);
  text_addf(output, "#GP(0): WRMSR of 0x%" PRIx64 " to 0x%" PRIx32 " faults\n", value, msr);
  return -EIO;
}

static int monitor_msr(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  struct cpu *cpu = machine_cpu(gdb->session->machine);
  char name[64], value[64], more;
  int words = sscanf(rest, "%63s %63s %c", name, value, &more);
  uint64_t number;
  uint32_t msr;

  if (words < 1 || words > 2)
    return -EINVAL;
  if (msr_find(cpu->model, name, &msr) < 0) {
    text_addf(output, "%s has no register '%s'; an address of any register works as well\n", cpu->model->title, name);
    return -ENOENT;
  }
  if (words == 1)
    return msr_show(cpu, msr, output);
  return number_parse(value, &number) < 0 ? -EINVAL : msr_set(cpu, msr, number, output);
}

/* ---- the processor ---- */

static const char *const architectures[] = {"auto", "i8086", "i386", "x86-64"};

static int monitor_cpu(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  static const char *const told[] = {[GDB_X86_64] = "i386:x86-64", [GDB_I386] = "i386", [GDB_I8086] = "i8086"};
  const struct cpu *cpu = machine_cpu(gdb->session->machine);
  static const char *const activities[] = {"runs", "is halted", "is shut down", "waits for SIPI"};

  if (*rest)
    return -EINVAL;
  text_addf(output, "%s; it %s; %" PRIu64 " instructions\n", cpu->model->title, activities[cpu->activity & 3],
            cpu_retired(cpu));
  machine_text_registers(cpu, output);
  return text_addf(output,
                   "  the next instruction is at 0x%" PRIx64 ", which is %04x:%" PRIx64 "; gdb takes it for %s\n",
                   gdb_machine_rip(cpu), cpu->segment[CS].selector, cpu->rip, told[gdb->told]);
}

static int monitor_architecture(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  for (unsigned i = 0; i < sizeof(architectures) / sizeof(*architectures); i++)
    if (!strcmp(rest, architectures[i])) {
      gdb->wanted = (enum gdb_machine_architecture)i;
      return text_add(output, "'unset tdesc filename' tells gdb\n");
    }
  return *rest ? -EINVAL : text_addf(output, "%s\n", architectures[gdb->wanted]);
}

static int monitor_catch(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  int r = *rest ? gdb_machine_exceptions_parse(rest, &gdb->catches) : 0;

  if (r < 0)
    return r;
  text_add(output, "exceptions that stop the guest:");
  return gdb_machine_exceptions_text(gdb->catches, output);
}

static int monitor_reset(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  if (*rest)
    return -EINVAL;
  machine_reset(gdb->session->machine);
  gdb->is_at_exception = false;
  if (gdb->history.is_on)
    gdb_machine_history_enable(&gdb->history, true);
  return text_add(output, "it stands before its first instruction; 'maint flush register-cache' shows gdb\n");
}

static int monitor_wake(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  struct machine *machine = gdb->session->machine;

  if (*rest)
    return -EINVAL;
  if (!machine_is_asleep(machine)) {
    text_add(output, "the guest is not asleep\n");
    return -EALREADY;
  }
  machine_wake(machine);
  return text_add(output, "it goes on at its waking vector\n");
}

static int monitor_history(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  struct gdb_machine_history *history = &gdb->history;
  uint64_t most;

  if (*rest && (number_parse(rest, &most) < 0 || most < 2 || most > HISTORY_MAX))
    return -EINVAL;
  if (*rest)
    gdb_machine_history_bound(history, (size_t)most);
  return text_addf(output, "%zu branches of at most %zu%s%s\n", history->count, history->most,
                   history->is_on ? "" : "; 'record btrace' starts it",
                   history->is_short ? "; there is no memory for more" : "");
}

/* ---- memory, screen and keys ---- */

static int physical_text(struct memory *memory, uint64_t address, uint64_t size, struct text *output)
{
  for (uint64_t i = 0; i < size; i++) {
    uint8_t byte;

    if (i % 16 == 0)
      text_addf(output, "%s%" PRIx64 ":", i ? "\n" : "", address + i);
    if (memory_read(memory, address + i, &byte, 1))
      text_addf(output, " %02x", byte);
    else
      text_add(output, " --");
  }
  return text_add(output, "\n");
}

static int monitor_xp(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  char first[64], second[64] = "16", more;
  int words = sscanf(rest, "%63s %63s %c", first, second, &more);
  uint64_t address, size;

  if (words < 1 || words > 2 || number_parse(first, &address) < 0 || number_parse(second, &size) < 0 ||
      size > PHYSICAL_MAX)
    return -EINVAL;
  return physical_text(machine_memory(gdb->session->machine), address, size, output);
}

static int monitor_screen(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  struct machine_screen screen = machine_screen(gdb->session->machine);
  unsigned rows = machine_screen_rows_used(&screen);
  int r = *rest ? -EINVAL : 0;

  for (unsigned row = 0; r >= 0 && row < rows; row++) {
    r = machine_screen_row_text(&screen, row, output);
    if (r >= 0)
      r = text_add(output, "\n");
  }
  return r;
}

static int monitor_key(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  int r = *rest ? machine_keys_type(gdb->session->machine, rest) : -EINVAL;

  if (r == -ENOSPC)
    text_add(output, "the guest has not read the earlier keys yet; the rest is lost\n");
  return r;
}

/* ---- the table of commands ---- */

static monitor_command monitor_help;

static const struct {
  const char *name, *arguments, *text;
  monitor_command *run;
} commands[] = {
  {"help", "", "this list", monitor_help},
  {"cpu", "", "mode and registers, with segments and tables", monitor_cpu},
  {"lbr", "[table|windbg|windbg-old|json]", "the branches that the recording unit holds", monitor_lbr},
  {"bts", "", "the branch trace store in the guest's memory", monitor_bts},
  {"ds", "", "the debug store area", monitor_ds},
  {"events", "", "what the performance counters count, and events that are not modelled", monitor_events},
  {"msr", "NAME|NUMBER [VALUE]", "reads or writes an MSR, by the rules of the processor", monitor_msr},
  {"catch", "[all|none|default|NAME...]",
   "exceptions that stop the guest: de db bp of br ud nm df ts np ss gp pf mf ac mc xm", monitor_catch},
  {"history", "[N]", "how many branches 'record btrace' keeps", monitor_history},
  {"architecture", "[auto|i8086|i386|x86-64]", "what gdb is told at 'unset tdesc filename'; auto: the mode then",
   monitor_architecture},
  {"xp", "ADDRESS [COUNT]", "bytes of physical memory", monitor_xp},
  {"screen", "", "the text screen", monitor_screen},
  {"key", "TEXT", "types it; \\n is Enter, <f1>, <esc>, <up>, ... are keys, <lt> is <", monitor_key},
  {"wake", "", "wakes a guest that sleeps (ACPI S3)", monitor_wake},
  {"reset", "", "restarts the machine, which then stands still", monitor_reset},
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static int monitor_help(struct gdb_machine *gdb, const char *rest, struct text *output)
{
  int r = 0;

  (void)gdb, (void)rest;
  for (size_t i = 0; i < COMMANDS && r >= 0; i++)
    r = text_addf(output, "monitor %s%s%s: %s\n", commands[i].name, *commands[i].arguments ? " " : "",
                  commands[i].arguments, commands[i].text);
  return r;
}

int gdb_machine_monitor(struct gdb_machine *gdb, const char *command, struct text *output)
{
  size_t size;
  int r;

  command += strspn(command, " ");
  size = strcspn(command, " ");
  for (size_t i = 0; i < COMMANDS; i++)
    if (size == strlen(commands[i].name) && !strncmp(command, commands[i].name, size)) {
      const char *rest = command + size;

      r = commands[i].run(gdb, rest + strspn(rest, " "), output);
      if (r == -EINVAL)
        text_addf(output, "usage: monitor %s %s\n", commands[i].name, commands[i].arguments);
      return r;
    }
  text_addf(output, "no command '%.*s'; monitor help lists them\n", (int)(size < 40 ? size : 40), command);
  return -EINVAL;
}
