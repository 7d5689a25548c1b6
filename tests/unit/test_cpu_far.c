/* SPDX-License-Identifier: Apache-2.0
 *
 * Segmentation and far transfers of the interpreter: small guests with tables built by hand. Expected values follow
 * from Intel's SDM vol. 3, chapters 5 to 7 and 20, and vol. 2 under the instructions' names. Every test also looks at
 * what the seam reported.
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

/* Where things lie in the guest. */
enum {
  GDT = 0x1000,
  IDT = 0x2000,
  TSS_A = 0x4000,
  TSS_B = 0x5000,
  LDT = 0x6000,
  CODE = 0x10000,
  HANDLER = 0x11000, /* of exception n: HANDLER + 0x10 * n */
  STACK_0 = 0x20000,
  STACK_3 = 0x21000,
  STACK_IST = 0x22008, /* not aligned, so that delivery must */
  PAGES = 0x70000,
};

/* Selectors. The first four are laid out as SYSENTER wants them. */
enum {
  CODE_0 = 0x08,
  DATA_0 = 0x10,
  CODE_3 = 0x1B,
  DATA_3 = 0x23,
  CONFORMING = 0x28,
  GATE = 0x30,
  TASK_A = 0x38,
  TASK_B = 0x40,
  TASK_GATE = 0x48,
  CODE16_0 = 0x50,
  DATA_ABSENT = 0x58,
  LOCAL = 0x60, /* the LDT's own */
  DATA_READ_ONLY = 0x68,
  CODE64_0 = 0x70,
  CODE64_3 = 0x7B,
  GATE64 = 0x80, /* 16 bytes, as the next */
  TASK64 = 0x90,
  BEYOND = 0x200, /* outside the limit */
};

struct guest {
  struct memory memory;
  struct cpu *cpu;
  struct lb_branch seen[64];
  unsigned count;
  uint8_t vector; /* of the external interrupt */
};

/* ---- the bus: nobody but a controller of interrupts ---- */

static uint8_t bus_acknowledge(void *data)
{
  struct guest *guest = data;
  cpu_set_line(guest->cpu, CPU_LINE_INTR, false);
  return guest->vector;
}

static void on_branch(void *data, const struct lb_branch *branch)
{
  struct guest *guest = data;
  if (guest->count < sizeof(guest->seen) / sizeof(guest->seen[0]))
    guest->seen[guest->count++] = *branch;
}

/* ---- memory ---- */

static void put(struct guest *g, uint64_t address, uint64_t value, size_t size)
{
  assert_true(memory_write(&g->memory, address, &value, size));
}

static uint64_t get(struct guest *g, uint64_t address, size_t size)
{
  uint64_t value = 0;
  assert_true(memory_read(&g->memory, address, &value, size));
  return value;
}

static void put_bytes(struct guest *g, uint64_t address, const uint8_t *bytes, size_t size)
{
  assert_true(memory_write(&g->memory, address, bytes, size));
}

#define code_at(guest, address, ...)                                                                                   \
  put_bytes(guest, address, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

#define LE16(value) (uint8_t)(value), (uint8_t)((value) >> 8)
#define LE32(value) LE16(value), LE16((value) >> 16)
#define LE64(value) LE32(value), LE32((uint64_t)(value) >> 32)

/* ---- descriptors ---- */

static void put_segment(struct guest *g, unsigned selector, uint32_t base, uint32_t limit, unsigned access,
                        unsigned flags)
{
  uint64_t raw = (limit & 0xFFFF) | (uint64_t)(base & 0xFFFFFF) << 16 | (uint64_t)access << 40 |
                 (uint64_t)(limit >> 16 & 0xF) << 48 | (uint64_t)flags << 52 | (uint64_t)(base >> 24) << 56;
  put(g, GDT + (selector & ~7u), raw, 8);
}

static uint64_t gate_bits(unsigned selector, uint64_t offset, unsigned access, unsigned count)
{
  return (offset & 0xFFFF) | (uint64_t)selector << 16 | (uint64_t)count << 32 | (uint64_t)access << 40 |
         (offset >> 16 & 0xFFFF) << 48;
}

static void put_vector(struct guest *g, unsigned vector, unsigned selector, uint64_t offset, unsigned access)
{
  put(g, IDT + 8 * vector, gate_bits(selector, offset, access, 0), 8);
}

static void put_vector_64(struct guest *g, unsigned vector, unsigned selector, uint64_t offset, unsigned access,
                          unsigned ist)
{
  put(g, IDT + 16 * vector, gate_bits(selector, offset, access, ist), 8);
  put(g, IDT + 16 * vector + 8, offset >> 32, 8);
}

static unsigned access_of(struct guest *g, unsigned selector)
{
  return (unsigned)get(g, GDT + (selector & ~7u) + 5, 1);
}

static void fill_gdt(struct guest *g)
{
  put_segment(g, CODE_0, 0, 0xFFFFF, 0x9A, 0xC);
  put_segment(g, DATA_0, 0, 0xFFFFF, 0x92, 0xC);
  put_segment(g, CODE_3, 0, 0xFFFFF, 0xFA, 0xC);
  put_segment(g, DATA_3, 0, 0xFFFFF, 0xF2, 0xC);
  put_segment(g, CONFORMING, 0, 0xFFFFF, 0x9E, 0xC);
  put_segment(g, TASK_A, TSS_A, 0x67, 0x89, 0);
  put_segment(g, TASK_B, TSS_B, 0x67, 0x89, 0);
  put_segment(g, CODE16_0, 0x10000, 0xFFFF, 0x9A, 0);
  put_segment(g, DATA_ABSENT, 0, 0xFFFFF, 0x12, 0xC);
  put_segment(g, LOCAL, LDT, 0xFF, 0x82, 0);
  put_segment(g, DATA_READ_ONLY, 0, 0xFFFFF, 0xF0, 0xC);
  put_segment(g, CODE64_0, 0, 0xFFFFF, 0x9A, 0xA);
  put_segment(g, CODE64_3, 0, 0xFFFFF, 0xFA, 0xA);
  put_segment(g, TASK64, TSS_A, 0x67, 0x89, 0);
  put(g, GDT + TASK64 + 8, 0, 8);
}

/* ---- guests ---- */

static struct guest *guest_new_model(const char *name)
{
  struct guest *g = calloc(1, sizeof(*g));
  assert_non_null(g);
  assert_int_equal(memory_init(&g->memory, 2 << 20), 0);
  g->memory.rom_start = 0x100000;
  g->memory.a20_mask = UINT64_MAX;
  const struct lb_cpu *model = NULL;
  assert_int_equal(lb_cpu_find(name, &model), 0);
  struct cpu_bus bus = bus_idle;
  bus.data = g;
  bus.acknowledge = bus_acknowledge;
  assert_int_equal(cpu_new(model, &g->memory, &bus, 0, &g->cpu), 0);
  return g;
}

static void guest_free(struct guest *g)
{
  cpu_free(g->cpu);
  memory_done(&g->memory);
  free(g);
}

static void set_segment(struct guest *g, unsigned number, unsigned selector, unsigned access)
{
  struct cpu_segment *s = &g->cpu->segment[number];
  *s = (struct cpu_segment){.selector = (uint16_t)selector, .access = (uint16_t)access, .limit = 0xFFFFFFFF};
}

/* Code segment, stack segment and pointer by the level of `code`. */
static void set_level(struct guest *g, unsigned code, unsigned code_access)
{
  unsigned level = code & 3;
  set_segment(g, CS, code, code_access);
  set_segment(g, SS, level ? DATA_3 : DATA_0, level ? 0xC0F3 : 0xC093);
  for (unsigned i = 0; i < 4; i++)
    set_segment(g, ((const uint8_t[]){ES, DS, FS, GS})[i], DATA_3, 0xC0F3);
  g->cpu->r[RSP] = level ? STACK_3 : STACK_0;
  cpu_changed(g->cpu);
}

static void set_task(struct guest *g, unsigned selector, uint32_t base, unsigned access)
{
  g->cpu->segment[TR] =
    (struct cpu_segment){.selector = (uint16_t)selector, .base = base, .limit = 0x67, .access = (uint16_t)access};
}

/* 32-bit protected mode, tables filled, in level `code & 3`; every exception ends in HLT at its own address. */
static struct guest *guest_new_32_of(const char *model, unsigned code)
{
  struct guest *g = guest_new_model(model);
  fill_gdt(g);
  for (unsigned i = 0; i < 32; i++) {
    put_vector(g, i, CODE_0, HANDLER + 0x10 * i, 0x8E);
    code_at(g, HANDLER + 0x10 * i, 0xF4);
  }
  put(g, TSS_A + 4, STACK_0, 4);
  put(g, TSS_A + 8, DATA_0, 4);
  cpu_enter_flat_protected(g->cpu, CODE);
  g->cpu->gdtr = (struct cpu_table){.base = GDT, .limit = 0x1FF};
  g->cpu->idtr = (struct cpu_table){.base = IDT, .limit = 0x7FF};
  put(g, GDT + TASK_A + 5, 0x8B, 1);
  set_task(g, TASK_A, TSS_A, 0x8B);
  set_level(g, code, code & 3 ? 0xC0FB : 0xC09B);
  cpu_listen(g->cpu, on_branch, g);
  return g;
}

static struct guest *guest_new_32(unsigned code)
{
  return guest_new_32_of("skylake", code);
}

/* 64-bit mode (or compatibility mode, by `code`), the first 2 MiB mapped for all. */
static struct guest *guest_new_64_of(const char *model, unsigned code)
{
  struct guest *g = guest_new_32_of(model, CODE_0);
  struct cpu *cpu = g->cpu;
  put(g, PAGES, (PAGES + 0x1000) | 7, 8);
  put(g, PAGES + 0x1000, (PAGES + 0x2000) | 7, 8);
  put(g, PAGES + 0x2000, 0x87, 8);
  for (unsigned i = 0; i < 32; i++)
    put_vector_64(g, i, CODE64_0, HANDLER + 0x10 * i, 0x8E, 0);
  put(g, TSS_A + 4, STACK_0, 8);
  put(g, TSS_A + 36, STACK_IST, 8);
  put(g, GDT + TASK64 + 5, 0x8B, 1);
  set_task(g, TASK64, TSS_A, 0x8B);
  cpu->cr3 = PAGES;
  cpu->cr4 |= CR4_PAE;
  cpu->efer |= EFER_LME | EFER_LMA | EFER_SCE;
  cpu->cr0 |= CR0_PG;
  cpu->idtr.limit = 0xFFF;
  bool is_64 = (code & ~3u) == CODE64_0 || (code & ~3u) == (CODE64_3 & ~3u);
  set_level(g, code, (code & 3 ? 0xFBu : 0x9Bu) | (is_64 ? 0xA000 : 0xC000));
  return g;
}

static struct guest *guest_new_64(unsigned code)
{
  return guest_new_64_of("skylake", code);
}

static void run(struct guest *g)
{
  assert_int_equal(cpu_run(g->cpu, 100), CPU_STOP_HALTED);
}

static void start(struct guest *g, uint64_t rip)
{
  cpu_set_rip(g->cpu, rip);
  g->cpu->activity = CPU_RUNNING;
}

/* Runs to the HLT at `address`. */
static void run_to(struct guest *g, uint64_t address)
{
  run(g);
  assert_int_equal(g->cpu->rip, address + 1);
}

static void expect_branch(struct guest *g, unsigned number, enum lb_branch_kind kind, uint64_t from, uint64_t to)
{
  assert_true(number < g->count);
  assert_string_equal(lb_branch_kind_name(g->seen[number].kind), lb_branch_kind_name(kind));
  assert_int_equal(g->seen[number].from, from);
  assert_int_equal(g->seen[number].to, to);
}

/* The exception's handler was entered with this error code on top of the frame. */
static void expect_exception(struct guest *g, unsigned vector, uint32_t error, uint32_t eip)
{
  run_to(g, HANDLER + 0x10 * vector);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), error);
  assert_int_equal(get(g, g->cpu->r[RSP] + 4, 4), eip);
}

