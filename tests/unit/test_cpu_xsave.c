/* SPDX-License-Identifier: Apache-2.0
 *
 * XSAVES and XRSTORS, which the host's CPU cannot be asked for, and the registers of the architectural LBR in their
 * images. Expected values: SDM vol. 1, 13.4.3 and 13.7 to 13.12; the layout of Linux' struct arch_lbr_state, with which
 * it compares the size that CPUID gives; Intel TDX module 1.5, tdh_vp_enter.c, for IA32_LBR_DEPTH.
 */
#include "cpu_rig.h"

enum { XSS = 0xDA0, LBR_CTL = 0x14CE, LBR_DEPTH = 0x14CF, LBR_FROM = 0x1500, LBR_TO = 0x1600, LBR_INFO = 0x1200 };
enum { LER_FROM = 0x1DD, LER_TO = 0x1DE, LER_INFO = 0x1E0 };
enum { HEADER = DATA + 512, PART = DATA + 576 };

#define LBR_STATE (1u << 15)
#define COMPACT (UINT64_C(1) << 63)

static uint64_t cpuid_of(struct rig *rig, uint32_t subleaf, unsigned reg)
{
  rig->cpu->r[RAX] = 0xD;
  rig->cpu->r[RCX] = subleaf;
  assert_int_equal(EXECUTE(rig, 0x0F, 0xA2), DONE);
  return rig->cpu->r[reg];
}

/* Each asks for the components of `mask`, with RBX at the data. */
static void asks(struct rig *rig, uint32_t mask)
{
  rig->cpu->r[RAX] = mask;
  rig->cpu->r[RDX] = 0;
  rig->cpu->r[RBX] = DATA;
}

static int xsaves(struct rig *rig, uint32_t mask)
{
  asks(rig, mask);
  return EXECUTE(rig, 0x0F, 0xC7, 0x2B);
}

static int xrstors(struct rig *rig, uint32_t mask)
{
  asks(rig, mask);
  return EXECUTE(rig, 0x0F, 0xC7, 0x1B);
}

/* Entry i: FROM 0x10000 + i and so on. Recording stays off, so that nothing but these writes changes them. */
static void lbr_fill(struct rig *rig)
{
  assert_int_equal(wrmsr(rig, LBR_CTL, 0x7F0006), DONE); /* all kinds, at both levels */
  assert_int_equal(wrmsr(rig, LER_FROM, 0x30000), DONE);
  assert_int_equal(wrmsr(rig, LER_TO, 0x40000), DONE);
  assert_int_equal(wrmsr(rig, LER_INFO, 7), DONE);
  for (unsigned i = 0; i < 32; i++) {
    assert_int_equal(wrmsr(rig, LBR_FROM + i, 0x10000 + i), DONE);
    assert_int_equal(wrmsr(rig, LBR_TO + i, 0x20000 + i), DONE);
    assert_int_equal(wrmsr(rig, LBR_INFO + i, i), DONE);
  }
}

static int begin(void **state)
{
  static struct rig rig;

  rig_protected(&rig, "sapphirerapids");
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 | CR4_OSFXSR | CR4_OSXSAVE), DONE);
  *state = &rig;
  return 0;
}

static int end(void **state)
{
  rig_free(*state);
  return 0;
}

static void test_cpuid(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(cpuid_of(rig, 1, RAX) & 0xF, 0xF);
  assert_int_equal(cpuid_of(rig, 1, RCX), LBR_STATE);
  assert_int_equal(cpuid_of(rig, 1, RBX), 576);
  assert_int_equal(cpuid_of(rig, 15, RAX), 808); /* 5 registers, 32 entries of 3 */
  assert_int_equal(cpuid_of(rig, 15, RBX), 0);
  assert_int_equal(cpuid_of(rig, 15, RCX), 1);
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  assert_int_equal(cpuid_of(rig, 1, RBX), 576 + 808);
  assert_int_equal(cpuid_of(rig, 0, RAX) & LBR_STATE, 0); /* not XCR0's */
}

static void test_xss(void **state)
{
  struct rig *rig = *state, other;

  assert_int_equal(msr_of(rig, XSS), 0);
  assert_int_equal(wrmsr(rig, XSS, 1u << 8), GP); /* Intel PT's state */
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  assert_int_equal(msr_of(rig, XSS), LBR_STATE);
  rig_protected(&other, "skylake");
  assert_int_equal(wrmsr(&other, XSS, LBR_STATE), GP); /* its LBR is not the architectural one */
  assert_int_equal(wrmsr(&other, XSS, 0), DONE);
  rig_free(&other);
  rig_protected(&other, "haswell");
  assert_int_equal(wrmsr(&other, XSS, 0), GP);
  rig_free(&other);
}

