/* SPDX-License-Identifier: Apache-2.0
 *
 * The Pentium 4's performance counters: 18 of them, each with a CCCR that names an ESCR, which names an event. Intel
 * SDM vol. 3 (June 2016) 18.15 and tables 18-53 (ESCR select values), 19-27, 19-28 (events). Four events are modelled:
 * instructions and mispredicted branches retired, branches retired, and clock cycles.
 */
#include "recorder/unit.h"

#define CCCR_FORCE_OVF (UINT64_C(1) << 25)
#define CCCR_OVF_PMI (UINT64_C(1) << 26)
#define CCCR_OVF (UINT64_C(1) << 31)
#define ESCR_USR (UINT64_C(1) << 2)
#define ESCR_OS (UINT64_C(1) << 3)
#define PEBS_COUNTER 16                        /* MSR_IQ_COUNTER4 */
#define PEBS_ENABLE_MY_THR (UINT64_C(1) << 25) /* bit 24 only tags micro-ops for replay: SDM table 35-41 */

/* ESCR select values of a CCCR, and where r->pmu.escr keeps the pair that belongs to it. */
enum { SELECT_CRU_01 = 4, SELECT_CRU_23 = 5, SELECT_FSB = 6 };

struct p4_event {
  uint8_t select, event;
  uint8_t field;     /* offset in struct lb_progress of the sum to count: always if `mask` is 0, */
  uint8_t mask;      /* otherwise only with all these bits of the event mask */
  uint32_t outcomes; /* branches that count with any event mask, as in struct lb_pmu_event */
  bool by_outcome;   /* bits 3:0 of the event mask are MMNP, MMNM, MMTP, MMTM: not taken and predicted, ... */
};

#define NOT_TAKEN (UINT32_C(1) << LB_OUTCOME_NOT_TAKEN)
#define BRANCHES ((UINT32_C(1) << LB_OUTCOME_EVENT) - 1) /* every outcome except the last */

static const struct p4_event p4_events[] = {
  {SELECT_FSB, 0x13, offsetof(struct lb_progress, cycles), 0, 0, false},          /* global_power_events */
  {SELECT_CRU_01, 0x02, offsetof(struct lb_progress, instructions), 0, 0, false}, /* instr_retired */
  {SELECT_CRU_01, 0x03, offsetof(struct lb_progress, mispredicts), 0, BRANCHES << 16,
   false},                                                                     /* mispred_branch_retired */
  {SELECT_CRU_23, 0x06, offsetof(struct lb_progress, branches), 0xF, 0, true}, /* branch_retired */
};

static const uint32_t by_mask[4] = {NOT_TAKEN, NOT_TAKEN << 16, BRANCHES & ~NOT_TAKEN, (BRANCHES & ~NOT_TAKEN) << 16};

/* Counters 0, 1 and 12, 13, 16 go with the even ESCR of a pair, 2, 3 and 14, 15, 17 with the odd one. */
static int escr_index(unsigned counter, unsigned select)
{
  if (counter < 4 && select == SELECT_FSB)
    return counter / 2;
  if (counter < 12 || (select != SELECT_CRU_01 && select != SELECT_CRU_23))
    return -1;
  unsigned odd = counter < 16 ? (counter - 12) / 2 : counter - 16;
  return (int)((select == SELECT_CRU_01 ? 2 : 4) + odd);
}

static const struct p4_event *p4_event(unsigned select, uint64_t escr)
{
  for (unsigned i = 0; i < sizeof(p4_events) / sizeof(p4_events[0]); i++)
    if (p4_events[i].select == select && p4_events[i].event == (escr >> 25 & 0x3F))
      return &p4_events[i];
  return NULL;
}

static uint64_t p4_event_count(const struct p4_event *event, uint64_t escr, const struct lb_progress *progress)
{
  unsigned mask = escr >> 9 & 0xFFFF;
  uint32_t outcomes = event->outcomes;

  for (unsigned i = 0; i < 4 && event->by_outcome; i++)
    outcomes |= mask >> i & 1 ? by_mask[i] : 0;
  uint64_t count = (mask & event->mask) == event->mask ? progress_get(progress, event->field) : 0;
  return outcomes ? count + pmu_outcomes(progress, outcomes) : count;
}

/* Reports a counter that is enabled with an event that is not modelled. The ESCR is written before the CCCR. */
bool pmu_p4_cccr(struct lb_recorder *r, unsigned counter, uint64_t value)
{
  unsigned select = value >> 13 & 7;
  int index = escr_index(counter, select);
  uint64_t escr = index < 0 ? 0 : r->pmu.escr[index];

  r->pmu.select[counter] = value & UINT32_MAX;
  if ((value & CCCR_ENABLE) && !p4_event(select, escr))
    pmu_note_unmodelled(r, (uint64_t)select << 32 | (escr & 0x7FFFFE00));
  return true;
}

static uint64_t p4_count(const struct lb_recorder *r, unsigned counter, const struct lb_progress *progress)
{
  unsigned select = r->pmu.select[counter] >> 13 & 7;
  int index = escr_index(counter, select);

  if (index < 0 || !(r->pmu.escr[index] & (progress->cpl ? ESCR_USR : ESCR_OS)))
    return 0;
  const struct p4_event *event = p4_event(select, r->pmu.escr[index]);
  return event ? p4_event_count(event, r->pmu.escr[index], progress) : 0;
}

/* Returns nonzero if a PMI is due. FORCE_OVF makes every increment an overflow. */
uint64_t pmu_p4_progress(struct lb_recorder *r, const struct lb_progress *progress)
{
  uint64_t interrupts = 0;

  for (unsigned i = 0; i < r->cpu->pmu->counters; i++) {
    uint64_t overflowed = 0;
    uint64_t count = r->pmu.select[i] & CCCR_ENABLE ? p4_count(r, i, progress) : 0;

    if (!count)
      continue;
    pmu_advance(r, i, count, &overflowed);
    if (!overflowed && !(r->pmu.select[i] & CCCR_FORCE_OVF))
      continue;
    r->pmu.select[i] |= CCCR_OVF;
    if (r->pmu.select[i] & CCCR_OVF_PMI)
      interrupts |= UINT64_C(1) << i;
    if (i == PEBS_COUNTER && (r->ds.pebs_enable & PEBS_ENABLE_MY_THR))
      r->ds.due |= UINT64_C(1) << PEBS_COUNTER;
  }
  return interrupts;
}
