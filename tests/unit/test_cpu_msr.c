/* SPDX-License-Identifier: Apache-2.0
 *
 * CPUID, MSRs and the instructions that a CPU has. Expected values are those of Intel's SDM and, for CPUID, of the
 * CPUID dumps of InstLatx64.
 */
#include "cpu/control.h"
#include "cpu/generation.h"
#include "cpu_rig.h"

/* ---- CPUID ---- */

static uint32_t cpuid_of(struct rig *rig, uint32_t leaf, uint32_t subleaf, unsigned reg)
{
  static const uint8_t places[] = {RAX, RBX, RCX, RDX};

  rig->cpu->r[RAX] = leaf;
  rig->cpu->r[RCX] = subleaf;
  assert_int_equal(EXECUTE(rig, 0x0F, 0xA2), DONE);
  return (uint32_t)rig->cpu->r[places[reg]];
}

enum { EAX, EBX, ECX, EDX };

/* The bits of `mask` must be as the dump of that part has them. */
static void test_cpuid_of_known_parts(void **state)
{
  static const struct {
    const char *cpu;
    uint32_t leaf, subleaf;
    uint8_t reg;
    uint32_t mask, value;
  } rows[] = {
    {"skylake", 0x0, 0, EAX, UINT32_MAX, 0x16},
    {"skylake", 0x0, 0, EBX, UINT32_MAX, 0x756E6547}, /* "Genu" */
    {"skylake", 0x1, 0, EAX, UINT32_MAX, 0x000506E3},
    {"skylake", 0x1, 0, EDX, 0x078BFBFF, 0x078BFBFF}, /* to SSE2, without what is not there */
    {"skylake", 0x1, 0, ECX, 0x45F82209, 0x45F82209}, /* SSE3, MONITOR, SSSE3, CX16, SSE4, ..., XSAVE, RDRAND */
    {"skylake", 0x1, 5, ECX, 0x45F82209, 0x45F82209}, /* leaves without subleaves do not look at ECX */
    {"skylake", 0x80000001, 7, ECX, 0x121, 0x121},
    {"skylake", 0x7, 1, EBX, 0x0098078B, 0},
    {"skylake", 0x1, 0, ECX, 0x20001060, 0x00000000},           /* no VMX, SMX, FMA, F16C */
    {"skylake", 0x1, 0, ECX, 0x00008014, 0x00008014},           /* PDCM, DS-CPL, DTES64: the recorder's */
    {"skylake", 0x1, 0, EDX, 1u << 21, 1u << 21},               /* DS */
    {"skylake", 0x7, 0, EBX, 0x00980F8B & ~0x800u, 0x0098078B}, /* FSGSBASE to CLFLUSHOPT, no RTM */
    {"skylake", 0x7, 0, EBX, 1u << 11 | 1u << 4, 0},
    {"skylake", 0xA, 0, EAX, UINT32_MAX, 0x07300404},
    {"skylake", 0x80000000, 0, EAX, UINT32_MAX, 0x80000008},
    {"skylake", 0x80000001, 0, EDX, UINT32_MAX, 0x2C100000}, /* SYSCALL shows in 64-bit mode only */
    {"skylake", 0x80000001, 0, ECX, UINT32_MAX, 0x121},
    {"westmere", 0x1, 0, EAX, UINT32_MAX, 0x00020652},
    {"westmere", 0x1, 0, ECX, 0x00982209, 0x00982209},
    {"westmere", 0x1, 0, ECX, 0x44600000, 0}, /* no x2APIC, MOVBE, XSAVE, RDRAND */
    {"sandybridge", 0x1, 0, EAX, UINT32_MAX, 0x000206A7},
    {"sandybridge", 0x1, 0, ECX, 0x05B82209, 0x05B82209},
    {"sandybridge", 0x7, 0, EBX, UINT32_MAX, 0},
    {"westmere", 0x2, 0, EAX, UINT32_MAX, 0x55035A01},
    {"westmere", 0x2, 0, EBX, UINT32_MAX, 0x00F0B2FF},
    {"skylake", 0x2, 0, EAX, UINT32_MAX, 0x76036301},
    {"silvermont", 0x2, 0, EBX, UINT32_MAX, 0x0000FFC2},
    {"p6", 0x0, 0, EAX, UINT32_MAX, 2},
    {"p6", 0x1, 0, EAX, UINT32_MAX, 0x686},
    {"p6", 0x1, 0, EDX, UINT32_MAX, 0x0383FBFF}, /* to SSE; without the serial number */
    {"p6", 0x1, 0, ECX, UINT32_MAX, 0},
    {"p6", 0x80000000, 0, EAX, UINT32_MAX, 0x03020101}, /* no extended leaves: as leaf 2 */
    {"pentium4", 0x1, 0, EAX, UINT32_MAX, 0xF29},
    {"prescott", 0x1, 0, EAX, UINT32_MAX, 0xF64},
    {"prescott", 0x80000001, 0, EDX, UINT32_MAX, 0x20100000},
    {"merom", 0x1, 0, ECX, 0x00182209, 0x00002209},
    {"silvermont", 0x1, 0, EAX, UINT32_MAX, 0x00030678},
    {"silvermont", 0x1, 0, ECX, 0x45F82209, 0x41D82209},
    {"goldmont", 0x7, 0, EBX, 0x0098078B, 0x00900283},
    /* CLWB, as the dumps' EBX of leaf 7 and GCC's -march= have it: the clients up to Ice Lake and Rocket Lake lack it
     */
    {"skylake", 0x7, 0, EBX, 1u << 24, 0x029C6FBF & 1u << 24},
    {"skylake-server", 0x7, 0, EBX, 1u << 24, 1u << 24},
    {"cascadelake", 0x7, 0, EBX, 1u << 24, 0xD39FFFFB & 1u << 24},
    {"cannonlake", 0x7, 0, EBX, 1u << 24, 0},
    {"icelake", 0x7, 0, EBX, 1u << 24, 0xF2BF27EF & 1u << 24},
    {"rocketlake", 0x7, 0, EBX, 1u << 24, 0},
    {"icelake-server", 0x7, 0, EBX, 1u << 24, 0xF3BFA7EB & 1u << 24},
    {"tigerlake", 0x7, 0, EBX, 1u << 24, 0xF3BFA7EB & 1u << 24},
    {"goldmontplus", 0x7, 0, EBX, 1u << 24, 0},
    {"tremont", 0x7, 0, EBX, 1u << 24, 1u << 24},
    {"zen+", 0x7, 0, EBX, 1u << 24, 0x209C01A9 & 1u << 24},
    {"zen2", 0x7, 0, EBX, 1u << 24, 0x219C91A9 & 1u << 24},
    /* PKU and PKS: ECX of leaf 7 in the dumps; where XSAVE has PKRU: leaf 0DH */
    {"skylake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0},
    {"skylake-server", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x00000008},
    {"coffeelake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x40000000 & 1u << 3},
    {"whiskeylake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0},
    {"cascadelake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x00000808 & 1u << 3},
    {"cometlake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x40000008 & 1u << 3},
    {"cannonlake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x0000000E & 1u << 3},
    {"icelake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x40405F4E & 1u << 3},
    {"tigerlake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x18C05FCE & 1u << 3},
    {"alderlake", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x98C027AC & (1u << 31 | 1u << 3)},
    {"sapphirerapids", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0xBB417FEE & (1u << 31 | 1u << 3)},
    {"tremont", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x18400124 & 1u << 3},
    {"gracemont", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x98C007AC & (1u << 31 | 1u << 3)},
    {"zen2", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x00400004 & 1u << 3},
    {"zen3", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x0040068C & 1u << 3},
    {"zen4", 0x7, 0, ECX, 1u << 31 | 1u << 3, 0x00405FCE & 1u << 3},
    {"skylake", 0xD, 9, EAX, UINT32_MAX, 0},
    {"cascadelake", 0xD, 9, EAX, UINT32_MAX, 8},
    {"cascadelake", 0xD, 9, EBX, UINT32_MAX, 0xA80},
    {"alderlake", 0xD, 0, ECX, UINT32_MAX, 0xA88},
    {"alderlake", 0xD, 0, EAX, 1u << 9, 1u << 9},
    {"zen3", 0xD, 9, EBX, UINT32_MAX, 0x980},
    {"zen4", 0xD, 9, EBX, UINT32_MAX, 0x980},
    {"alderlake", 0x1C, 0, EAX, UINT32_MAX, 0x4000000B},
    {"alderlake", 0x7, 0, EDX, 1u << 19, 1u << 19},
    {"k8", 0x0, 0, EBX, UINT32_MAX, 0x68747541}, /* "Auth" */
    {"k8", 0x1, 0, EAX, UINT32_MAX, 0x00040F33},
    {"k8", 0x80000001, 0, EDX, UINT32_MAX, 0xEBD3FBFF & ~0xC2000000u}, /* without 3DNow! and FFXSR */
    {"zen", 0x1, 0, EAX, UINT32_MAX, 0x00800F11},
    {"zen", 0x7, 0, EBX, 0x00980F8B, 0x00980189},
    {"zen4", 0x80000022, 0, EAX, 7, 7},
    {"zen4", 0x80000029, 0, EAX, UINT32_MAX, 0}, /* beyond the last */
    {"zen3", 0x80000008, 0, EBX, 1u << 31, 1u << 31},
    {"nano", 0x0, 0, EBX, UINT32_MAX, 0x746E6543}, /* "Cent" */
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct rig rig;

    rig_protected(&rig, rows[i].cpu);
    uint32_t value = cpuid_of(&rig, rows[i].leaf, rows[i].subleaf, rows[i].reg);
    if ((value & rows[i].mask) != rows[i].value)
      print_error("%s leaf %x register %u is %08x\n", rows[i].cpu, rows[i].leaf, rows[i].reg, value);
    assert_int_equal(value & rows[i].mask, rows[i].value);
    rig_free(&rig);
  }
}

/* FEH in leaf 2 refers to leaf 18H: SDM vol. 2, CPUID. */
static void test_cpuid_refers_to_leaves_that_are_there(void **state)
{
  const struct lb_cpu *cpu;

  (void)state;
  for (size_t k = 0; (cpu = lb_cpu_at(k)); k++) {
    struct rig rig;
    bool refers = false;

    rig_protected(&rig, cpu->name);
    uint32_t leaves = cpuid_of(&rig, 0, 0, EAX);
    for (unsigned i = 1; i < 16; i++) /* AL is how often to ask */
      refers |= (cpuid_of(&rig, 2, 0, i / 4) >> 8 * (i % 4) & 0xFF) == 0xFE;
    if (refers && leaves < 0x18)
      fail_msg("%s: leaf 2 refers to leaf 18H, the last is %x", cpu->name, leaves);
    rig_free(&rig);
  }
}

/* What CPUID says of family and model leads back to the row. */
static void test_cpuid_signature_is_of_the_row(void **state)
{
  const struct lb_cpu *model;

  (void)state;
  for (size_t i = 0; (model = lb_cpu_at(i)); i++) {
    struct rig rig;

    rig_protected(&rig, model->name);
    uint32_t eax = cpuid_of(&rig, 1, 0, EAX);
    struct cpu_features features = system_features(model);
    assert_memory_equal(&rig.cpu->features, &features, sizeof(features));
    unsigned family = (eax >> 8 & 0xF) + ((eax >> 8 & 0xF) == 0xF ? eax >> 20 & 0xFF : 0);
    const struct lb_cpu *found = NULL;
    assert_int_equal(lb_cpu_find_model(model->vendor, family, (eax >> 4 & 0xF) | (eax >> 12 & 0xF0), eax & 0xF, &found),
                     0);
    assert_true(found == model || !strcmp(model->name, "arch-max"));
    rig_free(&rig);
  }
}

static void test_cpuid_brand_and_flags(void **state)
{
  struct rig rig;
  char brand[49] = "";

  (void)state;
  rig_long(&rig, "westmere");
  for (unsigned i = 0; i < 12; i++) {
    uint32_t word = cpuid_of(&rig, 0x80000002 + i / 4, 0, i % 4);

    memcpy(brand + 4 * i, &word, 4);
  }
  assert_string_equal(brand, "Intel Westmere");
  assert_int_equal(cpuid_of(&rig, 0x80000001, 0, EDX) >> 11 & 1, 1); /* SYSCALL, in 64-bit mode */
  rig.apic_base &= ~UINT64_C(0x800);
  assert_int_equal(cpuid_of(&rig, 1, 0, EDX) >> 9 & 1, 0); /* the APIC is off */
  assert_int_equal(wrmsr(&rig, 0x1A0, msr_of(&rig, 0x1A0) | 1u << 22), DONE);
  assert_int_equal(cpuid_of(&rig, 0, 0, EAX), 2);
  rig_free(&rig);
  rig_protected(&rig, "skylake");
  assert_int_equal(cpuid_of(&rig, 1, 0, ECX) >> 27 & 1, 0);
  rig.cpu->cr4 |= CR4_OSXSAVE;
  assert_int_equal(cpuid_of(&rig, 1, 0, ECX) >> 27 & 1, 1);
  bool has_avx = __builtin_cpu_supports("avx");
  assert_int_equal(cpuid_of(&rig, 1, 0, ECX) >> 28 & 1, has_avx);
  assert_int_equal(cpuid_of(&rig, 0xD, 0, EAX), has_avx ? 7 : 3);
  assert_int_equal(cpuid_of(&rig, 0xD, 0, ECX), has_avx ? 832 : 576);
  assert_int_equal(cpuid_of(&rig, 0xD, 1, EAX), 0xF); /* XSAVEOPT, XSAVEC, XGETBV of 1, XSAVES */
  rig_free(&rig);
  rig_protected(&rig, "broadwell");
  assert_int_equal(cpuid_of(&rig, 0xD, 1, EAX), 1);
  rig_free(&rig);
}

static void test_instructions_follow_the_cpu(void **state)
{
  static const struct {
    const char *cpu;
    uint8_t code[5];
    int result;
  } rows[] = {
    {"skylake", {0x0F, 0x38, 0xF0, 0x00, 0x90}, DONE},
    {"sandybridge", {0x0F, 0x38, 0xF0, 0x00, 0x90}, UD}, /* MOVBE */
    {"nehalem", {0xF3, 0x0F, 0xB8, 0xC0, 0x90}, DONE},
    {"penryn", {0xF3, 0x0F, 0xB8, 0xC0, 0x90}, UD}, /* POPCNT */
    {"ivybridge", {0x0F, 0xC7, 0xF0, 0x90, 0x90}, DONE},
    {"westmere", {0x0F, 0xC7, 0xF0, 0x90, 0x90}, UD}, /* RDRAND */
    {"skylake", {0xC4, 0xE2, 0x78, 0xF2, 0xC0}, DONE},
    {"ivybridge", {0xC4, 0xE2, 0x78, 0xF2, 0xC0}, UD}, /* ANDN */
    {"skylake", {0x0F, 0x01, 0xC1, 0x90, 0x90}, UD},   /* VMCALL */
    {"skylake", {0x0F, 0x01, 0xD5, 0x90, 0x90}, UD},   /* XEND */
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct rig rig;

    rig_protected(&rig, rows[i].cpu);
    rig.cpu->r[RAX] = DATA;
    int result = execute(&rig, rows[i].code, 5);
    if (result != rows[i].result)
      print_error("row %zu on %s\n", i, rows[i].cpu);
    assert_int_equal(result, rows[i].result);
    rig_free(&rig);
  }
}

/* ---- MSRs ---- */

static void test_msr_time(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(wrmsr(&rig, 0x10, UINT64_C(0x100000000000)), DONE);
  uint64_t now = msr_of(&rig, 0x10);
  assert_in_range(now, UINT64_C(0x100000000000), UINT64_C(0x100000001000));
  uint64_t adjust = msr_of(&rig, 0x3B);
  assert_int_equal(wrmsr(&rig, 0x3B, 0), DONE); /* back to what it would have been */
  assert_in_range(msr_of(&rig, 0x10), 1, 0x1000);
  assert_in_range(adjust, UINT64_C(0x0FFFFFFFF000), UINT64_C(0x100000000000));
  assert_int_equal(wrmsr(&rig, 0xC0000103, 7), DONE);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xF9), DONE); /* rdtscp */
  assert_int_equal(rig.cpu->r[RCX], 7);
  assert_int_equal(wrmsr(&rig, 0xC0000103, UINT64_C(1) << 32), GP);
  rig.cpu->cr4 = CR4_TSD;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x31), DONE);
  rig_ring_3(&rig);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x31, 0xCC), GP);
  rig_free(&rig);
  rig_protected(&rig, "p6"); /* 32 bits are taken, the rest is cleared: SDM vol. 3, 17.15 */
  assert_int_equal(wrmsr(&rig, 0x10, UINT64_C(0x500000000)), DONE);
  assert_in_range(msr_of(&rig, 0x10), 0, 0x1000);
  rig_free(&rig);
}

static void test_msr_rules(void **state)
{
  static const struct {
    uint32_t msr;
    uint64_t value;
    int result;
  } rows[] = {
    {0x277, UINT64_C(0x0007010500070406), DONE},
    {0x277, 2, GP}, /* PAT: type 2 is reserved */
    {0x200, 6, DONE},
    {0x200, 2, GP},
    {0x200, 0x106, GP},
    {0x201, UINT64_C(0xFF80000800), DONE},
    {0x201, UINT64_C(1) << 45, GP},
    {0x210, 0, GP}, /* ranges 0 to 7 */
    {0x250, UINT64_C(0x0606060606060606), DONE},
    {0x250, 3, GP},
    {0x2FF, 0xC06, DONE},
    {0x2FF, 0x1000, GP},
    {0xFE, 0, GP},
    {0x174, 8, DONE},
    {0x175, UINT64_C(0x0000800000000000), GP},
    {0x176, UINT64_C(0xFFFF800000000000), DONE},
    {0xC0000082, UINT64_C(0x0000800000000000), GP},
    {0xC0000100, UINT64_C(0x1234), DONE},
    {0xC0000102, UINT64_C(0x8000000000000000), GP},
    {0x3A, 5, GP},
    {0x8B, 0, DONE},
    {0x179, 0, GP},
    {0x400, 0, GP}, /* no banks */
    {0x1B, UINT64_C(0xFEE00900), DONE},
    {0x123456, 0, GP},
    {0xC0010015, 0, GP}, /* AMD's */
  };
  struct rig rig;
  (void)state;
  rig_protected(&rig, "skylake");
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    int result = wrmsr(&rig, rows[i].msr, rows[i].value);

    if (result != rows[i].result)
      print_error("msr %x\n", rows[i].msr);
    assert_int_equal(result, rows[i].result);
  }
  assert_int_equal(msr_of(&rig, 0x277), UINT64_C(0x0007010500070406));
  assert_int_equal(msr_of(&rig, 0xFE), 0x508);
  assert_int_equal(msr_of(&rig, 0x2FF), 0xC06);
  assert_int_equal(rig.cpu->segment[FS].base, 0x1234);
  assert_int_equal(msr_of(&rig, 0x3A), 1);
  rig_free(&rig);
  rig_protected(&rig, "zen");
  assert_int_equal(msr_of(&rig, 0xC0010015), 1 << 24); /* PPR of family 17h: TscFreqSel is 1, read-only */
  assert_int_equal(wrmsr(&rig, 0xC0010015, 0x10), DONE);
  assert_int_equal(msr_of(&rig, 0xC0010015), 0x10);
  assert_int_equal(wrmsr(&rig, 0x3A, 0), GP);
  rig_free(&rig);
}

/* Registers that kernels read or write when they start, on CPUs that have them and on CPUs that do not. Intel SDM vol.
 * 3 (June 2016), chapter 35, by the table that is named; Linux msr-index.h; AMD APM vol. 2, appendix A. The time-stamp
 * counter of this machine runs at 10 times 100 MHz. */
static void test_msr_that_kernels_look_at(void **state)
{
  enum { READ_ONLY, WRITABLE, ABSENT };

  static const struct {
    const char *cpu;
    uint32_t msr;
    uint8_t access;
    uint64_t value; /* after reset */
  } rows[] = {
    {"skylake", 0x6, WRITABLE, 64},                            /* table 35-2: since 0F_03, with MONITOR; CPUID.5:EAX */
    {"prescott", 0x6, WRITABLE, 64},                           /* 0F_06 */
    {"pentium-m", 0x6, ABSENT, 0},                             /* no MONITOR */
    {"skylake", 0x34, READ_ONLY, 0},                           /* 35-13: SMI count */
    {"merom", 0x34, ABSENT, 0},                                /* */
    {"nehalem", 0x35, READ_ONLY, 0x10001},                     /* one core, one thread */
    {"westmere", 0xE2, WRITABLE, 0},                           /* 35-13; Xen's auto_demotion_disable */
    {"silvermont", 0xE2, WRITABLE, 0},                         /* 35-6 */
    {"prescott", 0xE2, ABSENT, 0},                             /* */
    {"bonnell", 0xE2, ABSENT, 0},                              /* */
    {"zen", 0xE2, ABSENT, 0},                                  /* */
    {"penryn", 0x11E, WRITABLE, 0x101},                        /* 35-3: L2 enabled */
    {"skylake", 0x11E, ABSENT, 0},                             /* */
    {"skylake", 0x198, READ_ONLY, 0xA00},                      /* 35-2: since 0F_03; ratio in 15:8 */
    {"pentium4", 0x198, ABSENT, 0},                            /* 0F_02 */
    {"p6", 0x198, ABSENT, 0},                                  /* */
    {"pentium-m", 0x199, WRITABLE, 0xA00},                     /* 35-45 */
    {"pentium4", 0x19A, WRITABLE, 0},                          /* 35-41 */
    {"p6", 0x19A, ABSENT, 0},                                  /* */
    {"skylake", 0x19C, READ_ONLY, 0x88320000},                 /* valid, 1 degree, 50 below the target: 14.7.5.2 */
    {"skylake", 0x1A2, WRITABLE, 100 << 16},                   /* 35-13: target temperature in 23:16 */
    {"silvermont", 0x1A2, WRITABLE, 100 << 16},                /* 35-6 */
    {"penryn", 0x1A2, ABSENT, 0},                              /* */
    {"nehalem", 0x1A6, WRITABLE, 0},                           /* 35-13 */
    {"nehalem", 0x1A7, ABSENT, 0},                             /* 35-15: since Westmere */
    {"westmere", 0x1A7, WRITABLE, 0},                          /* */
    {"nehalem", 0x1AD, READ_ONLY, 0x0A0A0A0A0A0A0A0A},         /* 35-13: one ratio in each byte */
    {"westmere", 0x1B0, ABSENT, 0},                            /* CPUID.6:ECX[3] is 0 */
    {"sandybridge", 0x1B0, WRITABLE, 6},                       /* 35-18 */
    {"nehalem", 0x1FC, WRITABLE, 0},                           /* 35-13; Xen's c1e_promotion_disable */
    {"skylake", 0x1FC, WRITABLE, 0},                           /* */
    {"alderlake", 0x1FC, WRITABLE, 0},                         /* */
    {"gracemont", 0x1FC, WRITABLE, 0},                         /* */
    {"penryn", 0x1FC, ABSENT, 0},                              /* */
    {"bonnell", 0x1FC, ABSENT, 0},                             /* */
    {"zen4", 0x1FC, ABSENT, 0},                                /* */
    {"nano", 0x1FC, ABSENT, 0},                                /* */
    {"skylake", 0x3F7, WRITABLE, 0},                           /* 35-37 */
    {"broadwell", 0x3F7, ABSENT, 0},                           /* */
    {"nehalem", 0x3F8, READ_ONLY, 0},                          /* 35-13 */
    {"nehalem", 0x3FE, ABSENT, 0},                             /* 35-18: since Sandy Bridge */
    {"sandybridge", 0x3FE, READ_ONLY, 0},                      /* */
    {"skylake", 0x606, READ_ONLY, 0xA0E03},                    /* 35-18, 14.9.1 */
    {"silvermont", 0x606, READ_ONLY, 0x505},                   /* 35-8 */
    {"westmere", 0x606, ABSENT, 0},                            /* */
    {"skylake", 0x610, WRITABLE, 0},                           /* */
    {"skylake", 0x611, READ_ONLY, 0},                          /* */
    {"sandybridge", 0x648, ABSENT, 0},                         /* 35-22: since Ivy Bridge */
    {"ivybridge", 0x648, READ_ONLY, 10},                       /* */
    {"k10", 0xC0010058, WRITABLE, 0},                          /* MMIO_CFG_BASE: family 10H */
    {"k8", 0xC0010058, ABSENT, 0},                             /* */
    {"zen", 0xC0010064, READ_ONLY, UINT64_C(1) << 63 | 0x828}, /* 200 MHz * 28H / 8 */
    {"k10", 0xC0010064, READ_ONLY, UINT64_C(1) << 63 | 0x44},  /* 100 MHz * (4 + 16) >> 1 */
    {"zen", 0xC0010061, READ_ONLY, 0},                         /* one P-state */
    {"zen", 0xC0010065, READ_ONLY, 0},                         /* */
    {"zen", 0xC0010111, READ_ONLY, 0x30000},                   /* APM 10.2.4: SMBASE after reset */
    {"zen", 0xC0010112, WRITABLE, 0},                          /* */
    {"k7", 0xC0010112, ABSENT, 0},                             /* */
    {"skylake", 0xC0010112, ABSENT, 0},                        /* */
    {"zen", 0xC0010299, READ_ONLY, 0xA1003},                   /* */
    {"zen", 0xC0011028, WRITABLE, 0},                          /* read by Xen's init_amd */
    {"bulldozer", 0xC0011028, ABSENT, 0},
    {"zen2", 0xC00110E3, WRITABLE, 0},
    {"zen3", 0xC00110E3, ABSENT, 0},
    {"bulldozer", 0xC0010299, ABSENT, 0}, /* */
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct rig rig;
    uint64_t value = 0;

    rig_protected(&rig, rows[i].cpu);
    int read = rdmsr(&rig, rows[i].msr, &value), written = wrmsr(&rig, rows[i].msr, 0x1234);
    if (read != (rows[i].access == ABSENT ? GP : DONE) || written != (rows[i].access == WRITABLE ? DONE : GP) ||
        (read == DONE && value != rows[i].value))
      fail_msg("%s, MSR %x: read %d gives %jx, written %d", rows[i].cpu, rows[i].msr, read, (uintmax_t)value, written);
    if (rows[i].access == WRITABLE)
      assert_int_equal(msr_of(&rig, rows[i].msr), 0x1234);
    rig_free(&rig);
  }
}

/* An address has one meaning on a CPU, each row some CPU, and each row its source. */
static void test_msr_rows_make_sense(void **state)
{
  static const struct {
    uint32_t first, last;
    const char *name, *source;
  } rows[] = {
#define MODEL_KEPT(address, value, condition, name, source) {address, address, name, source},
#define MODEL_FIXED(first, last, value, condition, name, source) {first, last, name, source},
#include "cpu/msr_model.def"
#undef MODEL_KEPT
#undef MODEL_FIXED
  };
  unsigned owners[sizeof(rows) / sizeof(rows[0])] = {0};
  const struct lb_cpu *model;
  unsigned number;
  (void)state;
  for (size_t i = 0; (model = lb_cpu_at(i)); i++) {
    struct rig rig;
    uint64_t value;

    rig_protected(&rig, model->name);
    for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
      for (uint32_t msr = rows[j].first; msr <= rows[j].last; msr++)
        if (msr_model_read(rig.cpu, msr, &value)) {
          owners[j]++;
          assert_true(lb_cpu_register_at(model, msr, &number) < 0); /* else the recorder would hide it */
          assert_true(system_read_msr(rig.cpu, msr, &value));
        }
    rig_free(&rig);
  }
  for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
    assert_true(rows[j].first <= rows[j].last && strlen(rows[j].name) > 3 && strlen(rows[j].source) > 3);
    if (!owners[j])
      fail_msg("no CPU has %s", rows[j].name);
  }
}

