/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 10h: text on the VGA. State is in the BIOS data area, so that programs which look there agree with it; characters
 * go to 0xB8000. Every mode is a text mode here: 0 and 1 have 40 columns, all others 80.
 */
#include <string.h>

#include "machine/firmware.h"

#define PAGES 8u
#define COLUMNS_MAX 132u
#define ROWS_MAX 64u
#define STRING_PART 64u /* characters that AH=13h writes at a time */

/* The page of the screen that output goes to. */
struct page {
  struct machine *machine;
  unsigned number, columns, rows;
  unsigned row, column; /* of its cursor */
};

static struct page page_get(struct machine *m, uint8_t number)
{
  struct page page = {.machine = m, .number = number % PAGES};

  page.columns = guest_get(m, BDA_COLUMNS, 2);
  page.rows = guest_get(m, BDA_ROWS, 1) + 1;
  if (page.columns == 0 || page.columns > COLUMNS_MAX)
    page.columns = 80;
  if (page.rows > ROWS_MAX)
    page.rows = 25;
  page.column = guest_get(m, BDA_CURSOR + 2 * page.number, 1) % page.columns;
  page.row = guest_get(m, BDA_CURSOR + 2 * page.number + 1, 1) % page.rows;
  return page;
}

static struct page page_active(struct machine *m)
{
  return page_get(m, (uint8_t)guest_get(m, BDA_PAGE, 1));
}

static unsigned page_start(const struct page *page)
{
  return page->number * guest_get(page->machine, BDA_PAGE_SIZE, 2);
}

static uint64_t cell_at(const struct page *page, unsigned row, unsigned column)
{
  return VIDEO_START + (page_start(page) + 2 * (row * page->columns + column)) % VIDEO_SIZE;
}

/* Stores the cursor, and updates the registers if the page is shown. */
static void page_put_cursor(struct page *page)
{
  struct machine *m = page->machine;

  guest_put(m, BDA_CURSOR + 2 * page->number, 2, page->column | page->row << 8);
  if (page->number == guest_get(m, BDA_PAGE, 1))
    board_set_cursor(m->board, page_start(page) / 2 + page->row * page->columns + page->column);
}

/* ---- scrolling ---- */

struct window {
  unsigned top, left, bottom, right; /* the last ones included */
};

static void row_fill(struct page *page, unsigned row, const struct window *w, uint8_t attribute)
{
  uint8_t cells[2 * COLUMNS_MAX];
  unsigned count = w->right - w->left + 1;

  for (unsigned i = 0; i < count; i++) {
    cells[2 * i] = ' ';
    cells[2 * i + 1] = attribute;
  }
  guest_write(page->machine, cell_at(page, row, w->left), cells, 2 * count);
}

static void row_copy(struct page *page, unsigned to, unsigned from, const struct window *w)
{
  uint8_t cells[2 * COLUMNS_MAX];
  unsigned size = 2 * (w->right - w->left + 1);

  guest_read(page->machine, cell_at(page, from, w->left), cells, size);
  guest_write(page->machine, cell_at(page, to, w->left), cells, size);
}

/* Moves the rows of a window by `lines`, 0 for all of them, and blanks the rest. */
static void window_scroll(struct page *page, struct window w, unsigned lines, bool is_up, uint8_t attribute)
{
  if (w.bottom >= page->rows)
    w.bottom = page->rows - 1;
  if (w.right >= page->columns)
    w.right = page->columns - 1;
  if (w.top > w.bottom || w.left > w.right)
    return;
  unsigned height = w.bottom - w.top + 1;
  if (lines == 0 || lines > height)
    lines = height;
  for (unsigned i = 0; i < height; i++) {
    unsigned row = is_up ? w.top + i : w.bottom - i;

    if (i + lines < height)
      row_copy(page, row, is_up ? row + lines : row - lines, &w);
    else
      row_fill(page, row, &w, attribute);
  }
}

/* ---- writing ---- */

static void page_line_feed(struct page *page)
{
  if (page->row + 1 < page->rows) {
    page->row++;
    return;
  }
  uint8_t attribute = (uint8_t)guest_get(page->machine, cell_at(page, page->row, page->column) + 1, 1);
  window_scroll(page, (struct window){0, 0, page->rows - 1, page->columns - 1}, 1, true, attribute);
}

