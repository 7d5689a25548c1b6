/* SPDX-License-Identifier: Apache-2.0
 *
 * IRQ 0, IRQ 8 and INT 1Ah: ticks since midnight in the BIOS data area, and the real-time clock behind ports 70h and
 * 71h. The clock counts in BCD, as the firmware leaves it.
 */
#include "machine/firmware.h"

enum { CMOS_SECOND, CMOS_MINUTE = 2, CMOS_HOUR = 4, CMOS_DAY = 7, CMOS_MONTH, CMOS_YEAR, CMOS_B = 11, CMOS_C = 12 };
#define CMOS_CENTURY 0x32

static uint8_t cmos_get(struct machine *m, uint8_t index)
{
  board_out(m->board, 0x70, 1, index);
  return (uint8_t)board_in(m->board, 0x71, 1);
}

static void cmos_set(struct machine *m, uint8_t index, uint8_t value)
{
  board_out(m->board, 0x70, 1, index);
  board_out(m->board, 0x71, 1, value);
}

static uint32_t from_bcd(uint8_t value)
{
  return (value >> 4) * 10u + (value & 15u);
}

void clock_install(struct machine *machine)
{
  cmos_set(machine, CMOS_B, 0x02); /* 24 hours, BCD */
  uint32_t seconds = (from_bcd(cmos_get(machine, CMOS_HOUR)) * 60 + from_bcd(cmos_get(machine, CMOS_MINUTE))) * 60 +
                     from_bcd(cmos_get(machine, CMOS_SECOND));
  guest_put(machine, BDA_TICKS, 4, (uint32_t)((uint64_t)seconds * TICKS_PER_DAY / 86400 % TICKS_PER_DAY));
}

bool firmware_tick(struct machine *machine)
{
  uint32_t ticks = guest_get(machine, BDA_TICKS, 4) + 1;

  if (ticks >= TICKS_PER_DAY) {
    ticks = 0;
    guest_put(machine, BDA_MIDNIGHT, 1, 1);
  }
  guest_put(machine, BDA_TICKS, 4, ticks);
  return false;
}

/* IRQ 8: reading register C clears the request. */
bool firmware_alarm(struct machine *machine)
{
  cmos_get(machine, CMOS_C);
  return false;
}

/* A program that loops until the ticks change needs fewer calls when each takes some time. */
#define TICKS_NANOSECONDS 10000

static void clock_get_ticks(struct machine *m)
{
  uint32_t ticks = guest_get(m, BDA_TICKS, 4);

  set16(m, RCX, (uint16_t)(ticks >> 16));
  set16(m, RDX, (uint16_t)ticks);
  set_low(m, RAX, (uint8_t)guest_get(m, BDA_MIDNIGHT, 1));
  guest_put(m, BDA_MIDNIGHT, 1, 0);
  cpu_idle(m->cpu, TICKS_NANOSECONDS);
  cpu_kick(m->cpu); /* the board is told the time before the guest continues */
}

static void clock_set_ticks(struct machine *m)
{
  guest_put(m, BDA_TICKS, 4, (uint32_t)get16(m, RCX) << 16 | get16(m, RDX));
  guest_put(m, BDA_MIDNIGHT, 1, 0);
}

static void clock_get_time(struct machine *m)
{
  set_high(m, RCX, cmos_get(m, CMOS_HOUR));
  set_low(m, RCX, cmos_get(m, CMOS_MINUTE));
  set_high(m, RDX, cmos_get(m, CMOS_SECOND));
  set_low(m, RDX, cmos_get(m, CMOS_B) & 1); /* daylight saving */
}

static void clock_set_time(struct machine *m)
{
  cmos_set(m, CMOS_HOUR, get_high(m, RCX));
  cmos_set(m, CMOS_MINUTE, get_low(m, RCX));
  cmos_set(m, CMOS_SECOND, get_high(m, RDX));
}

static void clock_get_date(struct machine *m)
{
  set_high(m, RCX, cmos_get(m, CMOS_CENTURY));
  set_low(m, RCX, cmos_get(m, CMOS_YEAR));
  set_high(m, RDX, cmos_get(m, CMOS_MONTH));
  set_low(m, RDX, cmos_get(m, CMOS_DAY));
}

static void clock_set_date(struct machine *m)
{
  cmos_set(m, CMOS_CENTURY, get_high(m, RCX));
  cmos_set(m, CMOS_YEAR, get_low(m, RCX));
  cmos_set(m, CMOS_MONTH, get_high(m, RDX));
  cmos_set(m, CMOS_DAY, get_low(m, RDX));
}

bool firmware_clock(struct machine *machine)
{
  static void (*const functions[])(struct machine *) = {clock_get_ticks, clock_set_ticks, clock_get_time,
                                                        clock_set_time,  clock_get_date,  clock_set_date};
  uint8_t function = get_high(machine, RAX);
  if (function == 0xB1)
    return firmware_pci(machine);
  if (function < sizeof(functions) / sizeof(functions[0])) {
    functions[function](machine);
    guest_set_flag(machine, FLAG_CF, false);
    if (function >= 2)
      set_high(machine, RAX, 0);
  } else
    guest_set_flag(machine, FLAG_CF, true); /* alarms too */
  return false;
}
