/* SPDX-License-Identifier: Apache-2.0
 *
 * x87, MMX and SSE where the host cannot show it (test_cpu_vector.c does the rest): faults that depend on control
 * registers, x87 exceptions that wait, the environments of all modes, pointers and opcode, XSAVE's header.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "cpu/fault.h"
#include "vector_run.h"

/* One instruction, as bytes; memory operands are at RBX. */
#define STEP(cpu, ...) vector_guest_step(cpu, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define OK (-1)

#define FLD1 0xD9, 0xE8
#define FLDZ 0xD9, 0xEE
#define FWAIT 0x9B
#define FNINIT 0xDB, 0xE3
#define FNCLEX 0xDB, 0xE2
#define FNSTSW_AX 0xDF, 0xE0
#define FNOP 0xD9, 0xD0
#define FDIVP 0xDE, 0xF9
#define FLDCW 0xD9, 0x2B
#define FNSTENV 0xD9, 0x33
#define FLDENV 0xD9, 0x23
#define FNSAVE 0xDD, 0x33
#define FRSTOR 0xDD, 0x23
#define PADDB_MMX 0x0F, 0xFC, 0xC1
#define EMMS 0x0F, 0x77
#define ADDPS 0x0F, 0x58, 0xC1
#define DIVPS 0x0F, 0x5E, 0xC1
#define MOVAPS_LOAD 0x0F, 0x28, 0x03
#define MOVUPS_LOAD 0x0F, 0x10, 0x03
#define MOVDQU_STORE 0xF3, 0x0F, 0x7F, 0x03
#define MOVNTI 0x0F, 0xC3, 0x03
#define LDMXCSR 0x0F, 0xAE, 0x13
#define FXSAVE 0x0F, 0xAE, 0x03
#define FXRSTOR 0x0F, 0xAE, 0x0B
#define XSAVE 0x0F, 0xAE, 0x23
#define XRSTOR 0x0F, 0xAE, 0x2B
#define VADDPS 0xC5, 0xF0, 0x58, 0xC2

static int setup(void **state)
{
  struct cpu *cpu = vector_guest_new();

  *state = cpu;
  if (!cpu)
    return -1;
  cpu->r[RBX] = GUEST_DATA;
  cpu->fpu.mxcsr = 0x1F80;
  assert_int_equal(STEP(cpu, FNINIT), OK);
  return 0;
}

static int teardown(void **state)
{
  vector_guest_free(*state);
  return 0;
}

static uint32_t data_32(struct cpu *cpu, unsigned offset)
{
  uint32_t value;

  memcpy(&value, vector_guest_data(cpu) + offset, 4);
  return value;
}

static uint16_t data_16(struct cpu *cpu, unsigned offset)
{
  return (uint16_t)data_32(cpu, offset);
}

static void data_set(struct cpu *cpu, unsigned offset, uint64_t value, unsigned size)
{
  memcpy(vector_guest_data(cpu) + offset, &value, size);
}

/* ---- control registers ---- */

