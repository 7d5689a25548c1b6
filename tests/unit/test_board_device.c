/* SPDX-License-Identifier: Apache-2.0
 *
 * Keyboard, COM1, VGA, PCI, disk, and the tables that describe the board. What is expected follows from the data sheets
 * and specifications.
 */
#include "board_rig.h"

/* ---- keyboard ---- */

static uint8_t key_read(struct rig *rig)
{
  pass(rig, MS);
  assert_true(in(rig, 0x64) & 1);
  return in(rig, 0x60);
}

static void keyboard_answers(struct rig *rig, uint8_t byte, const char *answer)
{
  out(rig, 0x60, byte);
  for (; *answer; answer++)
    assert_int_equal(key_read(rig), (uint8_t)*answer);
  pass(rig, MS);
  assert_false(in(rig, 0x64) & 1);
}

static void controller_tests_itself(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x64, 0xAA);
  assert_int_equal(in(rig, 0x64) & 0x0D, 0x0D);
  assert_int_equal(in(rig, 0x60), 0x55);
  out(rig, 0x64, 0xAB);
  assert_int_equal(in(rig, 0x60), 0x00);
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x45);
  out(rig, 0x64, 0x20);
  assert_int_equal(in(rig, 0x60), 0x45);
  out(rig, 0x64, 0xAD);
  out(rig, 0x64, 0x20);
  assert_int_equal(in(rig, 0x60), 0x55);
  out(rig, 0x64, 0xD0);
  assert_int_equal(in(rig, 0x60), 0xC3); /* no reset, A20 */
}

static void controller_has_no_mouse(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x64, 0xD4);
  out(rig, 0x60, 0xFF);
  assert_int_equal(in(rig, 0x64) & 0x61, 0x61); /* from the second port: timed out */
  assert_int_equal(in(rig, 0x60), 0xFE);
}

static void keyboard_commands(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x04); /* not translated */
  keyboard_answers(rig, 0xFF, "\xFA\xAA");
  keyboard_answers(rig, 0xF2, "\xFA\xAB\x83");
  keyboard_answers(rig, 0xED, "\xFA");
  keyboard_answers(rig, 0x07, "\xFA");
  keyboard_answers(rig, 0xF3, "\xFA");
  keyboard_answers(rig, 0x20, "\xFA");
  keyboard_answers(rig, 0xEE, "\xEE");
  keyboard_answers(rig, 0xF0, "\xFA");
  keyboard_answers(rig, 0x00, "\xFA\x02");
  keyboard_answers(rig, 0xF0, "\xFA");
  keyboard_answers(rig, 0x03, "\xFE");
  keyboard_answers(rig, 0x80, "\xFE");
}

static void controller_loops_bytes(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xF9, 0xEF);
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x47); /* both interrupts */
  out(rig, 0x64, 0xD2);
  out(rig, 0x60, 0x12);
  assert_int_equal(acknowledge(rig), 0x09);
  assert_int_equal(in(rig, 0x60), 0x12);
  eoi(rig, 0x09);
  out(rig, 0x64, 0xD3);
  out(rig, 0x60, 0x34);
  assert_int_equal(acknowledge(rig), 0x74);
  assert_int_equal(in(rig, 0x64) & 0x21, 0x21);
  assert_int_equal(in(rig, 0x60), 0x34);
  out(rig, 0x64, 0x7F);
  out(rig, 0x60, 0x99);
  out(rig, 0x64, 0x3F);
  assert_int_equal(in(rig, 0x60), 0x99); /* its memory */
  out(rig, 0x64, 0xC0);
  assert_int_equal(in(rig, 0x60), 0xB0);
  out(rig, 0x64, 0xD1);
  out(rig, 0x60, 0xDE);
  assert_int_equal(rig->init, 1);
}

static void keyboard_waits_behind_a_closed_wire(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x64, 0xAD);
  assert_true(board_key(rig->board, 0x1E));
  pass(rig, MS);
  assert_false(in(rig, 0x64) & 1);
  out(rig, 0x64, 0xAE);
  assert_int_equal(key_read(rig), 0x1E);
  out(rig, 0x60, 0xFE);
  assert_int_equal(key_read(rig), 0x1E); /* again */
  keyboard_answers(rig, 0xF5, "\xFA");
  keyboard_answers(rig, 0xF4, "\xFA");
  keyboard_answers(rig, 0xF0, "\xFA");
  keyboard_answers(rig, 0x01, "\xFA"); /* set 1, which is translated once more: 9E stays, 1E becomes 03 */
  board_key(rig->board, 0x1E);
  assert_int_equal(key_read(rig), 0x03);
}

