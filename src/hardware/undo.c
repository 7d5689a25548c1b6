/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of registers that can be undone. A signal may come between any two instructions here, and its handler calls
 * hardware_undo_to. A change is therefore complete in the list before `count` includes it, and `count` includes it
 * before the register is written. Undoing a change that was not made yet, or undoing it twice, does no harm.
 */
#include <errno.h>
#include <stdatomic.h>

#include "hardware/registers.h"

#include <assert.h>

#define TRIES 3

int hardware_undo_note(struct hardware_undo *undo, uint32_t msr, uint64_t mask, uint64_t value)
{
  const struct hardware_registers *registers = undo->registers;
  struct hardware_change *change = &undo->changes[undo->count];
  uint64_t now;
  int r;

  if (undo->count >= HARDWARE_CHANGES_MAX)
    return -ENOSPC;
  r = registers->read(registers->data, msr, &now);
  if (r < 0)
    return r;
  *change = (struct hardware_change){
    .msr = msr,
    .mask = mask,
    .before = now & mask,
    .after = value & mask,
    .others = now & ~mask,
    .has_others = true,
  };
  atomic_signal_fence(memory_order_seq_cst);
  return undo->count++;
}

int hardware_undo_commit(struct hardware_undo *undo, int number)
{
  const struct hardware_registers *registers = undo->registers;
  const struct hardware_change *change = &undo->changes[number];

  assert(number >= 0 && number < undo->count); /* the value before a write is noted before the write */
  atomic_signal_fence(memory_order_seq_cst);
  return registers->write(registers->data, change->msr, change->others | change->after);
}

int hardware_undo_change(struct hardware_undo *undo, uint32_t msr, uint64_t mask, uint64_t value)
{
  int r = hardware_undo_note(undo, msr, mask, value);

  if (r < 0)
    return r;
  r = hardware_undo_commit(undo, r);
  if (r < 0)
    undo->count--; /* a write that fails has changed nothing */
  return r;
}

/* Bits that we did not change may have changed since. If they cannot be read, the old values are assumed. */
static int others_read(const struct hardware_registers *registers, const struct hardware_change *change,
                       uint64_t *ret_others)
{
  uint64_t now = 0;
  int r = ~change->mask ? -EIO : 0;

  for (int i = 0; r < 0 && i < TRIES; i++)
    r = registers->read(registers->data, change->msr, &now);
  if (r < 0 && !change->has_others)
    return r;
  *ret_others = r < 0 ? change->others : now & ~change->mask;
  return 0;
}

static int change_take_back(const struct hardware_registers *registers, const struct hardware_change *change)
{
  uint64_t others;
  int r = others_read(registers, change, &others);

  if (r < 0)
    return r;
  r = -EIO;
  for (int i = 0; r < 0 && i < TRIES; i++)
    r = registers->write(registers->data, change->msr, others | change->before);
  return r;
}

int hardware_undo_to(struct hardware_undo *undo, unsigned keep)
{
  int result = 0;

  while (undo->count > (int)keep) {
    int r = change_take_back(undo->registers, &undo->changes[undo->count - 1]);

    if (r < 0 && result == 0)
      result = r;
    atomic_signal_fence(memory_order_seq_cst);
    undo->count--;
  }
  return result;
}

void hardware_undo_forget(struct hardware_undo *undo)
{
  undo->count = 0;
}
