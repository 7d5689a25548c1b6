/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMSR and WRMSR of the DS area, PEBS and the counters: the registers whose rules are in the chapters on performance
 * monitoring; msr.c has the others. Intel SDM vol. 3 (June 2016) chapters 18 and 35; Linux msr-index.h for AMD.
 */
#include "recorder/unit.h"

/* ---- RDMSR ---- */

uint64_t msr_read_pmu(const struct lb_recorder *r, unsigned id, unsigned number)
{
  switch (id) {
  case LB_REG_PMC:
  case LB_REG_A_PMC:
  case LB_REG_GP_CTR:
  case LB_REG_P4_COUNTER:
  case LB_REG_K7_PERFCTR:
  case LB_REG_AMD_PERF_CTR:
    return r->pmu.counter[number];
  case LB_REG_PERFEVTSEL:
  case LB_REG_GP_CFG_A:
  case LB_REG_P4_CCCR:
  case LB_REG_K7_EVNTSEL:
  case LB_REG_AMD_PERF_CTL:
    return r->pmu.select[number];
  case LB_REG_FIXED_CTR:
  case LB_REG_FX_CTR:
    return r->pmu.fixed[number];
  case LB_REG_PERF_METRICS:
    return metrics_get(r);
  case LB_REG_FIXED_CTR_CTRL:
    return r->pmu.fixed_ctrl;
  case LB_REG_GLOBAL_STATUS:
  case LB_REG_AMD_GLOBAL_STATUS:
    return r->pmu.status;
  case LB_REG_GLOBAL_CTRL:
  case LB_REG_AMD_GLOBAL_CTL:
    return r->pmu.ctrl;
  case LB_REG_GLOBAL_INUSE:
    return pmu_in_use(r);
  case LB_REG_P4_FSB_ESCR:
    return r->pmu.escr[number];
  case LB_REG_P4_CRU_ESCR:
    return r->pmu.escr[2 + number];
  case LB_REG_P4_CRU_ESCR2:
    return r->pmu.escr[4 + number];
  default: /* GLOBAL_OVF_CTRL, GLOBAL_STATUS_SET, AMD's clear, VIA's NO_RECORD: read 0 */
    return 0;
  }
}

static bool keep(uint64_t *place, uint64_t value, uint64_t bits)
{
  *place = value & bits;
  return true;
}

/* ---- WRMSR: the DS area ---- */

static bool write_ds_area(struct lb_recorder *r, uint64_t value)
{
  if (r->cpu->ds->area_is_32)
    value &= UINT32_MAX;
  if (format_canonical(value) != value)
    return false;
  r->ds.area = value;
  lb_recorder_flush(r);
  return true;
}

/* Bits 7, 11 and 12 are read-only; all other bits are kept for the host. */
static bool write_misc_enable(struct lb_recorder *r, uint64_t value)
{
  uint64_t ours = MISC_ENABLE_PERFMON | MISC_ENABLE_BTS_UNAVAILABLE | MISC_ENABLE_PEBS_UNAVAILABLE;

  r->misc_enable = (value & ~ours) | (r->misc_enable & ours);
  return true;
}

/* Format 6 has a group of counters: bits 4 and 5 enable it, and 47:32 and 55:48 choose the counters. */
static bool write_data_cfg(struct lb_recorder *r, uint64_t value)
{
  bool has_counters = r->cpu->ds->pebs == LB_PEBS_6;

  return msr_write_masked(&r->ds.data_cfg, value,
                          has_counters ? UINT64_C(0xFFFFFFFF00003F) | UINT64_C(0xFF000000) : UINT64_C(0xFF00000F));
}

/* A reload value is as wide as its counter; the effect of a write with more bits was not measured. */
static bool write_reload(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  if (id == LB_REG_RELOAD_PMC)
    r->ds.reload[number] = value & unit_mask(r->cpu->pmu->width);
  else
    r->ds.reload_fixed[number] = value & unit_mask(r->cpu->pmu->fixed_width);
  return true;
}

static bool write_pebs_enable(struct lb_recorder *r, uint64_t value)
{
  uint64_t allowed = r->misc_enable & MISC_ENABLE_PEBS_UNAVAILABLE ? 0 : r->cpu->pmu->pebs_enable;

  if (r->cpu->pmu->pebs_is_lax)
    value &= allowed;
  if (!msr_write_masked(&r->ds.pebs_enable, value, allowed))
    return false;
  if (r->cpu->pmu->kind != LB_PMU_P4) /* on the P4 these bits are not counters */
    r->ds.due &= value;
  r->ds.is_stopped = false;
  return true;
}

bool msr_write_ds(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  switch (id) {
  case LB_REG_MISC_ENABLE:
    return write_misc_enable(r, value);
  case LB_REG_DS_AREA:
    return write_ds_area(r, value);
  case LB_REG_PEBS_ENABLE:
    return write_pebs_enable(r, value);
  case LB_REG_PEBS_DATA_CFG:
    return write_data_cfg(r, value);
  case LB_REG_PEBS_LD_LAT:
    return keep(&r->ds.load_latency, value, 0xFFFF);
  case LB_REG_P4_PEBS_MATRIX:
    return keep(&r->ds.matrix, value, 0x1FFF);
  default:
    return write_reload(r, id, number, value);
  }
}

