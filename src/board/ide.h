/* SPDX-License-Identifier: Apache-2.0
 *
 * The primary IDE channel with one disk. ide.c is the task file, ide_command.c the commands, ide_identify.c what the
 * disk says of itself.
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

/* A register of the task file and what it held before: the two bytes of LBA48. */
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

/* ide_identify.c: sectors of the disk; the answer to IDENTIFY DEVICE into the buffer. */
uint64_t ide_sectors(const struct board *board);
void ide_identify(struct board *board);

/* ide_command.c: a command begins; the data port has passed the last byte of the buffer. */
void ide_begin(struct board *board, uint8_t command);
void ide_buffer_done(struct board *board);
/* The disk is ready for what `phase` says. */
void ide_ready(struct board *board);
/* Registers as after reset or diagnostic. */
void ide_sign(struct ide *ide);
void ide_signal(struct board *board, bool has_interrupt);

#endif
