/* SPDX-License-Identifier: Apache-2.0
 *
 * Contracts of isa.h. The bytes and what they mean are the SDM's (vol. 2); lengths and texts were checked with objdump.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "isa/isa.h"
#include "lastbranch/error.h"

static int decode(enum isa_mode mode, const char *bytes, size_t size, struct isa_instruction *ret_instruction)
{
  return isa_decode(mode, false, bytes, size, ret_instruction);
}

static int kind_of(enum isa_mode mode, const char *bytes, size_t size)
{
  struct isa_instruction instruction;

  assert_int_equal(decode(mode, bytes, size, &instruction), (int)size);
  return isa_branch_kind(&instruction);
}

#define KIND(mode, bytes) kind_of(mode, bytes, sizeof(bytes) - 1)

static void test_kinds_of_branches(void **state)
{
  (void)state;
  assert_int_equal(KIND(ISA_64, "\x74\x10"), LB_BRANCH_JCC);
  assert_int_equal(KIND(ISA_64, "\x0F\x84\x10\x00\x00\x00"), LB_BRANCH_JCC);
  assert_int_equal(KIND(ISA_64, "\xE2\xFE"), LB_BRANCH_JCC); /* loop */
  assert_int_equal(KIND(ISA_64, "\xE3\xFE"), LB_BRANCH_JCC); /* jrcxz */
  assert_int_equal(KIND(ISA_64, "\xEB\x00"), LB_BRANCH_NEAR_REL_JMP);
  assert_int_equal(KIND(ISA_REAL, "\xE9\x00\x00"), LB_BRANCH_NEAR_REL_JMP);
  assert_int_equal(KIND(ISA_64, "\xE8\x00\x00\x00\x00"), LB_BRANCH_NEAR_REL_CALL);
  assert_int_equal(KIND(ISA_64, "\xFF\xD0"), LB_BRANCH_NEAR_IND_CALL); /* call rax */
  assert_int_equal(KIND(ISA_64, "\xFF\x10"), LB_BRANCH_NEAR_IND_CALL); /* call [rax] */
  assert_int_equal(KIND(ISA_64, "\xFF\xE0"), LB_BRANCH_NEAR_IND_JMP);
  assert_int_equal(KIND(ISA_64, "\xC3"), LB_BRANCH_NEAR_RET);
  assert_int_equal(KIND(ISA_64, "\xC2\x08\x00"), LB_BRANCH_NEAR_RET);
  assert_int_equal(KIND(ISA_PROTECTED_32, "\x9A\x00\x00\x40\x00\x18\x00"), LB_BRANCH_FAR_CALL);
  assert_int_equal(KIND(ISA_64, "\xFF\x18"), LB_BRANCH_FAR_CALL);
  assert_int_equal(KIND(ISA_REAL, "\xEA\x00\x00\x00\xF0"), LB_BRANCH_FAR_JMP);
  assert_int_equal(KIND(ISA_64, "\xFF\x28"), LB_BRANCH_FAR_JMP);
  assert_int_equal(KIND(ISA_64, "\xCB"), LB_BRANCH_FAR_RET);
  assert_int_equal(KIND(ISA_64, "\xCA\x04\x00"), LB_BRANCH_FAR_RET);
  assert_int_equal(KIND(ISA_64, "\x48\xCF"), LB_BRANCH_IRET);
  assert_int_equal(KIND(ISA_REAL, "\xCF"), LB_BRANCH_IRET);
  assert_int_equal(KIND(ISA_64, "\xCD\x40"), LB_BRANCH_INT);
  assert_int_equal(KIND(ISA_64, "\xCC"), LB_BRANCH_INT3);
  assert_int_equal(KIND(ISA_PROTECTED_32, "\xCE"), LB_BRANCH_INTO);
  assert_int_equal(KIND(ISA_64, "\x0F\x05"), LB_BRANCH_SYSCALL);
  assert_int_equal(KIND(ISA_64, "\x48\x0F\x07"), LB_BRANCH_SYSRET);
  assert_int_equal(KIND(ISA_64, "\x0F\x34"), LB_BRANCH_SYSENTER);
  assert_int_equal(KIND(ISA_64, "\x0F\x35"), LB_BRANCH_SYSEXIT);
  assert_int_equal(KIND(ISA_64, "\x0F\xAA"), LB_BRANCH_RSM);
}