static void test_switched_off(void **state)
{
  struct cpu *cpu = *state;
  uint32_t cr0 = cpu->cr0, cr4 = cpu->cr4;

  cpu->cr0 = cr0 | CR0_TS;
  assert_int_equal(STEP(cpu, FLD1), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, FNSTSW_AX), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, FWAIT), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, PADDB_MMX), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, ADDPS), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, FXSAVE), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, XSAVE), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, VADDPS), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, MOVNTI), OK);
  cpu->cr0 = (cr0 & ~CR0_MP) | CR0_TS; /* WAIT looks at TS only together with MP */
  assert_int_equal(STEP(cpu, FWAIT), OK);
  cpu->cr0 = cr0 | CR0_EM;
  assert_int_equal(STEP(cpu, FLD1), EXCEPTION_NM);
  assert_int_equal(STEP(cpu, FWAIT), OK);
  assert_int_equal(STEP(cpu, PADDB_MMX), EXCEPTION_UD);
  assert_int_equal(STEP(cpu, EMMS), EXCEPTION_UD);
  assert_int_equal(STEP(cpu, ADDPS), EXCEPTION_UD);
  cpu->cr0 = cr0;
  cpu->cr4 = cr4 & ~CR4_OSFXSR;
  assert_int_equal(STEP(cpu, ADDPS), EXCEPTION_UD);
  assert_int_equal(STEP(cpu, LDMXCSR), EXCEPTION_UD);
  assert_int_equal(STEP(cpu, PADDB_MMX), OK);
  assert_int_equal(STEP(cpu, FXSAVE), OK);
  cpu->cr4 = cr4 & ~CR4_OSXSAVE;
  assert_int_equal(STEP(cpu, XSAVE), EXCEPTION_UD);
  assert_int_equal(STEP(cpu, VADDPS), EXCEPTION_UD);
  cpu->cr4 = cr4;
  cpu->xcr0 = 3;
  assert_int_equal(STEP(cpu, VADDPS), EXCEPTION_UD);
  cpu->xcr0 = 7;
  assert_int_equal(STEP(cpu, VADDPS), OK);
}

/* ---- x87 exceptions wait ---- */

/* 1 / 0 with ZM = 0: nothing is stored, nothing popped, and the next waiting instruction faults. */
static void make_pending(struct cpu *cpu)
{
  assert_int_equal(STEP(cpu, FNINIT), OK);
  data_set(cpu, 0, 0x37B, 2);
  assert_int_equal(STEP(cpu, FLDCW), OK);
  assert_int_equal(STEP(cpu, FLD1), OK);
  assert_int_equal(STEP(cpu, FLDZ), OK);
  assert_int_equal(STEP(cpu, FDIVP), OK);
  assert_int_equal(cpu->fpu.top, 6);
  assert_int_equal(cpu->fpu.tags, 0xC0);
  assert_int_equal(cpu->fpu.status & 0x80FF, 0x8084);
}

static void test_pending(void **state)
{
  struct cpu *cpu = *state;

  make_pending(cpu);
  assert_int_equal(cpu->fpu.opcode, 0x6F9);
  assert_int_equal(cpu->fpu.instruction, GUEST_CODE);
  assert_int_equal(STEP(cpu, FWAIT), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, FNOP), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, FLD1), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, PADDB_MMX), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, EMMS), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, FLDCW), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, FLDENV), EXCEPTION_MF);
  assert_int_equal(STEP(cpu, ADDPS), OK);
  assert_int_equal(STEP(cpu, FXSAVE), OK);
  assert_int_equal(STEP(cpu, FNSTSW_AX), OK);
  assert_int_equal(cpu->r[RAX] & 0xFFFF, 0xB084);
  assert_int_equal(STEP(cpu, FNSTENV), OK); /* masks all, so nothing is left to wait for */
  assert_int_equal(cpu->fpu.control, 0x37F);
  assert_int_equal(STEP(cpu, FWAIT), OK);
  make_pending(cpu);
  assert_int_equal(STEP(cpu, FNCLEX), OK);
  assert_int_equal(STEP(cpu, FLD1), OK);
  make_pending(cpu);
  assert_int_equal(STEP(cpu, FNSAVE), OK);
  assert_int_equal(STEP(cpu, FLD1), OK);
}

static void test_ferr(void **state)
{
  struct cpu *cpu = *state;

  make_pending(cpu);
  cpu->cr0 &= ~(uint32_t)CR0_NE;
  unsigned before = vector_guest_ferr;
  assert_int_equal(STEP(cpu, FNSTSW_AX), OK);
  assert_int_equal(vector_guest_ferr, before);
  assert_int_equal(STEP(cpu, FWAIT), OK);
  assert_int_equal(vector_guest_ferr, before + 1);
}

/* ---- SSE exceptions ---- */