/* ---- far jumps and calls ---- */

static void far_jump_to_segments(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  code_at(g, CODE, 0xEA, LE32(CODE + 0x20), LE16(CONFORMING | 3)); /* RPL of a conforming target does not count */
  code_at(g, CODE + 0x20, 0xEA, LE32(0x40), LE16(CODE16_0));
  code_at(g, CODE + 0x40, 0xF4);
  run(g);
  assert_int_equal(g->cpu->rip, 0x41);
  assert_int_equal(g->cpu->segment[CS].selector, CODE16_0);
  assert_int_equal(g->cpu->mode & MODE_BITS, MODE_16);
  assert_int_equal(access_of(g, CODE16_0), 0x9B); /* accessed now */
  expect_branch(g, 0, LB_BRANCH_FAR_JMP, CODE, CODE + 0x20);
  expect_branch(g, 1, LB_BRANCH_FAR_JMP, CODE + 0x20, 0x40);
  assert_int_equal(g->seen[1].to_base, 0x10000);
  assert_int_equal(g->seen[1].from_base, 0);
  guest_free(g);
}

static void far_jump_faults(void **state)
{
  (void)state;
  static const struct {
    unsigned selector;
    uint32_t offset;
    unsigned vector, error;
  } cases[] = {
    {0, CODE, 13, 0},
    {3, CODE, 13, 0},
    {BEYOND, CODE, 13, BEYOND},
    {DATA_0, CODE, 13, DATA_0},
    {CODE_3, CODE, 13, CODE_3 & ~3},  /* DPL 3 is not CPL 0 */
    {CODE_0 | 3, CODE, 13, CODE_0},   /* RPL > CPL */
    {CODE16_0, 0x10000, 13, 0},       /* beyond the limit */
    {LOCAL | 4, CODE, 13, LOCAL | 4}, /* LDTR is null */
    {TASK_A, 0, 13, TASK_A},          /* busy */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_32(CODE_0);
    code_at(g, CODE, 0xEA, LE32(cases[i].offset), LE16(cases[i].selector));
    expect_exception(g, cases[i].vector, cases[i].error, CODE);
    expect_branch(g, 0, LB_BRANCH_FAULT, CODE, HANDLER + 0x10 * cases[i].vector);
    assert_int_equal(g->cpu->r[RSP], STACK_0 - 16);
    guest_free(g);
  }
}

static void far_call_and_return(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  code_at(g, CODE, 0x68, LE32(0x1234), 0x9A, LE32(CODE + 0x20), LE16(CODE_0), 0xF4);
  code_at(g, CODE + 0x20, 0xCA, LE16(4)); /* retf 4 */
  run_to(g, CODE + 12);
  assert_int_equal(get(g, STACK_0 - 8, 4), CODE_0);
  assert_int_equal(get(g, STACK_0 - 12, 4), CODE + 12);
  assert_int_equal(g->cpu->r[RSP], STACK_0);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE + 5, CODE + 0x20);
  expect_branch(g, 1, LB_BRANCH_FAR_RET, CODE + 0x20, CODE + 12);
  guest_free(g);
}

static void call_gate_same_level(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, GDT + GATE, gate_bits(CODE_0, CODE + 0x20, 0x8C, 3), 8);
  code_at(g, CODE, 0x9A, LE32(0xDEADBEEF), LE16(GATE), 0xF4);
  code_at(g, CODE + 0x20, 0xF4);
  run_to(g, CODE + 0x20);
  assert_int_equal(g->cpu->r[RSP], STACK_0 - 8); /* no parameters without a new stack */
  assert_int_equal(get(g, STACK_0 - 8, 4), CODE + 7);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x20);
  guest_free(g);
}