static void test_layout(void **state)
{
  struct rig *rig = *state;

  lbr_fill(rig);
  assert_int_equal(xsaves(rig, LBR_STATE), DONE); /* IA32_XSS does not have it yet */
  assert_int_equal(get(rig, HEADER, 8), 0);
  assert_true(get(rig, HEADER + 8, 8) == COMPACT);
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  put(rig, HEADER + 16, 0x1234, 8);
  assert_int_equal(xsaves(rig, LBR_STATE), DONE);
  assert_int_equal(get(rig, HEADER, 8), LBR_STATE);
  assert_true(get(rig, HEADER + 8, 8) == (COMPACT | LBR_STATE));
  assert_int_equal(get(rig, HEADER + 16, 8), 0x1234); /* the rest of the header is not written */
  const uint64_t head[] = {0x7F0006, 32, 0x30000, 0x40000, 7};
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(rig, PART + 8 * i, 8), head[i]);
  for (unsigned i = 0; i < 32; i++) {
    assert_int_equal(get(rig, PART + 40 + 24 * i, 8), 0x10000 + i);
    assert_int_equal(get(rig, PART + 48 + 24 * i, 8), 0x20000 + i);
    assert_int_equal(get(rig, PART + 56 + 24 * i, 8), i);
  }
}

/* Saves records, writes the depth, which clears them, and other state, and restores. */
static void lbr_save_and_restore(struct rig *rig, unsigned depth)
{
  lbr_fill(rig);
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  assert_int_equal(xsaves(rig, LBR_STATE), DONE);
  assert_int_equal(wrmsr(rig, LBR_DEPTH, depth), DONE);
  assert_int_equal(msr_of(rig, LBR_FROM + 3), 0);
  assert_int_equal(wrmsr(rig, LBR_FROM, 0x50000), DONE);
  assert_int_equal(wrmsr(rig, LBR_CTL, 0), DONE);
  assert_int_equal(xrstors(rig, LBR_STATE), DONE);
  assert_int_equal(msr_of(rig, LBR_CTL), 0x7F0006);
}

static void test_restored(void **state)
{
  struct rig *rig = *state;

  lbr_save_and_restore(rig, 32);
  assert_int_equal(msr_of(rig, LER_INFO), 7);
  for (unsigned i = 0; i < 32; i++) {
    assert_int_equal(msr_of(rig, LBR_FROM + i), 0x10000 + i);
    assert_int_equal(msr_of(rig, LBR_TO + i), 0x20000 + i);
    assert_int_equal(msr_of(rig, LBR_INFO + i), i);
  }
}

/* Not restored but compared: then entries and LER are cleared. */
static void test_other_depth(void **state)
{
  struct rig *rig = *state;

  lbr_save_and_restore(rig, 8);
  assert_int_equal(msr_of(rig, LBR_DEPTH), 8);
  assert_int_equal(msr_of(rig, LER_FROM), 0);
  assert_int_equal(msr_of(rig, LER_INFO), 0);
  for (unsigned i = 0; i < 8; i++)
    assert_int_equal(msr_of(rig, LBR_FROM + i) | msr_of(rig, LBR_TO + i) | msr_of(rig, LBR_INFO + i), 0);
}

/* What is not in use is not written, and what an image lacks becomes as at reset. */
static void test_initial(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  put(rig, PART, 0x5555, 8);
  assert_int_equal(xsaves(rig, LBR_STATE), DONE);
  assert_int_equal(get(rig, HEADER, 8), 0);
  assert_int_equal(get(rig, PART, 8), 0x5555);
  lbr_fill(rig);
  assert_int_equal(xrstors(rig, LBR_STATE), DONE);
  assert_int_equal(msr_of(rig, LBR_CTL), 0);
  assert_int_equal(msr_of(rig, LBR_DEPTH), 32);
  assert_int_equal(msr_of(rig, LER_TO), 0);
  assert_int_equal(msr_of(rig, LBR_FROM), 0);
}

/* Recording goes on from what was restored. */
static void test_recording(void **state)
{
  struct rig *rig = *state;

  lbr_fill(rig);
  assert_int_equal(wrmsr(rig, LBR_CTL, 0x7F0007), DONE);
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  assert_int_equal(xsaves(rig, LBR_STATE), DONE);
  assert_int_equal(wrmsr(rig, LBR_CTL, 0), DONE);
  assert_int_equal(wrmsr(rig, LBR_DEPTH, 32), DONE);
  asks(rig, LBR_STATE);
  assert_int_equal(EXECUTE(rig, 0x0F, 0xC7, 0x1B, 0xEB, 0x00), DONE); /* XRSTORS, JMP to the next */
  assert_int_equal(wrmsr(rig, LBR_CTL, 0), DONE);
  assert_int_equal(msr_of(rig, LBR_FROM), CODE + 3);
  assert_int_equal(msr_of(rig, LBR_TO), CODE + 5);
  assert_int_equal(msr_of(rig, LBR_FROM + 1), 0x10000);
  assert_int_equal(msr_of(rig, LBR_FROM + 31), 0x10000 + 30);
}