static void test_unmasked_sse(void **state)
{
  struct cpu *cpu = *state;
  const float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 1, 1};

  memcpy(cpu->fpu.v[0].u8, a, 16);
  memcpy(cpu->fpu.v[1].u8, b, 16);
  cpu->fpu.mxcsr = 0x1D80; /* ZM = 0 */
  assert_int_equal(STEP(cpu, DIVPS), EXCEPTION_XM);
  assert_memory_equal(cpu->fpu.v[0].u8, a, 16);
  assert_int_equal(cpu->fpu.mxcsr, 0x1D84);
  cpu->cr4 &= ~(uint32_t)CR4_OSXMMEXCPT;
  assert_int_equal(STEP(cpu, DIVPS), EXCEPTION_UD);
  cpu->fpu.mxcsr = 0x1F80;
  assert_int_equal(STEP(cpu, DIVPS), OK);
  assert_int_equal(cpu->fpu.mxcsr, 0x1F84);
}

/* Tiny and exact: masked it is no underflow, unmasked it is. */
static void test_exact_underflow(void **state)
{
  struct cpu *cpu = *state;
  const uint32_t a[4] = {0x00800000, 0, 0, 0}, b[4] = {0x40000000, 0x3F800000, 0x3F800000, 0x3F800000};

  memcpy(cpu->fpu.v[0].u8, a, 16);
  memcpy(cpu->fpu.v[1].u8, b, 16);
  cpu->fpu.mxcsr = 0x1780; /* UM = 0 */
  assert_int_equal(STEP(cpu, DIVPS), EXCEPTION_XM);
  assert_int_equal(cpu->fpu.mxcsr, 0x1790);
  cpu->fpu.mxcsr = 0x1F80;
  assert_int_equal(STEP(cpu, DIVPS), OK);
  assert_int_equal(cpu->fpu.mxcsr, 0x1F80);
}

/* Numbers at every edge, with every flag that the guest may have already: result and flags as the host has them. */
#define HOST_SCALAR(host)                                                                                              \
  static void host_##host(uint64_t a, uint64_t b, uint32_t *csr, uint64_t *ret_result)                                 \
  {                                                                                                                    \
    uint32_t before;                                                                                                   \
    __asm__ volatile("stmxcsr %[before]\n\tmovq %[a], %%xmm0\n\tmovq %[b], %%xmm1\n\tldmxcsr %[csr]\n\t" #host         \
                     " %%xmm1, %%xmm0\n\tstmxcsr %[csr]\n\tldmxcsr %[before]\n\tmovq %%xmm0, %[a]"                     \
                     : [a] "+r"(a), [csr] "+m"(*csr), [before] "=m"(before)                                            \
                     : [b] "r"(b)                                                                                      \
                     : "xmm0", "xmm1");                                                                                \
    *ret_result = a;                                                                                                   \
  }
HOST_SCALAR(addsd)
HOST_SCALAR(subsd)
HOST_SCALAR(mulsd)
HOST_SCALAR(divsd)
HOST_SCALAR(addss)
HOST_SCALAR(subss)
HOST_SCALAR(mulss)
HOST_SCALAR(divss)

static void scalar_check(struct cpu *cpu, const uint8_t *code, uint64_t a, uint64_t b, uint32_t mxcsr,
                         void (*host)(uint64_t, uint64_t, uint32_t *, uint64_t *))
{
  uint64_t result = 0;
  uint32_t csr = mxcsr;

  cpu->fpu.v[0].u64[0] = a;
  cpu->fpu.v[1].u64[0] = b;
  cpu->fpu.mxcsr = mxcsr;
  assert_int_equal(STEP(cpu, code[0], code[1], code[2], code[3]), OK);
  host(a, b, &csr, &result);
  if (cpu->fpu.v[0].u64[0] != result || cpu->fpu.mxcsr != csr)
    fail_msg("%02x %02x of %llx and %llx under %x: %llx with %x, the host has %llx with %x", code[0], code[2],
             (unsigned long long)a, (unsigned long long)b, mxcsr, (unsigned long long)cpu->fpu.v[0].u64[0],
             cpu->fpu.mxcsr, (unsigned long long)result, csr);
}

