/* SPDX-License-Identifier: Apache-2.0
 *
 * The performance counters that drive sampling: general and fixed, updated with the progress that the host reports.
 * Intel SDM vol. 3 (June 2016) 18.2, 18.15.8 (P6); AMD APM vol. 2 chapter 13. EDGE is stored but has no effect: the
 * host reports sums, not single cycles.
 */
#include "recorder/unit.h"

/* The offset of each sum in struct lb_progress. */
static const uint16_t sums[LB_SUMS] = {
  [LB_SUM_CYCLES] = offsetof(struct lb_progress, cycles),
  [LB_SUM_INSTRUCTIONS] = offsetof(struct lb_progress, instructions),
  [LB_SUM_REFERENCE_CYCLES] = offsetof(struct lb_progress, reference_cycles),
  [LB_SUM_BRANCHES] = offsetof(struct lb_progress, branches),
  [LB_SUM_TAKEN_BRANCHES] = offsetof(struct lb_progress, taken_branches),
  [LB_SUM_MISPREDICTS] = offsetof(struct lb_progress, mispredicts),
  [LB_SUM_CACHE_REFERENCES] = offsetof(struct lb_progress, cache_references),
  [LB_SUM_CACHE_MISSES] = offsetof(struct lb_progress, cache_misses),
  [LB_SUM_SLOTS] = offsetof(struct lb_progress, slots),
  [LB_SUM_LBR_INSERTS] = offsetof(struct lb_progress, lbr_inserts),
};

static bool is_amd(const struct lb_recorder *r)
{
  return r->cpu->pmu->kind == LB_PMU_AMD || r->cpu->pmu->kind == LB_PMU_AMD_V2;
}

bool pmu_has_status(const struct lb_recorder *r)
{
  const struct lb_pmu *pmu = r->cpu->pmu;

  return (pmu->kind == LB_PMU_ARCH && pmu->version >= 2) || pmu->kind == LB_PMU_AMD_V2;
}

uint64_t pmu_fixed_mask(const struct lb_recorder *r)
{
  return unit_mask(r->cpu->pmu->fixed) & ~(uint64_t)r->cpu->pmu->fixed_absent;
}

static uint64_t metrics_bit(const struct lb_recorder *r)
{
  return unit_has_metrics(r) ? STATUS_METRICS : 0;
}

uint64_t pmu_enables(const struct lb_recorder *r)
{
  return unit_mask(r->cpu->pmu->counters) | pmu_fixed_mask(r) << 32 | metrics_bit(r);
}

uint64_t pmu_status_bits(const struct lb_recorder *r)
{
  return r->cpu->pmu->status_clear | metrics_bit(r);
}

/* IA32_PERF_GLOBAL_INUSE: SDM 18.2.4.3. Bit 63 says that some counter raises PMIs. */
uint64_t pmu_in_use(const struct lb_recorder *r)
{
  uint64_t used = 0;
  bool interrupts = r->ds.pebs_enable != 0;

  for (unsigned i = 0; i < r->cpu->pmu->counters && i < LB_COUNTERS_MAX; i++) {
    used |= (uint64_t)((r->pmu.select[i] & 0xFF) != 0) << i;
    interrupts |= (r->pmu.select[i] & EVTSEL_INT) != 0;
  }
  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++) {
    unsigned control = r->pmu.fixed_ctrl >> (4 * i) & 0xF;

    used |= (uint64_t)((control & 3) != 0) << (32 + i);
    interrupts |= (control & 8) != 0;
  }
  return used | (uint64_t)interrupts << 63;
}

uint64_t pmu_evtsel_bits(const struct lb_recorder *r, unsigned counter)
{
  uint64_t bits = r->cpu->pmu->evtsel;

  if (unit_has_tsx(r))
    bits |= UINT64_C(1) << 32; /* IN_TX */
  if (unit_has_tsx(r) && counter >= 2)
    bits |= UINT64_C(1) << 33; /* IN_TXCP: measured on 06_3D and 06_5E, counters 0 and 1 refuse it */
  if (unit_has_adaptive_pebs(r))
    bits |= EVTSEL_ADAPTIVE;
  if (counter < 4 && r->cpu->leaf_1c[2] >> (16 + counter) & 1)
    bits |= EVTSEL_EN_LBR_LOG;
  return bits;
}