static void keyboard_translates(void **state)
{
  struct rig *rig = *state;
  assert_true(board_key(rig->board, 0x1E));
  assert_true(board_key(rig->board, 0x9E));
  assert_true(board_key(rig->board, 0xE0));
  assert_true(board_key(rig->board, 0xC8));
  assert_int_equal(key_read(rig), 0x1E);
  assert_int_equal(in(rig, 0x60), 0x1E); /* read twice, it is the same byte */
  assert_int_equal(key_read(rig), 0x9E);
  assert_int_equal(key_read(rig), 0xE0);
  assert_int_equal(key_read(rig), 0xC8);
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x04);
  board_key(rig->board, 0x9E);
  assert_int_equal(key_read(rig), 0xF0); /* set 2 */
  assert_int_equal(key_read(rig), 0x1C);
}

static void keyboard_every_code_survives_translation(void **state)
{
  struct rig *rig = *state;
  for (unsigned code = 1; code <= 0x58; code++) {
    board_key(rig->board, (uint8_t)code);
    assert_int_equal(key_read(rig), code);
    board_key(rig->board, (uint8_t)(code | 0x80));
    assert_int_equal(key_read(rig), code | 0x80);
  }
}

static void keyboard_interrupts(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xFD, 0xFF);
  board_key(rig->board, 0x1E);
  board_key(rig->board, 0x9E);
  assert_int_equal(acknowledge(rig), 0x09);
  assert_false(board_can_wake(rig->board)); /* the buffer is full: nothing more comes */
  assert_int_equal(in(rig, 0x60), 0x1E);
  eoi(rig, 9);
  assert_false(rig->intr);
  assert_true(board_can_wake(rig->board));
  pass(rig, MS);
  assert_int_equal(acknowledge(rig), 0x09);
  assert_int_equal(in(rig, 0x60), 0x9E);
}

static void keyboard_buffer_ends(void **state)
{
  struct rig *rig = *state;
  unsigned count = 0;
  while (board_key(rig->board, 0x1E) && count < 100)
    count++;
  assert_int_equal(count, 17);              /* one in the controller */
  keyboard_answers(rig, 0xF5, "\x1E\xFA");  /* the byte in the output buffer stays */
  assert_true(board_key(rig->board, 0x1E)); /* not scanned */
  pass(rig, MS);
  assert_false(in(rig, 0x64) & 1);
}

/* ---- COM1 ---- */

static void serial_sends(void **state)
{
  struct rig *rig = *state;
  for (const char *text = "hello"; *text; text++) {
    assert_int_equal(in(rig, 0x3FD), 0x60);
    out(rig, 0x3F8, (uint8_t)*text);
  }
  assert_string_equal(rig->serial, "hello");
  out(rig, 0x3FF, 0x5A);
  assert_int_equal(in(rig, 0x3FF), 0x5A);
}

static void serial_divisor_hides_data(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x3FB, 0x83);
  board_out(rig->board, 0x3F8, 2, 0x0102);
  assert_int_equal(board_in(rig->board, 0x3F8, 2), 0x0102);
  assert_int_equal(rig->serial_size, 0);
  out(rig, 0x3FB, 0x03);
  assert_int_equal(in(rig, 0x3F9), 0);
}

static void serial_loops_back(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x3FB, 0x03);
  out(rig, 0x3FC, 0x1F);
  assert_int_equal(in(rig, 0x3FE) & 0xF0, 0xF0);
  out(rig, 0x3F8, 'a');
  assert_int_equal(rig->serial_size, 0);
  assert_int_equal(in(rig, 0x3FD), 0x61);
  out(rig, 0x3F8, 'b');
  assert_int_equal(in(rig, 0x3FD), 0x63); /* overrun */
  assert_int_equal(in(rig, 0x3FD), 0x61);
  assert_int_equal(in(rig, 0x3F8), 'b');
  out(rig, 0x3FC, 0x10);
  assert_int_equal(in(rig, 0x3FE), 0x0F); /* all went away: four changes, RI's trailing edge too */
  assert_false(board_serial_receive(rig->board, 'x'));
}

static void serial_interrupts_by_priority(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x3FB, 0x03);
  out(rig, 0x3FC, 0x1B);
  in(rig, 0x3FE);
  out(rig, 0x3F9, 0x0F);
  out(rig, 0x3FC, 0x18);
  out(rig, 0x3F8, 'a');
  out(rig, 0x3F8, 'b');
  assert_int_equal(in(rig, 0x3FA), 0x06); /* line status */
  in(rig, 0x3FD);
  assert_int_equal(in(rig, 0x3FA), 0x04); /* data */
  in(rig, 0x3F8);
  assert_int_equal(in(rig, 0x3FA), 0x02); /* sent; reading tells */
  assert_int_equal(in(rig, 0x3FA), 0x00); /* modem */
  in(rig, 0x3FE);
  assert_int_equal(in(rig, 0x3FA), 0x01);
}

