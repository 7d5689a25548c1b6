/* SPDX-License-Identifier: Apache-2.0
 *
 * Snippets in the interpreter: a guest in IA-32e mode with Linux' selectors, whose window of memory is mapped where the
 * test's own process has it. A run starts with IRETQ to privilege level 3 and ends when an exception reaches its
 * handler, which is a HLT: INT3 behind the snippet is the usual one. What the exception pushed is the result.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu_bus.h"
#include "host_run.h"
#include "lastbranch/cpudb.h"

/* Physical addresses, mapped one to one for the supervisor. */
enum {
  GUEST_PML4 = 0x1000,
  GUEST_PDPT = 0x2000,
  GUEST_PD = 0x3000,
  GUEST_PT = 0x4000,
  GUEST_GDT = 0x5000,
  GUEST_IDT = 0x6000,
  GUEST_HANDLERS = 0xC000, /* 16 bytes each */
  GUEST_TSS = 0x8000,
  GUEST_ENTRY = 0x9000,
  GUEST_STACK = 0xB000, /* its end */
  GUEST_WINDOW = HOST_WINDOW_SIZE,
  GUEST_RAM = 2 * HOST_WINDOW_SIZE,
  GUEST_CS = 0x10,
  GUEST_SS = 0x18,
  GUEST_TR = 0x40,
};

#define RUN_LIMIT 50000000 /* instructions: more than any snippet has */

struct host_guest {
  struct memory memory;
  struct cpu *cpu;
};

/* ---- tables ---- */

static void put(struct host_guest *guest, uint64_t address, uint64_t value)
{
  memory_write(&guest->memory, address, &value, sizeof(value));
}

static void pages_make(struct host_guest *guest)
{
  static const uint32_t areas[][2] = {{HOST_CODE, HOST_CODE_SIZE},
                                      {HOST_DATA, HOST_DATA_SIZE},
                                      {HOST_STACK, HOST_STACK_SIZE},
                                      {HOST_TABLE, HOST_TABLE_SIZE}};

  put(guest, GUEST_PML4, GUEST_PDPT | 7);
  put(guest, GUEST_PDPT, GUEST_PD | 7);
  put(guest, GUEST_PD, 0x83); /* the supervisor's 2 MiB */
  put(guest, GUEST_PD + 8 * (HOST_WINDOW >> 21), GUEST_PT | 7);
  for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
    for (uint32_t offset = areas[i][0] - HOST_WINDOW; offset < areas[i][0] + areas[i][1] - HOST_WINDOW; offset += 4096)
      put(guest, GUEST_PT + 8 * (offset >> 12), (GUEST_WINDOW + offset) | 7);
}

static void tables_make(struct host_guest *guest)
{
  static const uint64_t gdt[] = {0,
                                 0,
                                 0x00AF9B000000FFFF,
                                 0x00CF93000000FFFF,
                                 0x00CFFB000000FFFF,
                                 0x00CFF3000000FFFF,
                                 0x00AFFB000000FFFF,
                                 0,
                                 0x00008B0000000067 | (uint64_t)GUEST_TSS << 16};

  memory_write(&guest->memory, GUEST_GDT, gdt, sizeof(gdt));
  for (unsigned vector = 0; vector < 256; vector++) {
    uint64_t handler = GUEST_HANDLERS + 16 * vector;
    uint64_t dpl = vector == 3 || vector == 4 ? 3 : 0; /* as Linux has it */

    put(guest, GUEST_IDT + 16 * vector, handler | GUEST_CS << 16 | UINT64_C(0x8E00) << 32 | dpl << 45);
    put(guest, GUEST_IDT + 16 * vector + 8, 0);
    put(guest, handler, 0xF4);
  }
  put(guest, GUEST_TSS + 4, GUEST_STACK);
  put(guest, GUEST_TSS + 0x60, UINT64_C(0x68) << 48); /* no I/O bitmap */
  put(guest, GUEST_ENTRY, 0xCF48);                    /* IRETQ */
}

static struct cpu_segment segment_of(uint16_t selector, uint16_t access)
{
  return (struct cpu_segment){.selector = selector, .access = access, .limit = UINT32_MAX};
}

static void registers_make(struct cpu *cpu)
{
  cpu->cr0 = CR0_PG | CR0_WP | CR0_NE | CR0_ET | CR0_MP | CR0_PE;
  cpu->cr4 = CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_FSGSBASE;
  cpu->cr3 = GUEST_PML4;
  cpu->efer = EFER_SCE | EFER_LME | EFER_LMA | EFER_NXE;
  cpu->cpl = 0;
  cpu->segment[CS] = segment_of(GUEST_CS, 0xA09B);
  for (unsigned i = ES; i <= GS; i++)
    if (i != CS)
      cpu->segment[i] = segment_of(i == SS ? GUEST_SS : 0, i == SS ? 0xC093 : 0);
  cpu->segment[LDTR] = (struct cpu_segment){0};
  cpu->segment[TR] = (struct cpu_segment){.base = GUEST_TSS, .limit = 0x67, .selector = GUEST_TR, .access = 0x8B};
  cpu->gdtr = (struct cpu_table){.base = GUEST_GDT, .limit = 0x4F};
  cpu->idtr = (struct cpu_table){.base = GUEST_IDT, .limit = 0xFFF};
  cpu_set_flags(cpu, 2);
  cpu_changed(cpu);
}

