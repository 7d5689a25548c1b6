/* SPDX-License-Identifier: Apache-2.0
 *
 * The board's state to and from bytes: the board's own fields, then those of each device (device.h). The bytes may be
 * forged.
 */
#include "board/save.h"

#define ISA_LINES 16u

static void devices_archive(struct archive *archive, struct board *board)
{
  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    if (devices[i]->archive)
      devices[i]->archive(archive, board);
}

void board_archive(struct archive *archive, struct board *board)
{
  archive_flag(archive, &board->is_touched);
  archive_most(archive, &board->intr, (1u << board->config.cpus) - 1);
  archive_value(archive, &board->deadline);
  archive_most(archive, &board->lines, (UINT32_C(1) << ISA_LINES) - 1);
  archive_flag(archive, &board->a20_is_open);
  devices_archive(archive, board);
}

size_t board_save(struct board *board, void *bytes, size_t size)
{
  struct archive archive = archive_writer(bytes, size);

  board_archive(&archive, board);
  return archive.at;
}

int board_load(struct board *board, const void *bytes, size_t size)
{
  struct archive archive = archive_reader(bytes, size);

  board_archive(&archive, board);
  int error = archive_end(&archive);
  if (error >= 0)
    board->host.a20(board->host.data, board->a20_is_open);
  return error;
}

bool board_intr(const struct board *board, unsigned cpu)
{
  return board->intr >> cpu & 1;
}
