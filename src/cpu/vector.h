/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that the handlers of MMX, SSE and AVX share: whether the instruction may run, registers and memory operands of
 * 16 bytes, MXCSR around the host's instructions, and the engines that the tables (sse_integer.def, sse_float.def,
 * sse_immediate.def) make handlers with. The host does the arithmetic, 128 bits at a time; a 256-bit instruction is
 * done as two halves. SDM vol. 1, chapters 9 to 14.
 */
#ifndef CPU_VECTOR_H
#define CPU_VECTOR_H

#include <emmintrin.h>

#include "cpu/fault.h"
#include "cpu/instruction.h"

#define VECTOR_INLINE static inline __attribute__((always_inline))

/* MOVSD and CMPSD share their mnemonics with string instructions, whose choosers call these. */
insn_chooser vector_movsd, vector_cmpsd;

/* ---- availability: SDM vol. 3, 2.5, table 9-3 and 13.1; vol. 2, 2.4 ---- */

void vector_refuse(struct cpu *cpu); /* #UD or #NM */
void vector_begin_vex(struct cpu *cpu);
void vector_begin_mmx(struct cpu *cpu); /* also delivers a waiting x87 exception */

static inline void vector_begin(struct cpu *cpu)
{
  if (__builtin_expect((cpu->cr0 & (CR0_EM | CR0_TS)) || !(cpu->cr4 & CR4_OSFXSR), 0))
    vector_refuse(cpu);
}

static inline bool vector_is_vex(const struct insn *insn)
{
  return insn->variant == VARIANT_VEX_128 || insn->variant == VARIANT_VEX_256;
}

/* For handlers that serve both encodings. */
static inline void vector_begin_any(struct cpu *cpu, const struct insn *insn)
{
  if (vector_is_vex(insn))
    vector_begin_vex(cpu);
  else
    vector_begin(cpu);
}

/* ---- registers ---- */

/* The lower or upper 16 bytes. */
static inline __m128i vector_half(const struct cpu *cpu, unsigned number, unsigned half)
{
  return _mm_loadu_si128((const __m128i *)(const void *)(cpu->fpu.v[number].u8 + 16 * half));
}

static inline __m128i vector_get(const struct cpu *cpu, unsigned number)
{
  return vector_half(cpu, number, 0);
}

/* The upper half stays, as legacy SSE leaves it. */
static inline void vector_set(struct cpu *cpu, unsigned number, __m128i value)
{
  _mm_storeu_si128((__m128i *)(void *)cpu->fpu.v[number].u8, value);
}

/* The whole register, as VEX writes it. */
static inline void vector_set_whole(struct cpu *cpu, unsigned number, __m128i low, __m128i high)
{
  _mm_storeu_si128((__m128i *)(void *)cpu->fpu.v[number].u8, low);
  _mm_storeu_si128((__m128i *)(void *)(cpu->fpu.v[number].u8 + 16), high);
}

/* A result of 128 bits, as this encoding writes it. */
static inline void vector_set_any(struct cpu *cpu, const struct insn *insn, unsigned number, __m128i value)
{
  vector_set(cpu, number, value);
  if (vector_is_vex(insn))
    memset(cpu->fpu.v[number].u8 + 16, 0, 16);
}

static inline uint64_t mmx_get(const struct cpu *cpu, unsigned number)
{
  return access_fetch(cpu->fpu.st[number], 8);
}

/* Writing a register sets what would be sign and exponent to ones: SDM vol. 3, 12.2. */
static inline void mmx_set(struct cpu *cpu, unsigned number, uint64_t value)
{
  memcpy(cpu->fpu.st[number], &value, 8);
  memset(cpu->fpu.st[number] + 8, 0xFF, 2);
}

/* Any MMX instruction but EMMS makes all registers valid and the stack start at 0. */
static inline void mmx_enter(struct cpu *cpu)
{
  cpu->fpu.top = 0;
  cpu->fpu.tags = 0xFF;
}

/* ---- memory operands ---- */

/* memory_size bytes, at most 16, zero-extended. `is_aligned`: 16 bytes must be aligned, or #GP(0). */
__m128i vector_load(struct cpu *cpu, const struct insn *insn, bool is_aligned);
void vector_store(struct cpu *cpu, const struct insn *insn, __m128i value, bool is_aligned);

/* A general register as the instruction sees it: 64 bits with REX.W or VEX.W, else the low 32, sign-extended. */
int64_t vector_signed(struct cpu *cpu, const struct insn *insn, uint64_t value);

/* ---- MXCSR ---- */

