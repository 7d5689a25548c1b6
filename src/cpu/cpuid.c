/* SPDX-License-Identifier: Apache-2.0
 *
 * CPUID as answered by the real part that represents a CPU of the catalogue (generation.def), limited to what is
 * implemented: features of feature.def, cores of one thread in one package, caches and frequencies of a model, and the
 * catalogue's data on the recording unit. SDM vol. 2, CPUID; AMD APM vol. 3, appendix E.
 */
#include "cpu/control.h"
#include "cpu/generation.h"
#include "cpu/instruction.h"
#include "cpu/xsave.h"

enum { EAX, EBX, ECX, EDX };

#define LEAF_TLB 0x18u
#define LEAF_EXTENDED 0x80000000u
#define LEAF_BRAND 0x80000002u

/* The number of leaves. MISC_ENABLE can hide those above 2 from old systems. */
static uint32_t leaf_count(const struct cpu *cpu)
{
  uint32_t leaves = generation_at(generation_find(cpu->model))->leaves;
  bool is_limited = cpu->model->vendor == LB_VENDOR_INTEL && (msr_misc_enable(cpu) & MISC_ENABLE_LIMIT_CPUID);

  return is_limited && leaves > 2 ? 2 : leaves;
}

static uint32_t signature(const struct cpu *cpu)
{
  return generation_signature(generation_at(generation_find(cpu->model)));
}

/* ---- names ---- */

static uint32_t four_bytes(const char *text)
{
  uint32_t value;

  memcpy(&value, text, sizeof(value));
  return value;
}

static void vendor_give(const struct cpu *cpu, uint32_t r[4])
{
  static const char *const names[LB_VENDORS] = {
    [LB_VENDOR_INTEL] = "GenuineIntel",   [LB_VENDOR_AMD] = "AuthenticAMD",     [LB_VENDOR_HYGON] = "HygonGenuine",
    [LB_VENDOR_CENTAUR] = "CentaurHauls", [LB_VENDOR_ZHAOXIN] = "  Shanghai  ",
  };
  const char *name = names[cpu->model->vendor];

  r[EBX] = four_bytes(name);
  r[EDX] = four_bytes(name + 4);
  r[ECX] = four_bytes(name + 8);
}

/* 48 bytes in three leaves: the catalogue's title. */
static void brand_give(const struct cpu *cpu, uint32_t leaf, uint32_t r[4])
{
  char brand[48] = "";

  strncpy(brand, cpu->model->title, sizeof(brand) - 1);
  for (unsigned i = 0; i < 4; i++)
    r[i] = four_bytes(brand + 16 * (leaf - LEAF_BRAND) + 4 * i);
}

/* ---- number of processors ---- */

static unsigned processors(const struct cpu *cpu)
{
  return cpu->memory->cpu_count;
}

/* Number of bits of an APIC ID that distinguish the processors. */
static unsigned id_bits(const struct cpu *cpu)
{
  unsigned bits = 0;

  while (1u << bits < processors(cpu))
    bits++;
  return bits;
}

/* Number of IDs that the package has room for. */
static unsigned ids(const struct cpu *cpu)
{
  return 1u << id_bits(cpu);
}

/* ---- features ---- */

/* Only leaves with subleaves depend on ECX: SDM vol. 2, CPUID. */
static bool has_subleaves(uint32_t leaf)
{
  return leaf == 0x7 || leaf == 0xD || leaf == 0x23;
}

