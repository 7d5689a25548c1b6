/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr decode REGISTER VALUE: the fields with their names and meanings, reserved bits that are set and the CPUs that
 * have them, the record that a FROM, TO or INFO value is part of, and the effect of writing the value.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/recorder.h"
#include "report/cpu_page.h"
#include "report/decode.h"
#include "report/register.h"

/* ---- fields ---- */

static const char *branch_type_text(uint64_t type)
{
  static const char *const texts[] = {
    "conditional branch", "near indirect jmp", "near relative jmp", "near indirect call",
    "near relative call", "near ret",          "reserved",          "reserved"};

  return type < sizeof(texts) / sizeof(texts[0]) ? texts[type] : "other branch";
}

/* The meaning of a field's value, NULL if the field's description is enough. */
static const char *value_explain(const struct register_choice *choice, const struct lb_field *field, uint64_t value)
{
  if (choice->id == LB_REG_PERF_CAPABILITIES && strcmp(field->name, "LBR_FMT") == 0) {
    if (value == 0x3F)
      return "no model-specific LBR: look for architectural LBR";
    return value <= LB_FORMAT_LIP_INFO ? lb_format_text((unsigned)value) : "not a known format";
  }
  if (choice->id == LB_REG_PERF_CAPABILITIES && strcmp(field->name, "PEBS_FMT") == 0)
    return value <= LB_PEBS_6 ? lb_pebs_text((unsigned)value) : "not a known format";
  if (strcmp(field->name, "BR_TYPE") == 0)
    return branch_type_text(value);
  return NULL;
}

static void put_set(struct page *page, bool is_set)
{
  if (page->is_json)
    page_put_flag(page, "set", is_set);
  else
    page_put(page, "set", is_set ? "*" : "");
}

static void put_field(struct page *page, const struct register_choice *choice, const struct lb_field *field,
                      uint64_t value)
{
  uint64_t part = (value & cpudb_field_mask(field)) >> field->low;
  const char *explained = value_explain(choice, field, part);

  page_row(page, part != 0);
  put_set(page, part != 0);
  cpu_page_bits(page, "bits", field->high, field->low);
  page_put(page, "name", field->name);
  page_put_hex(page, "value", part);
  page_put(page, "meaning", field->meaning);
  if (explained)
    page_put_note(page, "explanation", explained);
  else
    page_absent(page, "explanation");
  page_row_end(page);
}

static bool has_wide_field(const struct register_choice *choice)
{
  struct lb_field field;

  for (unsigned i = 0; lb_cpu_field(choice->cpu, choice->id, i, &field) >= 0; i++)
    if (field.high - field.low >= 24)
      return true;
  return false;
}

/* Returns the bits of the value that no field holds. */
static uint64_t put_fields(struct page *page, const struct register_choice *choice, uint64_t value)
{
  static const struct page_column columns[][6] = {
    {{"", 1}, {"bits", 6}, {"name", 24}, {"value", 8}, {"meaning", 0}, {NULL, 0}},
    {{"", 1}, {"bits", 6}, {"name", 24}, {"value", 18}, {"meaning", 0}, {NULL, 0}},
  };
  struct lb_field field;
  uint64_t rest = value;

  page_table(page, "fields", columns[has_wide_field(choice)]);
  for (unsigned i = 0; lb_cpu_field(choice->cpu, choice->id, i, &field) >= 0; i++) {
    put_field(page, choice, &field, value);
    rest &= ~cpudb_field_mask(&field);
  }
  page_table_end(page);
  return rest;
}

/* ---- reserved bits ---- */

/* Whether an earlier CPU has a field of this name at this bit. */
static bool field_is_known(const struct cpudb_field_question *question, size_t before)
{
  for (size_t i = 0; i < before; i++)
    if (cpudb_has_field(lb_cpu_at(i), question))
      return true;
  return false;
}

/* Describes on which CPUs the bit is a field, and which: the name can differ between CPUs. */
static int elsewhere_describe(struct text *text, const struct register_choice *choice, unsigned bit)
{
  struct cpudb_field_question question = {.id = choice->id, .bit = (int)bit};
  const struct lb_cpu *cpu;
  struct lb_field field;
  int r = 0;

  for (size_t i = 0; r >= 0 && (cpu = lb_cpu_at(i)); i++) {
    question.name = NULL;
    if (!cpudb_has_field(cpu, &question) || cpudb_field_find(cpu, &question, &field) < 0)
      continue;
    question.name = field.name;
    if (field_is_known(&question, i))
      continue;
    r = text_addf(text, "%s%s on ", text->length ? "; " : "", field.name);
    if (r >= 0)
      r = register_list_cpus(text, cpudb_has_field, &question);
  }
  return r >= 0 && !text->length ? text_add(text, "not used on any CPU of the catalogue") : r;
}