void pmu_reset(struct lb_recorder *r)
{
  for (unsigned i = 0; i < LB_COUNTERS_MAX; i++)
    r->pmu.counter[i] = r->pmu.select[i] = 0;
  pmu_update(r);
  for (unsigned i = 0; i < LB_FIXED_MAX; i++)
    r->pmu.fixed[i] = 0;
  for (unsigned i = 0; i < sizeof(r->pmu.escr) / sizeof(r->pmu.escr[0]); i++)
    r->pmu.escr[i] = 0;
  r->pmu.fixed_ctrl = 0;
  r->pmu.status = 0;
  r->pmu.is_pending = r->pmu.is_held = false;
  r->pmu.wanted = 0;
  r->pmu.ctrl = r->pmu.metrics = 0;
  r->pmu.metrics_are_written = false;
  for (unsigned i = 0; i < LB_METRICS; i++)
    r->pmu.shares[i] = 0;
  /* Newer manuals: the general counters' enables are 1 after reset. */
  if (pmu_has_status(r) && !unit_option(r, LB_OPTION_GLOBAL_CTRL_ZERO))
    r->pmu.ctrl = unit_mask(r->cpu->pmu->counters);
}

/* ---- events ---- */

void pmu_update(struct lb_recorder *r)
{
  for (unsigned i = 0; i < LB_COUNTERS_MAX; i++)
    r->pmu.event[i] = lb_cpu_event_find(r->cpu, r->pmu.select[i]);
}

void pmu_note_unmodelled(struct lb_recorder *r, uint64_t select)
{
  for (unsigned i = 0; i < r->pmu.unmodelled_count; i++)
    if (r->pmu.unmodelled[i] == select)
      return;
  if (r->pmu.unmodelled_count < LB_UNMODELLED_MAX)
    r->pmu.unmodelled[r->pmu.unmodelled_count++] = select;
}

/* Bits of an event select that name the event. */
static uint64_t event_bits(const struct lb_recorder *r)
{
  return is_amd(r) ? UINT64_C(0xF0000FFFF) : UINT64_C(0xFF000000FFFF);
}

void pmu_select(struct lb_recorder *r, unsigned i, uint64_t select)
{
  r->pmu.select[i] = select;
  r->pmu.event[i] = lb_cpu_event_find(r->cpu, select);
  if (!r->pmu.event[i] && (select & EVTSEL_EN) && (select & 0xFF))
    pmu_note_unmodelled(r, select & event_bits(r));
}

int lb_recorder_unmodelled(const struct lb_recorder *r, unsigned index, uint64_t *ret_select)
{
  if (index >= r->pmu.unmodelled_count)
    return LB_E_NO_FIELD;
  *ret_select = r->pmu.unmodelled[index];
  return 0;
}

/* ---- counting ---- */

uint64_t pmu_outcomes(const struct lb_progress *progress, uint32_t outcomes)
{
  uint64_t count = 0;

  for (unsigned i = 0; i < LB_OUTCOMES; i++) {
    count += outcomes >> i & 1 ? progress->predicted[i] : 0;
    count += outcomes >> (16 + i) & 1 ? progress->mispredicted[i] : 0;
  }
  return count;
}

static uint64_t event_count(const struct lb_pmu_event *event, const struct lb_progress *progress)
{
  if (!event)
    return 0;
  uint64_t count = event->sum == LB_SUM_NONE ? 0 : progress_get(progress, sums[event->sum]);
  return event->outcomes ? count + pmu_outcomes(progress, event->outcomes) : count;
}

/* CMASK counts cycles with at least that many events; with INV, cycles with fewer (SDM 18.2.1.1); with EQ, cycles with
 * exactly that many. Events are taken to be spread evenly over the cycles of a report; without cycles to spread them
 * over, their sum counts. */
static uint64_t threshold_count(uint64_t select, uint64_t count, uint64_t cycles)
{
  uint64_t least = EVTSEL_CMASK(select);

  if (!least || !cycles)
    return count;
  uint64_t each = count / cycles, above = each + 1 == least ? count % cycles : 0;
  uint64_t busy = each >= least ? cycles : above;
  if (select & EVTSEL_EQ)
    busy = each == least ? cycles - count % cycles : above;
  return select & EVTSEL_INV ? cycles - busy : busy;
}

static bool counter_is_on(const struct lb_recorder *r, unsigned i)
{
  uint64_t enable = r->pmu.select[r->cpu->pmu->kind == LB_PMU_P6 ? 0 : i]; /* P6: one EN for both */

  if (!(enable & EVTSEL_EN))
    return false;
  return !pmu_has_status(r) || ((r->pmu.ctrl >> i & 1) && !(r->pmu.status & STATUS_CTR_FRZ));
}

/* P6: pin i reports counter i unless PBi gives it to DRi. PC=1: each increment; PC=0: overflow. SDM 18.15.8. */
static void pin_report(struct lb_recorder *r, unsigned i, bool is_overflow)
{
  uint64_t pin = i < 4 ? lb_cpu_debugctl(r->cpu, (enum lb_debugctl_bit)(LB_DEBUGCTL_PB0 + i)) : 0;
  bool on_increment = r->pmu.select[i] & EVTSEL_PC;

  if (!pin || (r->debugctl & pin) || (!on_increment && !is_overflow))
    return;
  if (r->host.pin && !is_amd(r))
    r->host.pin(r->host.data, i);
}

