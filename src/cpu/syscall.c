/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast system calls: SYSCALL and SYSRET, SYSENTER and SYSEXIT. They load fixed flat segments without reading the
 * descriptor tables. SDM vol. 2 under these names, vol. 3, 5.8.7 and 5.8.8; for SYSCALL outside 64-bit mode, which only
 * AMD has, APM vol. 2, 6.1.
 */
#include "cpu/far.h"
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/system.h"
#include "cpu/transfer.h"

#define SYSRET_FLAGS 0x3C7FD7u /* of R11: all except RF, VM and reserved bits */

/* Loads flat CS at this level, and SS with the next selector. RPL becomes the level. */
static void set_flat(struct cpu *cpu, unsigned code, unsigned stack, unsigned level, bool is_64)
{
  uint16_t dpl = (uint16_t)(level << 5);
  struct descriptor d = {.limit = 0xFFFFFFFF};
  uint16_t width = is_64 ? SEGMENT_L : SEGMENT_DB;

  d.access = SEGMENT_G | SEGMENT_P | SEGMENT_S | SEGMENT_CODE | SEGMENT_READABLE | SEGMENT_ACCESSED | dpl | width;
  segment_set(cpu, CS, (uint16_t)((code & ~3u) | level), &d);
  d.access = SEGMENT_G | SEGMENT_DB | SEGMENT_P | SEGMENT_S | SEGMENT_WRITABLE | SEGMENT_ACCESSED | dpl;
  segment_set(cpu, SS, (uint16_t)((stack & ~3u) | level), &d);
}

/* ---- SYSCALL, SYSRET ---- */

/* Unlike other instructions, these two are single-stepped according to TF after them: a TF that FMASK clears does not
 * trap in the kernel, and a TF that R11 restores traps at once. */
static const struct insn *finish(struct cpu *cpu, struct transfer *transfer, uint64_t target, enum lb_branch_kind kind)
{
  bool has_tf = cpu->eflags & FLAG_TF;

  transfer->flags = (uint8_t)((transfer->flags & ~LB_BRANCH_TF) | (has_tf ? LB_BRANCH_TF : 0));
  cpu->had_tf = false;
  if (has_tf && !lb_recorder_steps_branches(&cpu->recorder))
    cpu->debug_due |= DR6_BS;
  return transfer_far(cpu, transfer, target, kind);
}

/* Intel has them in 64-bit mode only. */
static void require_syscall(struct cpu *cpu)
{
  bool is_there = insn_is_64(cpu) || (system_is_amd(cpu) && segment_is_protected(cpu));

  if (!is_there || !(cpu->efer & EFER_SCE))
    fault_ud(cpu);
}

const struct insn *syscall_call(struct cpu *cpu, const struct insn *insn)
{
  require_syscall(cpu);
  bool is_long = far_is_long(cpu);
  uint64_t target = !is_long ? cpu->star & 0xFFFFFFFF : insn_is_64(cpu) ? cpu->lstar : cpu->cstar;
  unsigned selector = cpu->star >> 32 & 0xFFFC;
  struct transfer transfer = transfer_begin(cpu);
  uint32_t flags = flags_get(cpu) & ~(uint32_t)FLAG_RF;
  cpu->r[RCX] = insn_next_rip(insn);
  if (is_long) {
    cpu->r[R11] = flags;
    flags_set(cpu, flags & ~(uint32_t)cpu->fmask);
  } else {
    flags_set(cpu, flags & ~(uint32_t)FLAG_IF);
  }
  set_flat(cpu, selector, selector + 8, 0, is_long);
  segment_update(cpu);
  return finish(cpu, &transfer, target, LB_BRANCH_SYSCALL);
}

const struct insn *syscall_return(struct cpu *cpu, const struct insn *insn)
{
  require_syscall(cpu);
  bool is_long = far_is_long(cpu);
  bool is_64 = is_long && insn->size == 8;
  if (cpu->cpl != 0 || (is_64 && !far_is_canonical(cpu->r[RCX])))
    fault_gp(cpu, 0);
  uint64_t target = is_64 ? cpu->r[RCX] : cpu->r[RCX] & 0xFFFFFFFF;
  unsigned selector = cpu->star >> 48;
  struct transfer transfer = transfer_begin(cpu);
  if (is_long)
    flags_set(cpu, (uint32_t)cpu->r[R11] & SYSRET_FLAGS);
  else
    flags_set(cpu, flags_get(cpu) | FLAG_IF);
  set_flat(cpu, selector + (is_64 ? 16 : 0), selector + 8, 3, is_64);
  segment_update(cpu);
  return finish(cpu, &transfer, target, LB_BRANCH_SYSRET);
}

/* ---- SYSENTER, SYSEXIT ---- */

/* AMD has them outside IA-32e mode only: APM vol. 3, SYSENTER. */
static void require_sysenter(struct cpu *cpu)
{
  if (system_is_amd(cpu) && far_is_long(cpu))
    fault_ud(cpu);
  if (!(cpu->cr0 & CR0_PE) || !(cpu->sysenter_cs & 0xFFFC))
    fault_gp(cpu, 0);
}

const struct insn *syscall_enter(struct cpu *cpu, const struct insn *insn)
{
  (void)insn;
  require_sysenter(cpu);
  bool is_long = far_is_long(cpu);
  uint64_t mask = is_long ? UINT64_MAX : 0xFFFFFFFF;
  unsigned selector = cpu->sysenter_cs & 0xFFFC;
  struct transfer transfer = transfer_begin(cpu);
  cpu->eflags &= ~(uint32_t)(FLAG_VM | FLAG_IF | FLAG_RF);
  cpu->r[RSP] = cpu->sysenter_esp & mask;
  set_flat(cpu, selector, selector + 8, 0, is_long);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, cpu->sysenter_eip & mask, LB_BRANCH_SYSENTER);
}

const struct insn *syscall_exit(struct cpu *cpu, const struct insn *insn)
{
  require_sysenter(cpu);
  bool is_64 = far_is_long(cpu) && insn->size == 8;
  bool is_canonical = far_is_canonical(cpu->r[RCX]) && far_is_canonical(cpu->r[RDX]);
  if (cpu->cpl != 0 || (is_64 && !is_canonical))
    fault_gp(cpu, 0);
  uint64_t mask = is_64 ? UINT64_MAX : 0xFFFFFFFF;
  unsigned selector = (cpu->sysenter_cs & 0xFFFC) + (is_64 ? 32 : 16);
  uint64_t target = cpu->r[RDX] & mask;
  struct transfer transfer = transfer_begin(cpu);
  cpu->r[RSP] = cpu->r[RCX] & mask;
  set_flat(cpu, selector, selector + 8, 3, is_64);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, target, LB_BRANCH_SYSEXIT);
}