static void features_give(const struct cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
  uint32_t row = has_subleaves(leaf) ? subleaf : 0;

#define CPU_FEATURE(name, leaf_, subleaf_, reg, bit, flag, mnemonic, rule)                                             \
  if (leaf == (leaf_) && row == (subleaf_) && system_has(cpu, FEATURE_##name))                                         \
    r[reg] |= UINT32_C(1) << (bit);
#include "cpu/feature.def"
#undef CPU_FEATURE
}

static void clear_bit(uint32_t *word, unsigned bit, bool is_cleared)
{
  if (is_cleared)
    *word &= ~(UINT32_C(1) << bit);
}

static void leaf_1(const struct cpu *cpu, uint32_t r[4])
{
  uint64_t apic_base = 0;
  bool is_intel = cpu->model->vendor == LB_VENDOR_INTEL;

  r[EAX] = signature(cpu);
  r[EBX] = system_has(cpu, FEATURE_CLFSH) ? 8u << 8 : 0; /* CLFLUSH: lines of 64 bytes */
  r[EBX] |= cpu->number << 24;
  if (processors(cpu) > 1) { /* HTT: 23:16 is how many IDs */
    r[EBX] |= ids(cpu) << 16;
    r[EDX] |= UINT32_C(1) << 28;
  }
  r[ECX] |= cpu->cr4 & CR4_OSXSAVE ? UINT32_C(1) << 27 : 0;
  cpu->bus.apic_read(cpu->bus.data, 0x1B, &apic_base);
  clear_bit(&r[EDX], 9, !(apic_base >> 11 & 1));
  clear_bit(&r[ECX], 3, is_intel && !(msr_misc_enable(cpu) & MISC_ENABLE_MONITOR));
}

/* The catalogue lists TSX and #DB on bus locks, because they belong to formats of its registers. This processor has
 * neither. */
static void leaf_7(const struct cpu *cpu, uint32_t subleaf, uint32_t r[4])
{
  if (subleaf)
    return;
  clear_bit(&r[EBX], 11, true);
  clear_bit(&r[ECX], 24, true);
  r[ECX] |= cpu->cr4 & CR4_PKE ? UINT32_C(1) << 4 : 0; /* OSPKE */
}

/* AMD repeats most of leaf 1 and reports six counters. Intel shows SYSCALL in 64-bit mode only. */
static void leaf_80000001(const struct cpu *cpu, uint32_t r[4])
{
  bool is_intel = cpu->model->vendor == LB_VENDOR_INTEL;

  clear_bit(&r[EDX], 11, is_intel && !insn_is_64(cpu));
  clear_bit(&r[EDX], 20, is_intel && (msr_misc_enable(cpu) & MISC_ENABLE_XD_DISABLE));
  if (!system_is_amd(cpu))
    return;
  uint32_t first[4] = {0};
  features_give(cpu, 1, 0, first);
  r[EAX] = signature(cpu);
  r[EDX] |= first[EDX] & 0x0183F3FF;
  r[ECX] |= cpu->model->pmu->counters == 6 ? UINT32_C(1) << 23 : 0;
  r[ECX] |= processors(cpu) > 1 ? UINT32_C(1) << 1 : 0; /* cores, not threads */
}

/* ---- caches ---- */

/* Old parts list caches and TLBs by descriptor bytes; later ones refer to leaf 4 for caches (FFH), and parts with leaf
 * 18H refer to that for TLBs (FEH). The values are from the dumps; for parts without a dump they follow leaf 4. */
static void leaf_2(const struct cpu *cpu, uint32_t r[4])
{
  static const struct {
    uint8_t row;
    uint32_t r[4];
  } old[] = {
    {GENERATION_P6, {0x03020101, 0, 0, 0x0C040841}},
    {GENERATION_PENTIUM4, {0x665B5001, 0, 0, 0x007B7040}},
    {GENERATION_PENTIUM_M, {0x02B3B001, 0xF0, 0, 0x2C04307D}},
    {GENERATION_PRESCOTT, {0x605B5001, 0, 0, 0x007D7040}},
    {GENERATION_YONAH, {0x02B3B001, 0xF0, 0, 0x2C04307F}},
    {GENERATION_MEROM, {0x05B0B101, 0x005657F0, 0, 0x2CB43049}},
    {GENERATION_NEHALEM, {0x55035A01, 0x00F0B2E4, 0, 0x09CA212C}},
    {GENERATION_WESTMERE, {0x55035A01, 0x00F0B2FF, 0, 0x00CA0000}},
    {GENERATION_SANDYBRIDGE, {0x76035A01, 0x00F0B2FF, 0, 0x00CA0000}},
    {GENERATION_IVYBRIDGE, {0x76035A01, 0x00F0B2FF, 0, 0x00CA0000}},
    {GENERATION_HASWELL, {0x76036301, 0x00F0B5FF, 0, 0x00C10000}},
    {GENERATION_BROADWELL, {0x76036301, 0x00F0B5FF, 0, 0x00C30000}},
    {GENERATION_SKYLAKE, {0x76036301, 0x00F0B5FF, 0, 0x00C30000}},
    {GENERATION_KABYLAKE, {0x76036301, 0x00F0B5FF, 0, 0x00C30000}},
    {GENERATION_SKYLAKE_SERVER, {0x76036301, 0x00F0B5FF, 0, 0x00C30000}},
    {GENERATION_SILVERMONT, {0x61B3A001, 0x0000FFC2, 0, 0}},
    {GENERATION_AIRMONT, {0x61B3A001, 0x0000FFC2, 0, 0}},
  };
  if (system_is_amd(cpu))
    return;
  bool has_tlb_leaf = generation_at(generation_find(cpu->model))->leaves >= LEAF_TLB;
  r[EAX] = has_tlb_leaf ? 0x00FEFF01 : 0x0000FF01;
  r[EBX] = 0xF0;
  for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++)
    if (generation_find(cpu->model) == old[i].row)
      memcpy(r, old[i].r, sizeof(old[i].r));
}

/* L1 data, L1 code, L2, and from Nehalem on L3, which all cores share: lines of 64 bytes. */
static void leaf_4(const struct cpu *cpu, uint32_t subleaf, uint32_t r[4])
{
  static const struct {
    uint8_t type, level, ways;
    uint32_t sets;
  } caches[] = {{1, 1, 8, 64}, {2, 1, 8, 64}, {3, 2, 8, 512}, {3, 3, 16, 8192}};
  bool has_l3 = system_is_since(cpu, GENERATION_NEHALEM);
  if (system_is_amd(cpu) || subleaf >= (has_l3 ? 4u : 3u))
    return;
  r[EAX] = caches[subleaf].type | (uint32_t)caches[subleaf].level << 5 | 1u << 8;
  r[EAX] |= (ids(cpu) - 1) << 26 | (caches[subleaf].level == 3 ? ids(cpu) - 1 : 0) << 14;
  r[EBX] = (caches[subleaf].ways - 1u) << 22 | 63;
  r[ECX] = caches[subleaf].sets - 1;
}

/* AMD: L1 data and code, then L2. Intel reports L2 only. */
static void leaf_80000005(const struct cpu *cpu, uint32_t r[4])
{
  if (system_is_amd(cpu))
    r[ECX] = r[EDX] = 32u << 24 | 8u << 16 | 1u << 8 | 64;
}

static void leaf_80000006(uint32_t r[4])
{
  r[ECX] = 256u << 16 | 6u << 12 | 64; /* 256 KB, 8 ways */
}

/* ---- topology, time, power ---- */

/* The line size of MONITOR; masked interrupts can end MWAIT; the numbers of sub-states of C1 and of deeper states. */
static void leaf_5(const struct cpu *cpu, uint32_t r[4])
{
  bool is_deep = system_is_since(cpu, GENERATION_NEHALEM) || system_is_since(cpu, GENERATION_SILVERMONT);

  if (!system_has(cpu, FEATURE_MONITOR))
    return;
  r[EAX] = r[EBX] = 64;
  r[ECX] = 3;
  r[EDX] = is_deep ? 0x1120 : system_is_amd(cpu) ? 0x11 : 0x20;
}

/* The APIC's timer never stops. */
static void leaf_6(const struct cpu *cpu, uint32_t r[4])
{
  bool has_arat = system_is_since(cpu, GENERATION_WESTMERE) || system_is_since(cpu, GENERATION_SALTWELL) ||
                  system_is_since(cpu, GENERATION_ZEN);

  r[EAX] = has_arat ? 1u << 2 : 0;
}

/* One thread in a core: level 0 is SMT, level 1 the core, then there is none. */
static void leaf_b(const struct cpu *cpu, uint32_t subleaf, uint32_t r[4])
{
  r[EAX] = subleaf == 1 ? id_bits(cpu) : 0;
  r[EBX] = subleaf == 0 ? 1 : subleaf == 1 ? processors(cpu) : 0;
  r[ECX] = (subleaf & 0xFF) | (subleaf < 2 ? (subleaf + 1) << 8 : 0);
  r[EDX] = cpu->number;
}

static void leaf_d(const struct cpu *cpu, uint32_t subleaf, uint32_t r[4])
{
  uint64_t components = system_xcr0_bits(cpu);

  if (!system_has(cpu, FEATURE_XSAVE))
    return;
  if (subleaf == 0) {
    r[EAX] = (uint32_t)components;
    r[EBX] = xsave_size(cpu, cpu->xcr0);
    r[ECX] = xsave_size(cpu, components);
  } else if (subleaf == 1 && system_has(cpu, FEATURE_XSAVES)) {
    r[EBX] = xsave_compact_size(cpu, cpu->xcr0 | cpu->xss);
    r[ECX] = (uint32_t)xsave_xss_bits(cpu);
  } else if (subleaf > 1 && subleaf < 64) {
    r[EAX] = xsave_component_size(cpu, subleaf);
    r[EBX] = components >> subleaf & 1 ? xsave_place(cpu, subleaf) : 0;
    r[ECX] = xsave_xss_bits(cpu) >> subleaf & 1; /* a supervisor component */
  }
}

#define CRYSTAL 25000000u

static void leaf_15(uint32_t r[4])
{
  r[EAX] = 1;
  r[EBX] = (uint32_t)(SYSTEM_TSC_PER_SECOND / CRYSTAL);
  r[ECX] = CRYSTAL;
}

static void leaf_16(uint32_t r[4])
{
  r[EAX] = r[EBX] = (uint32_t)(SYSTEM_TSC_PER_SECOND / 1000000);
  r[ECX] = 100;
}

/* The time-stamp counter is invariant. */
static void leaf_80000007(const struct cpu *cpu, uint32_t r[4])
{
  bool is_invariant = system_is_since(cpu, GENERATION_NEHALEM) || system_is_since(cpu, GENERATION_SALTWELL) ||
                      system_is_since(cpu, GENERATION_FAM10H);

  r[EDX] = is_invariant ? 1u << 8 : 0;
}

static void leaf_80000008(const struct cpu *cpu, uint32_t r[4])
{
  r[EAX] = SYSTEM_PHYSICAL_BITS | (system_has(cpu, FEATURE_LM) ? 48u : 32u) << 8;
  if (system_is_amd(cpu))
    r[ECX] = (processors(cpu) - 1) | id_bits(cpu) << 12;
}

/* AMD, where the leaf exists: APIC ID, core, node 0 of 1. */
static void leaf_8000001e(const struct cpu *cpu, uint32_t r[4])
{
  if (!system_is_amd(cpu) || processors(cpu) == 1)
    return;
  r[EAX] = r[EBX] = cpu->number;
}

/* ---- all together ---- */

static void leaf_basic(const struct cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
  switch (leaf) {
  case 0x0:
    r[EAX] = leaf_count(cpu);
    vendor_give(cpu, r);
    break;
  case 0x1:
    leaf_1(cpu, r);
    break;
  case 0x2:
    leaf_2(cpu, r);
    break;
  case 0x4:
    leaf_4(cpu, subleaf, r);
    break;
  case 0x5:
    leaf_5(cpu, r);
    break;
  case 0x6:
    leaf_6(cpu, r);
    break;
  case 0x7:
    leaf_7(cpu, subleaf, r);
    break;
  case 0xB:
    if (!system_is_amd(cpu))
      leaf_b(cpu, subleaf, r);
    break;
  case 0xD:
    leaf_d(cpu, subleaf, r);
    break;
  case 0x15:
    leaf_15(r);
    break;
  case 0x16:
    leaf_16(r);
    break;
  default:
    break;
  }
}

static void leaf_extended(const struct cpu *cpu, uint32_t leaf, uint32_t r[4])
{
  switch (leaf) {
  case LEAF_EXTENDED:
    r[EAX] = generation_at(generation_find(cpu->model))->extended;
    if (system_is_amd(cpu))
      vendor_give(cpu, r);
    break;
  case 0x80000001:
    leaf_80000001(cpu, r);
    break;
  case LEAF_BRAND:
  case LEAF_BRAND + 1:
  case LEAF_BRAND + 2:
    brand_give(cpu, leaf, r);
    break;
  case 0x80000005:
    leaf_80000005(cpu, r);
    break;
  case 0x80000006:
    leaf_80000006(r);
    break;
  case 0x80000007:
    leaf_80000007(cpu, r);
    break;
  case 0x80000008:
    leaf_80000008(cpu, r);
    break;
  case 0x8000001E:
    leaf_8000001e(cpu, r);
    break;
  default:
    break;
  }
}

/* A leaf beyond the last: Intel answers with the highest basic one, AMD with zeros. */
static bool leaf_exists(const struct cpu *cpu, uint32_t leaf)
{
  uint32_t extended = generation_at(generation_find(cpu->model))->extended;

  return leaf >= LEAF_EXTENDED ? leaf <= extended : leaf <= leaf_count(cpu);
}

void system_cpuid(const struct cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
  for (unsigned i = 0; i < 4; i++)
    r[i] = 0;
  if (!leaf_exists(cpu, leaf)) {
    if (system_is_amd(cpu))
      return;
    leaf = leaf_count(cpu);
  }
  struct lb_cpuid unit = lb_cpu_cpuid(cpu->model, leaf, subleaf);
  features_give(cpu, leaf, subleaf, r);
  for (unsigned i = 0; i < 4; i++)
    r[i] = (r[i] & ~unit.mask[i]) | unit.value[i];
  if (leaf >= LEAF_EXTENDED)
    leaf_extended(cpu, leaf, r);
  else
    leaf_basic(cpu, leaf, subleaf, r);
}

const struct insn *control_cpuid(struct cpu *cpu, const struct insn *insn)
{
  uint32_t r[4];

  system_cpuid(cpu, (uint32_t)cpu->r[RAX], (uint32_t)cpu->r[RCX], r);
  cpu->r[RAX] = r[EAX];
  cpu->r[RBX] = r[EBX];
  cpu->r[RCX] = r[ECX];
  cpu->r[RDX] = r[EDX];
  return insn + 1;
}
