/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the processors to the board (struct cpu_bus), and the board to the processors and the outside world (struct
 * board_host). Two things are decided here: the value that addresses without memory or device read as, and A20.
 */
#include "machine/firmware.h"

#define ROM_ALIAS UINT64_C(0xFFFF0000) /* the ROM again, below 4 GiB: where the processor starts after INIT */

/* ---- from a processor to the board ---- */

/* Returns the machine of this processor, and tells the board which processor calls. */
static struct machine *bus_machine(void *data)
{
  const struct wire *wire = data;

  board_select(wire->machine->board, wire->number);
  return wire->machine;
}

static uint32_t bus_in(void *data, uint16_t port, unsigned size)
{
  struct machine *m = bus_machine(data);

  return board_in(m->board, port, size);
}

static void bus_out(void *data, uint16_t port, unsigned size, uint32_t value)
{
  struct machine *m = bus_machine(data);

  board_out(m->board, port, size, value);
}

/* Addresses without a device read as all ones, like an open bus. */
static uint64_t bus_read(void *data, uint64_t address, unsigned size)
{
  struct machine *m = bus_machine(data);
  uint64_t value = UINT64_MAX >> (64 - 8 * size);

  if (board_owns(m->board, address))
    return board_read(m->board, address, size);
  if (address >= ROM_ALIAS && address - ROM_ALIAS <= ROM_SIZE - size) {
    value = 0;
    memory_read(&m->memory, FIRMWARE_START + (address - ROM_ALIAS), &value, size);
  }
  return value;
}

static void bus_write(void *data, uint64_t address, unsigned size, uint64_t value)
{
  struct machine *m = bus_machine(data);

  if (board_owns(m->board, address))
    board_write(m->board, address, size, value);
}

static uint8_t bus_acknowledge(void *data)
{
  struct machine *m = bus_machine(data);
  uint8_t vector = board_acknowledge(m->board);

  idle_interrupt(m, vector);
  return vector;
}

static int bus_apic_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  struct machine *m = bus_machine(data);

  return board_apic_read(m->board, msr, ret_value);
}

static int bus_apic_write(void *data, uint32_t msr, uint64_t value)
{
  struct machine *m = bus_machine(data);

  return board_apic_write(m->board, msr, value);
}

static uint8_t bus_task_priority(void *data)
{
  struct machine *m = bus_machine(data);

  return board_task_priority(m->board);
}

static void bus_set_task_priority(void *data, uint8_t value)
{
  struct machine *m = bus_machine(data);

  board_set_task_priority(m->board, value);
}

static void bus_pmi(void *data)
{
  struct machine *m = bus_machine(data);

  board_pmi(m->board);
}

static void bus_ferr(void *data)
{
  struct machine *m = bus_machine(data);

  board_ferr(m->board);
}

static void bus_message(void *data, const struct lb_message *message)
{
  struct machine *m = bus_machine(data);

  if (m->host.bus)
    m->host.bus(m->host.data, message);
}

static void bus_service(void *data, uint8_t number)
{
  firmware_call(bus_machine(data), number);
}

struct cpu_bus bus_of_wire(struct wire *wire)
{
  return (struct cpu_bus){
    .data = wire,
    .in = bus_in,
    .out = bus_out,
    .mmio_read = bus_read,
    .mmio_write = bus_write,
    .acknowledge = bus_acknowledge,
    .apic_read = bus_apic_read,
    .apic_write = bus_apic_write,
    .task_priority = bus_task_priority,
    .set_task_priority = bus_set_task_priority,
    .pmi = bus_pmi,
    .ferr = bus_ferr,
    .message = bus_message,
    .service = bus_service,
    .stop = &wire->machine->is_stopping,
  };
}

/* ---- from the board to the processor and the world ---- */

static uint64_t host_now(void *data)
{
  struct machine *m = data;

  return cpu_cycles(m->cpu);
}

static void host_intr(void *data, unsigned cpu, bool is_high)
{
  struct machine *m = data;

  cpu_set_line(m->cpus[cpu], CPU_LINE_INTR, is_high);
}

static void host_nmi(void *data, unsigned cpu)
{
  struct machine *m = data;

  idle_disturb(m);
  cpu_signal(m->cpus[cpu], CPU_NMI);
}

static void host_smi(void *data, unsigned cpu)
{
  struct machine *m = data;

  idle_disturb(m);
  cpu_signal(m->cpus[cpu], CPU_SMI);
}

static void host_init(void *data, unsigned cpu)
{
  struct machine *m = data;

  idle_disturb(m);
  cpu_signal(m->cpus[cpu], CPU_INIT);
}

static void host_startup(void *data, unsigned cpu, uint8_t vector)
{
  struct machine *m = data;

  idle_disturb(m);
  cpu_start(m->cpus[cpu], vector);
}

static void host_a20(void *data, bool is_open)
{
  struct machine *m = data;
  uint64_t mask = is_open ? UINT64_MAX : ~UINT64_C(0x100000);

  if (m->memory.a20_mask == mask)
    return;
  m->memory.a20_mask = mask;
  for (unsigned i = 0; i < m->cpu_count; i++)
    cpu_changed(m->cpus[i]); /* translations hold physical addresses after the A20 gate */
}

/* The run loop performs the reset later: the reset includes the device that requests it, which is in the middle of a
 * call. */
static void host_reset(void *data)
{
  struct machine *m = data;

  m->wants_reset = m->wants_cpu_reset = true;
  cpu_kick(m->cpu);
}

static void host_replan(void *data)
{
  struct machine *m = data;

  cpu_kick(m->cpu);
}

static void host_serial(void *data, uint8_t byte)
{
  struct machine *m = data;

  if (m->host.serial)
    m->host.serial(m->host.data, byte);
}

static void host_debug(void *data, uint8_t byte)
{
  struct machine *m = data;

  if (m->host.debug)
    m->host.debug(m->host.data, byte);
}

static void host_post(void *data, uint8_t code)
{
  (void)data; /* there is no display for port 0x80 */
  (void)code;
}

static void host_exit(void *data, uint32_t value)
{
  struct machine *m = data;

  m->has_exit = true;
  m->exit_value = value;
  cpu_kick(m->cpu);
}

static void host_power_off(void *data)
{
  struct machine *m = data;

  m->is_off = true;
  cpu_kick(m->cpu);
}

static void host_sleep(void *data)
{
  struct machine *m = data;

  cpu_kick(m->cpu); /* no processor executes another instruction */
}

static void host_pmi_delivered(void *data, unsigned cpu)
{
  struct machine *m = data;

  lb_recorder_pmi_delivered(&m->cpus[cpu]->recorder);
}

struct board_host board_host_of_machine(struct machine *machine)
{
  return (struct board_host){
    .data = machine,
    .now = host_now,
    .intr = host_intr,
    .nmi = host_nmi,
    .smi = host_smi,
    .init = host_init,
    .startup = host_startup,
    .a20 = host_a20,
    .reset = host_reset,
    .replan = host_replan,
    .serial = host_serial,
    .debug = host_debug,
    .post = host_post,
    .exit = host_exit,
    .power_off = host_power_off,
    .sleep = host_sleep,
    .pmi_delivered = host_pmi_delivered,
  };
}
