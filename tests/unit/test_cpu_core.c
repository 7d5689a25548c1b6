/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter's core: cached blocks and code that changes, fetching at the limits, paging and what is kept of it,
 * the run loop's counts and order of events, and what the seam reports. Expected values are those of Intel's SDM.
 */
#include "cpu_rig.h"

enum { SS_FAULT = 12, PF = 14 };
enum { PAGES = 0x13000, ALIAS_PAGES = 0x14000, ALIAS = 0x440000, FAR_CODE = 0x20000 };
#define ALIAS_ENTRY (ALIAS_PAGES + 8 * (ALIAS >> 12 & 511))

/* 64-bit mode in pages of 4 KByte: identity for 2 MByte, and ALIAS, whose pages a test maps. */
static void rig_small_pages(struct rig *rig)
{
  rig_long(rig, "skylake");
  for (uint64_t i = 0; i < 512; i++) {
    put(rig, PAGES + 8 * i, i << 12 | 7, 8);
    put(rig, ALIAS_PAGES + 8 * i, 0, 8);
  }
  put(rig, TABLES + 0x2000, PAGES | 7, 8);
  put(rig, TABLES + 0x2000 + 8 * (ALIAS >> 21), ALIAS_PAGES | 7, 8);
  cpu_changed(rig->cpu);
}

static void map_alias(struct rig *rig, unsigned number, uint64_t entry)
{
  put(rig, ALIAS_ENTRY + 8 * number, entry, 8);
}

static void load(struct rig *rig, uint64_t address, const void *bytes, size_t size)
{
  assert_true(memory_write(&rig->memory, address, bytes, size));
}

