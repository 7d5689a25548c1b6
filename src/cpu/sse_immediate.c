/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers for sse_immediate.def. The immediate is part of the host's instruction, so each row has a table of 256 tiny
 * functions of eight bytes, one per value. They take their operands in XMM0 and XMM1 and return XMM0, as in the C
 * calling convention.
 */
#include <Zydis/Zydis.h>

#include "cpu/stub.h"
#include "cpu/vector.h"

static host_packed *stub(const uint8_t *table, unsigned immediate)
{
  return (host_packed *)((uintptr_t)table + (size_t)STUB_BYTES * (uint8_t)immediate);
}

/* With an element from memory, INSERTPS does not choose among the source's elements. */
static unsigned immediate_of(const struct insn *insn)
{
  bool is_single =
    insn->memory_size == 4 && (insn->mnemonic == ZYDIS_MNEMONIC_INSERTPS || insn->mnemonic == ZYDIS_MNEMONIC_VINSERTPS);

  return is_single ? insn->imm & 0x3F : insn->imm & 0xFF;
}

/* ---- engines: `table` has the stubs, `mask` the bits of the immediate that count ---- */

static const struct insn *immediate_run(struct cpu *cpu, const struct insn *insn, const uint8_t *table)
{
  host_packed *run = stub(table, immediate_of(insn));

  vector_begin(cpu);
  __m128i b = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);
  vector_set(cpu, insn->op[0], run(vector_get(cpu, insn->op[0]), b));
  return insn + 1;
}

/* The upper half has its immediate `upper` bits further left. */
static const struct insn *vex_immediate(struct cpu *cpu, const struct insn *insn, const uint8_t *table, unsigned upper)
{
  unsigned immediate = immediate_of(insn);

  return vex_packed(cpu, insn, stub(table, immediate), stub(table, immediate >> upper));
}

/* The calls cannot be moved across the asm statements: the compiler does not know what they do. */
static __m128i call_float(host_packed *run, __m128i a, __m128i b, uint32_t *csr)
{
  __asm__ volatile("ldmxcsr %0" : : "m"(*csr) : "memory");
  __m128i result = run(a, b);
  __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "+m"(*csr) : "m"(float_host_csr) : "memory");
  return result;
}

static const struct insn *float_immediate(struct cpu *cpu, const struct insn *insn, const uint8_t *table, unsigned mask)
{
  host_packed *run = stub(table, immediate_of(insn) & mask);

  vector_begin(cpu);
  __m128i b = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);
  uint32_t csr = float_csr(cpu);
  __m128i result = call_float(run, vector_get(cpu, insn->op[0]), b, &csr);
  float_raise(cpu, csr, result, TINY_NONE);
  vector_set(cpu, insn->op[0], result);
  return insn + 1;
}

static const struct insn *vex_float_immediate(struct cpu *cpu, const struct insn *insn, const uint8_t *table,
                                              unsigned mask)
{
  host_packed *run = stub(table, immediate_of(insn) & mask);

  vector_begin_vex(cpu);
  struct vex_sources s;
  vex_fetch(cpu, insn, &s);
  uint32_t csr = float_csr(cpu);
  __m128i low = call_float(run, s.a[0], s.b[0], &csr);
  __m128i high = s.halves == 2 ? call_float(run, s.a[1], s.b[1], &csr) : _mm_setzero_si128();
  float_raise(cpu, csr, low, TINY_NONE);
  vector_set_whole(cpu, insn->op[0], low, high);
  return insn + 1;
}

/* ---- one table and its handlers per row ---- */

#define CHOOSER(host)                                                                                                  \
  insn_handler *vector_##host(const struct insn *insn)                                                                 \
  {                                                                                                                    \
    return vector_is_vex(insn) ? host##_vex : host##_legacy;                                                           \
  }

