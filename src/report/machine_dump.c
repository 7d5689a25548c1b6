/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of --dump for a processor: registers, MSRs of the recording unit, the DS area with its BTS and PEBS
 * buffers in the guest's memory. Each is part of a page, so that text and JSON have the same contents. Intel SDM vol. 3
 * (June 2016) 17.4.9.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "machine/machine.h"
#include "report/decode_area.h"
#include "report/machine_page.h"
#include "symbol/symbol.h"

#define RECORDS_MAX 10000u /* records that are shown, the newest */
#define PEBS_SIZE_MAX 1024u

static struct lb_recorder *recorder_of(const struct machine_view *view)
{
  return &machine_cpu(view->machine)->recorder;
}

/* ---- registers ---- */

static const char *const general_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                              "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const segment_names[CPU_SEGMENTS] = {"es", "cs", "ss", "ds", "fs", "gs", "ldtr", "tr"};

static bool is_wide(const struct cpu *cpu)
{
  return (cpu->mode & MODE_LONG) != 0;
}

static const char *mode_name(const struct cpu *cpu)
{
  static const char *const names[4] = {"16-bit", "32-bit", "64-bit", "64-bit"};

  if (cpu->eflags & FLAG_VM)
    return "virtual-8086";
  return cpu->mode & MODE_REAL ? "real" : names[cpu->mode & MODE_BITS];
}

void machine_text_registers(const struct cpu *cpu, struct text *text)
{
  unsigned count = is_wide(cpu) ? 16 : 8, columns = is_wide(cpu) ? 4 : 8;
  int width = is_wide(cpu) ? 16 : 8;

  text_addf(text, "  %s mode, CPL %u, %s %0*llx, rflags %08llx\n", mode_name(cpu), cpu->cpl,
            is_wide(cpu) ? "rip" : "eip", width, (unsigned long long)cpu->rip, (unsigned long long)cpu_flags(cpu));
  for (unsigned i = 0; i < count; i++) {
    text_addf(text, "  %c%-2s %0*llx", is_wide(cpu) ? 'r' : 'e', general_names[i] + 1, width,
              (unsigned long long)(is_wide(cpu) ? cpu->r[i] : cpu->r[i] & 0xFFFFFFFF));
    if (i % columns == columns - 1)
      text_add(text, "\n");
  }
  for (unsigned i = 0; i < CPU_SEGMENTS; i++)
    text_addf(text, "  %-4s %04x base %0*llx limit %08x access %04x%s", segment_names[i], cpu->segment[i].selector,
              width, (unsigned long long)cpu->segment[i].base, cpu->segment[i].limit, cpu->segment[i].access,
              i % 2 ? "\n" : "");
  text_addf(text, "  gdtr %0*llx limit %04x  idtr %0*llx limit %04x\n", width, (unsigned long long)cpu->gdtr.base,
            cpu->gdtr.limit, width, (unsigned long long)cpu->idtr.base, cpu->idtr.limit);
  text_addf(text, "  cr0 %08x  cr2 %0*llx  cr3 %0*llx  cr4 %08x  efer %llx\n", cpu->cr0, width,
            (unsigned long long)cpu->cr2, width, (unsigned long long)cpu->cr3, cpu->cr4, (unsigned long long)cpu->efer);
  text_addf(text, "  dr6 %llx  dr7 %llx\n", (unsigned long long)cpu->dr[6], (unsigned long long)cpu->dr[7]);
}

static void regs_segments(const struct cpu *cpu, struct page *page)
{
  page_section(page, "segments", NULL);
  for (unsigned i = 0; i < CPU_SEGMENTS; i++) {
    page_section(page, segment_names[i], NULL);
    page_put_hex(page, "selector", cpu->segment[i].selector);
    page_put_hex(page, "base", cpu->segment[i].base);
    page_put_hex(page, "limit", cpu->segment[i].limit);
    page_put_hex(page, "access", cpu->segment[i].access);
    page_section_end(page);
  }
  page_section_end(page);
}