static void call_gate_inner_32(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put(g, GDT + GATE, gate_bits(CODE_0, CODE + 0x40, 0xEC, 2), 8);
  code_at(g, CODE, 0x6A, 0x11, 0x6A, 0x22, 0x9A, LE32(0), LE16(GATE | 3), 0xCD, 5);
  put_vector(g, 5, CODE_0, HANDLER + 0x50, 0xEE);
  code_at(g, CODE + 0x40, 0xCA, LE16(8));
  set_segment(g, DS, DATA_0, 0xC093); /* as if it had been loaded inside: must not survive the return */
  run_to(g, HANDLER + 0x50);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE + 4, CODE + 0x40);
  assert_int_equal(g->seen[0].from_cpl, 3);
  assert_int_equal(g->seen[0].to_cpl, 0);
  expect_branch(g, 1, LB_BRANCH_FAR_RET, CODE + 0x40, CODE + 11);
  assert_int_equal(g->seen[1].to_cpl, 3);
  expect_branch(g, 2, LB_BRANCH_INT, CODE + 11, HANDLER + 0x50);
  assert_int_equal(g->cpu->segment[DS].selector, 0);
  /* INT's frame has overwritten three of the gate's words: SS, ESP and EFLAGS lie where SS, ESP and 0x11 were. */
  assert_int_equal(get(g, STACK_0 - 4, 4), DATA_3);
  assert_int_equal(get(g, STACK_0 - 8, 4), STACK_3); /* both stacks were relieved of the parameters */
  guest_free(g);
}

static void call_gate_inner_frames(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put(g, GDT + GATE, gate_bits(CODE_0, CODE + 0x40, 0xEC, 2), 8);
  code_at(g, CODE, 0x6A, 0x11, 0x6A, 0x22, 0x9A, LE32(0), LE16(GATE | 3));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  static const uint32_t wide[] = {CODE + 11, CODE_3, 0x22, 0x11, STACK_3 - 8, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(wide));
  for (unsigned i = 0; i < 6; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(wide) + 4 * i, 4), wide[i]);
  assert_int_equal(g->cpu->cpl, 0);
  assert_int_equal(g->cpu->segment[CS].selector, CODE_0);
  assert_int_equal(g->cpu->segment[SS].selector, DATA_0);
  guest_free(g);

  g = guest_new_32(CODE_3); /* a 16-bit gate pushes words, and its offset has 16 bits */
  put(g, GDT + GATE, gate_bits(CODE_0, 0xF000, 0xE4, 1), 8);
  code_at(g, CODE, 0x66, 0x6A, 0x33, 0x9A, LE32(0), LE16(GATE | 3));
  code_at(g, 0xF000, 0xF4);
  run_to(g, 0xF000);
  static const uint16_t narrow[] = {(CODE + 10) & 0xFFFF, CODE_3, 0x33, (STACK_3 - 2) & 0xFFFF, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(narrow));
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(narrow) + 2 * i, 2), narrow[i]);
  guest_free(g);
}

static void call_gate_faults(void **state)
{
  (void)state;
  static const struct {
    unsigned gate_access, code, stack;
    unsigned vector, error;
  } cases[] = {
    {0x8C, CODE_0, DATA_0, 13, GATE},             /* DPL of the gate */
    {0x6C, CODE_0, DATA_0, 11, GATE},             /* not present */
    {0xEC, 0, DATA_0, 13, 0},                     /* null in the gate */
    {0xEC, DATA_0, DATA_0, 13, DATA_0},           /* not code */
    {0xEC, CODE_0, 0, 10, 0},                     /* null SS0 */
    {0xEC, CODE_0, BEYOND, 10, BEYOND},           /* outside the table */
    {0xEC, CODE_0, DATA_3, 10, DATA_3 & ~3},      /* wrong level */
    {0xEC, CODE_0, CODE_0, 10, CODE_0},           /* not data */
    {0xEC, CODE_0, DATA_ABSENT, 12, DATA_ABSENT}, /* not present */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_32(CODE_3);
    /* The handler is conforming, so that it runs on the caller's stack: that of level 0 may be bad. */
    put_vector(g, cases[i].vector, CONFORMING, HANDLER + 0x10 * cases[i].vector, 0x8E);
    code_at(g, HANDLER + 0x10 * cases[i].vector, 0xEB, 0xFE);
    put(g, GDT + GATE, gate_bits(cases[i].code, CODE + 0x40, cases[i].gate_access, 0), 8);
    put(g, TSS_A + 8, cases[i].stack, 4);
    code_at(g, CODE, 0x9A, LE32(0), LE16(GATE | 3));
    assert_int_equal(cpu_run(g->cpu, 100), CPU_STOP_SPINNING);
    assert_int_equal(g->cpu->cpl, 3);
    assert_int_equal(g->cpu->r[RSP], STACK_3 - 16);
    assert_int_equal(get(g, STACK_3 - 16, 4), cases[i].error);
    assert_int_equal(get(g, STACK_3 - 12, 4), CODE);
    expect_branch(g, 0, LB_BRANCH_FAULT, CODE, HANDLER + 0x10 * cases[i].vector);
    guest_free(g);
  }
}

/* ---- IA-32e mode ---- */

static void put_gate_64(struct guest *g, unsigned selector, uint64_t offset, unsigned access)
{
  put(g, GDT + GATE64, gate_bits(selector, offset, access, 0), 8);
  put(g, GDT + GATE64 + 8, offset >> 32, 8);
}

static void call_gate_64(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_3);
  put_gate_64(g, CODE64_0, CODE + 0x40, 0xEC);
  code_at(g, CODE, 0xFF, 0x1C, 0x25, LE32(CODE + 0x80)); /* call far [m16:32] */
  code_at(g, CODE + 0x80, LE32(0), LE16(GATE64 | 3));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  static const uint64_t frame[] = {CODE + 7, CODE64_3, STACK_3, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 4; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 8 * i, 8), frame[i]);
  assert_int_equal(g->cpu->cpl, 0);
  assert_int_equal(g->cpu->segment[SS].selector, 0);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x40);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), 0);

  code_at(g, CODE + 0x41, 0x48, 0xCB); /* retfq, back to 64-bit code of level 3, which then faults */
  code_at(g, CODE + 7, 0xF4);
  start(g, CODE + 0x41);
  run_to(g, HANDLER + 0xD0);
  expect_branch(g, 1, LB_BRANCH_FAR_RET, CODE + 0x41, CODE + 7);
  expect_branch(g, 2, LB_BRANCH_FAULT, CODE + 7, HANDLER + 0xD0);
  assert_int_equal(get(g, STACK_0 - 16, 8), STACK_3); /* RSP of level 3 */
  guest_free(g);
}

static void call_gate_64_from_compatibility_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE_3);
  put_gate_64(g, CODE64_0, CODE + 0x40, 0xEC);
  code_at(g, CODE, 0x9A, LE32(0), LE16(GATE64 | 3));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->mode & MODE_BITS, MODE_64);
  assert_int_equal(get(g, STACK_0 - 32, 8), CODE + 7);
  assert_int_equal(get(g, STACK_0 - 24, 8), CODE_3);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x40);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  guest_free(g);

  g = guest_new_64(CODE_3); /* gates lead to 64-bit code only */
  put_gate_64(g, CODE_0, CODE + 0x40, 0xEC);
  code_at(g, CODE, 0x9A, LE32(0), LE16(GATE64 | 3));
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), CODE_0);
  guest_free(g);
}

static void compatibility_mode_call_and_return(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  g->cpu->r[RBX] = UINT64_C(0x100000000);
  code_at(g, CODE, 0x48, 0xFF, 0x1C, 0x25, LE32(CODE + 0x80), 0xF4); /* call far [m16:64] */
  code_at(g, CODE + 0x80, LE64(CODE + 0x40), LE16(CODE_0));
  /* In compatibility mode 48 is DEC EAX; the stack holds 8-byte words, so a far jump leads back. */
  code_at(g, CODE + 0x40, 0x48, 0xEA, LE32(CODE + 0x60), LE16(CODE64_0));
  code_at(g, CODE + 0x60, 0x48, 0xCB); /* retfq */
  run_to(g, CODE + 8);
  assert_int_equal(g->cpu->r[RAX] & 0xFFFFFFFF, 0xFFFFFFFF);
  assert_int_equal(g->cpu->r[RSP], STACK_0);
  assert_int_equal(g->cpu->mode & MODE_BITS, MODE_64);
  assert_int_equal(get(g, STACK_0 - 8, 8), CODE64_0);
  assert_int_equal(get(g, STACK_0 - 16, 8), CODE + 8);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_FAR_JMP, CODE + 0x41, CODE + 0x60);
  expect_branch(g, 2, LB_BRANCH_FAR_RET, CODE + 0x60, CODE + 8);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_TO_32);
  assert_int_equal(g->seen[1].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  guest_free(g);
}

