/* SPDX-License-Identifier: Apache-2.0
 *
 * Reset, INIT, SMM, virtual-machine transitions, deep sleep and Intel PT: which state they stop, keep and restore.
 * Intel SDM vol. 3 (June 2016) tables 9-1, 9-2, 17.4.1, 17.4.9, 17.10.3, 18.18.1, 26.5, 27.5, 36.3.1.2; Deng Zhi,
 * chapter 14.
 */
#include <string.h>

#include "recorder/unit.h"

static uint64_t debugctl_bits(const struct lb_recorder *r, const enum lb_debugctl_bit *bits, size_t count)
{
  uint64_t mask = 0;

  for (size_t i = 0; i < count; i++)
    mask |= lb_cpu_debugctl(r->cpu, bits[i]);
  return mask;
}

/* Clears everything that both resets clear: all state except the records. */
static void reset_control(struct lb_recorder *r)
{
  r->debugctl = 0;
  r->lbr.select = 0;
  r->lbr.extn = lb_cpu_has(r->cpu, LB_FEATURE_BRS) ? EXTN_MUST_BE_SET : 0;
  r->lbr.is_capturing = r->lbr.is_holding = false;
  r->ds.area = 0;
  r->ds.pebs_enable = r->ds.data_cfg = r->ds.matrix = r->ds.load_latency = 0;
  memset(r->ds.reload, 0, sizeof(r->ds.reload));
  memset(r->ds.reload_fixed, 0, sizeof(r->ds.reload_fixed));
  r->ds.due = 0;
  r->ds.is_stopped = false;
  r->smm.is_inside = false;
  r->is_pt_on = false;
  r->is_long_mode = false;
  lb_recorder_flush(r);
  lbr_share_select(r);
  pmu_reset(r);
  r->misc_enable = r->cpu->pmu->kind != LB_PMU_NONE ? MISC_ENABLE_PERFMON : 0;
  if (!r->cpu->ds->has_bts || unit_option(r, LB_OPTION_BTS_UNAVAILABLE))
    r->misc_enable |= MISC_ENABLE_BTS_UNAVAILABLE;
  if (r->cpu->ds->pebs == LB_PEBS_NONE || unit_option(r, LB_OPTION_PEBS_UNAVAILABLE))
    r->misc_enable |= MISC_ENABLE_PEBS_UNAVAILABLE;
}

static void clear_records(struct lb_recorder *r)
{
  lbr_clear(r);
  memset(&r->lbr.last, 0, sizeof(r->lbr.last));
  memset(&r->lbr.ler, 0, sizeof(r->lbr.ler));
  memset(&r->lbr.executed, 0, sizeof(r->lbr.executed));
}

void lb_recorder_reset_cold(struct lb_recorder *r)
{
  reset_control(r);
  r->depth = lb_cpu_depth(r->cpu);
  r->lbr.ctl = 0;
  clear_records(r);
  unit_update(r);
}

/* SDM table 9-2: the LBR stack survives on 06_1A, 06_1C and models above 06_1D; architectural LBR loses only LBREn. */
void lb_recorder_reset_warm(struct lb_recorder *r)
{
  reset_control(r);
  r->lbr.ctl &= ~LBR_CTL_LBREN;
  if (!lb_cpu_has(r->cpu, LB_FEATURE_WARM_RESET_KEEPS))
    clear_records(r);
  unit_update(r);
}

/* INIT leaves the LBR stack alone and clears the DS mechanism. Only architectural LBR records it. */
void lb_recorder_init_signal(struct lb_recorder *r, const struct lb_branch *transfer)
{
  static const enum lb_debugctl_bit ds_bits[] = {LB_DEBUGCTL_TR, LB_DEBUGCTL_BTS, LB_DEBUGCTL_BTINT};
  struct lb_branch branch = *transfer;

  branch.kind = LB_BRANCH_INIT;
  if (unit_is_arch(r) && (r->armed & ARMED_LBR))
    lbr_take(r, &branch);
  if (unit_option(r, LB_OPTION_INIT_CLEARS_DEBUGCTL))
    r->debugctl = 0;
  else
    r->debugctl &= ~debugctl_bits(r, ds_bits, sizeof(ds_bits) / sizeof(ds_bits[0]));
  r->ds.pebs_enable = 0;
  r->ds.due = 0;
  r->pmu.is_pending = false; /* INIT resets the local APIC, and the request with it */
  r->smm.is_inside = false;
  unit_update(r);
}

/* ---- SMM ---- */

/* AMD: SMI and RSM are among the control transfers that are recorded, the SMI as an interrupt. APM vol. 2, 13.1.6. BTF
 * does not step on either: SMM begins without TF. */