struct host_guest *host_guest_new(const char *cpu_name)
{
  const struct lb_cpu *model;
  struct host_guest *guest = calloc(1, sizeof(*guest));

  if (!guest || lb_cpu_find(cpu_name, &model) < 0 || memory_init(&guest->memory, GUEST_RAM) < 0 ||
      cpu_new(model, &guest->memory, &bus_idle, 0, &guest->cpu) < 0) {
    host_guest_free(guest);
    return NULL;
  }
  guest->memory.a20_mask = UINT64_MAX;
  pages_make(guest);
  tables_make(guest);
  registers_make(guest->cpu);
  return guest;
}

void host_guest_free(struct host_guest *guest)
{
  if (!guest)
    return;
  cpu_free(guest->cpu);
  memory_done(&guest->memory);
  free(guest);
}

/* ---- a run ---- */

uint8_t *host_guest_memory(struct host_guest *guest, uint32_t address)
{
  return memory_at(&guest->memory, GUEST_WINDOW + (address - HOST_WINDOW));
}

uint64_t host_guest_retired(const struct host_guest *guest)
{
  return cpu_retired(guest->cpu);
}

/* Puts the code and an INT3 behind it; decoded code is forgotten if that changes anything. */
static void code_put(struct host_guest *guest, const uint8_t *code, size_t size, unsigned offset)
{
  uint8_t *at = host_guest_memory(guest, HOST_CODE + offset);

  if (!memcmp(at, code, size) && at[size] == 0xCC)
    return;
  memcpy(at, code, size);
  at[size] = 0xCC;
  cpu_changed(guest->cpu);
}

/* What DS and ES hold in a program: nothing in 64-bit mode, as Linux has it; all of memory in 32-bit code. */
static void segments_put(struct cpu *cpu, unsigned bits)
{
  uint16_t selector = bits == 32 ? HOST_DS : 0;

  if (cpu->segment[DS].selector == selector && cpu->segment[ES].selector == selector)
    return;
  cpu->segment[DS] = cpu->segment[ES] = segment_of(selector, selector ? 0xC0F3 : 0);
  cpu_changed(cpu);
}

static void run_begin(struct host_guest *guest, unsigned offset, unsigned bits, const struct host_state *state)
{
  struct cpu *cpu = guest->cpu;
  const uint64_t frame[5] = {HOST_CODE + offset, bits == 32 ? HOST_CS_32 : HOST_CS_64, state->flags | 0x200,
                             state->r[RSP], HOST_DS};

  segments_put(cpu, bits);
  memory_write(&guest->memory, GUEST_STACK - sizeof(frame), frame, sizeof(frame));
  memcpy(cpu->r, state->r, sizeof(state->r));
  cpu->r[RSP] = GUEST_STACK - sizeof(frame);
  cpu->activity = CPU_RUNNING;
  cpu_set_flags(cpu, 2);
  cpu_set_rip(cpu, GUEST_ENTRY);
}

static bool has_error(unsigned vector)
{
  return vector == 8 || (vector >= 10 && vector <= 14) || vector == 17;
}

/* What the exception left on the stack is what the snippet ended with. */
static void run_end(struct host_guest *guest, uint64_t end, struct host_state *state)
{
  struct cpu *cpu = guest->cpu;
  unsigned vector = (unsigned)((cpu->rip - GUEST_HANDLERS) / 16);
  uint64_t frame[6] = {0};

  memory_read(&guest->memory, cpu->r[RSP], has_error(vector) ? frame : frame + 1, has_error(vector) ? 48 : 40);
  memcpy(state->r, cpu->r, sizeof(state->r));
  state->error = frame[0];
  state->rip = frame[1];
  state->flags = frame[3];
  state->r[RSP] = frame[4];
  state->address = cpu->cr2;
  state->trap = (int)vector;
  if (vector == 3 && state->rip == end + 1) {
    state->trap = HOST_NO_TRAP;
    state->rip = end;
  }
}

bool host_guest_run(struct host_guest *guest, const uint8_t *code, size_t size, unsigned offset, unsigned bits,
                    struct host_state *state, const char **ret_why)
{
  code_put(guest, code, size, offset);
  run_begin(guest, offset, bits, state);
  uint64_t start = cpu_retired(guest->cpu);
  enum cpu_stop stop;
  do
    stop = cpu_run(guest->cpu, RUN_LIMIT);
  while (stop == CPU_STOP_BUDGET && cpu_retired(guest->cpu) - start < RUN_LIMIT);
  if (stop != CPU_STOP_HALTED) {
    *ret_why = guest->cpu->reason[0] ? guest->cpu->reason : "it did not end";
    cpu_reset(guest->cpu, false);
    registers_make(guest->cpu);
    return false;
  }
  run_end(guest, HOST_CODE + offset + size, state);
  return true;
}
