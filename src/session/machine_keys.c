/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts what a terminal sends to what a PC's keyboard sends: characters are typed, escape sequences of xterm and the
 * Linux console are keys, and ESC before a character is Alt.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "session/machine.h"

#define ESCAPE 0x1B
#define CTRL_BRACKET 0x1D
#define SEQUENCE_MAX 16u

enum { SCAN_ALT = 0x38, SCAN_CTRL = 0x1D, SCAN_SHIFT = 0x2A, SCAN_PREFIX = 0xE0, SCAN_UP = 0x80 };

/* A key by the end of its sequence: a letter, or a number before ~. Set-1 codes; grey keys have E0 before them. */
static const struct {
  char letter;
  uint8_t number;
  uint8_t scan;
  bool is_grey;
} keys[] = {
  {'A', 0, 0x48, true},   {'B', 0, 0x50, true},   {'C', 0, 0x4D, true},   {'D', 0, 0x4B, true},
  {'H', 0, 0x47, true},   {'F', 0, 0x4F, true},   {'P', 0, 0x3B, false},  {'Q', 0, 0x3C, false},
  {'R', 0, 0x3D, false},  {'S', 0, 0x3E, false},  {'~', 1, 0x47, true},   {'~', 2, 0x52, true},
  {'~', 3, 0x53, true},   {'~', 4, 0x4F, true},   {'~', 5, 0x49, true},   {'~', 6, 0x51, true},
  {'~', 7, 0x47, true},   {'~', 8, 0x4F, true},   {'~', 11, 0x3B, false}, {'~', 12, 0x3C, false},
  {'~', 13, 0x3D, false}, {'~', 14, 0x3E, false}, {'~', 15, 0x3F, false}, {'~', 17, 0x40, false},
  {'~', 18, 0x41, false}, {'~', 19, 0x42, false}, {'~', 20, 0x43, false}, {'~', 21, 0x44, false},
  {'~', 23, 0x57, false}, {'~', 24, 0x58, false},
};

/* Presses and releases a key with modifiers as xterm numbers them: 1 Shift, 2 Alt, 4 Ctrl. */
static void key_press(struct machine *machine, uint8_t scan, bool is_grey, unsigned modifiers)
{
  static const uint8_t scans[3] = {SCAN_SHIFT, SCAN_ALT, SCAN_CTRL};

  for (unsigned i = 0; i < 3; i++)
    if (modifiers >> i & 1)
      machine_key(machine, scans[i]);
  for (unsigned up = 0; up <= SCAN_UP; up += SCAN_UP) {
    if (is_grey)
      machine_key(machine, SCAN_PREFIX);
    machine_key(machine, (uint8_t)(scan | up));
  }
  for (unsigned i = 3; i > 0; i--)
    if (modifiers >> (i - 1) & 1)
      machine_key(machine, scans[i - 1] | SCAN_UP);
}

/* Takes the part between ESC [ and the last letter: up to two numbers. */
static void sequence_press(struct machine *machine, const uint8_t *bytes, size_t size)
{
  unsigned numbers[2] = {0, 1}, at = 0;
  char last = (char)bytes[size - 1];

  for (size_t i = 2; i + 1 < size; i++)
    if (bytes[i] == ';' && at == 0)
      numbers[++at] = 0;
    else if (bytes[i] >= '0' && bytes[i] <= '9' && numbers[at] < 100)
      numbers[at] = numbers[at] * 10 + bytes[i] - '0';
  for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
    if (keys[i].letter == last && (last != '~' || keys[i].number == numbers[0])) {
      key_press(machine, keys[i].scan, keys[i].is_grey, numbers[1] ? numbers[1] - 1 : 0);
      return;
    }
}

/* The length of a sequence that begins with ESC [ or ESC O; 0 if it is incomplete. */
static size_t sequence_size(const uint8_t *bytes, size_t count)
{
  for (size_t i = 2; i < count && i < SEQUENCE_MAX; i++)
    if (bytes[i] >= 0x40 && bytes[i] <= 0x7E)
      return i + 1;
  return count >= SEQUENCE_MAX ? SEQUENCE_MAX : 0;
}

