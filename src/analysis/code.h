/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions between branches: how many there are, and what they are. Only 64-bit code is decoded; other code is
 * unknown.
 */
#ifndef ANALYSIS_CODE_H
#define ANALYSIS_CODE_H

#include "analysis/location.h"

struct analysis_code;

/* `names` must stay valid. Returns 0, or -ENOMEM. */
int analysis_code_new(struct analysis_names *names, struct analysis_code **ret_code);
void analysis_code_free(struct analysis_code *code); /* takes NULL */

#define ANALYSIS_INSTRUCTIONS_MAX 65536u /* instructions of a straight piece; more are not counted */

/* Counts the instructions in a straight line from `first` to the one at `last`, both included. Returns 0 if the bytes
 * are unknown or do not decode to such instructions. Both addresses are linear. Results are cached in a hash table: a
 * repeated query costs a few nanoseconds. */
unsigned analysis_code_count(struct analysis_code *code, uint32_t space, uint64_t first, uint64_t last);

struct analysis_instruction {
  uint8_t length;
  int8_t kind;     /* enum lb_branch_kind of an instruction that may jump; -1: execution continues with the next */
  uint64_t target; /* of a direct branch, as an address of the same location; 0: none, or not known */
};

/* The instruction at a location. Returns false, touching nothing, if it is not known. */
bool analysis_code_instruction(struct analysis_code *code, const struct analysis_location *location,
                               struct analysis_instruction *ret_instruction);

/* ---- straight code ---- */

enum analysis_stop {
  ANALYSIS_STOP_UNKNOWN, /* the bytes are not known, no instruction begins at `end`, or this is more work than allowed
                          */
  ANALYSIS_STOP_JCC,     /* a conditional branch that ends at or before `end` */
  ANALYSIS_STOP_END,     /* `end` itself */
};

/* Follows the instructions at a location up to the first conditional branch, or up to `end`, an address of the same
 * location. `*ret_at` is then the address of that branch; with ANALYSIS_STOP_END, that of the last instruction before
 * `end`. Decodes each instruction about once, however often this is called. */
enum analysis_stop analysis_code_follow(struct analysis_code *code, const struct analysis_location *location,
                                        uint64_t end, uint64_t *ret_at);

/* Asks for permission to do `work` that one piece of code causes beyond the usual amount (an instruction is 1). A file
 * of a few hundred bytes may name billions of instructions. Returns false when the budget for such pieces is used up.
 */
bool analysis_code_charge(struct analysis_code *code, unsigned work);

/* Sets how much work is allowed for all pieces together, in place of the default: a part of each piece is free, and the
 * rest shares a budget of 2^25, to which each piece adds a little. Must be called before the first piece. */
void analysis_code_allow(struct analysis_code *code, uint32_t work);

/* Was work refused? Counts are then too low. */
bool analysis_code_is_exhausted(const struct analysis_code *code);

/* An instruction as text, in Intel syntax. Returns its length, or 0. */
unsigned analysis_code_text(struct analysis_code *code, const struct analysis_location *location, char *text,
                            size_t size);

#endif