/* One character at the cursor, which moves. `attribute` < 0: the cell keeps its own. */
static void page_type(struct page *page, uint8_t character, int attribute)
{
  switch (character) {
  case '\a':
    return;
  case '\b':
    page->column -= page->column > 0;
    return;
  case '\r':
    page->column = 0;
    return;
  case '\n':
    page_line_feed(page);
    return;
  }
  uint64_t cell = cell_at(page, page->row, page->column);
  guest_put(page->machine, cell, 1, character);
  if (attribute >= 0)
    guest_put(page->machine, cell + 1, 1, (uint32_t)attribute);
  if (++page->column < page->columns)
    return;
  page->column = 0;
  page_line_feed(page);
}

void video_print(struct machine *machine, const char *text)
{
  struct page page = page_active(machine);

  for (; *text; text++)
    page_type(&page, (uint8_t)*text, -1);
  page_put_cursor(&page);
}

/* AH=09h and 0Ah write a character CX times from the cursor on. The cursor does not move. */
static void video_repeat(struct machine *m, bool has_attribute)
{
  struct page page = page_get(m, get_high(m, RBX));
  unsigned count = get16(m, RCX), first = page.row * page.columns + page.column;
  unsigned room = page.rows * page.columns - first;

  for (unsigned i = 0; i < count && i < room; i++) {
    uint64_t cell = cell_at(&page, 0, first + i);

    guest_put(m, cell, 1, get_low(m, RAX));
    if (has_attribute)
      guest_put(m, cell + 1, 1, get_low(m, RBX));
  }
}

/* The position at which the string of AH=13h continues: its first character, or the one after the part that is
 * written. */
static struct string_progress string_begin(struct machine *m)
{
  uint64_t stack = guest_at(m, SS, get16(m, RSP));

  if (m->string.done && m->string.stack == stack)
    return m->string;
  return (struct string_progress){.stack = stack, .row = get_high(m, RDX), .column = get_low(m, RDX)};
}

/* AH=13h: CX characters at ES:BP. AL bit 0: the cursor moves; bit 1: each is followed by its attribute. A string of 64K
 * characters may scroll the screen as often, so the service writes a part of it and then restarts its instruction, like
 * a string instruction that repeats. */
static void video_string(struct machine *m)
{
  struct page page = page_get(m, get_high(m, RBX)), before = page;
  struct string_progress string = string_begin(m);
  uint8_t mode = get_low(m, RAX);
  uint16_t count = get16(m, RCX);
  uint16_t offset = (uint16_t)(get16(m, RBP) + string.done * (mode & 2 ? 2 : 1));

  page.row = string.row % page.rows;
  page.column = string.column % page.columns;
  for (unsigned left = STRING_PART; left && string.done < count; left--, string.done++) {
    uint8_t character = (uint8_t)guest_get(m, guest_at(m, ES, offset++), 1);
    uint8_t attribute = mode & 2 ? (uint8_t)guest_get(m, guest_at(m, ES, offset++), 1) : get_low(m, RBX);

    page_type(&page, character, attribute);
  }
  m->string = (struct string_progress){0};
  if (string.done < count) {
    string.row = (uint8_t)page.row;
    string.column = (uint8_t)page.column;
    m->string = string;
    cpu_set_rip(m->cpu, m->cpu->rip - SERVICE_SIZE);
  } else
    page_put_cursor(mode & 1 ? &page : &before);
}

/* ---- modes ---- */

/* CRT controller of 80x25 text: standard VGA timings. 40 columns differ in the first six and the row offset. */
static const uint8_t crtc_80[] = {0x5F, 0x4F, 0x50, 0x82, 0x55, 0x81, 0xBF, 0x1F, 0x00, 0x4F, 0x0D, 0x0E, 0x00,
                                  0x00, 0x00, 0x00, 0x9C, 0x8E, 0x8F, 0x28, 0x1F, 0x96, 0xB9, 0xA3, 0xFF};
static const uint8_t crtc_40[] = {0x2D, 0x27, 0x28, 0x90, 0x2B, 0xA0};