static void long_mode_far_faults(void **state)
{
  (void)state;
  static const struct {
    uint64_t offset;
    unsigned selector, error;
  } cases[] = {
    {UINT64_C(0x800000000000), CODE64_0, 0}, /* not canonical */
    {UINT64_C(0x100000000), CODE_0, 0},      /* beyond the limit of compatibility mode */
    {0, TASK64, TASK64},                     /* no task switches */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_64(CODE64_0);
    code_at(g, CODE, 0x48, 0xFF, 0x2C, 0x25, LE32(CODE + 0x80)); /* jmp far [m16:64] */
    code_at(g, CODE + 0x80, LE64(cases[i].offset), LE16(cases[i].selector));
    run_to(g, HANDLER + 0xD0);
    assert_int_equal(get(g, g->cpu->r[RSP], 8), cases[i].error);
    assert_int_equal(get(g, g->cpu->r[RSP] + 8, 8), CODE);
    guest_free(g);
  }
}

/* ---- interrupts ---- */

static void int_from_level_3(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 0x80, CODE_0, CODE + 0x40, 0xEE);
  code_at(g, CODE, 0xCD, 0x80, 0xCD, 0x80);
  code_at(g, CODE + 0x40, 0xF4);
  cpu_set_flags(g->cpu, 0x202);
  run_to(g, CODE + 0x40);
  static const uint32_t frame[] = {CODE + 2, CODE_3, 0x202, STACK_3, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 4 * i, 4), frame[i]);
  assert_int_equal(cpu_flags(g->cpu), 2);
  code_at(g, CODE + 0x41, 0xCF);
  start(g, CODE + 0x41);
  run_to(g, CODE + 0x40); /* back, and in again */
  assert_int_equal(get(g, STACK_0 - 20, 4), CODE + 4);
  expect_branch(g, 0, LB_BRANCH_INT, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_IRET, CODE + 0x41, CODE + 2);
  expect_branch(g, 2, LB_BRANCH_INT, CODE + 2, CODE + 0x40);
  assert_int_equal(g->seen[1].from_cpl, 0);
  assert_int_equal(g->seen[1].to_cpl, 3);
  guest_free(g);
}

static void interrupt_16_bit_gate(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 0x80, CODE_0, 0xF000, 0xE7); /* 16-bit trap gate: IF stays */
  code_at(g, CODE, 0xCD, 0x80);
  code_at(g, 0xF000, 0xF4);
  cpu_set_flags(g->cpu, 0x203);
  run_to(g, 0xF000);
  static const uint16_t frame[] = {(CODE + 2) & 0xFFFF, CODE_3, 0x203, STACK_3 & 0xFFFF, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 2 * i, 2), frame[i]);
  assert_int_equal(cpu_flags(g->cpu), 0x203);
  guest_free(g);
}

static void external_interrupt(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 0x40, CODE_0, CODE + 0x40, 0x8E); /* its DPL does not count */
  code_at(g, CODE, 0x90, 0xEB, 0xFE);
  code_at(g, CODE + 0x40, 0xF4);
  g->vector = 0x40;
  cpu_set_flags(g->cpu, 0x202);
  cpu_set_line(g->cpu, CPU_LINE_INTR, true);
  run_to(g, CODE + 0x40);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE);
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 4), 0x202); /* RF is 0 */
  expect_branch(g, 0, LB_BRANCH_INTERRUPT, CODE, CODE + 0x40);
  assert_int_equal(g->seen[0].from_cpl, 3);
  guest_free(g);
}

static void nmi_is_blocked_until_iret(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  code_at(g, CODE, 0x90, 0xF4);
  code_at(g, HANDLER + 0x20, 0x90, 0xCF);
  cpu_signal(g->cpu, CPU_NMI);
  assert_int_equal(cpu_run(g->cpu, 1), CPU_STOP_BUDGET); /* NOP of the handler */
  assert_true(g->cpu->is_nmi_blocked);
  cpu_signal(g->cpu, CPU_NMI);
  run_to(g, CODE + 1);
  assert_false(g->cpu->is_nmi_blocked);
  assert_int_equal(g->count, 4);
  expect_branch(g, 0, LB_BRANCH_NMI, CODE, HANDLER + 0x20);
  expect_branch(g, 1, LB_BRANCH_IRET, HANDLER + 0x21, CODE);
  expect_branch(g, 2, LB_BRANCH_NMI, CODE, HANDLER + 0x20);
  expect_branch(g, 3, LB_BRANCH_IRET, HANDLER + 0x21, CODE);
  guest_free(g);
}

static void interrupt_stack_table(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  put_vector_64(g, 0x80, CODE64_0, CODE + 0x40, 0x8E, 1);
  code_at(g, CODE, 0xCD, 0x80, 0xF4);
  code_at(g, CODE + 0x40, 0x48, 0xCF); /* iretq */
  cpu_set_flags(g->cpu, 0x202);
  g->cpu->r[RSP] = STACK_0 - 4;
  run_to(g, CODE + 2);
  uint64_t top = STACK_IST & ~UINT64_C(15);
  static const uint64_t frame[] = {CODE + 2, CODE64_0, 0x202, STACK_0 - 4, DATA_0};
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, top - sizeof(frame) + 8 * i, 8), frame[i]);
  assert_int_equal(g->cpu->r[RSP], STACK_0 - 4);
  assert_int_equal(g->cpu->segment[SS].selector, DATA_0);
  expect_branch(g, 0, LB_BRANCH_INT, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_IRET, CODE + 0x40, CODE + 2);
  guest_free(g);
}

static void interrupt_from_compatibility_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE_3);
  put_vector_64(g, 0x80, CODE64_0, CODE + 0x40, 0xEE, 0);
  code_at(g, CODE, 0xCD, 0x80, 0x90, 0xF4);
  code_at(g, CODE + 0x40, 0x48, 0xCF);
  run_to(g, HANDLER + 0xD0);                    /* HLT at level 3 faults */
  assert_int_equal(get(g, STACK_0 - 48, 8), 0); /* the error code */
  assert_int_equal(get(g, STACK_0 - 40, 8), CODE + 3);
  assert_int_equal(get(g, STACK_0 - 32, 8), CODE_3);
  assert_int_equal(get(g, STACK_0 - 24, 8) & FLAG_RF, FLAG_RF);
  assert_int_equal(get(g, STACK_0 - 16, 8), STACK_3);
  assert_int_equal(get(g, STACK_0 - 8, 8), DATA_3);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  assert_int_equal(g->seen[1].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_TO_32);
  expect_branch(g, 1, LB_BRANCH_IRET, CODE + 0x40, CODE + 2);
  expect_branch(g, 2, LB_BRANCH_FAULT, CODE + 3, HANDLER + 0xD0);
  guest_free(g);
}

static void gate_error_codes(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3); /* INT n at a gate of level 0 */
  code_at(g, CODE, 0xCD, 6);
  expect_exception(g, 13, 6 * 8 + 2, CODE);
  assert_int_equal(get(g, g->cpu->r[RSP] + 12, 4) & FLAG_RF, FLAG_RF);
  guest_free(g);

  g = guest_new_32(CODE_0); /* not present */
  put_vector(g, 0x80, CODE_0, CODE, 0x6E);
  code_at(g, CODE, 0xCD, 0x80);
  expect_exception(g, 11, 0x80 * 8 + 2, CODE);
  guest_free(g);

  g = guest_new_32(CODE_0); /* beyond the limit of IDTR */
  g->cpu->idtr.limit = 0x3FF;
  code_at(g, CODE, 0xCD, 0x80);
  expect_exception(g, 13, 0x80 * 8 + 2, CODE);
  guest_free(g);

  g = guest_new_32(CODE_0); /* the same for an external interrupt: EXT */
  g->vector = 0x80;
  g->cpu->idtr.limit = 0x3FF;
  cpu_set_flags(g->cpu, 0x202);
  cpu_set_line(g->cpu, CPU_LINE_INTR, true);
  code_at(g, CODE, 0x90, 0xF4);
  expect_exception(g, 13, 0x80 * 8 + 3, CODE);
  guest_free(g);
}