static void serial_sent_interrupt_has_edges(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xEF, 0xFF);
  out(rig, 0x3FC, 0x08);
  out(rig, 0x3F9, 0x02);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(acknowledge(rig), 0x0C);
    assert_int_equal(in(rig, 0x3FA), 0x02);
    out(rig, 0x3F8, 'x');
    eoi(rig, 0x0C);
  }
  assert_string_equal(rig->serial, "xxx");
  out(rig, 0x3FC, 0x00); /* OUT2 cuts it off */
  assert_false(rig->intr);
}

static void serial_fifo_and_timeout(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xEF, 0xFF);
  out(rig, 0x3FB, 0x03);
  out(rig, 0x3FA, 0x81); /* 8 bytes */
  out(rig, 0x3FC, 0x08);
  out(rig, 0x3F9, 0x01);
  for (unsigned i = 0; i < 7; i++)
    assert_true(board_serial_receive(rig->board, (uint8_t)('0' + i)));
  assert_false(rig->intr);
  assert_true(board_can_wake(rig->board));
  pass(rig, 10 * MS);
  assert_int_equal(acknowledge(rig), 0x0C);
  assert_int_equal(in(rig, 0x3FA), 0xCC);
  assert_int_equal(in(rig, 0x3F8), '0');
  assert_int_equal(in(rig, 0x3FA), 0xC1);
  board_serial_receive(rig->board, '7');
  board_serial_receive(rig->board, '8');
  assert_int_equal(in(rig, 0x3FA), 0xC4);
  unsigned count = 8;
  while (board_serial_receive(rig->board, '9'))
    count++;
  assert_int_equal(count, 16);
  out(rig, 0x3FA, 0x83);
  assert_int_equal(in(rig, 0x3FD), 0x60);
}

/* ---- VGA ---- */

static void vga_shows_text(void **state)
{
  struct rig *rig = *state;
  struct board_screen screen = board_screen(rig->board);
  assert_int_equal(screen.columns, 80);
  assert_int_equal(screen.rows, 25);
  assert_true(screen.has_cursor);
  board_out(rig->board, 0x3D4, 2, 0x010C); /* index and data at once */
  board_out(rig->board, 0x3D4, 2, 0x020D);
  board_out(rig->board, 0x3B4, 2, 0x030E);
  board_out(rig->board, 0x3D4, 2, 0x040F);
  screen = board_screen(rig->board);
  assert_int_equal(screen.start, 0x0102);
  assert_int_equal(screen.cursor, 0x0304);
  board_set_cursor(rig->board, 0x1234);
  out(rig, 0x3D4, 0x0E);
  assert_int_equal(in(rig, 0x3D5), 0x12);
  board_set_cursor_shape(rig->board, 0x20, 0x0E);
  assert_false(board_screen(rig->board).has_cursor);
  board_out(rig->board, 0x3D4, 2, 0x0700); /* locked */
  out(rig, 0x3D4, 0x00);
  assert_int_equal(in(rig, 0x3D5), 0x5F);
}

static void vga_retraces(void **state)
{
  struct rig *rig = *state;
  unsigned frames = 0;
  uint8_t last = 0;
  for (unsigned i = 0; i < 200000; i++) {
    uint8_t status = in(rig, 0x3DA) & 8;
    frames += status && !last;
    last = status;
    rig->now += 5 * US;
  }
  assert_in_range(frames, 69, 71); /* in one second */
}

static void vga_keeps_registers(void **state)
{
  struct rig *rig = *state;
  in(rig, 0x3DA);
  out(rig, 0x3C0, 0x10);
  out(rig, 0x3C0, 0x0C);
  out(rig, 0x3C0, 0x30);
  assert_int_equal(in(rig, 0x3C1), 0x0C);
  out(rig, 0x3C8, 5);
  out(rig, 0x3C9, 1);
  out(rig, 0x3C9, 2);
  out(rig, 0x3C9, 0xFF);
  out(rig, 0x3C7, 5);
  assert_int_equal(in(rig, 0x3C9), 1);
  assert_int_equal(in(rig, 0x3C9), 2);
  assert_int_equal(in(rig, 0x3C9), 0x3F);
  assert_int_equal(in(rig, 0x3CC), 0x67);
  for (uint16_t port = 0x3C4; port <= 0x3CE; port = (uint16_t)(port + 10)) { /* sequencer, graphics */
    board_out(rig->board, port, 2, 0x5A01);
    assert_int_equal(board_in(rig->board, port, 2), 0x5A01);
  }
  out(rig, 0x3C2, 0x66);
  assert_int_equal(in(rig, 0x3CC), 0x66);
  out(rig, 0x3C6, 0x0F);
  assert_int_equal(in(rig, 0x3C6), 0x0F);
  assert_int_equal(in(rig, 0x3C8), 6);
  assert_int_equal(in(rig, 0x3C7), 3);
}

