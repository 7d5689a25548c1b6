/* SPDX-License-Identifier: Apache-2.0
 *
 * Switches the recording unit of a real processor on and off, and tells whether it is on. The enable bit is
 * IA32_LBR_CTL.LBREN for architectural LBR, DbgExtnCfg.LBRV2EN for AMD's version 2, and otherwise DEBUGCTL.LBR. On Zen
 * 3 and later, DEBUGCTL.LBR enables the classic pair beside the stack. Branch sampling (Zen 3) is not touched:
 * switching it off would release a held interrupt, and it stops by itself.
 */
#include "hardware/live.h"

#include <errno.h>
#include <string.h>

#include "hardware/live_switch.h"

#define LBREN (UINT64_C(1) << 0)
#define BRSMEN (UINT64_C(1) << 2)
#define LBRV2EN (UINT64_C(1) << 6)
#define EVTSEL_EN (UINT64_C(1) << 22)
#define CCCR_ENABLE (UINT64_C(1) << 12)

/* ---- registers by name ---- */

int live_read(struct hardware_live *live, uint32_t msr, uint64_t *ret_value)
{
  const struct hardware_registers *registers = live->undo.registers;
  int r = registers->read(registers->data, msr, ret_value);

  if (r < 0)
    live->trouble = (struct hardware_trouble){.error = r, .msr = msr};
  return r;
}

bool live_has(const struct hardware_live *live, enum lb_register id)
{
  return lb_cpu_register(&live->row->cpu, id).count;
}

int live_read_id(struct hardware_live *live, enum lb_register id, uint64_t *ret_value)
{
  return live_read(live, lb_cpu_register(&live->row->cpu, id).first, ret_value);
}

/* Makes a change that is noted for undoing. */
static int live_change(struct hardware_live *live, enum lb_register id, uint64_t mask, uint64_t value)
{
  uint32_t msr = lb_cpu_register(&live->row->cpu, id).first;
  int r = hardware_undo_change(&live->undo, msr, mask, value);

  if (r < 0)
    live->trouble = (struct hardware_trouble){.error = r, .msr = msr, .is_write = true};
  return r;
}

/* ---- the switches ---- */

unsigned live_switches(const struct lb_cpu *cpu, struct live_switch switches[LIVE_SWITCHES_MAX])
{
  uint64_t lbr = lb_cpu_debugctl(cpu, LB_DEBUGCTL_LBR);
  unsigned count = 0;

  if (lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR))
    switches[count++] = (struct live_switch){LB_REG_LBR_CTL, LBREN};
  else if (lb_cpu_has(cpu, LB_FEATURE_LBR_V2))
    switches[count++] = (struct live_switch){LB_REG_AMD_DBG_EXTN_CFG, LBRV2EN};
  if (lbr && !lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR))
    switches[count++] = (struct live_switch){LB_REG_DEBUGCTL, lbr};
  return count;
}

/* Notes what is to be switched off. Returns the number of changes, with their numbers in `numbers`, or -errno. */
static int stop_note(struct hardware_live *live, int numbers[LIVE_SWITCHES_MAX])
{
  struct live_switch switches[LIVE_SWITCHES_MAX];
  unsigned count = live_switches(&live->row->cpu, switches);
  int noted = 0;

  for (unsigned i = 0; i < count; i++) {
    uint64_t value;
    int r = live_read_id(live, switches[i].id, &value);

    if (r < 0)
      return r;
    if (!(value & switches[i].mask))
      continue;
    numbers[noted] =
      hardware_undo_note(&live->undo, lb_cpu_register(&live->row->cpu, switches[i].id).first, switches[i].mask, 0);
    if (numbers[noted] < 0) {
      live->trouble = (struct hardware_trouble){.error = numbers[noted]};
      return numbers[noted];
    }
    noted++;
  }
  return noted;
}

int live_stop(struct hardware_live *live)
{
  int numbers[LIVE_SWITCHES_MAX], noted = stop_note(live, numbers);

  if (noted >= 0 && live->wait)
    live->wait(live->data);
  for (int i = 0; i < noted; i++) {
    int r = hardware_undo_commit(&live->undo, numbers[i]);

    if (r < 0) {
      live->trouble =
        (struct hardware_trouble){.error = r, .msr = live->undo.changes[numbers[i]].msr, .is_write = true};
      live->undo.count = numbers[i]; /* neither this change nor the following ones were made */
      return r;
    }
  }
  return noted < 0 ? noted : 0;
}

int hardware_live_is_on(struct hardware_live *live)
{
  struct live_switch switches[LIVE_SWITCHES_MAX + 1];
  unsigned count = live_switches(&live->row->cpu, switches);
  int is_on = 0;

  if (lb_cpu_has(&live->row->cpu, LB_FEATURE_BRS))
    switches[count++] = (struct live_switch){LB_REG_AMD_DBG_EXTN_CFG, BRSMEN};
  for (unsigned i = 0; i < count; i++) {
    uint64_t value;
    int r = live_read_id(live, switches[i].id, &value);

    if (r < 0)
      return r;
    is_on |= (value & switches[i].mask) != 0;
  }
  return is_on;
}

/* ---- from begin to end ---- */

void hardware_live_begin(struct hardware_live *live, struct hardware_row *row,
                         const struct hardware_registers *registers)
{
  memset(live, 0, sizeof(*live));
  live->row = row;
  live->undo.registers = registers;
}

int hardware_live_end(struct hardware_live *live)
{
  int r = hardware_undo_to(&live->undo, 0);

  if (r < 0)
    live->trouble = (struct hardware_trouble){.error = r, .is_write = true};
  return r;
}

/* ---- on and off ---- */