static void test_scalar_edges(void **state)
{
  static const struct {
    uint8_t code[4];
    void (*host)(uint64_t, uint64_t, uint32_t *, uint64_t *);
  } rows[] = {
    {{0xF2, 0x0F, 0x58, 0xC1}, host_addsd}, {{0xF2, 0x0F, 0x5C, 0xC1}, host_subsd},
    {{0xF2, 0x0F, 0x59, 0xC1}, host_mulsd}, {{0xF2, 0x0F, 0x5E, 0xC1}, host_divsd},
    {{0xF3, 0x0F, 0x58, 0xC1}, host_addss}, {{0xF3, 0x0F, 0x5C, 0xC1}, host_subss},
    {{0xF3, 0x0F, 0x59, 0xC1}, host_mulss}, {{0xF3, 0x0F, 0x5E, 0xC1}, host_divss},
  };
  static const uint16_t exponents[] = {0, 1, 2, 3, 54, 0x3FE, 0x3FF, 0x400, 0x401, 0x7FC, 0x7FD, 0x7FE, 0x7FF};
  static const uint64_t fractions[] = {0, 1, UINT64_C(0x5555555555555), UINT64_C(0x8000000000000),
                                       UINT64_C(0xFFFFFFFFFFFFF)};
  static const uint32_t states[] = {0x1F80, 0x1FA0, 0x1FBF, 0x1F90, 0x3FA0, 0x9FE0};
  enum { VALUES = 2 * 13 * 5 };
  uint64_t values[VALUES];
  for (unsigned i = 0; i < VALUES; i++)
    values[i] = (uint64_t)(i & 1) << 63 | (uint64_t)exponents[i / 2 % 13] << 52 | fractions[i / 26];
  for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
    for (unsigned i = 0; i < VALUES * VALUES; i++) {
      uint64_t a = values[i / VALUES], b = values[i % VALUES];

      if (rows[k].code[0] == 0xF3) { /* the same edges of singles: exponents of eight bits */
        a = (a >> 63 << 31) | ((a >> 52 & 0x7FF) > 0x7FB ? (a >> 52 & 3) | 0xFC : (a >> 52 & 0x7F)) << 23 |
            (a >> 29 & 0x7FFFFF);
        b = (b >> 63 << 31) | ((b >> 52 & 0x7FF) > 0x7FB ? (b >> 52 & 3) | 0xFC : (b >> 52 & 0x7F)) << 23 |
            (b >> 29 & 0x7FFFFF);
      }
      scalar_check(*state, rows[k].code, a, b, states[(i + k) % 6], rows[k].host);
    }
}

static void test_alignment(void **state)
{
  struct cpu *cpu = *state;

  cpu->r[RBX] = GUEST_DATA + 8;
  assert_int_equal(STEP(cpu, MOVAPS_LOAD), EXCEPTION_GP);
  assert_int_equal(cpu->fault.error, 0);
  assert_int_equal(STEP(cpu, MOVUPS_LOAD), OK);
  assert_int_equal(STEP(cpu, FXSAVE), EXCEPTION_GP);
  assert_int_equal(STEP(cpu, FXRSTOR), EXCEPTION_GP);
  cpu->r[RBX] = GUEST_DATA + 16;
  assert_int_equal(STEP(cpu, MOVAPS_LOAD), OK);
  assert_int_equal(STEP(cpu, FXSAVE), OK);
  assert_int_equal(STEP(cpu, XSAVE), EXCEPTION_GP);
  data_set(cpu, 0, 0x10000, 4);
  cpu->r[RBX] = GUEST_DATA;
  assert_int_equal(STEP(cpu, LDMXCSR), EXCEPTION_GP);
}

/* A store across the end of what is there writes nothing. */
static void test_store_fault(void **state)
{
  struct cpu *cpu = *state;

  memset(cpu->fpu.v[0].u8, 0xAA, 16);
  memset(vector_guest_data(cpu) + DATA_BYTES - 8, 0x11, 8);
  cpu->r[RBX] = GUEST_DATA + DATA_BYTES - 8;
  assert_int_equal(STEP(cpu, MOVDQU_STORE), EXCEPTION_PF);
  assert_int_equal(vector_guest_data(cpu)[DATA_BYTES - 8], 0x11);
  assert_int_equal(STEP(cpu, FLD1), OK);
  assert_int_equal(STEP(cpu, 0xDB, 0x3B), EXCEPTION_PF); /* FSTP m80 */
  assert_int_equal(cpu->fpu.top, 7);
  assert_int_equal(cpu->fpu.tags, 0x80);
}

