/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers for sse_integer.def: the host's instruction on copies of the operands. Each row gets a form with registers,
 * one with memory, one for MMX registers if it has any, and one for VEX.
 */
#include "cpu/vector.h"

/* ---- engines ---- */

typedef uint64_t host_mmx(uint64_t a, uint64_t b);

VECTOR_INLINE const struct insn *packed_run(struct cpu *cpu, const struct insn *insn, host_packed *run, bool is_memory)
{
  vector_begin(cpu);
  __m128i b = is_memory ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);
  vector_set(cpu, insn->op[0], run(vector_get(cpu, insn->op[0]), b));
  return insn + 1;
}

/* Source: register, memory (4 bytes for PUNPCKL), or the count of a shift. */
static const struct insn *mmx_run(struct cpu *cpu, const struct insn *insn, host_mmx *run)
{
  vector_begin_mmx(cpu);
  uint64_t b = insn->form == FORM_REG_MEM   ? insn_load(cpu, insn, insn->memory_size == 4 ? 4 : 8)
               : insn->form == FORM_REG_IMM ? (uint8_t)insn->imm
                                            : mmx_get(cpu, insn->op[1]);
  uint64_t result = run(mmx_get(cpu, insn->op[0]), b);
  mmx_enter(cpu);
  mmx_set(cpu, insn->op[0], result);
  return insn + 1;
}

static const struct insn *shift_immediate(struct cpu *cpu, const struct insn *insn, host_packed *run)
{
  vector_begin(cpu);
  __m128i count = _mm_cvtsi32_si128((uint8_t)insn->imm);
  vector_set(cpu, insn->op[0], run(vector_get(cpu, insn->op[0]), count));
  return insn + 1;
}

static const struct insn *vex_shift(struct cpu *cpu, const struct insn *insn, host_packed *run)
{
  if (insn->op_class[2] != CLASS_IMMEDIATE)
    return vex_packed(cpu, insn, run, run);
  vector_begin_vex(cpu);
  __m128i count = _mm_cvtsi32_si128((uint8_t)insn->imm);
  __m128i low = run(vector_half(cpu, insn->op[1], 0), count);
  __m128i high = run(vector_half(cpu, insn->op[1], 1), count);
  vector_set_whole(cpu, insn->op[0], low, insn->op_class[0] == CLASS_YMM ? high : _mm_setzero_si128());
  return insn + 1;
}

static const struct insn *vex_extend(struct cpu *cpu, const struct insn *insn, host_packed *run, unsigned bytes)
{
  vector_begin_vex(cpu);
  union vector source;
  vex_read(cpu, insn, 1, &source);
  __m128i half[2];
  for (unsigned i = 0; i < 2; i++) {
    memcpy(&half[i], source.u8 + i * bytes, 16);
    half[i] = run(half[i], half[i]);
  }
  vector_set_whole(cpu, insn->op[0], half[0], insn->op_class[0] == CLASS_YMM ? half[1] : _mm_setzero_si128());
  return insn + 1;
}

static insn_handler *shift_choose(const struct insn *insn, const struct vector_forms *forms, insn_handler *immediate)
{
  bool is_legacy = !vector_is_vex(insn) && insn->op_class[0] == CLASS_XMM;

  return is_legacy && insn->form == FORM_REG_IMM ? immediate : vector_choose(insn, forms);
}

/* ---- one set of handlers per row ---- */

#define HOST_PACKED(host)                                                                                              \
  VECTOR_INLINE __m128i host_##host(__m128i a, __m128i b)                                                              \
  {                                                                                                                    \
    __asm__(#host " %1, %0" : "+x"(a) : "x"(b));                                                                       \
    return a;                                                                                                          \
  }

/* The x87 stack is empty between functions, and EMMS leaves it so. */
#define HOST_MMX(host)                                                                                                 \
  static uint64_t mmx_##host(uint64_t a, uint64_t b)                                                                   \
  {                                                                                                                    \
    __asm__("movq %0, %%mm0\n\tmovq %1, %%mm1\n\t" #host " %%mm1, %%mm0\n\tmovq %%mm0, %0\n\temms"                     \
            : "+r"(a)                                                                                                  \
            : "r"(b)                                                                                                   \
            : "mm0", "mm1", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");                      \
    return a;                                                                                                          \
  }

#define FORMS_LEGACY(host)                                                                                             \
  HOST_PACKED(host)                                                                                                    \
  static HANDLER(host##_reg, packed_run, host_##host, false);                                                          \
  static HANDLER(host##_mem, packed_run, host_##host, true);

#define FORMS_MMX(host)                                                                                                \
  HOST_MMX(host)                                                                                                       \
  static HANDLER(host##_mmx, mmx_run, mmx_##host);

#define CHOOSER(host, mmx)                                                                                             \
  insn_handler *vector_##host(const struct insn *insn)                                                                 \
  {                                                                                                                    \
    static const struct vector_forms forms = {host##_reg, host##_mem, mmx, host##_vex};                                \
    return vector_choose(insn, &forms);                                                                                \
  }

#define PACKED(name, host)                                                                                             \
  FORMS_LEGACY(host)                                                                                                   \
  static HANDLER(host##_vex, vex_packed, host_##host, host_##host);                                                    \
  CHOOSER(host, NULL)

#define PACKED_MMX(name, host)                                                                                         \
  FORMS_LEGACY(host)                                                                                                   \
  FORMS_MMX(host)                                                                                                      \
  static HANDLER(host##_vex, vex_packed, host_##host, host_##host);                                                    \
  CHOOSER(host, host##_mmx)

#define SHIFT(name, host)                                                                                              \
  FORMS_LEGACY(host)                                                                                                   \
  FORMS_MMX(host)                                                                                                      \
  static HANDLER(host##_vex, vex_shift, host_##host);                                                                  \
  static HANDLER(host##_immediate, shift_immediate, host_##host);                                                      \
  insn_handler *vector_##host(const struct insn *insn)                                                                 \
  {                                                                                                                    \
    static const struct vector_forms forms = {host##_reg, host##_mem, host##_mmx, host##_vex};                         \
    return shift_choose(insn, &forms, host##_immediate);                                                               \
  }

#define EXTEND(name, host, bytes)                                                                                      \
  FORMS_LEGACY(host)                                                                                                   \
  static HANDLER(host##_vex, vex_extend, host_##host, bytes);                                                          \
  CHOOSER(host, NULL)

#include "cpu/sse_integer.def"