static void test_what_does_not_branch(void **state)
{
  (void)state;
  assert_int_equal(KIND(ISA_64, "\x90"), -1);
  assert_int_equal(KIND(ISA_64, "\xF1"), -1);                     /* int1 leaves no record */
  assert_int_equal(KIND(ISA_64, "\xF3\xA4"), -1);                 /* rep movsb */
  assert_int_equal(KIND(ISA_64, "\x0F\x30"), -1);                 /* wrmsr */
  assert_int_equal(KIND(ISA_64, "\xF4"), -1);                     /* hlt */
  assert_int_equal(KIND(ISA_64, "\xC7\xF8\x00\x00\x00\x00"), -1); /* xbegin: what jumps is the abort */
  assert_int_equal(KIND(ISA_64, "\xC6\xF8\x00"), -1);             /* xabort */
}

static void test_modes_read_bytes_differently(void **state)
{
  (void)state;
  struct isa_instruction instruction;
  static const char bytes[] = "\xB8\x01\x02\x03\x04"; /* mov ax or eax, imm */
  assert_int_equal(decode(ISA_REAL, bytes, 5, &instruction), 3);
  assert_int_equal(decode(ISA_PROTECTED_16, bytes, 5, &instruction), 3);
  assert_int_equal(decode(ISA_COMPATIBLE_16, bytes, 5, &instruction), 3);
  assert_int_equal(decode(ISA_PROTECTED_32, bytes, 5, &instruction), 5);
  assert_int_equal(decode(ISA_COMPATIBLE_32, bytes, 5, &instruction), 5);
  assert_int_equal(decode(ISA_64, bytes, 5, &instruction), 5);
  assert_int_equal(decode(ISA_64, "\x40\x90", 2, &instruction), 2);           /* a REX prefix, */
  assert_int_equal(decode(ISA_PROTECTED_32, "\x40\x90", 2, &instruction), 1); /* or inc eax */
}

static void test_operand_size_prefix_of_branches(void **state)
{
  (void)state;
  struct isa_instruction instruction;
  static const char bytes[] = "\x66\xE8\x00\x00\x00\x00";
  assert_int_equal(isa_decode(ISA_64, false, bytes, 6, &instruction), 6);
  assert_int_equal(isa_decode(ISA_64, true, bytes, 6, &instruction), 4);
}

static void test_what_is_no_instruction(void **state)
{
  (void)state;
  struct isa_instruction instruction;
  memset(&instruction, 0x5A, sizeof(instruction));
  struct isa_instruction before = instruction;
  assert_int_equal(decode(ISA_64, "\x0F", 1, &instruction), LB_E_TRUNCATED);
  assert_int_equal(decode(ISA_64, "", 0, &instruction), LB_E_TRUNCATED);
  assert_int_equal(decode(ISA_64, "\x06", 1, &instruction), LB_E_NO_INSTRUCTION);     /* push es */
  assert_int_equal(decode(ISA_64, "\xF0\x90", 2, &instruction), LB_E_NO_INSTRUCTION); /* lock nop */
  static const char prefixes[] = "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90";
  assert_int_equal(decode(ISA_64, prefixes, 15, &instruction), LB_E_TOO_LONG);
  assert_int_equal(decode(ISA_64, prefixes + 1, 15, &instruction), 15);
  memset(&instruction, 0x5A, sizeof(instruction));
  assert_int_equal(decode(ISA_64, "\x0F", 1, &instruction), LB_E_TRUNCATED);
  assert_memory_equal(&instruction, &before, sizeof(before));
}

static void test_text(void **state)
{
  (void)state;
  struct isa_instruction instruction;
  char text[64];
  assert_int_equal(decode(ISA_PROTECTED_32, "\xE8\x42\x85\xED\xFF", 5, &instruction), 5);
  assert_int_equal(isa_format(&instruction, 0x8065EF59, text, sizeof(text)), 0);
  assert_string_equal(text, "call 0x805374A0"); /* listing 5-3 of 《软件调试》 */
  assert_int_equal(isa_format(&instruction, 0, text, 3), LB_E_NO_INSTRUCTION);
  /* SIB base 5 with mod 0 is no base, whatever REX.B says. */
  assert_int_equal(decode(ISA_64, "\x67\x41\x8B\x04\x25\x00\x10\x00\x00", 9, &instruction), 9);
  assert_int_equal(isa_format(&instruction, 0, text, sizeof(text)), 0);
  assert_string_equal(text, "mov eax, [0x0000000000001000]");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kinds_of_branches),
    cmocka_unit_test(test_what_does_not_branch),
    cmocka_unit_test(test_modes_read_bytes_differently),
    cmocka_unit_test(test_operand_size_prefix_of_branches),
    cmocka_unit_test(test_what_is_no_instruction),
    cmocka_unit_test(test_text),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