static void double_and_triple_fault(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, IDT + 8 * 13, 0, 8); /* #GP on the way to #GP */
  code_at(g, CODE, 0x66, 0xB8, LE16(BEYOND), 0x8E, 0xD8);
  expect_exception(g, 8, 0, CODE + 4);
  assert_int_equal(g->count, 1);
  expect_branch(g, 0, LB_BRANCH_FAULT, CODE + 4, HANDLER + 0x80);
  guest_free(g);

  g = guest_new_32(CODE_0); /* INT 11 is no exception: #GP on its way is #GP */
  put_vector(g, 11, BEYOND, 0, 0x8E);
  code_at(g, CODE, 0xCD, 11);
  expect_exception(g, 13, BEYOND, CODE);
  guest_free(g);

  g = guest_new_32(CODE_0);
  put(g, IDT + 8 * 13, 0, 8);
  put(g, IDT + 8 * 8, 0, 8);
  code_at(g, CODE, 0x66, 0xB8, LE16(BEYOND), 0x8E, 0xD8);
  assert_int_equal(cpu_run(g->cpu, 100), CPU_STOP_SHUTDOWN);
  assert_int_equal(g->count, 0);
  guest_free(g);
}

static void int1_is_not_recorded(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  code_at(g, CODE, 0xF1); /* its gate has DPL 0, which does not count */
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE + 1);
  assert_int_equal(g->count, 0);
  guest_free(g);
}

static void int3_and_into(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 3, CODE_0, HANDLER + 0x30, 0xEE);
  put_vector(g, 4, CODE_0, HANDLER + 0x40, 0xEE);
  code_at(g, HANDLER + 0x30, 0xCF);
  code_at(g, CODE, 0xCC, 0xCE, 0xB0, 0x7F, 0xFE, 0xC0, 0xCE); /* int3; into; mov al, 127; inc al; into */
  run_to(g, HANDLER + 0x40);
  assert_int_equal(g->count, 3);
  expect_branch(g, 0, LB_BRANCH_INT3, CODE, HANDLER + 0x30);
  expect_branch(g, 2, LB_BRANCH_INTO, CODE + 6, HANDLER + 0x40);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE + 7);
  guest_free(g);
}

static void iret_to_16_bit_stack(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  static const uint32_t frame[] = {CODE + 0x40, CODE_3, 2, 0x11110800, 0x33 | 3};
  put_segment(g, 0x30, 0x30000, 0xFFFF, 0xF2, 0);
  g->cpu->r[RSP] = STACK_0 - sizeof(frame);
  for (unsigned i = 0; i < 5; i++)
    put(g, STACK_0 - sizeof(frame) + 4 * i, frame[i], 4);
  code_at(g, CODE, 0xCF);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, STACK_0 - 8, 4), ((STACK_0 - sizeof(frame)) & 0xFFFF0000) | 0x800); /* the upper half stays */
  guest_free(g);
}

static void iret_in_long_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  static const uint64_t frame[] = {CODE + 0x40, CODE64_0, 2, STACK_0, 0}; /* a null SS below level 3 */
  g->cpu->r[RSP] = STACK_0 - sizeof(frame);
  for (unsigned i = 0; i < 5; i++)
    put(g, STACK_0 - sizeof(frame) + 8 * i, frame[i], 8);
  code_at(g, CODE, 0x48, 0xCF);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->segment[SS].selector, 0);
  expect_branch(g, 0, LB_BRANCH_IRET, CODE, CODE + 0x40);
  guest_free(g);

  g = guest_new_64(CODE64_0); /* there are no nested tasks */
  cpu_set_flags(g->cpu, 0x4002);
  code_at(g, CODE, 0x48, 0xCF);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), 0);
  guest_free(g);
}

/* #AC and #NP in each other's delivery: serial by the manual's table, and endless. */
static void alignment_in_delivery_ends(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  g->cpu->cr0 |= CR0_AM;
  cpu_set_flags(g->cpu, FLAG_AC | 2);
  put_vector(g, 6, CONFORMING, HANDLER + 0x60, 0x8E);
  put_vector(g, 11, CONFORMING, HANDLER + 0xB0, 0x8E);
  put_vector(g, 17, CONFORMING, HANDLER, 0x0E); /* not present */
  g->cpu->r[RSP] = STACK_3 - 1;
  code_at(g, CODE, 0x0F, 0x0B); /* ud2 */
  cpu_changed(g->cpu);
  run_to(g, HANDLER + 0x80);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), 0);
  guest_free(g);
}

static void code_breakpoint_leaves_rf(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  g->cpu->dr[0] = CODE + 1;
  g->cpu->dr[7] = 0x402;
  cpu_changed(g->cpu);
  code_at(g, CODE, 0x90, 0x90, 0xF4);
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE + 1); /* a fault: before the instruction */
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 4) & FLAG_RF, 0);
  assert_int_equal(g->cpu->dr[6] & 0xF, 1);
  put(g, g->cpu->r[RSP] + 8, 2 | FLAG_RF, 4);
  code_at(g, HANDLER + 0x11, 0xCF);
  start(g, HANDLER + 0x11);
  run_to(g, CODE + 2);
  assert_int_equal(cpu_flags(g->cpu) & FLAG_RF, 0);
  guest_free(g);
}

static void real_mode_interrupt(void **state)
{
  (void)state;
  struct guest *g = guest_new_model("skylake");
  cpu_load_real_segment(g->cpu, CS, 0x1000);
  cpu_load_real_segment(g->cpu, SS, 0x2000);
  cpu_set_rip(g->cpu, 0);
  g->cpu->r[RSP] = 0x100;
  put(g, 4 * 0x21, 0x11000040, 4); /* 1100:0040 */
  code_at(g, 0x10000, 0xCD, 0x21, 0xF4);
  code_at(g, 0x11040, 0xCF);
  cpu_set_flags(g->cpu, 0x202);
  cpu_changed(g->cpu);
  cpu_listen(g->cpu, on_branch, g);
  run_to(g, 2);
  assert_int_equal(g->cpu->r[RSP], 0x100);
  assert_int_equal(get(g, 0x200FA, 2), 2);
  assert_int_equal(get(g, 0x200FC, 2), 0x1000);
  assert_int_equal(get(g, 0x200FE, 2), 0x202);
  assert_int_equal(cpu_flags(g->cpu), 0x202);
  expect_branch(g, 0, LB_BRANCH_INT, 0, 0x40);
  assert_int_equal(g->seen[0].to_base, 0x11000);
  expect_branch(g, 1, LB_BRANCH_IRET, 0x40, 2);
  guest_free(g);
}

static void delivery_is_restartable(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_3);
  /* Pages of 4 KiB, of which that below STACK_0 is not there: the frame reaches it. #PF has a stack of its own. */
  put(g, PAGES + 0x2000, (PAGES + 0x3000) | 7, 8);
  for (unsigned i = 0; i < 512; i++)
    put(g, PAGES + 0x3000 + 8 * i, i * 0x1000u | 7, 8);
  put(g, PAGES + 0x3000 + 8 * (STACK_0 / 0x1000 - 1), 0, 8);
  put_vector_64(g, 14, CODE64_0, HANDLER + 0xE0, 0x8E, 1);
  put_vector_64(g, 0x80, CODE64_0, CODE + 0x40, 0xEE, 0);
  put(g, TSS_A + 4, STACK_0 + 16, 8);
  put(g, STACK_0, UINT64_C(0x5555555555555555), 8);
  code_at(g, CODE, 0xCD, 0x80);
  run_to(g, HANDLER + 0xE0);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), 2); /* a supervisor's write to a page that is not present */
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 8), CODE);
  assert_int_equal(get(g, g->cpu->r[RSP] + 32, 8), STACK_3);
  assert_int_equal(get(g, STACK_0, 8), UINT64_C(0x5555555555555555)); /* nothing of the frame was written */
  guest_free(g);
}