static void test_refused(void **state)
{
  struct rig *rig = *state;

  static const struct {
    uint64_t components, compact, reserved;
  } headers[] = {
    {0, 0, 0},                                   /* the standard format */
    {0, COMPACT | 1u << 9, 0},                   /* a component that is not on */
    {LBR_STATE, COMPACT, 0},                     /* one that the image has no room for */
    {COMPACT, COMPACT, 0},                       /* bit 63 is none */
    {0, COMPACT | LBR_STATE, UINT64_C(1) << 40}, /* what must be 0 */
    {LBR_STATE | 2, COMPACT | LBR_STATE, 0},
  };
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
    put(rig, HEADER, headers[i].components, 8);
    put(rig, HEADER + 8, headers[i].compact, 8);
    put(rig, HEADER + 56, headers[i].reserved, 8);
    assert_int_equal(xrstors(rig, LBR_STATE), GP);
  }
  put(rig, HEADER, LBR_STATE, 8);
  put(rig, HEADER + 8, COMPACT | LBR_STATE, 8);
  put(rig, HEADER + 56, 0, 8);
  put(rig, PART, UINT64_C(1) << 30, 8); /* a bit that IA32_LBR_CTL does not have */
  assert_int_equal(xrstors(rig, LBR_STATE), GP);
  asks(rig, LBR_STATE);
  rig->cpu->r[RBX] = DATA + 8;
  assert_int_equal(EXECUTE(rig, 0x0F, 0xC7, 0x2B), GP);
  rig_ring_3(rig);
  assert_int_equal(xsaves(rig, LBR_STATE), GP);
}

static void test_absent(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "haswell");
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 | CR4_OSFXSR | CR4_OSXSAVE), DONE);
  assert_int_equal(xsaves(&rig, 1), UD);
  assert_int_equal(xrstors(&rig, 1), UD);
  rig.cpu->r[RCX] = 1;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xD0), GP); /* XGETBV of register 1 */
  rig_free(&rig);
}

/* XGETBV of register 1: what is in use. */
static void test_in_use(void **state)
{
  struct rig *rig = *state;

  rig->cpu->r[RCX] = 1;
  assert_int_equal(EXECUTE(rig, 0xDB, 0xE3, 0x0F, 0x01, 0xD0), DONE); /* FNINIT */
  assert_int_equal(rig->cpu->r[RAX], 0);
  assert_int_equal(EXECUTE(rig, 0xD9, 0xE8, 0x0F, 0x01, 0xD0), DONE); /* FLD1 */
  assert_int_equal(rig->cpu->r[RAX], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#define PKRU_STATE (1u << 9)

/* PKRU lies behind SSE or AVX, whatever the standard format keeps free there, and before the registers of LBR. */
static void test_pkru(void **state)
{
  struct rig *rig = *state;

  rig->cpu->r[RAX] = 3 | PKRU_STATE;
  rig->cpu->r[RCX] = rig->cpu->r[RDX] = 0;
  assert_int_equal(EXECUTE(rig, 0x0F, 0x01, 0xD1), DONE); /* XSETBV */
  assert_int_equal(wrmsr(rig, XSS, LBR_STATE), DONE);
  assert_int_equal(cpuid_of(rig, 1, RBX), 576 + 8 + 808);
  lbr_fill(rig);
  rig->cpu->pkru = 0x12345678;
  put(rig, PART, UINT64_MAX, 8);
  assert_int_equal(xsaves(rig, PKRU_STATE | LBR_STATE), DONE);
  assert_int_equal(get(rig, HEADER, 8), PKRU_STATE | LBR_STATE);
  assert_true(get(rig, HEADER + 8, 8) == (COMPACT | PKRU_STATE | LBR_STATE));
  assert_int_equal(get(rig, PART, 8), 0x12345678);
  assert_int_equal(get(rig, PART + 8, 8), msr_of(rig, LBR_CTL));
  put(rig, PART, 0x55555554, 4);
  assert_int_equal(xrstors(rig, LBR_STATE), DONE);
  assert_int_equal(rig->cpu->pkru, 0x12345678);
  assert_int_equal(xrstors(rig, PKRU_STATE), DONE);
  assert_int_equal(rig->cpu->pkru, 0x55555554);
  put(rig, HEADER, LBR_STATE, 8); /* as at reset */
  assert_int_equal(xrstors(rig, PKRU_STATE), DONE);
  assert_int_equal(rig->cpu->pkru, 0);
  assert_int_equal(xsaves(rig, PKRU_STATE), DONE); /* and then it is not written */
  assert_int_equal(get(rig, HEADER, 8), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_cpuid),       TEST(test_xss),     TEST(test_layout),    TEST(test_restored),
    TEST(test_other_depth), TEST(test_initial), TEST(test_recording), TEST(test_refused),
    TEST(test_absent),      TEST(test_in_use),  TEST(test_pkru),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
