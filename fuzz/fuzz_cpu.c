/* SPDX-License-Identifier: Apache-2.0
 *
 * Random bytes as instructions, in a random mode of a random CPU, with random registers, tables, pages, breakpoints and
 * recorder state, while devices answer anything and interrupts come at any time. RAM lies between pages that nobody may
 * touch. Checked: nothing crashes, a run ends, and the processor's own state stays one that it could have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "lastbranch/cpudb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RAM_SIZE 0x100000u
#define GUARD_SIZE 0x10000u
#define SLICES 16
#define SLICE 120 /* instructions */

/* Where things lie in the guest; every mode finds what it needs. */
enum {
  WORLD_GDT = 0x2000,
  WORLD_LDT = 0x2400,
  WORLD_IDT = 0x3000,
  WORLD_TSS = 0x4000,
  WORLD_TSS_2 = 0x4400,
  WORLD_PAGES = 0x5000, /* four pages of tables */
  WORLD_DS = 0xC000,
  WORLD_CODE = 0x10000,
  WORLD_STACK = 0x20000,
};

struct input {
  const uint8_t *at;
  size_t left;
};

static struct input input;
static struct memory memory;
static struct cpu *cpu;
static uint64_t noise;

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_cpu: %s does not hold on %s\n", what, cpu->model->name);
  abort();
}

static uint64_t take(unsigned bytes)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes && input.left; i++, input.left--)
    value |= (uint64_t)*input.at++ << (8 * i);
  return value;
}

/* What devices answer: follows from the input, and never runs out. */
static uint64_t noise_next(void)
{
  noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return noise >> 16;
}

/* ---- the bus ---- */

static void bus_stir(void)
{
  uint64_t value = noise_next();

  if (value % 16 == 0)
    cpu_set_line(cpu, CPU_LINE_INTR, value >> 8 & 1);
  if (value % 64 == 1)
    cpu_signal(cpu, (enum cpu_signal)(1u << (value >> 8 & 3)));
  if (value % 64 == 2)
    cpu_kick(cpu);
}

static uint32_t bus_in(void *data, uint16_t port, unsigned size)
{
  (void)data, (void)port, (void)size;
  bus_stir();
  return (uint32_t)noise_next();
}

static void bus_out(void *data, uint16_t port, unsigned size, uint32_t value)
{
  (void)data, (void)port, (void)size;
  noise ^= value;
  bus_stir();
}

static uint64_t bus_mmio_read(void *data, uint64_t address, unsigned size)
{
  (void)data;
  check(size == 1 || size == 2 || size == 4 || size == 8, "devices are read by 1, 2, 4 or 8 bytes");
  check(!memory_at(&memory, address) || address >= 0xA0000, "RAM is no device");
  bus_stir();
  return noise_next();
}

static void bus_mmio_write(void *data, uint64_t address, unsigned size, uint64_t value)
{
  (void)data, (void)address;
  check(size == 1 || size == 2 || size == 4 || size == 8, "devices are written by 1, 2, 4 or 8 bytes");
  noise ^= value;
  bus_stir();
}

static uint8_t bus_acknowledge(void *data)
{
  (void)data;
  cpu_set_line(cpu, CPU_LINE_INTR, false);
  return (uint8_t)noise_next();
}

static int bus_apic_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  (void)data, (void)msr;
  *ret_value = noise_next();
  return noise & 1 ? 0 : -1;
}

static int bus_apic_write(void *data, uint32_t msr, uint64_t value)
{
  (void)data, (void)msr;
  noise ^= value;
  return noise_next() & 1 ? 0 : -1;
}

static uint8_t bus_task_priority(void *data)
{
  (void)data;
  return noise_next() & 0xF;
}

static void bus_set_task_priority(void *data, uint8_t value)
{
  (void)data;
  check(value < 16, "a task priority has four bits");
}

static void bus_quiet(void *data)
{
  (void)data;
  bus_stir();
}

static void bus_message(void *data, const struct lb_message *message)
{
  (void)data;
  noise ^= message->from;
}

static void bus_service(void *data, uint8_t number)
{
  (void)data;
  cpu->r[number & 15] = noise_next();
}

static const struct cpu_bus bus = {
  .in = bus_in,
  .out = bus_out,
  .mmio_read = bus_mmio_read,
  .mmio_write = bus_mmio_write,
  .acknowledge = bus_acknowledge,
  .apic_read = bus_apic_read,
  .apic_write = bus_apic_write,
  .task_priority = bus_task_priority,
  .set_task_priority = bus_set_task_priority,
  .pmi = bus_quiet,
  .ferr = bus_quiet,
  .message = bus_message,
  .service = bus_service,
};

/* ---- memory ---- */

