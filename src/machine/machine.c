/* SPDX-License-Identifier: Apache-2.0
 *
 * Making, resetting and freeing the machine, and looking into it.
 */
#include "machine/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lastbranch/error.h"
#include "machine/firmware.h"

#define RAM_DEFAULT (UINT64_C(128) << 20)
#define RAM_LEAST (UINT64_C(2) << 20)
#define RAM_MOST (UINT64_C(64) << 30)
#define WALL_CLOCK_DEFAULT INT64_C(1767225600) /* 2026-01-01 00:00:00 */
#define TABLES_SIZE UINT64_C(0x10000)          /* kept for ACPI at the end of low memory */

/* ---- making ---- */

static int machine_init_drives(struct machine *m, const struct machine_config *config)
{
  int r = 0;

  if (config->floppy.bytes)
    r = drive_init_floppy(&m->floppy, &config->floppy);
  if (r >= 0 && config->disk.bytes)
    r = drive_init_disk(&m->disk, &config->disk);
  return r;
}

static int machine_init_memory(struct machine *m)
{
  uint64_t ram = m->config.ram ? m->config.ram : RAM_DEFAULT;

  if (ram < RAM_LEAST || ram > RAM_MOST)
    return LB_E_BAD_RAM;
  int r = memory_init(&m->memory, ram & ~PAGE_MASK);
  if (r < 0)
    return r;
  m->memory.rom_start = FIRMWARE_START;
  m->memory.a20_mask = UINT64_MAX;
  m->tables = m->memory.low - TABLES_SIZE;
  return 0;
}

static int machine_init_board(struct machine *m)
{
  struct board_host host = board_host_of_machine(m);
  struct board_config config = {
    .cpus = m->cpu_count,
    .ram = m->memory.size,
    .wall_clock = m->config.wall_clock ? m->config.wall_clock : WALL_CLOCK_DEFAULT,
    .hda = drive_as_board_disk(&m->disk),
    .has_floppy = m->floppy.bytes,
    .has_apic = true, /* the processor itself refuses those that its model lacks */
    .has_x2apic = true,
    .has_tsc_deadline = true,
    .keeps_lvt_perf = m->cpu->model->vendor == LB_VENDOR_AMD || m->cpu->model->vendor == LB_VENDOR_HYGON,
    .has_test_device = m->config.has_test_device,
    .tsc_per_second = UINT64_C(1000000000),
    .apic_version = 0x14,
  };

  return board_new(&config, &host, &m->board);
}

static int machine_init_cpus(struct machine *m)
{
  unsigned count = m->config.cpus ? m->config.cpus : 1;

  if (count > MACHINE_CPUS)
    return -EINVAL;
  int r = 0;
  for (unsigned i = 0; r >= 0 && i < count; i++) {
    m->wires[i] = (struct wire){.machine = m, .number = i};
    struct cpu_bus bus = bus_of_wire(&m->wires[i]);
    r = cpu_new(m->config.model, &m->memory, &bus, m->config.recorder_options, &m->cpus[i]);
    m->cpu_count = r >= 0 ? i + 1 : i;
  }
  m->cpu = m->cpus[0];
  return r;
}

int machine_assemble(struct machine *machine)
{
  int r = machine_init_memory(machine);

  if (r >= 0)
    r = machine_init_cpus(machine);
  if (r >= 0)
    r = machine_init_board(machine);
  return r;
}

int machine_new(const struct machine_config *config, const struct machine_host *host, struct machine **ret_machine)
{
  struct machine *m = calloc(1, sizeof(*m));

  if (!m)
    return -ENOMEM;
  if (host)
    m->host = *host;
  m->config = *config;
  m->config.floppy = m->config.disk = (struct machine_image){0};
  int r = machine_init_drives(m, config);
  if (r >= 0)
    r = machine_assemble(m);
  if (r < 0) {
    machine_free(m);
    return r;
  }
  for (unsigned i = 0; i < m->cpu_count; i++)
    predictor_init(&m->cpus[i]->predictor, config->predictor);
  turn_reset(m);
  firmware_install(m);
  *ret_machine = m;
  return 0;
}