static void expect(const struct lb_cpu *model, bool is_true, const char *what)
{
  if (!is_true)
    fail_msg("%s: %s", model->name, what);
}

/* The leaves that the recording unit speaks in are within reach. */
static void expect_leaves(const struct lb_cpu *model, const struct generation *generation)
{
  uint32_t least = model->pmu->has_leaf_23                  ? 0x23
                   : lb_cpu_has(model, LB_FEATURE_ARCH_LBR) ? 0x1C
                   : model->pmu->kind == LB_PMU_ARCH        ? 0x0A
                                                            : 0x01;

  expect(model, generation->leaves >= least, "generation.def has too few basic leaves for its counters and LBR");
  expect(model, generation->extended >= (model->pmu->kind == LB_PMU_AMD_V2 ? 0x80000022 : 0),
         "generation.def has too few extended leaves for its counters and LBR");
}

/* What CPUID says must be what the catalogue has: long mode (80000001H) and PDCM (1). */
static void expect_cpuid(const struct lb_cpu *model, const struct generation *generation)
{
  struct rig rig;

  rig_protected(&rig, model->name);
  expect(model, cpuid_of(&rig, 0, 0, EAX) == generation->leaves, "leaf 0 has another highest leaf than generation.def");
  expect(model, cpuid_of(&rig, 1, 0, EAX) == generation_signature(generation),
         "leaf 1 has another signature than generation.def");
  expect(model, (cpuid_of(&rig, 1, 0, ECX) >> 15 & 1) == lb_cpu_has(model, LB_FEATURE_PDCM),
         "PDCM of leaf 1 is not the catalogue's");
  expect(model, (cpuid_of(&rig, 0x80000001, 0, EDX) >> 29 & 1) == lb_cpu_has(model, LB_FEATURE_LONG_MODE),
         "long mode of leaf 80000001H is not the catalogue's");
  rig_free(&rig);
}

