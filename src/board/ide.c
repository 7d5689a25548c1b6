/* SPDX-License-Identifier: Apache-2.0
 *
 * The primary IDE channel at 0x1F0-0x1F7 and 0x3F6 with IRQ 14: the task file, the data port and the time that a disk
 * takes. ATA-6 (T13/1410D). There is at most a master, and no slave. The commands are in ide_command.c.
 */
#include "base/base.h"
#include "board/state.h"

enum {
  PORT_DATA = 0x1F0,
  PORT_ERROR,
  PORT_COUNT_REGISTER,
  PORT_LBA_LOW,
  PORT_LBA_MIDDLE,
  PORT_LBA_HIGH,
  PORT_DRIVE,
  PORT_STATUS,
  PORT_CONTROL = 0x3F6,
};

#define CONTROL_NO_INTERRUPT 0x02
#define CONTROL_RESET 0x04
#define CONTROL_HIGH 0x80 /* the registers show the bytes written before */
#define DRIVE_SLAVE 0x10
#define IRQ_IDE 14

static bool ide_is_absent(const struct board *board)
{
  return !board->config.hda.bytes || (board->ide.drive & DRIVE_SLAVE);
}

/* ---- IRQ 14 and time ---- */

void ide_signal(struct board *board, bool has_interrupt)
{
  struct ide *ide = &board->ide;

  ide->has_interrupt = has_interrupt;
  line_set(board, IRQ_IDE, has_interrupt && !(ide->control & CONTROL_NO_INTERRUPT));
}

static void ide_advance(struct board *board, uint64_t now)
{
  struct ide *ide = &board->ide;

  if (now < ide->busy_until)
    return;
  ide->busy_until = CLOCK_NEVER;
  ide_ready(board);
}

static uint64_t ide_deadline(const struct board *board)
{
  const struct ide *ide = &board->ide;
  bool is_heard = !(ide->control & CONTROL_NO_INTERRUPT) && line_reaches(board, IRQ_IDE);

  return is_heard ? ide->busy_until : CLOCK_NEVER;
}

/* ---- the data port ---- */

static uint32_t ide_read_data(struct board *board, unsigned size)
{
  struct ide *ide = &board->ide;
  uint32_t value = 0;

  if (!(ide->status & IDE_DATA_REQUEST) || ide->phase != IDE_READING)
    return 0;
  for (unsigned i = 0; i < size && ide->position < ide->size; i++)
    value |= (uint32_t)ide->buffer[ide->position++] << 8 * i;
  if (ide->position == ide->size)
    ide_buffer_done(board);
  return value;
}

static void ide_write_data(struct board *board, unsigned size, uint32_t value)
{
  struct ide *ide = &board->ide;

  if (!(ide->status & IDE_DATA_REQUEST) || ide->phase != IDE_WRITING)
    return;
  for (unsigned i = 0; i < size && ide->position < ide->size; i++)
    ide->buffer[ide->position++] = (uint8_t)(value >> 8 * i);
  if (ide->position == ide->size)
    ide_buffer_done(board);
}

/* ---- registers ---- */

static struct ide_register *ide_register_at(struct ide *ide, uint16_t port)
{
  if (port == PORT_COUNT_REGISTER)
    return &ide->count;
  return port >= PORT_LBA_LOW && port <= PORT_LBA_HIGH ? &ide->lba[port - PORT_LBA_LOW] : NULL;
}

/* The missing slave reads as 0: the pull-down of bit 7 means "not busy". */
static uint8_t ide_read_status(struct board *board, bool is_alternate)
{
  struct ide *ide = &board->ide;

  if (!board->config.hda.bytes)
    return 0xFF; /* no cable */
  if (ide->drive & DRIVE_SLAVE)
    return 0;
  if (!is_alternate && ide->has_interrupt)
    ide_signal(board, false);
  return ide->status;
}

static uint8_t ide_read_register(struct board *board, uint16_t port)
{
  struct ide *ide = &board->ide;
  const struct ide_register *place = ide_register_at(ide, port);

  if (!board->config.hda.bytes)
    return 0xFF;
  if (place)
    return ide->control & CONTROL_HIGH ? place->before : place->now;
  return port == PORT_ERROR ? ide->error : ide->drive | 0xA0;
}

static uint32_t ide_in(struct board *board, uint16_t port, unsigned size)
{
  ide_advance(board, board_now(board));
  if (port == PORT_DATA)
    return ide_is_absent(board) ? UINT32_MAX : ide_read_data(board, size);
  uint32_t value = UINT32_MAX;
  for (unsigned i = 0; i < size && (port > 0x1F7 || port + i <= 0x1F7); i++) {
    uint16_t place = (uint16_t)(port + i);
    bool is_status = place == PORT_STATUS || place == PORT_CONTROL;
    uint32_t byte = is_status ? ide_read_status(board, place == PORT_CONTROL) : ide_read_register(board, place);

    value = (value & ~(UINT32_C(0xFF) << 8 * i)) | byte << 8 * i;
  }
  return value;
}

