/* SPDX-License-Identifier: Apache-2.0
 *
 * The run loop. Between blocks it handles pending events (traps, signals, interrupts, breakpoints), then runs a block
 * and those linked to it until one of them returns. State that must be checked after every instruction (TF, debug
 * registers, counters close to their overflow, an interrupt shadow, the last instructions of a budget) makes blocks of
 * one instruction, so that there is only this one loop. Order of events: SDM vol. 3, table 6-2.
 */
#include "cpu/run.h"

#include <stdio.h>

#include "cpu/block.h"
#include "cpu/counter.h"
#include "cpu/fault.h"
#include "cpu/flags.h"
#include "cpu/interrupt.h"
#include "cpu/point.h"
#include "cpu/segment.h"
#include "cpu/system.h"
#include "cpu/transfer.h"

#define COUNTS_MAX 64 /* more than one instruction can add to a counter: slots of a mispredicted branch */

const struct insn *insn_leave(struct cpu *cpu, const struct insn *insn)
{
  transfer_set(cpu, insn_next_rip(insn) & cpu->linear_mask);
  cpu->budget += insn->left - 1;
  return NULL;
}

const struct insn *insn_next_in(struct cpu *cpu, const struct insn *insn, uint32_t mode)
{
  return cpu->mode == mode ? insn + 1 : insn_leave(cpu, insn);
}

const struct insn *insn_before(struct cpu *cpu, const struct insn *insn)
{
  transfer_set(cpu, insn->rip);
  cpu->budget += insn->left;
  return NULL;
}

const struct insn *insn_again(struct cpu *cpu, const struct insn *insn)
{
  cpu->eflags |= FLAG_RF;  /* an interrupt that is delivered now pushes it: SDM vol. 3, 17.3.1.1 */
  cpu->io.what = 0;        /* an SMI that is delivered now belongs to no earlier IN or OUT */
  run_pass_cycles(cpu, 1); /* a repetition must not hold the loop forever */
  return insn_before(cpu, insn);
}

static void restore_budget(struct cpu *cpu)
{
  cpu->budget += cpu->budget_held;
  cpu->budget_start += cpu->budget_held;
  cpu->budget_held = 0;
}

/* ---- from outside ---- */

/* A pending INIT comes first. */
void cpu_start(struct cpu *cpu, uint8_t vector)
{
  if (cpu->signals & CPU_INIT)
    cpu->startup = STARTUP_WAITS | vector;
  if (cpu->activity != CPU_WAIT_SIPI || (cpu->signals & CPU_INIT))
    return;
  segment_load_real(cpu, CS, (uint16_t)(vector << 8));
  segment_update(cpu);
  transfer_set(cpu, 0);
  cpu->activity = CPU_RUNNING;
}

bool cpu_is_interruptible(const struct cpu *cpu)
{
  return (cpu->eflags & FLAG_IF) || cpu->signals || system_waits_masked(cpu);
}

/* ---- between instructions ---- */

/* Delivering an event takes time. */
static void wake(struct cpu *cpu)
{
  run_pass_cycles(cpu, 1);
  cpu->activity = CPU_RUNNING;
  cpu->is_spinning = false;
  system_end_mwait(cpu);
  point_step(cpu);
}

/* Delivers pending signals. Returns true if one was delivered: the caller must check again. A due trap that MOV SS
 * holds back must not be delivered in SMM. */
