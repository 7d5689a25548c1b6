/* SPDX-License-Identifier: Apache-2.0
 *
 * The text screen in a terminal: computes what must be sent to the terminal while the guest runs.
 */
#include <string.h>

#include "session/machine.h"

static const uint8_t *row_cells(const struct machine_screen *screen, unsigned row)
{
  return screen->cells + (size_t)row * screen->columns * 2;
}

/* Colours of the PC (blue, green, red) as terminals number them (red, green, blue). Bit 7 of an attribute blinks. */
static void colour_put(struct text *text, uint8_t attribute)
{
  static const uint8_t colours[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  unsigned bright = attribute & 8 ? 90 : 30;

  text_addf(text, "\033[0;%s%u;%um", attribute & 0x80 ? "5;" : "", bright + colours[attribute & 7],
            40u + colours[attribute >> 4 & 7]);
}

/* The position and attribute of the last character: a following one on the same line needs fewer bytes. */
struct pen {
  unsigned row, column;
  int attribute; /* -1: not known */
};

static void cell_put(struct text *text, struct pen *pen, unsigned row, unsigned column, const uint8_t *cell)
{
  char bytes[4];

  if (pen->row != row || pen->column != column)
    text_addf(text, "\033[%u;%uH", row + 1, column + 1);
  if (pen->attribute != cell[1])
    colour_put(text, cell[1]);
  text_add_bytes(text, bytes, machine_screen_letter(cell[0], bytes));
  *pen = (struct pen){row, column + 1, cell[1]};
}

static void row_update(struct machine_live_screen *live, const struct machine_screen *screen, unsigned row,
                       unsigned columns, struct pen *pen, struct text *text)
{
  const uint8_t *cells = row_cells(screen, row);

  for (unsigned column = 0; column < columns; column++) {
    uint8_t *known = live->cells[row][column];

    if (live->is_known && !memcmp(known, cells + (size_t)2 * column, 2))
      continue;
    memcpy(known, cells + (size_t)2 * column, 2);
    cell_put(text, pen, row, column, known);
  }
}

static unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

void machine_live_screen_update(struct machine_live_screen *live, const struct machine_screen *screen,
                                struct text *text)
{
  unsigned columns = least(least(screen->columns, live->columns), LIVE_COLUMNS);
  unsigned rows = least(least(screen->rows, live->rows), LIVE_ROWS);
  struct pen pen = {UINT32_MAX, 0, -1};
  bool is_inside = screen->has_cursor && screen->cursor_row < rows && screen->cursor_column < columns;
  int cursor = is_inside ? (int)(screen->cursor_row * LIVE_COLUMNS + screen->cursor_column) : -1;

  if (!live->is_known)
    text_add(text, "\033[0m\033[2J");
  for (unsigned row = 0; row < rows; row++)
    row_update(live, screen, row, columns, &pen, text);
  if (live->is_known && live->cursor == cursor && !text->length)
    return;
  live->is_known = true;
  live->cursor = cursor;
  if (is_inside)
    text_addf(text, "\033[%u;%uH\033[?25h", screen->cursor_row + 1, screen->cursor_column + 1);
  else
    text_add(text, "\033[?25l");
}
