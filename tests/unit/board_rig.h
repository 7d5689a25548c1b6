/* SPDX-License-Identifier: Apache-2.0
 *
 * A board on the bench: a host that only takes notes, and a clock that the test turns.
 */
#ifndef TESTS_BOARD_RIG_H
#define TESTS_BOARD_RIG_H

#include <stdlib.h>
#include <string.h>

#include "board/board.h"
#include "parts.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define LAPIC UINT64_C(0xFEE00000)
#define IOAPIC UINT64_C(0xFEC00000)
#define HPET UINT64_C(0xFED00000)
#define DISK_SECTORS 2048u

struct rig {
  struct board *board;
  struct board_config config;
  uint64_t now;
  bool intr, a20;
  unsigned nmi, smi, init, startup, reset, replan, exits, power_offs, sleeps, pmi;
  uint8_t startup_vector, post;
  uint32_t exit_value;
  char serial[64], debug[64];
  size_t serial_size, debug_size;
  uint8_t *disk;
};

/* ---- the host ---- */

static inline uint64_t rig_now(void *data)
{
  return ((struct rig *)data)->now;
}

static inline void rig_intr(void *data, unsigned cpu, bool is_high)
{
  struct rig *rig = data;

  assert_int_equal(cpu, 0);
  assert_true(rig->intr != is_high); /* only changes are told */
  rig->intr = is_high;
}

static inline void rig_nmi(void *data, unsigned cpu)
{
  assert_int_equal(cpu, 0);
  ((struct rig *)data)->nmi++;
}

static inline void rig_smi(void *data, unsigned cpu)
{
  assert_int_equal(cpu, 0);
  ((struct rig *)data)->smi++;
}

static inline void rig_init(void *data, unsigned cpu)
{
  assert_int_equal(cpu, 0);
  ((struct rig *)data)->init++;
}

static inline void rig_startup(void *data, unsigned cpu, uint8_t vector)
{
  assert_int_equal(cpu, 0);
  struct rig *rig = data;
  rig->startup++;
  rig->startup_vector = vector;
}

static inline void rig_a20(void *data, bool is_open)
{
  ((struct rig *)data)->a20 = is_open;
}

static inline void rig_reset(void *data)
{
  ((struct rig *)data)->reset++;
}

static inline void rig_replan(void *data)
{
  ((struct rig *)data)->replan++;
}

static inline void rig_serial(void *data, uint8_t byte)
{
  struct rig *rig = data;

  if (rig->serial_size < sizeof(rig->serial) - 1)
    rig->serial[rig->serial_size++] = (char)byte;
}

static inline void rig_debug(void *data, uint8_t byte)
{
  struct rig *rig = data;

  if (rig->debug_size < sizeof(rig->debug) - 1)
    rig->debug[rig->debug_size++] = (char)byte;
}

static inline void rig_post(void *data, uint8_t code)
{
  ((struct rig *)data)->post = code;
}

static inline void rig_power_off(void *data)
{
  struct rig *rig = data;

  rig->power_offs++;
}

static inline void rig_sleep(void *data)
{
  struct rig *rig = data;

  rig->sleeps++;
}

static inline void rig_exit(void *data, uint32_t value)
{
  struct rig *rig = data;

  rig->exits++;
  rig->exit_value = value;
}

static inline void rig_pmi_delivered(void *data, unsigned cpu)
{
  assert_int_equal(cpu, 0);
  ((struct rig *)data)->pmi++;
}

/* ---- setting up ---- */

static inline int rig_start(struct rig *rig)
{
  struct board_host host = {
    .data = rig,
    .now = rig_now,
    .intr = rig_intr,
    .nmi = rig_nmi,
    .smi = rig_smi,
    .init = rig_init,
    .startup = rig_startup,
    .a20 = rig_a20,
    .reset = rig_reset,
    .replan = rig_replan,
    .serial = rig_serial,
    .debug = rig_debug,
    .post = rig_post,
    .exit = rig_exit,
    .power_off = rig_power_off,
    .sleep = rig_sleep,
    .pmi_delivered = rig_pmi_delivered,
  };

  rig->a20 = true;
  return board_new(&rig->config, &host, &rig->board);
}