static bool take_signals(struct cpu *cpu, uint8_t shadow)
{
  if ((cpu->signals & CPU_SMI) && !cpu->is_in_smm && !cpu->is_smi_blocked && !cpu->debug_due) {
    cpu->signals &= (uint8_t)~CPU_SMI;
    system_enter_smm(cpu); /* reads the activity state: HLT may be restarted */
    wake(cpu);
    return true;
  }
  if ((cpu->signals & CPU_INIT) && !cpu->is_in_smm) {
    cpu->signals &= (uint8_t)~CPU_INIT;
    wake(cpu);
    system_init_signal(cpu);
    if (cpu->startup)
      cpu_start(cpu, (uint8_t)cpu->startup);
    cpu->startup = 0;
    return true;
  }
  if (cpu->activity == CPU_WAIT_SIPI)
    return false;
  if ((cpu->signals & CPU_NMI) && !cpu->is_nmi_blocked && !shadow) {
    cpu->signals &= (uint8_t)~CPU_NMI;
    wake(cpu);
    interrupt_nmi(cpu);
    return true;
  }
  if ((cpu->lines & 1u << CPU_LINE_INTR) && (cpu->eflags & FLAG_IF) && !shadow) {
    wake(cpu);
    interrupt_external(cpu, cpu->bus.acknowledge(cpu->bus.data));
    return true;
  }
  return false;
}

/* A trap also reports breakpoints at the next instruction. That instruction raises its own fault later unless the
 * handler sets RF: QEMU and Bochs do the same. */
static uint32_t trap_breakpoints(const struct cpu *cpu)
{
  if (!cpu->dr_code || (cpu->eflags & FLAG_RF))
    return 0;
  return system_code_matches(cpu, (cpu->segment[CS].linear_base + cpu->rip) & cpu->linear_mask);
}

static bool take_debug_trap(struct cpu *cpu, uint8_t shadow)
{
  if (!cpu->debug_due || (shadow & SHADOW_MOV_SS) || point_catches(cpu, EXCEPTION_DB))
    return false;
  uint32_t bits = cpu->debug_due | trap_breakpoints(cpu);
  cpu->debug_due = 0;
  wake(cpu);
  interrupt_debug(cpu, bits);
  return true;
}

static void check_code_breakpoints(struct cpu *cpu, uint8_t shadow)
{
  if (!cpu->dr_code || (cpu->eflags & FLAG_RF) || (shadow & SHADOW_MOV_SS))
    return;
  uint32_t bits = system_code_breakpoints(cpu, (cpu->segment[CS].linear_base + cpu->rip) & cpu->linear_mask);
  if (bits) {
    cpu->debug_due = bits;
    fault_raise(cpu, EXCEPTION_DB, 0);
  }
}

/* Alignment checks, data breakpoints, and counters of cache events need the slow path for every access. */
static void choose_tlb(struct cpu *cpu)
{
  bool is_user = cpu->mode & MODE_USER;
  bool checks_alignment = is_user && (cpu->cr0 & CR0_AM) && (cpu->eflags & FLAG_AC);

  cpu->tlb = cpu->tlbs[checks_alignment || cpu->dr_access || cpu->counts_cache ? 2 : is_user];
}

/* Limits the budget to this many instructions; restore_budget gives back the rest. */
static void limit_budget(struct cpu *cpu, uint64_t instructions)
{
  int64_t held = cpu->budget - (int64_t)instructions;

  if (held <= 0)
    return;
  cpu->budget_held += held;
  cpu->budget_start -= held;
  cpu->budget = (int64_t)instructions;
}

/* While counters are far from their overflow, it is enough to report whole blocks to them. */
static bool choose_counting(struct cpu *cpu)
{
  uint64_t room = lb_recorder_progress_room(&cpu->recorder) / COUNTS_MAX;

  if (room < 2 * BLOCK_MAX)
    return false;
  if (room < INT64_MAX)
    limit_budget(cpu, room);
  return true;
}

static void choose_mode(struct cpu *cpu, uint8_t shadow)
{
  bool is_one = shadow || cpu->is_stepping || cpu->is_alone || cpu->had_tf || cpu->dr_code || cpu->dr_access ||
                cpu->debug_due || cpu->budget < BLOCK_MAX;

  cpu->is_alone = false;
  cpu->counts_blocks = cpu->progress_is_on && !is_one && choose_counting(cpu);
  is_one |= cpu->progress_is_on && !cpu->counts_blocks;
  cpu->mode =
    (cpu->mode & ~(uint32_t)(MODE_ONE | MODE_STEP)) | (is_one ? MODE_ONE : 0) | (cpu->is_stepping ? MODE_STEP : 0);
}