static void ide_write_control(struct board *board, uint8_t value)
{
  struct ide *ide = &board->ide;
  bool was_reset = ide->control & CONTROL_RESET;

  ide->control = value & (CONTROL_NO_INTERRUPT | CONTROL_RESET | CONTROL_HIGH);
  if ((value & CONTROL_RESET) && !was_reset) {
    ide->phase = IDE_IDLE;
    ide->busy_until = CLOCK_NEVER;
    ide->status = IDE_BUSY;
    ide->has_interrupt = false;
  } else if (was_reset && !(value & CONTROL_RESET)) {
    ide_sign(ide);
    ide->multiple = 0;
    ide->status = IDE_READY | IDE_SEEK_DONE;
  }
  ide_signal(board, ide->has_interrupt);
}

static void ide_write_register(struct board *board, uint16_t port, uint8_t value)
{
  struct ide *ide = &board->ide;
  struct ide_register *place = port == PORT_ERROR ? &ide->feature : ide_register_at(ide, port);

  if (port == PORT_CONTROL) {
    ide_write_control(board, value);
    return;
  }
  ide->control &= (uint8_t)~CONTROL_HIGH;
  if (port == PORT_STATUS)
    ide_begin(board, value);
  else if (ide->status & (IDE_BUSY | IDE_DATA_REQUEST))
    return; /* the task file belongs to the disk until the command ends */
  else if (place)
    *place = (struct ide_register){.now = value, .before = place->now};
  else
    ide->drive = value;
}

static void ide_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  board_catch_up(board);
  if (!board->config.hda.bytes)
    return;
  if (port == PORT_DATA) {
    if (!ide_is_absent(board))
      ide_write_data(board, size, value);
    return;
  }
  for (unsigned i = 0; i < size && (port > 0x1F7 || port + i <= 0x1F7); i++)
    ide_write_register(board, (uint16_t)(port + i), (uint8_t)(value >> 8 * i));
}

static void ide_reset(struct board *board)
{
  const struct board_disk *disk = &board->config.hda;

  board->ide = (struct ide){
    .busy_until = CLOCK_NEVER,
    .status = IDE_READY | IDE_SEEK_DONE,
    .heads = disk->heads && disk->heads <= 16 ? disk->heads : 16,
    .sectors = disk->sectors && disk->sectors <= 255 ? disk->sectors : 63,
  };
  ide_sign(&board->ide);
}

/* ---- saving ---- */

static void register_archive(struct archive *archive, struct ide_register *place)
{
  archive_value(archive, &place->now);
  archive_value(archive, &place->before);
}

static void task_file_archive(struct archive *archive, struct ide *ide)
{
  register_archive(archive, &ide->feature);
  register_archive(archive, &ide->count);
  for (unsigned i = 0; i < 3; i++)
    register_archive(archive, &ide->lba[i]);
  archive_value(archive, &ide->drive);
  archive_value(archive, &ide->control);
  archive_value(archive, &ide->error);
  archive_value(archive, &ide->status);
  archive_value(archive, &ide->command);
}

static void ide_archive(struct archive *archive, struct board *board)
{
  struct ide *ide = &board->ide;

  task_file_archive(archive, ide);
  archive_most(archive, &ide->multiple, IDE_MULTIPLE_MAX);
  archive_flag(archive, &ide->has_interrupt);
  archive_value(archive, &ide->busy_until);
  archive_most(archive, &ide->phase, IDE_WRITING);
  archive_value(archive, &ide->sector);
  archive_value(archive, &ide->left);
  archive_most(archive, &ide->block, IDE_MULTIPLE_MAX);
  archive_most(archive, &ide->heads, 16);
  archive_most(archive, &ide->sectors, 255);
  archive_most(archive, &ide->size, sizeof(ide->buffer));
  archive_most(archive, &ide->position, ide->size);
  archive_array(archive, ide->buffer);
  if (ide->heads == 0 || ide->sectors == 0)
    archive_refuse(archive);
  if (ide->phase == IDE_WRITING && ide->size != ide->block * IDE_SECTOR) /* `size` bytes will be written to the disk */
    archive_refuse(archive);
}

static const struct port_range ide_ports[] = {
  {0x1F0, 0x1F7, PORT_WIDE, ide_in, ide_out},
  {0x3F6, 0x3F6, 0, ide_in, ide_out},
  {0},
};

const struct device device_ide = {
  .ports = ide_ports,
  .reset = ide_reset,
  .advance = ide_advance,
  .deadline = ide_deadline,
  .archive = ide_archive,
};
