/* SPDX-License-Identifier: Apache-2.0
 *
 * The LBR stack and LER as a host sees them: decoded records, newest first.
 */
#include "recorder/unit.h"

int lb_recorder_entry(const struct lb_recorder *r, unsigned age, struct lb_record *ret_record)
{
  if (age >= r->depth)
    return LB_E_NO_ENTRY;
  unsigned index = lbr_index(r, age);
  struct lb_raw raw = slot_raw(&r->entries[index]);
  *ret_record = lb_record_decode(r->cpu, &raw);
  ret_record->index = r->cpu->lbr->is_newest_first ? age : index;
  ret_record->kind = (uint8_t)slot_kind(&r->entries[index]);
  return 0;
}

unsigned lb_recorder_used(const struct lb_recorder *r)
{
  unsigned used = 0;

  for (unsigned i = 0; i < r->depth; i++) {
    struct lb_raw raw = slot_raw(&r->entries[i]);

    used += !lb_record_decode(r->cpu, &raw).is_empty;
  }
  return used;
}

int lb_recorder_ler(const struct lb_recorder *r, struct lb_record *ret_record)
{
  if (!lb_cpu_has(r->cpu, LB_FEATURE_LER))
    return LB_E_NO_ENTRY;
  struct lb_raw raw = slot_raw(&r->lbr.ler);
  *ret_record = format_decode(r->cpu, lb_cpu_pair_format(r->cpu), &raw);
  ret_record->kind = (uint8_t)slot_kind(&r->lbr.ler);
  return 0;
}

bool lb_recorder_is_recording(const struct lb_recorder *r)
{
  return r->armed & (ARMED_LBR | ARMED_BRS);
}

bool lb_recorder_takes(const struct lb_recorder *r, unsigned kind, unsigned to_cpl)
{
  return (r->armed & ARMED_LBR) && (r->lbr_kinds[to_cpl != 0] >> kind & 1);
}