static bool is_asked_to_stop(const struct cpu *cpu)
{
  return cpu->is_kicked || (cpu->bus.stop && atomic_load_explicit(cpu->bus.stop, memory_order_relaxed));
}

/* Handles pending events. Returns false if the run ends. */
static bool prepare(struct cpu *cpu, enum cpu_stop *ret_stop)
{
  cpu->at = NULL;
  restore_budget(cpu);
  uint8_t shadow = cpu->shadow;
  if (!cpu->hit.kind && (take_debug_trap(cpu, shadow) || (!cpu->hit.kind && take_signals(cpu, shadow))))
    shadow = cpu->shadow = 0;
  *ret_stop = CPU_STOP_POINT;
  if (cpu->hit.kind)
    return false;
  *ret_stop = cpu->activity == CPU_RUNNING    ? cpu->is_spinning ? CPU_STOP_SPINNING : CPU_STOP_BUDGET
              : cpu->activity == CPU_SHUTDOWN ? CPU_STOP_SHUTDOWN
                                              : CPU_STOP_HALTED;
  bool ends = is_asked_to_stop(cpu) || cpu->budget <= 0 || *ret_stop != CPU_STOP_BUDGET;
  if (ends)
    return false;
  cpu->shadow = 0;
  cpu->held = shadow | (cpu->eflags & FLAG_RF);
  check_code_breakpoints(cpu, shadow);
  cpu->eflags &= ~(uint32_t)FLAG_RF;
  cpu->had_tf = cpu->eflags & FLAG_TF;
  cpu->was_event = false;
  choose_tlb(cpu);
  choose_mode(cpu, shadow);
  return true;
}

/* ---- after an instruction ---- */

static void pebs(struct cpu *cpu)
{
  struct lb_registers registers = {
    .rflags = flags_get(cpu),
    .rip = (cpu->segment[CS].linear_base + cpu->rip) & cpu->linear_mask,
    .rax = cpu->r[RAX],
    .rbx = cpu->r[RBX],
    .rcx = cpu->r[RCX],
    .rdx = cpu->r[RDX],
    .rsi = cpu->r[RSI],
    .rdi = cpu->r[RDI],
    .rbp = cpu->r[RBP],
    .rsp = cpu->r[RSP],
    .r8 = cpu->r[R8],
    .r9 = cpu->r[R9],
    .r10 = cpu->r[R10],
    .r11 = cpu->r[R11],
    .r12 = cpu->r[R12],
    .r13 = cpu->r[R13],
    .r14 = cpu->r[R14],
    .r15 = cpu->r[R15],
    .eventing_ip = cpu->eventing_ip,
    .tsc = cpu_cycles(cpu) + cpu->tsc_offset,
  };

  for (unsigned i = 0; i < 16; i++) {
    registers.xmm[i][0] = cpu->fpu.v[i].u64[0];
    registers.xmm[i][1] = cpu->fpu.v[i].u64[1];
  }
  lb_recorder_pebs_assist(&cpu->recorder, &registers);
}

/* Reports to the counters what was executed since the last time. */
static void analysis_progress(struct cpu *cpu)
{
  uint64_t now = cpu_cycles(cpu);
  uint64_t retired = cpu_retired(cpu);

  cpu->progress.cycles = cpu->progress.reference_cycles = now - cpu->reported;
  cpu->progress.instructions = retired - cpu->reported_retired;
  cpu->progress.slots = COUNTER_SLOTS * cpu->progress.cycles;
  if (cpu->counts_metrics)
    counter_metrics(&cpu->progress);
  cpu->reported = now;
  cpu->reported_retired = retired;
  struct lb_progress progress = cpu->progress;
  cpu->progress = (struct lb_progress){.cpl = cpu->cpl};
  if (progress.instructions || progress.cycles)
    if (lb_recorder_progress(&cpu->recorder, &progress))
      pebs(cpu);
  transfer_watch(cpu);
}

/* If each instruction is reported alone, there is nothing to do. The running instruction keeps the privilege level that
 * it began with: it may be about to change it. */
