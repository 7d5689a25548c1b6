/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMSR and WRMSR: what software sees of the unit. Which register an address is comes from the catalogue; here is what
 * each one gives, keeps, ignores and faults on. A faulting write changes nothing.
 * Intel SDM vol. 3 (June 2016) chapter 35; masks measured on silicon (VirtualBox CPU profiles); Linux msr-index.h for
 * AMD.
 */
#include "recorder/unit.h"

/* Where the pieces of a register stand in the ring: entry 0 is the newest on CPUs without a TOS. */
static unsigned entry_at(const struct lb_recorder *r, unsigned number)
{
  bool by_age = r->cpu->lbr->is_newest_first;
  return by_age ? lbr_index(r, number) : number;
}

/* Registers that read 0 and drop writes while Intel PT runs, where the two exclude each other. SDM 36.3.1.2. */
static bool is_hidden_by_pt(const struct lb_recorder *r, unsigned id)
{
  switch (id) {
  case LB_REG_LBR_SELECT:
  case LB_REG_LBR_TOS:
  case LB_REG_LBR:
  case LB_REG_LBR_FROM:
  case LB_REG_LBR_TO:
  case LB_REG_LBR_INFO:
  case LB_REG_LAST_FROM:
  case LB_REG_LAST_TO:
  case LB_REG_LER_FROM:
  case LB_REG_LER_TO:
  case LB_REG_LER_INFO:
    return r->is_pt_on;
  default:
    return false;
  }
}

/* An architectural entry at or above IA32_LBR_DEPTH does not exist. */
static bool is_beyond_depth(const struct lb_recorder *r, unsigned id, unsigned number)
{
  return (id == LB_REG_LBR_FROM || id == LB_REG_LBR_TO || id == LB_REG_LBR_INFO) && number >= r->depth;
}

/* Fixed counters need not be numbered without a gap. */
static bool is_no_counter(const struct lb_recorder *r, unsigned id, unsigned number)
{
  return (id == LB_REG_FIXED_CTR || id == LB_REG_FX_CTR) && !(pmu_fixed_mask(r) >> number & 1);
}

static bool is_absent(const struct lb_recorder *r, unsigned id, unsigned number)
{
  return is_beyond_depth(r, id, number) || is_no_counter(r, id, number);
}

/* LER_FROM as the register at 0x1DD; the Pentium M's own table has the two the other way round. */
static bool ler_is_swapped(const struct lb_recorder *r)
{
  return unit_option(r, LB_OPTION_PM_LER_SWAPPED) && lb_cpu_quirk(r->cpu, LB_QUIRK_PM_LER_NAMES);
}

/* ---- RDMSR ---- */

static uint64_t read_tos(const struct lb_recorder *r)
{
  return lbr_tos(r) | (lb_cpu_quirk(r->cpu, LB_QUIRK_TOS_BIT_27) ? UINT64_C(1) << 27 : 0);
}

static uint64_t read_lbr(const struct lb_recorder *r, unsigned id, unsigned number)
{
  const struct lb_slot *newest = lbr_newest(r);
  const struct lb_slot *ler = &r->lbr.ler;
  const struct lb_slot *entry = &r->entries[entry_at(r, number)];
  switch (id) {
  case LB_REG_LBR:
    return (entry->from & UINT32_MAX) | entry->to << 32;
  case LB_REG_LBR_FROM:
    return entry->from;
  case LB_REG_LBR_TO:
    return entry->to;
  case LB_REG_LBR_INFO:
    return entry->info & ~SLOT_KIND;
  case LB_REG_LAST_FROM:
    return newest->from;
  case LB_REG_LAST_TO:
    return newest->to;
  case LB_REG_LER_FROM:
    return ler_is_swapped(r) ? ler->to : ler->from;
  case LB_REG_LER_TO:
    return ler_is_swapped(r) ? ler->from : ler->to;
  case LB_REG_LER_INFO:
    return ler->info & ~SLOT_KIND;
  default:
    return 0;
  }
}

static uint64_t read_pmu(const struct lb_recorder *r, unsigned id, unsigned number)
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