static void crtc_set(struct machine *m, uint8_t index, uint8_t value)
{
  board_out(m->board, 0x3D4, 1, index);
  board_out(m->board, 0x3D5, 1, value);
}

static void crtc_load(struct machine *m, bool is_wide)
{
  board_out(m->board, 0x3C2, 1, 0x67);
  crtc_set(m, 0x11, crtc_80[0x11] & 0x7F); /* its bit 7 protects the first eight */
  for (size_t i = 0; i < sizeof(crtc_80); i++)
    crtc_set(m, (uint8_t)i, !is_wide && i < sizeof(crtc_40) ? crtc_40[i] : crtc_80[i]);
  if (!is_wide)
    crtc_set(m, 0x13, 0x14);
}

/* Rows by the height of a character: 400 lines in all. */
static void video_set_height(struct machine *m, uint8_t height)
{
  crtc_set(m, 0x09, (uint8_t)(0x40 | (height - 1)));
  guest_put(m, BDA_CHARACTER_HEIGHT, 2, height);
  guest_put(m, BDA_ROWS, 1, 400u / height - 1);
  guest_put(m, BDA_PAGE_SIZE, 2, height == 8 ? 0x2000 : guest_get(m, BDA_COLUMNS, 2) == 40 ? 0x800 : 0x1000);
}

static void video_clear(struct machine *m)
{
  uint8_t cells[PAGE_SIZE];

  for (size_t i = 0; i < sizeof(cells); i += 2) {
    cells[i] = ' ';
    cells[i + 1] = 7;
  }
  for (uint64_t at = 0; at < VIDEO_SIZE; at += sizeof(cells))
    guest_write(m, VIDEO_START + at, cells, sizeof(cells));
}

static void video_show_page(struct machine *m, uint8_t number)
{
  struct page page = page_get(m, number);
  unsigned start = page_start(&page);

  guest_put(m, BDA_PAGE, 1, page.number);
  guest_put(m, BDA_PAGE_START, 2, start);
  crtc_set(m, 0x0C, (uint8_t)(start / 2 >> 8));
  crtc_set(m, 0x0D, (uint8_t)(start / 2));
  page_put_cursor(&page);
}

static void video_set_shape(struct machine *m, uint16_t shape)
{
  guest_put(m, BDA_CURSOR_SHAPE, 2, shape);
  uint8_t start = shape >> 8, end = (uint8_t)shape;
  if ((start & 0x1F) < 8 && (end & 0x1F) < 8) { /* meant for characters of 8 lines */
    start = (uint8_t)((start & 0x20) | ((start & 0x1F) * 2 + ((start & 0x1F) > 3)));
    end = (uint8_t)((end & 0x1F) * 2 + ((end & 0x1F) > 3 ? 0 : 1));
  }
  board_set_cursor_shape(m->board, start, end);
}

static void video_set_mode(struct machine *m, uint8_t mode)
{
  uint8_t number = mode & 0x7F;
  bool is_wide = number > 1;

  guest_put(m, BDA_MODE, 1, number > 3 ? 3 : number);
  guest_put(m, BDA_COLUMNS, 2, is_wide ? 80 : 40);
  for (unsigned i = 0; i < PAGES; i++)
    guest_put(m, BDA_CURSOR + 2 * i, 2, 0);
  guest_put(m, BDA_CRTC, 2, 0x3D4);
  guest_put(m, 0x465, 2, 0x3029); /* mode and palette registers of the CGA */
  guest_put(m, BDA_VIDEO_CONTROL, 2, 0xF900u | 0x60 | (mode & 0x80));
  guest_put(m, 0x489, 1, 0x51);
  guest_put(m, BDA_DISPLAY_CODE, 1, 0x0B);
  crtc_load(m, is_wide);
  video_set_height(m, 16);
  if (!(mode & 0x80))
    video_clear(m);
  video_set_shape(m, 0x0607);
  video_show_page(m, 0);
}

void video_install(struct machine *machine)
{
  video_set_mode(machine, 3);
}

/* ---- the rest ---- */

/* AH=11h: fonts of 8 and 14 or 16 lines select the number of rows; AL=30h tells about the current one. There is no font
 * in the ROM: ES:BP points to zeros. */
