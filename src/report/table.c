/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout for people: the settings of the unit, then its records, newest first, in columns as wide as their
 * contents. Empty columns are left out.
 */
#include <string.h>

#include "report/printer.h"

#define BOLD "\033[1m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

static void put_address(struct printer *printer, uint64_t address)
{
  const char *name;
  uint64_t offset;

  printer_put(printer, "0x%llx", (unsigned long long)address);
  if (printer_symbol(printer, address, &name, &offset))
    printer_put(printer, " %s+0x%llx", name, (unsigned long long)offset);
}

/* ---- the head ---- */

/* Prints set flags by name, and wider fields that are not 0 with their value. */
static void put_fields(struct printer *printer, enum lb_register id, uint64_t value)
{
  struct lb_field field;

  for (unsigned i = 0; lb_cpu_field(printer->cpu, id, i, &field) >= 0; i++) {
    unsigned width = field.high - field.low + 1u;
    uint64_t part = value >> field.low & (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1);

    if (part && width == 1)
      printer_put(printer, " %s", field.name);
    else if (part)
      printer_put(printer, " %s=%llu", field.name, (unsigned long long)part);
  }
}

/* Characters of the longest name: IA32_PERF_CAPABILITIES, if it is shown. */
static int head_width(const struct printer *printer)
{
  return printer->options.live ? 22 : 20;
}

static void put_registers(struct printer *printer)
{
  static const enum lb_register shown[] = {LB_REG_PERF_CAPABILITIES, LB_REG_DEBUGCTL, LB_REG_LBR_SELECT,
                                           LB_REG_LBR_TOS,           LB_REG_LBR_CTL,  LB_REG_LBR_DEPTH,
                                           LB_REG_AMD_DBG_EXTN_CFG};

  for (size_t i = printer->options.live ? 0 : 1; i < sizeof(shown) / sizeof(*shown); i++) {
    char name[64];
    uint64_t value;

    if (!printer_register(printer, shown[i], &value))
      continue;
    lb_cpu_register_name(printer->cpu, shown[i], 0, name, sizeof(name));
    printer_put(printer, "  %-*s 0x%llx", head_width(printer), name, (unsigned long long)value);
    put_fields(printer, shown[i], value);
    printer_put(printer, "\n");
  }
}

static void put_ler(struct printer *printer)
{
  struct lb_record ler;

  if (lb_recorder_ler(printer->recorder, &ler) < 0)
    return;
  printer_put(printer, "  %-*s ", head_width(printer), "last exception");
  if (ler.is_empty) {
    printer_put(printer, "empty\n");
    return;
  }
  put_address(printer, ler.from);
  printer_put(printer, " -> ");
  put_address(printer, ler.to);
  printer_put(printer, "\n");
}

static void put_pair(struct printer *printer)
{
  uint64_t from, to;

  if (!printer->options.live || !printer_pair(printer, &from, &to))
    return;
  printer_put(printer, "  %-*s ", head_width(printer), "last branch");
  put_address(printer, from);
  printer_put(printer, " -> ");
  put_address(printer, to);
  printer_put(printer, "\n");
}

static void put_head(struct printer *printer)
{
  bool wants_color = printer->options.wants_color;

  if (printer->options.live)
    printer_put(printer, "Processor %u: ", printer->options.live->number);

  printer_put(printer, "%s%s%s (%s): recording %s, %u of %u records%s\n", wants_color ? BOLD : "", printer->cpu->title,
              wants_color ? PLAIN : "", printer->cpu->name, lb_recorder_is_recording(printer->recorder) ? "on" : "off",
              lb_recorder_used(printer->recorder), printer_depth(printer),
              lb_recorder_is_undefined(printer->recorder) ? ", contents undefined (TR is 1)" : "");
  put_registers(printer);
  put_pair(printer);
  put_ler(printer);
}

/* ---- the records ---- */

static void put_age(struct printer *printer, unsigned age, const struct lb_record *record)
{
  (void)record;
  printer_put(printer, "%u", age);
}

static void put_index(struct printer *printer, unsigned age, const struct lb_record *record)
{
  (void)age;
  printer_put(printer, "%u", record->index);
}

static void put_from(struct printer *printer, unsigned age, const struct lb_record *record)
{
  (void)age;
  put_address(printer, record->from);
}

static void put_to(struct printer *printer, unsigned age, const struct lb_record *record)
{
  (void)age;
  put_address(printer, record->to);
}

/* The kind of a BR_TYPE. Types 8 and above are far branches, interrupts and exceptions, which it does not
 * distinguish. */
static void put_type(struct printer *printer, unsigned type)
{
  static const uint8_t kinds[] = {LB_BRANCH_JCC,           LB_BRANCH_NEAR_IND_JMP,  LB_BRANCH_NEAR_REL_JMP,
                                  LB_BRANCH_NEAR_IND_CALL, LB_BRANCH_NEAR_REL_CALL, LB_BRANCH_NEAR_RET};

  if (type < sizeof(kinds))
    printer_put(printer, "%s", lb_branch_kind_name(kinds[type]));
  else if (type >= 8)
    printer_put(printer, "other");
  else
    printer_put(printer, "type=%u", type);
}