/* ---- WRMSR: counters ---- */

static bool write_counter(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  uint64_t mask = unit_mask(r->cpu->pmu->width);

  if ((id == LB_REG_A_PMC || id == LB_REG_GP_CTR) && value & ~mask)
    return false;
  if (id == LB_REG_PMC) /* bits 31:0, sign-extended: SDM 18.2.5 */
    value = (uint64_t)(int64_t)(int32_t)(uint32_t)value;
  r->pmu.counter[number] = value & mask;
  return true;
}

static bool write_fixed(struct lb_recorder *r, unsigned number, uint64_t value)
{
  uint64_t mask = unit_mask(r->cpu->pmu->fixed_width);

  if (value & ~mask && !r->cpu->pmu->fixed_is_lax)
    return false;
  r->pmu.fixed[number] = value & mask;
  return true;
}

static bool write_evtsel(struct lb_recorder *r, unsigned number, uint64_t value)
{
  uint64_t bits = pmu_evtsel_bits(r, number);

  if (value & ~bits && !r->cpu->pmu->evtsel_is_lax)
    return false;
  pmu_select(r, number, value & bits);
  if (number < 4 && !(value & EVTSEL_EN_LBR_LOG))
    r->lbr.events[number] = 0; /* the events that it had logged are cleared */
  return true;
}

static bool write_fixed_ctrl(struct lb_recorder *r, uint64_t value)
{
  uint64_t allowed = 0, exists = pmu_fixed_mask(r);

  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++) {
    uint64_t field = r->cpu->pmu->version >= 3 ? 0xF : 0xB; /* AnyThread came with version 3 */

    field = field << (4 * i) | (unit_has_adaptive_pebs(r) ? FIXED_ADAPTIVE(i) : 0);
    allowed |= exists >> i & 1 ? field : 0;
  }
  if (r->cpu->pmu->fixed_is_lax)
    value &= allowed;
  return msr_write_masked(&r->pmu.fixed_ctrl, value, allowed);
}

/* AMD's global registers ignore bits that are reserved or read-only: APM vol. 2, 13.2.1. So does KVM, which follows the
 * hardware. */
static uint64_t amd_ignored(const struct lb_recorder *r, uint64_t value, uint64_t exists)
{
  return r->cpu->pmu->kind == LB_PMU_AMD_V2 ? value & exists : value;
}

static bool clear_status(struct lb_recorder *r, uint64_t value)
{
  value = amd_ignored(r, value, pmu_status_bits(r));
  if (value & ~pmu_status_bits(r))
    return false;
  r->pmu.status &= ~value;
  return true;
}

static bool set_status(struct lb_recorder *r, uint64_t value)
{
  value = amd_ignored(r, value, pmu_status_bits(r));
  if (value & ~pmu_status_bits(r))
    return false;
  r->pmu.status |= value;
  return true;
}

bool msr_write_pmu(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  switch (id) {
  case LB_REG_PMC:
  case LB_REG_A_PMC:
  case LB_REG_GP_CTR:
  case LB_REG_P4_COUNTER:
  case LB_REG_K7_PERFCTR:
  case LB_REG_AMD_PERF_CTR:
    return write_counter(r, id, number, value);
  case LB_REG_PERFEVTSEL:
  case LB_REG_GP_CFG_A:
  case LB_REG_K7_EVNTSEL:
  case LB_REG_AMD_PERF_CTL:
    return write_evtsel(r, number, value);
  case LB_REG_PERF_METRICS:
    return metrics_set(r, value);
  case LB_REG_FIXED_CTR:
  case LB_REG_FX_CTR:
    return write_fixed(r, number, value);
  case LB_REG_FIXED_CTR_CTRL:
    return write_fixed_ctrl(r, value);
  case LB_REG_GLOBAL_CTRL:
  case LB_REG_AMD_GLOBAL_CTL:
    return msr_write_masked(&r->pmu.ctrl, amd_ignored(r, value, pmu_enables(r)), pmu_enables(r));
  case LB_REG_GLOBAL_OVF_CTRL:
  case LB_REG_AMD_GLOBAL_CLR:
    return clear_status(r, value);
  case LB_REG_GLOBAL_STATUS_SET:
  case LB_REG_AMD_GLOBAL_SET:
    return set_status(r, value);
  case LB_REG_AMD_GLOBAL_STATUS: /* read-only, and ignores writes */
    return true;
  case LB_REG_P4_CCCR:
    return pmu_p4_cccr(r, number, value);
  case LB_REG_P4_FSB_ESCR:
    return keep(&r->pmu.escr[number], value, UINT32_MAX);
  case LB_REG_P4_CRU_ESCR:
    return keep(&r->pmu.escr[2 + number], value, UINT32_MAX);
  case LB_REG_P4_CRU_ESCR2:
    return keep(&r->pmu.escr[4 + number], value, UINT32_MAX);
  default: /* GLOBAL_STATUS, GLOBAL_INUSE: read-only */
    return false;
  }
}
