/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr cpu NAME`: a row of the catalogue in full. This file knows nothing about any CPU; all data comes
 * from lastbranch/cpudb.h.
 */
#include <stdio.h>
#include <string.h>

#include "lastbranch/recorder.h"
#include "report/cpu_page.h"

/* The least certain basis of a CPU's models; LB_BASIS_NONE for a CPU that is not silicon. */
static unsigned models_basis(const struct lb_cpu *cpu)
{
  const struct lb_model *model;
  unsigned basis = LB_BASIS_NONE;

  for (size_t i = 0; (model = lb_model_at(i)); i++)
    if (model->cpu == cpu && model->basis > basis)
      basis = model->basis;
  return basis;
}

static void put_identity(struct page *page, const struct lb_cpu *cpu)
{
  page_put(page, "name", cpu->name);
  page_put(page, "title", cpu->title);
  page_put(page, "vendor", lb_vendor_name(cpu->vendor));
  cpu_page_aliases(page, cpu);
  cpu_page_models(page, cpu);
  page_put(page, "models_basis", lb_basis_name(models_basis(cpu)));
  cpu_page_basis(page, cpu->basis, cpu->evidence);
}

/* The keys of features that a CPU lacks. */
static void put_absent(struct page *page, const char *const *keys)
{
  for (; *keys; keys++)
    page_absent(page, *keys);
}

static const char *write_rule_text(unsigned rule)
{
  switch (rule) {
  case LB_WRITE_NEVER:
    return "read-only: a write gives #GP";
  case LB_WRITE_FREE:
    return "writable, every bit is kept";
  case LB_WRITE_CANONICAL:
    return "writable; #GP unless the address is canonical";
  case LB_WRITE_FORCED:
    return "writable; the address is made canonical";
  }
  return NULL;
}

static unsigned tos_width(const struct lb_cpu *cpu)
{
  unsigned width = 0;

  while (1u << width < lb_cpu_depth(cpu))
    width++;
  return width;
}

static void put_tos(struct page *page, const struct lb_cpu *cpu)
{
  const struct lb_lbr_class *lbr = cpu->lbr;

  cpu_page_msr(page, "tos", lbr->tos);
  if (!lbr->tos) {
    page_absent(page, "tos_bits");
    page_absent(page, "tos_write");
    return;
  }
  cpu_page_bits(page, "tos_bits", tos_width(cpu) - 1, 0);
  if (!lbr->tos_is_writable)
    page_put(page, "tos_write", "read-only: a write gives #GP");
  else
    page_putf(page, "tos_write", "writable; higher bits %s", lbr->tos_excess_faults ? "give #GP" : "are ignored");
}

static const char *newest_text(const struct lb_cpu *cpu)
{
  if (lb_cpu_depth(cpu) == 1)
    return "the only record";
  if (cpu->lbr->is_newest_first)
    return "entry 0";
  return cpu->lbr->tos ? "the entry that TOS names" : "the entry before the write offset of DBG_EXTN_CFG";
}

static void put_stack(struct page *page, const struct lb_cpu *cpu)
{
  const struct lb_lbr_class *lbr = cpu->lbr;

  page_put(page, "newest_record", newest_text(cpu));
  cpu_page_register_range(page, "combined", lb_cpu_register(cpu, LB_REG_LBR));
  cpu_page_register_range(page, "from", lb_cpu_register(cpu, LB_REG_LBR_FROM));
  cpu_page_register_range(page, "to", lb_cpu_register(cpu, LB_REG_LBR_TO));
  cpu_page_register_range(page, "info", lb_cpu_register(cpu, LB_REG_LBR_INFO));
  page_put(page, "record_write", write_rule_text(lbr->write_rule));
  put_tos(page, cpu);
  cpu_page_msr(page, "copy_from", lbr->mirror_from);
  cpu_page_msr(page, "copy_to", lbr->mirror_to);
  cpu_page_basis(page, lbr->basis, lbr->evidence);
}

static void put_lbr(struct page *page, const struct lb_cpu *cpu)
{
  static const char *const absent[] = {"newest_record", "combined", "from",     "to",        "info",
                                       "record_write",  "tos",      "tos_bits", "tos_write", "copy_from",
                                       "copy_to",       "basis",    "evidence", NULL};

  page_section(page, "lbr", "LBR stack");
  page_put_number(page, "entries", lb_cpu_depth(cpu));
  page_put(page, "class", cpu->lbr ? cpu->lbr->name : NULL);
  if (cpu->lbr)
    put_stack(page, cpu);
  else
    put_absent(page, absent);
  page_section_end(page);
}

static void put_format(struct page *page, const struct lb_cpu *cpu)
{
  page_section(page, "format", "Record format");
  cpu_page_lbr_fmt(page, cpu);
  page_put(page, "layout", cpu->lbr ? lb_format_text(cpu->format) : NULL);
  page_section_end(page);
}

static void put_filter(struct page *page, const struct lb_cpu *cpu)
{
  const struct lb_lbr_class *lbr = cpu->lbr;

  if (lbr && lbr->select) {
    page_section(page, "select", "LBR_SELECT");
    page_put_hex(page, "address", lbr->select);
    page_put_hex(page, "kept", lbr->select_mask);
    page_put_hex(page, "ignored", lbr->select_ignored);
    page_put_hex(page, "faults", ~(uint64_t)(lbr->select_mask | lbr->select_ignored));
    cpu_page_fields(page, cpu, LB_REG_LBR_SELECT, NULL);
    page_section_end(page);
  } else {
    page_absent(page, "select");
  }
  if (lb_cpu_register(cpu, LB_REG_LBR_CTL).count) {
    page_section(page, "lbr_ctl", "LBR_CTL");
    page_put_hex(page, "address", lb_cpu_register(cpu, LB_REG_LBR_CTL).first);
    cpu_page_fields(page, cpu, LB_REG_LBR_CTL, NULL);
    page_section_end(page);
  } else {
    page_absent(page, "lbr_ctl");
  }
}

static const char *debugctl_write_word(const struct lb_debugctl *debugctl, unsigned bit)
{
  if (debugctl->faults >> bit & 1)
    return "#GP";
  return debugctl->kept >> bit & 1 ? "kept" : "ignored";
}

/* The DEBUGCTL bit at this place, LB_DEBUGCTL_BITS if it has no name. */
static unsigned debugctl_bit_at(const struct lb_debugctl *debugctl, unsigned place)
{
  unsigned bit = 0;

  while (bit < LB_DEBUGCTL_BITS && debugctl->bit[bit] != place)
    bit++;
  return bit;
}

/* Each named bit has a row. Runs of other bits that a write treats alike share one. */
static void put_debugctl(struct page *page, const struct lb_cpu *cpu)
{
  static const struct page_column columns[] = {{"bits", 6}, {"name", 22}, {"write", 8}, {"meaning", 0}, {NULL, 0}};
  const struct lb_debugctl *debugctl = cpu->debugctl;
  unsigned high;

  page_section(page, "debugctl", "DEBUGCTL");
  page_put(page, "layout", debugctl->name);
  page_put_hex(page, "kept", debugctl->kept);
  page_put_hex(page, "faults", debugctl->faults);
  cpu_page_basis(page, debugctl->basis, debugctl->evidence);
  page_table(page, "fields", columns);
  for (unsigned low = 0; low < 64; low = high + 1) {
    unsigned bit = debugctl_bit_at(debugctl, low);
    const char *word = debugctl_write_word(debugctl, low);

    high = low;
    while (bit == LB_DEBUGCTL_BITS && high < 63 && debugctl_bit_at(debugctl, high + 1) == LB_DEBUGCTL_BITS &&
           debugctl_write_word(debugctl, high + 1) == word)
      high++;
    page_row(page, false);
    cpu_page_bits(page, "bits", high, low);
    page_put(page, "name", bit == LB_DEBUGCTL_BITS ? NULL : lb_debugctl_bit_name(bit));
    page_put(page, "write", word);
    page_put(page, "meaning", bit == LB_DEBUGCTL_BITS ? "reserved" : lb_debugctl_bit_text(bit));
    page_row_end(page);
  }
  page_table_end(page);
  page_section_end(page);
}

static void put_ler(struct page *page, const struct lb_cpu *cpu)
{
  const struct lb_lbr_class *lbr = cpu->lbr;

  if (!lbr || !lbr->ler_from) {
    page_absent(page, "ler");
    return;
  }
  page_section(page, "ler", "Last exception record");
  page_put_hex(page, "from", lbr->ler_from);
  page_put_hex(page, "to", lbr->ler_to);
  cpu_page_msr(page, "info", lbr->ler_info);
  page_put_flag(page, "writable", lbr->ler_is_writable);
  page_section_end(page);
}

static void put_ds(struct page *page, const struct lb_cpu *cpu)
{
  static const char *const absent[] = {"layout", "cpl_filter", "predicted_flag", "ds_area_write", NULL};
  const struct lb_ds *ds = cpu->ds;

  page_section(page, "ds", "BTS and the DS area");
  page_put_flag(page, "bts", ds->has_bts);
  if (!ds->has_bts) {
    put_absent(page, absent);
  } else {
    page_put(page, "layout", ds->is_64 ? "64-bit in every mode" : "64-bit in IA-32e mode, otherwise 32-bit");
    page_put_flag(page, "cpl_filter", ds->has_cpl);
    page_put_flag(page, "predicted_flag", ds->has_predicted);
    page_put(page, "ds_area_write", ds->area_is_32 ? "bits 63:32 are ignored" : "#GP unless canonical");
  }
  cpu_page_basis(page, ds->basis, ds->evidence);
  page_section_end(page);

  page_section(page, "pebs", "PEBS");
  page_put(page, "records", ds->pebs == LB_PEBS_NONE ? NULL : lb_pebs_text(ds->pebs));
  page_put_number(page, "record_size", ds->pebs == LB_PEBS_NONE ? 0 : lb_pebs_size(ds->pebs));
  page_put_number(page, "counters", cpu->pmu->pebs_counters);
  page_section_end(page);
}

static void put_perf_capabilities(struct page *page, const struct lb_cpu *cpu)
{
  uint64_t value = cpu->perf_capabilities;

  if (!lb_cpu_has(cpu, LB_FEATURE_PDCM)) {
    page_absent(page, "perf_capabilities");
    return;
  }
  page_section(page, "perf_capabilities", "PERF_CAPABILITIES");
  page_put_hex(page, "value", value);
  cpu_page_fields(page, cpu, LB_REG_PERF_CAPABILITIES, &value);
  page_section_end(page);
}

static void put_features(struct page *page, const struct lb_cpu *cpu)
{
  static const struct page_column features[] = {{"feature", 24}, {"meaning", 0}, {NULL, 0}};
  static const struct page_column quirks[] = {{"quirk", 24}, {"erratum", 20}, {"modelled", 9},
                                              {"basis", 11}, {"what", 0},     {NULL, 0}};

  page_section(page, "peculiarities", "Features, quirks and errata");
  page_table(page, "features", features);
  for (unsigned i = 0; i < LB_FEATURES; i++)
    if (lb_cpu_has(cpu, (enum lb_feature)i)) {
      page_row(page, false);
      page_put(page, "name", lb_feature_name(i));
      page_put(page, "meaning", lb_feature_text(i));
      page_row_end(page);
    }
  page_table_end(page);
  page_table(page, "quirks", quirks);
  for (unsigned i = 0; i < LB_QUIRKS; i++)
    if (lb_cpu_quirk(cpu, (enum lb_quirk)i)) {
      page_row(page, false);
      page_put(page, "name", lb_quirk_name(i));
      page_put(page, "erratum", lb_quirk_id(i));
      page_put_flag(page, "modelled", lb_quirk_is_modelled(i));
      page_put(page, "basis", lb_basis_name(lb_quirk_basis(i)));
      page_put(page, "what", lb_quirk_text(i));
      page_put_note(page, "evidence", lb_quirk_evidence(i));
      page_row_end(page);
    }
  page_table_end(page);
  page_section_end(page);
}

static void put_cpuid(struct page *page, const struct lb_cpu *cpu)
{
  static const uint32_t leaves[][2] = {{0x1, 0},  {0x7, 0},  {0x7, 1},  {0xA, 0},        {0x1C, 0},
                                       {0x23, 0}, {0x23, 1}, {0x23, 3}, {0x80000008, 0}, {0x80000022, 0}};
  static const char *const registers[] = {"eax", "ebx", "ecx", "edx"};
  static const struct page_column columns[] = {{"leaf", 12},  {"subleaf", 7}, {"register", 9},
                                               {"value", 12}, {"mask", 0},    {NULL, 0}};

  page_section(page, "cpuid", "CPUID leaves of the recording hardware");
  page_table(page, "registers", columns);
  for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
    struct lb_cpuid cpuid = lb_cpu_cpuid(cpu, leaves[i][0], leaves[i][1]);

    for (unsigned j = 0; j < 4; j++) /* zeros are left out of the text */
      if (cpuid.value[j] || (cpuid.mask[j] && page->is_json)) {
        page_row(page, false);
        page_put_hex(page, "leaf", leaves[i][0]);
        page_put_number(page, "subleaf", leaves[i][1]);
        page_put(page, "register", registers[j]);
        page_put_hex(page, "value", cpuid.value[j]);
        page_put_hex(page, "mask", cpuid.mask[j]);
        page_row_end(page);
      }
  }
  page_table_end(page);
  page_section_end(page);
}

/* One column more than the text, because two blanks separate columns. */
static int widest(int width, const char *text)
{
  return (int)strlen(text) >= width ? (int)strlen(text) + 1 : width;
}

/* Measures the columns, whose widths differ much between CPUs. */
static void registers_measure(const struct lb_cpu *cpu, struct page_column *address, struct page_column *name)
{
  char text[64];

  for (unsigned id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(cpu, (enum lb_register)id);

    if (!range.count)
      continue;
    cpu_page_range_text(range, text, sizeof(text));
    address->width = widest(address->width, text);
    lb_cpu_register_name(cpu, (enum lb_register)id, 0, text, sizeof(text));
    name->width = widest(name->width, text);
  }
}

static void put_registers(struct page *page, const struct lb_cpu *cpu)
{
  struct page_column columns[] = {{"address", 0}, {"name", 0}, {"what it is for", 0}, {NULL, 0}};
  char first[64];

  registers_measure(cpu, &columns[0], &columns[1]);
  page_section(page, "registers", "Registers");
  page_table(page, "list", columns);
  for (unsigned id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(cpu, (enum lb_register)id);

    if (!range.count)
      continue;
    lb_cpu_register_name(cpu, (enum lb_register)id, 0, first, sizeof(first));
    page_row(page, false);
    cpu_page_register_range(page, "address", range);
    page_put(page, "name", first);
    page_put(page, "meaning", lb_register_text((enum lb_register)id));
    page_row_end(page);
  }
  page_table_end(page);
  page_section_end(page);
}

/* Points on which sources differ: the defaults of the model, which `lbr machine --option` changes. */
static void put_options(struct page *page)
{
  static const struct page_column columns[] = {{"option", 22}, {"basis", 11}, {"what it does when on", 0}, {NULL, 0}};

  page_section(page, "options", "Options, and how well their defaults are known");
  page_table(page, "list", columns);
  for (unsigned i = 0; lb_option_name(i); i++) {
    page_row(page, false);
    page_put(page, "name", lb_option_name(i));
    page_put(page, "basis", lb_basis_name(lb_option_basis(i)));
    page_put(page, "what", lb_option_text(i));
    page_row_end(page);
  }
  page_table_end(page);
  page_section_end(page);
}

void cpu_page_profile(struct page *page, const struct lb_cpu *cpu)
{
  page_title(page, cpu->title);
  put_identity(page, cpu);
  put_lbr(page, cpu);
  put_format(page, cpu);
  put_filter(page, cpu);
  put_debugctl(page, cpu);
  put_ler(page, cpu);
  put_ds(page, cpu);
  cpu_page_counters(page, cpu);
  put_perf_capabilities(page, cpu);
  put_features(page, cpu);
  put_cpuid(page, cpu);
  put_registers(page, cpu);
  put_options(page);
}