void pmu_advance(struct lb_recorder *r, unsigned i, uint64_t count, uint64_t *overflowed)
{
  uint64_t mask = unit_mask(r->cpu->pmu->width);
  bool is_overflow = count > mask - r->pmu.counter[i];

  r->pmu.counter[i] = (r->pmu.counter[i] + count) & mask;
  *overflowed |= (uint64_t)is_overflow << i;
}

bool lb_recorder_counts(const struct lb_recorder *r, enum lb_sum sum)
{
  for (unsigned i = 0; i < r->cpu->pmu->counters; i++)
    if (r->pmu.event[i] && r->pmu.event[i]->sum == sum && counter_is_on(r, i))
      return true;
  return false;
}

static uint64_t general_progress(struct lb_recorder *r, const struct lb_progress *progress)
{
  uint64_t overflowed = 0;

  for (unsigned i = 0; i < r->cpu->pmu->counters; i++) {
    uint64_t select = r->pmu.select[i];

    if (!counter_is_on(r, i) || !(select & (progress->cpl ? EVTSEL_USR : EVTSEL_OS)))
      continue;
    uint64_t count = threshold_count(select, event_count(r->pmu.event[i], progress), progress->cycles);
    if (!count)
      continue;
    pmu_advance(r, i, count, &overflowed);
    pin_report(r, i, overflowed >> i & 1);
    if (i < 4 && (select & EVTSEL_EN_LBR_LOG)) {
      uint64_t sum = r->lbr.events[i] + count;

      r->lbr.events[i] = sum < 3 ? (uint8_t)sum : 3;
    }
  }
  return overflowed;
}

static uint64_t fixed_progress(struct lb_recorder *r, const struct lb_progress *progress)
{
  const uint64_t counts[LB_FIXED_MAX] = {
    progress->instructions,
    progress->cycles,
    progress->reference_cycles,
    progress->slots,
    progress->metrics[LB_METRIC_BAD_SPECULATION],
    progress->metrics[LB_METRIC_FRONTEND],
    progress->metrics[LB_METRIC_RETIRING],
  };
  uint64_t mask = unit_mask(r->cpu->pmu->fixed_width);
  uint64_t overflowed = 0;

  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++) {
    unsigned control = r->pmu.fixed_ctrl >> (4 * i) & 0xF;
    bool is_on = (r->pmu.ctrl >> (32 + i) & 1) && !(r->pmu.status & STATUS_CTR_FRZ);

    if (!is_on || !(control & (progress->cpl ? 2 : 1)))
      continue;
    overflowed |= (uint64_t)(counts[i] > mask - r->pmu.fixed[i]) << (32 + i);
    r->pmu.fixed[i] = (r->pmu.fixed[i] + counts[i]) & mask;
  }
  return overflowed;
}

static bool overflow_interrupts(const struct lb_recorder *r, uint64_t overflowed)
{
  for (unsigned i = 0; i < r->cpu->pmu->counters; i++)
    if ((overflowed >> i & 1) && (r->pmu.select[i] & EVTSEL_INT))
      return true;
  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++)
    if ((overflowed >> (32 + i) & 1) && (r->pmu.fixed_ctrl >> (4 * i) & 8))
      return true;
  return (overflowed & STATUS_METRICS) != 0;
}

/* Zen 3: the overflow of the sampling counter starts the capture, and its interrupt is held until the capture ends. */
static uint64_t brs_overflow(struct lb_recorder *r, uint64_t overflowed)
{
  unsigned sampler = (r->lbr.extn & EXTN_PMC) >> EXTN_PMC_SHIFT;

  if (!lb_cpu_has(r->cpu, LB_FEATURE_BRS) || !(r->lbr.extn & EXTN_BRSMEN) || !(overflowed >> sampler & 1))
    return overflowed;
  lbr_brs_begin(r, (r->pmu.select[sampler] & EVTSEL_INT) != 0);
  return overflowed & ~(UINT64_C(1) << sampler);
}

static void overflow(struct lb_recorder *r, uint64_t overflowed)
{
  if (pmu_has_status(r))
    r->pmu.status |= overflowed;
  r->ds.due |= overflowed & r->ds.pebs_enable & pebs_samplers(r);
  overflowed = brs_overflow(r, overflowed);
  if (overflow_interrupts(r, overflowed))
    pmi_request(r, PMI_COUNTER);
}

bool lb_recorder_progress(struct lb_recorder *r, const struct lb_progress *progress)
{
  lb_recorder_clock(r, progress->cycles - progress->clocked);
  if (r->cpu->pmu->kind == LB_PMU_P4) {
    if (pmu_p4_progress(r, progress))
      pmi_request(r, PMI_COUNTER);
  } else {
    uint64_t overflowed = general_progress(r, progress) | fixed_progress(r, progress) | metrics_progress(r, progress);
    if (overflowed)
      overflow(r, overflowed);
  }
  return r->ds.due != 0;
}