/* ---- environments ---- */

static void fill_environment(struct cpu *cpu)
{
  STEP(cpu, FNINIT);
  STEP(cpu, FLD1);
  STEP(cpu, FLDZ);
  cpu->fpu.opcode = 0x5A5;
  cpu->fpu.instruction = 0x12345678;
  cpu->fpu.instruction_selector = 0x1000;
  cpu->fpu.data = 0x9ABCDEF0;
  cpu->fpu.data_selector = 0x2000;
}

/* Tags: register 7 valid, 6 zero, the others empty. TOP is 6. */
static void test_environment_protected(void **state)
{
  struct cpu *cpu = *state;

  fill_environment(cpu);
  assert_int_equal(STEP(cpu, FNSTENV), OK);
  const uint32_t wide[7] = {0xFFFF037F, 0xFFFF3000, 0xFFFF1FFF, 0x12345678, 0x05A51000, 0x9ABCDEF0, 0xFFFF2000};
  assert_memory_equal(vector_guest_data(cpu), wide, 28);
  assert_int_equal(STEP(cpu, 0x66, FNSTENV), OK);
  const uint16_t narrow[7] = {0x037F, 0x3000, 0x1FFF, 0x5678, 0x1000, 0xDEF0, 0x2000};
  assert_memory_equal(vector_guest_data(cpu), narrow, 14);
  STEP(cpu, FNSTENV);
  STEP(cpu, FNINIT);
  assert_int_equal(STEP(cpu, FLDENV), OK);
  assert_int_equal(cpu->fpu.tags, 0xC0);
  assert_int_equal(cpu->fpu.top, 6);
  assert_int_equal(cpu->fpu.opcode, 0x5A5);
  assert_int_equal(cpu->fpu.data, 0x9ABCDEF0);
  assert_int_equal(cpu->fpu.data_selector, 0x2000);
}

/* The same CPU in real mode: linear addresses instead of selectors. */
static void enter_real(struct cpu *cpu)
{
  cpu->cr0 &= ~(uint32_t)(CR0_PE | CR0_PG);
  cpu->efer = 0;
  for (unsigned i = ES; i <= GS; i++)
    cpu_load_real_segment(cpu, i, 0);
  cpu->segment[CS].access = cpu->segment[DS].access = 0x93;
  cpu->segment[DS].limit = UINT32_MAX; /* "unreal" mode reaches the data */
  cpu_changed(cpu);
}

static void test_environment_real(void **state)
{
  struct cpu *cpu = *state;

  fill_environment(cpu);
  cpu->fpu.instruction = 0x5678;
  cpu->fpu.data = 0xDEF0;
  enter_real(cpu);
  assert_int_equal(STEP(cpu, 0x67, FNSTENV), OK);
  const uint16_t narrow[7] = {0x037F, 0x3000, 0x1FFF, 0x5678, 0x15A5, 0xDEF0, 0x2000};
  assert_memory_equal(vector_guest_data(cpu), narrow, 14);
  assert_int_equal(STEP(cpu, 0x66, 0x67, FNSTENV), OK);
  const uint32_t wide[7] = {0xFFFF037F, 0xFFFF3000, 0xFFFF1FFF, 0xFFFF5678, 0x000015A5, 0xFFFFDEF0, 0x00002000};
  assert_memory_equal(vector_guest_data(cpu), wide, 28);
  STEP(cpu, FNINIT);
  assert_int_equal(STEP(cpu, 0x66, 0x67, FLDENV), OK);
  assert_int_equal(cpu->fpu.instruction, 0x15678);
  assert_int_equal(cpu->fpu.data, 0x2DEF0);
  assert_int_equal(cpu->fpu.opcode, 0x5A5);
}

