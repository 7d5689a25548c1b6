/* SPDX-License-Identifier: Apache-2.0
 *
 * PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM: the host's instruction, once per immediate as in sse_immediate.c, with
 * its flags. Their memory operand need not be aligned. SDM vol. 1, 12.10 and vol. 2, 4.1.
 */
#include "cpu/flags.h"
#include "cpu/stub.h"
#include "cpu/vector.h"

struct string_result {
  __m128i mask;
  uint32_t index;
  uint32_t flags;
};

STUBS(pcmpestri, "%xmm1, %xmm0")
STUBS(pcmpestrm, "%xmm1, %xmm0")
STUBS(pcmpistri, "%xmm1, %xmm0")
STUBS(pcmpistrm, "%xmm1, %xmm0")

/* Calls one stub. The stack pointer skips the red zone, with LEA because LEA does not change the flags. */
static void string_call(const uint8_t *table, uint8_t immediate, __m128i a, __m128i b, int32_t a_length,
                        int32_t b_length, struct string_result *ret_result)
{
  register __m128i xmm0 __asm__("xmm0") = a;
  register __m128i xmm1 __asm__("xmm1") = b;
  uintptr_t at = (uintptr_t)table + (size_t)STUB_BYTES * immediate;
  bool cf, zf, sf, of;
  uint32_t index = 0;
  __asm__("lea -128(%%rsp), %%rsp\n\tcall *%[at]\n\tlea 128(%%rsp), %%rsp"
          : "=@ccc"(cf), "=@ccz"(zf), "=@ccs"(sf), "=@cco"(of), "+x"(xmm0), "+c"(index)
          : [at] "r"(at), "x"(xmm1), "a"(a_length), "d"(b_length)
          : "memory");
  ret_result->mask = xmm0;
  ret_result->index = index;
  ret_result->flags =
    (cf ? FLAG_CF : 0u) | (zf ? FLAG_ZF : 0u) | (sf ? FLAG_SF : 0u) | (of ? FLAG_OF : 0u); /* AF and PF are 0 */
}

/* A length beyond 16, positive or negative, counts as 16. */
static int32_t string_length(struct cpu *cpu, const struct insn *insn, unsigned number)
{
  int64_t length = vector_signed(cpu, insn, cpu->r[number]);

  return length > 16 ? 16 : length < -16 ? -16 : (int32_t)length;
}

static void string_run(struct cpu *cpu, const struct insn *insn, const uint8_t *table, struct string_result *ret_result)
{
  vector_begin_any(cpu, insn);
  __m128i b = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, false) : vector_get(cpu, insn->op[1]);
  int32_t a_length = string_length(cpu, insn, RAX);
  int32_t b_length = string_length(cpu, insn, RDX);
  string_call(table, (uint8_t)insn->imm, vector_get(cpu, insn->op[0]), b, a_length, b_length, ret_result);
  flags_set_arithmetic(cpu, ret_result->flags);
}

static const struct insn *string_index(struct cpu *cpu, const struct insn *insn, const uint8_t *table)
{
  struct string_result result;

  string_run(cpu, insn, table, &result);
  reg_set(cpu, 8 * RCX, 4, result.index);
  return insn + 1;
}

static const struct insn *string_mask(struct cpu *cpu, const struct insn *insn, const uint8_t *table)
{
  struct string_result result;

  string_run(cpu, insn, table, &result);
  vector_set_any(cpu, insn, 0, result.mask);
  return insn + 1;
}

const struct insn *vector_pcmpestri(struct cpu *cpu, const struct insn *insn)
{
  return string_index(cpu, insn, stub_pcmpestri);
}

const struct insn *vector_pcmpistri(struct cpu *cpu, const struct insn *insn)
{
  return string_index(cpu, insn, stub_pcmpistri);
}

const struct insn *vector_pcmpestrm(struct cpu *cpu, const struct insn *insn)
{
  return string_mask(cpu, insn, stub_pcmpestrm);
}

const struct insn *vector_pcmpistrm(struct cpu *cpu, const struct insn *insn)
{
  return string_mask(cpu, insn, stub_pcmpistrm);
}
