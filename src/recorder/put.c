/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers that were read elsewhere, mostly on silicon, are put into the unit as they are, without the checks and side
 * effects of WRMSR. The values are hostile input: a value that the unit could not handle is refused or truncated here.
 */
#include "recorder/unit.h"

/* Sets an entry through the register with this number. */
static void put_entry(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  unsigned index = r->cpu->lbr->is_newest_first ? lbr_index(r, number) : number;
  struct lb_slot *slot = &r->entries[index];

  switch (id) {
  case LB_REG_LBR:
    slot->from = value & UINT32_MAX;
    slot->to = value >> 32;
    break;
  case LB_REG_LBR_FROM:
    slot->from = value;
    break;
  case LB_REG_LBR_TO:
    slot->to = value;
    break;
  default:
    slot->info = value; /* without a kind: the branch itself was not seen */
    break;
  }
  slot->info &= ~SLOT_KIND;
}

/* Zen 3: the number of the next entry takes the place of a TOS. */
static void put_extn(struct lb_recorder *r, uint64_t value)
{
  r->lbr.extn = value;
  if (!lb_cpu_has(r->cpu, LB_FEATURE_BRS))
    return;
  unsigned next = (unsigned)((value & EXTN_MSROFF) >> EXTN_MSROFF_SHIFT) % r->depth;
  lbr_set_tos(r, (next ? next : r->depth) - 1);
}

static bool put_depth(struct lb_recorder *r, uint64_t value)
{
  if (value == 0 || value > lb_cpu_depth(r->cpu))
    return false;
  r->depth = (uint32_t)value;
  lbr_set_tos(r, 0);
  return true;
}

static bool put_register(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value)
{
  switch (id) {
  case LB_REG_DEBUGCTL:
    r->debugctl = value;
    break;
  case LB_REG_LBR_SELECT:
    r->lbr.select = value;
    break;
  case LB_REG_LBR_TOS: /* every stack with a TOS is a power of two deep */
    lbr_set_tos(r, (unsigned)value & (r->depth - 1));
    break;
  case LB_REG_LBR:
  case LB_REG_LBR_FROM:
  case LB_REG_LBR_TO:
  case LB_REG_LBR_INFO:
    put_entry(r, id, number, value);
    break;
  case LB_REG_LAST_FROM: /* on other CPUs a mirror of the newest entry */
    r->lbr.last.from = value;
    break;
  case LB_REG_LAST_TO:
    r->lbr.last.to = value;
    break;
  case LB_REG_LER_FROM:
    r->lbr.ler.from = value;
    break;
  case LB_REG_LER_TO:
    r->lbr.ler.to = value;
    break;
  case LB_REG_LER_INFO:
    r->lbr.ler.info = value & ~SLOT_KIND;
    break;
  case LB_REG_LBR_CTL:
    r->lbr.ctl = value;
    break;
  case LB_REG_LBR_DEPTH:
    return put_depth(r, value);
  case LB_REG_AMD_DBG_EXTN_CFG:
    put_extn(r, value);
    break;
  case LB_REG_GLOBAL_STATUS:
  case LB_REG_AMD_GLOBAL_STATUS:
    r->pmu.status = value;
    break;
  default: /* PERF_CAPABILITIES is fixed by the CPU; DS area and counters are set by WRMSR */
    return false;
  }
  return true;
}

enum lb_msr_answer lb_recorder_put(struct lb_recorder *r, uint32_t msr, uint64_t value)
{
  unsigned number;
  int id = lb_cpu_register_at(r->cpu, msr, &number);

  if (id < 0)
    return LB_MSR_FOREIGN;
  bool is_entry = id == LB_REG_LBR_FROM || id == LB_REG_LBR_TO || id == LB_REG_LBR_INFO || id == LB_REG_LBR;
  if ((is_entry && number >= r->depth) || !put_register(r, (unsigned)id, number, value))
    return LB_MSR_GP;
  unit_update(r);
  return LB_MSR_OK;
}
