/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that a debugger makes to a stopped processor, with the rules of the corresponding instructions. If such an
 * instruction would raise a fault, the change is refused and nothing has changed.
 */
#include <errno.h>

#include "cpu/control.h"
#include "cpu/segment.h"

/* The function may leave by a fault (cpu->door). */
struct change {
  void (*make)(struct cpu *cpu, const struct change *change);
  unsigned number;
  uint64_t value;
};

static int change_try(struct cpu *cpu, const struct change *change)
{
  cpu->at = NULL;
  if (setjmp(cpu->door))
    return -EINVAL;
  change->make(cpu, change);
  return 0;
}

/* ---- control registers ---- */

static void control_change(struct cpu *cpu, const struct change *change)
{
  switch (change->number) {
  case 0:
    system_set_cr0(cpu, change->value);
    break;
  case 3:
    system_set_cr3(cpu, change->value);
    break;
  default:
    system_set_cr4(cpu, change->value);
  }
}

int cpu_set_control(struct cpu *cpu, unsigned number, uint64_t value)
{
  struct change change = {control_change, number, value};

  switch (number) {
  case 2:
    cpu->cr2 = value;
    return 0;
  case 8:
    if (value > 15)
      return -EINVAL;
    cpu->bus.set_task_priority(cpu->bus.data, (uint8_t)value);
    return 0;
  default:
    return number == 0 || number == 3 || number == 4 ? change_try(cpu, &change) : -EINVAL;
  }
}

/* ---- segment registers ---- */

static void segment_change(struct cpu *cpu, const struct change *change)
{
  segment_load(cpu, change->number, (uint16_t)change->value);
}

/* CS is loaded by far branches only; real mode needs no descriptor for it. */
int cpu_load_segment(struct cpu *cpu, unsigned number, uint16_t selector)
{
  struct change change = {segment_change, number, selector};

  if (number > GS || (number == CS && segment_is_protected(cpu)))
    return -EINVAL;
  return change_try(cpu, &change);
}

/* ---- MSRs ---- */

bool cpu_read_msr(struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
  uint64_t value = 0;

  if (!system_read_msr(cpu, msr, &value))
    return false;
  *ret_value = value;
  return true;
}

bool cpu_write_msr(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  bool is_done = system_write_msr(cpu, msr, value);

  system_update_debug(cpu);
  return is_done;
}