/* One row of generation.def for each CPU: the compiler counts them. Its signature leads back to the CPU by model.def.
 */
static void test_every_cpu_has_its_generation(void **state)
{
  const struct lb_cpu *model;

  (void)state;
  for (size_t i = 0; (model = lb_cpu_at(i)); i++) {
    const struct generation *generation = generation_at(generation_find(model));
    const struct lb_cpu *found = NULL;
    int r = lb_cpu_find_model(model->vendor, generation->family, generation->model, generation->stepping, &found);

    expect(model, r >= 0, "model.def does not know the family, model and stepping of generation.def");
    expect(model, found == model || !strcmp(model->name, "arch-max"), /* no silicon: has another's signature */
           "model.def says that the signature of generation.def is another CPU's");
    struct cpu_features features = system_features(model);
    expect(model, features.words[0] != 0, "feature.def gives it no features");
    expect_leaves(model, generation);
    expect_cpuid(model, generation);
  }
}

static void test_x2apic_needs_the_feature(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "westmere");
  assert_int_equal(wrmsr(&rig, 0x1B, 0xFEE00D00), GP);
  rig_free(&rig);
  rig_protected(&rig, "sandybridge");
  assert_int_equal(wrmsr(&rig, 0x1B, 0xFEE00D00), DONE);
  assert_int_equal(rig.apic_base, 0xFEE00D00);
  rig_free(&rig);
}

