/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk's commands, by PIO: ATA-6 (T13/1410D) clause 8. A command makes the disk busy for a while; then the buffer
 * holds a block of data, or has room for one, and the disk interrupts. Writes change the image in memory.
 */
#include "board/state.h"

enum {
  COMMAND_NOP = 0x00,
  COMMAND_RECALIBRATE = 0x10,
  COMMAND_READ = 0x20,
  COMMAND_READ_NO_RETRY = 0x21,
  COMMAND_READ_EXT = 0x24,
  COMMAND_NATIVE_MAX_EXT = 0x27,
  COMMAND_READ_MULTIPLE_EXT = 0x29,
  COMMAND_WRITE = 0x30,
  COMMAND_WRITE_NO_RETRY = 0x31,
  COMMAND_WRITE_EXT = 0x34,
  COMMAND_WRITE_MULTIPLE_EXT = 0x39,
  COMMAND_VERIFY = 0x40,
  COMMAND_VERIFY_NO_RETRY = 0x41,
  COMMAND_VERIFY_EXT = 0x42,
  COMMAND_SEEK = 0x70,
  COMMAND_DIAGNOSTIC = 0x90,
  COMMAND_PARAMETERS = 0x91,
  COMMAND_READ_MULTIPLE = 0xC4,
  COMMAND_WRITE_MULTIPLE = 0xC5,
  COMMAND_SET_MULTIPLE = 0xC6,
  COMMAND_STANDBY_NOW = 0xE0,
  COMMAND_IDLE_NOW = 0xE1,
  COMMAND_STANDBY = 0xE2,
  COMMAND_IDLE = 0xE3,
  COMMAND_POWER_MODE = 0xE5,
  COMMAND_SLEEP = 0xE6,
  COMMAND_FLUSH = 0xE7,
  COMMAND_FLUSH_EXT = 0xEA,
  COMMAND_IDENTIFY = 0xEC,
  COMMAND_SET_FEATURES = 0xEF,
  COMMAND_NATIVE_MAX = 0xF8,
};

#define BUSY_TIME UINT64_C(3000) /* a very fast disk; not 0, so that no guest relies on that */
#define DRIVE_LBA 0x40

/* ---- addresses ---- */

static uint64_t address_ext(const struct ide *ide)
{
  uint64_t address = 0;

  for (unsigned i = 0; i < 3; i++)
    address |= (uint64_t)ide->lba[i].now << 8 * i | (uint64_t)ide->lba[i].before << (8 * i + 24);
  return address;
}

/* LBA28 or CHS, as the drive register says. UINT64_MAX: there is no such sector. */
static uint64_t address_short(const struct ide *ide)
{
  uint32_t head = ide->drive & 15, sector = ide->lba[0].now;
  uint32_t cylinder = (uint32_t)(ide->lba[1].now | ide->lba[2].now << 8);

  if (ide->drive & DRIVE_LBA)
    return sector | cylinder << 8 | head << 24;
  if (sector == 0 || sector > ide->sectors || head >= ide->heads)
    return UINT64_MAX;
  return ((uint64_t)cylinder * ide->heads + head) * ide->sectors + sector - 1;
}

static void address_put_ext(struct ide *ide, uint64_t address)
{
  for (unsigned i = 0; i < 3; i++)
    ide->lba[i] = (struct ide_register){(uint8_t)(address >> 8 * i), (uint8_t)(address >> (8 * i + 24))};
}

/* After an error the registers name the sector. */
static void address_put_short(struct ide *ide, uint64_t address)
{
  uint32_t head = (uint32_t)(address >> 24), cylinder = (uint32_t)(address >> 8 & 0xFFFF), sector = address & 0xFF;

  if (!(ide->drive & DRIVE_LBA)) {
    sector = (uint32_t)(address % ide->sectors) + 1;
    head = (uint32_t)(address / ide->sectors % ide->heads);
    cylinder = (uint32_t)(address / ide->sectors / ide->heads);
  }
  ide->lba[0].now = (uint8_t)sector;
  ide->lba[1].now = (uint8_t)cylinder;
  ide->lba[2].now = (uint8_t)(cylinder >> 8);
  ide->drive = (uint8_t)((ide->drive & 0xF0) | (head & 15));
}

static bool command_is_ext(uint8_t command)
{
  return command == COMMAND_READ_EXT || command == COMMAND_READ_MULTIPLE_EXT || command == COMMAND_WRITE_EXT ||
         command == COMMAND_WRITE_MULTIPLE_EXT || command == COMMAND_VERIFY_EXT || command == COMMAND_NATIVE_MAX_EXT;
}

static bool command_is_multiple(uint8_t command)
{
  return command == COMMAND_READ_MULTIPLE || command == COMMAND_READ_MULTIPLE_EXT ||
         command == COMMAND_WRITE_MULTIPLE || command == COMMAND_WRITE_MULTIPLE_EXT;
}

/* ---- ends of commands ---- */

static void ide_finish(struct board *board, uint8_t error)
{
  struct ide *ide = &board->ide;

  ide->phase = IDE_IDLE;
  ide->error = error;
  ide->status = (uint8_t)(IDE_READY | IDE_SEEK_DONE | (error ? IDE_ERROR : 0));
  ide_signal(board, true);
}

