/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the unit's state to bytes and back. The bytes contain neither derived state (armed, masks, the tables of the
 * fast path), which unit_update computes again, nor the host's part (callbacks, mapped pages, the sibling thread). The
 * bytes may be forged, so every number that is an index or a size is checked. Other register values are the guest's to
 * write, and nothing here trusts them.
 */
#include "base/base.h"
#include "recorder/unit.h"

#define STATE_VERSION 4u

static void slot_archive(struct archive *archive, struct lb_slot *slot)
{
  archive_value(archive, &slot->from);
  archive_value(archive, &slot->to);
  archive_value(archive, &slot->info);
}

static bool depth_is_possible(const struct lb_recorder *r)
{
  uint32_t depth = r->depth;

  if (depth == lb_cpu_depth(r->cpu))
    return true;
  return unit_is_arch(r) && depth && depth <= LB_DEPTH_MAX && depth % 8 == 0 &&
         (r->cpu->leaf_1c[0] >> (depth / 8 - 1) & 1);
}

static void stack_archive(struct archive *archive, struct lb_recorder *r)
{
  archive_value(archive, &r->depth);
  archive_value(archive, &r->next);
  if (!depth_is_possible(r) || r->next % sizeof(struct lb_slot) ||
      r->next >= (r->depth ? r->depth : 1) * sizeof(struct lb_slot))
    archive_refuse(archive);
  archive_most(archive, &r->cycles, unit_has_cycles(r) ? 0xFFFF : 0);
  for (unsigned i = 0; i < LB_DEPTH_MAX; i++)
    slot_archive(archive, &r->entries[i]);
}

static void lbr_archive(struct archive *archive, struct lb_recorder *r)
{
  slot_archive(archive, &r->lbr.last);
  slot_archive(archive, &r->lbr.ler);
  slot_archive(archive, &r->lbr.executed);
  archive_value(archive, &r->lbr.select);
  archive_value(archive, &r->lbr.ctl);
  archive_value(archive, &r->lbr.extn);
  archive_array(archive, r->lbr.events);
  archive_flag(archive, &r->lbr.cycles_valid);
  archive_flag(archive, &r->lbr.is_capturing);
  archive_flag(archive, &r->lbr.is_holding);
}

static void ds_archive(struct archive *archive, struct lb_recorder *r)
{
  archive_value(archive, &r->ds.area);
  archive_value(archive, &r->ds.pebs_enable);
  archive_value(archive, &r->ds.data_cfg);
  archive_value(archive, &r->ds.matrix);
  archive_value(archive, &r->ds.load_latency);
  archive_array_most(archive, r->ds.reload, unit_mask(r->cpu->pmu->width));
  archive_array_most(archive, r->ds.reload_fixed, unit_mask(r->cpu->pmu->fixed_width));
  archive_value(archive, &r->ds.due);
  if (r->ds.due & ~(r->cpu->pmu->kind == LB_PMU_P4 ? unit_mask(LB_COUNTERS_MAX) : pmu_enables(r)))
    archive_refuse(archive);
  archive_flag(archive, &r->ds.is_stopped);
}

static void counters_archive(struct archive *archive, struct lb_recorder *r)
{
  archive_array_most(archive, r->pmu.counter, unit_mask(r->cpu->pmu->width));
  archive_array(archive, r->pmu.select);
  archive_array_most(archive, r->pmu.fixed, unit_mask(r->cpu->pmu->fixed_width));
  archive_value(archive, &r->pmu.fixed_ctrl);
  archive_array(archive, r->pmu.escr);
  archive_array(archive, r->pmu.unmodelled);
  archive_most(archive, &r->pmu.unmodelled_count, LB_UNMODELLED_MAX);
  archive_value(archive, &r->pmu.status);
  archive_value(archive, &r->pmu.ctrl);
  archive_value(archive, &r->pmu.metrics);
  archive_array_most(archive, r->pmu.shares, unit_mask(r->cpu->pmu->fixed_width));
  archive_flag(archive, &r->pmu.metrics_are_written);
  archive_flag(archive, &r->pmu.is_pending);
  archive_flag(archive, &r->pmu.is_held);
  archive_most(archive, &r->pmu.wanted, PMI_COUNTER | PMI_PEBS | PMI_BTS | PMI_UNCORE);
}

void unit_archive(struct archive *archive, struct lb_recorder *r)
{
  stack_archive(archive, r);
  lbr_archive(archive, r);
  archive_value(archive, &r->debugctl);
  ds_archive(archive, r);
  counters_archive(archive, r);
  archive_value(archive, &r->misc_enable);
  archive_value(archive, &r->smm.debugctl);
  archive_value(archive, &r->smm.ctrl);
  archive_value(archive, &r->smm.ctl);
  archive_flag(archive, &r->smm.is_inside);
  archive_flag(archive, &r->is_long_mode);
  archive_flag(archive, &r->is_pt_on);
  archive_value(archive, &r->unstored);
  archive_value(archive, &r->stored);
  archive_value(archive, &r->lost);
}

size_t lb_recorder_save(const struct lb_recorder *r, void *bytes, size_t size)
{
  struct archive archive = archive_writer(bytes, size);
  struct lb_recorder copy = *r;
  uint32_t version = STATE_VERSION;

  archive_value(&archive, &version);
  unit_archive(&archive, &copy);
  return archive.at;
}

int lb_recorder_load(struct lb_recorder *r, const void *bytes, size_t size)
{
  struct archive archive = archive_reader(bytes, size);
  struct lb_recorder copy = *r;
  uint32_t version = 0;

  archive_value(&archive, &version);
  if (version != STATE_VERSION)
    archive_refuse(&archive);
  unit_archive(&archive, &copy);
  int error = archive_end(&archive);
  if (error < 0)
    return error;
  *r = copy;
  lb_recorder_flush(r);
  pmu_update(r);
  unit_update(r);
  return 0;
}
