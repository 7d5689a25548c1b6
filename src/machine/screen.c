/* SPDX-License-Identifier: Apache-2.0
 *
 * The text screen, as a pointer into the guest's video memory: what the VGA's registers show, or all of the 32 KiB down
 * to the last row that holds something.
 */
#include "machine/state.h"

#define ROWS_MAX 204u /* of 80 columns in 32 KiB */

/* The guest's registers may have any values: the returned cells lie within video memory. */
struct machine_screen machine_screen(struct machine *machine)
{
  struct board_screen board = board_screen(machine->board);
  struct machine_screen screen = {.columns = board.columns, .rows = board.rows, .has_cursor = board.has_cursor};

  if (screen.columns == 0 || screen.columns > VIDEO_SIZE / 2)
    screen.columns = 80;
  unsigned cells = VIDEO_SIZE / 2;
  if (screen.rows > cells / screen.columns)
    screen.rows = cells / screen.columns;
  unsigned start = board.start;
  if (start > cells - screen.rows * screen.columns)
    start = cells - screen.rows * screen.columns;
  screen.cells = machine->memory.ram + VIDEO_START + 2 * (size_t)start;
  unsigned cursor = board.cursor - start;
  if (board.cursor < start || cursor >= screen.rows * screen.columns)
    screen.has_cursor = false;
  else {
    screen.cursor_row = cursor / screen.columns;
    screen.cursor_column = cursor % screen.columns;
  }
  return screen;
}

static bool row_is_blank(const uint8_t *cells, unsigned columns)
{
  for (unsigned i = 0; i < columns; i++)
    if (cells[2 * i] != 0 && cells[2 * i] != ' ')
      return false;
  return true;
}

struct machine_screen machine_screen_all(struct machine *machine)
{
  struct machine_screen screen = machine_screen(machine);
  unsigned cells = VIDEO_SIZE / 2;
  unsigned cursor = (unsigned)((screen.cells - machine->memory.ram - VIDEO_START) / 2) +
                    screen.cursor_row * screen.columns + screen.cursor_column;

  screen.cells = machine->memory.ram + VIDEO_START;
  screen.rows = cells / screen.columns < ROWS_MAX ? cells / screen.columns : ROWS_MAX;
  while (screen.rows > 0 && row_is_blank(screen.cells + (size_t)(screen.rows - 1) * 2 * screen.columns, screen.columns))
    screen.rows--;
  screen.cursor_row = cursor / screen.columns;
  screen.cursor_column = cursor % screen.columns;
  screen.has_cursor = screen.has_cursor && screen.cursor_row < screen.rows;
  return screen;
}