static void ide_lose_sector(struct board *board)
{
  struct ide *ide = &board->ide;

  if (command_is_ext(ide->command))
    address_put_ext(ide, ide->sector);
  else if (ide->sector != UINT64_MAX)
    address_put_short(ide, ide->sector);
  ide_finish(board, IDE_NOT_FOUND);
}

static void ide_work(struct board *board)
{
  board->ide.status = IDE_BUSY;
  board->ide.busy_until = board_now(board) + BUSY_TIME;
  board->is_touched = true;
}

/* ---- transfers ---- */

static uint32_t block_size(const struct ide *ide)
{
  uint32_t block = command_is_multiple(ide->command) ? ide->multiple : 1;

  return block < ide->left ? block : ide->left;
}

static bool block_is_there(const struct board *board)
{
  const struct ide *ide = &board->ide;
  uint64_t sectors = ide_sectors(board);

  return ide->sector < sectors && ide->block <= sectors - ide->sector;
}

/* Offers the buffer, which a read or IDENTIFY has filled, at the data port. */
static void ide_show_buffer(struct board *board)
{
  struct ide *ide = &board->ide;

  ide->position = 0;
  ide->status = IDE_READY | IDE_SEEK_DONE | IDE_DATA_REQUEST;
  ide_signal(board, true);
}

static void ide_ready_to_read(struct board *board)
{
  struct ide *ide = &board->ide;

  if (ide->left) { /* else IDENTIFY has filled the buffer */
    ide->block = block_size(ide);
    if (!block_is_there(board)) {
      ide_lose_sector(board);
      return;
    }
    ide->size = ide->block * IDE_SECTOR;
    memcpy(ide->buffer, board->config.hda.bytes + ide->sector * IDE_SECTOR, ide->size);
    ide->sector += ide->block;
    ide->left -= ide->block;
  }
  ide_show_buffer(board);
}

/* Requests the next block from the guest. The request for the first block raises no interrupt. */
static void ide_ask_for_block(struct ide *ide)
{
  ide->block = block_size(ide);
  ide->size = ide->block * IDE_SECTOR;
  ide->position = 0;
  ide->status = IDE_READY | IDE_SEEK_DONE | IDE_DATA_REQUEST;
}

static void ide_store_block(struct board *board)
{
  struct ide *ide = &board->ide;

  if (!block_is_there(board)) {
    ide_lose_sector(board);
    return;
  }
  memcpy(board->config.hda.bytes + ide->sector * IDE_SECTOR, ide->buffer, ide->size);
  ide->sector += ide->block;
  ide->left -= ide->block;
  if (ide->left == 0) {
    ide_finish(board, 0);
    return;
  }
  ide_ask_for_block(ide);
  ide_signal(board, true);
}

void ide_ready(struct board *board)
{
  switch (board->ide.phase) {
  case IDE_READING:
    ide_ready_to_read(board);
    break;
  case IDE_WRITING:
    ide_store_block(board);
    break;
  default:
    ide_finish(board, 0);
    break;
  }
}

void ide_buffer_done(struct board *board)
{
  struct ide *ide = &board->ide;

  if (ide->phase == IDE_WRITING || ide->left) {
    ide_work(board);
    return;
  }
  ide->phase = IDE_IDLE; /* the last block of a read ends without an interrupt */
  ide->status = IDE_READY | IDE_SEEK_DONE;
  board->is_touched = true;
}

static void ide_begin_transfer(struct board *board, enum ide_phase phase)
{
  struct ide *ide = &board->ide;
  bool is_ext = command_is_ext(ide->command);
  uint32_t count = is_ext ? (uint32_t)(ide->count.before << 8 | ide->count.now) : ide->count.now;

  if (command_is_multiple(ide->command) && ide->multiple == 0) {
    ide_finish(board, IDE_ABORTED);
    return;
  }
  ide->sector = is_ext ? address_ext(ide) : address_short(ide);
  ide->left = count ? count : is_ext ? 65536 : 256;
  ide->phase = phase;
  if (phase == IDE_WRITING)
    ide_ask_for_block(ide);
  else
    ide_work(board);
}

/* READ VERIFY and SEEK only check that the sectors exist. */
static void ide_begin_verify(struct board *board)
{
  struct ide *ide = &board->ide;
  bool is_ext = command_is_ext(ide->command);
  uint32_t count = is_ext ? (uint32_t)(ide->count.before << 8 | ide->count.now) : ide->count.now;
  uint64_t sectors = ide_sectors(board);

  ide->sector = is_ext ? address_ext(ide) : address_short(ide);
  count = ide->command == COMMAND_SEEK ? 1 : count ? count : is_ext ? 65536 : 256;
  if (ide->sector >= sectors || count > sectors - ide->sector)
    ide_lose_sector(board);
  else
    ide_work(board);
}

static void ide_begin_identify(struct board *board)
{
  struct ide *ide = &board->ide;

  ide_identify(board);
  ide->phase = IDE_READING;
  ide->left = 0;
  ide->size = IDE_SECTOR;
  ide_work(board);
}

