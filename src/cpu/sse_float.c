/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers for sse_float.def, and the floating-point instructions that set flags or have general registers or MMX
 * registers as operands: the host's instruction runs under the guest's MXCSR with everything masked, and the flags that
 * it raises decide whether the guest gets its result or #XM. Mostly neither MXCSR has to change: vector.h,
 * FLOAT_PLAIN_ASM. SDM vol. 1, 10.2.3 and 11.5.
 */
#include "cpu/flags.h"
#include "cpu/vector.h"

/* ---- engines ---- */

#define EXPONENT_LEAST 2u /* 1 may have been rounded up from a tiny number */

/* Whether the lowest element is finite, and neither zero nor close to denormal. */
VECTOR_INLINE bool element_is_ordinary(__m128i value, bool is_single)
{
  uint64_t bits = (uint64_t)_mm_cvtsi128_si64(value);
  uint64_t exponent = is_single ? bits >> 23 & 0xFF : bits >> 52 & 0x7FF;

  return exponent - EXPONENT_LEAST < (is_single ? 0xFFu : 0x7FFu) - EXPONENT_LEAST;
}

/* Sums, differences, products and quotients of ordinary numbers that are ordinary themselves raise no flag but PE. If
 * the guest's MXCSR has PE already, the flags need not be read, which would wait for the result. */
VECTOR_INLINE bool scalar_run(struct cpu *cpu, const struct insn *insn, host_packed *bare, bool is_single, __m128i b)
{
  __m128i a = vector_get(cpu, insn->op[0]);

  if (!(cpu->fpu.mxcsr & MXCSR_PE) || !element_is_ordinary(a, is_single) || !element_is_ordinary(b, is_single))
    return false;
  a = bare(a, b);
  if (!element_is_ordinary(a, is_single))
    return false;
  vector_set(cpu, insn->op[0], a);
  return true;
}

VECTOR_INLINE const struct insn *float_run(struct cpu *cpu, const struct insn *insn, host_float *run, host_float *plain,
                                           host_packed *bare, enum float_tiny tiny, bool is_memory)
{
  vector_begin(cpu);
  __m128i a = vector_get(cpu, insn->op[0]), b, result;
  uint32_t csr;
  b = is_memory ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);
  if (__builtin_expect(float_is_plain(cpu), 1)) {
    if (bare && scalar_run(cpu, insn, bare, tiny == TINY_SS, b))
      return insn + 1;
    result = plain(a, b, &csr);
    if (__builtin_expect(float_is_settled(cpu, csr), 1)) {
      vector_set(cpu, insn->op[0], result);
      return insn + 1;
    }
  }
  csr = float_csr(cpu);
  result = run(a, b, &csr);
  float_raise(cpu, csr, result, tiny);
  vector_set(cpu, insn->op[0], result);
  return insn + 1;
}

static const struct insn *vex_extend(struct cpu *cpu, const struct insn *insn, host_float *run, unsigned bytes)
{
  vector_begin_vex(cpu);
  union vector source;
  vex_read(cpu, insn, 1, &source);
  __m128i half[2] = {_mm_setzero_si128(), _mm_setzero_si128()};
  uint32_t csr = float_csr(cpu);
  for (unsigned i = 0; i < (insn->op_class[0] == CLASS_YMM ? 2u : 1u); i++) {
    memcpy(&half[i], source.u8 + i * bytes, 16);
    half[i] = run(half[i], half[i], &csr);
  }
  float_raise(cpu, csr, half[0], TINY_NONE);
  vector_set_whole(cpu, insn->op[0], half[0], half[1]);
  return insn + 1;
}