static int arm_filter(struct hardware_live *live, uint64_t value)
{
  if (!live_has(live, LB_REG_LBR_SELECT))
    return 0; /* in architectural LBR the filter is in the same register as the enable bit */
  return live_change(live, LB_REG_LBR_SELECT, UINT64_MAX, value);
}

/* The first switch is that of the stack. A hypervisor may accept the write and ignore it. */
static int arm_switch(struct hardware_live *live, uint64_t filter)
{
  struct live_switch switches[LIVE_SWITCHES_MAX];
  uint64_t mask, value;
  int r;

  if (!live_switches(&live->row->cpu, switches))
    return -EOPNOTSUPP;
  mask = switches[0].id == LB_REG_LBR_CTL ? UINT64_MAX : switches[0].mask;
  r = live_change(live, switches[0].id, mask, switches[0].id == LB_REG_LBR_CTL ? filter | LBREN : mask);
  if (r >= 0)
    r = live_read_id(live, switches[0].id, &value);
  if (r < 0 || value & switches[0].mask)
    return r;
  live->trouble = (struct hardware_trouble){
    .error = -EOPNOTSUPP, .msr = lb_cpu_register(&live->row->cpu, switches[0].id).first, .is_write = true};
  return -EOPNOTSUPP;
}

int hardware_live_arm(struct hardware_live *live, const struct hardware_filter *filter)
{
  unsigned before = (unsigned)live->undo.count;
  int r = arm_filter(live, filter->value);

  if (r >= 0)
    r = arm_switch(live, filter->value);
  if (r >= 0)
    live->is_ours = true;
  else
    hardware_undo_to(&live->undo, before);
  return r;
}

int hardware_live_disarm(struct hardware_live *live)
{
  unsigned before = (unsigned)live->undo.count;
  int r = live_stop(live);

  if (r >= 0)
    hardware_undo_forget(&live->undo);
  else
    hardware_undo_to(&live->undo, before);
  return r;
}

/* ---- changes of another run ---- */

static bool change_is_possible(const struct lb_cpu *cpu, const struct hardware_change *change)
{
  struct live_switch switches[LIVE_SWITCHES_MAX];
  unsigned count = live_switches(cpu, switches);
  struct lb_register_range select = lb_cpu_register(cpu, LB_REG_LBR_SELECT);

  for (unsigned i = 0; i < count; i++)
    if (change->msr == lb_cpu_register(cpu, switches[i].id).first)
      return change->mask == switches[i].mask || switches[i].id == LB_REG_LBR_CTL;
  return select.count && change->msr == select.first;
}

int hardware_live_adopt(struct hardware_live *live, const struct hardware_change *changes, unsigned count)
{
  if (count + (unsigned)live->undo.count > HARDWARE_CHANGES_MAX)
    return -EINVAL;
  for (unsigned i = 0; i < count; i++)
    if (!change_is_possible(&live->row->cpu, &changes[i]))
      return -EINVAL;
  memcpy(&live->undo.changes[live->undo.count], changes, count * sizeof(*changes));
  live->undo.count += (int)count;
  return 0;
}

int hardware_live_is_as_left(struct hardware_live *live, const struct hardware_change *changes, unsigned count)
{
  for (unsigned i = 0; i < count; i++) {
    uint64_t value;
    int r = live_read(live, changes[i].msr, &value);

    if (r < 0)
      return r;
    if ((value & changes[i].mask) != (changes[i].after & changes[i].mask))
      return 0;
  }
  return 1;
}

/* ---- counters ---- */

static unsigned counters_count(struct hardware_live *live, enum lb_register id, uint64_t enable)
{
  struct lb_register_range range = lb_cpu_register(&live->row->cpu, id);
  const struct hardware_registers *registers = live->undo.registers;
  unsigned count = 0;

  for (unsigned i = 0; i < range.count; i++) {
    uint64_t value;

    if (registers->read(registers->data, range.first + i * range.stride, &value) < 0)
      break;
    count += (value & enable) != 0;
  }
  return count;
}

static unsigned counters_fixed(struct hardware_live *live)
{
  const struct hardware_registers *registers = live->undo.registers;
  struct lb_register_range range = lb_cpu_register(&live->row->cpu, LB_REG_FIXED_CTR_CTRL);
  unsigned count = 0;
  uint64_t value;

  if (!range.count || registers->read(registers->data, range.first, &value) < 0)
    return 0;
  for (unsigned i = 0; i < live->row->cpu.pmu->fixed; i++)
    count += (value >> (4 * i) & 3) != 0;
  return count;
}

/* IA32_PERF_GLOBAL_INUSE: bits 7:0 and 34:32 are counters that are in use. SDM vol. 3 (June 2016) 18.2.4.3. */
static unsigned counters_programmed(struct hardware_live *live)
{
  const struct hardware_registers *registers = live->undo.registers;
  struct lb_register_range range = lb_cpu_register(&live->row->cpu, LB_REG_GLOBAL_INUSE);
  uint64_t value;

  if (!range.count || registers->read(registers->data, range.first, &value) < 0)
    return 0;
  return (unsigned)__builtin_popcountll(value & UINT64_C(0xFFFFFFFFFFFFFFF));
}

static unsigned counters_enabled(struct hardware_live *live)
{
  bool has_six = live_has(live, LB_REG_AMD_PERF_CTL);

  return counters_count(live, LB_REG_PERFEVTSEL, EVTSEL_EN) + counters_count(live, LB_REG_P4_CCCR, CCCR_ENABLE) +
         counters_count(live, has_six ? LB_REG_AMD_PERF_CTL : LB_REG_K7_EVNTSEL, EVTSEL_EN) + counters_fixed(live);
}

unsigned hardware_live_counters(struct hardware_live *live)
{
  unsigned programmed = counters_programmed(live), enabled = counters_enabled(live);

  return programmed > enabled ? programmed : enabled;
}
