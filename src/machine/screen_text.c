/* SPDX-License-Identifier: Apache-2.0
 *
 * The text screen as lines of UTF-8.
 */
#include "base/base.h"
#include "machine/machine.h"

static const uint16_t letters[256] = {
#include "machine/cp437.def"
};

size_t machine_screen_letter(uint8_t letter, char bytes[4])
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

int machine_screen_row_text(const struct machine_screen *screen, unsigned row, struct text *text)
{
  const uint8_t *cells = row_cells(screen, row);
  unsigned width = row_width(cells, screen->columns);

  for (unsigned i = 0; i < width; i++) {
    char bytes[4];
    int r = text_add_bytes(text, bytes, machine_screen_letter(cells[2 * i], bytes));

    if (r < 0)
      return r;
  }
  return 0;
}

unsigned machine_screen_rows_used(const struct machine_screen *screen)
{
  unsigned rows = screen->rows;

  while (rows > 0 && row_width(row_cells(screen, rows - 1), screen->columns) == 0)
    rows--;
  return rows;
}
