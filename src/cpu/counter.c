/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's counters, as the run loop sees them: whether one counts, and how much they can count before anything
 * but their values changes. SDM vol. 3, 18.2.
 */
#include "cpu/counter.h"

#define CCCR_ENABLE (UINT64_C(1) << 12)
#define EVTSEL_EN (UINT64_C(1) << 22)
#define EVTSEL_USR_OS (UINT64_C(3) << 16)
/* CMASK and INV look at each cycle, EN_LBR_LOG at each branch. */
#define EVTSEL_SINGLE (UINT64_C(0xFF800000) | UINT64_C(1) << 35)

/* Bits of PERF_GLOBAL_CTRL; all ones where counters have no such common switch. */
static uint64_t counters_enabled(const struct lb_recorder *recorder)
{
  const struct lb_pmu *pmu = recorder->cpu->pmu;
  bool has_switch = (pmu->kind == LB_PMU_ARCH && pmu->version >= 2) || pmu->kind == LB_PMU_AMD_V2;
  return has_switch ? recorder->pmu.ctrl : UINT64_MAX;
}

bool counter_runs(const struct lb_recorder *recorder)
{
  const struct lb_pmu *pmu = recorder->cpu->pmu;
  uint64_t enable = pmu->kind == LB_PMU_P4 ? CCCR_ENABLE : EVTSEL_EN;
  uint64_t enabled = counters_enabled(recorder);
  for (unsigned i = 0; i < pmu->counters && i < LB_COUNTERS_MAX; i++)
    if ((recorder->pmu.select[i] & enable) && (enabled >> i & 1))
      return true;
  for (unsigned i = 0; i < pmu->fixed; i++)
    if ((recorder->pmu.fixed_ctrl >> (4 * i) & 3) && (enabled >> (32 + i) & 1))
      return true;
  return false;
}

static uint64_t left(uint64_t counter, unsigned width)
{
  return (UINT64_MAX >> (64 - width)) - counter;
}

static uint64_t least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

uint64_t counter_room(const struct lb_recorder *recorder)
{
  const struct lb_pmu *pmu = recorder->cpu->pmu;
  uint64_t enabled = counters_enabled(recorder), room = UINT64_MAX;
  if (pmu->kind == LB_PMU_P4 || pmu->kind == LB_PMU_P6 ||
      recorder->ds.due) /* P6 has pins that tell of each increment */
    return 0;
  for (unsigned i = 0; i < pmu->counters && i < LB_COUNTERS_MAX; i++) {
    uint64_t select = recorder->pmu.select[i];
    if (!(select & EVTSEL_EN) || !(select & EVTSEL_USR_OS) || !(enabled >> i & 1))
      continue;
    room = select & EVTSEL_SINGLE ? 0 : least(room, left(recorder->pmu.counter[i], pmu->width));
  }
  for (unsigned i = 0; i < pmu->fixed; i++)
    if ((recorder->pmu.fixed_ctrl >> (4 * i) & 3) && (enabled >> (32 + i) & 1))
      room = least(room, left(recorder->pmu.fixed[i], pmu->fixed_width));
  return room;
}