/* The deadline is in ticks of the guest's counter, which it has moved; the board's clock is that of power-on. */
static void test_tsc_deadline(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(wrmsr(&rig, 0x10, UINT64_C(0x100000000000)), DONE);
  assert_int_equal(wrmsr(&rig, 0x6E0, UINT64_C(0x100000100000)), DONE);
  assert_in_range(rig.deadline, 0xFF000, 0x101000);
  assert_int_equal(msr_of(&rig, 0x6E0), UINT64_C(0x100000100000));
  assert_int_equal(wrmsr(&rig, 0x6E0, 5), DONE);
  assert_int_equal(rig.deadline, 1); /* long ago */
  assert_int_equal(wrmsr(&rig, 0x6E0, 0), DONE);
  assert_int_equal(rig.deadline, 0);
  rig_free(&rig);
  rig_protected(&rig, "westmere");
  assert_int_equal(wrmsr(&rig, 0x6E0, 0), GP);
  rig_free(&rig);
}

static void test_msr_of_the_recorder(void **state)
{
  struct rig rig;
  uint64_t value;

  (void)state;
  rig_protected(&rig, "westmere");
  assert_int_equal(wrmsr(&rig, 0x1D9, 1), DONE);
  assert_true(rig.cpu->watch & WATCH_RECORDER);
  assert_int_equal(EXECUTE(&rig, 0xEB, 0x01, 0x90), DONE); /* jmp over a NOP */
  struct lb_record record;
  assert_int_equal(lb_recorder_entry(&rig.cpu->recorder, 0, &record), 0);
  assert_int_equal(record.from, CODE);
  assert_int_equal(record.to, CODE + 3);
  assert_int_equal(wrmsr(&rig, 0x1D9, 0x8000), GP);
  assert_int_equal(wrmsr(&rig, 0x1D9, 0), DONE);
  assert_false(rig.cpu->watch & WATCH_RECORDER);
  assert_int_equal(rdmsr(&rig, 0x345, &value), DONE);
  assert_int_equal(value, 0x11C3);
  assert_int_equal(rdmsr(&rig, 0x14CE, &value), GP); /* IA32_LBR_CTL */
  rig_free(&rig);
}

