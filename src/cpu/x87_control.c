/* SPDX-License-Identifier: Apache-2.0
 *
 * x87 control: control and status words, environments and whole states in their four layouts (16 or 32 bits, real or
 * protected), FWAIT. SDM vol. 1, 8.1.10, 8.3.11 and figures 8-9 to 8-12.
 */
#include "cpu/instruction.h"
#include "cpu/x87.h"

/* ---- words ---- */

const struct insn *x87_fldcw(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  x87_set_control(&cpu->fpu, (uint16_t)insn_load(cpu, insn, 2));
  return insn + 1;
}

const struct insn *x87_fnstcw(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  insn_store(cpu, insn, 2, cpu->fpu.control);
  return insn + 1;
}

const struct insn *x87_fnstsw(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  if (insn->form == FORM_MEM)
    insn_store(cpu, insn, 2, x87_status(&cpu->fpu));
  else
    reg_set(cpu, 8 * RAX, 2, x87_status(&cpu->fpu));
  return insn + 1;
}

const struct insn *x87_fnclex(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  cpu->fpu.status &= (uint16_t) ~(X87_EXCEPTIONS | X87_SF | X87_ES | X87_B);
  return insn + 1;
}

const struct insn *x87_fninit(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  x87_init(&cpu->fpu);
  return insn + 1;
}

const struct insn *x87_fnop(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  return insn + 1;
}

/* FENI, FDISI, FSETPM: used by the 8087 and the 287, without an effect since. */
const struct insn *x87_nothing(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  return insn + 1;
}

/* TS alone does not make it fault: MP decides (SDM vol. 3, table 2-2). */
const struct insn *x87_fwait(struct cpu *cpu, const struct insn *insn)
{
  const uint32_t both = CR0_MP | CR0_TS;

  if ((cpu->cr0 & both) == both)
    fault_raise(cpu, EXCEPTION_NM, 0);
  x87_check_pending(cpu);
  return insn + 1;
}

/* ---- environment ---- */

enum tag { TAG_VALID, TAG_ZERO, TAG_SPECIAL, TAG_EMPTY };

static enum tag tag_of(const uint8_t *st)
{
  uint64_t significand = access_fetch(st, 8);
  unsigned exponent = (unsigned)access_fetch(st + 8, 2) & 0x7FFF;

  if (exponent == 0 && significand == 0)
    return TAG_ZERO;
  return exponent == 0 || exponent == 0x7FFF || !(significand >> 63) ? TAG_SPECIAL : TAG_VALID;
}

static uint16_t tag_word(const struct fpu *fpu)
{
  unsigned word = 0;

  for (unsigned i = 0; i < 8; i++)
    word |= (unsigned)(fpu->tags >> i & 1 ? tag_of(fpu->st[i]) : TAG_EMPTY) << 2 * i;
  return (uint16_t)word;
}

static void set_tag_word(struct fpu *fpu, uint16_t word)
{
  unsigned tags = 0;

  for (unsigned i = 0; i < 8; i++)
    tags |= (unsigned)((word >> 2 * i & 3) != TAG_EMPTY) << i;
  fpu->tags = (uint8_t)tags;
}

/* An environment is seven words or dwords; real mode stores linear addresses, split in two. */
struct environment {
  uint32_t part[7];
};

static bool is_real(const struct cpu *cpu)
{
  return !(cpu->cr0 & CR0_PE) || cpu->eflags & FLAG_VM;
}

static void environment_get(const struct cpu *cpu, bool is_32, struct environment *ret_environment)
{
  const struct fpu *fpu = &cpu->fpu;
  const uint32_t ones = 0xFFFF0000; /* reserved halves */
  uint32_t *part = ret_environment->part;

  part[0] = ones | fpu->control;
  part[1] = ones | x87_status(fpu);
  part[2] = ones | tag_word(fpu);
  if (is_real(cpu)) {
    uint32_t instruction = (uint32_t)(fpu->instruction + 16u * fpu->instruction_selector);
    uint32_t data = (uint32_t)(fpu->data + 16u * fpu->data_selector);
    unsigned width = is_32 ? 0xFFFF : 0xF;

    part[3] = (is_32 ? ones : 0) | (instruction & 0xFFFF);
    part[4] = (instruction >> 16 & width) << 12 | (fpu->opcode & 0x7FF);
    part[5] = (is_32 ? ones : 0) | (data & 0xFFFF);
    part[6] = (data >> 16 & width) << 12;
  } else {
    part[3] = (uint32_t)fpu->instruction;
    part[4] = fpu->instruction_selector | (is_32 ? (uint32_t)(fpu->opcode & 0x7FF) << 16 : 0);
    part[5] = (uint32_t)fpu->data;
    part[6] = ones | fpu->data_selector;
  }
}

