/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic flags, computed only when they are needed. An operation stores its result, the carries out of each bit
 * (shifted so that the top one is bit 63) and AF; all flags follow from these. SDM vol. 1, 3.4.3.
 */
#ifndef CPU_FLAGS_H
#define CPU_FLAGS_H

#include "cpu/cpu.h"

/* Sign-extends the low `size` bytes. */
static inline uint64_t flags_extend(uint64_t value, unsigned size)
{
  unsigned shift = 64 - 8 * size;

  return (uint64_t)((int64_t)(value << shift) >> shift);
}

static inline void flags_carries(struct cpu *cpu, uint64_t a, uint64_t b, uint64_t result, uint64_t carry,
                                 unsigned size)
{
  cpu->lazy.result = flags_extend(result, size);
  cpu->lazy.carry = carry << (64 - 8 * size);
  cpu->lazy.fix = (uint32_t)((a ^ b ^ result) & FLAG_AF);
}

/* result = a + b, or a + b + CF; truncated to size or not. */
static inline void flags_add(struct cpu *cpu, uint64_t a, uint64_t b, uint64_t result, unsigned size)
{
  flags_carries(cpu, a, b, result, (a & b) | ((a | b) & ~result), size);
}

/* result = a - b, or a - b - CF. */
static inline void flags_sub(struct cpu *cpu, uint64_t a, uint64_t b, uint64_t result, unsigned size)
{
  flags_carries(cpu, a, b, result, (~a & b) | ((~a | b) & result), size);
}

/* The same where `a` and `b` have no bits beyond their size and `result` is their sum or difference in 64 bits: then a
 * ^ b ^ result has the carries into each bit, and into the one after the last. */
static inline void flags_whole(struct cpu *cpu, uint64_t a, uint64_t b, uint64_t result, bool is_add, unsigned size)
{
  if (size == 8) {
    uint64_t carry = is_add ? (a & b) | ((a | b) & ~result) : (~a & b) | ((~a | b) & result);

    flags_carries(cpu, a, b, result, carry, size);
    return;
  }
  uint64_t carried = a ^ b ^ result;
  cpu->lazy.result = flags_extend(result, size);
  cpu->lazy.carry = carried << (63 - 8 * size);
  cpu->lazy.fix = (uint32_t)carried & FLAG_AF;
}

/* CF = OF = AF = 0. */
static inline void flags_logic(struct cpu *cpu, uint64_t result, unsigned size)
{
  cpu->lazy.result = flags_extend(result, size);
  cpu->lazy.carry = 0;
  cpu->lazy.fix = 0;
}

/* Sets SF, ZF and PF by the result, and CF, OF and AF as given. For shifts, rotates, multiplications. */
static inline void flags_result(struct cpu *cpu, uint64_t result, unsigned size, bool cf, bool of, bool af)
{
  cpu->lazy.result = flags_extend(result, size);
  cpu->lazy.carry = (uint64_t)cf << 63 | (uint64_t)(cf ^ of) << 62;
  cpu->lazy.fix = af ? FLAG_AF : 0;
}

static inline bool flags_cf(const struct cpu *cpu)
{
  return cpu->lazy.carry >> 63;
}

static inline bool flags_of(const struct cpu *cpu)
{
  return (cpu->lazy.carry ^ cpu->lazy.carry << 1) >> 63;
}

static inline bool flags_zf(const struct cpu *cpu)
{
  return cpu->lazy.result == 0;
}

static inline bool flags_sf(const struct cpu *cpu)
{
  return (cpu->lazy.result >> 63) ^ (cpu->lazy.fix >> 1 & 1);
}

static inline bool flags_pf(const struct cpu *cpu)
{
  return !__builtin_parity((unsigned)cpu->lazy.result & 0xFF) ^ (cpu->lazy.fix & 1);
}

static inline bool flags_af(const struct cpu *cpu)
{
  return cpu->lazy.fix & FLAG_AF;
}

/* Sets CF and OF; the others stay. */
static inline void flags_set_cf_of(struct cpu *cpu, bool cf, bool of)
{
  cpu->lazy.carry = (uint64_t)cf << 63 | (uint64_t)(cf ^ of) << 62;
}

static inline void flags_set_cf(struct cpu *cpu, bool cf)
{
  flags_set_cf_of(cpu, cf, flags_of(cpu));
}

/* The six arithmetic flags together, in their places. */
static inline uint32_t flags_arithmetic(const struct cpu *cpu)
{
  return (flags_cf(cpu) ? FLAG_CF : 0u) | (flags_pf(cpu) ? FLAG_PF : 0u) | (cpu->lazy.fix & FLAG_AF) |
         (flags_zf(cpu) ? FLAG_ZF : 0u) | (flags_sf(cpu) ? FLAG_SF : 0u) | (flags_of(cpu) ? FLAG_OF : 0u);
}

static inline void flags_set_arithmetic(struct cpu *cpu, uint32_t flags)
{
  cpu->lazy.result = flags & FLAG_ZF ? 0 : 1; /* 0 has even parity, 1 has odd; both are positive */
  bool pf = flags & FLAG_ZF;
  cpu->lazy.fix = (flags & FLAG_AF) | (flags & FLAG_SF ? 2u : 0u) | (pf != !!(flags & FLAG_PF) ? 1u : 0u);
  flags_set_cf_of(cpu, flags & FLAG_CF, flags & FLAG_OF);
}

/* Read and write all of RFLAGS. The caller of flags_set decides which bits may change, as for POPF. TF and similar bits
 * take effect when the handler leaves its block. */
static inline uint32_t flags_get(const struct cpu *cpu)
{
  return (cpu->eflags & ~FLAGS_ARITHMETIC) | flags_arithmetic(cpu) | FLAG_1;
}

static inline void flags_set(struct cpu *cpu, uint32_t flags)
{
  cpu->eflags = (flags & ~FLAGS_ARITHMETIC & 0x3F7FD7u) | FLAG_1;
  flags_set_arithmetic(cpu, flags);
}

/* The sixteen conditions of Jcc, SETcc, CMOVcc, by the low four bits of their opcodes. */
static inline bool flags_condition(const struct cpu *cpu, unsigned code)
{
  bool is_met;

  switch (code >> 1 & 7) {
  case 0:
    is_met = flags_of(cpu);
    break;
  case 1:
    is_met = flags_cf(cpu);
    break;
  case 2:
    is_met = flags_zf(cpu);
    break;
  case 3:
    is_met = flags_cf(cpu) || flags_zf(cpu);
    break;
  case 4:
    is_met = flags_sf(cpu);
    break;
  case 5:
    is_met = flags_pf(cpu);
    break;
  case 6:
    is_met = flags_sf(cpu) != flags_of(cpu);
    break;
  default:
    is_met = flags_zf(cpu) || flags_sf(cpu) != flags_of(cpu);
  }
  return is_met != (code & 1);
}

#endif
