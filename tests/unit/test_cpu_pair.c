/* SPDX-License-Identifier: Apache-2.0
 *
 * What is decided when a block is decoded: CMP or TEST and the conditional jump behind it as one handler, against the
 * host's own flags; and flat segments, which an instruction in the middle of a block may replace.
 */
#include "cpu_rig.h"

enum { FORM_REGISTERS, FORM_IMMEDIATE, FORM_TO_MEMORY, FORM_FROM_MEMORY, FORM_INDEXED, FORM_MEMORY_IMMEDIATE, FORMS };

static const uint8_t sizes[] = {1, 2, 4, 8};

static const struct {
  uint64_t a, b;
} numbers[] = {
  {0, 0},
  {1, 0},
  {0, 1},
  {5, 5},
  {0x7F, 0x80},
  {0x80, 0x7F},
  {0x7FFFFFFF, UINT64_MAX},
  {0x80000000, 1},
  {UINT64_MAX, UINT64_MAX},
  {INT64_MAX, (uint64_t)INT64_MIN},
  {(uint64_t)INT64_MIN, 1},
  {0x123456789ABCDEF0, 0x0FEDCBA987654321},
};

/* ---- the host's flags ---- */

/* Past the red zone, which the compiler may use. */
#define HOST_FLAGS(operation, suffix, type)                                                                            \
  __asm__ volatile(operation suffix " %2, %1\n\tlea -128(%%rsp), %%rsp\n\tpushfq\n\tpopq %0\n\tlea 128(%%rsp), %%rsp"  \
                   : "=r"(flags)                                                                                       \
                   : "q"((type)a), "q"((type)b)                                                                        \
                   : "cc")

#define HOST_SIZES(operation)                                                                                          \
  switch (size) {                                                                                                      \
  case 1:                                                                                                              \
    HOST_FLAGS(operation, "b", uint8_t);                                                                               \
    break;                                                                                                             \
  case 2:                                                                                                              \
    HOST_FLAGS(operation, "w", uint16_t);                                                                              \
    break;                                                                                                             \
  case 4:                                                                                                              \
    HOST_FLAGS(operation, "l", uint32_t);                                                                              \
    break;                                                                                                             \
  default:                                                                                                             \
    HOST_FLAGS(operation, "q", uint64_t);                                                                              \
  }

static uint32_t host_flags(uint64_t a, uint64_t b, unsigned size, bool is_test)
{
  uint64_t flags = 0;

  if (is_test)
    HOST_SIZES("test")
  else
    HOST_SIZES("cmp")
  return (uint32_t)flags & (is_test ? FLAGS_ARITHMETIC & ~(uint32_t)FLAG_AF : FLAGS_ARITHMETIC);
}

/* SDM vol. 1, appendix B. */
static bool is_met(uint32_t flags, unsigned code)
{
  bool cf = flags & FLAG_CF, zf = flags & FLAG_ZF, sf = flags & FLAG_SF, of = flags & FLAG_OF, pf = flags & FLAG_PF;
  const bool met[] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

  return met[code / 2] != (code & 1);
}

/* ---- the guest ---- */

/* CMP or TEST of rAX or (RSI) with rCX or an immediate; with an index, RDI is 8. Returns its size. */
static unsigned encode(uint8_t *bytes, unsigned form, unsigned size, bool is_test, uint8_t immediate)
{
  static const uint8_t opcodes[2][FORMS] = {{0x39, 0x83, 0x39, 0x3B, 0x39, 0x83}, {0x85, 0xF7, 0x85, 0x85, 0x85, 0xF7}};
  static const uint8_t operands[FORMS] = {0xC8, 0xC0, 0x0E, 0x06, 0x0C, 0x06};
  bool has_immediate = form == FORM_IMMEDIATE || form == FORM_MEMORY_IMMEDIATE;
  unsigned count = 0;

  if (size == 2)
    bytes[count++] = 0x66;
  if (size == 8)
    bytes[count++] = 0x48;
  uint8_t opcode = opcodes[is_test][form];
  bytes[count++] = size > 1 ? opcode : has_immediate && !is_test ? 0x80 : opcode - 1;
  bytes[count++] = operands[form] | (has_immediate && !is_test ? 7 << 3 : 0);
  if (form == FORM_INDEXED)
    bytes[count++] = 0x3E;
  unsigned width = !has_immediate ? 0 : size == 1 || !is_test ? 1 : size == 2 ? 2 : 4;
  for (unsigned i = 0; i < width; i++)
    bytes[count++] = i ? (immediate & 0x80 ? 0xFF : 0) : immediate;
  return count;
}

