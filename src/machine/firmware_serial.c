/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 14h, through the registers of COM1, and INT 17h, which has no printer.
 */
#include "machine/firmware.h"

enum { COM1 = 0x3F8, COM_LCR = 3, COM_MCR = 4, COM_LSR = 5, COM_MSR = 6, LSR_READY = 1, LCR_DIVISOR = 0x80 };
#define SERIAL_TIMEOUT 0x80

static uint8_t com_in(struct machine *m, unsigned index)
{
  return (uint8_t)board_in(m->board, (uint16_t)(COM1 + index), 1);
}

static void com_out(struct machine *m, unsigned index, uint8_t value)
{
  board_out(m->board, (uint16_t)(COM1 + index), 1, value);
}

/* AL: baud rate in 7:5, parity, stop bits and length as in LCR. */
static void serial_set(struct machine *m)
{
  static const uint16_t divisors[] = {1047, 768, 384, 192, 96, 48, 24, 12};
  uint8_t wanted = get_low(m, RAX);
  uint16_t divisor = divisors[wanted >> 5];

  com_out(m, COM_LCR, LCR_DIVISOR);
  com_out(m, 0, (uint8_t)divisor);
  com_out(m, 1, (uint8_t)(divisor >> 8));
  com_out(m, COM_LCR, wanted & 0x1F);
  com_out(m, COM_MCR, 3);
}

static void serial_status(struct machine *m)
{
  set_high(m, RAX, com_in(m, COM_LSR));
  set_low(m, RAX, com_in(m, COM_MSR));
}

bool firmware_serial(struct machine *machine)
{
  if (get16(machine, RDX) != 0) {
    set_high(machine, RAX, SERIAL_TIMEOUT);
    return false;
  }
  switch (get_high(machine, RAX)) {
  case 0x00:
    serial_set(machine);
    serial_status(machine);
    break;
  case 0x01:
    com_out(machine, 0, get_low(machine, RAX));
    set_high(machine, RAX, com_in(machine, COM_LSR) & 0x7F);
    break;
  case 0x02:
    if (com_in(machine, COM_LSR) & LSR_READY) {
      set_low(machine, RAX, com_in(machine, 0));
      set_high(machine, RAX, com_in(machine, COM_LSR) & 0x1E);
    } else
      set_high(machine, RAX, SERIAL_TIMEOUT);
    break;
  case 0x03:
    serial_status(machine);
    break;
  }
  return false;
}

bool firmware_printer(struct machine *machine)
{
  set_high(machine, RAX, 0x01); /* timed out */
  return false;
}
