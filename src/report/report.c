/* SPDX-License-Identifier: Apache-2.0
 *
 * Entry points of the folder: the formats by name, and the queries about a recorder that every layout uses.
 */
#include "report/report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "report/printer.h"

static const struct {
  const char *name;
  void (*print)(struct printer *printer);
} formats[REPORT_FORMATS] = {
  [REPORT_TABLE] = {"table", printer_table},
  [REPORT_WINDBG] = {"windbg", printer_windbg},
  [REPORT_WINDBG_OLD] = {"windbg-old", printer_windbg_old},
  [REPORT_JSON] = {"json", printer_json},
};

const char *report_format_name(unsigned format)
{
  return format < REPORT_FORMATS ? formats[format].name : NULL;
}

int report_format_find(const char *word)
{
  for (int i = 0; i < REPORT_FORMATS; i++)
    if (!strcmp(formats[i].name, word))
      return i;
  return -EINVAL;
}

int report_print(struct text *text, const struct lb_recorder *recorder, enum report_format format,
                 const struct report_options *options)
{
  struct printer printer = {.text = text, .recorder = recorder, .cpu = lb_recorder_cpu(recorder)};
  size_t before = text->length;

  if (options)
    printer.options = *options;
  formats[format].print(&printer);
  if (printer.error < 0 && text->data) {
    text->length = before;
    text->data[before] = '\0';
  }
  return printer.error;
}

void report_put(struct text *text, int *error, const char *format, ...)
{
  va_list list;

  if (*error < 0)
    return;
  va_start(list, format);
  *error = text_addv(text, format, list);
  va_end(list);
}

bool printer_symbol(const struct printer *printer, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct report_symbols *symbols = printer->options.symbols;

  return symbols && symbols->find(symbols->data, address, ret_name, ret_offset);
}

bool printer_register(const struct printer *printer, enum lb_register id, uint64_t *ret_value)
{
  struct lb_register_range range = lb_cpu_register(printer->cpu, id);

  return range.count && lb_recorder_rdmsr(printer->recorder, range.first, ret_value) == LB_MSR_OK;
}

bool printer_tos(const struct printer *printer, unsigned *ret_tos)
{
  uint64_t value;

  if (!printer_register(printer, LB_REG_LBR_TOS, &value))
    return false;
  *ret_tos = (unsigned)value & (lb_cpu_depth(printer->cpu) - 1); /* every stack with a TOS is a power of two deep */
  return true;
}

bool printer_pair(const struct printer *printer, uint64_t *ret_from, uint64_t *ret_to)
{
  uint64_t from, to;

  if (!lb_cpu_has(printer->cpu, LB_FEATURE_BRS) && !lb_cpu_has(printer->cpu, LB_FEATURE_LBR_V2))
    return false; /* on other CPUs they mirror the stack's newest entry */
  if (!printer_register(printer, LB_REG_LAST_FROM, &from) || !printer_register(printer, LB_REG_LAST_TO, &to))
    return false;
  *ret_from = from;
  *ret_to = to;
  return from || to;
}

unsigned printer_depth(const struct printer *printer)
{
  struct lb_record record;
  unsigned depth = 0;

  while (lb_recorder_entry(printer->recorder, depth, &record) >= 0)
    depth++;
  return depth;
}
