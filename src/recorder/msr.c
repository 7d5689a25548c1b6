/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMSR and WRMSR, the software's view of the unit. The catalogue maps an address to a register. This file has the
 * rules of each register: the value it reads, the bits it keeps and ignores, and the writes that fault. msr_pmu.c has
 * the DS area and the counters. A faulting write changes nothing. Intel SDM vol. 3 (June 2016) chapter 35; masks
 * measured on silicon (VirtualBox CPU profiles); Linux msr-index.h for AMD.
 */
#include "recorder/unit.h"

/* The index in the ring of an entry's register: entry 0 is the newest on CPUs without a TOS. */
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

/* The numbers of the fixed counters may have gaps. */
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
    return id <= LB_REG_LER_INFO ? read_lbr(r, id, number) : msr_read_pmu(r, id, number);
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
  r->ds.is_stopped = false; /* after a machine check, recording starts again when software enables it */
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
  entry->info &= ~SLOT_KIND; /* written by software: not a branch that we recorded */
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
  if (!msr_write_masked(&r->lbr.ctl, value, allowed))
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

/* Zen 3: the enable, the write position and the number of the sampling counter. Switching it off releases a held
 * interrupt. */
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
  return msr_write_masked(&r->lbr.extn, value, EXTN_LBRV2EN); /* the rest must be zero: APM vol. 2, figure 13-6 */
}

/* ---- WRMSR: all of them ---- */

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
  case LB_REG_DS_AREA:
  case LB_REG_PEBS_ENABLE:
  case LB_REG_PEBS_DATA_CFG:
  case LB_REG_RELOAD_PMC:
  case LB_REG_RELOAD_FIXED:
  case LB_REG_PEBS_LD_LAT:
  case LB_REG_P4_PEBS_MATRIX:
    return msr_write_ds(r, id, number, value);
  case LB_REG_AMD_DBG_EXTN_CFG:
    return write_extn(r, value);
  default:
    return msr_write_pmu(r, id, number, value);
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