#define LOAD(rig, address, ...)                                                                                        \
  load(rig, address, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Goes on at an address, until HLT. Returns the vector of the handler that halted, or DONE. */
static int go(struct rig *rig, uint64_t rip)
{
  struct cpu *cpu = rig->cpu;

  cpu->activity = CPU_RUNNING;
  cpu_set_rip(cpu, rip);
  enum cpu_stop stop = cpu_run(cpu, 10000);
  if (stop != CPU_STOP_HALTED)
    return RUNAWAY;
  uint64_t at = cpu->rip + cpu->segment[CS].linear_base;
  return at > HANDLERS && at <= HANDLERS + 16 * 256 ? (int)(at - HANDLERS) / 16 : DONE;
}

/* ---- code that changes ---- */

static void test_write_to_the_next_instruction(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake"); /* INC EAX becomes DEC EAX: by MOV, then by a PUSH whose last byte it is */
  assert_int_equal(EXECUTE(&rig, 0xC6, 0x05, 0x07, 0x10, 0, 0, 0x48, 0x40), DONE);
  assert_int_equal((uint32_t)rig.cpu->r[RAX], 0xFFFFFFFF);
  rig.cpu->r[RAX] = 0;
  rig.cpu->r[RSP] = CODE + 9;
  assert_int_equal(EXECUTE(&rig, 0x68, 0x48, 0x90, 0x90, 0x90, 0x40, 0x40, 0x40, 0x40), DONE);
  assert_int_equal((uint32_t)rig.cpu->r[RAX], 0xFFFFFFFF);
  rig_free(&rig);
}

/* A loop that was linked, and whose body another linear address of the same page changes. */
static void test_write_through_an_alias(void **state)
{
  struct rig rig;

  (void)state;
  rig_small_pages(&rig);
  map_alias(&rig, 0, CODE | 3);
  rig.cpu->r[RCX] = 10;
  /* 1000: INC EAX; CMP ECX, 5; JNE 1010; MOV BYTE [440001], C8 (DEC EAX); 1010: LOOP 1000 */
  assert_int_equal(
    EXECUTE(&rig, 0xFF, 0xC0, 0x83, 0xF9, 0x05, 0x75, 0x08, 0xC6, 0x04, 0x25, 0x01, 0x00, 0x44, 0x00, 0xC8, 0xE2, 0xEF),
    DONE);
  assert_int_equal((uint32_t)rig.cpu->r[RAX], 2); /* six times up, four times down */
  rig_free(&rig);
}

/* MOV EAX, imm32 across two pages; and code that changes its second part, or where that lies. */
static void rig_across_pages(struct rig *rig, uint64_t second)
{
  rig_small_pages(rig);
  map_alias(rig, 0, FAR_CODE | 7);
  map_alias(rig, 1, second | 7);
  LOAD(rig, FAR_CODE + 0xFFE, 0xB8, 0x11);
  put(rig, second, 0xF4000000, 4);
  put(rig, FAR_CODE + 0x2000, 0xF4000002, 4);
  LOAD(rig, CODE, 0xC6, 0x03, 0x01, 0xF4);                                      /* MOV BYTE [RBX], 1 */
  LOAD(rig, CODE + 0x10, 0x0F, 0x01, 0x3C, 0x25, 0x00, 0x10, 0x44, 0x00, 0xF4); /* INVLPG [441000] */
  rig->cpu->r[RBX] = second;
  cpu_changed(rig->cpu);
  assert_int_equal(go(rig, ALIAS + 0xFFE), DONE);
  assert_int_equal(rig->cpu->r[RAX], 0x11);
  assert_int_equal(go(rig, CODE), DONE);
  assert_int_equal(go(rig, ALIAS + 0xFFE), DONE);
  assert_int_equal(rig->cpu->r[RAX], 0x111);
}

static void test_instruction_across_pages(void **state)
{
  struct rig rig;

  (void)state;
  rig_across_pages(&rig, FAR_CODE + 0x1000);
  map_alias(&rig, 1, (FAR_CODE + 0x2000) | 7);
  assert_int_equal(go(&rig, CODE + 0x10), DONE);
  assert_int_equal(go(&rig, ALIAS + 0xFFE), DONE);
  assert_int_equal(rig.cpu->r[RAX], 0x211);
  map_alias(&rig, 1, 0);
  assert_int_equal(go(&rig, CODE + 0x10), DONE);
  assert_int_equal(go(&rig, ALIAS + 0xFFE), PF);
  assert_int_equal(rig.cpu->cr2, ALIAS + 0x1000);
  rig_free(&rig);
}

static void test_both_pages_are_one(void **state)
{
  struct rig rig;

  (void)state;
  rig_across_pages(&rig, FAR_CODE);
  rig_free(&rig);
}

/* REP STOSB over itself: the next element is already the new instruction's. */
static void test_repetition_writes_over_itself(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RDI] = CODE;
  rig.cpu->r[RAX] = 0x90;
  rig.cpu->r[RCX] = 100;
  assert_int_equal(EXECUTE(&rig, 0xF3, 0xAA), DONE);
  assert_int_equal(rig.cpu->r[RCX], 99); /* the prefix is gone: STOSB */
  assert_int_equal(rig.cpu->r[RDI], CODE + 2);
  rig_free(&rig);
}

/* However often links were taken back. */
static void test_generations_come_round(void **state)
{
  struct rig rig;

  (void)state;
  rig_small_pages(&rig);
  for (unsigned i = 0; i < 4; i++) {
    rig.cpu->r[RCX] = 3;
    assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0x38, 0xEB, 0x00, 0xE2, 0xF9), DONE); /* INVLPG; JMP; LOOP */
    rig.cpu->generation = i == 0 ? 0xFFFFFFFD : rig.cpu->generation;
    assert_int_not_equal(rig.cpu->generation, 0);
  }
  rig_free(&rig);
}

/* ---- fetching at the limit of CS ---- */

static void set_code_limit(struct rig *rig, uint32_t limit)
{
  rig->cpu->segment[CS].limit = limit;
  uint64_t descriptor = get(rig, GDT + 8, 8) & ~UINT64_C(0x008F00000000FFFF);
  put(rig, GDT + 8, descriptor | limit, 8);
}

