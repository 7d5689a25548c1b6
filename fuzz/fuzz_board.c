/* SPDX-License-Identifier: Apache-2.0
 *
 * A hostile guest at the board: any port, any device register, any APIC register, in any order, while time passes in
 * small and large steps and keys, bytes and interrupts come in. Two boards get the same, one of them being told the
 * time at every step and not only when it asked: both must show the same to the processor. Also checked: what is read
 * fits its size, INTR is only told when it changes, and a board that was told the time does not want to be told it
 * again at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board/board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BOARDS 2u
#define STEPS_MAX 4000u   /* operations of one input */
#define DEADLINES_MAX 64u /* that are met in one stretch of time; then time jumps */
#define DISK_SIZE (40u * 512)
#define TABLES_SIZE 1500u

struct guest {
  struct board *board;
  uint64_t now;
  bool intr;
  uint32_t told; /* a sum over everything that the host was told */
  uint8_t *disk;
};

struct input {
  const uint8_t *at;
  size_t left;
};

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_board: %s does not hold\n", what);
  abort();
}

static uint64_t take(struct input *input, unsigned bytes)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes && input->left; i++, input->left--)
    value |= (uint64_t)*input->at++ << (8 * i);
  return value;
}

/* ---- the host ---- */

static void tell(void *data, uint32_t what)
{
  struct guest *guest = data;

  guest->told = guest->told * 31 + what;
}

static uint64_t host_now(void *data)
{
  return ((struct guest *)data)->now;
}

static void host_intr(void *data, unsigned cpu, bool is_high)
{
  struct guest *guest = data;

  check(cpu == 0, "there is one processor");
  check(guest->intr != is_high, "INTR changes when it is told");
  guest->intr = is_high;
}

static void host_nmi(void *data, unsigned cpu)
{
  (void)cpu;
  tell(data, 1);
}

static void host_smi(void *data, unsigned cpu)
{
  (void)cpu;
  tell(data, 2);
}

static void host_init(void *data, unsigned cpu)
{
  (void)cpu;
  tell(data, 3);
}

static void host_startup(void *data, unsigned cpu, uint8_t vector)
{
  (void)cpu;
  tell(data, 0x400u + vector);
}

static void host_a20(void *data, bool is_open)
{
  tell(data, 5u + is_open);
}

static void host_reset(void *data)
{
  tell(data, 7);
}

static void host_replan(void *data)
{
  (void)data;
}

static void host_byte(void *data, uint8_t byte)
{
  tell(data, 0x800u + byte);
}

static void host_exit(void *data, uint32_t value)
{
  tell(data, value);
}

static void host_power_off(void *data)
{
  tell(data, 9);
}

static void host_sleep(void *data)
{
  tell(data, 10);
}

static void host_pmi_delivered(void *data, unsigned cpu)
{
  (void)cpu;
  tell(data, 8);
}

/* ---- making ---- */

static bool guest_start(struct guest *guest, uint8_t flags)
{
  struct board_host host = {guest,        host_now,  host_intr,      host_nmi,    host_smi,          host_init,
                            host_startup, host_a20,  host_reset,     host_replan, host_byte,         host_byte,
                            host_byte,    host_exit, host_power_off, host_sleep,  host_pmi_delivered};
  struct board_config config = {
    .ram = UINT64_C(64) << 20,
    .wall_clock = 1700000000,
    .has_apic = flags & 1,
    .has_x2apic = flags & 2,
    .has_tsc_deadline = flags & 4,
    .has_floppy = flags & 8,
    .tsc_per_second = flags & 16 ? UINT64_C(3000000000) : 0,
    .apic_version = 0x14,
    .physical_bits = 40,
  };

  *guest = (struct guest){.disk = malloc(DISK_SIZE)}; /* of its own size, so that a sanitizer sees what lies outside */
  if (!guest->disk)
    return false;
  memset(guest->disk, 0x5A, DISK_SIZE);
  if (flags & 32)
    config.hda = (struct board_disk){guest->disk, DISK_SIZE, 5, 2, 4};
  return board_new(&config, &host, &guest->board) == 0;
}

