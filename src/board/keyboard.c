/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8042 keyboard controller at 0x60 and 0x64: command byte, output port with A20 and the reset line, translation to
 * scan set 1, IRQ 1 and IRQ 12. IBM's PS/2 technical reference. Nothing is connected to its second port: bytes sent
 * there time out. It starts as a PC's firmware leaves it: translating, interrupts on, A20 open.
 */
#include "base/base.h"
#include "board/state.h"

enum {
  STATUS_OUTPUT_FULL = 0x01,
  STATUS_SYSTEM = 0x04,
  STATUS_COMMAND = 0x08, /* the last write went to 0x64 */
  STATUS_UNLOCKED = 0x10,
  STATUS_MOUSE = 0x20, /* the output buffer is from the second port */
  STATUS_TIMEOUT = 0x40,
};

enum {
  BYTE_IRQ1 = 0x01,
  BYTE_IRQ12 = 0x02,
  BYTE_SYSTEM = 0x04,
  BYTE_NO_KEYBOARD = 0x10,
  BYTE_NO_MOUSE = 0x20,
  BYTE_TRANSLATE = 0x40,
};

enum {
  OUTPUT_NO_RESET = 0x01,
  OUTPUT_A20 = 0x02,
};

#define IRQ_KEYBOARD 1
#define IRQ_MOUSE 12
#define INPUT_PORT 0xB0            /* not locked, VGA, nothing in manufacturing mode */
#define BYTE_TIME UINT64_C(500000) /* a byte on the keyboard's wire: software that reads 0x60 twice gets it twice */
#define CODE_BREAK 0xF0

/* ---- the output buffer ---- */

static void i8042_signal(struct board *board)
{
  const struct i8042 *i8042 = &board->i8042;
  bool is_full = i8042->status & STATUS_OUTPUT_FULL, is_mouse = i8042->status & STATUS_MOUSE;

  line_set(board, IRQ_KEYBOARD, is_full && !is_mouse && (i8042->ram[0] & BYTE_IRQ1));
  line_set(board, IRQ_MOUSE, is_full && is_mouse && (i8042->ram[0] & BYTE_IRQ12));
}

static void i8042_give(struct board *board, uint8_t byte, uint8_t flags)
{
  struct i8042 *i8042 = &board->i8042;

  i8042->output = byte;
  i8042->status = (uint8_t)((i8042->status & ~(STATUS_MOUSE | STATUS_TIMEOUT)) | STATUS_OUTPUT_FULL | flags);
  i8042_signal(board);
}

static bool i8042_waits_for_keyboard(const struct i8042 *i8042)
{
  return i8042->keyboard.count && !(i8042->status & STATUS_OUTPUT_FULL) && !(i8042->ram[0] & BYTE_NO_KEYBOARD);
}

/* Takes the keyboard's next byte if it has arrived. The translation drops F0 and sets bit 7 of the code after it. */
static void i8042_advance(struct board *board, uint64_t now)
{
  struct i8042 *i8042 = &board->i8042;

  while (i8042_waits_for_keyboard(i8042) && now >= i8042->next) {
    uint8_t byte = keyboard_device_take(&i8042->keyboard);

    if (i8042->ram[0] & BYTE_TRANSLATE) {
      if (byte == CODE_BREAK) {
        i8042->is_break = true;
        continue;
      }
      byte = (uint8_t)(keyboard_device_translate(byte) | (i8042->is_break ? 0x80 : 0));
    }
    i8042->is_break = false;
    i8042_give(board, byte, 0);
  }
}

static uint64_t i8042_deadline(const struct board *board)
{
  const struct i8042 *i8042 = &board->i8042;
  bool is_heard = (i8042->ram[0] & BYTE_IRQ1) && line_reaches(board, IRQ_KEYBOARD);

  return i8042_waits_for_keyboard(i8042) && is_heard ? i8042->next : CLOCK_NEVER;
}

static uint8_t i8042_read_data(struct board *board)
{
  struct i8042 *i8042 = &board->i8042;
  uint64_t now = board_now(board);

  i8042_advance(board, now);
  if (i8042->status & STATUS_OUTPUT_FULL) {
    i8042->status &= (uint8_t) ~(STATUS_OUTPUT_FULL | STATUS_MOUSE | STATUS_TIMEOUT);
    i8042->next = now + BYTE_TIME;
    i8042_signal(board);
    board->is_touched = true;
  }
  return i8042->output;
}

/* ---- commands at 0x64 ---- */

/* A byte for the second port, where nothing is connected: it times out. */
static void i8042_time_out(struct board *board)
{
  i8042_give(board, 0xFE, STATUS_MOUSE | STATUS_TIMEOUT);
}

static void i8042_set_command_byte(struct board *board, uint8_t value)
{
  struct i8042 *i8042 = &board->i8042;

  i8042->ram[0] = value;
  i8042->status = (uint8_t)((i8042->status & ~STATUS_SYSTEM) | (value & BYTE_SYSTEM ? STATUS_SYSTEM : 0));
  i8042_signal(board);
}

static uint8_t i8042_output_port(const struct board *board)
{
  const struct i8042 *i8042 = &board->i8042;
  bool is_full = i8042->status & STATUS_OUTPUT_FULL, is_mouse = i8042->status & STATUS_MOUSE;

  return (uint8_t)(0xC0 | OUTPUT_NO_RESET | (board->a20_is_open ? OUTPUT_A20 : 0) | (is_full && !is_mouse ? 0x10 : 0) |
                   (is_full && is_mouse ? 0x20 : 0));
}