/* The same bytes with two limits: the block of one is not the other's, neither by a link nor by an indirect jump. */
static void test_blocks_know_their_limit(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RAX] = 0xF000;
  LOAD(&rig, CODE, 0xFF, 0xE0);               /* JMP EAX */
  LOAD(&rig, 0xF000, 0x90, 0x90, 0x90, 0xF4); /* its HLT is beyond the limit at first */
  set_code_limit(&rig, 0xF002);
  cpu_changed(rig.cpu);
  assert_int_equal(go(&rig, CODE), GP);
  assert_int_equal(get(&rig, rig.cpu->r[RSP] + 4, 4), 0xF003);
  LOAD(&rig, DATA, 0, 0x10, 0, 0, 0x08, 0);
  set_code_limit(&rig, 0xFFFF);
  LOAD(&rig, CODE + 0x10, 0xFF, 0x2D, 0, 0x90, 0, 0); /* JMP FAR [DATA]: loads CS anew */
  assert_int_equal(go(&rig, CODE + 0x10), DONE);
  assert_int_equal(rig.cpu->rip, 0xF004);
  set_code_limit(&rig, 0xF002);
  assert_int_equal(go(&rig, CODE + 0x10), GP);
  rig_free(&rig);
}

/* An instruction of which the limit lets only a part be fetched: #GP, whatever lies behind it. */
static void test_instruction_across_the_limit(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  LOAD(&rig, CODE, 0x0F, 0xFF); /* UD0 needs its ModRM byte */
  set_code_limit(&rig, CODE);
  cpu_changed(rig.cpu);
  rig.cpu->idtr.limit = 0x7FF;
  assert_int_equal(go(&rig, CODE), RUNAWAY); /* the handler lies beyond the limit too: a triple fault */
  assert_int_equal(rig.cpu->activity, CPU_SHUTDOWN);
  rig_free(&rig);
  rig_real(&rig, "skylake");
  LOAD(&rig, 0xFFFF, 0x0F);
  assert_int_equal(go(&rig, 0xFFFF), GP);
  rig_free(&rig);
}

/* ---- paging ---- */

/* INVLPG of one address ends all translations of a large page. SDM vol. 3, 4.10.4.1. */
static void test_invlpg_of_a_large_page(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  put(&rig, TABLES + 0x2000 + 8 * 3, 0x87, 8); /* 600000 is 0 again */
  put(&rig, DATA, 1, 4);
  LOAD(&rig, CODE, 0x8B, 0x04, 0x25, 0x00, 0x90, 0x60, 0x00, /* MOV EAX, [609000] */
       0x48, 0x89, 0x1C, 0x25, 0x18, 0x20, 0x01, 0x00,       /* MOV [the entry], RBX */
       0x0F, 0x01, 0x3C, 0x25, 0x00, 0x00, 0x60, 0x00,       /* INVLPG [600000] */
       0x8B, 0x0C, 0x25, 0x00, 0x90, 0x60, 0x00, 0xF4);      /* MOV ECX, [609000] */
  cpu_changed(rig.cpu);
  rig.cpu->r[RBX] = 0;
  assert_int_equal(go(&rig, CODE), PF);
  assert_int_equal(rig.cpu->cr2, 0x609000);
  assert_int_equal(rig.cpu->r[RAX], 1);
  rig_free(&rig);
}

static void test_accessed_and_dirty_bits(void **state)
{
  struct rig rig;

  (void)state;
  rig_small_pages(&rig);
  map_alias(&rig, 0, FAR_CODE | 7);
  map_alias(&rig, 1, (FAR_CODE + 0x1000) | 5);
  rig.cpu->cr0 |= CR0_WP;
  cpu_changed(rig.cpu);
  assert_int_equal(EXECUTE(&rig, 0x8B, 0x04, 0x25, 0, 0, 0x44, 0), DONE); /* MOV EAX, [440000] */
  assert_int_equal(get(&rig, ALIAS_ENTRY, 8) & 0x60, 0x20);
  assert_int_equal(EXECUTE(&rig, 0x89, 0x04, 0x25, 0xFE, 0x0F, 0x44, 0), PF); /* MOV [440FFE], EAX: both or none */
  assert_int_equal(rig.cpu->cr2, ALIAS + 0x1000);
  assert_int_equal(get(&rig, FAR_CODE + 0xFFE, 2), 0);
  assert_int_equal(EXECUTE(&rig, 0x89, 0x04, 0x25, 0, 0, 0x44, 0), DONE);
  assert_int_equal(get(&rig, ALIAS_ENTRY, 8) & 0x60, 0x60);
  rig_free(&rig);
}