static inline int setup(void **state)
{
  struct rig *rig = calloc(1, sizeof(*rig));

  if (!rig)
    return -1;
  rig->disk = calloc(DISK_SECTORS, 512);
  for (unsigned i = 0; rig->disk && i < DISK_SECTORS; i++)
    memset(rig->disk + i * 512, (int)(i & 0xFF), 512);
  rig->config = (struct board_config){
    .ram = UINT64_C(128) << 20,
    .wall_clock = 1767225600, /* 2026-01-01 00:00:00, a Thursday */
    .hda = {.bytes = rig->disk, .size = DISK_SECTORS * 512, .cylinders = 32, .heads = 4, .sectors = 16},
    .has_floppy = true,
    .has_apic = true,
    .has_x2apic = true,
    .has_tsc_deadline = true,
    .tsc_per_second = 2 * S,
    .apic_version = 0x14,
    .physical_bits = 40,
  };
  *state = rig;
  return rig->disk ? rig_start(rig) : -1;
}

static inline int teardown(void **state)
{
  struct rig *rig = *state;

  board_free(rig->board);
  free(rig->disk);
  free(rig);
  return 0;
}

/* ---- the processor's side ---- */

static inline void out(struct rig *rig, uint16_t port, uint8_t value)
{
  board_out(rig->board, port, 1, value);
}

static inline uint8_t in(struct rig *rig, uint16_t port)
{
  return (uint8_t)board_in(rig->board, port, 1);
}

static inline void apic_put(struct rig *rig, unsigned offset, uint32_t value)
{
  board_write(rig->board, LAPIC + offset, 4, value);
}

static inline uint32_t apic_get(struct rig *rig, unsigned offset)
{
  return (uint32_t)board_read(rig->board, LAPIC + offset, 4);
}

static inline uint64_t msr_get(struct rig *rig, uint32_t msr)
{
  uint64_t value = 0;

  assert_int_equal(board_apic_read(rig->board, msr, &value), 0);
  return value;
}

static inline void msr_put(struct rig *rig, uint32_t msr, uint64_t value)
{
  assert_int_equal(board_apic_write(rig->board, msr, value), 0);
}

/* Time passes; the board is called when it asked to be. */
static inline void pass(struct rig *rig, uint64_t time)
{
  uint64_t end = rig->now + time;

  while (board_deadline(rig->board) <= end) {
    if (rig->now < board_deadline(rig->board))
      rig->now = board_deadline(rig->board);
    board_advance(rig->board, rig->now);
    if (rig->now == end)
      break;
    rig->now++;
  }
  rig->now = end;
}

/* Two 8259A as a PC's firmware sets them up, vectors 0x08 and 0x70, with these masks. */
static inline void pic_program(struct rig *rig, uint8_t master, uint8_t slave)
{
  out(rig, 0x20, 0x11);
  out(rig, 0x21, 0x08);
  out(rig, 0x21, 0x04);
  out(rig, 0x21, 0x01);
  out(rig, 0xA0, 0x11);
  out(rig, 0xA1, 0x70);
  out(rig, 0xA1, 0x02);
  out(rig, 0xA1, 0x01);
  out(rig, 0x21, master);
  out(rig, 0xA1, slave);
}

/* Virtual wire: the 8259A through LINT0. */
static inline void wire(struct rig *rig)
{
  apic_put(rig, 0xF0, 0x1FF);
  apic_put(rig, 0x350, 0x700);
  apic_put(rig, 0x360, 0x400);
}

static inline uint8_t acknowledge(struct rig *rig)
{
  assert_true(rig->intr);
  return board_acknowledge(rig->board);
}

static inline void eoi(struct rig *rig, uint8_t vector)
{
  if (vector >= 0x70)
    out(rig, 0xA0, 0x20);
  out(rig, 0x20, 0x20);
}

/* ---- lines that a test can raise ---- */

/* A line that a test can raise and lower: IRQ 13, FERR#. IRQ 4: a byte for COM1. */
static inline void ferr(struct rig *rig)
{
  board_ferr(rig->board);
}

static inline void ferr_clear(struct rig *rig)
{
  out(rig, 0xF0, 0);
}

static inline void serial_interrupts(struct rig *rig)
{
  out(rig, 0x3FC, 0x08); /* OUT2 */
  out(rig, 0x3F9, 0x01);
}

static inline void cmos_put(struct rig *rig, uint8_t index, uint8_t value)
{
  out(rig, 0x70, index);
  out(rig, 0x71, value);
}

static inline uint8_t cmos_get(struct rig *rig, uint8_t index)
{
  out(rig, 0x70, index);
  return in(rig, 0x71);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