/* ---- tasks ---- */

static void fill_task(struct guest *g, uint32_t tss, uint32_t eip, uint32_t esp)
{
  static const uint16_t segments[] = {DATA_0, CODE_0, DATA_0, DATA_0, 0, DATA_3};
  put(g, tss + 4, STACK_0, 4);
  put(g, tss + 8, DATA_0, 4);
  put(g, tss + 0x20, eip, 4);
  put(g, tss + 0x24, 0x202, 4);
  put(g, tss + 0x28, 0xAAAA0001, 4); /* EAX */
  put(g, tss + 0x38, esp, 4);
  for (unsigned i = 0; i < 6; i++)
    put(g, tss + 0x48 + 4 * i, segments[i], 4);
}

static void task_by_jump(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  code_at(g, CODE + 0x40, 0xF4);
  g->cpu->r[RBX] = 0x12345678;
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_B);
  assert_int_equal(access_of(g, TASK_A), 0x89); /* available again */
  assert_int_equal(access_of(g, TASK_B), 0x8B); /* busy */
  assert_int_equal(g->cpu->r[RAX], 0xAAAA0001);
  assert_int_equal(g->cpu->r[RSP], STACK_3);
  assert_int_equal(g->cpu->segment[GS].selector, DATA_3);
  assert_int_equal(g->cpu->segment[FS].access, 0);
  assert_int_equal(cpu_flags(g->cpu), 0x202); /* no NT */
  assert_true(g->cpu->cr0 & CR0_TS);
  assert_int_equal(get(g, TSS_A + 0x20, 4), CODE + 7); /* saved */
  assert_int_equal(get(g, TSS_A + 0x34, 4), 0x12345678);
  assert_int_equal(get(g, TSS_A + 0x4C, 2), CODE_0);
  assert_int_equal(g->count, 1);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, CODE + 0x40);
  guest_free(g);
}

static void task_by_call_and_iret(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, GDT + TASK_GATE, gate_bits(TASK_B, 0, 0x85, 0), 8);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  code_at(g, CODE, 0x9A, LE32(0), LE16(TASK_GATE), 0xF4);
  code_at(g, CODE + 0x40, 0x40, 0xCF); /* inc eax; iret */
  run_to(g, CODE + 7);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_A);
  assert_int_equal(access_of(g, TASK_A), 0x8B);
  assert_int_equal(access_of(g, TASK_B), 0x89);
  assert_int_equal(get(g, TSS_B, 2), TASK_A); /* the link */
  assert_int_equal(get(g, TSS_B + 0x20, 4), CODE + 0x42);
  assert_int_equal(get(g, TSS_B + 0x28, 4), 0xAAAA0002);
  assert_int_equal(get(g, TSS_B + 0x24, 4) & FLAG_NT, 0);
  assert_int_equal(g->cpu->r[RSP], STACK_0);
  assert_int_equal(g->count, 2);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_TASK_SWITCH, CODE + 0x41, CODE + 7);
  guest_free(g);
}

static void task_by_exception(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  put_vector(g, 13, TASK_B, 0, 0x85);
  code_at(g, CODE, 0x66, 0xB8, LE16(BEYOND), 0x8E, 0xD8);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->r[RSP], STACK_3 - 4);
  assert_int_equal(get(g, STACK_3 - 4, 4), BEYOND);    /* the error code on the new stack */
  assert_int_equal(get(g, TSS_A + 0x20, 4), CODE + 4); /* the faulting instruction */
  assert_true(get(g, TSS_A + 0x24, 4) & FLAG_RF);
  assert_true(cpu_flags(g->cpu) & FLAG_NT);
  assert_int_equal(get(g, TSS_B, 2), TASK_A);
  assert_int_equal(access_of(g, TASK_A), 0x8B); /* both busy */
  assert_int_equal(access_of(g, TASK_B), 0x8B);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE + 4, CODE + 0x40);
  guest_free(g);
}

static void task_16_bit(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put_segment(g, TASK_B, TSS_B, 0x2B, 0x81, 0);
  put(g, TSS_B + 0x0E, 0x40, 2);
  put(g, TSS_B + 0x10, 0x202, 2);
  put(g, TSS_B + 0x12, 0xBEEF, 2);
  put(g, TSS_B + 0x1A, 0x800, 2);
  put(g, TSS_B + 0x22, DATA_0, 2);
  put(g, TSS_B + 0x24, CODE16_0, 2);
  put(g, TSS_B + 0x26, DATA_0, 2);
  put(g, TSS_B + 0x28, DATA_0, 2);
  code_at(g, CODE, 0x9A, LE32(0), LE16(TASK_B), 0xF4);
  code_at(g, CODE + 0x40, 0x66, 0xCF); /* iretd: the size does not matter */
  run_to(g, CODE + 7);
  assert_int_equal(get(g, TSS_B, 2), TASK_A);
  assert_int_equal(get(g, TSS_B + 0x0E, 2), 0x42);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, 0x40);
  assert_int_equal(g->seen[0].to_base, 0x10000);
  guest_free(g);
}

static void task_trap_flag(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  put(g, TSS_B + 0x64, 1, 2);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, STACK_3 - 12, 4), CODE + 0x40);
  assert_true(g->cpu->dr[6] & DR6_BT);
  assert_int_equal(g->count, 1); /* #DB is not reported */
  guest_free(g);
}

static void task_faults(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0); /* a limit that is too small: in the old task */
  put_segment(g, TASK_B, TSS_B, 0x66, 0x89, 0);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  expect_exception(g, 10, TASK_B, CODE);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_A);
  guest_free(g);

  g = guest_new_32(CODE_0); /* a bad SS: in the new one */
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  put(g, TSS_B + 0x4C, CODE_3, 2);
  put(g, TSS_B + 0x50, DATA_0, 2);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  expect_exception(g, 10, DATA_0, CODE + 0x40);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_B);
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 4), CODE_3);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_FAULT, CODE + 0x40, HANDLER + 0xA0);
  guest_free(g);

  g = guest_new_32(CODE_0); /* IRET with NT and a link to what is no busy TSS */
  put(g, TSS_A, TASK_B, 2);
  cpu_set_flags(g->cpu, 0x4002);
  code_at(g, CODE, 0xCF);
  expect_exception(g, 10, TASK_B, CODE);
  guest_free(g);
}

/* ---- virtual-8086 mode ---- */

static void push_v8086_frame(struct guest *g, uint32_t eflags)
{
  static const uint32_t tail[] = {0x800, 0x2200, 0x2300, 0x2400, 0x2500, 0x2600}; /* ESP SS ES DS FS GS */
  g->cpu->r[RSP] = STACK_0 - 36;
  put(g, STACK_0 - 36, 0, 4);
  put(g, STACK_0 - 32, 0x1800, 4);
  put(g, STACK_0 - 28, eflags, 4);
  for (unsigned i = 0; i < 6; i++)
    put(g, STACK_0 - 24 + 4 * i, tail[i], 4);
}

static void v8086_in_and_out(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  push_v8086_frame(g, FLAG_VM | FLAG_IOPL | 0x202);
  code_at(g, CODE, 0xCF);
  code_at(g, 0x18000, 0xCD, 0x30);
  put_vector(g, 0x30, CODE_0, CODE + 0x40, 0xEE);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  static const uint32_t frame[] = {2,      0x1800, FLAG_VM | FLAG_IOPL | 0x202, 0x800, 0x2200, 0x2300, 0x2400,
                                   0x2500, 0x2600};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 9; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 4 * i, 4), frame[i]);
  assert_int_equal(cpu_flags(g->cpu) & (FLAG_VM | FLAG_IF), 0);
  assert_int_equal(g->cpu->segment[DS].access, 0); /* null */
  expect_branch(g, 0, LB_BRANCH_IRET, CODE, 0);
  assert_int_equal(g->seen[0].to_base, 0x18000);
  assert_int_equal(g->seen[0].to_cpl, 3);
  expect_branch(g, 1, LB_BRANCH_INT, 0, CODE + 0x40);
  assert_int_equal(g->seen[1].from_base, 0x18000);
  guest_free(g);
}

