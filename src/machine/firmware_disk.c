/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 13h by cylinder, head and sector: floppy 00h and disk 80h. The status in AH is also kept in the BIOS data area.
 * The LBA extensions of disks are in firmware_disk_lba.c.
 */
#include "machine/firmware.h"

static struct drive *drive_get(struct machine *m, uint8_t number)
{
  struct drive *drive = number == 0x00 ? &m->floppy : number == 0x80 ? &m->disk : NULL;

  return drive && drive->bytes ? drive : NULL;
}

static bool drive_is_floppy(const struct machine *m, const struct drive *drive)
{
  return drive == &m->floppy;
}

/* Copies page by page, so that a transfer wraps at the end of memory and stops only at the end of the drive. */
uint8_t disk_transfer(struct machine *machine, struct drive *drive, int direction, uint64_t sector, uint32_t count,
                      uint64_t linear)
{
  uint64_t sectors = drive->size / SECTOR_SIZE;

  if (sector >= sectors || count > sectors - sector)
    return DISK_NO_SECTOR;
  uint8_t *bytes = drive->bytes + sector * SECTOR_SIZE;
  if (direction == DISK_READ)
    guest_write(machine, linear, bytes, (size_t)count * SECTOR_SIZE);
  if (direction == DISK_WRITE)
    guest_read(machine, linear, bytes, (size_t)count * SECTOR_SIZE);
  return DISK_OK;
}

/* CH, CL, DH: the first sector's number on the drive. False: there is none. */
static bool place_get(const struct machine *m, const struct drive *drive, uint64_t *ret_sector)
{
  uint32_t cylinder = get_high(m, RCX) | (get_low(m, RCX) & 0xC0u) << 2;
  uint32_t sector = get_low(m, RCX) & 0x3Fu, head = get_high(m, RDX);

  if (cylinder >= drive->cylinders || head >= drive->heads || sector < 1 || sector > drive->sectors)
    return false;
  *ret_sector = ((uint64_t)cylinder * drive->heads + head) * drive->sectors + sector - 1;
  return true;
}

/* AH=02h, 03h, 04h: AL sectors at ES:BX. */
static uint8_t disk_sectors(struct machine *m, struct drive *drive, int direction)
{
  uint64_t sector;
  uint8_t count = get_low(m, RAX);

  if (count == 0)
    return DISK_BAD_COMMAND;
  if (!place_get(m, drive, &sector))
    return DISK_BAD_COMMAND;
  return disk_transfer(m, drive, direction, sector, count, guest_at(m, ES, get16(m, RBX)));
}

/* AH=05h fills a track of a floppy with the fill byte of its parameters. */
static uint8_t disk_format(struct machine *m, struct drive *drive)
{
  uint32_t cylinder = get_high(m, RCX), head = get_high(m, RDX);

  if (!drive_is_floppy(m, drive))
    return DISK_BAD_COMMAND;
  if (cylinder >= drive->cylinders || head >= drive->heads)
    return DISK_NO_SECTOR;
  uint64_t track = (uint64_t)drive->sectors * SECTOR_SIZE;
  uint8_t *bytes = drive->bytes + ((uint64_t)cylinder * drive->heads + head) * track;
  for (uint64_t i = 0; i < track; i++)
    bytes[i] = 0xF6;
  return DISK_OK;
}

/* AH=08h */
static uint8_t disk_parameters(struct machine *m, const struct drive *drive)
{
  uint32_t last = drive->cylinders - 1;

  set16(m, RCX, (uint16_t)((last & 0xFF) << 8 | (last >> 2 & 0xC0) | drive->sectors));
  set16(m, RDX, (uint16_t)((drive->heads - 1) << 8 | 1)); /* one drive of this kind */
  set_low(m, RAX, 0);
  if (drive_is_floppy(m, drive)) {
    set16(m, RBX, drive->type);
    cpu_load_real_segment(m->cpu, ES, FIRMWARE_SEGMENT);
    set16(m, RDI, ROM_DISKETTE_TABLE);
  }
  return DISK_OK;
}

/* AH=08h of a missing floppy drive returns the number of floppy drives. */
static uint8_t disk_no_parameters(struct machine *m)
{
  uint8_t number = get_low(m, RDX);

  if (number >= 0x80)
    return DISK_BAD_COMMAND;
  set16(m, RAX, 0);
  set16(m, RBX, 0);
  set16(m, RCX, 0);
  set16(m, RDX, m->floppy.bytes ? 1 : 0);
  return DISK_OK;
}

