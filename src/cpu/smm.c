/* SPDX-License-Identifier: Apache-2.0
 *
 * System management mode: entry by SMI, and RSM. The state goes to SMBASE + FC00H to FFFFH in the layout of Intel's P6
 * (CPUs without 64-bit mode) or Intel 64: SDM vol. 3, tables 34-1 and 34-3. Fields that the tables call reserved hold
 * the hidden parts of segment registers here. AMD's CPUs get the same layout.
 */
#include <stdio.h>

#include "cpu/control.h"
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/paging.h"
#include "cpu/segment.h"
#include "cpu/transfer.h"

#define SMM_ENTRY 0x8000u
#define STATE_FIRST 0x7C00u /* offsets are from SMBASE + 8000H, as in the manual */
#define STATE_SIZE 0x400u

/* Bits 16 and 17: I/O restart and SMBASE relocation. The low part identifies the layout. */
enum { REVISION_32 = 0x30007, REVISION_64 = 0x30101 };

/* The state while it is saved or restored. */
struct state {
  bool is_save;
  uint8_t bytes[STATE_SIZE];
  uint32_t eflags;
  uint64_t rip;
  uint16_t auto_halt, io_restart;
  uint32_t io_what; /* IO_MISC */
  uint64_t io_rip;
  uint8_t was_nmi_blocked;
};

/* Moves one field, to or from the image. */
static void field(struct state *state, unsigned offset, void *place, unsigned size)
{
  uint8_t *at = state->bytes + (offset - STATE_FIRST);

  if (state->is_save)
    memcpy(at, place, size);
  else
    memcpy(place, at, size);
}

/* ---- layouts ---- */

/* Selectors from 7FA8H up, in both layouts: ES, CS, SS, DS, FS, GS, LDTR, TR. P6 has no field for LDTR: 7FC0H is
 * reserved there. */
static void state_segments(struct state *state, struct cpu *cpu, unsigned hidden)
{
  for (unsigned i = 0; i < CPU_SEGMENTS; i++) {
    struct cpu_segment *s = &cpu->segment[i];

    field(state, 0x7FA8 + 4 * i, &s->selector, 2);
    field(state, hidden + 16 * i, &s->base, 8);
    field(state, hidden + 16 * i + 8, &s->limit, 4);
    field(state, hidden + 16 * i + 12, &s->access, 2);
  }
}

/* Fields that have the same offset in both layouts. */
static void state_common(struct state *state, struct cpu *cpu)
{
  uint32_t revision = system_has(cpu, FEATURE_LM) ? REVISION_64 : REVISION_32;

  field(state, 0x7FA4, &state->io_what, 4);
  field(state, 0x7F02, &state->auto_halt, 2);
  field(state, 0x7F00, &state->io_restart, 2);
  field(state, 0x7EFC, &revision, 4);
  field(state, 0x7EF8, &cpu->smbase, 4);
}

static void state_32(struct state *state, struct cpu *cpu)
{
  static const uint8_t registers[] = {RDI, RSI, RBP, RSP, RBX, RDX, RCX, RAX};

  field(state, 0x7FFC, &cpu->cr0, 4);
  field(state, 0x7FF8, &cpu->cr3, 4);
  field(state, 0x7FF4, &state->eflags, 4);
  field(state, 0x7FF0, &state->rip, 4);
  for (unsigned i = 0; i < sizeof(registers); i++)
    field(state, 0x7FEC - 4 * i, &cpu->r[registers[i]], 4);
  field(state, 0x7FCC, &cpu->dr[6], 4);
  field(state, 0x7FC8, &cpu->dr[7], 4);
  state_segments(state, cpu, 0x7E00);
  field(state, 0x7E80, &cpu->gdtr.base, 8);
  field(state, 0x7E88, &cpu->gdtr.limit, 4);
  field(state, 0x7E90, &cpu->idtr.base, 8);
  field(state, 0x7E98, &cpu->idtr.limit, 4);
  field(state, 0x7E9C, &cpu->cr4, 4);
  field(state, 0x7EA0, &cpu->efer, 8);
  field(state, 0x7EA8, &state->io_rip, 8);
  field(state, 0x7EB0, &state->was_nmi_blocked, 1);
}

/* Upper halves of registers whose field has 64 bits. */
static void state_zeros(struct state *state)
{
  static const uint16_t places[] = {0x7FFC, 0x7FEC, 0x7FD4, 0x7FCC};
  uint32_t zero = 0;

  for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]) && state->is_save; i++)
    field(state, places[i], &zero, 4);
}