/* ---- PCI ---- */

static uint32_t pci_get(struct rig *rig, unsigned function, unsigned place, unsigned size)
{
  board_out(rig->board, 0xCF8, 4, 0x80000000u | function << 8 | (place & 0xFC));
  return board_in(rig->board, (uint16_t)(0xCFC + (place & 3)), size);
}

static void pci_has_three_functions(void **state)
{
  struct rig *rig = *state;
  unsigned found = 0;
  for (unsigned i = 0; i < 0x10000; i++)
    found += pci_get(rig, i, 0, 2) != 0xFFFF;
  assert_int_equal(found, 3);
  assert_int_equal(pci_get(rig, 0x00, 0x00, 4), 0x12378086);
  assert_int_equal(pci_get(rig, 0x00, 0x0A, 2), 0x0600);
  assert_int_equal(pci_get(rig, 0x08, 0x0A, 2), 0x0601);
  assert_int_equal(pci_get(rig, 0x08, 0x0E, 1), 0x80); /* more functions */
  assert_int_equal(pci_get(rig, 0x09, 0x0A, 2), 0x0101);
}

static void pci_has_no_base_addresses(void **state)
{
  struct rig *rig = *state;
  for (unsigned place = 0x10; place < 0x28; place += 4) {
    pci_get(rig, 0x09, place, 4);
    board_out(rig->board, 0xCFC, 4, UINT32_MAX);
    assert_int_equal(pci_get(rig, 0x09, place, 4), 0);
  }
  pci_get(rig, 0x09, 0x3C, 4);
  board_out(rig->board, 0xCFC, 1, 14);
  assert_int_equal(pci_get(rig, 0x09, 0x3C, 1), 14);
  board_out(rig->board, 0xCF8, 4, 0); /* not enabled */
  assert_int_equal(board_in(rig->board, 0xCFC, 4), UINT32_MAX);
}

/* ---- disk ---- */

static void ide_address(struct rig *rig, uint32_t lba, uint8_t count)
{
  out(rig, 0x1F2, count);
  out(rig, 0x1F3, (uint8_t)lba);
  out(rig, 0x1F4, (uint8_t)(lba >> 8));
  out(rig, 0x1F5, (uint8_t)(lba >> 16));
  out(rig, 0x1F6, (uint8_t)(0xE0 | (lba >> 24 & 15)));
}

static uint8_t ide_wait(struct rig *rig)
{
  unsigned i = 0;
  for (; (in(rig, 0x3F6) & 0x80) && i < 1000; i++)
    rig->now += 100;
  assert_true(i < 1000);
  return in(rig, 0x3F6);
}

static void ide_read_sector(struct rig *rig, uint8_t *bytes)
{
  assert_int_equal(ide_wait(rig), 0x58);
  for (unsigned i = 0; i < 512; i += 2) {
    uint32_t word = board_in(rig->board, 0x1F0, 2);
    bytes[i] = (uint8_t)word;
    bytes[i + 1] = (uint8_t)(word >> 8);
  }
}

static void ide_identifies(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];
  out(rig, 0x1F6, 0xA0);
  out(rig, 0x1F7, 0xEC);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[2] | bytes[3] << 8, 32);
  assert_int_equal(bytes[6] | bytes[7] << 8, 4);
  assert_int_equal(bytes[12] | bytes[13] << 8, 16);
  assert_int_equal(bytes[120] | bytes[121] << 8, DISK_SECTORS);
  assert_int_equal(bytes[200] | bytes[201] << 8, DISK_SECTORS);
  assert_memory_equal(bytes + 54, "ALTSRBNAHCD SI K", 16);
  assert_int_equal(in(rig, 0x1F7), 0x50);
}

static void ide_reads_with_interrupts(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];
  wire(rig);
  pic_program(rig, 0xFB, 0xBF);
  ide_address(rig, 5, 2);
  out(rig, 0x1F7, 0x20);
  assert_false(rig->intr);
  assert_true(board_can_wake(rig->board));
  for (unsigned i = 0; i < 2; i++) {
    pass(rig, 10 * US);
    assert_int_equal(acknowledge(rig), 0x76);
    assert_int_equal(in(rig, 0x1F7), 0x58); /* which takes the interrupt back */
    eoi(rig, 0x76);
    ide_read_sector(rig, bytes);
    assert_int_equal(bytes[0], 5 + i);
    assert_int_equal(bytes[511], 5 + i);
  }
  pass(rig, MS);
  assert_false(rig->intr);
  out(rig, 0x3F6, 2); /* nIEN */
  ide_address(rig, 5, 1);
  out(rig, 0x1F7, 0x20);
  pass(rig, MS);
  assert_false(rig->intr);
}

