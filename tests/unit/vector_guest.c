/* SPDX-License-Identifier: Apache-2.0
 *
 * One instruction in the interpreter: a guest in 64-bit mode with two pages of data and nothing behind them. The
 * instruction is decoded and its handler called, without the run loop, so that a fault is seen as it leaves.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/decode.h"
#include "cpu/flags.h"
#include "cpu/run.h"
#include "cpu_bus.h"
#include "lastbranch/cpudb.h"
#include "vector_run.h"

enum { GUEST_PML4 = 0x1000, GUEST_PDPT = 0x2000, GUEST_PD = 0x3000, GUEST_PT = 0x4000, GUEST_RAM = 4 << 20 };

unsigned vector_guest_ferr;

static void bus_ferr(void *data)
{
  (void)data;
  vector_guest_ferr++;
}

/* ---- the guest ---- */

static void put_64(struct memory *memory, uint64_t address, uint64_t value)
{
  memory_write(memory, address, &value, 8);
}

static void pages_make(struct memory *memory)
{
  put_64(memory, GUEST_PML4, GUEST_PDPT | 7);
  put_64(memory, GUEST_PDPT, GUEST_PD | 7);
  put_64(memory, GUEST_PD, 0x87); /* 2 MB */
  put_64(memory, GUEST_PD + 8, GUEST_PT | 7);
  for (unsigned i = 0; i < DATA_BYTES / 4096; i++)
    put_64(memory, GUEST_PT + 8 * i, (GUEST_DATA + 4096 * i) | 7u);
}

static void registers_make(struct cpu *cpu)
{
  for (unsigned i = ES; i <= GS; i++)
    cpu->segment[i] = (struct cpu_segment){.limit = UINT32_MAX, .selector = 0x10, .access = 0xC093};
  cpu->segment[CS] = (struct cpu_segment){.limit = UINT32_MAX, .selector = 8, .access = 0xA09B};
  cpu->cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_PG;
  cpu->cr3 = GUEST_PML4;
  cpu->cr4 = CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_OSXSAVE;
  cpu->efer = EFER_LME | EFER_LMA;
  cpu->xcr0 = 7;
  cpu->cpl = 0;
  memset(&cpu->features, 0xFF, sizeof(cpu->features)); /* also what the catalogue's CPUs are not offered */
  cpu_set_flags(cpu, FLAG_1);
  cpu_changed(cpu);
}

struct cpu *vector_guest_new(void)
{
  const struct lb_cpu *model;
  struct cpu_bus bus = bus_idle;
  struct cpu *cpu = NULL;
  struct memory *memory = calloc(1, sizeof(*memory));

  bus.ferr = bus_ferr;
  if (!memory || lb_cpu_find("skylake", &model) < 0 || memory_init(memory, GUEST_RAM) < 0 ||
      cpu_new(model, memory, &bus, 0, &cpu) < 0)
    return NULL;
  memory->a20_mask = UINT64_MAX;
  pages_make(memory);
  registers_make(cpu);
  return cpu;
}

void vector_guest_free(struct cpu *cpu)
{
  struct memory *memory = cpu->memory;

  cpu_free(cpu);
  memory_done(memory);
  free(memory);
}

uint8_t *vector_guest_data(struct cpu *cpu)
{
  return memory_at(cpu->memory, GUEST_DATA);
}

/* ---- state: its own reading of the image, not the interpreter's ---- */

static void state_load(struct cpu *cpu, const struct vector_state *state)
{
  struct fpu *fpu = &cpu->fpu;
  uint16_t status;

  memcpy(cpu->r, state->r, sizeof(state->r));
  cpu_set_flags(cpu, state->flags);
  memcpy(&fpu->control, state->fx + FX_CONTROL, 2);
  memcpy(&status, state->fx + FX_STATUS, 2);
  fpu->top = status >> 11 & 7;
  fpu->status = (uint16_t)(status & ~0x3800);
  fpu->tags = state->fx[FX_TAGS];
  memcpy(&fpu->mxcsr, state->fx + FX_MXCSR, 4);
  for (unsigned i = 0; i < 8; i++)
    memcpy(fpu->st[(fpu->top + i) & 7], state->fx + FX_ST + 16 * i, 10);
  for (unsigned i = 0; i < 16; i++) {
    memcpy(fpu->v[i].u8, state->fx + FX_XMM + 16 * i, 16);
    memcpy(fpu->v[i].u8 + 16, state->high[i], 16);
  }
}

static void state_save(struct cpu *cpu, struct vector_state *state)
{
  const struct fpu *fpu = &cpu->fpu;
  uint16_t status = (uint16_t)(fpu->status | fpu->top << 11);

  memcpy(state->r, cpu->r, sizeof(state->r));
  state->flags = cpu_flags(cpu);
  memcpy(state->fx + FX_CONTROL, &fpu->control, 2);
  memcpy(state->fx + FX_STATUS, &status, 2);
  state->fx[FX_TAGS] = fpu->tags;
  memcpy(state->fx + FX_MXCSR, &fpu->mxcsr, 4);
  for (unsigned i = 0; i < 8; i++)
    memcpy(state->fx + FX_ST + 16 * i, fpu->st[(fpu->top + i) & 7], 10);
  for (unsigned i = 0; i < 16; i++) {
    memcpy(state->fx + FX_XMM + 16 * i, fpu->v[i].u8, 16);
    memcpy(state->high[i], fpu->v[i].u8 + 16, 16);
  }
}

int vector_guest_step(struct cpu *cpu, const uint8_t *code, size_t size)
{
  static struct insn insn[2];
  bool does_end;
  uint8_t *at = memory_at(cpu->memory, GUEST_CODE);

  memcpy(at, code, size);
  cpu->rip = GUEST_CODE;
  if (decode_insn(cpu, GUEST_CODE, code, size, false, &insn[0], &does_end) < 0)
    return 6;
  cpu->at = insn;
  int door = setjmp(cpu->door);
  if (door)
    return door == DOOR_FAULT ? cpu->fault.vector : VECTOR_UNIMPLEMENTED;
  insn[0].run(cpu, &insn[0]);
  return -1;
}

int vector_guest_run(struct cpu *cpu, const uint8_t *code, size_t size, unsigned offset, struct vector_state *state)
{
  state->r[RBX] = state->r[RDI] = state->r[R11] = GUEST_DATA + offset;
  state_load(cpu, state);
  int vector = vector_guest_step(cpu, code, size);
  state_save(cpu, state);
  return vector;
}