/* The unit keeps the kind of branches that it recorded itself. For entries written by WRMSR, only a type field may tell
 * the kind. */
static void put_kind(struct printer *printer, unsigned age, const struct lb_record *record)
{
  (void)age;
  if (record->kind == LB_BRANCH_KINDS && record->has_type)
    put_type(printer, record->type);
  else if (record->kind < LB_BRANCH_KINDS || !printer->options.live)
    printer_put(printer, "%s", lb_branch_kind_name(record->kind));
}

static void put_flags(struct printer *printer, unsigned age, const struct lb_record *record)
{
  const char *blank = "";

  (void)age;
  if (record->is_mispredicted) {
    printer_put(printer, "mispred");
    blank = " ";
  }
  if (record->is_in_tsx) {
    printer_put(printer, "%stsx", blank);
    blank = " ";
  }
  if (record->is_tsx_abort)
    printer_put(printer, "%sabort", blank);
}

static void put_cycles(struct printer *printer, unsigned age, const struct lb_record *record)
{
  (void)age;
  if (record->has_cycles)
    printer_put(printer, "%u", record->cycles);
}

struct column {
  const char *title;
  void (*put)(struct printer *printer, unsigned age, const struct lb_record *record);
};

static const struct column columns[] = {
  {"age", put_age},   {"register", put_index}, {"from", put_from},     {"to", put_to},
  {"kind", put_kind}, {"flags", put_flags},    {"cycles", put_cycles},
};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

/* Characters from byte `start` of a text on: a character of a symbol may have several bytes. */
static size_t width_from(const struct text *text, size_t start)
{
  size_t width = 0;

  for (size_t i = start; i < text->length; i++)
    width += ((unsigned char)text->data[i] & 0xC0) != 0x80;
  return width;
}

/* The next non-empty record from `age` on. Returns its age, or -1. */
static int next_record(const struct printer *printer, unsigned age, struct lb_record *ret_record)
{
  for (; lb_recorder_entry(printer->recorder, age, ret_record) >= 0; age++)
    if (!ret_record->is_empty)
      return (int)age;
  return -1;
}

/* The width of a column, 0 if it is empty in every row. It is written to a scratch text and measured. */
static size_t column_width(struct printer *printer, const struct column *column)
{
  struct text scratch = {0};
  struct printer measure = *printer;
  struct lb_record record;
  size_t width = 0;

  measure.text = &scratch;
  for (int age = 0; (age = next_record(printer, (unsigned)age, &record)) >= 0; age++) {
    scratch.length = 0;
    column->put(&measure, (unsigned)age, &record);
    if (width_from(&scratch, 0) > width)
      width = width_from(&scratch, 0);
  }
  text_done(&scratch);
  printer->error = measure.error;
  return width;
}

static void put_row(struct printer *printer, unsigned age, const struct lb_record *record, const size_t *widths)
{
  bool is_red = printer->options.wants_color && record->is_mispredicted;
  size_t owed = 2; /* blanks are written only when something follows, so that no line ends with them */

  printer_put(printer, "%s", is_red ? RED : "");
  for (size_t i = 0; i < COLUMNS; i++) {
    size_t before;

    if (!widths[i])
      continue;
    before = printer->text->length + owed;
    printer_put(printer, "%*s", (int)owed, "");
    columns[i].put(printer, age, record);
    if (printer->error < 0)
      return;
    owed = widths[i] + 2 - width_from(printer->text, before);
  }
  while (printer->text->length && printer->text->data[printer->text->length - 1] == ' ')
    printer->text->length--;
  printer_put(printer, "%s\n", is_red ? PLAIN : "");
}

static void put_titles(struct printer *printer, const size_t *widths)
{
  bool wants_color = printer->options.wants_color;
  size_t owed = 2;

  printer_put(printer, "%s", wants_color ? BOLD : "");
  for (size_t i = 0; i < COLUMNS; i++)
    if (widths[i]) {
      printer_put(printer, "%*s%s", (int)owed, "", columns[i].title);
      owed = widths[i] + 2 - strlen(columns[i].title);
    }
  printer_put(printer, "%s\n", wants_color ? PLAIN : "");
}

static void put_records(struct printer *printer)
{
  size_t widths[COLUMNS];
  struct lb_record record;

  if (next_record(printer, 0, &record) < 0) {
    printer_put(printer, "  empty\n");
    return;
  }
  for (size_t i = 0; i < COLUMNS; i++) {
    widths[i] = column_width(printer, &columns[i]);
    if (widths[i] && widths[i] < strlen(columns[i].title))
      widths[i] = strlen(columns[i].title);
  }
  put_titles(printer, widths);
  for (int age = 0; (age = next_record(printer, (unsigned)age, &record)) >= 0; age++)
    put_row(printer, (unsigned)age, &record, widths);
}

void printer_table(struct printer *printer)
{
  const struct report_live *live = printer->options.live;

  put_head(printer);
  put_records(printer);
  for (size_t i = 0; live && i < live->note_count; i++)
    printer_put(printer, "  note: %s\n", live->notes[i]);
}