static void video_font(struct machine *m)
{
  uint8_t function = get_low(m, RAX);

  switch (function & 0x0F) {
  case 0x02:
    video_set_height(m, 8);
    return;
  case 0x01:
  case 0x04:
    video_set_height(m, 16);
    return;
  }
  if (function != 0x30)
    return;
  set16(m, RCX, (uint16_t)guest_get(m, BDA_CHARACTER_HEIGHT, 2));
  set_low(m, RDX, (uint8_t)guest_get(m, BDA_ROWS, 1));
  cpu_load_real_segment(m->cpu, ES, FIRMWARE_SEGMENT);
  set16(m, RBP, ROM_FONT);
}

static void video_scroll(struct machine *m, bool is_up)
{
  struct page page = page_active(m);
  struct window window = {get_high(m, RCX), get_low(m, RCX), get_high(m, RDX), get_low(m, RDX)};

  window_scroll(&page, window, get_low(m, RAX), is_up, get_high(m, RBX));
}

static void video_set_position(struct machine *m)
{
  struct page page = page_get(m, get_high(m, RBX));

  page.row = get_high(m, RDX) < page.rows ? get_high(m, RDX) : page.rows - 1;
  page.column = get_low(m, RDX) < page.columns ? get_low(m, RDX) : page.columns - 1;
  page_put_cursor(&page);
}

static void video_get_position(struct machine *m)
{
  struct page page = page_get(m, get_high(m, RBX));

  set16(m, RDX, (uint16_t)(page.row << 8 | page.column));
  set16(m, RCX, (uint16_t)guest_get(m, BDA_CURSOR_SHAPE, 2));
}

static void video_read_cell(struct machine *m)
{
  struct page page = page_get(m, get_high(m, RBX));

  set16(m, RAX, (uint16_t)guest_get(m, cell_at(&page, page.row, page.column), 2));
}

static void video_teletype(struct machine *m)
{
  struct page page = page_active(m);

  page_type(&page, get_low(m, RAX), -1);
  page_put_cursor(&page);
}

static void video_get_mode(struct machine *m)
{
  set_low(m, RAX, (uint8_t)guest_get(m, BDA_MODE, 1));
  set_high(m, RAX, (uint8_t)guest_get(m, BDA_COLUMNS, 1));
  set_high(m, RBX, (uint8_t)guest_get(m, BDA_PAGE, 1));
}

/* AH=12h BL=10h: colour, 256 KiB. */
static void video_information(struct machine *m)
{
  if (get_low(m, RBX) == 0x10) {
    set16(m, RBX, 0x0003);
    set16(m, RCX, 0);
  } else if (get_low(m, RBX) >= 0x30 && get_low(m, RBX) <= 0x36)
    set_low(m, RAX, 0x12);
}

/* AH=1Ah: a VGA with a colour display, and no other. */
static void video_display_code(struct machine *m)
{
  if (get_low(m, RAX) > 1)
    return;
  if (get_low(m, RAX) == 0)
    set16(m, RBX, 0x0008);
  set_low(m, RAX, 0x1A);
}

bool firmware_video(struct machine *machine)
{
  switch (get_high(machine, RAX)) {
  case 0x00:
    video_set_mode(machine, get_low(machine, RAX));
    break;
  case 0x01:
    video_set_shape(machine, get16(machine, RCX));
    break;
  case 0x02:
    video_set_position(machine);
    break;
  case 0x03:
    video_get_position(machine);
    break;
  case 0x05:
    video_show_page(machine, get_low(machine, RAX));
    break;
  case 0x06:
  case 0x07:
    video_scroll(machine, get_high(machine, RAX) == 0x06);
    break;
  case 0x08:
    video_read_cell(machine);
    break;
  case 0x09:
  case 0x0A:
    video_repeat(machine, get_high(machine, RAX) == 0x09);
    break;
  case 0x0E:
    video_teletype(machine);
    break;
  case 0x0F:
    video_get_mode(machine);
    break;
  case 0x11:
    video_font(machine);
    break;
  case 0x12:
    video_information(machine);
    break;
  case 0x13:
    video_string(machine);
    break;
  case 0x1A:
    video_display_code(machine);
    break;
  }
  return false;
}