void machine_free(struct machine *machine)
{
  if (!machine)
    return;
  board_free(machine->board);
  for (unsigned i = 0; i < machine->cpu_count; i++)
    cpu_free(machine->cpus[i]);
  memory_done(&machine->memory);
  drive_done(&machine->floppy);
  drive_done(&machine->disk);
  start_done(&machine->start);
  text_done(&machine->refusal);
  free(machine);
}

void machine_power_on(struct machine *machine, bool is_warm)
{
  turn_reset(machine);
  for (unsigned i = 0; i < machine->cpu_count; i++)
    cpu_reset(machine->cpus[i], is_warm);
  board_reset(machine->board);
  machine->memory.a20_mask = UINT64_MAX;
  machine->wait_until = 0;
  machine->wants_boot = machine->wants_reset = machine->wants_cpu_reset = false;
  firmware_install(machine);
  cpu_changed(machine->cpu);
}

static bool is_inside(uint64_t address, uint64_t size, uint64_t start, uint64_t end)
{
  return address >= start && address <= end && size <= end - address;
}

bool machine_is_free(const struct machine *machine, uint64_t address, uint64_t size)
{
  uint64_t high_end = MEMORY_HIGH + (machine->memory.size - machine->memory.low);

  return is_inside(address, size, 0x500, EBDA_START) || is_inside(address, size, EXTENDED_START, machine->tables) ||
         is_inside(address, size, MEMORY_HIGH, high_end);
}

/* ---- looking ---- */

struct cpu *machine_cpu(struct machine *machine)
{
  return machine->cpus[machine->shown];
}

void machine_show(struct machine *machine, unsigned number)
{
  machine->shown = number < machine->cpu_count ? number : 0;
}

unsigned machine_cpu_count(const struct machine *machine)
{
  return machine->cpu_count;
}

struct memory *machine_memory(struct machine *machine)
{
  return &machine->memory;
}

const struct machine_config *machine_config(const struct machine *machine)
{
  return &machine->config;
}

struct machine_image machine_kernel(const struct machine *machine)
{
  return machine->start.kind == START_KERNEL ? machine->start.image : (struct machine_image){0};
}

uint64_t machine_time(const struct machine *machine)
{
  return cpu_cycles(machine->cpu);
}

uint32_t machine_exit_value(const struct machine *machine)
{
  return machine->exit_value;
}

bool machine_has_no_boot(const struct machine *machine)
{
  return machine->has_no_boot;
}

const char *machine_stop_reason(const struct machine *machine)
{
  const char *reason = "";

  for (unsigned i = 0; i < machine->cpu_count && !*reason; i++)
    reason = machine->cpus[i]->reason;
  return reason;
}

bool machine_serial_receive(struct machine *machine, uint8_t byte)
{
  bool is_taken = board_serial_receive(machine->board, byte);

  if (is_taken)
    idle_disturb(machine);
  return is_taken;
}

bool machine_serial_is_awaited(const struct machine *machine)
{
  return board_serial_is_awaited(machine->board);
}

static unsigned facts_page(void *data, uint64_t linear)
{
  struct machine *m = data;
  unsigned bits = 0;

  return cpu_translate(machine_cpu(m), linear, &bits) == UINT64_MAX ? 0 : bits;
}

/* Type of the IDT's gate of this vector. The vectors of real mode do what interrupt gates do. */
static uint8_t facts_gate(struct machine *m, uint8_t vector)
{
  const struct cpu *cpu = machine_cpu(m);
  unsigned size = cpu->efer & EFER_LMA ? 16 : 8;
  uint8_t gate[8] = {0};

  if (!(cpu->cr0 & CR0_PE))
    return 0xE;
  if (cpu->idtr.limit < vector * size + size - 1)
    return 0;
  cpu_peek(machine_cpu(m), cpu->idtr.base + vector * size, gate, sizeof(gate));
  return gate[5] & 0xF;
}

struct lb_ds_facts machine_ds_facts(struct machine *machine)
{
  board_select(machine->board, machine->shown);
  uint32_t entry = board_lvt_perf(machine->board);
  return (struct lb_ds_facts){
    .data = machine,
    .page = facts_page,
    .apic_is_enabled = board_apic_is_enabled(machine->board),
    .lvt_perf = entry,
    .gate_type = facts_gate(machine, (uint8_t)entry),
    .a20_is_masked = machine->memory.a20_mask != UINT64_MAX,
  };
}
