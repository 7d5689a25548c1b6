/* SPDX-License-Identifier: Apache-2.0
 *
 * lb_ds_check: which of the manual's requirements a guest's DS area violates. Real processors check none of them; they
 * misbehave. Intel SDM vol. 3 (June 2016) 17.4.9.1 to 17.4.9.3; Zhang Yinkui 5.3.1.
 */
#include "base/base.h"
#include "recorder/unit.h"

#define RULE(name) (UINT32_C(1) << LB_DS_##name)
#define PAGE 4096u
#define PAGES_MAX 4096 /* pages of one range that are checked: 16 MiB */

/* One of the two buffers, with the rules that it can violate. */
struct buffer {
  uint64_t base, index, maximum, threshold;
  uint64_t record; /* bytes of a record, 0 if the size varies */
  uint64_t least;  /* bytes that one record needs */
  uint32_t alignment, size, too_small, index_rule, threshold_rule;
};

static bool is_canonical(uint64_t address)
{
  return format_canonical(address) == address;
}

static bool buffer_is_canonical(const struct buffer *b)
{
  return is_canonical(b->base) && is_canonical(b->index) && is_canonical(b->maximum) && is_canonical(b->threshold);
}

/* Whether `place` is on a record boundary of the buffer. An absolute maximum may be one byte further. */
static bool is_boundary(const struct buffer *buffer, uint64_t place)
{
  return buffer->record == 0 || (place - buffer->base) % buffer->record == 0;
}

static uint32_t buffer_check(const struct buffer *b)
{
  uint32_t broken = 0;
  uint64_t length = b->maximum - b->base;

  if (b->base % 4)
    broken |= b->alignment;
  if (b->maximum < b->base || length < b->least || length == 0)
    return broken | b->too_small;
  if (b->record && length % b->record > 1)
    broken |= b->size;
  if (b->index < b->base || b->index > b->maximum || !is_boundary(b, b->index))
    broken |= b->index_rule;
  if (b->threshold < b->base || (b->threshold <= b->maximum && !is_boundary(b, b->threshold)))
    broken |= b->threshold_rule;
  return broken;
}

/* ---- pages ---- */

static uint32_t page_check(const struct lb_ds_facts *facts, uint64_t linear)
{
  unsigned page = facts->page(facts->data, linear);
  uint32_t broken = 0;

  if (!(page & LB_DS_PAGE_PRESENT))
    return RULE(NOT_PRESENT);
  if (!(page & LB_DS_PAGE_ACCESSED) || !(page & LB_DS_PAGE_DIRTY))
    broken |= RULE(NOT_ACCESSED);
  if (!(page & LB_DS_PAGE_SUPERVISOR) || !(page & LB_DS_PAGE_GLOBAL))
    broken |= RULE(NOT_KERNEL);
  if (page & LB_DS_PAGE_CODE)
    broken |= RULE(CODE_PAGE);
  return broken;
}

struct range {
  uint64_t first, size;
};

static uint32_t range_check(const struct lb_ds_facts *facts, const struct range *range)
{
  uint32_t broken = 0;
  uint64_t first = range->first / PAGE;
  uint64_t last = (range->first + range->size - 1) / PAGE;

  for (uint64_t i = 0; range->size && i < PAGES_MAX && i <= last - first; i++) {
    uint64_t linear = (first + i) * PAGE;

    if (facts->page)
      broken |= page_check(facts, linear);
    if (facts->a20_is_masked && linear >> 20 & 1)
      broken |= RULE(A20);
  }
  return broken;
}

static bool ranges_overlap(const struct range *one, const struct range *other)
{
  return one->size && other->size && one->first < other->first + other->size && other->first < one->first + one->size;
}

/* ---- facts that only the host knows ---- */

static uint32_t interrupt_check(const struct lb_ds_facts *facts)
{
  uint32_t broken = 0;
  unsigned mode = facts->lvt_perf >> 8 & 7; /* 0 fixed, 4 NMI: an NMI goes through vector 2's gate */

  if (!facts->apic_is_enabled)
    return RULE(NO_APIC);
  if (facts->lvt_perf >> 16 & 1 || (mode != 0 && mode != 4))
    broken |= RULE(LVT);
  if ((facts->gate_type & 0xF) != 0xE)
    broken |= RULE(TRAP_GATE);
  return broken;
}

static uint32_t facts_check(const struct lb_ds_facts *facts, const struct range *ranges, unsigned count)
{
  uint32_t broken = interrupt_check(facts);

  if (facts->is_shared)
    broken |= RULE(SHARED);
  for (unsigned i = 0; i < count; i++)
    broken |= range_check(facts, &ranges[i]);
  return broken;
}