/* RAM between guards, in place of the memory's own. */
static uint8_t *ram_make(void)
{
  uint8_t *all = mmap(NULL, RAM_SIZE + 2 * GUARD_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (all == MAP_FAILED || mprotect(all + GUARD_SIZE, RAM_SIZE, PROT_READ | PROT_WRITE) < 0)
    abort();
  return all + GUARD_SIZE;
}

static void memory_make(void)
{
  static uint8_t *ram;

  if (!ram) {
    ram = ram_make();
    if (memory_init(&memory, RAM_SIZE) < 0)
      abort();
    munmap(memory.ram, RAM_SIZE);
    memory.ram = ram;
  }
  memset(ram, 0, RAM_SIZE);
  memset(memory.code, 0, RAM_SIZE / PAGE_SIZE * sizeof(*memory.code));
  memory.a20_mask = UINT64_MAX;
  memory.rom_start = 0xF0000;
}

static void put(uint32_t address, uint64_t value, unsigned size)
{
  memory_write(&memory, address, &value, size);
}

static void tables_make(void)
{
  static const uint64_t gdt[] = {
    0,
    0x00CF9B000000FFFF, /* 0x08: 32-bit code */
    0x00CF93000000FFFF, /* 0x10: data */
    0x00AF9B000000FFFF, /* 0x18: 64-bit code */
    0x00009B000000FFFF, /* 0x20: 16-bit code */
    0x000093000000FFFF, /* 0x28: 16-bit data */
    0x00CFFB000000FFFF, /* 0x33: 32-bit code, level 3 */
    0x00CFF3000000FFFF, /* 0x3B: data, level 3 */
    0x00AFFB000000FFFF, /* 0x43: 64-bit code, level 3 */
    0x0000FB000000FFFF, /* 0x4B: 16-bit code, level 3 */
    0x0000890040000067, /* 0x50: TSS, twice as long in IA-32e mode */
    0,
    0x0000890044000067, /* 0x60: the other */
    0,
    0x0000820024000FFF, /* 0x70: LDT */
    0,
    0x0000EC0000080000, /* 0x80: call gate */
    0,
    0x0000E50000600000, /* 0x90: task gate */
  };

  memory_write(&memory, WORLD_GDT, gdt, sizeof(gdt));
  put(WORLD_TSS + 4, WORLD_STACK, 8);
  put(WORLD_TSS + 8, 0x10, 2);
  put(WORLD_TSS + 102, 0x68, 2);
  put(WORLD_TSS_2 + 0x20, WORLD_CODE, 4);
  put(WORLD_TSS_2 + 0x4C, 0x08, 2);
  put(WORLD_TSS_2 + 0x50, 0x10, 2);
  put(WORLD_TSS_2 + 0x38, WORLD_STACK, 4);
}

/* Gates of 8 or 16 bytes, or the vectors of real mode: handlers are places in the random code. */
static void handlers_make(bool is_long, bool is_real, uint16_t code)
{
  for (unsigned vector = 0; vector < 256; vector++) {
    uint64_t target = WORLD_CODE + (noise_next() & 0x3FF);
    uint64_t gate = (target & 0xFFFF) | (uint64_t)code << 16 | UINT64_C(0xEE00) << 32 | (target >> 16) << 48;

    if (is_real)
      put(4 * vector, (target >> 4) << 16 | (target & 15), 4);
    else
      put(WORLD_IDT + (is_long ? 16 : 8) * vector, gate, 8);
  }
}

/* One to one below 2 MiB (in 4-level and PAE tables by 4 KiB pages), some of it broken. */
static void pages_make(bool is_wide)
{
  unsigned size = is_wide ? 8 : 4;

  put(WORLD_PAGES, (WORLD_PAGES + 0x1000) | 7, 8); /* 4-level: PML4; PAE would use the next */
  put(WORLD_PAGES + 0x1000, (WORLD_PAGES + 0x2000) | (is_wide ? 7 : 1), 8);
  if (!is_wide)
    put(WORLD_PAGES, (WORLD_PAGES + 0x3000) | 7, 4);
  put(WORLD_PAGES + 0x2000, (WORLD_PAGES + 0x3000) | 7, 8);
  for (unsigned page = 0; page < 512; page++)
    put(WORLD_PAGES + 0x3000 + size * page, page << 12 | 7, size);
  for (unsigned count = (unsigned)take(1) & 7; count; count--)
    put(WORLD_PAGES + ((uint32_t)take(2) & 0x3FFF & ~(size - 1)), take(size), size);
}

/* ---- registers ---- */

static void segment_set(unsigned number, uint16_t selector)
{
  uint8_t raw[8];
  struct cpu_segment *segment = &cpu->segment[number];

  memory_read(&memory, WORLD_GDT + (selector & 0xFFF8), raw, 8);
  segment->selector = selector;
  segment->base = raw[2] | raw[3] << 8 | (uint32_t)raw[4] << 16 | (uint32_t)raw[7] << 24;
  segment->access = (uint16_t)(raw[5] | (raw[6] & 0xF0) << 8);
  segment->limit = raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)(raw[6] & 0xF) << 16;
  if (segment->access & SEGMENT_G)
    segment->limit = segment->limit << 12 | 0xFFF;
}

