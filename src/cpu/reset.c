/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers after power-on, RESET# and INIT: SDM vol. 3, table 9-1.
 */
#include "cpu/control.h"
#include "cpu/flags.h"
#include "cpu/generation.h"
#include "cpu/segment.h"
#include "cpu/transfer.h"

#define RESET_VECTOR 0xFFF0u
#define RESET_BASE 0xFFFF0000u
#define HWCR_TSC_FREQ_SEL (UINT64_C(1) << 24) /* the time-stamp counter runs at the frequency of P0 */
#define PAT_DEFAULT UINT64_C(0x0007040600070406)

/* Resets the state that power-on, RESET# and INIT have in common. */
static void reset_common(struct cpu *cpu)
{
  for (unsigned i = 0; i < CPU_REGISTERS; i++)
    cpu->r[i] = 0;
  cpu->r[RDX] = generation_signature(generation_at(generation_find(cpu->model)));
  flags_set(cpu, FLAG_1);
  cpu->cr2 = cpu->cr3 = 0;
  cpu->cr4 = 0;
  cpu->efer = 0;
  for (unsigned i = 0; i < 4; i++)
    cpu->dr[i] = cpu->pdpte[i] = 0;
  cpu->dr[6] = DR6_FIXED;
  cpu->dr[7] = DR7_FIXED;
  cpu->gdtr = cpu->idtr = (struct cpu_table){.limit = 0xFFFF};
  for (unsigned i = ES; i <= GS; i++) {
    cpu->segment[i] = (struct cpu_segment){.limit = 0xFFFF};
    segment_load_real(cpu, i, 0);
  }
  segment_load_real(cpu, CS, 0xF000);
  cpu->segment[CS].base = RESET_BASE;
  cpu->segment[LDTR] = (struct cpu_segment){.limit = 0xFFFF, .access = SEGMENT_P | 0x2};
  cpu->segment[TR] = (struct cpu_segment){.limit = 0xFFFF, .access = SEGMENT_P | 0xB};
  cpu->monitor_address = 0;
  cpu->debug_due = 0;
  cpu->shadow = 0;
}

static void reset_finish(struct cpu *cpu)
{
  lb_recorder_long_mode(&cpu->recorder, false);
  access_flush(cpu, true);
  lb_recorder_flush(&cpu->recorder);
  segment_update(cpu);
  system_update_debug(cpu);
  transfer_set(cpu, RESET_VECTOR);
}

static void reset_fpu(struct fpu *fpu)
{
  memset(fpu, 0, sizeof(*fpu));
  fpu->control = 0x40;
  fpu->tags = 0xFF; /* tag word 5555H: every register holds +0 */
  fpu->mxcsr = 0x1F80;
}

static void reset_msrs(struct cpu *cpu)
{
  uint64_t misc = msr_misc_enable(cpu) | MISC_ENABLE_FAST_STRINGS | MISC_ENABLE_MONITOR;

  cpu->star = cpu->lstar = cpu->cstar = cpu->fmask = cpu->kernel_gs_base = cpu->tsc_aux = 0;
  cpu->sysenter_cs = cpu->sysenter_esp = cpu->sysenter_eip = 0;
  cpu->hwcr = system_is_since(cpu, GENERATION_FAM10H) ? HWCR_TSC_FREQ_SEL : 0;
  cpu->syscfg = 0;
  cpu->pat = PAT_DEFAULT;
  msr_model_reset(cpu);
  memset(cpu->mtrr, 0, sizeof(cpu->mtrr));
  cpu->misc_enable = misc;
  lb_recorder_wrmsr(&cpu->recorder, 0x1A0, misc);
  cpu->tsc_adjust = 0;
  cpu->tsc_offset = 0 - cpu_cycles(cpu);
}

/* RESET# clears the same state as power-on. They differ only in the recorder, which cpu_reset resets. */
void system_reset_registers(struct cpu *cpu, bool is_warm)
{
  reset_common(cpu);
  reset_fpu(&cpu->fpu);
  cpu->cr0 = CR0_CD | CR0_NW | CR0_ET;
  cpu->xcr0 = 1;
  cpu->xss = 0;
  cpu->pkru = cpu->pkrs = 0;
  cpu->smbase = 0x30000;
  cpu->io.what = 0;
  reset_msrs(cpu);
  if (!is_warm)
    cpu->random = 0;
  reset_finish(cpu);
}

/* INIT keeps caching, x87 and SSE, XCR0 and all MSRs but EFER; the bootstrap processor goes to the reset vector, others
 * wait for a startup IPI. INIT is taken between two instructions. */
void system_init_signal(struct cpu *cpu)
{
  struct lb_branch branch = {
    .from = cpu->rip,
    .from_base = cpu->segment[CS].base,
    .to = RESET_VECTOR,
    .to_base = RESET_BASE,
    .kind = LB_BRANCH_INIT,
    .from_cpl = cpu->cpl,
    .flags = (uint8_t)(LB_BRANCH_TO_32 | (insn_is_64(cpu) ? 0 : LB_BRANCH_FROM_32)),
  };
  uint64_t apic_base = 0;

  reset_common(cpu);
  cpu->cr0 = (cpu->cr0 & (CR0_CD | CR0_NW)) | CR0_ET;
  lb_recorder_init_signal(&cpu->recorder, &branch);
  reset_finish(cpu);
  bool is_known = cpu->bus.apic_read(cpu->bus.data, 0x1B, &apic_base) >= 0;
  cpu->activity = is_known && !(apic_base >> 8 & 1) ? CPU_WAIT_SIPI : CPU_RUNNING;
}