/* Bit 4 of the error code: with SMEP, or with NXE and PAE. SDM vol. 3, 4.7. */
static void test_error_code_of_a_fetch(void **state)
{
  static const struct {
    uint32_t cr4, efer, error;
  } cases[] = {{0, 0, 0}, {0, EFER_NXE, 0}, {CR4_SMEP, 0, 0x10}, {CR4_SMEP, EFER_NXE, 0x10}};
  struct rig rig;
  (void)state;
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    rig_protected(&rig, "skylake");
    put(&rig, TABLES, 0x83, 4); /* 4 MByte */
    rig.cpu->cr3 = TABLES;
    rig.cpu->cr4 = CR4_PSE | cases[i].cr4;
    rig.cpu->efer = cases[i].efer;
    rig.cpu->cr0 |= CR0_PG;
    cpu_changed(rig.cpu);
    assert_int_equal(go(&rig, 0x800000), PF);
    assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), cases[i].error);
    rig_free(&rig);
  }
}

/* An address that is not canonical: #SS for the stack's, also beside an operand that is not on it. */
static void test_not_canonical(void **state)
{
  struct rig rig;

  (void)state;
  rig_small_pages(&rig);
  put(&rig, TSS + 36, STACK, 8); /* IST 1, for the handlers' sake */
  for (unsigned vector = SS_FAULT; vector <= GP; vector++)
    put(&rig, IDT_64 + 16 * vector + 4, 1, 1);
  rig.cpu->r[RAX] = DATA;
  rig.cpu->r[RBX] = UINT64_C(0x8000000000000000);
  rig.cpu->r[RSP] = UINT64_C(0x8000000000000000);
  assert_int_equal(EXECUTE(&rig, 0xFF, 0x30), SS_FAULT); /* PUSH [RAX] */
  rig.cpu->r[RSP] = UINT64_C(0x8000000000000000);
  assert_int_equal(EXECUTE(&rig, 0x8F, 0x00), SS_FAULT); /* POP [RAX] */
  rig.cpu->r[RSP] = STACK;
  assert_int_equal(EXECUTE(&rig, 0xFF, 0x33), GP); /* PUSH [RBX] */
  rig.cpu->r[RBP] = UINT64_C(0x8000000000000000);
  assert_int_equal(EXECUTE(&rig, 0x8B, 0x45, 0x00), SS_FAULT); /* MOV EAX, [RBP] */
  rig_free(&rig);
}

/* ---- branches ---- */

struct heard {
  struct lb_branch branches[8];
  unsigned count;
};

static void hear(void *data, const struct lb_branch *branch)
{
  struct heard *heard = data;

  heard->branches[heard->count++ % 8] = *branch;
}

static void assert_branch(const struct lb_branch *branch, unsigned kind, uint64_t from, uint64_t to)
{
  assert_int_equal(branch->kind, kind);
  assert_int_equal(branch->from, from);
  assert_int_equal(branch->to, to);
}

/* The branch is heard, then the fault of its target, which comes from there. */
static void test_fault_at_a_target(void **state)
{
  struct rig rig;
  struct heard heard = {.count = 0};

  (void)state;
  rig_small_pages(&rig);
  cpu_listen(rig.cpu, hear, &heard);
  rig.cpu->r[RAX] = ALIAS;
  assert_int_equal(EXECUTE(&rig, 0xFF, 0xE0), PF); /* JMP RAX */
  assert_int_equal(heard.count, 2);
  assert_branch(&heard.branches[0], LB_BRANCH_NEAR_IND_JMP, CODE, ALIAS);
  assert_branch(&heard.branches[1], LB_BRANCH_FAULT, ALIAS, HANDLERS + 16 * PF);
  rig_free(&rig);
}

