/* SPDX-License-Identifier: Apache-2.0
 *
 * The keyboard at the far end of the 8042's wire: its commands and its scan codes. IBM's PS/2 technical reference. It
 * supports sets 2 and 1 and refuses set 3, as many keyboards do.
 */
#include "board/keyboard.h"

enum {
  COMMAND_LEDS = 0xED,
  COMMAND_ECHO = 0xEE,
  COMMAND_SCAN_SET = 0xF0,
  COMMAND_IDENTIFY = 0xF2,
  COMMAND_RATE = 0xF3,
  COMMAND_ENABLE = 0xF4,
  COMMAND_DISABLE = 0xF5,
  COMMAND_DEFAULTS = 0xF6,
  COMMAND_RESEND = 0xFE,
  COMMAND_RESET = 0xFF,
};

#define ANSWER_ACK 0xFA
#define ANSWER_RESEND 0xFE
#define ANSWER_SELF_TEST 0xAA
#define CODE_BREAK 0xF0 /* before a set-2 code: the key goes up */
#define CODE_PREFIX 0xE0

/* Set-2 code to set-1 code, the table in every 8042. */
static const uint8_t set1[128] = {
  0xFF, 0x43, 0x41, 0x3F, 0x3D, 0x3B, 0x3C, 0x58, 0x64, 0x44, 0x42, 0x40, 0x3E, 0x0F, 0x29, 0x59, /* 00 */
  0x65, 0x38, 0x2A, 0x70, 0x1D, 0x10, 0x02, 0x5A, 0x66, 0x71, 0x2C, 0x1F, 0x1E, 0x11, 0x03, 0x5B, /* 10 */
  0x67, 0x2E, 0x2D, 0x20, 0x12, 0x05, 0x04, 0x5C, 0x68, 0x39, 0x2F, 0x21, 0x14, 0x13, 0x06, 0x5D, /* 20 */
  0x69, 0x31, 0x30, 0x23, 0x22, 0x15, 0x07, 0x5E, 0x6A, 0x72, 0x32, 0x24, 0x16, 0x08, 0x09, 0x5F, /* 30 */
  0x6B, 0x33, 0x25, 0x17, 0x18, 0x0B, 0x0A, 0x60, 0x6C, 0x34, 0x35, 0x26, 0x27, 0x19, 0x0C, 0x61, /* 40 */
  0x6D, 0x73, 0x28, 0x74, 0x1A, 0x0D, 0x62, 0x6E, 0x3A, 0x36, 0x1C, 0x1B, 0x75, 0x2B, 0x63, 0x76, /* 50 */
  0x55, 0x56, 0x77, 0x78, 0x79, 0x7A, 0x0E, 0x7B, 0x7C, 0x4F, 0x7D, 0x4B, 0x47, 0x7E, 0x7F, 0x6F, /* 60 */
  0x52, 0x53, 0x50, 0x4C, 0x4D, 0x48, 0x01, 0x45, 0x57, 0x4E, 0x51, 0x4A, 0x37, 0x49, 0x46, 0x54, /* 70 */
};

uint8_t keyboard_device_translate(uint8_t code)
{
  if (code < 0x80)
    return set1[code];
  return code == 0x83 ? 0x41 : code == 0x84 ? 0x54 : code; /* F7 and SysRq lie outside the table */
}

static uint8_t set2_of(uint8_t code)
{
  if (code == 0x41)
    return 0x83;
  if (code == 0x54)
    return 0x84;
  for (unsigned i = 0; i < sizeof(set1); i++)
    if (set1[i] == code)
      return (uint8_t)i;
  return 0;
}

/* ---- the queue ---- */

static bool queue_has_room(const struct i8042_keyboard *keyboard, unsigned bytes)
{
  return keyboard->count + bytes <= I8042_QUEUE;
}

static void queue_add(struct i8042_keyboard *keyboard, uint8_t byte)
{
  if (queue_has_room(keyboard, 1))
    keyboard->queue[(keyboard->first + keyboard->count++) % I8042_QUEUE] = byte;
}