static void regs_json(const struct cpu *cpu, struct page *page)
{
  page_section(page, "registers", NULL);
  page_put(page, "mode", mode_name(cpu));
  page_put_number(page, "cpl", cpu->cpl);
  page_put_hex(page, "rip", cpu->rip);
  page_put_hex(page, "rflags", cpu_flags(cpu));
  for (unsigned i = 0; i < 16; i++)
    page_put_hex(page, general_names[i], cpu->r[i]);
  regs_segments(cpu, page);
  page_put_hex(page, "gdtr_base", cpu->gdtr.base);
  page_put_hex(page, "gdtr_limit", cpu->gdtr.limit);
  page_put_hex(page, "idtr_base", cpu->idtr.base);
  page_put_hex(page, "idtr_limit", cpu->idtr.limit);
  page_put_hex(page, "cr0", cpu->cr0);
  page_put_hex(page, "cr2", cpu->cr2);
  page_put_hex(page, "cr3", cpu->cr3);
  page_put_hex(page, "cr4", cpu->cr4);
  page_put_hex(page, "efer", cpu->efer);
  page_put_hex(page, "dr6", cpu->dr[6]);
  page_put_hex(page, "dr7", cpu->dr[7]);
  page_section_end(page);
}

void machine_page_regs(const struct machine_view *view, struct page *page)
{
  const struct cpu *cpu = machine_cpu(view->machine);
  struct text text = {0};

  if (page->is_json) {
    regs_json(cpu, page);
    return;
  }
  page_title(page, "Registers");
  machine_text_registers(cpu, &text);
  fputs(text_string(&text), page->file);
  text_done(&text);
}

/* ---- MSRs ---- */

/* --dump lbr shows the stack itself. */
static bool is_of_the_stack(enum lb_register id)
{
  return id == LB_REG_LBR || id == LB_REG_LBR_FROM || id == LB_REG_LBR_TO || id == LB_REG_LBR_INFO;
}

static void msr_row(const struct machine_view *view, struct page *page, enum lb_register id, unsigned number)
{
  const struct lb_cpu *cpu = machine_cpu(view->machine)->model;
  struct lb_register_range range = lb_cpu_register(cpu, id);
  uint32_t msr = range.first + number * range.stride;
  uint64_t value;
  char name[64];

  if (lb_recorder_rdmsr(recorder_of(view), msr, &value) != LB_MSR_OK)
    return;
  lb_cpu_register_name(cpu, id, number, name, sizeof(name));
  page_row(page, false);
  page_put_hex(page, "address", msr);
  page_put(page, "name", name);
  page_put_hex(page, "value", value);
  page_row_end(page);
}

void machine_page_msrs(const struct machine_view *view, struct page *page)
{
  static const struct page_column columns[] = {{"address", 12}, {"name", 38}, {"value", 0}, {NULL, 0}};

  page_title(page, "Registers of the recording unit");
  page_table(page, "msrs", columns);
  for (unsigned id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(machine_cpu(view->machine)->model, (enum lb_register)id);

    for (unsigned number = 0; number < range.count && !is_of_the_stack((enum lb_register)id); number++)
      msr_row(view, page, (enum lb_register)id, number);
  }
  page_table_end(page);
}

/* ---- the DS area ---- */

/* Reads the management area from the guest's memory. Returns false if there is none. */
static bool area_read(const struct machine_view *view, uint64_t *ret_address, struct lb_ds_area *ret_area)
{
  struct lb_recorder *recorder = recorder_of(view);
  struct lb_register_range range = lb_cpu_register(machine_cpu(view->machine)->model, LB_REG_DS_AREA);
  bool is_64 = lb_recorder_ds_is_64(recorder);
  unsigned char bytes[0x80];
  uint64_t address;
  size_t size;

  if (!range.count || lb_recorder_rdmsr(recorder, range.first, &address) != LB_MSR_OK || !address)
    return false;
  size = cpu_peek(machine_cpu(view->machine), address, bytes, is_64 ? sizeof(bytes) : 0x30);
  if (lb_ds_decode(is_64, bytes, size, ret_area) < 0)
    return false;
  *ret_address = address;
  return true;
}

static void area_absent(const struct machine_view *view, struct page *page, const char *key)
{
  bool has = lb_cpu_register(machine_cpu(view->machine)->model, LB_REG_DS_AREA).count;

  page_absent(page, key);
  page_remark(page, has ? "IA32_DS_AREA is 0 or does not point to memory: the guest has set up no DS area"
                        : "this CPU has no debug store");
}

