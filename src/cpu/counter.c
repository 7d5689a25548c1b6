/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's counters, as the run loop sees them: whether one counts, and how much they can count before anything
 * but their values changes. SDM vol. 3, 18.2.
 */
#include "cpu/counter.h"

#include "cpu/run.h"

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
  for (unsigned i = 0; i < LB_METRICS; i++)
    if (lb_recorder_counts_metric(recorder, (enum lb_metric)i))
      room = least(room, left(recorder->pmu.shares[i], pmu->fixed_width));
  return room;
}

/* ---- top-down analysis ---- */

bool counter_wants_metrics(const struct lb_recorder *recorder)
{
  bool has_fixed = recorder->cpu->pmu->fixed > 4; /* fixed counters 4 to 6 are three of them */
  return has_fixed || lb_recorder_counts_metric(recorder, LB_METRIC_RETIRING);
}

static uint64_t taken_branches(const uint64_t *outcomes)
{
  uint64_t count = 0;
  for (unsigned i = LB_OUTCOME_TAKEN_FORWARD; i <= LB_OUTCOME_FAR; i++)
    count += outcomes[i];
  return count;
}

static uint64_t rest(uint64_t whole, uint64_t part)
{
  return whole > part ? whole - part : 0;
}

/* Every category is a sum over instructions, so that it does not matter how many instructions a report is about. */
void counter_metrics(struct lb_progress *progress)
{
  const uint64_t others = COUNTER_SLOTS - 1; /* slots of a cycle that its instruction does not use */
  uint64_t wrong_taken = taken_branches(progress->mispredicted);
  uint64_t taken = taken_branches(progress->predicted) + wrong_taken;
  uint64_t wrong = MISPREDICT_CYCLES * (wrong_taken + progress->mispredicted[LB_OUTCOME_NOT_TAKEN]);
  uint64_t microcode = COUNTER_SLOTS * rest(progress->cycles, progress->instructions + wrong);
  uint64_t *metrics = progress->metrics;
  metrics[LB_METRIC_HEAVY] = microcode;
  metrics[LB_METRIC_RETIRING] = progress->instructions + microcode;
  metrics[LB_METRIC_BAD_SPECULATION] = metrics[LB_METRIC_BR_MISPREDICT] = COUNTER_SLOTS * wrong;
  metrics[LB_METRIC_FRONTEND] = others * taken;
  metrics[LB_METRIC_FETCH_LATENCY] = others * wrong_taken;
  metrics[LB_METRIC_BACKEND] = others * rest(progress->instructions, taken);
  metrics[LB_METRIC_MEMORY] = others * progress->cache_references;
}
