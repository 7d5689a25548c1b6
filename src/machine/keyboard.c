/* SPDX-License-Identifier: Apache-2.0
 *
 * The outside end of the keyboard: characters become scan codes, and scan codes go to the board one by one, as fast as
 * a quick typist's fingers. While the firmware serves the keyboard and its buffer is full, keys wait here.
 */
#include "machine/firmware.h"

#define CODE_TIME UINT64_C(1000000)   /* between two codes */
#define RETRY_TIME UINT64_C(10000000) /* when the controller takes no code */
#define SCAN_SHIFT 0x2A
#define SCAN_CONTROL 0x1D
#define SCAN_RELEASE 0x80

static const struct {
  uint8_t scan;
  uint16_t plain, shifted, control;
} keys[] = {
#define KEY(scan, plain, shifted, control, alternate) {scan, plain, shifted, control},
#include "machine/keyboard.def"
#undef KEY
};

/* ---- the queue ---- */

uint64_t keyboard_deadline(const struct machine *machine)
{
  return machine->keys.count ? machine->keys.next : UINT64_MAX;
}

/* The first code has left the queue. */
static void queue_drop(struct keys *queue, uint64_t now)
{
  queue->first = (queue->first + 1) % KEYS_MAX;
  queue->count--;
  queue->next = now + CODE_TIME;
}

void keyboard_advance(struct machine *machine, uint64_t now)
{
  struct keys *queue = &machine->keys;

  if (board_is_asleep(machine->board)) { /* the code is lost: the keyboard is reset */
    machine_wake(machine);
    queue_drop(queue, now);
    return;
  }
  bool waits = guest_vector_is_rom(machine, 9) && keyboard_buffer_is_full(machine);
  if (waits || !board_key(machine->board, queue->codes[queue->first])) {
    queue->next = now + RETRY_TIME;
    return;
  }
  machine->idle.quiet = 0;
  queue_drop(queue, now);
}

static void queue_add(struct machine *m, uint8_t code)
{
  struct keys *queue = &m->keys;

  if (queue->count == 0 && queue->next < cpu_cycles(m->cpu))
    queue->next = cpu_cycles(m->cpu);
  queue->codes[(queue->first + queue->count++) % KEYS_MAX] = code;
}

bool machine_key(struct machine *machine, uint8_t code)
{
  if (machine->keys.count == KEYS_MAX)
    return false;
  queue_add(machine, code);
  return true;
}

/* ---- characters ---- */

/* Presses and releases a key, with Shift or Ctrl around it if `modifier` is not 0. */
static void queue_press(struct machine *m, uint8_t scan, uint8_t modifier)
{
  if (modifier)
    queue_add(m, modifier);
  queue_add(m, scan);
  queue_add(m, scan | SCAN_RELEASE);
  if (modifier)
    queue_add(m, modifier | SCAN_RELEASE);
}

bool machine_type(struct machine *machine, char character)
{
  uint8_t wanted = character == '\n' ? '\r' : (uint8_t)character;

  if (machine->keys.count > KEYS_MAX - 4)
    return false;
  for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
    bool is_keypad = keys[i].scan == 0x37 || keys[i].scan > 0x39;

    if (is_keypad || wanted == 0)
      continue;
    if ((keys[i].plain & 0xFF) == wanted || (keys[i].shifted & 0xFF) == wanted || (keys[i].control & 0xFF) == wanted) {
      uint8_t modifier = (keys[i].plain & 0xFF) == wanted     ? 0
                         : (keys[i].shifted & 0xFF) == wanted ? SCAN_SHIFT
                                                              : SCAN_CONTROL;

      queue_press(machine, keys[i].scan, modifier);
      return true;
    }
  }
  return true; /* no such key: nothing to press */
}