static void ide_reads_chs_and_lba48(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];
  out(rig, 0x1F2, 1);
  out(rig, 0x1F3, 3); /* cylinder 1, head 2, sector 3 */
  out(rig, 0x1F4, 1);
  out(rig, 0x1F5, 0);
  out(rig, 0x1F6, 0xA2);
  out(rig, 0x1F7, 0x20);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[0], (1 * 4 + 2) * 16 + 2);
  out(rig, 0x1F6, 0xE0);
  for (unsigned i = 0; i < 2; i++) { /* upper bytes first */
    out(rig, 0x1F2, (uint8_t)i);
    out(rig, 0x1F3, i ? 0x07 : 0);
    out(rig, 0x1F4, i ? 0x01 : 0);
    out(rig, 0x1F5, 0);
  }
  out(rig, 0x1F7, 0x24);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[0], 0x07);
}

static void ide_multiple(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];
  ide_address(rig, 10, 6);
  out(rig, 0x1F7, 0xC4);
  assert_int_equal(ide_wait(rig), 0x51); /* not set up */
  out(rig, 0x1F2, 3);
  out(rig, 0x1F7, 0xC6);
  assert_int_equal(in(rig, 0x1F1), 0x04);
  out(rig, 0x1F2, 4);
  out(rig, 0x1F7, 0xC6);
  assert_int_equal(in(rig, 0x1F7), 0x50);
  ide_address(rig, 10, 6);
  out(rig, 0x1F7, 0xC4);
  for (unsigned i = 0; i < 6; i++) {
    if (i != 0 && i != 4)
      assert_int_equal(in(rig, 0x3F6), 0x58); /* no wait within a block */
    ide_read_sector(rig, bytes);
    assert_int_equal(bytes[0], 10 + i);
  }
  assert_int_equal(in(rig, 0x1F7), 0x50);
}

static void ide_writes_to_memory(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xFB, 0xBF);
  ide_address(rig, 100, 2);
  out(rig, 0x1F7, 0x30);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(ide_wait(rig), 0x58);
    assert_false(rig->intr);
    for (unsigned k = 0; k < 128; k++)
      board_out(rig->board, 0x1F0, 4, 0x04030201 + i);
    pass(rig, 10 * US);
    assert_int_equal(acknowledge(rig), 0x76);
    in(rig, 0x1F7);
    eoi(rig, 0x76);
  }
  assert_int_equal(in(rig, 0x1F7), 0x50);
  assert_memory_equal(rig->disk + 100 * 512, "\x01\x02\x03\x04", 4);
  assert_memory_equal(rig->disk + 102 * 512 - 4, "\x02\x02\x03\x04", 4);
  assert_int_equal(rig->disk[102 * 512], 102);
}

static void ide_beyond_the_end(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];
  ide_address(rig, DISK_SECTORS - 1, 2);
  out(rig, 0x1F7, 0x21);
  ide_read_sector(rig, bytes);
  assert_int_equal(ide_wait(rig), 0x51);
  assert_int_equal(in(rig, 0x1F1), 0x10);
  assert_int_equal(in(rig, 0x1F4), DISK_SECTORS >> 8); /* where it happened */
  ide_address(rig, DISK_SECTORS, 1);
  out(rig, 0x1F7, 0x40);
  assert_int_equal(ide_wait(rig), 0x51);
  ide_address(rig, 0, 0);
  out(rig, 0x1F7, 0x40);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F7, 0xC8); /* DMA */
  assert_int_equal(ide_wait(rig), 0x51);
  assert_int_equal(in(rig, 0x1F1), 0x04);
}