static void check(struct rig *rig, unsigned form, unsigned size, bool is_test, unsigned code, uint64_t a, uint64_t b)
{
  uint8_t bytes[32];
  bool has_immediate = form == FORM_IMMEDIATE || form == FORM_MEMORY_IMMEDIATE;
  unsigned count = encode(bytes, form, size, is_test, (uint8_t)b);
  const uint8_t rest[] = {(uint8_t)(0x70 | code), 2, 0xB3, 1}; /* jcc over mov $1, %bl */

  memcpy(bytes + count, rest, sizeof(rest));
  b = has_immediate ? (uint64_t)(int8_t)b : b;
  uint64_t memory = form == FORM_FROM_MEMORY ? b : a;
  put(rig, DATA, memory, 8);
  rig->cpu->r[RAX] = a;
  rig->cpu->r[RCX] = b;
  rig->cpu->r[RSI] = form == FORM_INDEXED ? DATA - 8 : DATA;
  rig->cpu->r[RDI] = 8;
  rig->cpu->r[RBX] = 0;
  uint64_t before = cpu_retired(rig->cpu);
  assert_int_equal(execute(rig, bytes, count + sizeof(rest)), DONE);
  uint32_t flags = host_flags(a, b, size, is_test);
  uint32_t defined = FLAGS_ARITHMETIC & ~(uint32_t)(is_test ? FLAG_AF : 0);
  assert_int_equal(cpu_flags(rig->cpu) & defined, flags);
  assert_int_equal(rig->cpu->r[RBX], !is_met(flags, code));
  assert_int_equal(cpu_retired(rig->cpu) - before, is_met(flags, code) ? 3 : 4); /* HLT too */
}

static void test_pairs(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  for (unsigned form = 0; form < FORMS; form++)
    for (unsigned size = 0; size < sizeof(sizes); size++)
      for (unsigned code = 0; code < 16; code++)
        for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
          check(&rig, form, sizes[size], false, code, numbers[i].a, numbers[i].b);
          check(&rig, form, sizes[size], true, code, numbers[i].a, numbers[i].b);
        }
  rig_free(&rig);
}

/* The first half faults: nothing of either has happened. */
static void test_pair_faults(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RSI] = UINT64_C(1) << 62; /* not canonical */
  assert_int_equal(EXECUTE(&rig, 0x48, 0x39, 0x0E, 0x74, 0), GP);
  assert_int_equal(get(&rig, rig.cpu->r[RSP] + 8, 8), CODE); /* the frame: error code, RIP */
  rig_free(&rig);
}

/* DS is flat, then not, then again, in one row of instructions. */
static void test_flat_and_not(void **state)
{
  static const uint8_t code[] = {
    0x8B, 0x0D, 0,    DATA >> 8, 0, 0,               /* mov DATA, %ecx */
    0xB8, 0x30, 0,    0,         0,                  /* mov $0x30, %eax */
    0x8E, 0xD8, 0x8B, 0x15,      0, DATA >> 8, 0, 0, /* mov %eax, %ds; mov DATA, %edx */
    0xB8, 0x10, 0,    0,         0,                  /* mov $0x10, %eax */
    0x8E, 0xD8, 0x8B, 0x1D,      0, DATA >> 8, 0, 0, /* mov %eax, %ds; mov DATA, %ebx */
  };
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  put(&rig, GDT + 0x30, 0x00CF93000100FFFF, 8); /* data, base 0x100 */
  put(&rig, DATA, 0x11111111, 4);
  put(&rig, DATA + 0x100, 0x22222222, 4);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(execute(&rig, code, sizeof(code)), DONE);
    assert_int_equal(rig.cpu->r[RCX], 0x11111111);
    assert_int_equal(rig.cpu->r[RDX], 0x22222222);
    assert_int_equal(rig.cpu->r[RBX], 0x11111111);
  }
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pairs),
    cmocka_unit_test(test_pair_faults),
    cmocka_unit_test(test_flat_and_not),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