static uint64_t read_register(const struct lb_recorder *r, unsigned id, unsigned number)
{
  switch (id) {
  case LB_REG_DEBUGCTL:
    return r->debugctl;
  case LB_REG_LBR_SELECT:
    return r->lbr.select;
  case LB_REG_LBR_TOS:
    return read_tos(r);
  case LB_REG_LBR_CTL:
    return r->lbr.ctl;
  case LB_REG_LBR_DEPTH:
    return r->depth;
  case LB_REG_MISC_ENABLE:
    return r->misc_enable;
  case LB_REG_DS_AREA:
    return r->ds.area;
  case LB_REG_PERF_CAPABILITIES:
    return r->cpu->perf_capabilities;
  case LB_REG_PEBS_ENABLE:
    return r->ds.pebs_enable;
  case LB_REG_PEBS_DATA_CFG:
    return r->ds.data_cfg;
  case LB_REG_PEBS_LD_LAT:
    return r->ds.load_latency;
  case LB_REG_RELOAD_PMC:
    return r->ds.reload[number];
  case LB_REG_RELOAD_FIXED:
    return r->ds.reload_fixed[number];
  case LB_REG_P4_PEBS_MATRIX:
    return r->ds.matrix;
  case LB_REG_AMD_DBG_EXTN_CFG:
    return r->lbr.extn;
  default:
    return id <= LB_REG_LER_INFO ? read_lbr(r, id, number) : read_pmu(r, id, number);
  }
}

enum lb_msr_answer lb_recorder_rdmsr(const struct lb_recorder *r, uint32_t msr, uint64_t *ret_value)
{
  unsigned number;
  int id = lb_cpu_register_at(r->cpu, msr, &number);
  if (id < 0)
    return LB_MSR_FOREIGN;
  if (is_absent(r, (unsigned)id, number))
    return LB_MSR_GP;
  *ret_value = is_hidden_by_pt(r, (unsigned)id) ? 0 : read_register(r, (unsigned)id, number);
  return LB_MSR_OK;
}

/* ---- WRMSR: the LBR stack ---- */

static bool write_masked(uint64_t *place, uint64_t value, uint64_t allowed)
{
  if (value & ~allowed)
    return false;
  *place = value;
  return true;
}

static bool write_debugctl(struct lb_recorder *r, uint64_t value)
{
  const struct lb_debugctl *layout = r->cpu->debugctl;
  uint64_t faults = layout->faults;
  if (!unit_has_tsx(r)) /* the RTM bit goes with the feature */
    faults |= lb_cpu_debugctl(r->cpu, LB_DEBUGCTL_RTM);
  if (unit_option(r, LB_OPTION_AMD_STRICT_DEBUGCTL) && unit_is_amd(r))
    faults = ~layout->kept;
  if (value & faults)
    return false;
  r->debugctl = value & layout->kept;
  r->ds.is_stopped = false; /* after a machine check recording starts again when software says so */
  return true;
}

static bool write_select(struct lb_recorder *r, uint64_t value)
{
  const struct lb_lbr_class *class = r->cpu->lbr;
  if (value & ~(class->select_mask | class->select_ignored))
    return false;
  r->lbr.select = value & class->select_mask;
  lbr_share_select(r);
  return true;
}

static bool write_tos(struct lb_recorder *r, uint64_t value)
{
  const struct lb_lbr_class *class = r->cpu->lbr;
  if (!class->tos_is_writable || (class->tos_excess_faults && value >= r->depth))
    return false;
  lbr_set_tos(r, (unsigned)value & (r->depth - 1));
  return true;
}

/* Bits of an architectural INFO register that are kept; the others are undefined and read 0 here. */
static uint64_t arch_info_bits(const struct lb_recorder *r)
{
  uint64_t bits = UINT64_C(0xFF) << 56 | 0xFFFF;
  for (unsigned i = 0; i < 4; i++)
    if (r->cpu->leaf_1c[2] >> (16 + i) & 1)
      bits |= UINT64_C(3) << (32 + 2 * i);
  return bits;
}

static bool write_from(const struct lb_recorder *r, struct lb_slot *slot, uint64_t value)
{
  if (!format_from_is_legal(r, value))
    return false;
  slot->from = r->cpu->lbr->write_rule == LB_WRITE_FORCED ? format_canonical(value) : value;
  return true;
}