/* A run of reserved bits that are set, and that a write and other CPUs treat alike. */
struct reserved_run {
  unsigned low, high;
  const char *write;
  struct text elsewhere;
};

/* Finds the run that begins at bit `low`. Returns 0, or -ENOMEM; the caller frees `elsewhere` either way. */
static int reserved_run_find(const struct register_choice *choice, uint64_t reserved, unsigned low,
                             struct reserved_run *ret_run)
{
  struct reserved_run run = {.low = low, .high = low, .write = register_bit_write(choice, low)};
  bool is_same = true;
  int r;

  r = elsewhere_describe(&run.elsewhere, choice, low);
  while (r >= 0 && is_same && run.high < 63 && reserved >> (run.high + 1) & 1) {
    struct text elsewhere = {0};

    r = elsewhere_describe(&elsewhere, choice, run.high + 1);
    is_same = strcmp(text_string(&elsewhere), text_string(&run.elsewhere)) == 0 &&
              strcmp(register_bit_write(choice, run.high + 1), run.write) == 0;
    run.high += is_same;
    text_done(&elsewhere);
  }
  *ret_run = run;
  return r;
}

static int put_reserved(struct page *page, const struct register_choice *choice, uint64_t reserved)
{
  static const struct page_column columns[] = {{"", 1}, {"bits", 6}, {"if written", 24}, {"elsewhere", 0}, {NULL, 0}};
  struct reserved_run run;
  int r = 0;

  if (!reserved && !page->is_json)
    return 0;
  page_section(page, "reserved", "Reserved bits that are set");
  page_put_hex(page, "mask", reserved);
  page_table(page, "runs", columns);
  for (unsigned bit = 0; r >= 0 && bit < 64; bit++) {
    if (!(reserved >> bit & 1))
      continue;
    r = reserved_run_find(choice, reserved, bit, &run);
    page_row(page, true);
    put_set(page, true);
    cpu_page_bits(page, "bits", run.high, run.low);
    page_put(page, "write", run.write);
    page_put(page, "elsewhere", text_string(&run.elsewhere));
    page_row_end(page);
    text_done(&run.elsewhere);
    bit = run.high;
  }
  page_table_end(page);
  page_section_end(page);
  return r;
}

/* ---- a record ---- */

/* The parts of a record that a register holds. */
struct record_part {
  bool has_from, has_to, has_info;
  bool is_stack; /* of the LBR stack; otherwise a copy, or of the last exception */
};

static struct record_part record_part(enum lb_register id)
{
  switch (id) {
  case LB_REG_LBR:
    return (struct record_part){.has_from = true, .has_to = true, .is_stack = true};
  case LB_REG_LBR_FROM:
    return (struct record_part){.has_from = true, .is_stack = true};
  case LB_REG_LAST_FROM:
  case LB_REG_LER_FROM:
    return (struct record_part){.has_from = true};
  case LB_REG_LBR_TO:
    return (struct record_part){.has_to = true, .is_stack = true};
  case LB_REG_LAST_TO:
  case LB_REG_LER_TO:
    return (struct record_part){.has_to = true};
  case LB_REG_LBR_INFO:
    return (struct record_part){.has_info = true, .is_stack = true};
  case LB_REG_LER_INFO:
    return (struct record_part){.has_info = true};
  default:
    return (struct record_part){0};
  }
}

static unsigned record_format(const struct lb_cpu *cpu, struct record_part part)
{
  return part.is_stack ? cpu->format : lb_cpu_pair_format(cpu);
}

static struct lb_record record_decode(const struct lb_cpu *cpu, struct record_part part, uint64_t value)
{
  struct lb_raw raw = {
    .from = part.has_from ? value : 0, .to = part.has_to ? value : 0, .info = part.has_info ? value : 0};

  if (part.has_from && part.has_to) { /* one register holds both halves */
    raw.from = (uint32_t)value;
    raw.to = value >> 32;
  }
  if (record_format(cpu, part) != cpu->format)
    return (struct lb_record){.raw = raw, .from = raw.from, .to = raw.to, .kind = LB_BRANCH_KINDS};
  return lb_record_decode(cpu, &raw);
}