/* A target that is not canonical: the branch does not happen. */
static void test_target_is_not_canonical(void **state)
{
  struct rig rig;
  struct heard heard = {.count = 0};

  (void)state;
  rig_small_pages(&rig);
  put(&rig, TABLES + 8 * 255, (TABLES + 0x4000) | 7, 8); /* the last page of the lower half is CODE */
  put(&rig, TABLES + 0x4000 + 8 * 511, (TABLES + 0x5000) | 7, 8);
  put(&rig, TABLES + 0x5000 + 8 * 511, (TABLES + 0x6000) | 7, 8);
  put(&rig, TABLES + 0x6000 + 8 * 511, CODE | 7, 8);
  LOAD(&rig, CODE + 0xFF0, 0x75, 0x7F); /* JNZ */
  cpu_changed(rig.cpu);
  cpu_set_flags(rig.cpu, FLAG_1);
  cpu_listen(rig.cpu, hear, &heard);
  assert_int_equal(go(&rig, UINT64_C(0x7FFFFFFFFFF0)), GP);
  assert_int_equal(heard.count, 1);
  assert_branch(&heard.branches[0], LB_BRANCH_FAULT, UINT64_C(0x7FFFFFFFFFF0), HANDLERS + 16 * GP);
  rig_free(&rig);
}

static void test_branches_of_real_mode(void **state)
{
  struct rig rig;
  struct heard heard = {.count = 0};

  (void)state;
  rig_real(&rig, "skylake");
  cpu_load_real_segment(rig.cpu, CS, 0x80);
  cpu_listen(rig.cpu, hear, &heard);
  /* CALL next; JMP FAR 0100:0009 */
  assert_int_equal(EXECUTE(&rig, 0xE8, 0, 0, 0xEA, 0x09, 0x00, 0x00, 0x01, 0x90), DONE);
  assert_int_equal(heard.count, 2);
  assert_branch(&heard.branches[0], LB_BRANCH_NEAR_REL_CALL, 0x800, 0x803);
  assert_int_equal(heard.branches[0].from_base, 0x800);
  assert_int_equal(heard.branches[0].flags, LB_BRANCH_FROM_32 | LB_BRANCH_TO_32 | LB_BRANCH_TO_NEXT);
  assert_branch(&heard.branches[1], LB_BRANCH_FAR_JMP, 0x803, 9);
  assert_int_equal(heard.branches[1].from_base, 0x800);
  assert_int_equal(heard.branches[1].to_base, 0x1000);
  rig_free(&rig);
}

/* ---- the run loop ---- */

/* However a block ends, every instruction counts once: a repetition in pieces, one that faults, one that is begun
 * again. */
static void test_retired_instructions(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RSI] = rig.cpu->r[RDI] = 0x40000;
  rig.cpu->r[RCX] = 10000;
  uint64_t before = cpu_retired(rig.cpu);
  assert_int_equal(EXECUTE(&rig, 0x90, 0xF3, 0xA4, 0x90), DONE); /* NOP; REP MOVSB; NOP; HLT */
  assert_int_equal(cpu_retired(rig.cpu) - before, 4);
  assert_true(cpu_cycles(rig.cpu) > cpu_retired(rig.cpu));
  before = cpu_retired(rig.cpu);
  assert_int_equal(EXECUTE(&rig, 0x90, 0x90, 0x0F, 0x0B, 0x90), UD); /* and the handler's HLT */
  assert_int_equal(cpu_retired(rig.cpu) - before, 3);
  before = cpu_retired(rig.cpu);
  assert_int_equal(EXECUTE(&rig, 0xC6, 0x05, 0x08, 0x10, 0, 0, 0x90, 0x90, 0x90), DONE);
  assert_int_equal(cpu_retired(rig.cpu) - before, 4);
  rig_free(&rig);
}

/* So many instructions and no more. */
static void test_budgets_are_exact(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  memset(rig.memory.ram + CODE, 0x40, 0x800); /* INC EAX */
  cpu_changed(rig.cpu);
  cpu_set_rip(rig.cpu, CODE);
  static const unsigned budgets[] = {1, 31, 32, 33, 64, 100, 7};
  uint64_t sum = 0;
  for (unsigned i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
    assert_int_equal(cpu_run(rig.cpu, budgets[i]), CPU_STOP_BUDGET);
    sum += budgets[i];
    assert_int_equal(rig.cpu->r[RAX], sum);
    assert_int_equal(rig.cpu->rip, CODE + sum);
    assert_int_equal(cpu_retired(rig.cpu), sum);
  }
  rig_free(&rig);
}