/* ---- the area ---- */

static bool pebs_is_used(const struct lb_recorder *r)
{
  return r->cpu->ds->pebs != LB_PEBS_NONE && r->ds.pebs_enable;
}

/* A guest that uses PEBS alone leaves the BTS fields 0. */
static bool bts_is_used(const struct lb_recorder *r, const struct lb_ds_area *area)
{
  return unit_debugctl(r, LB_DEBUGCTL_BTS) || area->bts_base || area->bts_maximum || !pebs_is_used(r);
}

/* With adaptive PEBS, records of several sizes may share a buffer: boundaries are not checked then, only that one
 * record fits. */
static uint64_t pebs_record(const struct lb_recorder *r)
{
  return unit_has_adaptive_pebs(r) ? 0 : pebs_record_size(r, r->ds.pebs_enable);
}

static uint32_t circular_check(const struct lb_recorder *r, const struct lb_ds_area *area)
{
  bool is_circular = unit_debugctl(r, LB_DEBUGCTL_BTS) && !unit_debugctl(r, LB_DEBUGCTL_BTINT);

  return is_circular && area->bts_threshold <= area->bts_maximum ? RULE(BTS_CIRCULAR) : 0;
}

static uint32_t area_check(const struct lb_recorder *r, const struct lb_ds_area *area)
{
  struct buffer bts = {.base = area->bts_base,
                       .index = area->bts_index,
                       .maximum = area->bts_maximum,
                       .threshold = area->bts_threshold,
                       .record = ds_layout(area->is_64)->bts,
                       .least = ds_layout(area->is_64)->bts,
                       .alignment = RULE(BTS_ALIGNMENT),
                       .size = RULE(BTS_SIZE),
                       .too_small = RULE(BTS_TOO_SMALL),
                       .index_rule = RULE(BTS_INDEX),
                       .threshold_rule = RULE(BTS_THRESHOLD)};
  struct buffer pebs = {.base = area->pebs_base,
                        .index = area->pebs_index,
                        .maximum = area->pebs_maximum,
                        .threshold = area->pebs_threshold,
                        .record = pebs_record(r),
                        .least = pebs_record_size(r, r->ds.pebs_enable),
                        .alignment = RULE(PEBS_ALIGNMENT),
                        .size = RULE(PEBS_SIZE),
                        .too_small = RULE(PEBS_TOO_SMALL),
                        .index_rule = RULE(PEBS_INDEX),
                        .threshold_rule = RULE(PEBS_THRESHOLD)};
  uint32_t broken = bts_is_used(r, area) ? buffer_check(&bts) | circular_check(r, area) : 0;

  if (r->ds.area % 4)
    broken |= RULE(AREA_ALIGNMENT);
  if (pebs_is_used(r))
    broken |= buffer_check(&pebs);
  if (!buffer_is_canonical(&bts) || (pebs_is_used(r) && !buffer_is_canonical(&pebs)))
    broken |= RULE(NOT_CANONICAL);
  return broken;
}

static uint64_t length_of(uint64_t base, uint64_t maximum)
{
  return maximum > base ? maximum - base : 0;
}

uint32_t lb_ds_check(const struct lb_recorder *recorder, const struct lb_ds_facts *facts)
{
  struct lb_ds_area area;

  if (ds_area_read(recorder, &area) < 0)
    return RULE(UNREADABLE);
  bool has_pebs = pebs_is_used(recorder);
  struct range ranges[] = {
    {recorder->ds.area, pebs_area_size(recorder)},
    {area.bts_base, length_of(area.bts_base, area.bts_maximum)},
    {has_pebs ? area.pebs_base : 0, has_pebs ? length_of(area.pebs_base, area.pebs_maximum) : 0},
  };
  uint32_t broken = area_check(recorder, &area);
  for (unsigned i = 0; i < 3; i++)
    if (ranges_overlap(&ranges[i], &ranges[(i + 1) % 3]))
      broken |= RULE(OVERLAP);
  return facts ? broken | facts_check(facts, ranges, 3) : broken;
}

static const char *const rule_text[][3] = {
#define LB_DS_RULE(name, text, source) {#name, text, source},
#include "lastbranch/ds_rule.def"
#undef LB_DS_RULE
};

const char *lb_ds_rule_name(unsigned rule)
{
  return rule < LB_DS_RULES ? rule_text[rule][0] : "?";
}

const char *lb_ds_rule_text(unsigned rule)
{
  return rule < LB_DS_RULES ? rule_text[rule][1] : "?";
}

const char *lb_ds_rule_source(unsigned rule)
{
  return rule < LB_DS_RULES ? rule_text[rule][2] : "?";
}
