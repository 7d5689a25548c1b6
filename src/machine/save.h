/* SPDX-License-Identifier: Apache-2.0
 *
 * A saved machine as bytes: doc/machine-format.md. save.c writes it, load.c reads it, save_state.c has the code that
 * both share: the machine's own fields.
 */
#ifndef MACHINE_SAVE_H
#define MACHINE_SAVE_H

#include "base/base.h"
#include "machine/state.h"

#define SAVE_MAGIC "\x89LBM\r\n\x1A\n"
#define SAVE_MAGIC_SIZE 8u
#define SAVE_VERSION 9u
#define SAVE_HEAD_SIZE 16u    /* magic, version, checksum of these */
#define SAVE_SECTION_SIZE 24u /* name, length, checksum of the contents, checksum of these */
#define SAVE_NAME_SIZE 8u

/* The sections in their order. Each occurs once, but SAVE_CPU once for each processor. */
enum save_section { SAVE_MACHINE, SAVE_START, SAVE_FLOPPY, SAVE_DISK, SAVE_MEMORY, SAVE_BOARD, SAVE_CPU, SAVE_END };
#define SAVE_SECTIONS (SAVE_END + 1u)
extern const char save_names[SAVE_SECTIONS][SAVE_NAME_SIZE + 1];

/* The facts that are needed before a machine can be made. */
struct save_plan {
  char cpu[32]; /* name in the catalogue */
  uint32_t cpus;
  uint64_t ram;
  uint32_t recorder_options;
  bool has_test_device;
  int64_t wall_clock;
  struct drive floppy, disk; /* without their bytes */
};

void plan_archive(struct archive *archive, struct save_plan *plan);
/* The fields of the machine itself. */
void machine_archive(struct archive *archive, struct machine *machine);
/* The kernel, bytes or drives that the machine was started with. Reading makes copies; an invalid start is refused, and
 * may be given to start_done. */
void start_archive(struct archive *archive, struct start *start);

/* ---- bytes that are mostly zeros ---- */

#define SPARSE_PAGE 4096u

static inline size_t sparse_size(uint64_t size, uint64_t page)
{
  uint64_t left = size - page * SPARSE_PAGE;

  return left < SPARSE_PAGE ? (size_t)left : SPARSE_PAGE;
}

#endif