static void i8042_set_output_port(struct board *board, uint8_t value)
{
  board_set_a20(board, value & OUTPUT_A20);
  if (!(value & OUTPUT_NO_RESET))
    power_init_signal(board);
}

static void i8042_self_test(struct board *board)
{
  struct i8042 *i8042 = &board->i8042;

  i8042_set_command_byte(board, (i8042->ram[0] & BYTE_TRANSLATE) | BYTE_SYSTEM | BYTE_NO_KEYBOARD | BYTE_NO_MOUSE);
  i8042_give(board, 0x55, 0);
}

static void i8042_command(struct board *board, uint8_t value)
{
  struct i8042 *i8042 = &board->i8042;

  i8042->command = 0;
  if (value >= 0x20 && value < 0x40)
    i8042_give(board, i8042->ram[value & 0x1F], 0);
  else if ((value >= 0x60 && value < 0x80) || (value >= 0xD1 && value <= 0xD4))
    i8042->command = value;
  else if (value == 0xA7 || value == 0xA8)
    i8042_set_command_byte(board, (uint8_t)((i8042->ram[0] & ~BYTE_NO_MOUSE) | (value & 1 ? BYTE_NO_MOUSE : 0)));
  else if (value == 0xAA)
    i8042_self_test(board);
  else if (value == 0xA9 || value == 0xAB || value == 0xE0) /* tests of the wires, and their levels: all well */
    i8042_give(board, 0, 0);
  else if (value == 0xAD || value == 0xAE)
    i8042_set_command_byte(board, (uint8_t)((i8042->ram[0] & ~BYTE_NO_KEYBOARD) | (value & 1 ? BYTE_NO_KEYBOARD : 0)));
  else if (value == 0xC0)
    i8042_give(board, INPUT_PORT, 0);
  else if (value == 0xD0)
    i8042_give(board, i8042_output_port(board), 0);
  else if (value == 0xDD || value == 0xDF)
    board_set_a20(board, value & OUTPUT_A20);
  else if (value >= 0xF0 && !(value & 1))
    power_init_signal(board);
}

/* ---- data at 0x60 ---- */

static void i8042_write_data(struct board *board, uint8_t value)
{
  struct i8042 *i8042 = &board->i8042;
  uint8_t command = i8042->command;

  i8042->command = 0;
  if (command == 0x60)
    i8042_set_command_byte(board, value);
  else if (command > 0x60 && command < 0x80)
    i8042->ram[command & 0x1F] = value;
  else if (command == 0xD1)
    i8042_set_output_port(board, value);
  else if (command == 0xD2)
    i8042_give(board, value, 0);
  else if (command == 0xD3)
    i8042_give(board, value, STATUS_MOUSE);
  else if (command == 0xD4)
    i8042_time_out(board);
  else {
    keyboard_device_write(&i8042->keyboard, value); /* writing to the keyboard opens its wire */
    i8042->ram[0] &= (uint8_t)~BYTE_NO_KEYBOARD;
    i8042->is_break = false;
  }
}

/* ---- ports ---- */

static uint32_t i8042_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  if (port == 0x60)
    return i8042_read_data(board);
  i8042_advance(board, board_now(board));
  return board->i8042.status;
}

static void i8042_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct i8042 *i8042 = &board->i8042;

  (void)size;
  board_catch_up(board);
  if (port == 0x64) {
    i8042->status |= STATUS_COMMAND;
    i8042_command(board, (uint8_t)value);
  } else {
    i8042->status &= (uint8_t)~STATUS_COMMAND;
    i8042_write_data(board, (uint8_t)value);
  }
  i8042_advance(board, board_now(board));
}

bool board_key(struct board *board, uint8_t code)
{
  uint64_t now = board_now(board);

  i8042_advance(board, now); /* this may make room */
  bool is_taken = keyboard_device_key(&board->i8042.keyboard, code);
  i8042_advance(board, now);
  board_settle(board);
  return is_taken;
}

static void i8042_reset(struct board *board)
{
  board->i8042 = (struct i8042){.status = STATUS_SYSTEM | STATUS_UNLOCKED};
  board->i8042.ram[0] = BYTE_IRQ1 | BYTE_SYSTEM | BYTE_TRANSLATE;
  keyboard_device_reset(&board->i8042.keyboard);
}

/* ---- saving ---- */

static void i8042_archive(struct archive *archive, struct board *board)
{
  struct i8042 *i8042 = &board->i8042;
  struct i8042_keyboard *keyboard = &i8042->keyboard;

  archive_array(archive, keyboard->queue);
  archive_most(archive, &keyboard->first, I8042_QUEUE - 1);
  archive_most(archive, &keyboard->count, I8042_QUEUE);
  archive_value(archive, &keyboard->last);
  archive_value(archive, &keyboard->command);
  archive_most(archive, &keyboard->scan_set, 2);
  archive_value(archive, &keyboard->leds);
  archive_value(archive, &keyboard->rate);
  archive_flag(archive, &keyboard->is_scanning);
  archive_array(archive, i8042->ram);
  archive_value(archive, &i8042->command);
  archive_value(archive, &i8042->output);
  archive_value(archive, &i8042->status);
  archive_flag(archive, &i8042->is_break);
  archive_value(archive, &i8042->next);
}

static const struct port_range keyboard_ports[] = {
  {0x060, 0x060, 0, i8042_in, i8042_out},
  {0x064, 0x064, 0, i8042_in, i8042_out},
  {0},
};

const struct device device_keyboard = {
  .ports = keyboard_ports,
  .reset = i8042_reset,
  .advance = i8042_advance,
  .deadline = i8042_deadline,
  .archive = i8042_archive,
};
