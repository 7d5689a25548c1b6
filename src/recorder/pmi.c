/* SPDX-License-Identifier: Apache-2.0
 *
 * The performance-monitoring interrupt and the state that it freezes. Requests come from counters, the PEBS and BTS
 * buffers and the uncore. Intel SDM vol. 3 (June 2016) 17.4.7, 18.2.4.1, 10.5.1; Deng Zhi, chapter 14. Frozen state is
 * not restored automatically: software sets the bits again (legacy), or clears the freeze bits through GLOBAL_OVF_CTRL
 * (streamlined, version 4 and later).
 */
#include "recorder/unit.h"

static bool is_streamlined(const struct lb_recorder *r)
{
  return r->cpu->pmu->version >= 4 || r->cpu->pmu->kind == LB_PMU_AMD_V2;
}

static bool freeze_works(const struct lb_recorder *r, unsigned causes)
{
  if (lb_cpu_quirk(r->cpu, LB_QUIRK_ATOM_FREEZE_BROKEN))
    return false;
  return !(lb_cpu_quirk(r->cpu, LB_QUIRK_AJ106) && causes == PMI_PEBS);
}

static void freeze_lbrs(struct lb_recorder *r)
{
  if (is_streamlined(r)) {
    r->pmu.status |= STATUS_LBR_FRZ;
    return;
  }
  r->debugctl &= ~lb_cpu_debugctl(r->cpu, LB_DEBUGCTL_LBR);
  if (lb_cpu_quirk(r->cpu, LB_QUIRK_ATOM_FREEZE_CLEARS_TR)) /* SDM 17.5 */
    r->debugctl &= ~lb_cpu_debugctl(r->cpu, LB_DEBUGCTL_TR);
}

static void freeze_counters(struct lb_recorder *r)
{
  if (is_streamlined(r))
    r->pmu.status |= STATUS_CTR_FRZ;
  else
    r->pmu.ctrl = 0;
}

static void freeze(struct lb_recorder *r, unsigned causes)
{
  if (causes == PMI_UNCORE) /* not among the triggers of SDM 17.4.7 */
    return;
  if (unit_debugctl(r, LB_DEBUGCTL_FREEZE_LBRS_ON_PMI) && freeze_works(r, causes))
    freeze_lbrs(r);
  if (unit_debugctl(r, LB_DEBUGCTL_FREEZE_PERFMON_ON_PMI))
    freeze_counters(r);
  unit_update(r);
}

/* OvfDSBuffer. AJ69: shown only while FREEZE_PERFMON_ON_PMI is 1. */
void pmi_buffer_overflow(struct lb_recorder *r)
{
  bool shown = !lb_cpu_quirk(r->cpu, LB_QUIRK_AJ69) || unit_debugctl(r, LB_DEBUGCTL_FREEZE_PERFMON_ON_PMI);

  if (pmu_has_status(r) && shown)
    r->pmu.status |= STATUS_OVF_BUFFER;
}

void pmi_request(struct lb_recorder *r, unsigned causes)
{
  if (r->pmu.is_held) {
    r->pmu.wanted |= (uint8_t)causes;
    return;
  }
  freeze(r, causes);
  if (r->pmu.is_pending)
    return;
  r->pmu.is_pending = true;
  if (r->host.pmi)
    r->host.pmi(r->host.data);
}

void lb_recorder_pmi_delivered(struct lb_recorder *r)
{
  r->pmu.is_pending = false;
}

void lb_recorder_hold_pmi(struct lb_recorder *r)
{
  r->pmu.is_held = true;
}

void lb_recorder_release_pmi(struct lb_recorder *r)
{
  unsigned causes = r->pmu.wanted;

  r->pmu.is_held = false;
  r->pmu.wanted = 0;
  if (causes)
    pmi_request(r, causes);
}

bool lb_recorder_uncore_pmi(struct lb_recorder *r)
{
  if (!unit_debugctl(r, LB_DEBUGCTL_UNCORE_PMI_EN))
    return false;
  r->pmu.status |= STATUS_OVF_UNCORE;
  pmi_request(r, PMI_UNCORE);
  return true;
}