static void v8086_int_needs_iopl(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  push_v8086_frame(g, FLAG_VM | 0x202);
  code_at(g, CODE, 0xCF);
  code_at(g, 0x18000, 0xCD, 0x30);
  expect_exception(g, 13, 0, 0);
  guest_free(g);
}

static void v8086_redirection(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  g->cpu->segment[TR].limit = 0xFF;
  g->cpu->cr4 |= CR4_VME;
  put(g, TSS_A + 0x66, 0x88, 2); /* I/O map; the redirection map lies before it, all zero */
  push_v8086_frame(g, FLAG_VM | FLAG_VIF | 0x202);
  code_at(g, CODE, 0xCF);
  code_at(g, 0x18000, 0xCD, 0x21, 0xCD, 0x22);
  put(g, 4 * 0x21, 0x18100000, 4); /* 1810:0000 */
  code_at(g, 0x18100, 0xCF);
  put(g, TSS_A + 0x68 + 0x22 / 8, 1 << (0x22 & 7), 1); /* INT 22h is not redirected */
  expect_exception(g, 13, 0, 2);
  assert_int_equal(get(g, 0x22800 - 2, 2), 0x3202); /* IF is VIF, IOPL reads 3 */
  assert_int_equal(get(g, 0x22800 - 4, 2), 0x1800);
  assert_int_equal(get(g, 0x22800 - 6, 2), 2);
  assert_true(get(g, g->cpu->r[RSP] + 12, 4) & FLAG_VIF); /* IRET gave it back */
  expect_branch(g, 1, LB_BRANCH_INT, 0, 0);
  assert_int_equal(g->seen[1].to_base, 0x18100);
  assert_int_equal(g->seen[1].to_cpl, 3);
  expect_branch(g, 2, LB_BRANCH_IRET, 0, 2);
  guest_free(g);
}

/* ---- system calls ---- */

static void sysenter_and_sysexit(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  g->cpu->sysenter_cs = CODE_0;
  g->cpu->sysenter_esp = STACK_0;
  g->cpu->sysenter_eip = CODE + 0x40;
  g->cpu->r[RDX] = CODE + 2;
  g->cpu->r[RCX] = STACK_3 - 0x10;
  code_at(g, CODE, 0x0F, 0x34, 0xF4);
  code_at(g, CODE + 0x40, 0x0F, 0x35);
  cpu_set_flags(g->cpu, 0x202);
  run_to(g, HANDLER + 0xD0); /* HLT of level 3 */
  assert_int_equal(get(g, STACK_0 - 20, 4), CODE + 2);
  assert_int_equal(get(g, STACK_0 - 16, 4), CODE_3);
  assert_int_equal(get(g, STACK_0 - 12, 4) & FLAG_IF, 0); /* SYSEXIT does not give it back */
  assert_int_equal(get(g, STACK_0 - 8, 4), STACK_3 - 0x10);
  assert_int_equal(get(g, STACK_0 - 4, 4), DATA_3);
  expect_branch(g, 0, LB_BRANCH_SYSENTER, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_SYSEXIT, CODE + 0x40, CODE + 2);
  guest_free(g);

  g = guest_new_32(CODE_3); /* no selector: #GP(0) */
  code_at(g, CODE, 0x0F, 0x34);
  expect_exception(g, 13, 0, CODE);
  guest_free(g);
}

static void syscall_and_sysret_64(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_3);
  g->cpu->star = (uint64_t)CODE_0 << 32 | (uint64_t)0x18 << 48;
  g->cpu->lstar = CODE + 0x40;
  g->cpu->fmask = FLAG_IF | FLAG_CF;
  code_at(g, CODE, 0x0F, 0x05, 0xF4);
  code_at(g, CODE + 0x40, 0x48, 0x0F, 0x07);
  cpu_set_flags(g->cpu, 0x203);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(g->cpu->r[RCX], CODE + 2);
  assert_int_equal(g->cpu->r[R11], 0x203);
  assert_int_equal(get(g, STACK_0 - 32, 8), 0x2B); /* STAR[63:48] + 16, RPL 3 */
  assert_int_equal(get(g, STACK_0 - 24, 8), 0x203 | FLAG_RF);
  assert_int_equal(get(g, STACK_0 - 8, 8), 0x23);
  expect_branch(g, 0, LB_BRANCH_SYSCALL, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_SYSRET, CODE + 0x40, CODE + 2);
  guest_free(g);

  g = guest_new_64(CODE64_0); /* SYSRET to what is not canonical faults before it leaves level 0 */
  g->cpu->r[RCX] = UINT64_C(0x800000000000);
  code_at(g, CODE, 0x48, 0x0F, 0x07);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, g->cpu->r[RSP] + 16, 8), CODE64_0);
  guest_free(g);
}

static void sysret_single_steps_at_once(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  g->cpu->star = (uint64_t)0x18 << 48;
  g->cpu->r[RCX] = CODE + 0x40;
  g->cpu->r[R11] = FLAG_TF | 2;
  code_at(g, CODE, 0x48, 0x0F, 0x07);
  code_at(g, CODE + 0x40, 0x90, 0x90);
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), CODE + 0x40);
  assert_true(g->cpu->dr[6] & DR6_BS);
  guest_free(g);
}

static void sysenter_64(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE_3); /* from compatibility mode into 64-bit mode, and out to 64-bit mode */
  g->cpu->sysenter_cs = CODE_0;
  g->cpu->sysenter_esp = STACK_0;
  g->cpu->sysenter_eip = CODE + 0x40;
  g->cpu->r[RDX] = CODE + 2;
  g->cpu->r[RCX] = STACK_3;
  code_at(g, CODE, 0x0F, 0x34, 0x48, 0xFF, 0xC0, 0xF4); /* sysenter; inc rax; hlt */
  code_at(g, CODE + 0x40, 0x48, 0x0F, 0x35);
  g->cpu->r[RAX] = 0xFFFFFFFF;
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(g->cpu->r[RAX], UINT64_C(0x100000000));
  assert_int_equal(get(g, STACK_0 - 32, 8), CODE_0 + 32 + 3);
  assert_int_equal(get(g, STACK_0 - 8, 8), CODE_0 + 40 + 3);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  assert_int_equal(g->seen[1].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), 0);
  guest_free(g);
}

static void syscall_outside_64_bit_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3); /* Intel: #UD */
  g->cpu->efer |= EFER_SCE;
  code_at(g, CODE, 0x0F, 0x05);
  run_to(g, HANDLER + 0x60);
  guest_free(g);

  g = guest_new_32_of("zen2", CODE_3);
  g->cpu->efer |= EFER_SCE;
  g->cpu->star = (uint64_t)CODE_0 << 32 | (uint64_t)0x18 << 48 | (CODE + 0x40);
  code_at(g, CODE, 0x0F, 0x05, 0xF4);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->r[RCX], CODE + 2);
  assert_int_equal(g->cpu->cpl, 0);
  expect_branch(g, 0, LB_BRANCH_SYSCALL, CODE, CODE + 0x40);
  guest_free(g);
}

/* ---- segment registers ---- */

static void segment_load_faults(void **state)
{
  (void)state;
  static const struct {
    unsigned code, number, selector, vector, error;
  } cases[] = {
    {CODE_0, SS, 0, 13, 0},
    {CODE_0, SS, DATA_3, 13, DATA_3 & ~3},
    {CODE_0, SS, DATA_0 | 3, 13, DATA_0},
    {CODE_0, SS, DATA_READ_ONLY, 13, DATA_READ_ONLY},
    {CODE_0, SS, DATA_ABSENT, 12, DATA_ABSENT},
    {CODE_0, DS, DATA_ABSENT, 11, DATA_ABSENT},
    {CODE_0, ES, TASK_A, 13, TASK_A},
    {CODE_0, FS, BEYOND, 13, BEYOND},
    {CODE_3, DS, DATA_0, 13, DATA_0},
    {CODE_0, DS, DATA_0 | 3, 13, DATA_0}, /* RPL > DPL */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_32(cases[i].code);
    g->cpu->r[RAX] = cases[i].selector;
    code_at(g, CODE, 0x8E, 0xC0 | cases[i].number << 3);
    expect_exception(g, cases[i].vector, cases[i].error, CODE);
    guest_free(g);
  }
}

