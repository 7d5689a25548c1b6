/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributes a taken branch, an interrupt or an exception: to the LBR stack, the bus or the BTS buffer, and the BTF
 * trap. Deng Zhi, chapter 14 (table of LBR, TR, BTS, BTINT); Intel SDM vol. 3 (June 2016) 17.4.2 to 17.4.5, 17.11.2.
 */
#include <assert.h>

#include "recorder/unit.h"

/* Transfers that BTF never traps on: task switches have the TSS's T bit; ERESUME and AEX are exempt (SDM 17.4.3
 * footnote, 43.5.1); a transaction's abort, INIT and RSM are not branch instructions. */
static const uint32_t never_steps = UINT32_C(1) << LB_BRANCH_TASK_SWITCH | UINT32_C(1) << LB_BRANCH_ERESUME |
                                    UINT32_C(1) << LB_BRANCH_AEX | UINT32_C(1) << LB_BRANCH_TSX_ABORT |
                                    UINT32_C(1) << LB_BRANCH_INIT | UINT32_C(1) << LB_BRANCH_RSM;

static void record_rest(struct lb_recorder *r, const struct lb_branch *branch, uint32_t armed)
{
  if (armed & ARMED_PAIR)
    lbr_pair_take(r, branch);
  if (armed & ARMED_BRS)
    lbr_brs_take(r, branch);
  if (armed & ARMED_TR)
    bts_message(r, branch);
}

static void step(struct lb_recorder *r, const struct lb_branch *branch)
{
  if ((branch->flags & LB_BRANCH_TF) && !(never_steps >> branch->kind & 1) && r->host.trap)
    r->host.trap(r->host.data);
}

void lb_recorder_record(struct lb_recorder *r, const struct lb_branch *branch)
{
  uint32_t armed = r->armed;

  assert(branch->kind < LB_BRANCH_KINDS);
  if (armed & ARMED_LBR)
    lbr_take(r, branch);
  record_rest(r, branch, armed);
  if (armed & ARMED_BTF)
    step(r, branch);
}

static bool event_is_software(unsigned kind)
{
  return kind == LB_BRANCH_INT || kind == LB_BRANCH_INT3 || kind == LB_BRANCH_INTO;
}

/* FROM of an event. For faults and INT n it is the instruction itself, for interrupts the one that would have run next.
 * SDM 17.11.2, table 36-23. For a machine check the host decides: `current` and `next` are then the same. */
static uint64_t event_from(const struct lb_recorder *r, const struct lb_event *event)
{
  if (event_is_software(event->kind) || event->kind == LB_BRANCH_FAULT)
    return event->current;
  if (event->kind == LB_BRANCH_TRAP && unit_option(r, LB_OPTION_TRAP_FROM_CURRENT))
    return event->current;
  return event->next;
}

static bool event_updates_ler(const struct lb_recorder *r, const struct lb_event *event)
{
  if (!(r->armed & (unit_has_pair(r) ? ARMED_PAIR : ARMED_LBR)))
    return false;
  if (event->kind == LB_BRANCH_MACHINE_CHECK && unit_is_amd(r)) /* APM vol. 2, 13.1.6.1 */
    return false;
  /* SDM vol. 3, 20.1 names software interrupts for architectural LBR. */
  return !(event_is_software(event->kind) && unit_option(r, LB_OPTION_INT_N_KEEPS_LER) && !unit_is_arch(r));
}

/* Whether BTF steps on events. According to Intel's manuals only branch instructions step (until 2009: events too);
 * according to AMD's, events do too. APM vol. 2, 13.1.6.2. */
static bool event_steps(const struct lb_recorder *r)
{
  return unit_is_amd(r) || unit_option(r, LB_OPTION_BTF_ON_EVENTS);
}

static void ds_stop(struct lb_recorder *r)
{
  r->ds.is_stopped = true;
  unit_update(r);
}

void lb_recorder_event(struct lb_recorder *r, const struct lb_event *event)
{
  struct lb_branch branch = {
    .from = event_from(r, event),
    .to = event->handler,
    .from_base = event->from_base,
    .to_base = event->to_base,
    .kind = event->kind,
    .from_cpl = event->from_cpl,
    .to_cpl = event->to_cpl,
    .flags = event->flags,
  };

  assert(event->kind < LB_BRANCH_KINDS);
  if (event->kind == LB_BRANCH_MACHINE_CHECK) /* SDM 17.4.9: DS recording is disabled */
    ds_stop(r);
  if (!r->armed)
    return;
  if (event_updates_ler(r, event))
    lbr_ler_update(r);
  if (r->armed & ARMED_LBR)
    lbr_take(r, &branch);
  record_rest(r, &branch, r->armed);
  if ((r->armed & ARMED_BTF) && event_steps(r))
    step(r, &branch);
}

/* SDM 17.4.2, 17.4.3: any #DB clears LBR and BTF before its handler runs, and is itself not recorded. TR stays. AMD's
 * LBR version 2 stops as well: APM vol. 2, 13.1.1.8. */
void lb_recorder_debug_exception(struct lb_recorder *r)
{
  r->debugctl &= ~(lb_cpu_debugctl(r->cpu, LB_DEBUGCTL_LBR) | lb_cpu_debugctl(r->cpu, LB_DEBUGCTL_BTF));
  r->lbr.ctl &= ~LBR_CTL_LBREN;
  r->lbr.extn &= ~EXTN_LBRV2EN;
  unit_update(r);
}

/* PBi=1: pin BPi# signals matches of DRi. SDM 17.14.1; Zhang Yinkui 5.2.1. */
void lb_recorder_breakpoint_match(struct lb_recorder *r, unsigned number)
{
  if (number > 3 || !unit_debugctl(r, (enum lb_debugctl_bit)(LB_DEBUGCTL_PB0 + number)))
    return;
  if (r->host.pin)
    r->host.pin(r->host.data, number);
}