static bool write_to(const struct lb_recorder *r, struct lb_slot *slot, uint64_t value)
{
  if (!format_to_is_legal(r, value))
    return false;
  slot->to = r->cpu->lbr->write_rule == LB_WRITE_FORCED ? format_canonical(value) : value;
  return true;
}

static bool write_info(const struct lb_recorder *r, struct lb_slot *slot, uint64_t value)
{
  if (!format_info_is_legal(r, value))
    return false;
  slot->info = r->cpu->lbr->write_rule == LB_WRITE_FORCED ? value & arch_info_bits(r) : value;
  return true;
}

static bool write_slot(const struct lb_recorder *r, unsigned id, struct lb_slot *slot, uint64_t value)
{
  switch (id) {
  case LB_REG_LBR:
    slot->from = value & UINT32_MAX;
    slot->to = value >> 32;
    return true;
  case LB_REG_LBR_FROM:
  case LB_REG_LER_FROM:
    return write_from(r, slot, value);
  case LB_REG_LBR_TO:
  case LB_REG_LER_TO:
    return write_to(r, slot, value);
  default:
    return write_info(r, slot, value);
  }
}

static bool write_entry(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  struct lb_slot *entry = &r->entries[entry_at(r, number)];
  if (r->cpu->lbr->write_rule == LB_WRITE_NEVER || !write_slot(r, id, entry, value))
    return false;
  entry->info &= ~SLOT_KIND; /* software made it: no branch of ours */
  return true;
}

static bool write_ler(struct lb_recorder *r, unsigned id, uint64_t value)
{
  return r->cpu->lbr->ler_is_writable && write_slot(r, id, &r->lbr.ler, value);
}

/* ---- WRMSR: architectural LBR, AMD ---- */

static bool write_ctl(struct lb_recorder *r, uint64_t value)
{
  uint32_t can = r->cpu->leaf_1c[1];
  uint64_t allowed = LBR_CTL_LBREN;
  allowed |= can & 1 ? LBR_CTL_OS | LBR_CTL_USR : 0;
  allowed |= can & 2 ? UINT64_C(0x7F0000) : 0;
  allowed |= can & 4 ? LBR_CTL_CALL_STACK : 0;
  bool was_on = r->lbr.ctl & LBR_CTL_LBREN;
  if (!write_masked(&r->lbr.ctl, value, allowed))
    return false;
  if (!was_on && (value & LBR_CTL_LBREN))
    r->lbr.cycles_valid = false;
  return true;
}

/* A legal depth clears the entries, but not LER. */
static bool write_depth(struct lb_recorder *r, uint64_t value)
{
  if (value == 0 || value > LB_DEPTH_MAX || value % 8 || !(r->cpu->leaf_1c[0] >> (value / 8 - 1) & 1))
    return false;
  r->depth = (uint32_t)value;
  lbr_clear(r);
  return true;
}

/* Zen 3: the enable, the write position and the number of the sampling counter. Switching it off lets a held interrupt
 * go. */
static bool write_brs(struct lb_recorder *r, uint64_t value)
{
  bool holds = r->lbr.is_holding && !(value & EXTN_BRSMEN);
  if ((value & EXTN_MUST_BE_SET) != EXTN_MUST_BE_SET)
    return false;
  r->lbr.extn = value & (EXTN_BRSMEN | EXTN_MUST_BE_SET | EXTN_VB | EXTN_MSROFF | EXTN_PMC);
  unsigned next = (unsigned)((value & EXTN_MSROFF) >> EXTN_MSROFF_SHIFT);
  lbr_set_tos(r, (next ? next : r->depth) - 1);
  if (!(value & EXTN_BRSMEN))
    r->lbr.is_capturing = r->lbr.is_holding = false;
  if (holds)
    pmi_request(r, PMI_COUNTER);
  return true;
}

static bool write_extn(struct lb_recorder *r, uint64_t value)
{
  if (lb_cpu_has(r->cpu, LB_FEATURE_BRS))
    return write_brs(r, value);
  return write_masked(&r->lbr.extn, value, EXTN_LBRV2EN); /* the rest must be zero: APM vol. 2, figure 13-6 */
}

/* ---- WRMSR: DS area and counters ---- */

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

