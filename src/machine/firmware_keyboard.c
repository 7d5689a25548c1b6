/* SPDX-License-Identifier: Apache-2.0
 *
 * IRQ 1 and INT 16h: scan codes become keys in the ring of the BIOS data area, and are taken from there. AH=00h and 10h
 * wait: the stub halts and asks again.
 */
#include "machine/firmware.h"

enum {
  SHIFT_RIGHT = 1,
  SHIFT_LEFT = 2,
  SHIFT_CONTROL = 4,
  SHIFT_ALTERNATE = 8,
  SHIFT_SCROLL_LOCK = 0x10,
  SHIFT_NUM_LOCK = 0x20,
  SHIFT_CAPS_LOCK = 0x40,
};

enum { PREFIX_E1 = 1, PREFIX_E0 = 2 };

struct key {
  uint8_t scan;
  uint16_t plain, shifted, control, alternate;
};

static const struct key keys[] = {
#define KEY(scan, plain, shifted, control, alternate) {scan, plain, shifted, control, alternate},
#include "machine/keyboard.def"
#undef KEY
};

/* ---- the ring ---- */

static uint16_t ring_next(struct machine *m, uint16_t at)
{
  uint16_t next = (uint16_t)(at + 2);

  return next >= guest_get(m, BDA_KEY_END, 2) ? (uint16_t)guest_get(m, BDA_KEY_START, 2) : next;
}

bool keyboard_buffer_is_full(struct machine *machine)
{
  uint16_t tail = (uint16_t)guest_get(machine, BDA_KEY_TAIL, 2);

  return ring_next(machine, tail) == guest_get(machine, BDA_KEY_HEAD, 2);
}

static bool ring_put(struct machine *m, uint16_t key)
{
  uint16_t tail = (uint16_t)guest_get(m, BDA_KEY_TAIL, 2);

  if (keyboard_buffer_is_full(m))
    return false;
  guest_put(m, 0x400u + tail, 2, key);
  guest_put(m, BDA_KEY_TAIL, 2, ring_next(m, tail));
  return true;
}

static bool ring_peek(struct machine *m, uint16_t *ret_key)
{
  uint16_t head = (uint16_t)guest_get(m, BDA_KEY_HEAD, 2);

  if (head == guest_get(m, BDA_KEY_TAIL, 2))
    return false;
  *ret_key = (uint16_t)guest_get(m, 0x400u + head, 2);
  return true;
}

static void ring_drop(struct machine *m)
{
  guest_put(m, BDA_KEY_HEAD, 2, ring_next(m, (uint16_t)guest_get(m, BDA_KEY_HEAD, 2)));
}

/* ---- scan codes ---- */

/* The bit of a key that is held down, 0 for others. */
static uint16_t shift_bit(uint8_t scan, bool is_extended)
{
  switch (scan) {
  case 0x1D: /* in the byte above: the left one, alone */
    return is_extended ? SHIFT_CONTROL : SHIFT_CONTROL | 0x0100;
  case 0x38:
    return is_extended ? SHIFT_ALTERNATE : SHIFT_ALTERNATE | 0x0200;
  case 0x2A: /* E0 2A and E0 36 are made up by the keyboard */
    return is_extended ? 0 : SHIFT_LEFT;
  case 0x36:
    return is_extended ? 0 : SHIFT_RIGHT;
  default:
    return 0;
  }
}

static uint16_t lock_bit(uint8_t scan)
{
  return scan == 0x3A ? SHIFT_CAPS_LOCK : scan == 0x45 ? SHIFT_NUM_LOCK : scan == 0x46 ? SHIFT_SCROLL_LOCK : 0;
}

static bool key_is_letter(const struct key *key)
{
  return (key->plain & 0xFF) >= 'a' && (key->plain & 0xFF) <= 'z';
}

/* The value that INT 16h will return for a key; 0 for none. */
static uint16_t key_code(const struct key *key, uint16_t shift, bool is_extended)
{
  bool is_pad = key->scan >= 0x47 && key->scan <= 0x53;
  bool is_shifted = shift & (SHIFT_LEFT | SHIFT_RIGHT);

  if (shift & SHIFT_ALTERNATE)
    return key->alternate;
  if (shift & SHIFT_CONTROL)
    return key->control;
  if (is_extended) /* the grey keys: navigation whatever Shift says; / and Enter of the keypad */
    return is_pad ? key->plain | 0xE0 : 0xE000 | (key->plain & 0xFF);
  if (is_pad && (shift & SHIFT_NUM_LOCK))
    is_shifted = !is_shifted;
  if (key_is_letter(key) && (shift & SHIFT_CAPS_LOCK))
    is_shifted = !is_shifted;
  return is_shifted ? key->shifted : key->plain;
}