static void raise_interrupt(void *data, uint64_t address, unsigned size, uint64_t value)
{
  struct rig *rig = data;

  (void)address;
  (void)size;
  (void)value;
  cpu_set_line(rig->cpu, CPU_LINE_INTR, true);
}

/* A device's register is written, and its interrupt comes before the CLI that follows; but not in STI's shadow. */
static void test_interrupt_before_cli(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->bus.mmio_write = raise_interrupt;
  cpu_set_flags(rig.cpu, FLAG_IF | FLAG_1);
  assert_int_equal(EXECUTE(&rig, 0xA3, 0, 0, 0, 0xF0, 0x90, 0xFA, 0x90), 0x20); /* MOV [F0000000], EAX; NOP; CLI */
  cpu_set_flags(rig.cpu, FLAG_1);
  assert_int_equal(EXECUTE(&rig, 0xA3, 0, 0, 0, 0xF0, 0xFB, 0xFA, 0x90), DONE); /* STI; CLI */
  rig_free(&rig);
}

/* A trap that MOV SS holds back comes after the next instruction, and not in SMM. */
static void test_smi_behind_mov_ss(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->dr[0] = DATA;
  rig.cpu->dr[7] = DR7_FIXED | 0xF0003; /* four bytes, read or written */
  put(&rig, DATA, 0x10, 2);
  LOAD(&rig, CODE, 0x8E, 0x15, 0, 0x90, 0, 0, 0x40, 0x40); /* MOV SS, [DATA]; INC EAX; INC EAX */
  put(&rig, 0x38000, 0xF4, 1);                             /* SMM: HLT */
  cpu_changed(rig.cpu);
  cpu_set_rip(rig.cpu, CODE);
  assert_int_equal(cpu_run(rig.cpu, 1), CPU_STOP_BUDGET);
  cpu_signal(rig.cpu, CPU_SMI);
  assert_int_equal(cpu_run(rig.cpu, 100), CPU_STOP_HALTED);
  assert_true(rig.cpu->is_in_smm);
  assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF1);
  assert_int_equal(rig.cpu->r[RAX], 1);
  rig_free(&rig);
}

/* Where a program with TF set from its start first comes to #DB: SDM vol. 3, 6.8.3 and 17.3.1.4. */
static uint64_t step(struct rig *rig, const void *bytes, size_t size, int expected)
{
  rig_protected(rig, "skylake");
  rig->cpu->r[RAX] = 0x10;
  rig->cpu->r[RCX] = 3;
  rig->cpu->r[RSI] = rig->cpu->r[RDI] = DATA;
  put(rig, STACK, FLAG_TF | FLAG_1, 4);
  cpu_set_flags(rig->cpu, FLAG_TF | FLAG_1);
  assert_int_equal(execute(rig, bytes, size), expected);
  uint64_t rip = get(rig, rig->cpu->r[RSP], 4);
  return expected == DB ? rip - CODE : rip;
}

#define STEP(rig, expected, ...)                                                                                       \
  step(rig, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), expected)

static void test_single_steps(void **state)
{
  struct rig rig;

  (void)state;
  assert_int_equal(STEP(&rig, DB, 0x8E, 0xD0, 0x90, 0x90), 3); /* MOV SS, AX loses its own */
  rig_free(&rig);
  assert_int_equal(STEP(&rig, DB, 0xF3, 0xA4), 0); /* REP MOVSB: after each element, with RF */
  assert_int_equal(rig.cpu->r[RCX], 2);
  assert_true(get(&rig, rig.cpu->r[RSP] + 8, 4) & FLAG_RF);
  rig_free(&rig);
  assert_int_equal(STEP(&rig, DB, 0xF4), 1); /* HLT ends by it */
  rig_free(&rig);
  STEP(&rig, UD, 0x0F, 0x0B); /* no trap of what did not happen, */
  rig_free(&rig);
  STEP(&rig, 0x30, 0xCD, 0x30); /* nor of INT n */
  rig_free(&rig);
  rig_protected(&rig, "skylake"); /* POPF that sets TF: behind the next instruction */
  put(&rig, STACK, FLAG_TF | FLAG_1, 4);
  assert_int_equal(EXECUTE(&rig, 0x9D, 0x90, 0x90), DB);
  assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), CODE + 2);
  rig_free(&rig);
}