enum {
  MXCSR_IE = 1u << 0,
  MXCSR_DE = 1u << 1,
  MXCSR_ZE = 1u << 2,
  MXCSR_UE = 1u << 4,
  MXCSR_PE = 1u << 5,
  MXCSR_FLAGS = 0x3Fu,
  MXCSR_DAZ = 1u << 6,
  MXCSR_MASKS = 0x1F80u,
  MXCSR_UM = 1u << 11,
  MXCSR_RC = 3u << 13,
  MXCSR_FTZ = 1u << 15,
  MXCSR_DEFAULT = 0x1F80u,
  MXCSR_VALID = 0xFFFFu, /* MXCSR_MASK of FXSAVE */
};

/* The elements of a result that count as tiny if they are denormal: unmasked underflow applies to exact ones, too. */
enum float_tiny { TINY_NONE, TINY_SS, TINY_SD, TINY_PS, TINY_PD };

/* MXCSR for the host: the guest's rounding and flushing, nothing unmasked, no flags. Flushing to zero works only while
 * underflow is masked (SDM vol. 1, 10.2.3.3). */
static inline uint32_t float_csr(const struct cpu *cpu)
{
  uint32_t mxcsr = cpu->fpu.mxcsr;
  uint32_t keep = MXCSR_RC | MXCSR_DAZ | (mxcsr & MXCSR_UM ? MXCSR_FTZ : 0);

  return (mxcsr & keep) | MXCSR_MASKS;
}

/* Takes over the flags that the host raised, or raises #XM (#UD without CR4.OSXMMEXCPT). */
void float_settle(struct cpu *cpu, uint32_t csr, __m128i result, enum float_tiny tiny);

static inline void float_raise(struct cpu *cpu, uint32_t csr, __m128i result, enum float_tiny tiny)
{
  if (__builtin_expect((cpu->fpu.mxcsr & MXCSR_MASKS) == MXCSR_MASKS, 1))
    cpu->fpu.mxcsr |= csr & MXCSR_FLAGS;
  else
    float_settle(cpu, csr, result, tiny);
}

extern const uint32_t float_host_csr;

/* One host instruction under the guest's MXCSR, in one asm statement, so that nothing gets in between. `csr` goes in
 * with the guest's control bits and comes out with the flags. */
#define FLOAT_ASM(code) "ldmxcsr %[csr]\n\t" code "\n\tstmxcsr %[csr]\n\tldmxcsr %[host_csr]"

/* Changing MXCSR takes longer than most arithmetic. While the guest's MXCSR has the host's control bits (all masked, to
 * nearest, nothing flushed), the instruction runs under the host's MXCSR, whose flags are not cleared. If the guest
 * already has all flags that the host has then, nothing remains to be done: MXCSR's flags stay until they are written.
 * Otherwise, whether this instruction raised the new flags or an earlier one, it runs again with FLOAT_ASM, which
 * leaves the host without flags. */
#define FLOAT_PLAIN_ASM(code) code "\n\tstmxcsr %[csr]"

static inline bool float_is_plain(const struct cpu *cpu)
{
  return (cpu->fpu.mxcsr & ~MXCSR_FLAGS) == MXCSR_DEFAULT;
}

/* `csr` is the host's MXCSR after the instruction. Also returns false if its control bits differ from MXCSR_DEFAULT. */
static inline bool float_is_settled(const struct cpu *cpu, uint32_t csr)
{
  return !((csr ^ MXCSR_DEFAULT) & ~(cpu->fpu.mxcsr & MXCSR_FLAGS));
}

/* ---- engines ---- */

typedef __m128i host_packed(__m128i a, __m128i b);
typedef __m128i host_float(__m128i a, __m128i b, uint32_t *csr);

/* Handlers of one instruction; NULL where a form does not exist. */
struct vector_forms {
  insn_handler *reg, *mem, *mmx, *vex;
};
insn_handler *vector_choose(const struct insn *insn, const struct vector_forms *forms);

/* The sources of a VEX instruction: `a` is operand 1 when there are three, `b` the last one that is no immediate. A
 * count of 128 bits serves both halves. */
struct vex_sources {
  __m128i a[2], b[2];
  unsigned halves;
};
void vex_fetch(struct cpu *cpu, const struct insn *insn, struct vex_sources *ret_sources);
/* The last register or memory operand: its number. */
unsigned vex_last(const struct insn *insn);
/* Reads `size` bytes (up to 32) of operand `number`, a vector register or memory, zero-extended. */
void vex_read(struct cpu *cpu, const struct insn *insn, unsigned number, union vector *ret_value);

const struct insn *vex_packed(struct cpu *cpu, const struct insn *insn, host_packed *low, host_packed *high);
/* `plain` is the same instruction by FLOAT_PLAIN_ASM. */
const struct insn *vex_float(struct cpu *cpu, const struct insn *insn, host_float *run, host_float *plain,
                             enum float_tiny tiny);

#endif
