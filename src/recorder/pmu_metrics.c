/* SPDX-License-Identifier: Apache-2.0
 *
 * PERF_METRICS: the shares that the categories of top-down analysis have in the slots of fixed counter 3, each as a
 * byte in units of 1/255. Each byte is computed from a counter of slots, which is as wide as the fixed counters. Intel
 * SDM vol. 3, 19.3.9.3 (Performance Metrics); Linux events/intel/core.c, icl_update_topdown_event.
 */
#include "recorder/unit.h"

#define WHOLE 255u /* the level 1 bytes add up to this */
#define SLOTS_FIXED 3u

/* Level 2 came with Golden Cove, as architectural LBR did. */
static unsigned metric_count(const struct lb_recorder *r)
{
  return lb_cpu_has(r->cpu, LB_FEATURE_ARCH_LBR) ? LB_METRICS : LB_METRICS_LEVEL_1;
}

/* SDM: EN_PERF_METRICS works while fixed counter 3 is effectively enabled. */
static bool metrics_are_on(const struct lb_recorder *r, unsigned levels)
{
  uint64_t enables = STATUS_METRICS | UINT64_C(1) << (32 + SLOTS_FIXED);
  bool is_enabled = unit_has_metrics(r) && (r->pmu.ctrl & enables) == enables && !(r->pmu.status & STATUS_CTR_FRZ);

  return is_enabled && (r->pmu.fixed_ctrl >> (4 * SLOTS_FIXED) & levels);
}

bool lb_recorder_counts_metric(const struct lb_recorder *r, enum lb_metric metric)
{
  return (unsigned)metric < metric_count(r) && metrics_are_on(r, 3);
}

/* Rounds so that the level 1 bytes add up to 255: the bytes that lose most by rounding down get the remainder. */
static void level_1_round(const uint64_t *shares, uint64_t total, uint64_t *ret_bytes)
{
  uint64_t rest[LB_METRICS_LEVEL_1], left = WHOLE;

  for (unsigned i = 0; i < LB_METRICS_LEVEL_1; i++) {
    ret_bytes[i] = shares[i] * WHOLE / total;
    rest[i] = shares[i] * WHOLE % total;
    left -= ret_bytes[i];
  }
  for (; left; left--) {
    unsigned most = 0;

    for (unsigned i = 1; i < LB_METRICS_LEVEL_1; i++)
      most = rest[i] > rest[most] ? i : most;
    ret_bytes[most]++;
    rest[most] = 0;
  }
}

uint64_t metrics_get(const struct lb_recorder *r)
{
  uint64_t bytes[LB_METRICS] = {0}, total = 0, value = 0;

  for (unsigned i = 0; i < LB_METRICS_LEVEL_1; i++)
    total += r->pmu.shares[i];
  if (r->pmu.metrics_are_written || !total)
    return r->pmu.metrics;
  level_1_round(r->pmu.shares, total, bytes);
  for (unsigned i = 0; i < metric_count(r); i++) {
    uint64_t most = i < LB_METRICS_LEVEL_1 ? WHOLE : bytes[i - LB_METRICS_LEVEL_1];

    if (i >= LB_METRICS_LEVEL_1)
      bytes[i] = r->pmu.shares[i] < total ? r->pmu.shares[i] * WHOLE / total : WHOLE;
    value |= (bytes[i] < most ? bytes[i] : most) << (8 * i);
  }
  return value;
}

/* Software that restores the register has restored fixed counter 3 before it, so the bytes are shares of that counter's
 * slots. */
bool metrics_set(struct lb_recorder *r, uint64_t value)
{
  if (value & ~unit_mask(8 * metric_count(r)))
    return false;
  for (unsigned i = 0; i < LB_METRICS; i++)
    r->pmu.shares[i] = (value >> (8 * i) & 0xFF) * r->pmu.fixed[SLOTS_FIXED] / WHOLE;
  r->pmu.metrics = value;
  r->pmu.metrics_are_written = true;
  return true;
}

uint64_t metrics_progress(struct lb_recorder *r, const struct lb_progress *progress)
{
  uint64_t mask = unit_mask(r->cpu->pmu->fixed_width);
  bool is_overflow = false;

  if (!progress->slots || !metrics_are_on(r, progress->cpl ? 2 : 1))
    return 0;
  for (unsigned i = 0; i < metric_count(r); i++) {
    is_overflow |= progress->metrics[i] > mask - r->pmu.shares[i];
    r->pmu.shares[i] = (r->pmu.shares[i] + progress->metrics[i]) & mask;
  }
  r->pmu.metrics_are_written = false;
  return is_overflow ? STATUS_METRICS : 0;
}