#define IMMEDIATE(name, host, upper)                                                                                   \
  STUBS(host, "%xmm1, %xmm0")                                                                                          \
  static HANDLER(host##_legacy, immediate_run, stub_##host);                                                           \
  static HANDLER(host##_vex, vex_immediate, stub_##host, upper);                                                       \
  CHOOSER(host)

#define FLOAT_IMMEDIATE(name, host)                                                                                    \
  STUBS(host, "%xmm1, %xmm0")                                                                                          \
  static HANDLER(host##_legacy, float_immediate, stub_##host, 0xFF);                                                   \
  static HANDLER(host##_vex, vex_float_immediate, stub_##host, 0xFF);                                                  \
  CHOOSER(host)

/* The predicates above 7 exist only in the host's VEX encoding. */
#define COMPARE(name, host)                                                                                            \
  STUBS(host, "%xmm1, %xmm0")                                                                                          \
  STUBS(v##host, "%xmm1, %xmm0, %xmm0")                                                                                \
  static HANDLER(host##_legacy, float_immediate, stub_##host, 7);                                                      \
  static HANDLER(host##_vex, vex_float_immediate, stub_v##host, 31);                                                   \
  CHOOSER(host)

/* PALIGNR's chooser is below, because it has an MMX form. */
#define vector_palignr palignr_xmm
static insn_chooser palignr_xmm;
#include "cpu/sse_immediate.def"
COMPARE(CMPSD, cmpsd)
#undef vector_palignr

/* ---- MMX ---- */

/* 16 bytes, the destination above the source, shifted right by this many bytes. */
static const struct insn *palignr_mmx(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_mmx(cpu);
  uint8_t bytes[24] = {0};
  uint64_t low = insn->form == FORM_REG_MEM ? insn_load(cpu, insn, 8) : mmx_get(cpu, insn->op[1]);
  uint64_t high = mmx_get(cpu, insn->op[0]);
  memcpy(bytes, &low, 8);
  memcpy(bytes + 8, &high, 8);
  unsigned shift = insn->imm & 0xFF;
  mmx_enter(cpu);
  mmx_set(cpu, insn->op[0], access_fetch(bytes + (shift < 16 ? shift : 16), 8));
  return insn + 1;
}

insn_handler *vector_palignr(const struct insn *insn)
{
  return insn->op_class[0] == CLASS_MMX ? palignr_mmx : palignr_xmm(insn);
}

/* PSHUFW does with 8 bytes what PSHUFLW does with the lower 8 of 16. */
const struct insn *vector_pshufw(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_mmx(cpu);
  uint64_t source = insn->form == FORM_REG_MEM ? insn_load(cpu, insn, 8) : mmx_get(cpu, insn->op[1]);
  __m128i value = _mm_cvtsi64_si128((long long)source);
  value = stub(stub_pshuflw, insn->imm & 0xFF)(value, value);
  mmx_enter(cpu);
  mmx_set(cpu, insn->op[0], (uint64_t)_mm_cvtsi128_si64(value));
  return insn + 1;
}

/* ---- the whole register shifted by bytes ---- */

static __m128i shift_bytes(__m128i value, unsigned left, unsigned right)
{
  uint8_t bytes[48] = {0};

  memcpy(bytes + 16, &value, 16);
  memcpy(&value, bytes + 16 - (left < 16 ? left : 16) + (right < 16 ? right : 16), 16);
  return value;
}

static const struct insn *shift_run(struct cpu *cpu, const struct insn *insn, unsigned left, unsigned right)
{
  vector_begin_any(cpu, insn);
  bool is_vex = vector_is_vex(insn);
  unsigned source = insn->op[is_vex ? 1 : 0];
  __m128i low = shift_bytes(vector_half(cpu, source, 0), left, right);
  __m128i high = shift_bytes(vector_half(cpu, source, 1), left, right);
  vector_set_any(cpu, insn, insn->op[0], low);
  if (insn->op_class[0] == CLASS_YMM)
    vector_set_whole(cpu, insn->op[0], low, high);
  return insn + 1;
}

const struct insn *vector_pslldq(struct cpu *cpu, const struct insn *insn)
{
  return shift_run(cpu, insn, insn->imm & 0xFF, 0);
}

const struct insn *vector_psrldq(struct cpu *cpu, const struct insn *insn)
{
  return shift_run(cpu, insn, 0, insn->imm & 0xFF);
}
