/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the LBR stack of a real processor into a recorder. Between stopping and restarting there are only reads of
 * registers, because the processor records nothing meanwhile. The values are examined afterwards.
 */
#include <errno.h>
#include <string.h>

#include "hardware/live.h"
#include "hardware/live_switch.h"

#define VALUES_MAX (3 * LB_DEPTH_MAX + 16)
#define BRS_TRIES 4

/* The values that do not change while recording is off, in the order in which a recorder must get them. */
struct raw {
  struct {
    uint32_t msr;
    uint64_t value;
  } values[VALUES_MAX];
  unsigned count;
};

/* Registers besides the stack, before the entries. The stack is useful without the `optional` ones. */
static const struct {
  enum lb_register id;
  bool is_optional;
} singles[] = {
  {LB_REG_LBR_DEPTH, false}, {LB_REG_LBR_TOS, false},      {LB_REG_AMD_DBG_EXTN_CFG, false}, {LB_REG_LBR_SELECT, false},
  {LB_REG_LAST_FROM, true},  {LB_REG_LAST_TO, true},       {LB_REG_LER_FROM, true},          {LB_REG_LER_TO, true},
  {LB_REG_LER_INFO, true},   {LB_REG_GLOBAL_STATUS, true}, {LB_REG_AMD_GLOBAL_STATUS, true},
};

static void raw_put(struct raw *raw, uint32_t msr, uint64_t value)
{
  raw->values[raw->count].msr = msr;
  raw->values[raw->count++].value = value;
}

/* The mirrors of the newest entry add nothing to it. */
static bool is_wanted(const struct lb_cpu *cpu, enum lb_register id)
{
  bool has_pair = lb_cpu_has(cpu, LB_FEATURE_BRS) || lb_cpu_has(cpu, LB_FEATURE_LBR_V2);

  return (id != LB_REG_LAST_FROM && id != LB_REG_LAST_TO) || has_pair;
}

static int raw_read_single(struct hardware_live *live, enum lb_register id, bool is_optional, struct raw *raw,
                           struct hardware_reading *reading)
{
  struct lb_register_range range = lb_cpu_register(&live->row->cpu, id);
  uint64_t value;
  int r;

  if (!range.count || !is_wanted(&live->row->cpu, id))
    return 0;
  r = live_read(live, range.first, &value);
  if (r == -EIO && is_optional) {
    reading->missing |= UINT64_C(1) << id;
    return 0;
  }
  if (r >= 0)
    raw_put(raw, range.first, value);
  return r;
}

/* The number of entries in use: for architectural LBR, IA32_LBR_DEPTH. */
static int raw_depth(struct hardware_live *live, const struct raw *raw, unsigned *ret_depth)
{
  unsigned depth = lb_cpu_depth(&live->row->cpu);
  uint64_t value;

  *ret_depth = depth;
  if (!live_has(live, LB_REG_LBR_DEPTH))
    return 0;
  value = raw->values[0].value; /* the first of `singles` */
  if (value == 0 || value > depth) {
    live->trouble = (struct hardware_trouble){.error = -ERANGE, .msr = raw->values[0].msr};
    return -ERANGE;
  }
  *ret_depth = (unsigned)value;
  return 0;
}

static int raw_read_run(struct hardware_live *live, enum lb_register id, unsigned depth, struct raw *raw)
{
  struct lb_register_range range = lb_cpu_register(&live->row->cpu, id);
  int r = 0;

  for (unsigned i = 0; i < range.count && i < depth && r >= 0; i++) {
    uint32_t msr = range.first + i * range.stride;
    uint64_t value;

    r = live_read(live, msr, &value);
    if (r >= 0)
      raw_put(raw, msr, value);
  }
  return r;
}

static int raw_read(struct hardware_live *live, struct raw *raw, struct hardware_reading *reading)
{
  static const enum lb_register runs[] = {LB_REG_LBR, LB_REG_LBR_FROM, LB_REG_LBR_TO, LB_REG_LBR_INFO};
  unsigned depth;
  int r = 0;

  raw->count = 0;
  for (size_t i = 0; i < sizeof(singles) / sizeof(*singles) && r >= 0; i++)
    r = raw_read_single(live, singles[i].id, singles[i].is_optional, raw, reading);
  if (r >= 0)
    r = raw_depth(live, raw, &depth);
  for (size_t i = 0; i < sizeof(runs) / sizeof(*runs) && r >= 0; i++)
    r = raw_read_run(live, runs[i], depth, raw);
  return r;
}

static bool raw_find(const struct hardware_live *live, const struct raw *raw, enum lb_register id, uint64_t *ret_value)
{
  struct lb_register_range range = lb_cpu_register(&live->row->cpu, id);

  for (unsigned i = 0; range.count && i < raw->count; i++)
    if (raw->values[i].msr == range.first) {
      *ret_value = raw->values[i].value;
      return true;
    }
  return false;
}

/* Whether records were added while the stack was read. A register that changes with them tells: TOS, the sampling
 * buffer's position, or the newest entry if that is always entry 0. */
static int raw_is_torn(struct hardware_live *live, const struct raw *raw)
{
  static const enum lb_register movers[] = {LB_REG_LBR_TOS, LB_REG_AMD_DBG_EXTN_CFG, LB_REG_LBR_FROM, LB_REG_LBR};

  for (size_t i = 0; i < sizeof(movers) / sizeof(*movers); i++) {
    uint64_t before, now;
    int r;

    if (!raw_find(live, raw, movers[i], &before))
      continue;
    r = live_read_id(live, movers[i], &now);
    if (r < 0 || now != before)
      return r < 0 ? r : 1;
  }
  return 0;
}