static void state_64(struct state *state, struct cpu *cpu)
{
  static const uint8_t registers[] = {RDI, RSI, RBP, RSP, RBX, RDX, RCX, RAX, R8, R9, R10, R11, R12, R13, R14, R15};

  field(state, 0x7FF8, &cpu->cr0, 4);
  field(state, 0x7FF0, &cpu->cr3, 8);
  field(state, 0x7FE8, &state->eflags, 4);
  field(state, 0x7FE0, &cpu->efer, 8);
  field(state, 0x7FD8, &state->rip, 8);
  field(state, 0x7FD0, &cpu->dr[6], 4);
  field(state, 0x7FC8, &cpu->dr[7], 4);
  for (unsigned i = 0; i < sizeof(registers); i++)
    field(state, 0x7F94 - 8 * i, &cpu->r[registers[i]], 8);
  state_segments(state, cpu, 0x7C00);
  field(state, 0x7E94, &cpu->idtr.base, 4);
  field(state, 0x7DD8, (uint8_t *)&cpu->idtr.base + 4, 4);
  field(state, 0x7E8C, &cpu->gdtr.base, 4);
  field(state, 0x7DD0, (uint8_t *)&cpu->gdtr.base + 4, 4);
  field(state, 0x7C80, &cpu->gdtr.limit, 4);
  field(state, 0x7C84, &cpu->idtr.limit, 4);
  field(state, 0x7C88, &state->was_nmi_blocked, 1);
  field(state, 0x7E40, &cpu->cr4, 4);
  field(state, 0x7DE8, &state->io_rip, 8);
  state_zeros(state);
}

/* Base of the local descriptor table, for handlers to read. The value that RSM restores is among the hidden parts. */
static void state_show_ldt(struct state *state, struct cpu *cpu)
{
  field(state, 0x7E9C, &cpu->segment[LDTR].base, 4);
  field(state, 0x7DD4, (uint8_t *)&cpu->segment[LDTR].base + 4, 4);
}

static void state_exchange(struct state *state, struct cpu *cpu)
{
  bool is_64 = system_has(cpu, FEATURE_LM);

  if (is_64)
    state_64(state, cpu);
  else
    state_32(state, cpu);
  if (is_64 && state->is_save)
    state_show_ldt(state, cpu);
  state_common(state, cpu);
}

static void state_move(struct state *state, struct cpu *cpu)
{
  uint64_t address = (uint64_t)cpu->smbase + SMM_ENTRY + STATE_FIRST;

  for (unsigned i = 0; i < STATE_SIZE; i += 8) {
    uint64_t value = access_fetch(state->bytes + i, 8);

    if (state->is_save) {
      access_store_physical(cpu, address + i, 8, value);
    } else {
      value = access_load_physical(cpu, address + i, 8);
      memcpy(state->bytes + i, &value, 8);
    }
  }
}

/* ---- entering ---- */

static void state_save(struct cpu *cpu)
{
  bool was_io = cpu_retired(cpu) == cpu->io.retired + 1;
  struct state state = {
    .eflags = flags_get(cpu),
    .rip = cpu->rip,
    .auto_halt = cpu->activity == CPU_HALTED,
    .io_what = was_io ? cpu->io.what : 0,
    .io_rip = was_io ? cpu->io.rip : cpu->rip,
    .was_nmi_blocked = cpu->is_nmi_blocked,
  };

  /* Bytes that the layout does not name keep their contents in memory. */
  state_move(&state, cpu);
  state.is_save = true;
  state_exchange(&state, cpu);
  state_move(&state, cpu);
}

/* Segments as in real mode, but of 4 GByte: SDM vol. 3, table 34-2. */
static void enter_segments(struct cpu *cpu)
{
  for (unsigned i = ES; i <= GS; i++) {
    cpu->segment[i] = (struct cpu_segment){.limit = UINT32_MAX, .access = SEGMENT_G};
    segment_load_real(cpu, i, 0);
  }
  cpu->segment[CS].selector = (uint16_t)(cpu->smbase >> 4);
  cpu->segment[CS].base = cpu->smbase;
}

/* Tells the recorder where control leaves and where it goes, before anything changes. */
static void smi_report(struct cpu *cpu)
{
  struct lb_branch entry = {
    .from = cpu->rip,
    .to = SMM_ENTRY,
    .from_base = insn_is_64(cpu) ? 0 : cpu->segment[CS].base,
    .to_base = cpu->smbase,
    .kind = LB_BRANCH_INTERRUPT,
    .from_cpl = cpu->cpl,
    .flags = (uint8_t)(insn_is_64(cpu) ? LB_BRANCH_TO_32 : LB_BRANCH_FROM_32 | LB_BRANCH_TO_32),
  };

  lb_recorder_smi(&cpu->recorder, &entry);
}

void system_enter_smm(struct cpu *cpu)
{
  state_save(cpu);
  smi_report(cpu);
  system_set_long_mode(cpu, false);
  cpu->efer = 0;
  cpu->cr0 &= ~(CR0_PE | CR0_EM | CR0_TS | CR0_PG);
  cpu->cr4 = 0;
  cpu->dr[7] = DR7_FIXED;
  cpu->idtr = (struct cpu_table){0};
  flags_set(cpu, FLAG_1);
  enter_segments(cpu);
  cpu->is_in_smm = cpu->is_nmi_blocked = true;
  cpu->shadow = 0;
  access_flush(cpu, true);
  lb_recorder_flush(&cpu->recorder);
  segment_update(cpu);
  system_update_debug(cpu);
  transfer_set(cpu, SMM_ENTRY);
}

