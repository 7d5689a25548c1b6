/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout for programs: one JSON object. All keys are always present and never change; a value that the CPU does not
 * have is null. Addresses and register values are strings ("0x..."), since JSON readers keep only 53 bits of a number.
 */
#include <ctype.h>

#include "report/printer.h"

static void put_string(struct printer *printer, const char *string)
{
  printer_put(printer, "\"");
  while (*string) {
    size_t size = utf8_size(string);

    if (!size)
      printer_put(printer, "\\ufffd");
    else if (*string == '"' || *string == '\\')
      printer_put(printer, "\\%c", *string);
    else if (size == 1 && iscntrl((unsigned char)*string))
      printer_put(printer, "\\u%04x", (unsigned)*string);
    else
      printer_put(printer, "%.*s", (int)size, string);
    string += size ? size : 1;
  }
  printer_put(printer, "\"");
}

static const char *truth(bool is_true)
{
  return is_true ? "true" : "false";
}

/* A register with the names of its flags that are set. */
static void put_register(struct printer *printer, const char *key, enum lb_register id)
{
  struct lb_field field;
  const char *comma = "";
  uint64_t value;

  printer_put(printer, "  \"%s\": ", key);
  if (!printer_register(printer, id, &value)) {
    printer_put(printer, "null,\n");
    return;
  }
  printer_put(printer, "{\"value\": \"0x%llx\", \"bits\": [", (unsigned long long)value);
  for (unsigned i = 0; lb_cpu_field(printer->cpu, id, i, &field) >= 0; i++)
    if (field.high == field.low && value >> field.low & 1) {
      printer_put(printer, "%s\"%s\"", comma, field.name);
      comma = ", ";
    }
  printer_put(printer, "]},\n");
}

static void put_address(struct printer *printer, const char *key, uint64_t address)
{
  const char *name;
  uint64_t offset;

  printer_put(printer, "\"%s\": \"0x%llx\", \"%s_symbol\": ", key, (unsigned long long)address, key);
  if (!printer_symbol(printer, address, &name, &offset)) {
    printer_put(printer, "null");
    return;
  }
  printer_put(printer, "{\"name\": ");
  put_string(printer, name);
  printer_put(printer, ", \"offset\": \"0x%llx\"}", (unsigned long long)offset);
}

static void put_addresses(struct printer *printer, uint64_t from, uint64_t to)
{
  put_address(printer, "from", from);
  printer_put(printer, ", ");
  put_address(printer, "to", to);
}

static void put_truth(struct printer *printer, const char *key, bool has, bool is_true)
{
  printer_put(printer, "\"%s\": %s, ", key, has ? truth(is_true) : "null");
}

static void put_number(struct printer *printer, const char *key, bool has, unsigned number)
{
  if (has)
    printer_put(printer, "\"%s\": %u, ", key, number);
  else
    printer_put(printer, "\"%s\": null, ", key);
}

/* The common part of a record of the stack and the last-exception record. */
static void put_record(struct printer *printer, const struct lb_record *record)
{
  put_addresses(printer, record->from, record->to);
  printer_put(printer, ", ");
  put_truth(printer, "mispredicted", record->has_mispredicted, record->is_mispredicted);
  put_truth(printer, "in_tsx", record->has_tsx, record->is_in_tsx);
  put_truth(printer, "tsx_abort", record->has_tsx, record->is_tsx_abort);
  put_number(printer, "cycles", record->has_cycles, record->cycles);
  put_number(printer, "type", record->has_type, record->type);
  printer_put(printer, "\"raw\": {\"from\": \"0x%llx\", \"to\": \"0x%llx\", \"info\": \"0x%llx\"}}",
              (unsigned long long)record->raw.from, (unsigned long long)record->raw.to,
              (unsigned long long)record->raw.info);
}

static void put_entries(struct printer *printer)
{
  const char *comma = "";
  struct lb_record record;

  printer_put(printer, "  \"entries\": [");
  for (unsigned age = 0; lb_recorder_entry(printer->recorder, age, &record) >= 0; age++) {
    if (record.is_empty)
      continue;
    printer_put(printer, "%s\n    {\"age\": %u, \"index\": %u, ", comma, age, record.index);
    if (record.kind < LB_BRANCH_KINDS)
      printer_put(printer, "\"kind\": \"%s\", ", lb_branch_kind_name(record.kind));
    else
      printer_put(printer, "\"kind\": null, ");
    put_record(printer, &record);
    comma = ",";
  }
  printer_put(printer, "%s],\n", *comma ? "\n  " : "");
}

static void put_ler(struct printer *printer)
{
  struct lb_record ler;

  printer_put(printer, "  \"last_exception\": ");
  if (lb_recorder_ler(printer->recorder, &ler) < 0 || ler.is_empty) {
    printer_put(printer, "null\n");
    return;
  }
  printer_put(printer, "{");
  put_record(printer, &ler);
  printer_put(printer, "\n");
}

/* Data that only a real processor has. */
static void put_live(struct printer *printer)
{
  const struct report_live *live = printer->options.live;
  uint64_t from, to;

  printer_put(printer, "  \"cpu_number\": %u,\n", live->number);
  put_register(printer, "perf_capabilities", LB_REG_PERF_CAPABILITIES);
  if (printer_pair(printer, &from, &to)) {
    printer_put(printer, "  \"last_branch\": {");
    put_addresses(printer, from, to);
    printer_put(printer, "},\n");
  } else {
    printer_put(printer, "  \"last_branch\": null,\n");
  }
  printer_put(printer, "  \"notes\": [");
  for (size_t i = 0; i < live->note_count; i++) {
    printer_put(printer, "%s", i ? ", " : "");
    put_string(printer, live->notes[i]);
  }
  printer_put(printer, "],\n");
}

void printer_json(struct printer *printer)
{
  const struct lb_recorder *recorder = printer->recorder;
  unsigned tos = 0;
  bool has_tos = printer_tos(printer, &tos);

  printer_put(printer, "{\n  \"cpu\": ");
  put_string(printer, printer->cpu->name);
  printer_put(printer, ",\n  \"title\": ");
  put_string(printer, printer->cpu->title);
  printer_put(printer, ",\n");
  if (printer->options.live)
    put_live(printer);
  printer_put(printer, "  \"recording\": %s,\n  \"undefined\": %s,\n", truth(lb_recorder_is_recording(recorder)),
              truth(lb_recorder_is_undefined(recorder)));
  printer_put(printer, "  \"depth\": %u,\n  \"used\": %u,\n", printer_depth(printer), lb_recorder_used(recorder));
  if (has_tos)
    printer_put(printer, "  \"tos\": %u,\n", tos);
  else
    printer_put(printer, "  \"tos\": null,\n");
  put_register(printer, "debugctl", LB_REG_DEBUGCTL);
  put_register(printer, "select", LB_REG_LBR_SELECT);
  put_register(printer, "lbr_ctl", LB_REG_LBR_CTL);
  put_entries(printer);
  put_ler(printer);
  printer_put(printer, "}\n");
}