static void ide_other_commands(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];
  out(rig, 0x1F6, 0xA1); /* two heads */
  out(rig, 0x1F2, 8);
  out(rig, 0x1F7, 0x91);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F2, 1);
  out(rig, 0x1F3, 3);
  out(rig, 0x1F4, 1);
  out(rig, 0x1F5, 0);
  out(rig, 0x1F7, 0x20);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[0], (1 * 2 + 1) * 8 + 2);
  out(rig, 0x1F3, 0); /* sectors count from 1 */
  out(rig, 0x1F7, 0x20);
  assert_int_equal(ide_wait(rig), 0x51);
  out(rig, 0x1F1, 0x03);
  out(rig, 0x1F2, 0x0C); /* PIO 4 */
  out(rig, 0x1F7, 0xEF);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F2, 0x22); /* DMA */
  out(rig, 0x1F7, 0xEF);
  assert_int_equal(ide_wait(rig), 0x51);
  out(rig, 0x1F7, 0xE5);
  assert_int_equal(in(rig, 0x1F2), 0xFF);
  out(rig, 0x1F7, 0xE7);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F7, 0x10);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F7, 0xF8);
  assert_int_equal(in(rig, 0x1F3) | in(rig, 0x1F4) << 8, DISK_SECTORS - 1);
}

static void ide_lba48_beyond_the_end(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x1F6, 0xE0);
  for (unsigned i = 0; i < 2; i++) {
    out(rig, 0x1F2, (uint8_t)i);
    out(rig, 0x1F3, i ? 0x44 : 0x11);
    out(rig, 0x1F4, i ? 0x55 : 0x22);
    out(rig, 0x1F5, i ? 0x66 : 0x33);
  }
  out(rig, 0x1F7, 0x34); /* the error comes with the data */
  assert_int_equal(ide_wait(rig), 0x58);
  for (unsigned i = 0; i < 256; i++)
    board_out(rig->board, 0x1F0, 2, i);
  assert_int_equal(ide_wait(rig), 0x51);
  assert_int_equal(in(rig, 0x1F5), 0x66);
  out(rig, 0x3F6, 0x80); /* the bytes written before */
  assert_int_equal(in(rig, 0x1F3), 0x11);
  assert_int_equal(in(rig, 0x1F5), 0x33);
}

static void ide_registers_are_the_disks_while_it_works(void **state)
{
  struct rig *rig = *state;
  ide_address(rig, 5, 1);
  out(rig, 0x1F7, 0x20);
  out(rig, 0x1F3, 0x77);
  assert_int_equal(in(rig, 0x1F7), 0x80);
  assert_int_equal(in(rig, 0x1F3), 5);
  assert_int_equal(board_in(rig->board, 0x1F0, 2), 0); /* no data yet */
}

static void ide_resets(void **state)
{
  struct rig *rig = *state;
  ide_address(rig, 5, 9);
  out(rig, 0x3F6, 0x04);
  assert_int_equal(in(rig, 0x3F6), 0x80);
  out(rig, 0x3F6, 0x00);
  assert_int_equal(ide_wait(rig), 0x50);
  assert_int_equal(in(rig, 0x1F1), 0x01);
  assert_int_equal(in(rig, 0x1F2), 0x01);
  assert_int_equal(in(rig, 0x1F3), 0x01);
  assert_int_equal(in(rig, 0x1F4), 0x00);
  out(rig, 0x1F7, 0x90);
  assert_int_equal(in(rig, 0x1F1), 0x01);
}

static void ide_has_no_slave(void **state)
{
  struct rig *rig = *state;
  out(rig, 0x1F6, 0xB0);
  assert_int_equal(in(rig, 0x1F7), 0);
  out(rig, 0x1F7, 0xEC);
  pass(rig, MS);
  assert_int_equal(in(rig, 0x1F7), 0);
}

static void ide_may_be_absent(void **state)
{
  struct rig *rig = *state;
  board_free(rig->board);
  rig->config.hda = (struct board_disk){0};
  assert_int_equal(rig_start(rig), 0);
  out(rig, 0x1F6, 0xA0);
  out(rig, 0x1F7, 0xEC);
  assert_int_equal(in(rig, 0x1F7), 0xFF);
  assert_int_equal(board_in(rig->board, 0x1F0, 2), 0xFFFF);
}

/* ---- tables ---- */

#define TABLES UINT64_C(0x7FF0000)

