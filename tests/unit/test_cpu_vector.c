/* SPDX-License-Identifier: Apache-2.0
 *
 * x87, MMX, SSE and AVX: every encoding of every instruction of float.def and vector.def runs on the host and in the
 * interpreter with the same random registers and memory, and must leave the same. Then what cannot be run on the host:
 * faults that depend on control registers, waiting x87 exceptions, environments of other modes.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <cpuid.h>

#include "cpu/cpu.h"
#include "cpu/fault.h"
#include "cpu/system.h"
#include "vector_case.h"
#include "vector_run.h"

enum { ROUNDS = 5, ROUNDS_X87 = 10, DIFFERENCES_SHOWN = 1 }; /* per instruction */

/* ---- random values: the same in each run ---- */

static uint64_t random_state;

static uint64_t random_64(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

static unsigned random_below(unsigned limit)
{
  return (unsigned)(random_64() >> 33) % limit;
}

/* Numbers at the edges of each format, and ordinary ones whose exponents are near enough to meet. */
static uint32_t random_single(void)
{
  static const uint32_t edges[] = {0,          0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00001,
                                   0x7F800001, 0xFFA00000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF,
                                   0x4F000000, 0xCF000000, 0x4EFFFFFF, 0x3F000000, 0x40200000, 0x5F000000};

  switch (random_below(3)) {
  case 0:
    return edges[random_below(sizeof(edges) / sizeof(edges[0]))];
  case 1:
    return (uint32_t)random_64();
  default:
    return (0x3E000000 + ((uint32_t)random_64() & 0x03FFFFFF)) | ((uint32_t)random_below(2) << 31);
  }
}

static uint64_t random_double(void)
{
  static const uint64_t edges[] = {0,
                                   0x8000000000000000,
                                   0x3FF0000000000000,
                                   0xBFF0000000000000,
                                   0x7FF0000000000000,
                                   0xFFF0000000000000,
                                   0x7FF8000000000001,
                                   0x7FF0000000000001,
                                   0x0000000000000001,
                                   0x800FFFFFFFFFFFFF,
                                   0x0010000000000000,
                                   0x7FEFFFFFFFFFFFFF,
                                   0x41E0000000000000,
                                   0xC1E0000000000000,
                                   0x41DFFFFFFFC00000,
                                   0x43E0000000000000,
                                   0x3690000000000000,
                                   0x380FFFFFFFFFFFFF,
                                   0x47EFFFFFFFFFFFFF,
                                   0x3FE0000000000000};

  switch (random_below(3)) {
  case 0:
    return edges[random_below(sizeof(edges) / sizeof(edges[0]))];
  case 1:
    return random_64();
  default:
    return (0x3FC0000000000000 + (random_64() & 0x007FFFFFFFFFFFFF)) | ((uint64_t)random_below(2) << 63);
  }
}

static void random_extended(uint8_t *bytes)
{
  static const struct {
    uint16_t exponent;
    uint64_t significand;
  } edges[] = {{0, 0},
               {0x8000, 0},
               {0x3FFF, 0x8000000000000000},
               {0xBFFF, 0x8000000000000000},
               {0x7FFF, 0x8000000000000000},
               {0xFFFF, 0x8000000000000000},
               {0x7FFF, 0xC000000000000001},
               {0x7FFF, 0x8000000000000001},
               {0xFFFF, 0xC000000000000000},
               {0, 1},
               {0x8000, 0x7FFFFFFFFFFFFFFF},
               {0, 0x8000000000000000},
               {1, 0x8000000000000000},
               {0x7FFE, 0xFFFFFFFFFFFFFFFF},
               {0x4000, 0x1234567812345678},
               {0x7FFF, 0},
               {0x403E, 0x8000000000000000},
               {0x401E, 0x8000000000000000},
               {0x400E, 0x8000000000000000},
               {0x3F81, 0x8000000000000000},
               {0x3C01, 0x8000000000000001},
               {0x43FE, 0xFFFFFFFFFFFFF800}};
  unsigned edge = random_below(sizeof(edges) / sizeof(edges[0]));
  uint64_t significand = random_64() | UINT64_C(1) << 63;
  uint16_t exponent = (uint16_t)(0x3FFF - 8 + random_below(24));
  if (random_below(3) == 0) {
    significand = edges[edge].significand;
    exponent = edges[edge].exponent;
  } else if (random_below(3) == 0) {
    significand &= UINT64_MAX << random_below(64);
  } else if (random_below(6) == 0) {
    exponent = (uint16_t)random_64();
  }
  exponent ^= (uint16_t)(random_below(2) << 15);
  memcpy(bytes, &significand, 8);
  memcpy(bytes + 8, &exponent, 2);
}

static void random_vector(uint8_t *bytes)
{
  unsigned kind = random_below(4);

  for (unsigned i = 0; i < 4; i++) {
    uint64_t value = kind == 0 ? random_double() : kind == 1 ? random_64() : random_single();

    if (kind == 3 && random_below(2))
      value = random_below(40); /* counts and lengths */
    memcpy(bytes + 4 * i, &value, kind == 0 || kind == 1 ? 8 : 4);
    i += kind <= 1;
  }
}

/* Mostly masked, so that there are results to compare. Sticky flags only where masked: nothing waits. */
static void random_state_make(struct vector_state *state)
{
  memset(state, 0, sizeof(*state));
  uint16_t control = (uint16_t)(0x40 | (random_below(3) ? 0x3F : random_below(64)) | random_below(4) << 10);
  static const uint16_t precisions[] = {0x300, 0x300, 0x200, 0x000};
  control |= precisions[random_below(4)];
  uint16_t status = (uint16_t)((random_64() & 0x7F00) | (random_below(2) ? random_64() & control & 0x3F : 0));
  uint32_t mxcsr = (random_below(4) ? 0x1F80 : random_below(64) << 7) | random_below(4) << 13;
  mxcsr |= random_below(3) ? 0 : (uint32_t)random_below(64);
  mxcsr |= (random_below(4) ? 0 : 0x40u) | (random_below(4) ? 0 : 0x8000u);
  memcpy(state->fx + FX_CONTROL, &control, 2);
  memcpy(state->fx + FX_STATUS, &status, 2);
  state->fx[FX_TAGS] = (uint8_t)(random_below(3) ? random_64() | random_64() : 0x0Fu << random_below(5));
  memcpy(state->fx + FX_MXCSR, &mxcsr, 4);
  for (unsigned i = 0; i < 8; i++)
    random_extended(state->fx + FX_ST + 16 * i);
  for (unsigned i = 0; i < 16; i++) {
    random_vector(state->fx + FX_XMM + 16 * i);
    random_vector(state->high[i]);
    state->r[i] = random_below(2) ? random_64() : random_below(40) - UINT64_C(20);
  }
  state->flags = 2 | (random_64() & FLAGS_ARITHMETIC);
}

/* ---- memory operands ---- */

static bool is_xsave(ZydisMnemonic mnemonic)
{
  return mnemonic == ZYDIS_MNEMONIC_XSAVE || mnemonic == ZYDIS_MNEMONIC_XSAVE64 ||
         mnemonic == ZYDIS_MNEMONIC_XSAVEOPT || mnemonic == ZYDIS_MNEMONIC_XSAVEOPT64 ||
         mnemonic == ZYDIS_MNEMONIC_XSAVEC || mnemonic == ZYDIS_MNEMONIC_XSAVEC64;
}

static bool is_xrstor(ZydisMnemonic mnemonic)
{
  return mnemonic == ZYDIS_MNEMONIC_XRSTOR || mnemonic == ZYDIS_MNEMONIC_XRSTOR64;
}

/* Does the host have the compacted format, in which its XRSTOR then takes images? */
static bool host_has_compact(void)
{
  unsigned a = 0, b, c, d;

  return __get_cpuid_count(0xD, 1, &a, &b, &c, &d) && a & 2;
}

static unsigned operand_bytes(const struct vector_case *the_case)
{
  if (is_xsave(the_case->code.mnemonic) || is_xrstor(the_case->code.mnemonic))
    return 832;
  for (unsigned i = 0; i < the_case->code.operand_count; i++)
    if (the_case->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
      return the_case->operands[i].size / 8;
  return 0;
}

/* Aligned, odd, across pages, or right before what may not be touched. */
static unsigned operand_offset(unsigned size)
{
  switch (random_below(6)) {
  case 0:
    return DATA_BYTES - size;
  case 1:
    return 4096 - size / 2;
  case 2:
    return 64 + random_below(64);
  default:
    return 64 * random_below(16);
  }
}

static void operand_fill(const struct vector_case *the_case, uint8_t *at, unsigned size)
{
  struct vector_state image;

  ZydisMnemonic mnemonic = the_case->code.mnemonic;
  if (size >= 512) {
    random_state_make(&image);
    memset(at, 0, size);
    memcpy(at, image.fx, 512);
    if (size > 576)
      memcpy(at + 576, image.high, 256);
    if (is_xrstor(mnemonic))
      at[512] = (uint8_t)random_below(8);
    if (is_xrstor(mnemonic) && host_has_compact() && random_below(2)) {
      at[520] = (uint8_t)(random_below(8) ? at[512] | random_below(8) : random_below(8));
      at[527] = 0x80;
    }
    return;
  }
  for (unsigned i = 0; i < size; i++)
    at[i] = (uint8_t)random_64();
  uint8_t value[16];
  random_vector(value);
  if (size == 10)
    random_extended(value);
  if (size <= 16 && random_below(4))
    memcpy(at, value, size);
  if (mnemonic == ZYDIS_MNEMONIC_FBLD)
    for (unsigned i = 0; i < 9; i++)
      at[i] = (uint8_t)(random_below(10) << 4 | random_below(10));
  if (mnemonic == ZYDIS_MNEMONIC_LDMXCSR || mnemonic == ZYDIS_MNEMONIC_VLDMXCSR)
    memset(at + 2, 0, random_below(4) ? 2 : 0);
}

/* The index register of a gather: small numbers, and now and then one that faults. */
static void gather_fill(const struct vector_case *the_case, struct vector_state *state)
{
  const ZydisDecodedOperand *operand = &the_case->operands[1];
  if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.type != ZYDIS_MEMOP_TYPE_VSIB)
    return;
  unsigned number = (unsigned)ZydisRegisterGetId(operand->mem.index);
  bool is_qword = the_case->bytes[3] & 1;
  for (unsigned i = 0; i < 8; i++) {
    uint32_t value = is_qword && i & 1 ? 0 : random_below(40);

    if (!random_below(80))
      value = 0x70000000;
    memcpy((i < 4 ? state->fx + FX_XMM + 16 * number : state->high[number]) + 4 * (i & 3), &value, 4);
  }
}

/* Pointers and opcode: hosts differ in when they note them. XSAVE's header: in what they find unused. */
static void operand_blank(const struct vector_case *the_case, uint8_t *at)
{
  switch (the_case->code.mnemonic) {
  case ZYDIS_MNEMONIC_FNSTENV:
  case ZYDIS_MNEMONIC_FNSAVE:
    if (the_case->operands[0].size == 112 || the_case->operands[0].size == 752)
      memset(at + 6, 0, 8);
    else
      memset(at + 12, 0, 16);
    break;
  case ZYDIS_MNEMONIC_XSAVE:
  case ZYDIS_MNEMONIC_XSAVE64:
  case ZYDIS_MNEMONIC_XSAVEOPT:
  case ZYDIS_MNEMONIC_XSAVEOPT64:
    memset(at + 512, 0, 64);
    memset(at + 6, 0, 18);
    memset(at + 28, 0, 4);
    break;
  case ZYDIS_MNEMONIC_XSAVEC: /* the second word says what was asked for */
  case ZYDIS_MNEMONIC_XSAVEC64:
    memset(at + 512, 0, 8);
    memset(at + 6, 0, 18);
    memset(at + 28, 0, 4);
    break;
  case ZYDIS_MNEMONIC_FXSAVE:
  case ZYDIS_MNEMONIC_FXSAVE64:
    memset(at + 6, 0, 18);
    memset(at + 28, 0, 4);
    break;
  default:
    break;
  }
}

/* ---- comparing ---- */

struct comparison {
  struct cpu *cpu;
  unsigned differences, cases;
  uint8_t is_hit[ZYDIS_MNEMONIC_MAX_VALUE + 1];
  uint8_t is_refused[ZYDIS_MNEMONIC_MAX_VALUE + 1]; /* by system_allows: no CPU of the catalogue is given it */
  unsigned shown[ZYDIS_MNEMONIC_MAX_VALUE + 1];
};

static int signal_of(int vector)
{
  switch (vector) {
  case -1:
    return 0;
  case EXCEPTION_UD:
    return SIGILL;
  case EXCEPTION_GP:
  case EXCEPTION_PF:
    return SIGSEGV;
  case EXCEPTION_XM:
  case EXCEPTION_MF:
    return SIGFPE;
  default:
    return 1000 + vector;
  }
}

static void state_print(const char *what, const struct vector_state *state)
{
  printf("#   %s: control, status, tags %02x%02x %02x%02x %02x mxcsr %02x%02x flags %lx\n", what, state->fx[1],
         state->fx[0], state->fx[3], state->fx[2], state->fx[4], state->fx[25], state->fx[24],
         (unsigned long)state->flags);
  for (unsigned i = 0; i < 8; i++) {
    printf("#     st%u ", i);
    for (unsigned j = 10; j--;)
      printf("%02x", state->fx[FX_ST + 16 * i + j]);
    printf(" v%u ", i);
    for (unsigned j = 16; j--;)
      printf("%02x", state->high[i][j]);
    printf("_");
    for (unsigned j = 16; j--;)
      printf("%02x", state->fx[FX_XMM + 16 * i + j]);
    printf(" r%u %016lx\n", i, (unsigned long)state->r[i]);
  }
}

/* What differs, or NULL. */
static const char *state_compare(const struct vector_state *host, const struct vector_state *guest, bool did_fault)
{
  if (memcmp(host->fx + FX_MXCSR, guest->fx + FX_MXCSR, 4))
    return "mxcsr";
  if (did_fault)
    return NULL;
  if (memcmp(host->fx, guest->fx, 5))
    return "x87 control, status or tags";
  for (unsigned i = 0; i < 8; i++)
    if (memcmp(host->fx + FX_ST + 16 * i, guest->fx + FX_ST + 16 * i, 10))
      return "st";
  if (memcmp(host->fx + FX_XMM, guest->fx + FX_XMM, 256))
    return "xmm";
  if (vector_native_has_avx() && memcmp(host->high, guest->high, 256))
    return "ymm";
  for (unsigned i = 0; i < 16; i++)
    if (i != RBX && i != RDI && i != R11 && i != RSP && host->r[i] != guest->r[i])
      return "general registers";
  return (host->flags ^ guest->flags) & FLAGS_ARITHMETIC ? "flags" : NULL;
}

static bool is_product(ZydisMnemonic mnemonic)
{
  return mnemonic == ZYDIS_MNEMONIC_DPPS || mnemonic == ZYDIS_MNEMONIC_DPPD || mnemonic == ZYDIS_MNEMONIC_VDPPS ||
         mnemonic == ZYDIS_MNEMONIC_VDPPD;
}

/* Where the host may differ from the manual that the interpreter follows, or the interpreter from both. */
static void state_exempt(const struct vector_case *the_case, int signal, struct vector_state *state)
{
  switch (the_case->code.mnemonic) {
  case ZYDIS_MNEMONIC_FCOMI: /* AMD leaves C1, Intel clears it */
  case ZYDIS_MNEMONIC_FCOMIP:
  case ZYDIS_MNEMONIC_FUCOMI:
  case ZYDIS_MNEMONIC_FUCOMIP:
    state->fx[FX_STATUS + 1] &= (uint8_t)~2;
    break;
  default:
    break;
  }
  uint32_t mxcsr;
  memcpy(&mxcsr, state->fx + FX_MXCSR, 4);
  bool is_range = mxcsr & ~(mxcsr >> 7) & 0x18;
  if (signal == SIGFPE && is_product(the_case->code.mnemonic)) /* several steps, each with its own exceptions */
    mxcsr &= ~0x3Fu;
  else if (signal == SIGFPE && is_range) /* unmasked overflow or underflow: inexact or not, it is not worked out */
    mxcsr &= ~0x20u;
  memcpy(state->fx + FX_MXCSR, &mxcsr, 4);
}

static void difference_print(const struct vector_case *the_case, const char *what, int host_signal, int vector)
{
  char text[128] = "?";

  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterFormatInstruction(&formatter, &the_case->code, the_case->operands, the_case->code.operand_count_visible,
                                  text, sizeof(text), 0, NULL);
  printf("# %s differs: %s (host: signal %d, interpreter: vector %d)\n", what, text, host_signal, vector);
}

static void round_run(struct comparison *comparison, const struct vector_case *the_case)
{
  unsigned size = operand_bytes(the_case), offset = operand_offset(size);
  uint8_t *native = vector_native_data(), *data = vector_guest_data(comparison->cpu);

  for (unsigned i = 0; i < DATA_BYTES; i += 64)
    memset(native + i, (int)i / 64, 64);
  operand_fill(the_case, native + offset, size);
  memcpy(data, native, DATA_BYTES);
  struct vector_state before, host, guest;
  random_state_make(&before);
  before.r[RAX] = size >= 512 ? random_below(8) : before.r[RAX];
  before.r[RDX] = size >= 512 ? 0 : before.r[RDX];
  if (the_case->code.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ || the_case->code.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU)
    offset &= ~1u;
  gather_fill(the_case, &before);
  if (is_product(the_case->code.mnemonic)) /* tiny results of the steps are not looked for */
    before.fx[FX_MXCSR + 1] |= 8;
  host = guest = before;
  int signal = vector_native_run(the_case->bytes, the_case->code.length, offset, &host);
  int vector = vector_guest_run(comparison->cpu, the_case->bytes, the_case->code.length, offset, &guest);
  state_exempt(the_case, signal, &host);
  state_exempt(the_case, signal, &guest);
  const char *what = signal != signal_of(vector) ? "outcome" : state_compare(&host, &guest, signal);
  operand_blank(the_case, native + offset);
  operand_blank(the_case, data + offset);
  if (!what && memcmp(native, data, DATA_BYTES))
    what = "memory";
  if (!what)
    return;
  comparison->differences++;
  if (comparison->shown[the_case->code.mnemonic]++ >= DIFFERENCES_SHOWN)
    return;
  difference_print(the_case, what, signal, vector);
  state_print("before", &before);
  state_print("host", &host);
  state_print("interpreter", &guest);
}

/* What the host cannot be asked for: XSAVES and XRSTORS are the system's, XSAVEC is not everywhere. */
static bool is_left_out(ZydisMnemonic mnemonic)
{
  switch (mnemonic) {
  case ZYDIS_MNEMONIC_XSAVES:
  case ZYDIS_MNEMONIC_XSAVES64:
  case ZYDIS_MNEMONIC_XRSTORS:
  case ZYDIS_MNEMONIC_XRSTORS64:
    return true;
  case ZYDIS_MNEMONIC_XSAVEC:
  case ZYDIS_MNEMONIC_XSAVEC64:
    return !host_has_compact();
  default:
    return false;
  }
}

static bool is_x87(const struct vector_case *the_case)
{
  return the_case->code.meta.category == ZYDIS_CATEGORY_X87_ALU || the_case->code.meta.category == ZYDIS_CATEGORY_FCMOV;
}

static void case_run(const struct vector_case *the_case, void *data)
{
  struct comparison *comparison = data;
  struct vector_case changed = *the_case;
  bool is_vex = the_case->code.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;

  if ((is_vex && !vector_native_has_avx()) || is_left_out(the_case->code.mnemonic))
    return;
  struct isa_instruction instruction = {.code = the_case->code};
  if (!system_allows(comparison->cpu, &instruction)) {
    comparison->is_refused[the_case->code.mnemonic] = 1;
    return;
  }
  comparison->is_hit[the_case->code.mnemonic] = 1;
  comparison->cases++;
  unsigned rounds = is_x87(the_case) ? ROUNDS_X87 : ROUNDS;
  for (unsigned i = 0; i < rounds; i++) {
    if (the_case->code.raw.imm[0].size)
      changed.bytes[the_case->code.raw.imm[0].offset] = (uint8_t)random_64();
    round_run(comparison, &changed);
  }
}

static void test_host(void **state)
{
  (void)state;
  static struct comparison comparison;
  random_state = 14;
  comparison.cpu = vector_guest_new();
  assert_non_null(comparison.cpu);
  assert_int_equal(vector_native_init(), 0);
  vector_case_all(case_run, &comparison);
  vector_native_done();
  vector_guest_free(comparison.cpu);
  unsigned missing = 0;
  for (unsigned i = 0; i <= ZYDIS_MNEMONIC_MAX_VALUE; i++) {
    const char *name = ZydisMnemonicGetString((ZydisMnemonic)i);
    bool is_skipped = (!vector_native_has_avx() && name && name[0] == 'v') || is_left_out((ZydisMnemonic)i);

    if (!vector_case_is_listed((ZydisMnemonic)i) || comparison.is_hit[i] || is_skipped)
      continue;
    printf("# %s: %s\n", comparison.is_refused[i] ? "not offered" : "never executed", name);
    missing += !comparison.is_refused[i];
  }
  printf("# %u encodings\n", comparison.cases);
  assert_int_equal(missing, 0);
  assert_int_equal(comparison.differences, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_host),
  };

  return cmocka_run_group_tests_name("cpu_vector", tests, NULL, NULL);
}