static void broken_rules(const struct machine_view *view, struct page *page)
{
  struct lb_ds_facts facts = machine_ds_facts(view->machine);

  page_heading(page, "Requirements that the DS area breaks");
  decode_area_put_broken(page, lb_ds_check(recorder_of(view), &facts));
}

void machine_page_ds(const struct machine_view *view, struct page *page)
{
  uint64_t address;
  struct lb_ds_area ds;

  page_title(page, "DS area");
  if (!area_read(view, &address, &ds)) {
    area_absent(view, page, "ds");
    return;
  }
  page_section(page, "ds", NULL);
  page_put_hex(page, "address", address);
  page_put(page, "layout", ds.is_64 ? "64-bit" : "32-bit");
  page_put_hex(page, "bts_base", ds.bts_base);
  page_put_hex(page, "bts_index", ds.bts_index);
  page_put_hex(page, "bts_absolute_maximum", ds.bts_maximum);
  page_put_hex(page, "bts_threshold", ds.bts_threshold);
  page_put_hex(page, "pebs_base", ds.pebs_base);
  page_put_hex(page, "pebs_index", ds.pebs_index);
  page_put_hex(page, "pebs_absolute_maximum", ds.pebs_maximum);
  page_put_hex(page, "pebs_threshold", ds.pebs_threshold);
  page_put_number(page, "messages_stored", lb_recorder_messages(recorder_of(view)).stored);
  page_put_number(page, "messages_lost", lb_recorder_messages(recorder_of(view)).lost);
  broken_rules(view, page);
  page_section_end(page);
}

/* ---- BTS ---- */

static void symbol_put(const struct machine_view *view, struct page *page, const char *key, uint64_t address)
{
  const char *name;
  uint64_t offset;

  if (symbol_table_find(view->symbols, address, &name, &offset))
    page_putf(page, key, "%s+0x%llx", name, (unsigned long long)offset);
  else
    page_put(page, key, NULL);
}

static void bts_row(const struct machine_view *view, struct page *page, uint64_t number,
                    const struct lb_bts_record *record)
{
  page_row(page, false);
  page_put_number(page, "record", number);
  page_put_hex(page, "from", record->from);
  page_put_hex(page, "to", record->to);
  if (machine_cpu(view->machine)->model->ds->has_predicted)
    page_put_flag(page, "predicted", record->is_predicted);
  else
    page_put(page, "predicted", NULL);
  if (page->is_json || view->symbols) {
    symbol_put(view, page, "from_symbol", record->from);
    symbol_put(view, page, "to_symbol", record->to);
  }
  page_row_end(page);
}

/* The records of the buffer in the order in which they were written. A circular buffer that has wrapped has older ones
 * after the index. */
struct bts_order {
  uint64_t base, size; /* of a record */
  uint64_t first, count, capacity;
};

/* Without BTINT the buffer is circular (SDM 17.4.9.3): if it has wrapped, there is an older record at the index. */
static bool bts_has_gone_round(const struct machine_view *view, const struct lb_ds_area *ds,
                               const struct bts_order *order)
{
  struct lb_recorder *recorder = recorder_of(view);
  uint64_t debugctl = 0, interrupts = lb_cpu_debugctl(lb_recorder_cpu(recorder), LB_DEBUGCTL_BTINT);
  unsigned char bytes[24];
  struct lb_bts_record record;
  size_t size = cpu_peek(machine_cpu(view->machine), ds->bts_index, bytes, order->size);

  lb_recorder_rdmsr(recorder, lb_cpu_register(lb_recorder_cpu(recorder), LB_REG_DEBUGCTL).first, &debugctl);
  return order->count < order->capacity && !(debugctl & interrupts) &&
         lb_recorder_messages(recorder).stored > order->count && lb_bts_decode(ds->is_64, bytes, size, &record) >= 0 &&
         (record.from || record.to);
}

static struct bts_order bts_order(const struct machine_view *view, const struct lb_ds_area *ds)
{
  struct bts_order order = {.base = ds->bts_base, .size = ds->is_64 ? 24 : 12};

  if (ds->bts_index < ds->bts_base || ds->bts_maximum < ds->bts_index)
    return order;
  order.capacity = (ds->bts_maximum - ds->bts_base) / order.size;
  order.count = (ds->bts_index - ds->bts_base) / order.size;
  if (bts_has_gone_round(view, ds, &order)) {
    order.first = order.count;
    order.count = order.capacity;
  }
  return order;
}