/* ---- time ---- */

static void guest_advance(struct guest *guest)
{
  board_advance(guest->board, guest->now);
  check(board_deadline(guest->board) > guest->now, "a deadline lies ahead");
}

static void guest_pass(struct guest *guest, uint64_t time)
{
  uint64_t end = guest->now + time;

  for (unsigned i = 0; i < DEADLINES_MAX && board_deadline(guest->board) <= end; i++) {
    guest->now = board_deadline(guest->board);
    guest_advance(guest);
  }
  guest->now = end;
  if (board_deadline(guest->board) <= end)
    guest_advance(guest);
}

/* ---- operations ---- */

/* A port somewhere, or one that answers. */
static uint16_t take_port(struct input *input)
{
  static const uint16_t ports[] = {0x20,  0x21,  0x40,  0x41,  0x42,  0x43,  0x60,  0x61,  0x64,  0x70,  0x71,
                                   0x80,  0x92,  0xA0,  0xA1,  0xB2,  0xB3,  0xE9,  0xF0,  0xF4,  0x1F0, 0x1F1,
                                   0x1F2, 0x1F3, 0x1F4, 0x1F5, 0x1F6, 0x1F7, 0x3B4, 0x3C0, 0x3C8, 0x3C9, 0x3D4,
                                   0x3D5, 0x3DA, 0x3F6, 0x3F8, 0x3F9, 0x3FA, 0x3FB, 0x3FC, 0x3FD, 0x3FE, 0x3FF,
                                   0x4D0, 0x4D1, 0x600, 0x602, 0x604, 0x608, 0xCF8, 0xCF9, 0xCFC, 0xCFE};
  uint8_t index = (uint8_t)take(input, 1);

  return index < sizeof(ports) / sizeof(ports[0]) ? ports[index] : (uint16_t)take(input, 2);
}

static uint64_t take_address(struct input *input)
{
  static const uint64_t pages[] = {0xFEE00000, 0xFEC00000, 0xFED00000, 0x1234567000};
  uint8_t index = (uint8_t)take(input, 1);

  return pages[index & 3] + ((index & 4) ? take(input, 2) & 0xFFF : (take(input, 1) & 0xFF) << 4);
}

static uint32_t take_msr(struct input *input)
{
  uint8_t index = (uint8_t)take(input, 1);

  return index < 0x44 ? 0x800u + index : index < 0xA0 ? 0x1B : 0x6E0;
}

static uint64_t any_msr(struct board *board, uint32_t msr)
{
  uint64_t value = UINT64_C(0xA5A5A5A5A5A5A5A5);

  if (board_apic_read(board, msr, &value) < 0)
    check(value == UINT64_C(0xA5A5A5A5A5A5A5A5), "a failing board_apic_read touches nothing");
  return value;
}

static uint64_t guest_rare(struct guest *guest, struct input *input)
{
  struct board *board = guest->board;
  uint8_t bytes[TABLES_SIZE];
  size_t rsdp = 0;

  switch (take(input, 1) & 15) {
  case 0:
    board_reset(board);
    return 0;
  case 1:
    board_nmi(board);
    return 0;
  case 2:
    board_ferr(board);
    return 0;
  case 4:
    board_set_cursor(board, (uint32_t)take(input, 2));
    return board_screen(board).cursor;
  case 5:
    board_set_cursor_shape(board, (uint8_t)take(input, 1), (uint8_t)take(input, 1));
    return board_screen(board).rows;
  case 6:
    return board_tables(board, take(input, 4), bytes, (size_t)take(input, 2) % sizeof(bytes), &rsdp);
  case 7:
    board_set_task_priority(board, (uint8_t)take(input, 1));
    return board_task_priority(board);
  default:
    board_pmi(board);
    return board_lvt_perf(board);
  }
}