static void test_save_restore(void **state)
{
  struct cpu *cpu = *state;

  fill_environment(cpu);
  struct fpu before = cpu->fpu;
  assert_int_equal(STEP(cpu, FNSAVE), OK);
  assert_int_equal(cpu->fpu.tags, 0);
  assert_int_equal(cpu->fpu.top, 0);
  assert_int_equal(cpu->fpu.control, 0x37F);
  assert_int_equal(data_32(cpu, 28 + 10 + 6), 0x3FFF8000); /* ST(1) is 1.0 */
  memset(cpu->fpu.st, 0xEE, sizeof(cpu->fpu.st));
  assert_int_equal(STEP(cpu, FRSTOR), OK);
  assert_int_equal(cpu->fpu.tags, before.tags);
  for (unsigned i = 0; i < 8; i++)
    assert_memory_equal(cpu->fpu.st[i], before.st[i], 10);
}

/* FXSAVE's two layouts of the pointers. */
static void test_fxsave_pointers(void **state)
{
  struct cpu *cpu = *state;

  fill_environment(cpu);
  cpu->fpu.instruction = 0x123456789ABC;
  assert_int_equal(STEP(cpu, FXSAVE), OK);
  assert_int_equal(data_16(cpu, 4), 0xC0);
  assert_int_equal(data_16(cpu, 6), 0x5A5);
  assert_int_equal(data_32(cpu, 8), 0x56789ABC);
  assert_int_equal(data_32(cpu, 12), 0x1000);
  assert_int_equal(data_32(cpu, 20), 0x2000);
  assert_int_equal(data_32(cpu, 28), 0xFFFF);
  assert_int_equal(STEP(cpu, 0x48, FXSAVE), OK);
  assert_int_equal(data_32(cpu, 12), 0x1234);
  assert_int_equal(data_32(cpu, 20), 0);
  STEP(cpu, FNINIT);
  assert_int_equal(STEP(cpu, 0x48, FXRSTOR), OK);
  assert_int_equal(cpu->fpu.instruction, 0x123456789ABC);
  data_set(cpu, FX_MXCSR, 0x11F80, 4);
  assert_int_equal(STEP(cpu, FXRSTOR), EXCEPTION_GP);
}

/* ---- BCD ---- */

static void test_bcd(void **state)
{
  struct cpu *cpu = *state;
  const uint8_t number[10] = {0x78, 0x56, 0x34, 0x12, 0x90, 0x78, 0x56, 0x34, 0x12, 0x80};

  memcpy(vector_guest_data(cpu), number, 10);
  assert_int_equal(STEP(cpu, 0xDF, 0x23), OK); /* FBLD */
  assert_int_equal(STEP(cpu, 0xDF, 0x3B), OK); /* FISTP m64 */
  int64_t value;
  memcpy(&value, vector_guest_data(cpu), 8);
  assert_true(value == -123456789012345678);
  assert_int_equal(STEP(cpu, 0xDF, 0x2B), OK); /* FILD m64 */
  assert_int_equal(STEP(cpu, 0xDF, 0x33), OK); /* FBSTP */
  assert_memory_equal(vector_guest_data(cpu), number, 10);
  assert_int_equal(cpu->fpu.tags, 0);
  assert_int_equal(STEP(cpu, 0xDF, 0x33), OK); /* an empty register: the indefinite */
  assert_int_equal(data_32(cpu, 6), 0xFFFFC000);
  assert_int_equal(cpu->fpu.status & 0xFF, 0x41);
}

/* ---- MMX and the x87 stack ---- */

static void test_mmx_state(void **state)
{
  struct cpu *cpu = *state;

  STEP(cpu, FLD1);
  assert_int_equal(STEP(cpu, PADDB_MMX), OK);
  assert_int_equal(cpu->fpu.top, 0);
  assert_int_equal(cpu->fpu.tags, 0xFF);
  assert_int_equal(cpu->fpu.st[0][8] & cpu->fpu.st[0][9], 0xFF);
  assert_int_equal(STEP(cpu, EMMS), OK);
  assert_int_equal(cpu->fpu.tags, 0);
}