/* Bits 7, 11 and 12 are read-only; what else the register holds is kept for the host. */
static bool write_misc_enable(struct lb_recorder *r, uint64_t value)
{
  uint64_t ours = MISC_ENABLE_PERFMON | MISC_ENABLE_BTS_UNAVAILABLE | MISC_ENABLE_PEBS_UNAVAILABLE;
  r->misc_enable = (value & ~ours) | (r->misc_enable & ours);
  return true;
}

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
    r->lbr.events[number] = 0; /* what it had logged goes with it */
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
  return write_masked(&r->pmu.fixed_ctrl, value, allowed);
}

/* AMD's global registers ignore what is reserved or read-only: APM vol. 2, 13.2.1; so does KVM, after hardware. */
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

/* Format 6 has a group of counters: 4 and 5, and which of them in 47:32 and 55:48. */
static bool write_data_cfg(struct lb_recorder *r, uint64_t value)
{
  bool has_counters = r->cpu->ds->pebs == LB_PEBS_6;
  return write_masked(&r->ds.data_cfg, value,
                      has_counters ? UINT64_C(0xFFFFFFFF00003F) | UINT64_C(0xFF000000) : UINT64_C(0xFF00000F));
}

/* A reload value is as wide as its counter; what a write does with more bits was not measured. */
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
  if (!write_masked(&r->ds.pebs_enable, value, allowed))
    return false;
  if (r->cpu->pmu->kind != LB_PMU_P4) /* there the bits are no counters */
    r->ds.due &= value;
  r->ds.is_stopped = false;
  return true;
}

static bool keep(uint64_t *place, uint64_t value, uint64_t bits)
{
  *place = value & bits;
  return true;
}

static bool write_pmu(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
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
    return write_masked(&r->pmu.ctrl, amd_ignored(r, value, pmu_enables(r)), pmu_enables(r));
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

static bool write_register(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  switch (id) {
  case LB_REG_DEBUGCTL:
    return write_debugctl(r, value);
  case LB_REG_LBR_SELECT:
    return write_select(r, value);
  case LB_REG_LBR_TOS:
    return write_tos(r, value);
  case LB_REG_LBR:
  case LB_REG_LBR_FROM:
  case LB_REG_LBR_TO:
  case LB_REG_LBR_INFO:
    return write_entry(r, id, number, value);
  case LB_REG_LER_FROM:
  case LB_REG_LER_TO:
  case LB_REG_LER_INFO:
    return write_ler(r, id, value);
  case LB_REG_NO_RECORD: /* measured on VIA and Zhaoxin: writes are ignored */
    return true;
  case LB_REG_LAST_FROM: /* mirrors: read-only */
  case LB_REG_LAST_TO:
  case LB_REG_PERF_CAPABILITIES:
    return false;
  case LB_REG_LBR_CTL:
    return write_ctl(r, value);
  case LB_REG_LBR_DEPTH:
    return write_depth(r, value);
  case LB_REG_MISC_ENABLE:
    return write_misc_enable(r, value);
  case LB_REG_DS_AREA:
    return write_ds_area(r, value);
  case LB_REG_PEBS_ENABLE:
    return write_pebs_enable(r, value);
  case LB_REG_PEBS_DATA_CFG:
    return write_data_cfg(r, value);
  case LB_REG_RELOAD_PMC:
  case LB_REG_RELOAD_FIXED:
    return write_reload(r, id, number, value);
  case LB_REG_PEBS_LD_LAT:
    return keep(&r->ds.load_latency, value, 0xFFFF);
  case LB_REG_P4_PEBS_MATRIX:
    return keep(&r->ds.matrix, value, 0x1FFF);
  case LB_REG_AMD_DBG_EXTN_CFG:
    return write_extn(r, value);
  default:
    return write_pmu(r, id, number, value);
  }
}

enum lb_msr_answer lb_recorder_wrmsr(struct lb_recorder *r, uint32_t msr, uint64_t value)
{
  unsigned number;
  int id = lb_cpu_register_at(r->cpu, msr, &number);
  if (id < 0)
    return LB_MSR_FOREIGN;
  if (is_absent(r, (unsigned)id, number))
    return LB_MSR_GP;
  if (is_hidden_by_pt(r, (unsigned)id))
    return LB_MSR_OK;
  if (!write_register(r, (unsigned)id, number, value))
    return LB_MSR_GP;
  unit_update(r);
  return LB_MSR_OK;
}
