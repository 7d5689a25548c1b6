/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8042 keyboard controller with a keyboard and no mouse. keyboard.c is the controller, keyboard_device.c the
 * keyboard.
 */
#ifndef BOARD_KEYBOARD_H
#define BOARD_KEYBOARD_H

#include <stdbool.h>
#include <stdint.h>

#define I8042_QUEUE 16u

struct board;

/* The keyboard: bytes on their way to the controller, in the keyboard's own scan set. */
struct i8042_keyboard {
  uint8_t queue[I8042_QUEUE];
  uint8_t first, count;
  uint8_t last;    /* byte sent last, for "resend" */
  uint8_t command; /* a command that waits for its parameter, 0 for none */
  uint8_t scan_set, leds, rate;
  bool is_scanning;
};

struct i8042 {
  struct i8042_keyboard keyboard;
  uint8_t ram[32]; /* its first byte is the command byte */
  uint8_t command; /* a command that waits for its data byte, 0 for none */
  uint8_t output;  /* output buffer */
  uint8_t status;
  bool is_break; /* F0 has arrived and will be translated with the code after it */
  uint64_t next; /* earliest time at which the keyboard's next byte arrives */
};

/* The keyboard's side: a byte from the controller, and a key as set-1 code. False: no room. */
void keyboard_device_reset(struct i8042_keyboard *keyboard);
void keyboard_device_write(struct i8042_keyboard *keyboard, uint8_t value);
bool keyboard_device_key(struct i8042_keyboard *keyboard, uint8_t code);
uint8_t keyboard_device_take(struct i8042_keyboard *keyboard);
/* Set 2 to set 1, as the controller does it. */
uint8_t keyboard_device_translate(uint8_t code);

#endif
