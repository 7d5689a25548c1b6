/* SPDX-License-Identifier: Apache-2.0
 *
 * The values that a PC's firmware keeps in the clock's CMOS memory: drives, memory sizes, the checksum over them. They
 * are at the addresses of the IBM PC/AT, or, for memory beyond 64 MiB, at those that Bochs and QEMU use.
 */
#include "board/state.h"

enum {
  CMOS_FLOPPY = 0x10,
  CMOS_DISK = 0x12,
  CMOS_EQUIPMENT = 0x14,
  CMOS_BASE = 0x15,
  CMOS_EXTENDED = 0x17,
  CMOS_DISK_TYPE = 0x19,
  CMOS_DISK_GEOMETRY = 0x1B,
  CMOS_CHECKSUM = 0x2E,
  CMOS_EXTENDED_AGAIN = 0x30,
  CMOS_ABOVE_16M = 0x34,
  CMOS_ABOVE_4G = 0x5B,
};

#define HOLE UINT64_C(0xC0000000) /* RAM that does not fit below continues at 4 GiB */

static void cmos_put16(uint8_t *cmos, unsigned index, uint64_t value)
{
  value = value > 0xFFFF ? 0xFFFF : value;
  cmos[index] = (uint8_t)value;
  cmos[index + 1] = (uint8_t)(value >> 8);
}

static void cmos_fill_memory(uint8_t *cmos, uint64_t ram)
{
  uint64_t low = ram < HOLE ? ram : HOLE, high = ram - low;
  uint64_t extended = low > 0x100000 ? (low - 0x100000) >> 10 : 0;

  cmos_put16(cmos, CMOS_BASE, 640);
  cmos_put16(cmos, CMOS_EXTENDED, extended);
  cmos_put16(cmos, CMOS_EXTENDED_AGAIN, extended);
  cmos_put16(cmos, CMOS_ABOVE_16M, low > 0x1000000 ? (low - 0x1000000) >> 16 : 0);
  high >>= 16;
  high = high > 0xFFFFFF ? 0xFFFFFF : high;
  for (unsigned i = 0; i < 3; i++)
    cmos[CMOS_ABOVE_4G + i] = (uint8_t)(high >> 8 * i);
}

/* The disk has type 47, "user defined", and a geometry of its own. */
static void cmos_fill_disk(uint8_t *cmos, const struct board_disk *disk)
{
  if (!disk->bytes)
    return;
  uint8_t *geometry = cmos + CMOS_DISK_GEOMETRY;
  cmos[CMOS_DISK] = 0xF0;
  cmos[CMOS_DISK_TYPE] = 47;
  cmos_put16(geometry, 0, disk->cylinders);
  geometry[2] = (uint8_t)disk->heads;
  geometry[3] = geometry[4] = 0xFF; /* no write precompensation */
  geometry[5] = disk->heads > 8 ? 0xC8 : 0xC0;
  cmos_put16(geometry, 6, disk->cylinders);
  geometry[8] = (uint8_t)disk->sectors;
}

void cmos_fill(struct board *board)
{
  uint8_t *cmos = board->rtc.cmos;
  bool has_floppy = board->config.has_floppy;
  unsigned sum = 0;

  cmos[CMOS_FLOPPY] = has_floppy ? 0x40 : 0;       /* one of 1.44 MB */
  cmos[CMOS_EQUIPMENT] = has_floppy ? 0x03 : 0x02; /* a coprocessor, VGA */
  cmos_fill_memory(cmos, board->config.ram);
  cmos_fill_disk(cmos, &board->config.hda);
  for (unsigned i = 0x10; i < CMOS_CHECKSUM; i++)
    sum += cmos[i];
  cmos[CMOS_CHECKSUM] = (uint8_t)(sum >> 8);
  cmos[CMOS_CHECKSUM + 1] = (uint8_t)sum;
}