void run_sync(struct cpu *cpu)
{
  uint8_t cpl = cpu->progress.cpl;

  if (!cpu->progress_is_on || cpu_retired(cpu) == cpu->reported_retired)
    return;
  analysis_progress(cpu);
  cpu->progress.cpl = cpl;
}

static void after_instruction(struct cpu *cpu)
{
  bool is_blocked = cpu->shadow & SHADOW_MOV_SS; /* lost, not postponed: SDM vol. 3, 6.8.3 */

  if (cpu->had_tf && !cpu->was_event && !is_blocked && !lb_recorder_steps_branches(&cpu->recorder))
    cpu->debug_due |= DR6_BS;
  if (cpu->progress_is_on)
    analysis_progress(cpu);
  point_step(cpu);
}

/* ---- the loop ---- */

static void run_blocks(struct cpu *cpu)
{
  if (cpu->progress_is_on)
    cpu->eventing_ip = (cpu->segment[CS].linear_base + cpu->rip) & cpu->linear_mask;
  cpu->progress.cpl = cpu->cpl;
  const struct block *block = block_get(cpu);
  cpu->budget -= block->count;
  const struct insn *insn = block->insns;
  while (insn) {
    cpu->at = insn;
    insn = insn->run(cpu, insn);
  }
  cpu->at = NULL;
  if (cpu->mode & MODE_ONE)
    after_instruction(cpu);
  else if (cpu->counts_blocks && cpu->progress_is_on)
    analysis_progress(cpu);
}

/* Gives an instruction that did not complete, and the rest of its block, back to the budget. */
static void give_back(struct cpu *cpu)
{
  if (cpu->at) {
    cpu->budget += cpu->at->left;
    transfer_set(cpu, cpu->at->rip);
  }
  cpu->at = NULL;
  run_sync(cpu);
}

/* Handles a fault that left an instruction through cpu->door. */
static bool deliver_fault(struct cpu *cpu)
{
  bool is_restartable = point_is_restartable(cpu);

  wake(cpu);
  if (cpu->fault.vector != EXCEPTION_DB)
    cpu->debug_due = 0; /* the instruction will access its data again */
  if (interrupt_exception(cpu)) {
    point_delivered(cpu, is_restartable);
    return true;
  }
  cpu->fault.is_delivering = false; /* INIT or RESET# may follow */
  cpu->activity = CPU_SHUTDOWN;
  snprintf(cpu->reason, sizeof(cpu->reason), "triple fault: exception %u while a double fault was delivered",
           cpu->fault.vector);
  return false;
}

static void give_budget(struct cpu *cpu, uint64_t instructions)
{
  restore_budget(cpu);
  cpu->retired_base += (uint64_t)(cpu->budget_start - cpu->budget);
  cpu->budget_start = cpu->budget = instructions < INT64_MAX ? (int64_t)instructions : INT64_MAX;
}

enum cpu_stop cpu_run(struct cpu *cpu, uint64_t instructions)
{
  give_budget(cpu, instructions);
  cpu->is_kicked = false;
  cpu->is_spinning = false;
  cpu->hit = (struct cpu_hit){.kind = CPU_HIT_NONE};
  switch (setjmp(cpu->door)) {
  case DOOR_FAULT:
    give_back(cpu);
    cpu->hit = (struct cpu_hit){.kind = CPU_HIT_NONE}; /* the instruction will make the access again */
    if (point_catches_fault(cpu))
      return CPU_STOP_POINT;
    if (!deliver_fault(cpu))
      return CPU_STOP_SHUTDOWN;
    break;
  case DOOR_ALONE:
    give_back(cpu);
    cpu->fault.is_delivering = cpu->fault.is_delivering_soft = false;
    cpu->is_alone = true;
    break;
  case DOOR_UNIMPLEMENTED:
    give_back(cpu);
    return CPU_STOP_UNIMPLEMENTED;
  default:
    break;
  }
  enum cpu_stop stop;
  while (prepare(cpu, &stop))
    run_blocks(cpu);
  return stop;
}
