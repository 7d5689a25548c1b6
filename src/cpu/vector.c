/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of vector.h: the checks before a vector instruction, memory operands, unmasked floating-point
 * exceptions, and the engine of VEX instructions, which runs a 128-bit operation on each half.
 */
#include "cpu/vector.h"

#include "cpu/x87.h"

const uint32_t float_host_csr = MXCSR_DEFAULT;

/* ---- availability ---- */

void vector_refuse(struct cpu *cpu)
{
  if (cpu->cr0 & CR0_EM || !(cpu->cr4 & CR4_OSFXSR))
    fault_ud(cpu);
  fault_raise(cpu, EXCEPTION_NM, 0);
}

void vector_begin_vex(struct cpu *cpu)
{
  const uint64_t state = 6; /* XCR0: SSE and AVX */

  if (!(cpu->cr4 & CR4_OSXSAVE) || (cpu->xcr0 & state) != state || !(cpu->cr0 & CR0_PE) || cpu->eflags & FLAG_VM)
    fault_ud(cpu);
  if (cpu->cr0 & CR0_TS)
    fault_raise(cpu, EXCEPTION_NM, 0);
}

void vector_begin_mmx(struct cpu *cpu)
{
  if (cpu->cr0 & CR0_EM)
    fault_ud(cpu);
  if (cpu->cr0 & CR0_TS)
    fault_raise(cpu, EXCEPTION_NM, 0);
  x87_check_pending(cpu);
}

/* ---- memory operands ---- */

__m128i vector_load(struct cpu *cpu, const struct insn *insn, bool is_aligned)
{
  unsigned size = insn->memory_size;

  if (size < 16)
    return _mm_cvtsi64_si128((long long)insn_load(cpu, insn, size));
  uint64_t offset = insn_address(cpu, insn);
  uint64_t linear = access_linear(cpu, insn->segment, offset, 16, ACCESS_READ);
  if (is_aligned && linear % 16)
    fault_gp(cpu, 0);
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);
  __m128i value;
  if (entry->read == (linear & ~PAGE_MASK) && access_is_whole(linear, 16))
    memcpy(&value, (const void *)(uintptr_t)(linear + entry->host), 16);
  else
    access_read(cpu, insn->segment, offset, &value, 16);
  return value;
}

void vector_store(struct cpu *cpu, const struct insn *insn, __m128i value, bool is_aligned)
{
  uint64_t offset = insn_address(cpu, insn);
  uint64_t linear = access_linear(cpu, insn->segment, offset, 16, ACCESS_WRITE);

  if (is_aligned && linear % 16)
    fault_gp(cpu, 0);
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);
  if (entry->write == (linear & ~PAGE_MASK) && access_is_whole(linear, 16))
    memcpy((void *)(uintptr_t)(linear + entry->host), &value, 16);
  else
    access_write(cpu, insn->segment, offset, &value, 16);
}

/* ---- width of a general register ---- */

/* struct insn does not hold the width of each operand; where it matters, it is read from the instruction's bytes. */
static bool has_w(struct cpu *cpu, const struct insn *insn)
{
  uint8_t bytes[16] = {0};

  cpu_peek(cpu, insn->rip, bytes, insn->length < sizeof(bytes) ? insn->length : sizeof(bytes));
  for (unsigned i = 0; i + 2 < sizeof(bytes); i++) {
    if ((bytes[i] & 0xF0) == 0x40)
      return bytes[i] & 8;
    if (bytes[i] == 0xC4)
      return bytes[i + 2] & 0x80;
    if (bytes[i] == 0xC5 || bytes[i] == 0x0F)
      return false;
  }
  return false;
}

int64_t vector_signed(struct cpu *cpu, const struct insn *insn, uint64_t value)
{
  int64_t narrow = (int32_t)(uint32_t)value;

  if ((uint64_t)narrow == value || !insn_is_64(cpu))
    return narrow;
  return has_w(cpu, insn) ? (int64_t)value : narrow;
}

/* ---- unmasked exceptions: SDM vol. 1, 11.5 ---- */

static bool is_denormal_single(uint32_t bits)
{
  return (bits & 0x7F800000) == 0 && bits & 0x007FFFFF;
}

static bool is_denormal_double(uint64_t bits)
{
  return (bits & 0x7FF0000000000000) == 0 && bits & 0x000FFFFFFFFFFFFF;
}

static bool has_tiny(__m128i result, enum float_tiny tiny)
{
  union vector v;

  memcpy(v.u8, &result, 16);
  bool is_single = tiny == TINY_SS || tiny == TINY_PS;
  unsigned elements = tiny == TINY_NONE ? 0 : tiny == TINY_PS ? 4 : tiny == TINY_PD ? 2 : 1;
  for (unsigned i = 0; i < elements; i++)
    if (is_single ? is_denormal_single(v.u32[i]) : is_denormal_double(v.u64[i]))
      return true;
  return false;
}

