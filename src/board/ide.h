/* SPDX-License-Identifier: Apache-2.0
 *
 * The primary IDE channel with one disk. ide.c has the task file, ide_command.c the commands, ide_identify.c the data
 * of IDENTIFY DEVICE.
 */
#ifndef BOARD_IDE_H
#define BOARD_IDE_H

#include <stdbool.h>
#include <stdint.h>

#define IDE_SECTOR 512u
#define IDE_MULTIPLE_MAX 16u
#define IDE_LBA28_MAX UINT64_C(0x0FFFFFFF)
#define IDE_LBA48_MAX UINT64_C(0xFFFFFFFFFFFF)

struct board;

enum {
  IDE_ERROR = 0x01, /* in status */
  IDE_DATA_REQUEST = 0x08,
  IDE_SEEK_DONE = 0x10,
  IDE_FAULT = 0x20,
  IDE_READY = 0x40,
  IDE_BUSY = 0x80,
};

enum {
  IDE_ABORTED = 0x04, /* in error */
  IDE_NOT_FOUND = 0x10,
};

enum ide_phase { IDE_IDLE, IDE_READING, IDE_WRITING };

/* A register of the task file and its previous value: the two bytes of LBA48. */
struct ide_register {
  uint8_t now, before;
};

struct ide {
  struct ide_register feature, count, lba[3];
  uint8_t drive, control, error, status, command;
  uint8_t multiple;   /* sectors per block of READ MULTIPLE, 0 when not set */
  bool has_interrupt; /* INTRQ */
  uint64_t busy_until;
  enum ide_phase phase;    /* what the data port does, or will do when the disk is no longer busy */
  uint64_t sector;         /* that is transferred next */
  uint32_t left;           /* sectors still to be transferred */
  uint32_t block;          /* sectors in the buffer */
  uint32_t heads, sectors; /* of CHS addresses: INITIALIZE DEVICE PARAMETERS changes them */
  uint32_t position, size; /* in the buffer, bytes */
  uint8_t buffer[IDE_MULTIPLE_MAX * IDE_SECTOR];
};

/* ide_identify.c: ide_sectors returns the disk's sectors; ide_identify fills the buffer with the answer to IDENTIFY
 * DEVICE. */
uint64_t ide_sectors(const struct board *board);
void ide_identify(struct board *board);

/* ide_command.c: ide_begin begins a command; ide_buffer_done is called after the last byte of the buffer has passed the
 * data port. */
void ide_begin(struct board *board, uint8_t command);
void ide_buffer_done(struct board *board);
/* Does the work of `phase` once the disk is no longer busy. */
void ide_ready(struct board *board);
/* Sets the registers as after a reset or diagnostic. */
void ide_sign(struct ide *ide);
void ide_signal(struct board *board, bool has_interrupt);

#endif
