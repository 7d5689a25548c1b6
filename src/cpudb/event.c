/* SPDX-License-Identifier: Apache-2.0
 *
 * The events that a CPU's counters count: one table for all CPUs (event.def), and the set of its rows that each has
 * (event_set.def).
 */
#include "cpudb/cpudb.h"
#include "cpudb/tables.h"
#include "lastbranch/branch.h"
#include "lastbranch/error.h"

enum event_set {
#define LB_EVENT_SET(set, source) SET_##set,
#include "cpudb/event_set.def"
#undef LB_EVENT_SET
  EVENT_SETS,
};

_Static_assert(EVENT_SETS <= 64, "a set is a bit of a 64-bit word");

/* ---- macros for event.def: sets ---- */

#define S(set) (UINT64_C(1) << SET_##set)
#define FROM_TO(first, last) ((S(last) << 1) - S(first)) /* in the order of event_set.def */
#define INTEL_ARCH FROM_TO(DUO, ARCH)
#define P6_DUO (S(P6) | S(DUO))
#define DUO_CORE2 (S(DUO) | S(CORE2))
#define CORE2_BNL (S(CORE2) | S(BNL))
#define SLM_GLP (S(SLM) | S(GLM) | S(GLP))
#define SLM_TNT FROM_TO(SLM, TNT)
#define GRT_SKT FROM_TO(GRT, SKT)
#define SLM_SKT FROM_TO(SLM, SKT)
#define NHM_WSM FROM_TO(NHM, WSM)
#define SNB_BDW FROM_TO(SNB, BDW)
#define SNB_SKL FROM_TO(SNB, SKL)
#define IVB_SKL FROM_TO(IVB, SKL)
#define ICL_RWC FROM_TO(ICL, RWC)
#define ICL_LNC FROM_TO(ICL, LNC)
#define RWC_LNC FROM_TO(RWC, LNC)
#define CGC_DKT (S(CGC) | S(DKT))
#define SLOTS_4 FROM_TO(ICL, CGC)
#define INSERTS_E4 (FROM_TO(GRT, DKT) | FROM_TO(LNC, CGC))
#define AMD FROM_TO(K7, ZEN4)
#define AMD_OLD FROM_TO(K7, F16)
#define AMD_K8 FROM_TO(K8, ZEN4)
#define AMD_ZEN FROM_TO(ZEN1, ZEN4)
#define AMD_ZEN2 FROM_TO(ZEN2, ZEN4)
#define AMD_ZEN3 FROM_TO(ZEN3, ZEN4)
/* PEBS works with the architectural events */
#define PRECISE_NEW FROM_TO(ICL, CGC)
#define PRECISE_INSTRUCTIONS (S(CORE2) | S(BNL) | S(KNL) | FROM_TO(GLM, DKT) | PRECISE_NEW)
#define PRECISE_BRANCHES (FROM_TO(SLM, DKT) | PRECISE_NEW)
#define PRECISE_MISSES (CORE2_BNL | FROM_TO(SLM, DKT) | PRECISE_NEW)

/* ---- macros for event.def: outcomes ---- */

#define ANY 0x100 /* no unit mask has this value */
#define O(outcome) (UINT32_C(1) << LB_OUTCOME_##outcome)
#define COND_TAKEN (O(TAKEN_FORWARD) | O(TAKEN_BACKWARD))
#define COND (O(NOT_TAKEN) | COND_TAKEN)
#define CALL (O(REL_CALL) | O(IND_CALL))
#define INDIRECT (O(IND_JMP) | O(IND_CALL))
#define NON_CALL (COND | O(REL_JMP) | O(IND_JMP))
#define UNCOND (O(REL_JMP) | O(IND_JMP) | CALL | O(RET))
#define NEAR_TAKEN (COND_TAKEN | UNCOND)
#define NEAR (O(NOT_TAKEN) | NEAR_TAKEN)
#define TAKEN (NEAR_TAKEN | O(FAR))
#define ALL (NEAR | O(FAR))
#define RIGHT(outcomes) (outcomes)
#define WRONG(outcomes) ((uint32_t)(outcomes) << 16)
#define BOTH(outcomes) (RIGHT(outcomes) | WRONG(outcomes))