static void test_rdpmc(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(wrmsr(&rig, 0x38D, 0x1), DONE); /* fixed counter 0 counts CPL 0 */
  assert_int_equal(wrmsr(&rig, 0x38F, UINT64_C(1) << 32), DONE);
  assert_int_equal(wrmsr(&rig, 0x309, 0), DONE); /* HLT of the rig, and what follows, count */
  rig.cpu->r[RCX] = 1u << 30;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x33, 0x89, 0xC3, 0x90, 0x90, 0x0F, 0x33), DONE);
  assert_int_equal(rig.cpu->r[RAX] - rig.cpu->r[RBX], 4); /* rdpmc, mov, nop, nop */
  rig.cpu->r[RCX] = 8;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x33), GP);
  rig.cpu->r[RCX] = 0;
  rig_ring_3(&rig);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x33, 0xCC), GP);
  rig_free(&rig);
  /* mov ecx, 0x38F; mov eax, 1; xor edx, edx; wrmsr; nop; nop; xor eax, eax; wrmsr */
  rig_protected(&rig, "skylake");
  assert_int_equal(wrmsr(&rig, 0x38F, 0), DONE);
  assert_int_equal(wrmsr(&rig, 0x186, 0x4200C0), DONE); /* instructions at CPL 0 */
  assert_int_equal(EXECUTE(&rig, 0xB9, 0x8F, 0x03, 0x00, 0x00, 0xB8, 0x01, 0x00, 0x00, 0x00, 0x31, 0xD2, 0x0F, 0x30,
                           0x90, 0x90, 0x31, 0xC0, 0x0F, 0x30),
                   DONE);
  assert_int_equal(msr_of(&rig, 0xC1), 4); /* the WRMSR that starts it and three more, not the one that stops it */
  rig_free(&rig);
  rig_protected(&rig, "skylake");
  rig.cpu->cr4 = CR4_PCE;
  rig_ring_3(&rig);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x33, 0xCC), 3);
  rig_free(&rig);
  rig_protected(&rig, "zen"); /* six counters, two registers apart */
  assert_int_equal(wrmsr(&rig, 0xC001020B, 0x1234), DONE);
  rig.cpu->r[RCX] = 5;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x33), DONE);
  assert_int_equal(rig.cpu->r[RAX], 0x1234);
  rig.cpu->r[RCX] = 6;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x33), GP);
  rig_free(&rig);
}

