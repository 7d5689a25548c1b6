/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the interpreter's integer instructions where the manual says something special: faults and what they leave,
 * widths of the stack and of addresses, repetition, flags on the stack. Expectations are the SDM's. That results of
 * ordinary arithmetic are right is for the comparison with the host (test_cpu_host.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "cpu_bus.h"
#include "lastbranch/cpudb.h"

/* ---- a guest: descriptors, handlers that halt, code at 8000h ---- */

enum {
  AT_GDT = 0x1000,
  AT_IDT = 0x2000,
  AT_HANDLERS = 0x3000, /* 16 bytes each: HLT */
  AT_STACK = 0x7000,
  AT_CODE = 0x8000,
  AT_DATA = 0x9000,
  AT_TABLES = 0x10000,
  RAM = 0x200000,
};
enum { CODE_32 = 0x08, DATA_32 = 0x10, STACK_16 = 0x18, SMALL = 0x20, CODE_64 = 0x28 };
enum { DE = 0, BR = 5, UD = 6, SS_FAULT = 12, GP = 13, PF = 14 };

static struct memory memory;
static struct cpu *cpu;

static void poke(uint64_t address, unsigned size, uint64_t value)
{
  assert_true(memory_write(&memory, address, &value, size));
}

static uint64_t peek(uint64_t address, unsigned size)
{
  uint64_t value = 0;

  assert_true(memory_read(&memory, address, &value, size));
  return value;
}

static void poke_tables(void)
{
  static const uint64_t gdt[] = {
    0,
    UINT64_C(0x00CF9B000000FFFF), /* CODE_32, DATA_32: 4 GiB */
    UINT64_C(0x00CF93000000FFFF),
    UINT64_C(0x000093000000FFFF), /* STACK_16: 64 KiB, B = 0 */
    UINT64_C(0x00409300900000FF), /* SMALL: base AT_DATA, 256 bytes */
    UINT64_C(0x00AF9B000000FFFF), /* CODE_64 */
  };

  assert_true(memory_write(&memory, AT_GDT, gdt, sizeof(gdt)));
  for (unsigned i = 0; i < 32; i++)
    poke(AT_HANDLERS + 16 * i, 1, 0xF4);
}

static const char *model_name = "skylake";

static void start(void)
{
  const struct lb_cpu *model;

  assert_int_equal(lb_cpu_find(model_name, &model), 0);
  assert_int_equal(memory_init(&memory, RAM), 0);
  memory.rom_start = 0x100000;
  assert_int_equal(cpu_new(model, &memory, &bus_idle, 0, &cpu), 0);
  poke_tables();
  cpu->gdtr.base = AT_GDT;
  cpu->gdtr.limit = 0xFFF;
  cpu->idtr.base = AT_IDT;
  cpu->idtr.limit = 0x1FF;
}

static int setup_32(void **state)
{
  (void)state;
  start();
  for (unsigned i = 0; i < 32; i++)
    poke(AT_IDT + 8 * i, 8, UINT64_C(0x00008E0000080000) | (AT_HANDLERS + 16 * i));
  cpu_enter_flat_protected(cpu, AT_CODE);
  cpu_changed(cpu);
  cpu->r[RSP] = AT_STACK;
  return 0;
}

static int setup_16(void **state)
{
  (void)state;
  start();
  cpu->idtr.base = 0;
  cpu->idtr.limit = 0x3FF;
  for (unsigned i = 0; i < 32; i++)
    poke(4 * i, 4, AT_HANDLERS + 16 * i);
  static const uint8_t numbers[] = {ES, CS, SS, DS, FS, GS};
  for (unsigned i = 0; i < sizeof(numbers); i++)
    cpu_load_real_segment(cpu, numbers[i], 0);
  cpu_changed(cpu);
  cpu->r[RSP] = AT_STACK;
  return 0;
}

static int setup_64(void **state)
{
  setup_32(state);
  for (unsigned i = 0; i < 32; i++) {
    poke(AT_IDT + 16 * i, 8, UINT64_C(0x00008E0000280000) | (AT_HANDLERS + 16 * i));
    poke(AT_IDT + 16 * i + 8, 8, 0);
  }
  poke(AT_TABLES, 8, (AT_TABLES + 0x1000) | 3);
  poke(AT_TABLES + 0x1000, 8, (AT_TABLES + 0x2000) | 3);
  poke(AT_TABLES + 0x2000, 8, 0x83); /* the first 2 MiB */
  cpu->cr3 = AT_TABLES;
  cpu->cr4 |= CR4_PAE;
  cpu->efer |= EFER_LME | EFER_LMA;
  cpu->cr0 |= CR0_PG;
  cpu->segment[CS].selector = CODE_64;
  cpu->segment[CS].access = 0xA09B;
  cpu_changed(cpu);
  return 0;
}

static int setup_amd_64(void **state)
{
  model_name = "zen4";
  return setup_64(state);
}

static int teardown(void **state)
{
  (void)state;
  model_name = "skylake";
  cpu_free(cpu);
  memory_done(&memory);
  return 0;
}

/* Runs bytes until the HLT behind them, or a handler's. */
static void run_bytes(const char *bytes, size_t size)
{
  assert_true(memory_write(&memory, AT_CODE, bytes, size));
  poke(AT_CODE + size, 1, 0xF4);
  cpu_changed(cpu);
  cpu->activity = CPU_RUNNING;
  cpu_set_rip(cpu, AT_CODE);
  assert_int_equal(cpu_run(cpu, 1000000), CPU_STOP_HALTED);
}

#define RUN(text)                                                                                                      \
  do {                                                                                                                 \
    run_bytes(text, sizeof(text) - 1);                                                                                 \
    assert_int_equal(cpu->rip, AT_CODE + sizeof(text));                                                                \
  } while (0)

/* Ends in the handler of `vector`; the instruction that faulted starts at `offset`. */
#define RUN_FAULTS(text, vector, offset)                                                                               \
  do {                                                                                                                 \
    run_bytes(text, sizeof(text) - 1);                                                                                 \
    assert_int_equal(cpu->rip, AT_HANDLERS + 16 * (vector) + 1);                                                       \
    assert_int_equal(saved_ip(vector), AT_CODE + (offset));                                                            \
  } while (0)

/* What the exception pushed, behind its error code. */
static uint64_t saved_ip(unsigned vector)
{
  bool has_error = vector == SS_FAULT || vector == GP || vector == PF;

  if (!(cpu->cr0 & CR0_PE))
    return peek(cpu->r[RSP] & 0xFFFF, 2);
  bool is_64 = (cpu->mode & MODE_BITS) == MODE_64;
  unsigned size = is_64 ? 8 : 4;
  return peek(cpu->r[RSP] + (has_error ? size : 0), size);
}

static unsigned flags(unsigned which)
{
  return (unsigned)cpu_flags(cpu) & which;
}

/* ---- arithmetic ---- */

static void test_division_by_too_little(void **state)
{
  (void)state;
  cpu->r[RAX] = 0x1234, cpu->r[RCX] = 0;
  RUN_FAULTS("\xF7\xF1", DE, 0); /* div ecx */
  assert_int_equal(cpu->r[RAX], 0x1234);
  cpu->r[RDX] = 5, cpu->r[RAX] = 0, cpu->r[RCX] = 5;
  RUN_FAULTS("\x90\xF7\xF1", DE, 1); /* the quotient would be 2^32 */
  assert_int_equal(cpu->r[RDX], 5);
  cpu->r[RDX] = 0xFFFFFFFF, cpu->r[RAX] = 0x80000000, cpu->r[RCX] = 0xFFFFFFFF;
  RUN_FAULTS("\xF7\xF9", DE, 0); /* idiv ecx: -2^31 / -1 */
  RUN_FAULTS("\xD4\x00", DE, 0); /* aam 0 */
}

static void test_division_at_its_limit(void **state)
{
  (void)state;
  cpu->r[RDX] = 0xFFFFFFFF, cpu->r[RAX] = 0x80000000, cpu->r[RCX] = 1;
  RUN("\xF7\xF9"); /* -2^31 / 1 fits */
  assert_int_equal(cpu->r[RAX], 0x80000000);
  assert_int_equal(cpu->r[RDX], 0);
  cpu->r[RAX] = 0xFFF9, cpu->r[RCX] = 2;
  RUN("\xF6\xF9"); /* idiv cl: -7 / 2 is -3, rest -1 */
  assert_int_equal(cpu->r[RAX] & 0xFFFF, 0xFFFD);
}

static void test_increment_keeps_carry(void **state)
{
  (void)state;
  cpu->r[RAX] = 0x7FFFFFFF;
  RUN("\xF9\x40"); /* stc; inc eax */
  assert_int_equal(flags(FLAG_CF | FLAG_OF | FLAG_SF | FLAG_ZF | FLAG_AF), FLAG_CF | FLAG_OF | FLAG_SF | FLAG_AF);
  RUN("\xF8\x48"); /* clc; dec eax */
  assert_int_equal(flags(FLAG_CF | FLAG_OF | FLAG_SF | FLAG_AF), FLAG_OF | FLAG_AF);
}

static void test_shift_count_of_zero(void **state)
{
  (void)state;
  cpu->r[RAX] = 0x80000001, cpu->r[RCX] = 0x20; /* masked to 0 */
  cpu_set_flags(cpu, FLAG_CF | FLAG_ZF | FLAG_OF);
  RUN("\xD3\xE0"); /* shl eax, cl */
  assert_int_equal(cpu->r[RAX], 0x80000001);
  assert_int_equal(flags(FLAGS_ARITHMETIC), FLAG_CF | FLAG_ZF | FLAG_OF);
  cpu->r[RCX] = 9; /* rcl of 8 bits: the whole ring */
  RUN("\xD2\xD0");
  assert_int_equal(cpu->r[RAX], 0x80000001);
  assert_int_equal(flags(FLAGS_ARITHMETIC), FLAG_CF | FLAG_ZF | FLAG_OF);
}

/* The examples of the SDM. */
static void test_decimal(void **state)
{
  (void)state;
  cpu->r[RAX] = 0x79, cpu->r[RBX] = 0x35;
  RUN("\x00\xD8\x27"); /* add al, bl; daa */
  assert_int_equal(cpu->r[RAX], 0x14);
  assert_int_equal(flags(FLAG_CF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_PF), FLAG_CF | FLAG_AF | FLAG_PF);
  cpu->r[RAX] = 0x35, cpu->r[RBX] = 0x47;
  RUN("\x28\xD8\x2F"); /* sub al, bl; das */
  assert_int_equal(cpu->r[RAX], 0x88);
  assert_int_equal(flags(FLAG_CF | FLAG_AF | FLAG_SF), FLAG_CF | FLAG_AF | FLAG_SF);
  cpu->r[RAX] = 0x020F;
  cpu_set_flags(cpu, 0);
  RUN("\x37"); /* aaa */
  assert_int_equal(cpu->r[RAX], 0x0305);
  cpu->r[RAX] = 0x0200;
  cpu_set_flags(cpu, FLAG_AF);
  RUN("\x3F"); /* aas */
  assert_int_equal(cpu->r[RAX], 0x000A);
  cpu->r[RAX] = 79;
  RUN("\xD4\x0A"); /* aam */
  assert_int_equal(cpu->r[RAX], 0x0709);
  RUN("\xD5\x0A"); /* aad */
  assert_int_equal(cpu->r[RAX], 79);
}

/* CRC-32C of "123456789", as its inventors published it. */
static void test_crc32(void **state)
{
  (void)state;
  assert_true(memory_write(&memory, AT_DATA, "123456789", 9));
  cpu->r[RAX] = 0xFFFFFFFF, cpu->r[RSI] = AT_DATA;
  RUN("\xF2\x48\x0F\x38\xF1\x06\xF2\x0F\x38\xF0\x46\x08"); /* crc32 rax, [rsi]; crc32 eax, byte [rsi + 8] */
  assert_int_equal(cpu->r[RAX] ^ 0xFFFFFFFF, 0xE3069283);
}

/* ---- bits and exchanges ---- */

static void test_bit_string_reaches_outside(void **state)
{
  (void)state;
  cpu->r[RBX] = AT_DATA, cpu->r[RAX] = UINT32_MAX - 32; /* 33 bits before it */
  poke(AT_DATA - 8, 8, 0);
  RUN("\x0F\xAB\x03"); /* bts [ebx], eax */
  assert_int_equal(peek(AT_DATA - 8, 8), UINT64_C(0x80000000));
  assert_int_equal(flags(FLAG_CF), 0);
  cpu->r[RAX] = 67;
  RUN("\x0F\xBB\x03\x0F\xA3\x03"); /* btc, then bt */
  assert_int_equal(peek(AT_DATA + 8, 4), 8);
  assert_int_equal(flags(FLAG_CF), FLAG_CF);
  poke(AT_DATA, 8, 0);
  RUN("\x0F\xBA\x2B\x21"); /* bts [ebx], 33: an immediate stays inside */
  assert_int_equal(peek(AT_DATA, 8), 2);
}

static void test_scan_of_zero(void **state)
{
  (void)state;
  cpu->r[RAX] = 0, cpu->r[RCX] = 77;
  RUN("\x0F\xBC\xC8"); /* bsf ecx, eax */
  assert_int_equal(cpu->r[RCX], 77);
  assert_int_equal(flags(FLAG_ZF), FLAG_ZF);
  RUN("\xF3\x0F\xBD\xC8"); /* lzcnt ecx, eax */
  assert_int_equal(cpu->r[RCX], 32);
  assert_int_equal(flags(FLAG_ZF | FLAG_CF), FLAG_CF);
}

static void test_compare_and_exchange(void **state)
{
  (void)state;
  cpu->r[RBX] = AT_DATA, cpu->r[RAX] = 1, cpu->r[RCX] = 5;
  poke(AT_DATA, 4, 1);
  RUN("\xF0\x0F\xB1\x0B"); /* lock cmpxchg [ebx], ecx */
  assert_int_equal(peek(AT_DATA, 4), 5);
  assert_int_equal(flags(FLAG_ZF), FLAG_ZF);
  RUN("\x0F\xB1\x0B");
  assert_int_equal(cpu->r[RAX], 5);
  assert_int_equal(flags(FLAG_ZF | FLAG_CF), FLAG_CF); /* 1 - 5 */
}

static void test_compare_and_exchange_16_bytes(void **state)
{
  (void)state;
  cpu->r[RSI] = AT_DATA + 8;
  RUN_FAULTS("\x48\x0F\xC7\x0E", GP, 0); /* cmpxchg16b [rsi] */
  cpu->r[RSI] = AT_DATA;
  poke(AT_DATA, 8, 1);
  poke(AT_DATA + 8, 8, 2);
  cpu->r[RAX] = 1, cpu->r[RDX] = 2, cpu->r[RBX] = 3, cpu->r[RCX] = 4;
  cpu_set_flags(cpu, FLAG_CF | FLAG_OF);
  RUN("\x48\x0F\xC7\x0E");
  assert_int_equal(peek(AT_DATA, 8), 3);
  assert_int_equal(peek(AT_DATA + 8, 8), 4);
  assert_int_equal(flags(FLAGS_ARITHMETIC), FLAG_CF | FLAG_OF | FLAG_ZF);
  RUN("\x48\x0F\xC7\x0E");
  assert_int_equal(cpu->r[RAX], 3);
  assert_int_equal(cpu->r[RDX], 4);
}

static void test_exchange_add_with_itself(void **state)
{
  (void)state;
  cpu->r[RAX] = 21;
  RUN("\x0F\xC1\xC0"); /* xadd eax, eax */
  assert_int_equal(cpu->r[RAX], 42);
}

static void test_bound(void **state)
{
  (void)state;
  poke(AT_DATA, 4, 0xFFFFFFFE); /* -2 to 3 */
  poke(AT_DATA + 4, 4, 3);
  cpu->r[RBX] = AT_DATA, cpu->r[RAX] = 3;
  RUN("\x62\x03"); /* bound eax, [ebx] */
  cpu->r[RAX] = 0xFFFFFFFD;
  RUN_FAULTS("\x90\x62\x03", BR, 1);
  RUN_FAULTS("\x0F\x0B", UD, 0);
}

/* ---- moves ---- */

static void test_segment_moves(void **state)
{
  (void)state;
  cpu->r[RAX] = 0xFFFFFFFF, cpu->r[RBX] = AT_DATA;
  poke(AT_DATA, 4, 0xAAAAAAAA);
  RUN("\x8C\xD8\x8C\x1B"); /* mov eax, ds; mov [ebx], ds: 16 bits */
  assert_int_equal(cpu->r[RAX], DATA_32);
  assert_int_equal(peek(AT_DATA, 4), 0xAAAA0000 | DATA_32);
  cpu->r[RAX] = SMALL;
  RUN("\x8E\xE0\x64\xA1\x10\x00\x00\x00"); /* mov fs, eax; mov eax, fs:[10h] */
  assert_int_equal(cpu->segment[FS].base, AT_DATA);
  RUN_FAULTS("\x64\xA1\xFD\x00\x00\x00", GP, 0); /* one byte is beyond its limit */
  RUN_FAULTS("\x8E\xC8", UD, 0);                 /* mov cs, eax */
}

/* SDM vol. 3, 6.8.3: nothing gets in before the instruction behind a load of SS. */
static void test_shadow_of_ss(void **state)
{
  (void)state;
  cpu->r[RAX] = DATA_32;
  assert_true(memory_write(&memory, AT_CODE, "\x8E\xD0\x90\xF4", 4));
  cpu_changed(cpu);
  assert_int_equal(cpu_run(cpu, 1), CPU_STOP_BUDGET);
  assert_int_equal(cpu->rip, AT_CODE + 2);
  assert_int_equal(cpu->shadow, SHADOW_MOV_SS);
}

static void test_conditional_moves(void **state)
{
  (void)state;
  cpu->r[RAX] = UINT64_C(0x1111111122222222), cpu->r[RBX] = 7, cpu->r[RCX] = 0xABCD;
  cpu_set_flags(cpu, 0);
  RUN("\x0F\x44\xC3\x0F\x95\xC1"); /* cmovz eax, ebx: not met, but the upper half goes; setnz cl */
  assert_int_equal(cpu->r[RAX], 0x22222222);
  assert_int_equal(cpu->r[RCX], 0xAB01);
}

/* ---- stack ---- */

static void test_stack_pointer_as_operand(void **state)
{
  (void)state;
  RUN("\x54\x58"); /* push esp: as it was; pop eax */
  assert_int_equal(cpu->r[RAX], AT_STACK);
  RUN("\x68\x78\x56\x34\x12\x8F\x44\x24\xF0"); /* push 12345678h; pop [esp - 16]: of after the pop */
  assert_int_equal(peek(AT_STACK - 16, 4), 0x12345678);
  assert_int_equal(cpu->r[RSP], AT_STACK);
  RUN("\x6A\xF0\x5C"); /* push -16; pop esp */
  assert_int_equal(cpu->r[RSP], 0xFFFFFFF0);
}

static void test_stack_of_16_bits(void **state)
{
  (void)state;
  cpu->r[RAX] = STACK_16, cpu->r[RSP] = 0x12340000;
  RUN("\x8E\xD0\x50\x66\x6A\xFE"); /* mov ss, eax; push eax; push word -2 */
  assert_int_equal(cpu->r[RSP], 0x1234FFFA);
  assert_int_equal(peek(0xFFFC, 4), STACK_16);
  assert_int_equal(peek(0xFFFA, 2), 0xFFFE);
}

static void test_push_and_pop_all(void **state)
{
  (void)state;
  for (unsigned i = 0; i < 8; i++)
    cpu->r[i] = i == RSP ? AT_STACK : 0x11111111 * (i + 1);
  RUN("\x60"); /* pushad */
  assert_int_equal(cpu->r[RSP], AT_STACK - 32);
  assert_int_equal(peek(AT_STACK - 4, 4), 0x11111111);
  assert_int_equal(peek(AT_STACK - 20, 4), AT_STACK);
  poke(AT_STACK - 20, 4, 0);
  cpu->r[RDI] = cpu->r[RAX] = 0;
  RUN("\x61"); /* popad: ESP is not loaded */
  assert_int_equal(cpu->r[RSP], AT_STACK);
  assert_int_equal(cpu->r[RAX], 0x11111111);
  assert_int_equal(cpu->r[RDI], 0x88888888);
}

static void test_nested_frame(void **state)
{
  (void)state;
  cpu->r[RBP] = AT_DATA + 0x100;
  poke(AT_DATA + 0xFC, 4, 0x1111);
  poke(AT_DATA + 0xF8, 4, 0x2222);
  RUN("\xC8\x10\x00\x03"); /* enter 16, 3 */
  assert_int_equal(cpu->r[RBP], AT_STACK - 4);
  assert_int_equal(cpu->r[RSP], AT_STACK - 4 - 12 - 16);
  assert_int_equal(peek(AT_STACK - 4, 4), AT_DATA + 0x100);
  assert_int_equal(peek(AT_STACK - 8, 4), 0x1111);
  assert_int_equal(peek(AT_STACK - 12, 4), 0x2222);
  assert_int_equal(peek(AT_STACK - 16, 4), AT_STACK - 4);
  RUN("\xC9"); /* leave */
  assert_int_equal(cpu->r[RSP], AT_STACK);
  assert_int_equal(cpu->r[RBP], AT_DATA + 0x100);
}

static void test_flags_at_level_0(void **state)
{
  (void)state;
  RUN("\x68\xD7\x70\x3F\x00\x9D\x9C\x58"); /* push 3F70D7h; popfd; pushfd; pop eax */
  assert_int_equal(cpu->r[RAX] & (FLAG_IOPL | FLAG_NT | FLAG_AC | FLAG_ID), FLAG_IOPL | FLAG_NT | FLAG_AC | FLAG_ID);
  assert_int_equal(cpu->r[RAX] & (FLAG_VM | FLAG_RF | FLAG_VIF | FLAG_VIP), 0);
}

/* CPL 3: IOPL stays, IF changes by IOPL. */
static void test_flags_at_level_3(void **state)
{
  (void)state;
  cpu->segment[CS].selector |= 3;
  cpu->segment[CS].access |= 0x60;
  cpu->segment[SS].selector |= 3;
  cpu->segment[SS].access |= 0x60;
  cpu_set_flags(cpu, FLAG_IF);
  cpu_changed(cpu);
  assert_true(memory_write(&memory, AT_CODE, "\x68\x01\x30\x00\x00\x9D", 6)); /* push 3001h; popfd */
  cpu_changed(cpu);
  cpu_run(cpu, 2);
  assert_int_equal(flags(FLAG_IF | FLAG_IOPL | FLAG_CF), FLAG_IF | FLAG_CF);
  cpu_set_flags(cpu, FLAG_IF | FLAG_IOPL);
  cpu_set_rip(cpu, AT_CODE);
  cpu_run(cpu, 2);
  assert_int_equal(flags(FLAG_IF | FLAG_IOPL | FLAG_CF), FLAG_IOPL | FLAG_CF);
}

static void enter_v86(uint32_t more_flags)
{
  static const uint8_t numbers[] = {ES, CS, SS, DS, FS, GS};

  cpu->segment[TR].access = 0x8B; /* a busy TSS at 0, for the way out */
  cpu->segment[TR].limit = 0x67;
  poke(4, 4, AT_STACK + 0x800);
  poke(8, 4, DATA_32);
  cpu_set_flags(cpu, FLAG_VM | more_flags);
  for (unsigned i = 0; i < sizeof(numbers); i++)
    cpu_load_real_segment(cpu, numbers[i], 0);
  cpu_changed(cpu);
}

/* SDM vol. 3, 20.2.7 and 20.3: IOPL below 3 faults, unless CR4.VME gives IF's part to VIF. */
static void test_flags_in_virtual_8086(void **state)
{
  (void)state;
  enter_v86(FLAG_IF);
  assert_true(memory_write(&memory, AT_CODE, "\x9C\x9D", 2));
  cpu_changed(cpu);
  cpu_run(cpu, 1);
  assert_int_equal(cpu->rip, AT_HANDLERS + 16 * GP);
  teardown(state);
  setup_32(state);
  enter_v86(FLAG_IF);
  cpu->cr4 |= CR4_VME;
  assert_true(memory_write(&memory, AT_CODE, "\x9C\x6A\x00\x9D", 4)); /* pushf; push 0; popf */
  cpu_changed(cpu);
  cpu_run(cpu, 1);
  assert_int_equal(peek(AT_STACK - 2, 2) & (FLAG_IOPL | FLAG_IF), FLAG_IOPL); /* VIF is 0 */
  assert_true(memory_write(&memory, AT_CODE, "\x68\x00\x02\x9D", 4));         /* push 200h; popf */
  cpu_changed(cpu);
  cpu_set_rip(cpu, AT_CODE);
  cpu_run(cpu, 2);
  assert_int_equal(flags(FLAG_VIF | FLAG_IF | FLAG_IOPL | FLAG_VM), FLAG_VIF | FLAG_IF | FLAG_VM);
}

/* ---- strings ---- */

static void test_copy_that_overlaps(void **state)
{
  (void)state;
  poke(AT_DATA, 1, 'x');
  cpu->r[RSI] = AT_DATA, cpu->r[RDI] = AT_DATA + 1, cpu->r[RCX] = 100;
  RUN("\xF3\xA4"); /* rep movsb: fills */
  for (unsigned i = 0; i <= 100; i++)
    assert_int_equal(peek(AT_DATA + i, 1), 'x');
  assert_int_equal(cpu->r[RCX], 0);
  assert_int_equal(cpu->r[RDI], AT_DATA + 101);
}

static void test_long_fill(void **state)
{
  (void)state;
  cpu->r[RDI] = 0x20001, cpu->r[RCX] = 50000, cpu->r[RAX] = 0x55667788;
  RUN("\xFC\xF3\xAB"); /* rep stosd */
  assert_int_equal(cpu->r[RDI], 0x20001 + 200000);
  assert_int_equal(cpu->r[RCX], 0);
  for (unsigned i = 0; i < 50000; i += 7)
    assert_int_equal(peek(0x20001 + 4 * i, 4), 0x55667788);
  assert_int_equal(peek(0x20000, 1), 0);
  assert_int_equal(peek(0x20001 + 200000, 1), 0);
}

static void test_downwards(void **state)
{
  (void)state;
  for (unsigned i = 0; i < 16; i++)
    poke(AT_DATA + i, 1, i);
  cpu->r[RSI] = AT_DATA + 15, cpu->r[RDI] = AT_DATA + 17, cpu->r[RCX] = 16;
  RUN("\xFD\xF3\xA4\xFC"); /* std; rep movsb; cld */
  for (unsigned i = 0; i < 16; i++)
    assert_int_equal(peek(AT_DATA + 2 + i, 1), i);
  assert_int_equal(cpu->r[RSI], AT_DATA - 1);
}

static void test_compare_ends(void **state)
{
  (void)state;
  assert_true(memory_write(&memory, AT_DATA, "abcdefgh", 8));
  assert_true(memory_write(&memory, AT_DATA + 16, "abcdxfgh", 8));
  cpu->r[RSI] = AT_DATA, cpu->r[RDI] = AT_DATA + 16, cpu->r[RCX] = 8;
  RUN("\xFC\xF3\xA6"); /* repe cmpsb */
  assert_int_equal(cpu->r[RCX], 3);
  assert_int_equal(cpu->r[RSI], AT_DATA + 5);
  assert_int_equal(flags(FLAG_ZF | FLAG_CF), FLAG_CF); /* 'e' - 'x' */
  cpu->r[RDI] = AT_DATA, cpu->r[RCX] = 8, cpu->r[RAX] = 'g';
  RUN("\xF2\xAE"); /* repne scasb */
  assert_int_equal(cpu->r[RCX], 1);
  assert_int_equal(flags(FLAG_ZF), FLAG_ZF);
  cpu_set_flags(cpu, FLAG_CF), cpu->r[RCX] = 0;
  RUN("\xF2\xAE"); /* none: flags stay */
  assert_int_equal(flags(FLAGS_ARITHMETIC), FLAG_CF);
}

/* A fault in the middle leaves the registers at the element that faulted. */
static void test_repetition_that_faults(void **state)
{
  (void)state;
  cpu->r[RAX] = SMALL, cpu->r[RDI] = 0xF0, cpu->r[RCX] = 100;
  RUN_FAULTS("\x8E\xC0\xF3\xAB", GP, 2); /* mov es, eax; rep stosd */
  assert_int_equal(cpu->r[RDI], 0x100);
  assert_int_equal(cpu->r[RCX], 96);
  assert_int_equal(peek(AT_DATA + 0xFC, 8), SMALL); /* and nothing behind the limit */
}

/* Real mode: indexes wrap in 64 KiB, and the count is CX. */
static void test_wrapping_index(void **state)
{
  (void)state;
  cpu->r[RDI] = 0xAAAAFFFC, cpu->r[RCX] = 0xBBBB0008, cpu->r[RAX] = 'z';
  cpu_load_real_segment(cpu, ES, 0x1000);
  RUN("\xFC\xF3\xAA"); /* rep stosb */
  assert_int_equal(peek(0x1FFFC, 4), 0x7A7A7A7A);
  assert_int_equal(peek(0x10000, 4), 0x7A7A7A7A);
  assert_int_equal(peek(0x20000, 1), 0);
  assert_int_equal(cpu->r[RDI], 0xAAAA0004);
  assert_int_equal(cpu->r[RCX], 0xBBBB0000);
  cpu->r[RBX] = AT_DATA, cpu->r[RAX] = 5;
  poke(AT_DATA + 5, 1, 0x99);
  RUN("\xD7"); /* xlat */
  assert_int_equal(cpu->r[RAX], 0x99);
}

/* Compares equal bytes up to the end of memory, where it faults. CF was set before. */
static void check_compare_fault(unsigned carry)
{
  cpu->r[RSI] = cpu->r[RDI] = RAM - 3, cpu->r[RCX] = 9;
  RUN_FAULTS("\xFC\xF9\xF3\xA6", PF, 2); /* cld; stc; repe cmpsb */
  assert_int_equal(cpu->r[RCX], 6);
  assert_int_equal(cpu->r[RSI], RAM);
  assert_int_equal(peek(cpu->r[RSP] + 24, 8) & FLAG_CF, carry); /* after error code, RIP and CS */
}

/* SDM vol. 2, REP: EFLAGS are restored to the state before the instruction. */
static void test_compare_fault_intel(void **state)
{
  (void)state;
  check_compare_fault(FLAG_CF);
}

/* As a Zen 4 does it. */
static void test_compare_fault_amd(void **state)
{
  (void)state;
  check_compare_fault(0);
}

#define HIGH UINT64_C(0x8000000000)

/* Runs a repetition with ECX = 0 and 32-bit addresses; which upper halves are left? */
static void check_none(const char *bytes, uint64_t rcx, uint64_t rsi, uint64_t rdi)
{
  cpu->r[RCX] = HIGH, cpu->r[RSI] = HIGH | AT_DATA, cpu->r[RDI] = HIGH | (AT_DATA + 64);
  run_bytes(bytes, 3);
  assert_int_equal(cpu->rip, AT_CODE + 4);
  assert_int_equal(cpu->r[RCX], rcx);
  assert_int_equal(cpu->r[RSI], rsi | AT_DATA);
  assert_int_equal(cpu->r[RDI], rdi | (AT_DATA + 64));
}

/* As a Xeon does it; KVM's emulator has the same rule for Intel's processors. */
static void test_none_intel(void **state)
{
  (void)state;
  check_none("\x67\xF3\xA4", 0, 0, 0);       /* movsb */
  check_none("\x67\xF3\xA5", 0, 0, 0);       /* movsd */
  check_none("\x67\xF3\xA6", 0, HIGH, HIGH); /* cmpsb */
  check_none("\x67\xF3\xAE", 0, HIGH, HIGH); /* scasb */
  check_none("\x67\xF3\xAC", 0, HIGH, HIGH); /* lodsb */
  check_none("\x67\xF3\xAA", 0, HIGH, 0);    /* stosb */
}

/* As a Zen 4 does it. */
static void test_none_amd(void **state)
{
  (void)state;
  check_none("\x67\xF3\xA4", HIGH, HIGH, HIGH);
  check_none("\x67\xF3\xAE", HIGH, HIGH, HIGH);
  check_none("\x67\xF3\xAA", HIGH, HIGH, HIGH);
}

/* ---- branches ---- */

static void test_loops(void **state)
{
  (void)state;
  cpu->r[RCX] = 0x10003, cpu->r[RAX] = 0;
  RUN("\x40\x67\xE2\xFC"); /* inc eax; loop by CX */
  assert_int_equal(cpu->r[RAX], 3);
  assert_int_equal(cpu->r[RCX], 0x10000);
  cpu->r[RCX] = 5, cpu->r[RAX] = 0xFFFFFFFD;
  RUN("\x40\xE0\xFD"); /* inc eax; loopne: until zero */
  assert_int_equal(cpu->r[RCX], 2);
  cpu->r[RCX] = 0, cpu->r[RAX] = 0;
  RUN("\xE3\x01\x40"); /* jecxz over inc eax */
  assert_int_equal(cpu->r[RAX], 0);
}

static void test_call_and_return(void **state)
{
  (void)state;
  RUN("\x6A\x07\xE8\x02\x00\x00\x00\xEB\x07\x8B\x44\x24\x04\xC2\x04\x00"); /* push 7; call f; jmp; f: mov; ret 4 */
  assert_int_equal(cpu->r[RAX], 7);
  assert_int_equal(cpu->r[RSP], AT_STACK);
}

/* The target is checked first: nothing was pushed, no count was changed. */
static void test_target_beyond_limit(void **state)
{
  (void)state;
  cpu->segment[CS].limit = 0xFFFF;
  cpu->r[RAX] = 0x10000, cpu->r[RCX] = 4;
  RUN_FAULTS("\xFF\xD0", GP, 0); /* call eax */
  assert_int_equal(cpu->r[RSP], AT_STACK - 16);
  cpu->segment[CS].limit = 0xFFFF;
  cpu->r[RSP] = AT_STACK;
  poke(AT_STACK, 4, 0x10000);
  RUN_FAULTS("\xC3", GP, 0);
  assert_int_equal(cpu->r[RSP], AT_STACK - 16);
}

static void test_target_that_is_not_canonical(void **state)
{
  (void)state;
  cpu->r[RAX] = UINT64_C(0x0000800000000000);
  RUN_FAULTS("\x90\xFF\xE0", GP, 1); /* jmp rax */
}

#define TEST_32(name) cmocka_unit_test_setup_teardown(name, setup_32, teardown)
#define TEST_64(name) cmocka_unit_test_setup_teardown(name, setup_64, teardown)
#define TEST_16(name) cmocka_unit_test_setup_teardown(name, setup_16, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST_32(test_division_by_too_little),
    TEST_32(test_division_at_its_limit),
    TEST_32(test_increment_keeps_carry),
    TEST_32(test_shift_count_of_zero),
    TEST_32(test_decimal),
    TEST_64(test_crc32),
    TEST_32(test_bit_string_reaches_outside),
    TEST_32(test_scan_of_zero),
    TEST_32(test_compare_and_exchange),
    TEST_64(test_compare_and_exchange_16_bytes),
    TEST_32(test_exchange_add_with_itself),
    TEST_32(test_bound),
    TEST_32(test_segment_moves),
    TEST_32(test_shadow_of_ss),
    TEST_64(test_conditional_moves),
    TEST_32(test_stack_pointer_as_operand),
    TEST_32(test_stack_of_16_bits),
    TEST_32(test_push_and_pop_all),
    TEST_32(test_nested_frame),
    TEST_32(test_flags_at_level_0),
    TEST_32(test_flags_at_level_3),
    TEST_32(test_flags_in_virtual_8086),
    TEST_32(test_copy_that_overlaps),
    TEST_32(test_long_fill),
    TEST_32(test_downwards),
    TEST_32(test_compare_ends),
    TEST_32(test_repetition_that_faults),
    TEST_16(test_wrapping_index),
    TEST_64(test_compare_fault_intel),
    cmocka_unit_test_setup_teardown(test_compare_fault_amd, setup_amd_64, teardown),
    TEST_64(test_none_intel),
    cmocka_unit_test_setup_teardown(test_none_amd, setup_amd_64, teardown),
    TEST_32(test_loops),
    TEST_32(test_call_and_return),
    TEST_32(test_target_beyond_limit),
    TEST_64(test_target_that_is_not_canonical),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
