/* SPDX-License-Identifier: Apache-2.0
 *
 * The slots of top-down analysis: computes each category's share of the executed slots. doc/machine.md has the model.
 */
#include "cpu/counter.h"

#include "cpu/run.h"

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

/* Every category is a sum over instructions, so that the result does not depend on the number of instructions in a
 * report. */
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
