/* SPDX-License-Identifier: Apache-2.0
 *
 * The two layouts of the WinDbg extension command `!lbr`, as printed in Zhang Yinkui's 《软件调试》, chapter 5: that of
 * listing 5-1 and its run on a Pentium M ("old"), and the one of the Kaby Lake run ("new"). Registers are listed from
 * TOS downwards, TO before FROM, whether or not they hold a record: the tool does not check.
 *
 * The book leaves three things open. The base of "Cycle Count": decimal here. The flags of the stack line: here bit 0
 * says that FROM carries a mispredict flag, bit 1 that it carries TSX flags, bit 2 that both lie in the INFO register,
 * which gives the 0x4 of the book. An address without a symbol: nothing follows the bracket.
 */
#include "report/printer.h"

static const struct report_windbg *printer_head(const struct printer *printer)
{
  static const struct report_windbg nothing;

  return printer->options.windbg ? printer->options.windbg : &nothing;
}

static void put_banner(struct printer *printer, const char *cpus)
{
  const struct report_windbg *head = printer_head(printer);

  if (head->banner)
    printer_put(printer, "%s\n", head->banner);
  else
    printer_put(printer, "Access LBR (Last Branch Recording) registers of %s CPU.\n", cpus);
  printer_put(printer, "%s\n", head->version ? head->version : "Version " LB_VERSION " by lastbranch");
}

static void put_symbol(struct printer *printer, uint64_t address)
{
  const char *name;
  uint64_t offset;

  if (printer_symbol(printer, address, &name, &offset))
    printer_put(printer, " %s+%llx", name, (unsigned long long)offset);
}

static void put_old_line(struct printer *printer, unsigned index, uint64_t address)
{
  printer_put(printer, "MSR_LASTBRANCH_%x: [%08llx]", index, (unsigned long long)address);
  put_symbol(printer, address);
  printer_put(printer, "\n");
}

static void put_tos(struct printer *printer)
{
  unsigned tos;

  if (printer_tos(printer, &tos))
    printer_put(printer, "MSR_LASTBRANCH_TOS=%x\n", tos);
}

/* The tool reads DEBUGCTL, stops the recording, prints, and starts it again. It says so whatever the bit was before.
 * The same lines are printed here, but the recorder is not changed. */
void printer_windbg_old(struct printer *printer)
{
  struct lb_record record;
  uint64_t debugctl;

  put_banner(printer, "IA-32");
  if (printer_register(printer, LB_REG_DEBUGCTL, &debugctl))
    printer_put(printer, "MSR_DEBUGCTLB=%llx\n", (unsigned long long)debugctl);
  printer_put(printer, "LBR bit is cleared now.\n");
  put_tos(printer);
  for (unsigned age = 0; lb_recorder_entry(printer->recorder, age, &record) >= 0; age++) {
    put_old_line(printer, record.index, record.to);
    put_old_line(printer, record.index, record.from);
  }
  printer_put(printer, "LBR bit is set now.\n");
}

static void find_model(const struct printer *printer, unsigned *ret_family, unsigned *ret_model)
{
  const struct report_windbg *head = printer_head(printer);
  const struct lb_model *model;

  *ret_family = head->family;
  *ret_model = head->model;
  if (head->family)
    return;
  for (size_t i = 0; (model = lb_model_at(i)); i++)
    if (model->cpu == printer->cpu) {
      *ret_family = model->family;
      *ret_model = model->first_model;
      return;
    }
}

static unsigned stack_flags(const struct printer *printer)
{
  const struct lb_cpu *cpu = printer->cpu;

  if (printer_head(printer)->flags)
    return printer_head(printer)->flags;
  if (!cpu->lbr)
    return 0;
  if (cpu->lbr->info)
    return 4;
  switch (cpu->format) {
  case LB_FORMAT_EIP_TSX:
    return 3;
  case LB_FORMAT_EIP_FLAGS:
  case LB_FORMAT_LIP_CYCLES:
  case LB_FORMAT_AMD_V2:
    return 1;
  default:
    return 0;
  }
}

static void put_new_head(struct printer *printer)
{
  const struct lb_lbr_class *lbr = printer->cpu->lbr;
  unsigned family, model;
  uint64_t value;

  find_model(printer, &family, &model);
  put_banner(printer, "IA");
  printer_put(printer, "Family 0x%x Model 0x%x detected\n", family, model);
  printer_put(printer, "LBR stack: count %u, BaseFrom=0x%x, BaseTo=0x%x, BaseInfo=0x%x, flags 0x%x\n",
              printer_depth(printer), lbr ? lbr->from : 0, lbr ? lbr->to : 0, lbr ? lbr->info : 0,
              stack_flags(printer));
  if (printer_register(printer, LB_REG_PERF_CAPABILITIES, &value))
    printer_put(printer, "IA32_PERF_CAPABILITIES = 0x%llx\n", (unsigned long long)value);
  if (printer_register(printer, LB_REG_DEBUGCTL, &value))
    printer_put(printer, "MSR_DEBUGCTL = 0x%llx\n", (unsigned long long)value);
  printer_put(printer, "LBR bit is cleared now.\n");
  put_tos(printer);
}

static void put_new_entry(struct printer *printer, const struct lb_record *record)
{
  if (printer->cpu->lbr->info)
    printer_put(printer, "MSR_LASTBRANCH_%x (info): Cycle Count %u, HIDWORD %llx\n", record->index,
                (unsigned)(record->raw.info & 0xFFFF), (unsigned long long)(record->raw.info >> 32));
  printer_put(printer, "MSR_LASTBRANCH_%x (to): [%016llx]", record->index, (unsigned long long)record->to);
  put_symbol(printer, record->to);
  printer_put(printer, "\nMSR_LASTBRANCH_%x (from): [%016llx]", record->index, (unsigned long long)record->from);
  put_symbol(printer, record->from);
  if (record->has_mispredicted)
    printer_put(printer, " bMISPRED %d", record->is_mispredicted);
  printer_put(printer, "\n");
}

void printer_windbg(struct printer *printer)
{
  struct lb_record record;

  if (printer->cpu->lbr && printer->cpu->lbr->is_combined) {
    printer_windbg_old(printer);
    return;
  }
  put_new_head(printer);
  for (unsigned age = 0; lb_recorder_entry(printer->recorder, age, &record) >= 0; age++)
    put_new_entry(printer, &record);
}