static void bts_rows(const struct machine_view *view, struct page *page, const struct bts_order *order)
{
  uint64_t skip = order->count > RECORDS_MAX ? order->count - RECORDS_MAX : 0;

  for (uint64_t i = skip; i < order->count; i++) {
    uint64_t place = order->base + (order->first + i) % order->capacity * order->size;
    unsigned char bytes[24];
    struct lb_bts_record record;
    size_t size = cpu_peek(machine_cpu(view->machine), place, bytes, order->size);

    if (lb_bts_decode(order->size == 24, bytes, size, &record) < 0)
      break;
    bts_row(view, page, i, &record);
  }
}

void machine_page_bts(const struct machine_view *view, struct page *page)
{
  static const struct page_column plain[] = {{"record", 8}, {"from", 18}, {"to", 18}, {"predicted", 0}, {NULL, 0}};
  static const struct page_column named[] = {{"record", 8},       {"from", 18},     {"to", 18}, {"predicted", 10},
                                             {"from symbol", 28}, {"to symbol", 0}, {NULL, 0}};
  struct bts_order order;
  struct lb_ds_area ds;
  uint64_t address;

  page_title(page, "BTS buffer, oldest record first");
  if (!area_read(view, &address, &ds)) {
    area_absent(view, page, "bts");
    return;
  }
  order = bts_order(view, &ds);
  page_section(page, "bts", NULL);
  page_put_number(page, "count", order.count);
  page_put_number(page, "capacity", order.capacity);
  page_put_number(page, "lost", lb_recorder_messages(recorder_of(view)).lost);
  if (order.count > RECORDS_MAX)
    page_remark(page, "the newest %u of them:", RECORDS_MAX);
  page_table(page, "records", page->is_json || view->symbols ? named : plain);
  bts_rows(view, page, &order);
  page_table_end(page);
  if (page->is_json || !(view->dumps & DUMP_DS)) /* for people, once is enough */
    broken_rules(view, page);
  page_section_end(page);
}

/* ---- PEBS ---- */

static void pebs_row(struct page *page, uint64_t number, const struct lb_registers *registers, uint64_t status)
{
  page_row(page, false);
  page_put_number(page, "record", number);
  page_put_hex(page, "rip", registers->rip);
  page_put_hex(page, "eventing_ip", registers->eventing_ip);
  page_put_hex(page, "data_address", registers->data_address);
  page_put_hex(page, "rflags", registers->rflags);
  page_put_hex(page, "rax", registers->rax);
  page_put_hex(page, "status", status);
  page_row_end(page);
}

static void pebs_rows(const struct machine_view *view, struct page *page, const struct lb_ds_area *ds)
{
  unsigned format = machine_cpu(view->machine)->model->ds->pebs;
  uint64_t place = ds->pebs_base;

  if (format == LB_PEBS_P4 && ds->is_64)
    format = LB_PEBS_0; /* the Pentium 4 has the first 64-bit format in IA-32e mode (SDM 17.4.9.1) */
  for (uint64_t i = 0; place < ds->pebs_index && i < RECORDS_MAX; i++) {
    unsigned char bytes[PEBS_SIZE_MAX];
    uint64_t left = ds->pebs_index - place, status;
    struct lb_registers registers;
    size_t size = cpu_peek(machine_cpu(view->machine), place, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
    int r = lb_pebs_decode(format, bytes, size, &registers, &status);

    if (r <= 0)
      break;
    pebs_row(page, i, &registers, status);
    place += (uint64_t)r;
  }
}

void machine_page_pebs(const struct machine_view *view, struct page *page)
{
  static const struct page_column columns[] = {{"record", 8},  {"rip", 18}, {"eventing ip", 18}, {"data address", 18},
                                               {"rflags", 10}, {"rax", 18}, {"status", 0},       {NULL, 0}};
  struct lb_ds_area ds;
  uint64_t address;

  page_title(page, "PEBS buffer, oldest record first");
  if (!area_read(view, &address, &ds)) {
    area_absent(view, page, "pebs");
    return;
  }
  page_table(page, "pebs", columns);
  if (machine_cpu(view->machine)->model->ds->pebs != LB_PEBS_NONE)
    pebs_rows(view, page, &ds);
  page_table_end(page);
}
