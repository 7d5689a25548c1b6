/* SPDX-License-Identifier: Apache-2.0
 *
 * A path while it is translated from the application's bytes into the cache: declarations that translate.c,
 * instruction.c and branch.c of the runtime share. No other file includes this.
 */
#ifndef PROCESS_RUNTIME_TRANSLATE_H
#define PROCESS_RUNTIME_TRANSLATE_H

#include "process/runtime/runtime.h"

#pragma GCC visibility push(hidden)

enum {
  STEPS_MOST = 40,
  NUMBERS_MOST = 2 * STEPS_MOST,
  DEPTH_MOST = 8,     /* calls in a path that have not returned */
  FOLLOWED_MOST = 16, /* branches that the path follows */
  COPY_MOST = 512,    /* bytes of code that a unit which is checked may have */
};

/* A site that jumps to a stub, and a site that refers to a number in the cold part. */
struct stub {
  uint8_t *site; /* rel32 */
  uint8_t step;
  bool is_open; /* an indirect branch that went elsewhere than expected */
};

struct number {
  uint8_t *site;
  uint64_t value;
};

/* A path while it is translated. */
struct translation {
  struct thread *thread;
  struct runtime *runtime;
  struct emitter emitter;
  struct approach *approach;
  uint8_t *edge, *entry;
  uint8_t *way; /* for indirect branches, between the edge and the entry; NULL: none */
  unsigned instructions_most, steps_most;
  unsigned turns; /* of the loop so far */
  unsigned
    self_step; /* of a loop: its exit that leads back to its head, from 1 on, whose edge is this unit's; 0: none */
  const struct range *range;
  uint64_t start, address;  /* of the path, of the next instruction */
  uint64_t limit;           /* code that cannot be read begins here */
  uint64_t page;            /* the last page that was protected, if it could be */
  unsigned level;           /* enum page_level */
  bool uses_r11, wants_r11; /* the unit uses R11 for the application; it turned out that it should */
  struct code code;         /* of the instruction */
  uint32_t head;
  unsigned count; /* instructions */
  unsigned step_count, stub_count, number_count, depth, segment_count;
  struct lb_step steps[STEPS_MOST + 2];
  struct stub stubs[STEPS_MOST + 2];
  struct number numbers[NUMBERS_MOST];
  uint64_t returns[DEPTH_MOST];
  struct range segments[FOLLOWED_MOST + 1]; /* pieces of the application's code */
  struct place *places;
  unsigned place_count;
  uint8_t copy[COPY_MOST + 16]; /* of code that may change meanwhile: the bytes that are translated */
};

/* ---- instruction.c ---- */

/* Translates the next instruction. Returns whether the path continues. */
bool translate_instruction(struct translation *translation);

/* Adds a step to the path, from the address of the current instruction to `to`. */
void translation_add_step(struct translation *translation, unsigned kind, unsigned flags, uint64_t to);

/* The number that the last step will have. */
uint32_t translation_last_number(const struct translation *translation);

/* The translation of the current instruction begins at `code`; `spilled` is of enum place_spill. */
void translation_add_place(struct translation *translation, const uint8_t *code, unsigned spilled);

/* The rel32 that the emitter has just written leads to a stub of the last step. */
void translation_add_stub(struct translation *translation, bool is_open);

/* Aligns the next instruction, whose last four bytes, after `before` others, are patched while threads run it: they
 * must be in one cache line of the processor. */
void translation_write_room(struct translation *translation, unsigned before);

/* Emits code, before the unit is left, that makes R11 the log's pointer again. */
void translation_write_take(struct translation *translation);

/* Emits the exit at the last step. */
void translation_write_exit(struct translation *translation);

/* The first: the path continues at the address. The second: the current segment ends after the current instruction. */
void translation_begin_segment(struct translation *translation, uint64_t address);
void translation_end_segment(struct translation *translation);

/* Advances to the next instruction, or ends the path if it is long enough. Returns whether the path continues. */
bool translation_next(struct translation *translation);

/* ---- branch.c ---- */

/* Translates the current instruction, a branch with these bytes. Returns whether the path continues. */
bool branch_write(struct translation *translation, const uint8_t *bytes);

/* Copies INT n, INT3, UD2 and the like; if the application survives one, it continues after it. Returns false: the path
 * ends. */
bool branch_write_trap(struct translation *translation, const uint8_t *bytes);

#pragma GCC visibility pop

#endif