void float_settle(struct cpu *cpu, uint32_t csr, __m128i result, enum float_tiny tiny)
{
  uint32_t raised = csr & MXCSR_FLAGS;

  if (!(cpu->fpu.mxcsr & MXCSR_UM) && has_tiny(result, tiny))
    raised |= MXCSR_UE;
  uint32_t unmasked = raised & ~(cpu->fpu.mxcsr >> 7);
  /* An exception found before the computation keeps later ones from being detected. */
  if (unmasked & (MXCSR_IE | MXCSR_DE | MXCSR_ZE))
    raised &= MXCSR_IE | MXCSR_DE | MXCSR_ZE;
  cpu->fpu.mxcsr |= raised;
  if (unmasked)
    fault_raise(cpu, cpu->cr4 & CR4_OSXMMEXCPT ? EXCEPTION_XM : EXCEPTION_UD, 0);
}

/* ---- engines ---- */

insn_handler *vector_choose(const struct insn *insn, const struct vector_forms *forms)
{
  if (vector_is_vex(insn))
    return forms->vex;
  if (insn->op_class[0] == CLASS_MMX || insn->op_class[1] == CLASS_MMX)
    return forms->mmx;
  return insn->form == FORM_REG_MEM || insn->form == FORM_MEM_REG ? forms->mem : forms->reg;
}

unsigned vex_last(const struct insn *insn)
{
  uint8_t class = insn->op_class[2];

  return class == CLASS_XMM || class == CLASS_YMM || class == CLASS_MEMORY ? 2 : 1;
}

void vex_read(struct cpu *cpu, const struct insn *insn, unsigned number, union vector *ret_value)
{
  *ret_value = (union vector){{0}};
  if (insn->op_class[number] != CLASS_MEMORY)
    memcpy(ret_value->u8, cpu->fpu.v[insn->op[number]].u8, insn->op_class[number] == CLASS_YMM ? 32 : 16);
  else
    access_read(cpu, insn->segment, insn_address(cpu, insn), ret_value->u8,
                insn->memory_size <= 32 ? insn->memory_size : 32);
}

void vex_fetch(struct cpu *cpu, const struct insn *insn, struct vex_sources *ret_sources)
{
  unsigned last = vex_last(insn);
  union vector b;

  vex_read(cpu, insn, last, &b);
  bool is_short =
    insn->op_class[last] == CLASS_XMM || (insn->op_class[last] == CLASS_MEMORY && insn->memory_size <= 16);
  for (unsigned half = 0; half < 2; half++) {
    ret_sources->a[half] = last == 2 ? vector_half(cpu, insn->op[1], half) : _mm_setzero_si128();
    memcpy(&ret_sources->b[half], b.u8 + (is_short ? 0 : 16 * half), 16);
  }
  ret_sources->halves = insn->op_class[0] == CLASS_YMM ? 2 : 1;
}

const struct insn *vex_packed(struct cpu *cpu, const struct insn *insn, host_packed *low, host_packed *high)
{
  vector_begin_vex(cpu);
  struct vex_sources s;
  vex_fetch(cpu, insn, &s);
  __m128i upper = s.halves == 2 ? high(s.a[1], s.b[1]) : _mm_setzero_si128();
  vector_set_whole(cpu, insn->op[0], low(s.a[0], s.b[0]), upper);
  return insn + 1;
}

static bool vex_plain(struct cpu *cpu, const struct insn *insn, host_float *plain, const struct vex_sources *s)
{
  uint32_t csr;

  if (!float_is_plain(cpu))
    return false;
  __m128i low = plain(s->a[0], s->b[0], &csr);
  __m128i high = s->halves == 2 ? plain(s->a[1], s->b[1], &csr) : _mm_setzero_si128();
  if (!float_is_settled(cpu, csr))
    return false;
  vector_set_whole(cpu, insn->op[0], low, high);
  return true;
}

const struct insn *vex_float(struct cpu *cpu, const struct insn *insn, host_float *run, host_float *plain,
                             enum float_tiny tiny)
{
  vector_begin_vex(cpu);
  struct vex_sources s;
  vex_fetch(cpu, insn, &s);
  if (vex_plain(cpu, insn, plain, &s))
    return insn + 1;
  uint32_t csr = float_csr(cpu);
  __m128i low = run(s.a[0], s.b[0], &csr);
  __m128i high = s.halves == 2 ? run(s.a[1], s.b[1], &csr) : _mm_setzero_si128();
  /* A tiny element in the upper half counts as well. */
  float_raise(cpu, csr, has_tiny(high, tiny) ? high : low, tiny);
  vector_set_whole(cpu, insn->op[0], low, high);
  return insn + 1;
}