static bool character_type(struct machine *machine, uint8_t byte)
{
  if (byte >= 0x80)
    return true;                                                  /* not on a US keyboard */
  return machine_type(machine, byte == 0x7F ? '\b' : (char)byte); /* terminals send DEL for Backspace */
}

/* Presses the first key in the input. Returns its number of bytes, 0 if the keyboard's buffer is full. A sequence
 * arrives in one piece, so ESC with nothing after it is the key itself. */
static size_t front_press(struct machine *machine, const uint8_t *bytes, size_t count)
{
  size_t size;

  if (bytes[0] != ESCAPE || count == 1)
    return character_type(machine, bytes[0]) ? 1 : 0;
  if (bytes[1] == '[' || bytes[1] == 'O') {
    size = sequence_size(bytes, count);
    if (!size)
      return character_type(machine, bytes[0]) ? 1 : 0;
    sequence_press(machine, bytes, size);
    return size;
  }
  machine_key(machine, SCAN_ALT);
  size = character_type(machine, bytes[1]) ? 2 : 0;
  machine_key(machine, SCAN_ALT | SCAN_UP);
  return size;
}

bool machine_keys_press(struct machine_keys *pending, struct machine *machine)
{
  size_t done = 0;

  if (memchr(pending->bytes, CTRL_BRACKET, pending->count))
    return true;
  while (done < pending->count) {
    size_t size = front_press(machine, pending->bytes + done, pending->count - done);

    if (!size)
      break;
    done += size;
  }
  memmove(pending->bytes, pending->bytes + done, pending->count - done);
  pending->count -= done;
  return false;
}

/* ---- by name ---- */

static const struct {
  const char *name;
  uint8_t scan;
  bool is_grey;
} names[] = {
  {"enter", 0x1C, false}, {"esc", 0x01, false},   {"tab", 0x0F, false},   {"backspace", 0x0E, false},
  {"up", 0x48, true},     {"down", 0x50, true},   {"left", 0x4B, true},   {"right", 0x4D, true},
  {"home", 0x47, true},   {"end", 0x4F, true},    {"pageup", 0x49, true}, {"pagedown", 0x51, true},
  {"insert", 0x52, true}, {"delete", 0x53, true}, {"f1", 0x3B, false},    {"f2", 0x3C, false},
  {"f3", 0x3D, false},    {"f4", 0x3E, false},    {"f5", 0x3F, false},    {"f6", 0x40, false},
  {"f7", 0x41, false},    {"f8", 0x42, false},    {"f9", 0x43, false},    {"f10", 0x44, false},
  {"f11", 0x57, false},   {"f12", 0x58, false},   {"space", 0x39, false}, {"lt", 0, false},
};

/* Presses the key with a name of `size` letters. Returns 0, or -EINVAL. */
static int name_press(struct machine *machine, const char *name, size_t size)
{
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (strlen(names[i].name) == size && !strncasecmp(names[i].name, name, size)) {
      if (names[i].scan)
        key_press(machine, names[i].scan, names[i].is_grey, 0);
      else
        machine_type(machine, '<');
      return 0;
    }
  return -EINVAL;
}

/* Presses the first key in the text, and sets its number of letters. */
static int letters_press(struct machine *machine, const char *text, size_t *ret_size)
{
  const char *end = strchr(text, '>');

  *ret_size = 1;
  if (*text == '<' && end) {
    *ret_size = (size_t)(end - text) + 1;
    return name_press(machine, text + 1, *ret_size - 2);
  }
  if (text[0] == '\\' && text[1] == 'n') {
    *ret_size = 2;
    return machine_type(machine, '\n') ? 0 : -ENOSPC;
  }
  return machine_type(machine, *text) ? 0 : -ENOSPC;
}

int machine_keys_type(struct machine *machine, const char *text)
{
  while (*text) {
    size_t size;
    int r = letters_press(machine, text, &size);

    if (r < 0)
      return r;
    text += size;
  }
  return 0;
}
