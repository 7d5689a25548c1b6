/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints, at build time, the table by which a lab's guest finds its own CPU: what CPUID says of each model of the
 * catalogue, and where its recording unit has what. The shape is `struct model` of lib/lab.inc.
 */
#include <stdio.h>

#include "lastbranch/cpudb.h"

static const uint32_t vendor_words[LB_VENDORS] = {
  [LB_VENDOR_INTEL] = 0x756E6547,   /* Genu */
  [LB_VENDOR_AMD] = 0x68747541,     /* Auth */
  [LB_VENDOR_HYGON] = 0x6F677948,   /* Hygo */
  [LB_VENDOR_CENTAUR] = 0x746E6543, /* Cent */
  [LB_VENDOR_ZHAOXIN] = 0x68532020, /* "  Sh" */
};

/* A bit that does not work is one that the CPU lacks. */
static bool has_bit(const struct lb_cpu *cpu, enum lb_debugctl_bit bit)
{
  return bit != LB_DEBUGCTL_FREEZE_LBRS_ON_PMI || !lb_cpu_quirk(cpu, LB_QUIRK_ATOM_FREEZE_BROKEN);
}

static void print_debugctl(const struct lb_cpu *cpu)
{
  static const enum lb_debugctl_bit bits[] = {
    LB_DEBUGCTL_LBR,
    LB_DEBUGCTL_BTF,
    LB_DEBUGCTL_TR,
    LB_DEBUGCTL_BTS,
    LB_DEBUGCTL_BTINT,
    LB_DEBUGCTL_BTS_OFF_OS,
    LB_DEBUGCTL_BTS_OFF_USR,
    LB_DEBUGCTL_FREEZE_LBRS_ON_PMI,
    LB_DEBUGCTL_FREEZE_PERFMON_ON_PMI,
    LB_DEBUGCTL_FREEZE_WHILE_SMM_EN,
  };
  for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
    printf(", 0x%x", has_bit(cpu, bits[i]) ? (unsigned)lb_cpu_debugctl(cpu, bits[i]) : 0);
}

static void print_model(const struct lb_model *model)
{
  const struct lb_cpu *cpu = model->cpu;
  static const struct lb_lbr_class none;
  const struct lb_lbr_class *lbr = cpu->lbr ? cpu->lbr : &none;
  printf("  .long 0x%x, 0x%x, 0x%x, 0x%x, 0x%x, 0x%x", vendor_words[model->vendor], model->family, model->first_model,
         model->last_model, model->first_stepping, model->last_stepping);
  printf(", %u, %u, 0x%x, 0x%x, 0x%x, 0x%x", lb_cpu_depth(cpu), lbr->stride, lbr->from, lbr->to, lbr->info, lbr->tos);
  printf(", 0x%x, 0x%x, 0x%x, 0x%x", lbr->select, lbr->select_mask, lbr->ler_from, lbr->ler_to);
  printf(", %u, %u, %u", cpu->format, lbr->is_combined, lbr->is_newest_first);
  print_debugctl(cpu);
  printf(", %u, %u, %u, %u", cpu->ds->has_bts, cpu->ds->is_64, cpu->ds->has_cpl, cpu->ds->pebs);
  printf(", %u, %u, %u, %u", cpu->pmu->kind, cpu->pmu->version, cpu->pmu->counters, cpu->pmu->width);
  printf(", %u\n", lb_cpu_quirk(cpu, LB_QUIRK_NHM_SELECT));
}

int main(void)
{
  const struct lb_model *model;
  puts("models:");
  for (size_t i = 0; (model = lb_model_at(i)); i++)
    print_model(model);
  puts("models_end:");
  return 0;
}
