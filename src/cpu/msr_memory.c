/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory types: IA32_PAT and the memory-type range registers. There are no caches here, so the values are only stored,
 * with the checks that WRMSR makes. SDM vol. 3, 11.11 and 11.12.
 */
#include "cpu/control.h"

#define VARIABLE_RANGES 8u

enum {
  MSR_MTRRCAP = 0xFE,
  MSR_PHYSBASE0 = 0x200,
  MSR_PAT = 0x277,
  MSR_DEF_TYPE = 0x2FF,
};

/* Indexes in cpu->mtrr: base and mask of each range, then the fixed ranges, then the default type. */
enum { PLACE_FIXED = 2 * 16, PLACE_DEF_TYPE = PLACE_FIXED + 11 };

#define MTRRCAP (VARIABLE_RANGES | 1u << 8 | 1u << 10) /* fixed ranges, write-combining */
#define PHYSICAL_MASK ((UINT64_C(1) << SYSTEM_PHYSICAL_BITS) - 1)

/* UC, WC, WT, WP, WB; and UC-, which only PAT has. */
static bool type_is_good(unsigned type, bool is_pat)
{
  return type == 0 || type == 1 || (type >= 4 && type <= 6) || (is_pat && type == 7);
}

static bool types_are_good(uint64_t value, bool is_pat)
{
  for (unsigned i = 0; i < 64; i += 8)
    if (!type_is_good(value >> i & 0xFF, is_pat))
      return false;
  return true;
}

/* Number of a fixed range register: 250H, 258H, 259H, 268H to 26FH. Returns -1 for any other. */
static int fixed_number(uint32_t msr)
{
  if (msr == 0x250)
    return 0;
  if (msr == 0x258 || msr == 0x259)
    return (int)(msr - 0x258) + 1;
  return msr >= 0x268 && msr <= 0x26F ? (int)(msr - 0x268) + 3 : -1;
}

/* Index in cpu->mtrr, or -1. */
static int mtrr_place(uint32_t msr)
{
  if (msr >= MSR_PHYSBASE0 && msr < MSR_PHYSBASE0 + 2 * VARIABLE_RANGES)
    return (int)(msr - MSR_PHYSBASE0);
  if (fixed_number(msr) >= 0)
    return PLACE_FIXED + fixed_number(msr);
  return msr == MSR_DEF_TYPE ? PLACE_DEF_TYPE : -1;
}

bool msr_memory_owns(const struct cpu *cpu, uint32_t msr)
{
  if (msr == MSR_PAT)
    return system_has(cpu, FEATURE_PAT);
  return system_has(cpu, FEATURE_MTRR) && (msr == MSR_MTRRCAP || mtrr_place(msr) >= 0);
}

bool msr_memory_read(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
  *ret_value = msr == MSR_PAT ? cpu->pat : msr == MSR_MTRRCAP ? MTRRCAP : cpu->mtrr[mtrr_place(msr)];
  return true;
}

static bool mtrr_is_good(uint32_t msr, uint64_t value)
{
  if (fixed_number(msr) >= 0)
    return types_are_good(value, false);
  if (msr == MSR_DEF_TYPE)
    return !(value & ~UINT64_C(0xCFF)) && type_is_good(value & 0xFF, false);
  if (value & ~PHYSICAL_MASK)
    return false;
  if (msr & 1) /* mask: bits 10:0 are reserved, 11 is V */
    return !(value & 0x7FF);
  return !(value & 0xF00) && type_is_good(value & 0xFF, false);
}

bool msr_memory_write(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  if (msr == MSR_PAT) {
    if (!types_are_good(value, true))
      return false;
    cpu->pat = value;
    return true;
  }
  if (msr == MSR_MTRRCAP || !mtrr_is_good(msr, value))
    return false;
  cpu->mtrr[mtrr_place(msr)] = value;
  return true;
}