/* Each half of the source becomes 8 bytes; the rest of the destination is 0. */
static const struct insn *vex_narrow(struct cpu *cpu, const struct insn *insn, host_float *run, enum float_tiny tiny)
{
  vector_begin_vex(cpu);
  union vector source;
  vex_read(cpu, insn, 1, &source);
  uint32_t csr = float_csr(cpu);
  bool is_256 = insn->op_class[1] == CLASS_YMM || (insn->op_class[1] == CLASS_MEMORY && insn->memory_size == 32);
  __m128i low, high = _mm_setzero_si128();
  memcpy(&low, source.u8, 16);
  low = run(low, low, &csr);
  if (is_256) {
    memcpy(&high, source.u8 + 16, 16);
    high = run(high, high, &csr);
  }
  __m128i result = _mm_unpacklo_epi64(low, high);
  float_raise(cpu, csr, result, tiny);
  vector_set_whole(cpu, insn->op[0], result, _mm_setzero_si128());
  return insn + 1;
}

/* ---- one set of handlers per row ---- */

#define HOST_FLOAT(host)                                                                                               \
  static inline __m128i host_##host(__m128i a, __m128i b, uint32_t *csr)                                               \
  {                                                                                                                    \
    __asm__(FLOAT_ASM(#host " %[b], %[a]")                                                                             \
            : [a] "+x"(a), [csr] "+m"(*csr)                                                                            \
            : [b] "x"(b), [host_csr] "m"(float_host_csr));                                                             \
    return a;                                                                                                          \
  }                                                                                                                    \
  static inline __m128i plain_##host(__m128i a, __m128i b, uint32_t *csr)                                              \
  {                                                                                                                    \
    __asm__ volatile(FLOAT_PLAIN_ASM(#host " %[b], %[a]") : [a] "+x"(a), [csr] "=m"(*csr) : [b] "x"(b));               \
    return a;                                                                                                          \
  }

#define HOST_BARE(host)                                                                                                \
  static inline __m128i bare_##host(__m128i a, __m128i b)                                                              \
  {                                                                                                                    \
    __asm__(#host " %[b], %[a]" : [a] "+x"(a) : [b] "x"(b));                                                           \
    return a;                                                                                                          \
  }

/* The last arguments are the function for VEX encodings and its constants. */
#define ROW(host, bare, tiny, ...)                                                                                     \
  HOST_FLOAT(host)                                                                                                     \
  static HANDLER(host##_reg, float_run, host_##host, plain_##host, bare, tiny, false);                                 \
  static HANDLER(host##_mem, float_run, host_##host, plain_##host, bare, tiny, true);                                  \
  static HANDLER(host##_vex, __VA_ARGS__);                                                                             \
  insn_handler *vector_##host(const struct insn *insn)                                                                 \
  {                                                                                                                    \
    static const struct vector_forms forms = {host##_reg, host##_mem, NULL, host##_vex};                               \
    return vector_choose(insn, &forms);                                                                                \
  }

#define FLOAT(name, host, tiny) ROW(host, NULL, tiny, vex_float, host_##host, plain_##host, tiny)
#define FLOAT_SCALAR(name, host, tiny)                                                                                 \
  HOST_BARE(host)                                                                                                      \
  ROW(host, bare_##host, tiny, vex_float, host_##host, plain_##host, tiny)
#define FLOAT_EXTEND(name, host, bytes) ROW(host, NULL, TINY_NONE, vex_extend, host_##host, bytes)
#define FLOAT_NARROW(name, host, tiny) ROW(host, NULL, tiny, vex_narrow, host_##host, tiny)

#include "cpu/sse_float.def"

/* ---- comparisons into the flags ---- */

#define COMPARISON(host)                                                                                               \
  const struct insn *vector_##host(struct cpu *cpu, const struct insn *insn)                                           \
  {                                                                                                                    \
    vector_begin_any(cpu, insn);                                                                                       \
    __m128i a = vector_get(cpu, insn->op[0]);                                                                          \
    __m128i b = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, false) : vector_get(cpu, insn->op[1]);             \
    uint32_t csr = 0;                                                                                                  \
    bool zf, pf, cf, is_plain = float_is_plain(cpu);                                                                   \
    if (is_plain)                                                                                                      \
      __asm__ volatile(FLOAT_PLAIN_ASM(#host " %[b], %[a]")                                                            \
                       : "=@ccz"(zf), "=@ccp"(pf), "=@ccc"(cf), [csr] "=m"(csr)                                        \
                       : [a] "x"(a), [b] "x"(b));                                                                      \
    if (!is_plain || !float_is_settled(cpu, csr)) {                                                                    \
      csr = float_csr(cpu);                                                                                            \
      __asm__(FLOAT_ASM(#host " %[b], %[a]")                                                                           \
              : "=@ccz"(zf), "=@ccp"(pf), "=@ccc"(cf), [csr] "+m"(csr)                                                 \
              : [a] "x"(a), [b] "x"(b), [host_csr] "m"(float_host_csr));                                               \
      float_raise(cpu, csr, a, TINY_NONE);                                                                             \
    }                                                                                                                  \
    flags_set_arithmetic(cpu, (zf ? FLAG_ZF : 0u) | (pf ? FLAG_PF : 0u) | (cf ? FLAG_CF : 0u));                        \
    return insn + 1;                                                                                                   \
  }

COMPARISON(comiss)
COMPARISON(comisd)
COMPARISON(ucomiss)
COMPARISON(ucomisd)

/* ---- general registers ---- */

/* The integer source, sign-extended: a conversion from 64 bits gives the same as one from 32. */
static int64_t integer_source(struct cpu *cpu, const struct insn *insn, unsigned number)
{
  if (insn->op_class[number] != CLASS_MEMORY)
    return vector_signed(cpu, insn, reg_get(cpu, insn->op[number], 8));
  uint64_t value = insn_load(cpu, insn, insn->memory_size);
  return insn->memory_size == 8 ? (int64_t)value : (int32_t)(uint32_t)value;
}

#define FROM_INTEGER(name, host)                                                                                       \
  const struct insn *vector_##name(struct cpu *cpu, const struct insn *insn)                                           \
  {                                                                                                                    \
    vector_begin_any(cpu, insn);                                                                                       \
    unsigned last = vector_is_vex(insn) ? 2 : 1;                                                                       \
    int64_t b = integer_source(cpu, insn, last);                                                                       \
    __m128i a = vector_get(cpu, insn->op[last - 1]);                                                                   \
    uint32_t csr = 0;                                                                                                  \
    bool is_plain = float_is_plain(cpu);                                                                               \
    if (is_plain)                                                                                                      \
      __asm__ volatile(FLOAT_PLAIN_ASM(#host " %[b], %[a]") : [a] "+x"(a), [csr] "=m"(csr) : [b] "r"(b));              \
    if (!is_plain || !float_is_settled(cpu, csr)) { /* the upper part of `a` is unchanged */                           \
      csr = float_csr(cpu);                                                                                            \
      __asm__(FLOAT_ASM(#host " %[b], %[a]")                                                                           \
              : [a] "+x"(a), [csr] "+m"(csr)                                                                           \
              : [b] "r"(b), [host_csr] "m"(float_host_csr));                                                           \
      float_raise(cpu, csr, a, TINY_NONE);                                                                             \
    }                                                                                                                  \
    vector_set_any(cpu, insn, insn->op[0], a);                                                                         \
    return insn + 1;                                                                                                   \
  }

FROM_INTEGER(cvtsi2ss, cvtsi2ssq)
FROM_INTEGER(cvtsi2sd, cvtsi2sdq)

#define TO_INTEGER(host)                                                                                               \
  const struct insn *vector_##host(struct cpu *cpu, const struct insn *insn)                                           \
  {                                                                                                                    \
    vector_begin_any(cpu, insn);                                                                                       \
    __m128i b = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, false) : vector_get(cpu, insn->op[1]);             \
    uint32_t csr = 0;                                                                                                  \
    uint64_t wide = 0;                                                                                                 \
    uint32_t narrow = 0;                                                                                               \
    bool is_plain = float_is_plain(cpu);                                                                               \
    if (is_plain && insn->size == 8)                                                                                   \
      __asm__ volatile(FLOAT_PLAIN_ASM(#host " %[b], %[a]") : [a] "=&r"(wide), [csr] "=m"(csr) : [b] "x"(b));          \
    else if (is_plain)                                                                                                 \
      __asm__ volatile(FLOAT_PLAIN_ASM(#host " %[b], %[a]") : [a] "=&r"(narrow), [csr] "=m"(csr) : [b] "x"(b));        \
    if (is_plain && float_is_settled(cpu, csr)) {                                                                      \
      reg_set(cpu, insn->op[0], insn->size, insn->size == 8 ? wide : narrow);                                          \
      return insn + 1;                                                                                                 \
    }                                                                                                                  \
    csr = float_csr(cpu);                                                                                              \
    if (insn->size == 8)                                                                                               \
      __asm__(FLOAT_ASM(#host " %[b], %[a]")                                                                           \
              : [a] "=&r"(wide), [csr] "+m"(csr)                                                                       \
              : [b] "x"(b), [host_csr] "m"(float_host_csr));                                                           \
    else                                                                                                               \
      __asm__(FLOAT_ASM(#host " %[b], %[a]")                                                                           \
              : [a] "=&r"(narrow), [csr] "+m"(csr)                                                                     \
              : [b] "x"(b), [host_csr] "m"(float_host_csr));                                                           \
    float_raise(cpu, csr, b, TINY_NONE);                                                                               \
    reg_set(cpu, insn->op[0], insn->size, insn->size == 8 ? wide : narrow);                                            \
    return insn + 1;                                                                                                   \
  }

TO_INTEGER(cvtss2si)
TO_INTEGER(cvtsd2si)
TO_INTEGER(cvttss2si)
TO_INTEGER(cvttsd2si)

/* ---- MMX registers: the same conversions as between SSE registers, of two elements ---- */

static const struct insn *from_mmx(struct cpu *cpu, const struct insn *insn, bool is_single)
{
  bool is_memory = insn->form == FORM_REG_MEM;

  vector_begin(cpu);
  if (!is_memory)
    vector_begin_mmx(cpu);
  uint64_t source = is_memory ? insn_load(cpu, insn, 8) : mmx_get(cpu, insn->op[1]);
  __m128i b = _mm_cvtsi64_si128((long long)source);
  __m128i a = vector_get(cpu, insn->op[0]);
  uint32_t csr = float_csr(cpu);
  __m128i result = is_single ? host_cvtdq2ps(b, b, &csr) : _mm_castpd_si128(_mm_cvtepi32_pd(b));
  if (is_single) /* the upper half stays */
    result = _mm_unpacklo_epi64(result, _mm_unpackhi_epi64(a, a));
  float_raise(cpu, csr, result, TINY_NONE);
  if (!is_memory)
    mmx_enter(cpu);
  vector_set(cpu, insn->op[0], result);
  return insn + 1;
}

static const struct insn *to_mmx(struct cpu *cpu, const struct insn *insn, host_float *run, bool is_single)
{
  vector_begin(cpu);
  vector_begin_mmx(cpu);
  __m128i b = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);
  if (is_single)
    b = _mm_move_epi64(b); /* the other two elements must have no effect */
  uint32_t csr = float_csr(cpu);
  __m128i result = run(b, b, &csr);
  float_raise(cpu, csr, result, TINY_NONE);
  mmx_enter(cpu);
  mmx_set(cpu, insn->op[0], (uint64_t)_mm_cvtsi128_si64(result));
  return insn + 1;
}

HANDLER(vector_cvtpi2ps, from_mmx, true);
HANDLER(vector_cvtpi2pd, from_mmx, false);
HANDLER(vector_cvtps2pi, to_mmx, host_cvtps2dq, true);
HANDLER(vector_cvttps2pi, to_mmx, host_cvttps2dq, true);
HANDLER(vector_cvtpd2pi, to_mmx, host_cvtpd2dq, false);
HANDLER(vector_cvttpd2pi, to_mmx, host_cvttpd2dq, false);
