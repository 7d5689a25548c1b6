/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 13h extensions of disks: sectors by number, through a packet in memory. BIOS Enhanced Disk Drive
 * Specification 1.1, section 3.
 */
#include <string.h>

#include "base/base.h"
#include "machine/firmware.h"

#define EXTENSION_VERSION 0x21 /* 1.1 */
#define EXTENSION_SUPPORT 1    /* CX: packet functions */

/* DS:SI: size, 0, count (2 bytes), buffer (offset, segment), first sector (8), flat buffer (8) if buffer is FFFF:FFFF.
 */
struct packet {
  uint64_t at; /* where it lies */
  uint16_t count;
  uint64_t linear, sector;
};

static bool packet_get(struct machine *m, struct packet *ret_packet)
{
  struct packet packet = {.at = guest_at(m, DS, get16(m, RSI))};
  uint8_t bytes[24];

  guest_read(m, packet.at, bytes, sizeof(bytes));
  if (bytes[0] < 16)
    return false;
  packet.count = (uint16_t)(bytes[2] | bytes[3] << 8);
  uint32_t buffer = bytes_get_u32(bytes + 4);
  packet.linear = (buffer >> 16) * UINT64_C(16) + (buffer & 0xFFFF);
  packet.sector = bytes_get_u64(bytes + 8);
  if (buffer == UINT32_MAX && bytes[0] >= 24)
    packet.linear = bytes_get_u64(bytes + 16);
  *ret_packet = packet;
  return true;
}

static uint8_t extension_transfer(struct machine *m, struct drive *drive, int direction)
{
  struct packet packet;

  if (!packet_get(m, &packet))
    return DISK_BAD_COMMAND;
  uint8_t status = disk_transfer(m, drive, direction, packet.sector, packet.count, packet.linear);
  if (status != DISK_OK)
    guest_put(m, packet.at + 2, 2, 0); /* sectors done */
  return status;
}

/* AH=48h: the buffer at DS:SI says how big it is. */
static uint8_t extension_parameters(struct machine *m, const struct drive *drive)
{
  uint64_t at = guest_at(m, DS, get16(m, RSI));
  uint32_t room = guest_get(m, at, 2);
  uint8_t bytes[30] = {0};

  if (room < 26)
    return DISK_BAD_COMMAND;
  uint8_t size = room < sizeof(bytes) ? 26 : sizeof(bytes);
  bytes[0] = size;
  bytes[2] = 2; /* the geometry is good */
  bytes_put_u32(bytes + 4, drive->cylinders);
  bytes_put_u32(bytes + 8, drive->heads);
  bytes_put_u32(bytes + 12, drive->sectors);
  bytes_put_u64(bytes + 16, drive->size / SECTOR_SIZE);
  bytes[24] = (uint8_t)SECTOR_SIZE;
  bytes[25] = (uint8_t)(SECTOR_SIZE >> 8);
  bytes_put_u32(bytes + 26, UINT32_MAX); /* no table of the device's parameters */
  guest_write(m, at, bytes, size);
  return DISK_OK;
}

static uint8_t extension_check(struct machine *m)
{
  if (get16(m, RBX) != 0x55AA)
    return DISK_BAD_COMMAND;
  set16(m, RBX, 0xAA55);
  set_high(m, RAX, EXTENSION_VERSION);
  set16(m, RCX, EXTENSION_SUPPORT);
  return DISK_OK;
}

bool disk_is_extension(uint8_t function)
{
  return (function >= 0x41 && function <= 0x44) || function == 0x47 || function == 0x48;
}

uint8_t disk_extension(struct machine *machine, struct drive *drive)
{
  switch (get_high(machine, RAX)) {
  case 0x41:
    return extension_check(machine);
  case 0x42:
    return extension_transfer(machine, drive, DISK_READ);
  case 0x43:
    return extension_transfer(machine, drive, DISK_WRITE);
  case 0x44:
  case 0x47:
    return extension_transfer(machine, drive, DISK_VERIFY);
  default:
    return extension_parameters(machine, drive);
  }
}
