/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's decoder against Zydis: for random bytes that are an instruction to both, the length and the parts must
 * be the same. Some instructions by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "isa/isa.h"
#include "process/process.h"

static uint64_t random_state = 0x9E3779B97F4A7C15;

static uint64_t random_next(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* Random bytes with more prefixes and escapes than chance gives. */
static void random_bytes(uint8_t bytes[16])
{
  static const uint8_t likely[] = {0x66, 0x67, 0xF2, 0xF3, 0x48, 0x41, 0x0F, 0xC4, 0xC5, 0x62, 0x8F, 0xF0, 0x64};
  uint64_t words[2] = {random_next(), random_next()};

  memcpy(bytes, words, 16);
  unsigned count = random_next() % 4;
  for (unsigned i = 0; i < count; i++)
    bytes[i] = likely[random_next() % sizeof(likely)];
}

static int flow_of(const struct isa_instruction *instruction)
{
  switch (isa_branch_kind(instruction)) {
  case LB_BRANCH_JCC:
    return instruction->code.raw.imm[0].size == 8 && instruction->code.opcode >= 0xE0 &&
               instruction->code.opcode <= 0xE3 && instruction->code.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT
             ? CODE_LOOP
             : CODE_JCC;
  case LB_BRANCH_NEAR_REL_JMP:
    return CODE_JMP;
  case LB_BRANCH_NEAR_REL_CALL:
    return CODE_CALL;
  case LB_BRANCH_NEAR_IND_JMP:
    return CODE_JMP_IND;
  case LB_BRANCH_NEAR_IND_CALL:
    return CODE_CALL_IND;
  case LB_BRANCH_NEAR_RET:
    return CODE_RET;
  default:
    return -1; /* not compared */
  }
}

static void compare(const uint8_t *bytes, const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *zydis = &instruction->code;
  struct code code;
  if (zydis->mnemonic == ZYDIS_MNEMONIC_JKZD || zydis->mnemonic == ZYDIS_MNEMONIC_JKNZD)
    return; /* of a coprocessor that ran no Linux program of ours */
  unsigned length = code_decode(bytes, 16, &code);
  bool is_right = length == zydis->length;
  if (is_right) {
    is_right &= code.disp_size == zydis->raw.disp.size / 8;
    is_right &=
      !!code.is_rip_relative == !!(zydis->attributes & ZYDIS_ATTRIB_IS_RELATIVE && zydis->raw.modrm.mod == 0 &&
                                   zydis->raw.modrm.rm == 5 && code.modrm_offset);
    is_right &= !code.modrm_offset == !(zydis->attributes & ZYDIS_ATTRIB_HAS_MODRM);
    int flow = flow_of(instruction);
    is_right &= flow < 0 || flow == code.flow;
  }
  if (!is_right) {
    char text[96] = "";

    isa_format(instruction, 0, text, sizeof(text));
    for (unsigned i = 0; i < 15; i++)
      fprintf(stderr, "%02x ", bytes[i]);
    fprintf(stderr, "\n%s: length %u, got %u; disp %u, got %u; flow %d, got %u; rip %d\n", text, zydis->length, length,
            zydis->raw.disp.size / 8, code.disp_size, flow_of(instruction), code.flow, code.is_rip_relative);
    fail();
  }
}

static void test_random_bytes(void **state)
{
  (void)state;
  unsigned compared = 0;
  for (unsigned i = 0; i < 1500000; i++) {
    uint8_t bytes[16];
    struct isa_instruction instruction;

    random_bytes(bytes);
    if (isa_decode(ISA_64, false, bytes, 15, &instruction) <= 0)
      continue;
    compare(bytes, &instruction);
    compared++;
  }
  assert_true(compared > 500000);
}

static void test_every_opcode(void **state)
{
  (void)state;
  for (unsigned escape = 0; escape < 4; escape++)
    for (unsigned prefix = 0; prefix < 5; prefix++)
      for (unsigned opcode = 0; opcode < 256; opcode++)
        for (unsigned modrm = 0; modrm < 256; modrm++) {
          static const uint8_t prefixes[] = {0, 0x66, 0xF2, 0xF3, 0x48};
          static const uint8_t escapes[4][3] = {{0}, {1, 0x0F}, {2, 0x0F, 0x38}, {2, 0x0F, 0x3A}};
          uint8_t bytes[16] = {0};
          unsigned at = 0;

          if (prefixes[prefix])
            bytes[at++] = prefixes[prefix];
          for (unsigned i = 0; i < escapes[escape][0]; i++)
            bytes[at++] = escapes[escape][1 + i];
          bytes[at++] = (uint8_t)opcode;
          bytes[at++] = (uint8_t)modrm;
          struct isa_instruction instruction;
          if (isa_decode(ISA_64, false, bytes, 15, &instruction) > 0)
            compare(bytes, &instruction);
        }
}

static void test_what_is_none(void **state)
{
  (void)state;
  struct code code;
  static const uint8_t gone[] = {0x06, 0x27, 0x60, 0x82, 0x9A, 0xCE, 0xD4, 0xEA};
  for (unsigned i = 0; i < sizeof(gone); i++) {
    uint8_t bytes[16] = {gone[i]};

    assert_int_equal(code_decode(bytes, 16, &code), 0);
  }
  static const uint8_t call[] = {0xE8, 1, 2, 3, 4};
  assert_int_equal(code_decode(call, 5, &code), 5);
  assert_int_equal(code.flow, CODE_CALL);
  assert_int_equal(code.imm_offset, 1);
  for (size_t size = 0; size < 5; size++)
    assert_int_equal(code_decode(call, size, &code), 0);
  static const uint8_t prefixes[16] = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                       0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90};
  assert_int_equal(code_decode(prefixes, 16, &code), 0);
  assert_int_equal(code_decode(prefixes + 1, 15, &code), 15);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_random_bytes),
    cmocka_unit_test(test_every_opcode),
    cmocka_unit_test(test_what_is_none),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
