/* SPDX-License-Identifier: Apache-2.0
 *
 * The text screen as text: lines of UTF-8 for the end of a run, and what a terminal must be sent while it runs.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "session/machine.h"

static const uint16_t letters[256] = {
#include "session/cp437.def"
};

size_t screen_letter(uint8_t letter, char bytes[4])
{
  uint16_t code = letters[letter];

  if (code < 0x80) {
    bytes[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    bytes[0] = (char)(0xC0 | code >> 6);
    bytes[1] = (char)(0x80 | (code & 0x3F));
    return 2;
  }
  bytes[0] = (char)(0xE0 | code >> 12);
  bytes[1] = (char)(0x80 | (code >> 6 & 0x3F));
  bytes[2] = (char)(0x80 | (code & 0x3F));
  return 3;
}

/* ---- lines ---- */

/* Cells up to the last that is not blank. */
static unsigned row_width(const uint8_t *cells, unsigned columns)
{
  while (columns > 0 && letters[cells[2 * (columns - 1)]] == ' ')
    columns--;
  return columns;
}

static const uint8_t *row_cells(const struct machine_screen *screen, unsigned row)
{
  return screen->cells + (size_t)row * screen->columns * 2;
}

int screen_row_text(const struct machine_screen *screen, unsigned row, struct text *text)
{
  const uint8_t *cells = row_cells(screen, row);
  unsigned width = row_width(cells, screen->columns);

  for (unsigned i = 0; i < width; i++) {
    char bytes[4];
    int r = text_add_bytes(text, bytes, screen_letter(cells[2 * i], bytes));

    if (r < 0)
      return r;
  }
  return 0;
}

unsigned screen_rows_used(const struct machine_screen *screen)
{
  unsigned rows = screen->rows;

  while (rows > 0 && row_width(row_cells(screen, rows - 1), screen->columns) == 0)
    rows--;
  return rows;
}

void session_print_screen(struct machine_session *session)
{
  bool is_all = session->screen == SCREEN_ALL;
  struct machine_screen screen = is_all ? machine_screen_all(session->machine) : machine_screen(session->machine);
  unsigned rows = screen_rows_used(&screen);

  if (session->screen == SCREEN_NONE)
    return;
  for (unsigned row = 0; row < rows; row++) {
    struct text text = {0};

    screen_row_text(&screen, row, &text);
    puts(text_string(&text));
    text_done(&text);
  }
}

/* ---- the terminal ---- */

/* Colours of the PC (blue, green, red) as terminals number them (red, green, blue). Bit 7 of an attribute blinks. */
static void colour_put(struct text *text, uint8_t attribute)
{
  static const uint8_t colours[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  unsigned bright = attribute & 8 ? 90 : 30;

  text_addf(text, "\033[0;%s%u;%um", attribute & 0x80 ? "5;" : "", bright + colours[attribute & 7],
            40u + colours[attribute >> 4 & 7]);
}

/* Where the last letter went, and how it looked: what follows it on the same line needs less. */
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
  text_add_bytes(text, bytes, screen_letter(cell[0], bytes));
  *pen = (struct pen){row, column + 1, cell[1]};
}

static void row_update(struct live_screen *live, const struct machine_screen *screen, unsigned row, unsigned columns,
                       struct pen *pen, struct text *text)
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

void live_screen_update(struct live_screen *live, const struct machine_screen *screen, struct text *text)
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