static void segment_loads(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 5, CODE_0, HANDLER + 0x50, 0xEE);
  /* mov eax, CONFORMING; mov ds, ax (its DPL does not count); xor eax, eax; mov es, ax; lfs ecx, [0x10080]; int 5 */
  code_at(g, CODE, 0xB8, LE32(CONFORMING), 0x8E, 0xD8, 0x31, 0xC0, 0x8E, 0xC0, 0x0F, 0xB4, 0x0D, LE32(CODE + 0x80),
          0xCD, 5);
  code_at(g, CODE + 0x80, LE32(0x87654321), LE16(DATA_3));
  run_to(g, HANDLER + 0x50);
  assert_int_equal(g->cpu->segment[DS].selector, CONFORMING);
  assert_int_equal(g->cpu->segment[ES].access, 0);
  assert_int_equal(g->cpu->segment[FS].selector, DATA_3);
  assert_int_equal(g->cpu->r[RCX], 0x87654321);
  guest_free(g);
}

static void selector_questions(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 5, CODE_0, HANDLER + 0x50, 0xEE);
  struct cpu *cpu = g->cpu;
  static const struct {
    uint8_t bytes[3]; /* result in EAX, selector in ECX */
    unsigned selector;
    bool is_zero;
    uint32_t result;
  } cases[] = {
    {{0x0F, 0x02, 0xC1}, CODE_3, true, 0xC0FA00}, /* LAR */
    {{0x0F, 0x02, 0xC1}, DATA_0, false, 7},       /* DPL 0 from CPL 3 */
    {{0x0F, 0x02, 0xC1}, CONFORMING, true, 0xC09E00},
    {{0x0F, 0x02, 0xC1}, 0, false, 7},
    {{0x0F, 0x02, 0xC1}, BEYOND, false, 7},
    {{0x0F, 0x03, 0xC1}, DATA_3, true, 0xFFFFFFFF}, /* LSL */
    {{0x0F, 0x03, 0xC1}, GATE | 3, false, 7},       /* gates have no limit */
    {{0x0F, 0x02, 0xC1}, GATE | 3, true, 0xEC00},
    {{0x0F, 0x00, 0xE1}, DATA_READ_ONLY | 3, true, 7},  /* VERR */
    {{0x0F, 0x00, 0xE9}, DATA_READ_ONLY | 3, false, 7}, /* VERW */
    {{0x0F, 0x00, 0xE9}, DATA_3, true, 7},
    {{0x0F, 0x00, 0xE9}, CODE_3, false, 7},
  };
  put(g, GDT + GATE, gate_bits(CODE_0, 0, 0xEC, 0), 8);
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    put_bytes(g, CODE + 0x10 * i, cases[i].bytes, 3);
    code_at(g, CODE + 0x10 * i + 3, 0xCD, 5);
    set_level(g, CODE_3, 0xC0FB);
    cpu->r[RAX] = 7;
    cpu->r[RCX] = cases[i].selector;
    cpu_set_flags(cpu, 0x203 | (cases[i].is_zero ? 0 : FLAG_ZF));
    start(g, CODE + 0x10 * i);
    run_to(g, HANDLER + 0x50);
    assert_int_equal(!!(cpu_flags(cpu) & FLAG_ZF), cases[i].is_zero);
    assert_true(cpu_flags(cpu) & FLAG_CF);
    assert_int_equal(cpu->r[RAX], cases[i].result);
  }
  guest_free(g);
}

static void arpl_raises(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  g->cpu->r[RAX] = 0x10;
  g->cpu->r[RCX] = 3;
  code_at(g, CODE, 0x63, 0xC8, 0xF4); /* arpl ax, cx */
  run_to(g, CODE + 2);
  assert_int_equal(g->cpu->r[RAX], 0x13);
  assert_true(cpu_flags(g->cpu) & FLAG_ZF);
  guest_free(g);
}

static void table_registers(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, LDT, get(g, GDT + (DATA_3 & ~7), 8), 8);
  /* mov ax, LOCAL; lldt ax; mov ax, 4; mov ds, ax; mov ax, TASK_B; ltr ax; str ecx; sldt edx; hlt */
  code_at(g, CODE, 0x66, 0xB8, LE16(LOCAL), 0x0F, 0x00, 0xD0, 0x66, 0xB8, LE16(4), 0x8E, 0xD8, 0x66, 0xB8, LE16(TASK_B),
          0x0F, 0x00, 0xD8, 0x0F, 0x00, 0xC9, 0x0F, 0x00, 0xC2, 0xF4);
  run_to(g, CODE + 26);
  assert_int_equal(g->cpu->r[RCX], TASK_B);
  assert_int_equal(g->cpu->r[RDX], LOCAL);
  assert_int_equal(g->cpu->segment[DS].selector, 4);
  assert_int_equal(access_of(g, TASK_B), 0x8B);
  guest_free(g);

  g = guest_new_32(CODE_3);
  code_at(g, CODE, 0x0F, 0x00, 0xD0); /* lldt ax at level 3 */
  expect_exception(g, 13, 0, CODE);
  guest_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(far_jump_to_segments),
    cmocka_unit_test(far_jump_faults),
    cmocka_unit_test(far_call_and_return),
    cmocka_unit_test(call_gate_same_level),
    cmocka_unit_test(call_gate_inner_32),
    cmocka_unit_test(call_gate_inner_frames),
    cmocka_unit_test(call_gate_faults),
    cmocka_unit_test(call_gate_64),
    cmocka_unit_test(call_gate_64_from_compatibility_mode),
    cmocka_unit_test(compatibility_mode_call_and_return),
    cmocka_unit_test(long_mode_far_faults),
    cmocka_unit_test(int_from_level_3),
    cmocka_unit_test(interrupt_16_bit_gate),
    cmocka_unit_test(external_interrupt),
    cmocka_unit_test(nmi_is_blocked_until_iret),
    cmocka_unit_test(interrupt_stack_table),
    cmocka_unit_test(interrupt_from_compatibility_mode),
    cmocka_unit_test(gate_error_codes),
    cmocka_unit_test(double_and_triple_fault),
    cmocka_unit_test(int1_is_not_recorded),
    cmocka_unit_test(int3_and_into),
    cmocka_unit_test(iret_to_16_bit_stack),
    cmocka_unit_test(iret_in_long_mode),
    cmocka_unit_test(alignment_in_delivery_ends),
    cmocka_unit_test(code_breakpoint_leaves_rf),
    cmocka_unit_test(real_mode_interrupt),
    cmocka_unit_test(delivery_is_restartable),
    cmocka_unit_test(task_by_jump),
    cmocka_unit_test(task_by_call_and_iret),
    cmocka_unit_test(task_by_exception),
    cmocka_unit_test(task_16_bit),
    cmocka_unit_test(task_trap_flag),
    cmocka_unit_test(task_faults),
    cmocka_unit_test(v8086_in_and_out),
    cmocka_unit_test(v8086_int_needs_iopl),
    cmocka_unit_test(v8086_redirection),
    cmocka_unit_test(sysenter_and_sysexit),
    cmocka_unit_test(syscall_and_sysret_64),
    cmocka_unit_test(sysret_single_steps_at_once),
    cmocka_unit_test(sysenter_64),
    cmocka_unit_test(syscall_outside_64_bit_mode),
    cmocka_unit_test(segment_load_faults),
    cmocka_unit_test(segment_loads),
    cmocka_unit_test(selector_questions),
    cmocka_unit_test(arpl_raises),
    cmocka_unit_test(table_registers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