static uint32_t get32(const uint8_t *bytes)
{
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void assert_sum(const uint8_t *bytes, size_t size)
{
  uint8_t sum = 0;
  for (size_t i = 0; i < size; i++)
    sum = (uint8_t)(sum + bytes[i]);
  assert_int_equal(sum, 0);
}

static const uint8_t *table_at(const uint8_t *bytes, size_t size, uint32_t address, const char *signature)
{
  assert_in_range(address, TABLES, TABLES + size - 36);
  const uint8_t *table = bytes + (address - TABLES);
  assert_memory_equal(table, signature, 4);
  assert_in_range(get32(table + 4), 36, size - (address - TABLES));
  assert_sum(table, get32(table + 4));
  return table;
}

static void tables_of_acpi(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[4096];
  size_t rsdp = SIZE_MAX, size = board_tables(rig->board, TABLES, bytes, sizeof(bytes), &rsdp);
  assert_true(size > 0 && rsdp % 16 == 0);
  assert_memory_equal(bytes + rsdp, "RSD PTR ", 8);
  assert_sum(bytes + rsdp, 20);
  assert_sum(bytes + rsdp, 36);
  const uint8_t *rsdt = table_at(bytes, size, get32(bytes + rsdp + 16), "RSDT");
  const uint8_t *xsdt = table_at(bytes, size, get32(bytes + rsdp + 24), "XSDT");
  assert_int_equal(get32(rsdt + 4), 36 + 3 * 4);
  assert_int_equal(get32(xsdt + 4), 36 + 3 * 8);
  assert_int_equal(get32(rsdt + 40), get32(xsdt + 44));
  const uint8_t *fadt = table_at(bytes, size, get32(rsdt + 36), "FACP");
  assert_int_equal(get32(fadt + 4), 244);
  assert_int_equal(get32(fadt + 56), 0x600);
  assert_int_equal(get32(fadt + 64), 0x604);
  assert_int_equal(get32(fadt + 76), 0x608);
  assert_int_equal(fadt[88] | fadt[89] << 8 | fadt[91] << 16, 0x040204);
  assert_int_equal(fadt[108], 0x32);
  assert_int_equal(get32(fadt + 112) & 0x40, 0); /* FIX_RTC: 0, the alarm shows in PM1 */
  assert_int_equal(get32(fadt + 120), 0xCF9);
  assert_int_equal(get32(fadt + 36) % 64, 0);
  assert_memory_equal(bytes + (get32(fadt + 36) - TABLES), "FACS\x40\0\0", 8);
  const uint8_t *dsdt = table_at(bytes, size, get32(fadt + 40), "DSDT");
  assert_memory_equal(dsdt + 36, "\x08_S3_\x12\x06\x04\x01\x01\0\0", 12);
  assert_memory_equal(dsdt + 48, "\x08_S5_\x12\x08\x04\x0A\x05\x0A\x05\0\0", 14);
  assert_int_equal(get32(fadt + 140), get32(fadt + 40));
  const uint8_t *madt = table_at(bytes, size, get32(rsdt + 40), "APIC");
  assert_int_equal(get32(madt + 36), LAPIC);
  assert_int_equal(get32(madt + 56), IOAPIC);
  const uint8_t *hpet = table_at(bytes, size, get32(rsdt + 44), "HPET");
  assert_int_equal(get32(hpet + 4), 56);
  assert_int_equal(get32(hpet + 44), HPET);
}

static void tables_of_mp(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[4096];
  size_t rsdp, size = board_tables(rig->board, TABLES, bytes, sizeof(bytes), &rsdp), place = 0;
  while (place < size && memcmp(bytes + place, "_MP_", 4))
    place += 16;
  assert_true(place < size);
  assert_sum(bytes + place, 16);
  const uint8_t *table = bytes + (get32(bytes + place + 4) - TABLES);
  assert_memory_equal(table, "PCMP", 4);
  unsigned length = table[4] | table[5] << 8, count = table[34] | table[35] << 8;
  assert_sum(table, length);
  assert_int_equal(get32(table + 36), LAPIC);
  const uint8_t *entry = table + 44;
  for (unsigned i = 0; i < count; i++)
    entry += entry[0] == 0 ? 20 : 8;
  assert_ptr_equal(entry, table + length);
}

static void tables_need_room(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[4096];
  size_t rsdp = 7, size = board_tables(rig->board, TABLES, bytes, sizeof(bytes), &rsdp);
  rsdp = 7;
  for (size_t i = 0; i < size; i++)
    assert_int_equal(board_tables(rig->board, TABLES, bytes, i, &rsdp), 0);
  assert_int_equal(rsdp, 7);
  assert_int_equal(board_tables(rig->board, TABLES, bytes, size, &rsdp), size);
}

/* ---- devices of virtual machines ---- */

static uint64_t fwcfg_item(struct rig *rig, uint16_t item, unsigned bytes)
{
  uint64_t value = 0;
  board_out(rig->board, 0x510, 2, item);
  for (unsigned i = 0; i < bytes; i++)
    value |= (uint64_t)in(rig, 0x511) << 8 * i;
  return value;
}

/* QEMU's docs/specs/fw_cfg. */
static void fwcfg_tells_of_the_machine(void **state)
{
  struct rig *rig = *state;
  assert_int_equal(fwcfg_item(rig, 0, 4), 0x554D4551); /* "QEMU" */
  assert_int_equal(in(rig, 0x511), 0);                 /* behind the end */
  assert_int_equal(fwcfg_item(rig, 1, 4), 1);          /* no DMA */
  assert_int_equal(fwcfg_item(rig, 3, 8), rig->config.ram);
  assert_int_equal(fwcfg_item(rig, 5, 2), 1);
  assert_int_equal(fwcfg_item(rig, 0xF, 2), 1);
  assert_int_equal(fwcfg_item(rig, 0x19, 4), 0); /* no files */
  assert_int_equal(fwcfg_item(rig, 0x4005, 8), 0);
  out(rig, 0x510, 5); /* a byte selects nothing */
  assert_int_equal(in(rig, 0x511), 0);
  assert_int_equal(fwcfg_item(rig, 5, 1), 1);
  board_reset(rig->board);
  assert_int_equal(in(rig, 0x511), 'Q');
}

static void test_device_is_not_there_unasked(void **state)
{
  struct rig *rig = *state;
  assert_false(board_owns(rig->board, 0xFF000000));
  board_out(rig->board, 0xE0, 4, 0x12345678);
  assert_int_equal(board_in(rig->board, 0xE0, 4), UINT32_MAX);
  out(rig, 0x200E, 1);
  assert_int_equal(in(rig, 0x200E), 0xFF);
  assert_false(rig->intr);
}

static void test_device_keeps_and_drives(void **state)
{
  struct rig *rig = *state;
  board_free(rig->board);
  rig->config.has_test_device = true;
  assert_int_equal(rig_start(rig), 0);
  assert_true(board_owns(rig->board, 0xFF00FFFF));
  assert_false(board_owns(rig->board, 0xFF010000));
  board_write(rig->board, 0xFF000010, 8, UINT64_C(0x1122334455667788));
  assert_int_equal(board_read(rig->board, 0xFF000012, 2), 0x5566);
  board_write(rig->board, 0xFF00FFFF, 4, 0xABCD); /* three bytes of it have no place */
  assert_int_equal(board_read(rig->board, 0xFF00FFFF, 4), 0xCD);
  board_out(rig->board, 0xE0, 4, 0x12345678);
  out(rig, 0xE2, 0xAB);
  assert_int_equal(board_in(rig->board, 0xE0, 4), 0x12AB5678);

  board_write(rig->board, LAPIC + 0xF0, 4, 0x1FF);
  for (unsigned pin = 14; pin <= 20; pin += 6) { /* edge-triggered, vector 0x40 + pin */
    board_write(rig->board, IOAPIC, 4, 0x10 + 2 * pin);
    board_write(rig->board, IOAPIC + 0x10, 4, 0x40 + pin);
    out(rig, (uint16_t)(0x2000 + pin), 1);
    assert_true(rig->intr);
    assert_int_equal(board_acknowledge(rig->board), 0x40 + pin);
    board_write(rig->board, LAPIC + 0xB0, 4, 0);
    assert_false(rig->intr);
    out(rig, (uint16_t)(0x2000 + pin), 0);
  }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    TEST(controller_tests_itself),
    TEST(controller_has_no_mouse),
    TEST(keyboard_commands),
    TEST(controller_loops_bytes),
    TEST(keyboard_waits_behind_a_closed_wire),
    TEST(keyboard_translates),
    TEST(keyboard_every_code_survives_translation),
    TEST(keyboard_interrupts),
    TEST(keyboard_buffer_ends),
    TEST(serial_sends),
    TEST(serial_divisor_hides_data),
    TEST(serial_loops_back),
    TEST(serial_interrupts_by_priority),
    TEST(serial_sent_interrupt_has_edges),
    TEST(serial_fifo_and_timeout),
    TEST(vga_shows_text),
    TEST(vga_retraces),
    TEST(vga_keeps_registers),
    TEST(pci_has_three_functions),
    TEST(pci_has_no_base_addresses),
    TEST(ide_identifies),
    TEST(ide_reads_with_interrupts),
    TEST(ide_reads_chs_and_lba48),
    TEST(ide_multiple),
    TEST(ide_writes_to_memory),
    TEST(ide_beyond_the_end),
    TEST(ide_other_commands),
    TEST(ide_lba48_beyond_the_end),
    TEST(ide_registers_are_the_disks_while_it_works),
    TEST(ide_resets),
    TEST(ide_has_no_slave),
    TEST(ide_may_be_absent),
    TEST(tables_of_acpi),
    TEST(tables_of_mp),
    TEST(tables_need_room),
    TEST(fwcfg_tells_of_the_machine),
    TEST(test_device_is_not_there_unasked),
    TEST(test_device_keeps_and_drives),
  };
#undef TEST
  return cmocka_run_group_tests_name("board_device", tests, NULL, NULL);
}