/* ---- settings ---- */

void ide_sign(struct ide *ide)
{
  ide->error = 1; /* diagnostic code: no error */
  ide->count = (struct ide_register){1, 0};
  ide->lba[0] = (struct ide_register){1, 0};
  ide->lba[1] = ide->lba[2] = (struct ide_register){0, 0};
  ide->drive = 0;
}

static void ide_diagnose(struct board *board)
{
  struct ide *ide = &board->ide;

  ide_finish(board, 0);
  ide_sign(ide);
}

static void ide_set_multiple(struct board *board)
{
  struct ide *ide = &board->ide;
  uint8_t count = ide->count.now;
  bool is_good = count <= IDE_MULTIPLE_MAX && (count & (count - 1)) == 0;

  if (is_good)
    ide->multiple = count;
  ide_finish(board, is_good ? 0 : IDE_ABORTED);
}

/* INITIALIZE DEVICE PARAMETERS: the geometry of CHS addresses. */
static void ide_set_parameters(struct board *board)
{
  struct ide *ide = &board->ide;
  bool is_good = ide->count.now != 0;

  if (is_good) {
    ide->heads = (ide->drive & 15u) + 1;
    ide->sectors = ide->count.now;
  }
  ide_finish(board, is_good ? 0 : IDE_ABORTED);
}

/* PIO modes, write cache and look-ahead may be set to anything; DMA modes may not. */
static void ide_set_features(struct board *board)
{
  const struct ide *ide = &board->ide;
  uint8_t feature = ide->feature.now;
  bool is_good = feature == 0x02 || feature == 0x82 || feature == 0x55 || feature == 0xAA || feature == 0x66 ||
                 feature == 0xCC || (feature == 0x03 && ide->count.now < 0x10);

  ide_finish(board, is_good ? 0 : IDE_ABORTED);
}

static void ide_report_native_max(struct board *board)
{
  struct ide *ide = &board->ide;
  uint64_t last = ide_sectors(board) ? ide_sectors(board) - 1 : 0;

  if (command_is_ext(ide->command))
    address_put_ext(ide, last);
  else {
    ide->drive |= DRIVE_LBA;
    address_put_short(ide, last > IDE_LBA28_MAX ? IDE_LBA28_MAX : last);
  }
  ide_finish(board, 0);
}

/* ---- the commands ---- */

static void ide_execute(struct board *board, uint8_t command)
{
  struct ide *ide = &board->ide;

  switch (command) {
  case COMMAND_READ:
  case COMMAND_READ_NO_RETRY:
  case COMMAND_READ_EXT:
  case COMMAND_READ_MULTIPLE:
  case COMMAND_READ_MULTIPLE_EXT:
    ide_begin_transfer(board, IDE_READING);
    break;
  case COMMAND_WRITE:
  case COMMAND_WRITE_NO_RETRY:
  case COMMAND_WRITE_EXT:
  case COMMAND_WRITE_MULTIPLE:
  case COMMAND_WRITE_MULTIPLE_EXT:
    ide_begin_transfer(board, IDE_WRITING);
    break;
  case COMMAND_VERIFY:
  case COMMAND_VERIFY_NO_RETRY:
  case COMMAND_VERIFY_EXT:
  case COMMAND_SEEK:
    ide_begin_verify(board);
    break;
  case COMMAND_IDENTIFY:
    ide_begin_identify(board);
    break;
  case COMMAND_PARAMETERS:
    ide_set_parameters(board);
    break;
  case COMMAND_SET_MULTIPLE:
    ide_set_multiple(board);
    break;
  case COMMAND_SET_FEATURES:
    ide_set_features(board);
    break;
  case COMMAND_NATIVE_MAX:
  case COMMAND_NATIVE_MAX_EXT:
    ide_report_native_max(board);
    break;
  case COMMAND_POWER_MODE:
    ide->count.now = 0xFF; /* active */
    ide_finish(board, 0);
    break;
  case COMMAND_STANDBY_NOW:
  case COMMAND_IDLE_NOW:
  case COMMAND_STANDBY:
  case COMMAND_IDLE:
  case COMMAND_SLEEP:
    ide_finish(board, 0);
    break;
  case COMMAND_FLUSH:
  case COMMAND_FLUSH_EXT:
    ide_work(board);
    break;
  default:
    if ((command & 0xF0) == COMMAND_RECALIBRATE)
      ide_work(board);
    else
      ide_finish(board, IDE_ABORTED);
    break;
  }
}

/* DIAGNOSTIC is for both drives, whichever is selected; all other commands are ignored by a drive that is not there. */
void ide_begin(struct board *board, uint8_t command)
{
  struct ide *ide = &board->ide;

  if (ide->status & IDE_BUSY)
    return;
  if (command == COMMAND_DIAGNOSTIC) {
    ide_signal(board, false);
    ide_diagnose(board);
    return;
  }
  if (ide->drive & 0x10)
    return;
  ide_signal(board, false);
  ide->command = command;
  ide->error = 0;
  ide->phase = IDE_IDLE;
  ide_execute(board, command);
}
