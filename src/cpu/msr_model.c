/* SPDX-License-Identifier: Apache-2.0
 *
 * Model-specific registers that have no effect here, but that kernels read when they start: msr_model.def says which
 * CPU has which. SDM vol. 4 (June 2016: vol. 3 chapter 35), AMD APM vol. 2 appendix A.
 */
#include "cpu/control.h"
#include "cpu/msr_condition.h"

/* ---- conditions and values in msr_model.def ---- */

#define RATIO (SYSTEM_TSC_PER_SECOND / 100000000)
#define ALL_RATIOS (RATIO * UINT64_C(0x0101010101010101))
#define MONITOR_LINE 64

static bool has_speedstep(const struct cpu *cpu)
{
  return SINCE(cpu, PENTIUM_M) || SINCE(cpu, BONNELL_EARLY);
}

static bool has_thermal(const struct cpu *cpu)
{
  return SINCE(cpu, PENTIUM4) || SINCE(cpu, BONNELL_EARLY);
}

static bool has_cst_config(const struct cpu *cpu)
{
  return SINCE(cpu, YONAH) || SINCE(cpu, SILVERMONT);
}

static bool has_old_l2(const struct cpu *cpu)
{
  return (SINCE(cpu, PENTIUM_M) && !is_p4(cpu) && !SINCE(cpu, NEHALEM)) ||
         (SINCE(cpu, BONNELL_EARLY) && !SINCE(cpu, KNIGHTSLANDING));
}

static bool has_rapl(const struct cpu *cpu)
{
  return SINCE(cpu, SANDYBRIDGE) || SINCE(cpu, SILVERMONT);
}

/* Silvermont and Airmont have units of their own. */
static bool has_small_rapl(const struct cpu *cpu)
{
  return SINCE(cpu, SILVERMONT) && !SINCE(cpu, KNIGHTSLANDING);
}

/* Core 2 and before: 44:40 is the maximum. */
static uint64_t perf_status(const struct cpu *cpu)
{
  return RATIO << 8 | (is_since_nehalem(cpu) ? 0 : RATIO << 40);
}

/* The frequency of the time-stamp counter. Families 10H to 16H: FID 4 in 5:0, DID 1 in 8:6; Zen: FID 28H in 7:0, DID 8
 * in 13:8; Zen 5: units of 5 MHz. */
static uint64_t pstate_0(const struct cpu *cpu)
{
  _Static_assert(SYSTEM_TSC_PER_SECOND == 1000000000, "these values say 1 GHz");
  return UINT64_C(1) << 63 | (SINCE(cpu, ZEN5) ? 0xC8u : SINCE(cpu, ZEN) ? 0x828u : 0x44u);
}

static uint64_t core_count(const struct cpu *cpu)
{
  return (uint64_t)cpu->memory->cpu_count << 16 | cpu->memory->cpu_count;
}

/* ---- registers ---- */

/* The index of each stored register's value. */
enum place {
#define MODEL_KEPT(address, value, condition, name, source) PLACE_##address,
#define MODEL_FIXED(first, last, value, condition, name, source)
#include "cpu/msr_model.def"
#undef MODEL_KEPT
#undef MODEL_FIXED
  PLACES,
};

_Static_assert(PLACES <= CPU_MODEL_MSRS, "struct cpu has too few places");

/* The index of a register that this CPU stores, or -1. */
static int place_of(const struct cpu *cpu, uint32_t msr)
{
#define MODEL_KEPT(address, value, condition, name, source)                                                            \
  if (msr == (address) && (condition))                                                                                 \
    return PLACE_##address;
#define MODEL_FIXED(first, last, value, condition, name, source)
#include "cpu/msr_model.def"
#undef MODEL_KEPT
#undef MODEL_FIXED
  return -1;
}

static bool fixed_read(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
#define MODEL_KEPT(address, value, condition, name, source)
#define MODEL_FIXED(first, last, value, condition, name, source)                                                       \
  if (msr - (first) <= (last) - (first) && (condition)) {                                                              \
    *ret_value = value;                                                                                                \
    return true;                                                                                                       \
  }
#include "cpu/msr_model.def"
#undef MODEL_KEPT
#undef MODEL_FIXED
  return false;
}

bool msr_model_read(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
  int place = place_of(cpu, msr);

  if (place < 0)
    return fixed_read(cpu, msr, ret_value);
  *ret_value = cpu->model_msr[place];
  return true;
}

bool msr_model_write(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  int place = place_of(cpu, msr);

  if (place < 0)
    return false;
  cpu->model_msr[place] = value;
  return true;
}

void msr_model_reset(struct cpu *cpu)
{
#define MODEL_KEPT(address, value, condition, name, source) cpu->model_msr[PLACE_##address] = (condition) ? (value) : 0;
#define MODEL_FIXED(first, last, value, condition, name, source)
#include "cpu/msr_model.def"
#undef MODEL_KEPT
#undef MODEL_FIXED
}