_Static_assert(LB_OUTCOMES <= 16, "predicted and mispredicted outcomes share 32 bits");

struct row {
  uint64_t sets, precise;
  struct lb_pmu_event event;
};

static const struct row rows[] = {
#define LB_EVENT(sets_, precise_, select_, mask_, mask_2_, sum_, outcomes_, name_)                                     \
  {.sets = (sets_),                                                                                                    \
   .precise = (precise_),                                                                                              \
   .event = {.name = (name_),                                                                                          \
             .select = (select_),                                                                                      \
             .mask = (mask_)&0xFF,                                                                                     \
             .mask_2 = (mask_2_),                                                                                      \
             .has_mask = (mask_) != ANY,                                                                               \
             .sum = LB_SUM_##sum_,                                                                                     \
             .outcomes = (outcomes_)}},
#include "cpudb/event.def"
#undef LB_EVENT
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- events of a CPU ---- */

static const uint8_t cpu_sets[] = {
#define LB_CPU(row, set, ...) [CPUDB_##row] = SET_##set,
#include "cpudb/cpu.def"
#include "cpudb/cpu_amd.def"
#undef LB_CPU
};

static unsigned set_of(const struct lb_cpu *cpu)
{
  return cpu_sets[cpudb_row(cpu)];
}

/* A second unit mask needs a CPU whose event selects have one. */
static bool row_is_of(const struct row *row, const struct lb_cpu *cpu)
{
  uint64_t mask_2 = (uint64_t)row->event.mask_2 << 40;

  return (row->sets >> set_of(cpu) & 1) && (cpu->pmu->evtsel & mask_2) == mask_2;
}

int lb_cpu_event(const struct lb_cpu *cpu, unsigned index, struct lb_pmu_event *ret_event)
{
  for (unsigned i = 0; i < ROWS; i++)
    if (row_is_of(&rows[i], cpu) && !index--) {
      *ret_event = rows[i].event;
      ret_event->is_precise = (rows[i].precise >> set_of(cpu) & 1) && cpu->pmu->pebs_counters;
      return 0;
    }
  return LB_E_NO_FIELD;
}

static bool is_amd(const struct lb_cpu *cpu)
{
  return cpu->pmu->kind == LB_PMU_AMD || cpu->pmu->kind == LB_PMU_AMD_V2;
}

struct lb_event_code lb_cpu_event_code(const struct lb_cpu *cpu, uint64_t select)
{
  struct lb_event_code code = {.select = select & 0xFF, .mask = select >> 8 & 0xFF};

  if (is_amd(cpu))
    code.select |= (uint16_t)((select >> 32 & 0xF) << 8);
  else
    code.mask_2 = select >> 40 & 0xFF;
  return code;
}

const struct lb_pmu_event *lb_cpu_event_find(const struct lb_cpu *cpu, uint64_t select)
{
  struct lb_event_code code = lb_cpu_event_code(cpu, select);

  for (unsigned i = 0; i < ROWS; i++) {
    const struct lb_pmu_event *event = &rows[i].event;
    bool is_mask = !event->has_mask || (event->mask == code.mask && event->mask_2 == code.mask_2);

    if (event->select == code.select && is_mask && row_is_of(&rows[i], cpu))
      return event;
  }
  return NULL;
}

const char *lb_cpu_event_source(const struct lb_cpu *cpu)
{
  static const char *const sources[] = {
#define LB_EVENT_SET(set, source) source,
#include "cpudb/event_set.def"
#undef LB_EVENT_SET
  };

  return sources[set_of(cpu)];
}