uint8_t keyboard_device_take(struct i8042_keyboard *keyboard)
{
  uint8_t byte = keyboard->queue[keyboard->first];

  if (keyboard->count == 0)
    return keyboard->last;
  keyboard->first = (uint8_t)((keyboard->first + 1) % I8042_QUEUE);
  keyboard->count--;
  keyboard->last = byte;
  return byte;
}

/* ---- keys ---- */

bool keyboard_device_key(struct i8042_keyboard *keyboard, uint8_t code)
{
  bool is_prefix = code >= CODE_PREFIX, is_break = code & 0x80;

  if (!keyboard->is_scanning)
    return true; /* the key is ignored */
  if (keyboard->scan_set == 1 || is_prefix) {
    if (!queue_has_room(keyboard, 1))
      return false;
    queue_add(keyboard, code);
    return true;
  }
  if (!queue_has_room(keyboard, is_break ? 2 : 1))
    return false;
  if (is_break)
    queue_add(keyboard, CODE_BREAK);
  queue_add(keyboard, set2_of(code & 0x7F));
  return true;
}

/* ---- commands ---- */

static void keyboard_defaults(struct i8042_keyboard *keyboard)
{
  keyboard->scan_set = 2;
  keyboard->rate = 0x2B;
  keyboard->leds = 0;
  keyboard->command = 0;
}

void keyboard_device_reset(struct i8042_keyboard *keyboard)
{
  *keyboard = (struct i8042_keyboard){.is_scanning = true};
  keyboard_defaults(keyboard);
}

static void keyboard_parameter(struct i8042_keyboard *keyboard, uint8_t value)
{
  uint8_t command = keyboard->command;

  keyboard->command = 0;
  if (command == COMMAND_SCAN_SET && value > 2) {
    queue_add(keyboard, ANSWER_RESEND);
    return;
  }
  queue_add(keyboard, ANSWER_ACK);
  if (command == COMMAND_LEDS)
    keyboard->leds = value & 7;
  else if (command == COMMAND_RATE)
    keyboard->rate = value & 0x7F;
  else if (value == 0)
    queue_add(keyboard, keyboard->scan_set);
  else
    keyboard->scan_set = value;
}

static void keyboard_command(struct i8042_keyboard *keyboard, uint8_t value)
{
  switch (value) {
  case COMMAND_LEDS:
  case COMMAND_SCAN_SET:
  case COMMAND_RATE:
    keyboard->command = value;
    queue_add(keyboard, ANSWER_ACK);
    break;
  case COMMAND_ECHO:
    queue_add(keyboard, COMMAND_ECHO);
    break;
  case COMMAND_IDENTIFY:
    queue_add(keyboard, ANSWER_ACK);
    queue_add(keyboard, 0xAB);
    queue_add(keyboard, 0x83);
    break;
  case COMMAND_ENABLE:
    keyboard->is_scanning = true;
    queue_add(keyboard, ANSWER_ACK);
    break;
  case COMMAND_DISABLE:
  case COMMAND_DEFAULTS:
    keyboard_defaults(keyboard);
    keyboard->is_scanning = value == COMMAND_DEFAULTS;
    queue_add(keyboard, ANSWER_ACK);
    break;
  case COMMAND_RESEND:
    queue_add(keyboard, keyboard->last);
    break;
  case COMMAND_RESET:
    keyboard_device_reset(keyboard);
    queue_add(keyboard, ANSWER_ACK);
    queue_add(keyboard, ANSWER_SELF_TEST);
    break;
  default:
    queue_add(keyboard, value >= 0xF7 ? ANSWER_ACK : ANSWER_RESEND); /* F7 to FD are about set 3 */
    break;
  }
}

/* A command drops the bytes that wait to be sent: its answer comes next. */
void keyboard_device_write(struct i8042_keyboard *keyboard, uint8_t value)
{
  keyboard->count = 0;
  if (keyboard->command && value < 0x80)
    keyboard_parameter(keyboard, value);
  else {
    keyboard->command = 0;
    keyboard_command(keyboard, value);
  }
}