static void environment_set(struct cpu *cpu, bool is_32, const struct environment *environment)
{
  struct fpu *fpu = &cpu->fpu;
  const uint32_t *part = environment->part;

  x87_set_control(fpu, (uint16_t)part[0]);
  x87_set_status(fpu, (uint16_t)part[1]);
  set_tag_word(fpu, (uint16_t)part[2]);
  if (is_real(cpu)) {
    fpu->instruction = (part[3] & 0xFFFF) | (part[4] >> 12 & 0xFFFF) << 16;
    fpu->data = (part[5] & 0xFFFF) | (part[6] >> 12 & 0xFFFF) << 16;
    fpu->instruction_selector = fpu->data_selector = 0;
    fpu->opcode = part[4] & 0x7FF;
  } else {
    fpu->instruction = part[3];
    fpu->data = part[5];
    fpu->instruction_selector = (uint16_t)part[4];
    fpu->data_selector = (uint16_t)part[6];
    if (is_32)
      fpu->opcode = part[4] >> 16 & 0x7FF;
  }
}

static unsigned environment_pack(const struct environment *environment, bool is_32, uint8_t *bytes)
{
  unsigned width = is_32 ? 4 : 2;

  for (unsigned i = 0; i < 7; i++)
    memcpy(bytes + i * width, &environment->part[i], width);
  return 7 * width;
}

static unsigned environment_unpack(struct environment *ret_environment, bool is_32, const uint8_t *bytes)
{
  unsigned width = is_32 ? 4 : 2;

  for (unsigned i = 0; i < 7; i++)
    ret_environment->part[i] = (uint32_t)access_fetch(bytes + i * width, width);
  return 7 * width;
}

/* ---- FLDENV, FNSTENV, FRSTOR, FNSAVE ---- */

enum { STATE_BYTES = 28 + 80 };

static bool is_wide(const struct insn *insn)
{
  return insn->memory_size == 28 || insn->memory_size == 108;
}

const struct insn *x87_fldenv(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  uint8_t bytes[STATE_BYTES];
  struct environment environment;
  access_read(cpu, insn->segment, insn_address(cpu, insn), bytes, is_wide(insn) ? 28 : 14);
  environment_unpack(&environment, is_wide(insn), bytes);
  environment_set(cpu, is_wide(insn), &environment);
  return insn + 1;
}

/* All exceptions are masked afterwards. */
const struct insn *x87_fnstenv(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  uint8_t bytes[STATE_BYTES];
  struct environment environment;
  environment_get(cpu, is_wide(insn), &environment);
  unsigned size = environment_pack(&environment, is_wide(insn), bytes);
  access_write(cpu, insn->segment, insn_address(cpu, insn), bytes, size);
  x87_set_control(&cpu->fpu, cpu->fpu.control | X87_EXCEPTIONS);
  return insn + 1;
}

const struct insn *x87_frstor(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  uint8_t bytes[STATE_BYTES];
  struct environment environment;
  access_read(cpu, insn->segment, insn_address(cpu, insn), bytes, is_wide(insn) ? 108 : 94);
  unsigned size = environment_unpack(&environment, is_wide(insn), bytes);
  environment_set(cpu, is_wide(insn), &environment);
  for (unsigned i = 0; i < 8; i++)
    memcpy(cpu->fpu.st[x87_number(&cpu->fpu, i)], bytes + size + 10 * i, 10);
  return insn + 1;
}

const struct insn *x87_fnsave(struct cpu *cpu, const struct insn *insn)
{
  x87_check_available(cpu);
  uint8_t bytes[STATE_BYTES];
  struct environment environment;
  environment_get(cpu, is_wide(insn), &environment);
  unsigned size = environment_pack(&environment, is_wide(insn), bytes);
  for (unsigned i = 0; i < 8; i++)
    memcpy(bytes + size + 10 * i, cpu->fpu.st[x87_number(&cpu->fpu, i)], 10);
  access_write(cpu, insn->segment, insn_address(cpu, insn), bytes, size + 80);
  x87_init(&cpu->fpu);
  return insn + 1;
}