static void key_press(struct machine *m, uint8_t scan, uint16_t shift, bool is_extended)
{
  if (scan == 0x53 && (shift & SHIFT_CONTROL) && (shift & SHIFT_ALTERNATE)) {
    firmware_reset(m);
    return;
  }
  for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
    if (keys[i].scan == scan) {
      uint16_t code = key_code(&keys[i], shift, is_extended);

      if (code)
        ring_put(m, code);
      return;
    }
}

/* AL: a byte from the keyboard controller. */
bool firmware_key(struct machine *machine)
{
  uint8_t byte = get_low(machine, RAX), mode = (uint8_t)guest_get(machine, BDA_KEY_MODE, 1);
  uint16_t shift = (uint16_t)guest_get(machine, BDA_SHIFT, 2);
  uint8_t scan = byte & 0x7F;

  if (byte == 0xE0 || byte == 0xE1) {
    guest_put(machine, BDA_KEY_MODE, 1, mode | (byte == 0xE0 ? PREFIX_E0 : PREFIX_E1));
    return false;
  }
  bool is_extended = mode & PREFIX_E0, is_pause = mode & PREFIX_E1;
  if (!is_pause || scan == 0x45) /* Pause is E1 1D 45 */
    guest_put(machine, BDA_KEY_MODE, 1, mode & ~(PREFIX_E0 | PREFIX_E1));
  if (is_pause)
    return false;
  uint16_t held = shift_bit(scan, is_extended), lock = is_extended ? 0 : lock_bit(scan);
  if (held)
    guest_put(machine, BDA_SHIFT, 2, byte & 0x80 ? shift & ~held : shift | held);
  else if (lock && !(byte & 0x80))
    guest_put(machine, BDA_SHIFT, 2, shift ^ lock);
  else if (!(byte & 0x80))
    key_press(machine, scan, shift, is_extended);
  return false;
}

/* ---- INT 16h ---- */

/* Programs for the first PCs see grey keys as keys of the keypad. */
static uint16_t key_as_old(uint16_t key)
{
  if ((key & 0xFF00) == 0xE000)
    return (uint16_t)((key & 0xFF) == '\r' ? 0x1C0D : 0x3500 | (key & 0xFF));
  return (key & 0xFF) == 0xE0 && key >> 8 ? key & 0xFF00 : key;
}

static bool keyboard_take(struct machine *m, bool is_old)
{
  uint16_t key;

  if (!ring_peek(m, &key))
    return true;
  ring_drop(m);
  set16(m, RAX, is_old ? key_as_old(key) : key);
  return false;
}

/* A program that finds no key polls again, such as a menu that counts down. A poll takes as long as on the first PC, so
 * that waiting for a second does not take millions of calls. */
#define LOOK_NANOSECONDS 50000

static void keyboard_look(struct machine *m, bool is_old)
{
  uint16_t key;
  bool is_there = ring_peek(m, &key);

  guest_set_flag(m, FLAG_ZF, !is_there);
  if (is_there) {
    set16(m, RAX, is_old ? key_as_old(key) : key);
    return;
  }
  cpu_idle(m->cpu, LOOK_NANOSECONDS);
  cpu_kick(m->cpu); /* the board is told the time before the guest continues */
}

bool firmware_keyboard(struct machine *machine)
{
  uint16_t shift = (uint16_t)guest_get(machine, BDA_SHIFT, 2);

  switch (get_high(machine, RAX)) {
  case 0x00:
  case 0x10:
    return keyboard_take(machine, get_high(machine, RAX) == 0x00);
  case 0x01:
  case 0x11:
    keyboard_look(machine, get_high(machine, RAX) == 0x01);
    break;
  case 0x02:
    set_low(machine, RAX, (uint8_t)shift);
    break;
  case 0x12:
    set16(machine, RAX, shift);
    break;
  case 0x05:
    set_low(machine, RAX, ring_put(machine, get16(machine, RCX)) ? 0 : 1);
    break;
  }
  return false;
}
