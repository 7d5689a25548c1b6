/* SPDX-License-Identifier: Apache-2.0
 *
 * The interrupt flag and waiting for interrupts: CLI, STI, HLT, MONITOR, MWAIT. SDM vol. 2 under these names; virtual
 * interrupt flag: vol. 3, 20.3 and 20.4.
 */
#include "cpu/control.h"
#include "cpu/instruction.h"
#include "cpu/paging.h"

/* ---- CLI and STI ---- */

/* The flag that CLI and STI change here: IF, VIF, or 0 if they fault. */
static uint32_t interrupt_flag(const struct cpu *cpu)
{
  unsigned iopl = cpu->eflags >> 12 & 3;

  if (!(cpu->cr0 & CR0_PE))
    return FLAG_IF;
  if (cpu->eflags & FLAG_VM)
    return iopl == 3 ? FLAG_IF : cpu->cr4 & CR4_VME ? FLAG_VIF : 0;
  if (iopl >= cpu->cpl)
    return FLAG_IF;
  return cpu->cpl == 3 && (cpu->cr4 & CR4_PVI) ? FLAG_VIF : 0;
}

/* An interrupt that an earlier store of this block raised is delivered before CLI, as on a processor that checks after
 * every instruction. In a block of one instruction the run loop has just checked. */
static bool is_interrupted(const struct cpu *cpu)
{
  return (cpu->lines & 1u << CPU_LINE_INTR) && (cpu->eflags & FLAG_IF) && !(cpu->mode & MODE_ONE);
}

const struct insn *control_cli(struct cpu *cpu, const struct insn *insn)
{
  uint32_t flag = interrupt_flag(cpu);

  if (is_interrupted(cpu))
    return insn_before(cpu, insn);
  if (!flag)
    fault_gp(cpu, 0);
  cpu->eflags &= ~flag;
  return insn + 1;
}

const struct insn *control_sti(struct cpu *cpu, const struct insn *insn)
{
  uint32_t flag = interrupt_flag(cpu);

  if (!flag || (flag == FLAG_VIF && (cpu->eflags & FLAG_VIP)))
    fault_gp(cpu, 0);
  if (flag == FLAG_IF && !(cpu->eflags & FLAG_IF))
    cpu->shadow |= SHADOW_STI;
  cpu->eflags |= flag;
  return insn_leave(cpu, insn);
}

/* ---- waiting ---- */

const struct insn *control_hlt(struct cpu *cpu, const struct insn *insn)
{
  control_check_privilege(cpu);
  cpu->activity = CPU_HALTED;
  return insn_leave(cpu, insn);
}

#define MONITOR_LINE UINT64_C(64)
#define MONITOR_ARMED UINT64_C(1)   /* by MONITOR */
#define MONITOR_WAITING UINT64_C(2) /* MWAIT waits */
#define MONITOR_MASKED UINT64_C(4)  /* an interrupt ends the wait even if it is masked */
#define MONITOR_BITS UINT64_C(7)

/* A checksum of the line: MWAIT compares it and so detects a store since MONITOR. */
static uint64_t line_sum(struct cpu *cpu, uint64_t line)
{
  static const uint8_t nothing[MONITOR_LINE];
  uint64_t sum = UINT64_C(0xCBF29CE484222325), physical;
  const uint8_t *bytes = paging_look(cpu, line, &physical, NULL) ? memory_at(cpu->memory, physical) : NULL;

  if (!bytes)
    bytes = nothing;
  for (unsigned i = 0; i < MONITOR_LINE; i++)
    sum = (sum ^ bytes[i]) * UINT64_C(0x100000001B3);
  return sum;
}

/* Both exist at CPL 0 only, and only while MISC_ENABLE enables them. */
static void check_monitor(struct cpu *cpu)
{
  bool is_off = cpu->model->vendor == LB_VENDOR_INTEL && !(msr_misc_enable(cpu) & MISC_ENABLE_MONITOR);

  if (cpu->cpl || is_off)
    fault_ud(cpu);
}

const struct insn *control_monitor(struct cpu *cpu, const struct insn *insn)
{
  check_monitor(cpu);
  if ((uint32_t)cpu->r[RCX])
    fault_gp(cpu, 0);
  uint64_t offset = cpu->r[RAX] & insn->address_mask;
  uint64_t linear = access_linear(cpu, insn->segment, offset, 1, ACCESS_READ);
  access_load_linear(cpu, insn->segment, linear, 1);
  uint64_t line = linear & ~(MONITOR_LINE - 1);
  cpu->monitor_address = line | MONITOR_ARMED;
  cpu->monitor_sum = line_sum(cpu, line);
  return insn + 1;
}

/* Hint in 7:4 of EAX: 0 is C1, 15 is C0, any other value is a deeper state. */
static bool is_deep(uint32_t hint)
{
  unsigned state = hint >> 4 & 0xF;

  return state != 0 && state != 0xF;
}

/* MWAIT does not wait if no monitor is armed, or if the line was written since MONITOR. With ECX bit 0, masked
 * interrupts end the wait too. A processor that is alone then continues at once, as MWAIT may at any time (SDM vol. 3,
 * 8.10.4: software checks again why it waits). If there are other processors, it waits, so that they can run. */
const struct insn *control_mwait(struct cpu *cpu, const struct insn *insn)
{
  uint32_t extensions = (uint32_t)cpu->r[RCX];

  check_monitor(cpu);
  if (extensions & ~1u)
    fault_gp(cpu, 0);
  uint64_t line = cpu->monitor_address & ~MONITOR_BITS;
  bool is_armed = (cpu->monitor_address & MONITOR_ARMED) && cpu->monitor_sum == line_sum(cpu, line);
  bool is_masked = (extensions & 1) && !(cpu->eflags & FLAG_IF);
  bool is_awake = (extensions & 1) && ((cpu->lines & 1u << CPU_LINE_INTR) || (is_masked && system_is_alone(cpu)));
  cpu->monitor_address = 0;
  if (is_armed && !is_awake)
    cpu->activity = CPU_HALTED;
  if (is_armed && !is_awake && !system_is_alone(cpu))
    cpu->monitor_address = line | MONITOR_WAITING | (is_masked ? MONITOR_MASKED : 0);
  if (is_armed && is_deep((uint32_t)cpu->r[RAX]))
    lb_recorder_deep_sleep(&cpu->recorder);
  return insn_leave(cpu, insn);
}

void system_end_mwait(struct cpu *cpu)
{
  if (cpu->monitor_address & MONITOR_WAITING)
    cpu->monitor_address = 0;
}

bool system_waits_masked(const struct cpu *cpu)
{
  return cpu->activity == CPU_HALTED && (cpu->monitor_address & MONITOR_MASKED);
}

void cpu_look_at_monitor(struct cpu *cpu)
{
  if (cpu->activity != CPU_HALTED || !(cpu->monitor_address & MONITOR_WAITING))
    return;
  bool is_interrupted = system_waits_masked(cpu) && (cpu->lines & 1u << CPU_LINE_INTR);
  if (!is_interrupted && cpu->monitor_sum == line_sum(cpu, cpu->monitor_address & ~MONITOR_BITS))
    return;
  cpu->monitor_address = 0;
  cpu->activity = CPU_RUNNING;
}