static void test_rdrand_repeats_itself(void **state)
{
  struct rig one, other;

  (void)state;
  rig_protected(&one, "skylake");
  rig_protected(&other, "skylake");
  for (unsigned i = 0; i < 10; i++) {
    assert_int_equal(EXECUTE(&one, 0x0F, 0xC7, 0xF0), DONE);
    assert_int_equal(EXECUTE(&other, 0x0F, 0xC7, 0xF0), DONE);
    assert_int_equal(one.cpu->r[RAX], other.cpu->r[RAX]);
    assert_int_equal(cpu_flags(one.cpu) & FLAGS_ARITHMETIC, FLAG_CF);
  }
  rig_free(&one);
  rig_free(&other);
}

/* A CPU without BMI1 takes TZCNT for BSF. */
static void test_mnemonics_of_older_cpus(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "westmere");
  assert_int_equal(system_mnemonic(rig.cpu, ZYDIS_MNEMONIC_TZCNT), ZYDIS_MNEMONIC_BSF);
  assert_int_equal(system_mnemonic(rig.cpu, ZYDIS_MNEMONIC_LZCNT), ZYDIS_MNEMONIC_BSR);
  assert_int_equal(system_mnemonic(rig.cpu, ZYDIS_MNEMONIC_ENDBR64), ZYDIS_MNEMONIC_NOP);
  assert_int_equal(system_mnemonic(rig.cpu, ZYDIS_MNEMONIC_ADD), ZYDIS_MNEMONIC_ADD);
  rig_free(&rig);
  rig_protected(&rig, "skylake");
  assert_int_equal(system_mnemonic(rig.cpu, ZYDIS_MNEMONIC_TZCNT), ZYDIS_MNEMONIC_TZCNT);
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cpuid_of_known_parts),
    cmocka_unit_test(test_cpuid_refers_to_leaves_that_are_there),
    cmocka_unit_test(test_cpuid_signature_is_of_the_row),
    cmocka_unit_test(test_cpuid_brand_and_flags),
    cmocka_unit_test(test_instructions_follow_the_cpu),
    cmocka_unit_test(test_msr_time),
    cmocka_unit_test(test_msr_rules),
    cmocka_unit_test(test_msr_that_kernels_look_at),
    cmocka_unit_test(test_msr_rows_make_sense),
    cmocka_unit_test(test_every_cpu_has_its_generation),
    cmocka_unit_test(test_x2apic_needs_the_feature),
    cmocka_unit_test(test_tsc_deadline),
    cmocka_unit_test(test_msr_of_the_recorder),
    cmocka_unit_test(test_rdpmc),
    cmocka_unit_test(test_rdrand_repeats_itself),
    cmocka_unit_test(test_mnemonics_of_older_cpus),
  };

  return cmocka_run_group_tests_name("cpu_msr", tests, NULL, NULL);
}