static void segments_make(uint16_t code, uint16_t data)
{
  segment_set(CS, code);
  for (unsigned number = ES; number <= GS; number++)
    if (number != CS)
      segment_set(number, data);
  segment_set(TR, 0x50);
  cpu->segment[TR].access |= 2; /* busy */
  segment_set(LDTR, 0x70);
  cpu->cpl = code & 3;
}

static void real_segments_make(void)
{
  for (unsigned number = ES; number <= GS; number++)
    cpu_load_real_segment(cpu, number, number == CS ? WORLD_CODE >> 4 : (uint16_t)(take(1) << 8));
}

static void paging_start(unsigned kind, bool is_long)
{
  pages_make(kind != 1);
  cpu->cr0 |= CR0_PG | (take(1) & 1 ? CR0_WP : 0);
  cpu->cr4 |= kind == 1 ? 0 : CR4_PAE;
  cpu->cr3 = is_long || kind == 1 ? WORLD_PAGES : WORLD_PAGES + 0x1000;
  for (unsigned i = 0; i < 4 && !is_long && kind != 1; i++)
    memory_read(&memory, cpu->cr3 + 8 * i, &cpu->pdpte[i], 8);
}

enum mode { REAL, PROTECTED_16, PROTECTED_32, VIRTUAL, COMPATIBLE_16, COMPATIBLE_32, LONG, MODES };

static void mode_make(void)
{
  static const uint16_t codes[MODES][2] = {[PROTECTED_16] = {0x20, 0x4B},
                                           [PROTECTED_32] = {0x08, 0x33},
                                           [COMPATIBLE_16] = {0x20, 0x4B},
                                           [COMPATIBLE_32] = {0x08, 0x33},
                                           [LONG] = {0x18, 0x43}};
  enum mode mode = (enum mode)(take(1) % MODES);
  unsigned choice = (unsigned)take(1);
  bool is_user = choice & 1, is_long = mode >= COMPATIBLE_16;
  unsigned kind = is_long ? 2 : choice >> 1 & 3; /* of paging: none, 32-bit, PAE */

  cpu->cr0 = CR0_ET | (choice & 8 ? CR0_NE : 0) | (choice & 16 ? CR0_AM : 0) | (mode == REAL ? 0 : CR0_PE);
  cpu->cr4 = (uint32_t)take(2) & (CR4_VME | CR4_PVI | CR4_TSD | CR4_DE | CR4_PSE | CR4_PGE | CR4_PCE | CR4_OSFXSR);
  cpu->gdtr = (struct cpu_table){.base = WORLD_GDT, .limit = 0x3FF};
  cpu->idtr = (struct cpu_table){.base = mode == REAL ? 0 : WORLD_IDT, .limit = 0xFFF};
  handlers_make(is_long, mode == REAL, is_long ? 0x18 : 0x08);
  if (is_long)
    cpu->efer = EFER_LME | EFER_LMA | (choice & 32 ? EFER_SCE : 0) | (choice & 64 ? EFER_NXE : 0);
  if (mode == REAL || mode == VIRTUAL)
    real_segments_make();
  else
    segments_make(codes[mode][is_user], is_user ? 0x3B : mode == PROTECTED_16 ? 0x28 : 0x10);
  if (mode == VIRTUAL) {
    segment_set(TR, 0x50);
    cpu->segment[TR].access |= 2;
    cpu->cpl = 3;
  }
  if (kind == 1 || (kind == 2 && mode != REAL))
    if (mode != REAL)
      paging_start(kind, is_long);
  lb_recorder_long_mode(&cpu->recorder, is_long);
  cpu_set_flags(cpu, (take(2) & 0x7FD5) | (mode == VIRTUAL ? FLAG_VM : 0) | 2);
  cpu_set_rip(cpu, mode == REAL || mode == VIRTUAL ? 0 : WORLD_CODE);
}

static void registers_make(void)
{
  for (unsigned i = 0; i < 16; i++)
    cpu->r[i] = take(1) & 1 ? take(1) << (take(1) & 63) : WORLD_STACK + i * 0x100;
  cpu->r[RSP] = WORLD_STACK + (take(1) & 0xF);
  cpu->r[RCX] &= 0xFFFF;
  unsigned watched = (unsigned)take(1);
  for (unsigned i = 0; i < 4 && watched & 1; i++)
    cpu->dr[i] = WORLD_CODE + (take(2) & 0x1FFF);
  if (watched & 1)
    cpu->dr[7] = DR7_FIXED | (take(4) & 0xFFFF23FF);
  if (watched & 2)
    cpu_listen(cpu, NULL, NULL);
  predictor_init(&cpu->predictor, (enum predictor_kind)(take(1) % 3));
}