/* ---- XSAVE ---- */

static void test_xsave(void **state)
{
  struct cpu *cpu = *state;

  cpu->r[RAX] = 7;
  cpu->r[RDX] = 0;
  memset(cpu->fpu.v, 0, sizeof(cpu->fpu.v));
  memset(cpu->fpu.st, 0, sizeof(cpu->fpu.st));
  memset(vector_guest_data(cpu), 0, 1024);
  assert_int_equal(STEP(cpu, XSAVE), OK);
  assert_int_equal(data_32(cpu, 512), 0); /* nothing in use */
  memset(cpu->fpu.v[3].u8 + 16, 0x77, 16);
  cpu->fpu.v[2].u64[0] = 5;
  STEP(cpu, FLD1);
  assert_int_equal(STEP(cpu, XSAVE), OK);
  assert_int_equal(data_32(cpu, 512), 7);
  assert_int_equal(data_32(cpu, 576 + 48), 0x77777777);
  data_set(cpu, 512, 5, 8); /* the SSE part is to be as at reset */
  memset(cpu->fpu.v, 0xEE, sizeof(cpu->fpu.v));
  STEP(cpu, FNINIT);
  assert_int_equal(STEP(cpu, XRSTOR), OK);
  assert_int_equal(cpu->fpu.v[2].u64[0], 0);
  assert_int_equal(cpu->fpu.v[3].u64[2], 0x7777777777777777);
  assert_int_equal(cpu->fpu.tags, 0x80);
  data_set(cpu, 512, 8, 8); /* a component that is not on */
  assert_int_equal(STEP(cpu, XRSTOR), EXCEPTION_GP);
  data_set(cpu, 512, 7, 8);
  data_set(cpu, 520, 1, 8); /* a compacted image */
  assert_int_equal(STEP(cpu, XRSTOR), EXCEPTION_GP);
}

/* A gather that faults keeps what it has, and its mask says so. */
static void test_gather_fault(void **state)
{
  struct cpu *cpu = *state;

  memset(cpu->fpu.v, 0, sizeof(cpu->fpu.v));
  data_set(cpu, 0, 0x1234, 4);
  memset(cpu->fpu.v[2].u8, 0xFF, 16);
  cpu->fpu.v[1].u32[1] = DATA_BYTES;
  assert_int_equal(STEP(cpu, 0xC4, 0xE2, 0x69, 0x90, 0x04, 0x0B), EXCEPTION_PF); /* VPGATHERDD XMM0, [RBX+XMM1], XMM2 */
  assert_int_equal(cpu->fpu.v[0].u32[0], 0x1234);
  assert_int_equal(cpu->fpu.v[2].u32[0], 0);
  assert_int_equal(cpu->fpu.v[2].u32[1], 0xFFFFFFFF);
  cpu->fpu.v[1].u32[1] = 0;
  assert_int_equal(STEP(cpu, 0xC4, 0xE2, 0x69, 0x90, 0x04, 0x0B), OK);
  assert_int_equal(cpu->fpu.v[2].u64[0], 0);
  assert_int_equal(STEP(cpu, 0xC4, 0xE2, 0x69, 0x90, 0x14, 0x0B), EXCEPTION_UD); /* destination and mask the same */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_switched_off),
    TEST(test_pending),
    TEST(test_ferr),
    TEST(test_unmasked_sse),
    TEST(test_exact_underflow),
    TEST(test_scalar_edges),
    TEST(test_alignment),
    TEST(test_store_fault),
    TEST(test_environment_protected),
    TEST(test_environment_real),
    TEST(test_save_restore),
    TEST(test_fxsave_pointers),
    TEST(test_bcd),
    TEST(test_mmx_state),
    TEST(test_xsave),
    TEST(test_gather_fault),
  };

  return cmocka_run_group_tests_name("cpu_float", tests, NULL, NULL);
}