static void amd_record(struct lb_recorder *r, const struct lb_branch *transfer, unsigned kind)
{
  struct lb_branch branch = *transfer;

  branch.kind = (uint8_t)kind;
  if (kind == LB_BRANCH_INTERRUPT && (r->armed & (unit_has_pair(r) ? ARMED_PAIR : ARMED_LBR)))
    lbr_ler_update(r);
  branch.flags &= (uint8_t)~LB_BRANCH_TF;
  lb_recorder_record(r, &branch);
}

/* FREEZE_WHILE_SMM_EN: everything stops, and RSM restores it. DS recording and architectural LBR stop in SMM in any
 * case. Intel does not record the SMI itself. */
void lb_recorder_smi(struct lb_recorder *r, const struct lb_branch *entry)
{
  static const enum lb_debugctl_bit stopped[] = {LB_DEBUGCTL_LBR, LB_DEBUGCTL_BTF, LB_DEBUGCTL_TR, LB_DEBUGCTL_BTS};

  if (r->smm.is_inside)
    return;
  if (unit_is_amd(r))
    amd_record(r, entry, LB_BRANCH_INTERRUPT);
  r->smm.is_inside = true;
  r->smm.debugctl = r->debugctl;
  r->smm.ctrl = r->pmu.ctrl;
  r->smm.ctl = r->lbr.ctl;
  r->lbr.ctl &= ~LBR_CTL_LBREN;
  if (unit_debugctl(r, LB_DEBUGCTL_FREEZE_WHILE_SMM_EN)) {
    r->debugctl &= ~debugctl_bits(r, stopped, sizeof(stopped) / sizeof(stopped[0]));
    r->pmu.ctrl = 0;
  }
  unit_update(r);
}

/* In architectural LBR, both addresses of the record are the address where the program continues. */
static void rsm_record(struct lb_recorder *r, const struct lb_branch *resumed)
{
  struct lb_branch branch = *resumed;

  branch.kind = LB_BRANCH_RSM;
  branch.from = branch.to;
  branch.from_base = branch.to_base;
  branch.from_cpl = branch.to_cpl;
  branch.flags =
    (uint8_t)(branch.flags & ~LB_BRANCH_FROM_32) | (branch.flags & LB_BRANCH_TO_32 ? LB_BRANCH_FROM_32 : 0);
  lbr_take(r, &branch);
}

void lb_recorder_rsm(struct lb_recorder *r, const struct lb_branch *resumed)
{
  if (!r->smm.is_inside)
    return;
  bool was_frozen = r->smm.debugctl & lb_cpu_debugctl(r->cpu, LB_DEBUGCTL_FREEZE_WHILE_SMM_EN);
  r->smm.is_inside = false;
  r->lbr.ctl = (r->lbr.ctl & ~LBR_CTL_LBREN) | (r->smm.ctl & LBR_CTL_LBREN);
  if (was_frozen) {
    r->debugctl = r->smm.debugctl;
    r->pmu.ctrl = unit_option(r, LB_OPTION_RSM_SETS_ENABLES) ? pmu_enables(r) : r->smm.ctrl;
  }
  unit_update(r);
  if (unit_is_arch(r) && (r->armed & ARMED_LBR) && !was_frozen)
    rsm_record(r, resumed);
  if (unit_is_amd(r))
    amd_record(r, resumed, LB_BRANCH_RSM);
}

/* ---- virtual machines ---- */

void lb_recorder_vm_exit(struct lb_recorder *r)
{
  r->debugctl = 0; /* SDM 27.5.1 */
  unit_update(r);
}

enum lb_msr_answer lb_recorder_vm_entry(struct lb_recorder *r, uint64_t debugctl)
{
  return lb_recorder_wrmsr(r, 0x1D9, debugctl);
}

/* ---- power, and Intel PT ---- */

static bool sleep_clears(const struct lb_recorder *r)
{
  return lb_cpu_has(r->cpu, LB_FEATURE_DEEP_C_CLEARS) || lb_cpu_quirk(r->cpu, LB_QUIRK_DEEP_C6_CLEARS) ||
         (r->cpu->leaf_1c[0] >> 30 & 1);
}

void lb_recorder_deep_sleep(struct lb_recorder *r)
{
  if (!sleep_clears(r))
    return;
  clear_records(r);
  r->lbr.cycles_valid = false; /* SDM 17.10.3: the first record afterwards shows 0 cycles */
  unit_update(r);
}

void lb_recorder_pt_trace(struct lb_recorder *r, bool is_on)
{
  if (!lb_cpu_quirk(r->cpu, LB_QUIRK_PT_EXCLUDES_LBR) || r->is_pt_on == is_on)
    return;
  r->is_pt_on = is_on;
  if (!is_on)
    clear_records(r);
  unit_update(r);
}