/* ---- the recorder ---- */

static void register_write(enum lb_register id, uint64_t value)
{
  struct lb_register_range range = lb_cpu_register(cpu->model, id);

  if (range.count)
    lb_recorder_wrmsr(&cpu->recorder, range.first, value);
}

static void recorder_make(void)
{
  unsigned choice = (unsigned)take(1);

  if (choice & 1) {
    uint64_t wanted = take(2), debugctl = 0;

    for (unsigned bit = 0; bit < LB_DEBUGCTL_BITS; bit++)
      if (wanted >> bit & 1)
        debugctl |= lb_cpu_debugctl(cpu->model, (enum lb_debugctl_bit)bit);
    unsigned word = lb_recorder_ds_is_64(&cpu->recorder) ? 8 : 4;
    uint64_t base = WORLD_DS + 0x100;
    const uint64_t area[8] = {base,         base,         base + 24 * 20, base + (take(2) & 0xFFF),
                              base + 0x800, base + 0x800, base + 0x1000,  base + 0x800 + (take(1) << 2)};
    for (unsigned i = 0; i < 8; i++)
      put(WORLD_DS + word * i, area[i], word);
    register_write(LB_REG_DS_AREA, WORLD_DS);
    register_write(LB_REG_LBR_CTL, 0x7F0007);
    register_write(LB_REG_DEBUGCTL, debugctl);
  }
  for (unsigned count = choice >> 1 & 7; count; count--) {
    struct lb_register_range range = lb_cpu_register(cpu->model, (enum lb_register)(take(1) % LB_REGISTERS));
    unsigned number = (unsigned)take(1);
    uint64_t value = take(1 + (number & 7));

    if (range.count)
      lb_recorder_wrmsr(&cpu->recorder, range.first + range.stride * (number % range.count), value);
  }
}

/* ---- running ---- */

static void state_check(enum cpu_stop stop)
{
  check(cpu->r[ZERO] == 0, "there is always a zero");
  check(cpu->cpl <= 3, "levels are 0 to 3");
  check(cpu->activity <= CPU_WAIT_SIPI, "the activity is one");
  check(!(cpu->eflags & FLAGS_ARITHMETIC), "arithmetic flags are kept apart");
  check((cpu->cr0 & CR0_PE) || !(cpu->cr0 & CR0_PG), "paging needs protected mode");
  check(!(cpu->efer & EFER_LMA) || (cpu->cr4 & CR4_PAE), "long mode needs PAE");
  check((unsigned)stop <= CPU_STOP_UNIMPLEMENTED, "the stop is one");
}

static void look(void)
{
  uint8_t bytes[40];
  char text[96];
  uint64_t linear = noise_next() & 0x3FFFFF;

  cpu_translate(cpu, linear, NULL);
  size_t done = cpu_peek(cpu, linear, bytes, sizeof(bytes));
  check(done <= sizeof(bytes), "no more is read than was asked for");
  cpu_disassemble(cpu, cpu->rip, text, sizeof(text));
}

/* What comes from outside between two slices. */
static void event_make(void)
{
  uint64_t event = take(1);

  if (event & 1)
    cpu_set_line(cpu, CPU_LINE_INTR, event & 2);
  if (event & 4)
    cpu_signal(cpu, (enum cpu_signal)(1u << (event >> 3 & 3)));
  if (event & 32)
    cpu_start(cpu, (uint8_t)take(1));
  if (event & 64)
    look();
  if (event & 128)
    memory.a20_mask ^= 0x100000, cpu_changed(cpu);
}

static void run(void)
{
  for (unsigned i = 0; i < SLICES; i++) {
    enum cpu_stop stop = cpu_run(cpu, SLICE);

    state_check(stop);
    if (stop == CPU_STOP_SHUTDOWN || stop == CPU_STOP_UNIMPLEMENTED)
      return;
    if (!input.left)
      return;
    event_make();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  input = (struct input){data, size};
  size_t count = 0;
  while (lb_cpu_at(count))
    count++;
  const struct lb_cpu *model = lb_cpu_at(take(1) % count);
  noise = take(4);
  memory_make();
  if (cpu_new(model, &memory, &bus, (uint32_t)take(1), &cpu) < 0)
    return 0;
  tables_make();
  mode_make();
  registers_make();
  recorder_make();
  size_t code = input.left > 64 ? input.left - input.left / 16 : input.left;
  code = code < 0x4000 ? code : 0x4000;
  memory_write(&memory, WORLD_CODE, input.at, code);
  input.at += code;
  input.left -= code;
  cpu_changed(cpu);
  run();
  cpu_free(cpu);
  return 0;
}
