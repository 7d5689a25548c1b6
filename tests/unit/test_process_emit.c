/* SPDX-License-Identifier: Apache-2.0
 *
 * The code by which the runtime compares the target of an indirect branch, src/process/runtime/emit.c, executed on this
 * processor: whether it finds what it should, that RCX comes back when it does not, and that no flag changes. In all
 * forms that processors need.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cpuid.h>
#include <sys/mman.h>

#include "process/runtime/emit.h"
#include "process/shared.h"

enum { CODE_SIZE = 4096, ROUNDS = 20000 };

struct outcome {
  uint64_t rcx, flags;
  uint64_t is_equal;
};

typedef void code_function(uint64_t rcx, uint64_t flags, struct outcome *ret_outcome);

static uint8_t *memory;
static uint64_t state = 88172645463325252;

static uint64_t random_next(void)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* ---- code around it ---- */

/* RDI: what RCX holds, RSI: the flags. R8 keeps the pointer to the outcome. */
static void write_begin(struct emitter *emitter)
{
  emit_bytes(emitter, (const uint8_t[]){0x49, 0x89, 0xD0}, 3); /* mov %rdx, %r8 */
  emit_bytes(emitter, (const uint8_t[]){0x48, 0x89, 0xF9}, 3); /* mov %rdi, %rcx */
  emit_bytes(emitter, (const uint8_t[]){0x56, 0x9D}, 2);       /* push %rsi; popf */
}

static void write_end(struct emitter *emitter, uint8_t is_equal)
{
  emit_bytes(emitter, (const uint8_t[]){0x49, 0x89, 0x08}, 3);       /* mov %rcx, (%r8) */
  emit_bytes(emitter, (const uint8_t[]){0x9C, 0x58}, 2);             /* pushf; pop %rax */
  emit_bytes(emitter, (const uint8_t[]){0x49, 0x89, 0x40, 0x08}, 4); /* mov %rax, 8(%r8) */
  emit_bytes(emitter, (const uint8_t[]){0x49, 0xC7, 0x40, 0x10, is_equal, 0, 0, 0}, 8);
  emit_byte(emitter, 0xC3);
}

/* Returns the function, which has the check of emit_check, or of emit_check_near. */
static code_function *write_check(unsigned options, uint64_t address)
{
  struct emitter emitter = {memory};

  write_begin(&emitter);
  emit_check(&emitter, options, address);
  uint8_t *site = emitter.at - 4;
  write_end(&emitter, 1);
  emit_patch(site, emitter.at);
  emit_check_undo(&emitter, options, address);
  write_end(&emitter, 0);
  return (code_function *)(uintptr_t)memory;
}

static code_function *write_check_near(unsigned options, uint64_t address)
{
  struct emitter emitter = {memory};
  const uint8_t *miss = emitter.at;

  emit_address(&emitter, GPR_RDX, address);
  emit_u32(&emitter, 0x110C8D48); /* lea (%rcx, %rdx), %rcx */
  write_end(&emitter, 0);
  uint8_t *start = emitter.at;
  write_begin(&emitter);
  emit_check_near(&emitter, options, address, miss);
  write_end(&emitter, 1);
  return (code_function *)(uintptr_t)start;
}

/* ---- addresses ---- */

static bool has_rorx(void)
{
  unsigned a, b, c, d;

  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI2;
}

/* Halves at the limits of 32 bits, and others. */
static uint64_t address_next(void)
{
  static const uint32_t low[] = {1, 2, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE};
  static const uint32_t high[] = {0, 0, 1, 0x5555, 0x7FFF, 0x7FFE, 0x0080, 0x0100};
  uint64_t choice = random_next();
  uint64_t lower = choice & 1 ? (uint32_t)random_next() : low[random_next() % (sizeof(low) / sizeof(low[0]))];
  uint64_t upper = choice & 2 ? random_next() & 0x7FFF : high[random_next() % (sizeof(high) / sizeof(high[0]))];

  return (upper << 32 | lower) + !(upper << 32 | lower);
}

/* The address itself, one near it, one that differs in a bit, or any other number. */
static uint64_t target_next(uint64_t address)
{
  switch (random_next() % 4) {
  case 0:
    return address;
  case 1:
    return address + random_next() % 5 - 2;
  case 2:
    return address ^ 1ull << random_next() % 64;
  default:
    return random_next();
  }
}

static void check(code_function *function, uint64_t address, uint64_t target)
{
  enum { ARITHMETIC = 0x8D5 }; /* OF, SF, ZF, AF, PF, CF */
  struct outcome outcome = {0};
  uint64_t flags = (random_next() & ARITHMETIC) | 0x202;

  function(target, flags, &outcome);
  assert_int_equal(outcome.is_equal, address == target);
  assert_int_equal(outcome.flags & ARITHMETIC, flags & ARITHMETIC);
  if (address != target)
    assert_int_equal(outcome.rcx, target);
}

static void check_all(code_function *(*write)(unsigned options, uint64_t address))
{
  static const unsigned options[] = {0, PROCESS_LOOP, PROCESS_RORX, PROCESS_LOOP | PROCESS_RORX};

  for (unsigned i = 0; i < (has_rorx() ? 4 : 2); i++)
    for (unsigned round = 0; round < ROUNDS; round++) {
      uint64_t address = address_next();
      code_function *function = write(options[i], address);

      check(function, address, address);
      for (unsigned j = 0; j < 4; j++)
        check(function, address, target_next(address));
    }
}

static void test_check(void **context)
{
  (void)context;
  check_all(write_check);
}

static void test_check_near(void **context)
{
  (void)context;
  check_all(write_check_near);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_check), cmocka_unit_test(test_check_near)};

  memory = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
