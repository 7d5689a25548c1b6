/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that tell a host about the counters: whether one is enabled, and how far they are from an overflow. The
 * host uses them to report progress no more often than necessary. Intel SDM vol. 3, 18.2; 18.15.8 (P6).
 */
#include "recorder/unit.h"

/* CMASK and INV depend on each cycle, EN_LBR_LOG on each branch. */
#define EVTSEL_SINGLE (UINT64_C(0xFF000000) | EVTSEL_INV | EVTSEL_EN_LBR_LOG)

/* The enable bits of PERF_GLOBAL_CTRL; all ones if the CPU has no such register. */
static uint64_t global_enables(const struct lb_recorder *r)
{
  return pmu_has_status(r) ? r->pmu.ctrl : UINT64_MAX;
}

static bool fixed_is_enabled(const struct lb_recorder *r, unsigned i)
{
  return (r->pmu.fixed_ctrl >> (4 * i) & 3) && (global_enables(r) >> (32 + i) & 1);
}

bool lb_recorder_is_counting(const struct lb_recorder *r)
{
  const struct lb_pmu *pmu = r->cpu->pmu;
  uint64_t enable = pmu->kind == LB_PMU_P4 ? CCCR_ENABLE : EVTSEL_EN;

  for (unsigned i = 0; i < pmu->counters && i < LB_COUNTERS_MAX; i++)
    if ((r->pmu.select[i] & enable) && (global_enables(r) >> i & 1))
      return true;
  for (unsigned i = 0; i < pmu->fixed; i++)
    if (fixed_is_enabled(r, i))
      return true;
  return false;
}

static uint64_t least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

static uint64_t general_room(const struct lb_recorder *r)
{
  uint64_t room = UINT64_MAX;

  for (unsigned i = 0; i < r->cpu->pmu->counters && i < LB_COUNTERS_MAX; i++) {
    uint64_t select = r->pmu.select[i];

    if (!(select & EVTSEL_EN) || !(select & (EVTSEL_USR | EVTSEL_OS)) || !(global_enables(r) >> i & 1))
      continue;
    room = select & EVTSEL_SINGLE ? 0 : least(room, unit_mask(r->cpu->pmu->width) - r->pmu.counter[i]);
  }
  return room;
}

uint64_t lb_recorder_progress_room(const struct lb_recorder *r)
{
  const struct lb_pmu *pmu = r->cpu->pmu;

  if (pmu->kind == LB_PMU_P4 || pmu->kind == LB_PMU_P6 || r->ds.due) /* P6 has pins that report each increment */
    return 0;
  uint64_t room = general_room(r);
  for (unsigned i = 0; i < pmu->fixed; i++)
    if (fixed_is_enabled(r, i))
      room = least(room, unit_mask(pmu->fixed_width) - r->pmu.fixed[i]);
  for (unsigned i = 0; i < LB_METRICS; i++)
    if (lb_recorder_counts_metric(r, (enum lb_metric)i))
      room = least(room, unit_mask(pmu->fixed_width) - r->pmu.shares[i]);
  return room;
}

bool lb_recorder_counts_slots(const struct lb_recorder *r)
{
  bool has_fixed = r->cpu->pmu->fixed > 4; /* fixed counters 4 to 6 are three of the categories */

  return has_fixed || lb_recorder_counts_metric(r, LB_METRIC_RETIRING);
}

int lb_recorder_counter(const struct lb_recorder *r, unsigned index, uint64_t *ret_select, uint64_t *ret_count)
{
  if (index >= r->cpu->pmu->counters || index >= LB_COUNTERS_MAX)
    return LB_E_NO_FIELD;
  *ret_select = r->pmu.select[index];
  *ret_count = r->pmu.counter[index];
  return 0;
}