/* If recording is off, reads once. If it continues, including branch sampling, reads until nothing changed
 * meanwhile. */
static int raw_read_whole(struct hardware_live *live, bool is_running, struct raw *raw,
                          struct hardware_reading *reading)
{
  bool is_sampling = lb_cpu_has(&live->row->cpu, LB_FEATURE_BRS);
  int r = 0;

  for (int i = 0; i < BRS_TRIES; i++) {
    r = raw_read(live, raw, reading);
    if (r < 0 || (!is_running && !is_sampling))
      return r;
    r = raw_is_torn(live, raw);
    if (r <= 0)
      return r;
  }
  reading->is_torn = true;
  return 0;
}

/* Checks the bits of TOS that are not part of an entry number; the Pentium M's bit 27 has no meaning. */
static void tos_judge(const struct hardware_live *live, const struct raw *raw, struct hardware_reading *reading)
{
  uint64_t known = lb_cpu_depth(&live->row->cpu) - 1u;

  if (lb_cpu_quirk(&live->row->cpu, LB_QUIRK_TOS_BIT_27))
    known |= UINT64_C(1) << 27;
  reading->has_tos = raw_find(live, raw, LB_REG_LBR_TOS, &reading->tos);
  reading->tos_is_odd = reading->has_tos && reading->tos & ~known;
}

/* ---- all of it ---- */

/* The original values of the switches. */
struct controls {
  uint64_t debugctl, ctl, extn;
};

static int controls_read(struct hardware_live *live, struct controls *controls)
{
  int r = live_read_id(live, LB_REG_DEBUGCTL, &controls->debugctl);

  if (r >= 0 && live_has(live, LB_REG_LBR_CTL))
    r = live_read_id(live, LB_REG_LBR_CTL, &controls->ctl);
  if (r >= 0 && live_has(live, LB_REG_AMD_DBG_EXTN_CFG))
    r = live_read_id(live, LB_REG_AMD_DBG_EXTN_CFG, &controls->extn);
  return r;
}

/* Corrects the row by what this CPU reports. */
static int capabilities_read(struct hardware_live *live, struct hardware_reading *reading)
{
  struct lb_cpu *cpu = &live->row->cpu;
  uint64_t value;
  int r;

  if (!live_has(live, LB_REG_PERF_CAPABILITIES))
    return 0;
  r = live_read_id(live, LB_REG_PERF_CAPABILITIES, &value);
  if (r >= 0)
    cpu->perf_capabilities = (uint32_t)value;
  if (r != -EIO)
    return r;
  reading->missing |= UINT64_C(1) << LB_REG_PERF_CAPABILITIES;
  cpu->features &= ~(1u << LB_FEATURE_PDCM);
  return 0;
}

/* Stops recording, reads, and restarts it. */
static int raw_read_stopped(struct hardware_live *live, bool keeps_running, struct raw *raw,
                            struct hardware_reading *reading)
{
  unsigned before = (unsigned)live->undo.count;
  int is_on = hardware_live_is_on(live), r = is_on, restored;

  if (r > 0 && !keeps_running && !live->is_ours) {
    live->trouble = (struct hardware_trouble){.error = -EBUSY};
    return -EBUSY;
  }
  if (r > 0 && !keeps_running)
    r = live_stop(live);
  else if (r >= 0 && live->wait)
    live->wait(live->data);
  if (r >= 0)
    r = raw_read_whole(live, is_on && keeps_running, raw, reading);
  restored = hardware_undo_to(&live->undo, before);
  if (restored < 0)
    live->trouble = (struct hardware_trouble){.error = restored, .is_write = true};
  return restored < 0 ? restored : r;
}

static void raw_load(const struct hardware_live *live, const struct raw *raw, const struct controls *controls,
                     struct lb_recorder *recorder)
{
  const struct lb_cpu *cpu = &live->row->cpu;

  lb_recorder_init(recorder, cpu, NULL, 0);
  lb_recorder_long_mode(recorder, lb_cpu_has(cpu, LB_FEATURE_LONG_MODE));
  for (unsigned i = 0; i < raw->count; i++)
    lb_recorder_put(recorder, raw->values[i].msr, raw->values[i].value);
  lb_recorder_put(recorder, lb_cpu_register(cpu, LB_REG_DEBUGCTL).first, controls->debugctl);
  if (live_has(live, LB_REG_LBR_CTL))
    lb_recorder_put(recorder, lb_cpu_register(cpu, LB_REG_LBR_CTL).first, controls->ctl);
  if (lb_cpu_has(cpu, LB_FEATURE_LBR_V2))
    lb_recorder_put(recorder, lb_cpu_register(cpu, LB_REG_AMD_DBG_EXTN_CFG).first, controls->extn);
}

int hardware_live_read(struct hardware_live *live, bool keeps_running, struct lb_recorder *ret_recorder,
                       struct hardware_reading *ret_reading)
{
  struct hardware_reading reading = {0};
  struct controls controls = {0};
  struct raw raw;
  int r = controls_read(live, &controls);

  if (r >= 0)
    r = capabilities_read(live, &reading);
  if (r >= 0)
    r = raw_read_stopped(live, keeps_running, &raw, &reading);
  if (r < 0)
    return r;
  tos_judge(live, &raw, &reading);
  raw_load(live, &raw, &controls, ret_recorder);
  *ret_reading = reading;
  return 0;
}
