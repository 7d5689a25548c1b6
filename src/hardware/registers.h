/* SPDX-License-Identifier: Apache-2.0
 *
 * The registers of one logical processor: two functions, implemented by the msr device (device.c) or, in tests, by a
 * recorder. On top of them are changes that can be undone, whatever happens in between: each is noted before it is
 * made.
 */
#ifndef HARDWARE_REGISTERS_H
#define HARDWARE_REGISTERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Both return 0 or -errno; -EIO is #GP. They are called from signal handlers, too. */
struct hardware_registers {
  void *data; /* handed to both */
  int (*read)(void *data, uint32_t msr, uint64_t *ret_value);
  int (*write)(void *data, uint32_t msr, uint64_t value);
};

/* A register that was changed: the changed bits, their old and their new values. */
struct hardware_change {
  uint32_t msr;
  uint64_t mask, before, after;
  uint64_t others; /* its other bits when it was changed, */
  bool has_others; /* if that is known */
};

#define HARDWARE_CHANGES_MAX 8

/* Starts as all zero except for `registers`. */
struct hardware_undo {
  const struct hardware_registers *registers;
  volatile sig_atomic_t count;
  struct hardware_change changes[HARDWARE_CHANGES_MAX]; /* in the order in which they were made */
};

/* Sets the bits of `mask` to those of `value`, and notes their old values. The other bits stay. Returns 0; the error of
 * reading or writing, or -ENOSPC: then nothing has changed. */
int hardware_undo_change(struct hardware_undo *undo, uint32_t msr, uint64_t mask, uint64_t value);

/* The two halves of it, for a change that must happen at a certain moment: the first notes it and returns its number,
 * or an error as above; the second makes it, and returns 0, or the error of writing. Then it is still noted. The other
 * bits keep the values that the first function read. */
int hardware_undo_note(struct hardware_undo *undo, uint32_t msr, uint64_t mask, uint64_t value);
int hardware_undo_commit(struct hardware_undo *undo, int number);

/* Undoes all changes but the first `keep`, the newest first, and forgets them. A failed write is tried again; if it
 * fails again, the other changes are still undone. May be called from a signal handler that interrupts these functions
 * between any two instructions. Returns 0, or the first error that remained. */
int hardware_undo_to(struct hardware_undo *undo, unsigned keep);

/* Forgets all changes: they stay. */
void hardware_undo_forget(struct hardware_undo *undo);

/* From now on every signal that would end the program, including its own crash, first undoes all changes. A process can
 * have one guard at a time; the undo must stay until hardware_guard_end. With `exits` the signals that a user sends to
 * end a program (SIGINT, SIGTERM, SIGHUP) then end it with status 0. Signals that are ignored stay ignored. */
void hardware_guard_begin(struct hardware_undo *undo, int exits);
void hardware_guard_end(void);

#endif