static void put_flag(struct page *page, const char *key, bool has, bool value)
{
  if (has)
    page_put_flag(page, key, value);
  else
    page_absent(page, key);
}

static void put_hex(struct page *page, const char *key, bool has, uint64_t value)
{
  if (has)
    page_put_hex(page, key, value);
  else
    page_absent(page, key);
}

/* Shows the flags that this register holds: they are in INFO if there is one, otherwise in FROM; cycles can be in
 * TO. */
static void put_record_flags(struct page *page, const struct lb_cpu *cpu, struct record_part part,
                             const struct lb_record *record)
{
  bool flags_in_info = lb_cpu_register(cpu, LB_REG_LBR_INFO).count > 0;
  bool has_flags = flags_in_info ? part.has_info : part.has_from;
  bool has_cycles = flags_in_info ? part.has_info : part.has_to;

  put_flag(page, "mispredicted", has_flags && record->has_mispredicted, record->is_mispredicted);
  put_flag(page, "in_tsx", has_flags && record->has_tsx, record->is_in_tsx);
  put_flag(page, "tsx_abort", has_flags && record->has_tsx, record->is_tsx_abort);
  if (has_flags && record->has_type)
    page_put(page, "branch_type", branch_type_text(record->type));
  else
    page_absent(page, "branch_type");
  if (has_cycles && record->has_cycles)
    page_put_number(page, "cycles", record->cycles);
  else
    page_absent(page, "cycles");
  put_flag(page, "empty", part.has_to && record_format(cpu, part) == LB_FORMAT_AMD_V2, record->is_empty);
}

static void put_record(struct page *page, const struct register_choice *choice, uint64_t value)
{
  struct record_part part = record_part(choice->id);
  struct lb_record record;

  if (!part.has_from && !part.has_to && !part.has_info) {
    page_absent(page, "record");
    return;
  }
  record = record_decode(choice->cpu, part, value);
  page_section(page, "record", "As part of a record");
  page_put(page, "format", lb_format_text(record_format(choice->cpu, part)));
  put_hex(page, "from_address", part.has_from, record.from);
  put_hex(page, "to_address", part.has_to, record.to);
  put_record_flags(page, choice->cpu, part, &record);
  page_section_end(page);
}

/* ---- writing ---- */

static void put_write(struct page *page, const struct register_choice *choice, uint64_t value)
{
  uint64_t got = 0;
  enum write_answer answer = register_try_write(choice, value, &got);
  const char *reason = answer == WRITE_FAULTS ? register_fault_reason(choice) : NULL;

  page_section(page, "write", "WRMSR of this value");
  page_put(page, "answer", register_answer_word(answer));
  put_hex(page, "reads_back", answer == WRITE_KEPT || answer == WRITE_CHANGED, got);
  put_hex(page, "faulting_bits", answer == WRITE_FAULTS && !reason, register_faulting_bits(choice, value));
  if (reason)
    page_put(page, "reason", reason);
  else
    page_absent(page, "reason");
  page_section_end(page);
}

/* ---- the page ---- */

static int put_register(struct page *page, const struct register_choice *choice, uint64_t value)
{
  char name[64], title[96];
  int r;

  lb_cpu_register_name(choice->cpu, choice->id, choice->number, name, sizeof(name));
  snprintf(title, sizeof(title), "%s = 0x%llx", name, (unsigned long long)value);
  page_title(page, title);
  if (page->is_json)
    page_put(page, "register", name);
  register_put_cpu(page, choice);
  if (page->is_json)
    page_put_hex(page, "value", value);
  page_put_hex(page, "address", choice->msr);
  page_put(page, "purpose", lb_register_text(choice->id));
  page_blank(page);
  r = put_reserved(page, choice, put_fields(page, choice, value));
  put_record(page, choice, value);
  put_write(page, choice, value);
  return r;
}

int decode_register(const struct decode_arguments *arguments, const struct report_output *output)
{
  struct register_choice choice;
  struct page page;
  uint64_t value;
  int r;

  if (number_parse(arguments->value, &value) < 0) {
    message("'%s' is not a number of 64 bits; 42, 0x2a and, behind --, -5 are", arguments->value);
    return LB_E_BAD_NUMBER;
  }
  r = register_choose(arguments->cpu, arguments->name, &choice);
  if (r < 0)
    return r;
  page_open(&page, output, arguments->wants_json);
  r = put_register(&page, &choice, value);
  page_close(&page);
  if (r < 0)
    message("%s", lb_strerror(r));
  return r < 0 ? r : 0;
}