/* NMI wakes HLT whatever IF is, and no second one comes before IRET. */
static void test_nmi(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  LOAD(&rig, HANDLERS + 16 * 2, 0x40, 0xCF); /* INC EAX; IRET */
  assert_int_equal(EXECUTE(&rig, 0x90), DONE);
  cpu_signal(rig.cpu, CPU_NMI);
  put(&rig, CODE + 2, 0xF4, 1);
  assert_int_equal(cpu_run(rig.cpu, 1), CPU_STOP_BUDGET); /* entered */
  cpu_signal(rig.cpu, CPU_NMI);
  assert_int_equal(cpu_run(rig.cpu, 1), CPU_STOP_BUDGET); /* INC EAX */
  assert_true(rig.cpu->is_nmi_blocked);
  assert_int_equal(cpu_run(rig.cpu, 100), CPU_STOP_HALTED);
  assert_int_equal(rig.cpu->r[RAX], 2);
  assert_int_equal(rig.cpu->rip, CODE + 3);
  rig_free(&rig);
}

/* Shutdown ends with RESET#, and what led to it is forgotten. */
static void test_fault_after_shutdown(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->idtr.limit = 0;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x0B), RUNAWAY);
  assert_int_equal(rig.cpu->activity, CPU_SHUTDOWN);
  cpu_reset(rig.cpu, true);
  rig_flat(&rig);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x0B), UD);
  rig_free(&rig);
}

/* Counters of unhalted cycles stand still in HLT: SDM vol. 3, 18.2.1.2. */
static void test_halted_cycles_do_not_count(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(wrmsr(&rig, 0x38D, 0x10), DONE); /* fixed counter 1 at CPL 0 */
  assert_int_equal(wrmsr(&rig, 0x38F, UINT64_C(1) << 33), DONE);
  cpu_idle(rig.cpu, 1000000); /* behind the HLT of wrmsr */
  msr_of(&rig, 0x30A);
  uint64_t cycles = msr_of(&rig, 0x30A);
  assert_in_range(cycles, 1, 100);
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_write_to_the_next_instruction),
    cmocka_unit_test(test_write_through_an_alias),
    cmocka_unit_test(test_instruction_across_pages),
    cmocka_unit_test(test_both_pages_are_one),
    cmocka_unit_test(test_repetition_writes_over_itself),
    cmocka_unit_test(test_generations_come_round),
    cmocka_unit_test(test_blocks_know_their_limit),
    cmocka_unit_test(test_instruction_across_the_limit),
    cmocka_unit_test(test_invlpg_of_a_large_page),
    cmocka_unit_test(test_accessed_and_dirty_bits),
    cmocka_unit_test(test_error_code_of_a_fetch),
    cmocka_unit_test(test_not_canonical),
    cmocka_unit_test(test_fault_at_a_target),
    cmocka_unit_test(test_target_is_not_canonical),
    cmocka_unit_test(test_branches_of_real_mode),
    cmocka_unit_test(test_retired_instructions),
    cmocka_unit_test(test_budgets_are_exact),
    cmocka_unit_test(test_interrupt_before_cli),
    cmocka_unit_test(test_smi_behind_mov_ss),
    cmocka_unit_test(test_single_steps),
    cmocka_unit_test(test_nmi),
    cmocka_unit_test(test_fault_after_shutdown),
    cmocka_unit_test(test_halted_cycles_do_not_count),
  };

  return cmocka_run_group_tests_name("cpu_core", tests, NULL, NULL);
}