/* ---- RSM ---- */

/* SDM vol. 3, 34.4.1: a bad state makes RSM shut the processor down. */
static bool state_is_good(struct cpu *cpu)
{
  bool has_paging = cpu->cr0 & CR0_PG;
  bool is_long = has_paging && (cpu->efer & EFER_LME);

  if (cpu->cr4 & ~system_cr4_bits(cpu))
    return false;
  if ((has_paging && !(cpu->cr0 & CR0_PE)) || ((cpu->cr0 & CR0_NW) && !(cpu->cr0 & CR0_CD)))
    return false;
  if (is_long && !(cpu->cr4 & CR4_PAE))
    return false;
  return is_long || !has_paging || !(cpu->cr4 & CR4_PAE) || paging_load_pdptes(cpu, cpu->cr3);
}

/* Corrects values that the handler may have written. */
static void state_clean(struct cpu *cpu, struct state *state)
{
  uint64_t kept = (system_has(cpu, FEATURE_SYSCALL) ? EFER_SCE : 0u) | (system_has(cpu, FEATURE_LM) ? EFER_LME : 0u) |
                  (system_has(cpu, FEATURE_NX) ? EFER_NXE : 0u);

  cpu->efer &= kept;
  cpu->dr[6] = (uint32_t)cpu->dr[6] | DR6_FIXED;
  cpu->dr[7] = (uint32_t)cpu->dr[7] | DR7_FIXED;
  cpu->gdtr.limit &= 0xFFFF;
  cpu->idtr.limit &= 0xFFFF;
  cpu->cr0 |= CR0_ET;
  if (!system_has(cpu, FEATURE_LM))
    cpu->cr3 = (uint32_t)cpu->cr3;
  bool is_long = (cpu->cr0 & CR0_PG) && (cpu->efer & EFER_LME);
  if (!(cpu->cr0 & CR0_PE) || is_long)
    state->eflags &= ~(uint32_t)FLAG_VM;
  system_set_long_mode(cpu, is_long);
}

/* The record of RSM: first its own address, later its target. */
static struct lb_branch rsm_begin(const struct cpu *cpu, const struct insn *insn)
{
  return (struct lb_branch){
    .from = insn->rip,
    .from_base = insn_is_64(cpu) ? 0 : cpu->segment[CS].base,
    .kind = LB_BRANCH_RSM,
    .from_cpl = cpu->cpl,
    .flags = (uint8_t)(insn_is_64(cpu) ? 0 : LB_BRANCH_FROM_32),
  };
}

static void rsm_report(struct cpu *cpu, struct lb_branch *resumed)
{
  resumed->to = cpu->rip;
  resumed->to_base = insn_is_64(cpu) ? 0 : cpu->segment[CS].base;
  resumed->to_cpl = cpu->cpl;
  resumed->flags |= insn_is_64(cpu) ? 0 : LB_BRANCH_TO_32;
  lb_recorder_rsm(&cpu->recorder, resumed);
}

static void rsm_commit(struct cpu *cpu, struct state *state, struct lb_branch *resumed)
{
  state_clean(cpu, state);
  flags_set(cpu, state->eflags);
  access_flush(cpu, true);
  lb_recorder_flush(&cpu->recorder);
  segment_update(cpu);
  bool is_restart = (state->io_restart & 0xFF) == 0xFF && (state->io_what & 1);
  uint64_t rip = is_restart ? state->io_rip : state->rip;
  transfer_set(cpu, insn_is_64(cpu) ? rip : (uint32_t)rip);
  cpu->is_in_smm = false;
  cpu->is_nmi_blocked = state->was_nmi_blocked & 1;
  if (state->auto_halt & 1)
    cpu->activity = CPU_HALTED;
  rsm_report(cpu, resumed);
  system_update_debug(cpu);
}

const struct insn *control_rsm(struct cpu *cpu, const struct insn *insn)
{
  struct state state = {.is_save = false};

  if (!cpu->is_in_smm)
    fault_ud(cpu);
  state_move(&state, cpu);
  struct lb_branch resumed = rsm_begin(cpu, insn);
  insn_leave(cpu, insn); /* it retires: RIP comes from the state */
  state_exchange(&state, cpu);
  if (!state_is_good(cpu)) {
    cpu->activity = CPU_SHUTDOWN;
    snprintf(cpu->reason, sizeof(cpu->reason), "RSM: the saved state is not valid");
    return NULL;
  }
  rsm_commit(cpu, &state, &resumed);
  return NULL;
}