/* No processor runs, but time passes, and the world outside goes on. */
static uint64_t guest_sleep(struct guest *guest, struct input *input)
{
  struct board *board = guest->board;
  uint8_t code = (uint8_t)take(input, 1);

  switch (code & 7) {
  case 0:
    board_request_wake(board);
    break;
  case 1:
    board_nmi(board);
    break;
  case 2:
    return board_key(board, (uint8_t)take(input, 1));
  case 3:
    return board_serial_receive(board, (uint8_t)take(input, 1));
  default:
    guest_pass(guest, take(input, 1 + (code >> 4 & 7)) & UINT64_C(0xFFFFFFFFFFFFFF));
  }
  if (board_is_waking(board)) {
    board_wake(board);
    check(!board_is_asleep(board), "board_wake ends the sleep");
    check(board_in(board, 0x600, 2) & 0x8000, "WAK_STS says so");
  }
  return 0;
}

/* Returns what the processor sees. */
static uint64_t guest_step(struct guest *guest, struct input *input)
{
  static const unsigned sizes[] = {1, 2, 4, 8};
  struct board *board = guest->board;
  uint8_t code = (uint8_t)take(input, 1);
  unsigned size = sizes[code >> 4 & 3], port_size = size == 8 ? 1 : size;
  uint64_t address, value;
  uint32_t msr;
  uint16_t port;

  switch (code & 15) {
  case 0:
  case 1:
  case 2:
    port = take_port(input);
    board_out(board, port, port_size, (uint32_t)take(input, port_size));
    return 0;
  case 3:
  case 4:
    value = board_in(board, take_port(input), port_size);
    check(port_size == 4 || value >> 8 * port_size == 0, "what a port gives fits its size");
    return value;
  case 5:
  case 6:
    address = take_address(input);
    board_write(board, address, size, take(input, size));
    return board_owns(board, address);
  case 7:
    value = board_read(board, take_address(input), size);
    check(size == 8 || value >> 8 * size == 0, "what device memory gives fits its size");
    return value;
  case 8:
    msr = take_msr(input);
    return (uint64_t)board_apic_write(board, msr, take(input, size));
  case 9:
    return any_msr(board, take_msr(input));
  case 10:
    guest_pass(guest, take(input, 2));
    return 0;
  case 11:
    guest_pass(guest, take(input, 1 + (code >> 4 & 7)) & UINT64_C(0xFFFFFFFFFFFFFF));
    return 0;
  case 12:
    return board_key(board, (uint8_t)take(input, 1));
  case 13:
    return board_serial_receive(board, (uint8_t)take(input, 1));
  case 14:
    return guest->intr ? board_acknowledge(board) : 0;
  default:
    return guest_rare(guest, input);
  }
}

/* One operation on both boards. */
static void compare_step(struct guest guests[BOARDS], struct input *input)
{
  struct input second = *input;

  guest_advance(&guests[1]);
  bool is_asleep = board_is_asleep(guests[0].board);
  check(is_asleep == board_is_asleep(guests[1].board), "both boards sleep, or none");
  uint64_t one = is_asleep ? guest_sleep(&guests[0], input) : guest_step(&guests[0], input);
  uint64_t other = is_asleep ? guest_sleep(&guests[1], &second) : guest_step(&guests[1], &second);
  check(one == other, "both boards show the same");
  check(guests[0].now == guests[1].now, "time is the same");
  check(guests[0].told == guests[1].told, "both hosts are told the same");
  check(guests[0].intr == guests[1].intr, "INTR is the same");
  check(board_deadline(guests[0].board) == board_deadline(guests[1].board), "both boards have the same deadline");
  for (unsigned i = 0; i < BOARDS; i++)
    check(board_can_wake(guests[i].board) == (board_deadline(guests[i].board) != UINT64_MAX),
          "a board that can wake has a deadline");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct input input = {data, size};
  struct guest guests[BOARDS] = {0};
  uint8_t flags = (uint8_t)~take(&input, 1);

  if (guest_start(&guests[0], flags) && guest_start(&guests[1], flags))
    for (unsigned i = 0; i < STEPS_MAX && input.left; i++)
      compare_step(guests, &input);
  for (unsigned i = 0; i < BOARDS; i++) {
    board_free(guests[i].board);
    free(guests[i].disk);
  }
  return 0;
}