/* AH=15h: AH is not a status but the kind of drive. */
static void disk_kind(struct machine *m, const struct drive *drive)
{
  uint64_t sectors = drive ? drive->size / SECTOR_SIZE : 0;

  guest_succeed(m, !drive ? 0 : drive_is_floppy(m, drive) ? 1 : 3);
  if (drive && !drive_is_floppy(m, drive)) {
    set16(m, RCX, (uint16_t)((sectors > UINT32_MAX ? UINT32_MAX : sectors) >> 16));
    set16(m, RDX, (uint16_t)sectors);
  }
}

static uint8_t disk_seek(const struct machine *m, const struct drive *drive)
{
  uint32_t cylinder = get_high(m, RCX) | (get_low(m, RCX) & 0xC0u) << 2;

  return cylinder < drive->cylinders && get_high(m, RDX) < drive->heads ? DISK_OK : DISK_NO_SECTOR;
}

/* AH=18h accepts only the drive's own format. */
static uint8_t disk_set_format(struct machine *m, const struct drive *drive)
{
  uint32_t last = get_high(m, RCX) | (get_low(m, RCX) & 0xC0u) << 2;

  if (!drive_is_floppy(m, drive))
    return DISK_BAD_COMMAND;
  if (last + 1 != drive->cylinders || (get_low(m, RCX) & 0x3Fu) != drive->sectors)
    return 0x0C;
  cpu_load_real_segment(m->cpu, ES, FIRMWARE_SEGMENT);
  set16(m, RDI, ROM_DISKETTE_TABLE);
  return DISK_OK;
}

static uint8_t disk_function(struct machine *m, struct drive *drive, uint8_t function)
{
  bool is_floppy = drive_is_floppy(m, drive);

  switch (function) {
  case 0x00: /* reset */
    return DISK_OK;
  case 0x02:
    return disk_sectors(m, drive, DISK_READ);
  case 0x03:
    return disk_sectors(m, drive, DISK_WRITE);
  case 0x04:
    return disk_sectors(m, drive, DISK_VERIFY);
  case 0x05:
    return disk_format(m, drive);
  case 0x08:
    return disk_parameters(m, drive);
  case 0x09: /* of disks: set parameters, reset, ready, recalibrate, diagnose */
  case 0x0D:
  case 0x10:
  case 0x11:
  case 0x14:
    return is_floppy ? DISK_BAD_COMMAND : DISK_OK;
  case 0x0C:
    return is_floppy ? DISK_BAD_COMMAND : disk_seek(m, drive);
  case 0x16: /* disk changed? never */
    return is_floppy ? DISK_OK : DISK_BAD_COMMAND;
  case 0x18:
    return disk_set_format(m, drive);
  default:
    return !is_floppy && disk_is_extension(function) ? disk_extension(m, drive) : DISK_BAD_COMMAND;
  }
}

static uint8_t disk_status(struct machine *m, struct drive *drive, uint8_t function)
{
  if (drive)
    return disk_function(m, drive, function);
  if (function == 0x08)
    return disk_no_parameters(m);
  if (function == 0x00 && get_low(m, RDX) < 0x80)
    return DISK_OK; /* the controller is there without a drive */
  return get_low(m, RDX) < 0x80 ? DISK_TIMEOUT : DISK_BAD_COMMAND;
}

bool firmware_disk(struct machine *machine)
{
  uint8_t number = get_low(machine, RDX), function = get_high(machine, RAX);
  struct drive *drive = drive_get(machine, number);
  uint64_t last = number < 0x80 ? BDA_FLOPPY_STATUS : BDA_DISK_STATUS;

  if (function == 0x15) {
    disk_kind(machine, drive);
    return false;
  }
  bool is_question = function == 0x01;
  uint8_t status = is_question ? (uint8_t)guest_get(machine, last, 1) : disk_status(machine, drive, function);
  guest_put(machine, last, 1, is_question ? 0 : status);
  if (status != DISK_OK) {
    guest_fail(machine, status);
    if (function >= 0x02 && function <= 0x04)
      set_low(machine, RAX, 0); /* sectors done */
  } else if (function == 0x41)
    guest_set_flag(machine, FLAG_CF, false); /* AH is the version */
  else
    guest_succeed(machine, 0);
  return false;
}
