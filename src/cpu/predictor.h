/* SPDX-License-Identifier: Apache-2.0
 *
 * A branch predictor as a model: it says which branches a small processor would have mispredicted, for the mispredict
 * flag of records. 2bit: a table of 4096 two-bit counters by address. gshare: the same table by address xor the last 12
 * outcomes. Both predict the targets of indirect branches by a table of 1024 last targets, and returns by a stack of
 * 16. none: every branch counts as predicted.
 */
#ifndef CPU_PREDICTOR_H
#define CPU_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

enum predictor_kind { PREDICTOR_NONE, PREDICTOR_2BIT, PREDICTOR_GSHARE };

struct predictor {
  uint8_t kind;
  uint8_t stack_top;
  uint16_t history;
  uint8_t counters[4096];
  uint64_t targets[1024];
  uint64_t stack[16];
};

void predictor_init(struct predictor *predictor, enum predictor_kind kind);

/* Updates the predictor with the outcome of a conditional branch at this address. Returns true if it was
 * mispredicted. */
static inline bool predictor_conditional(struct predictor *p, uint64_t from, bool is_taken)
{
  if (p->kind == PREDICTOR_NONE)
    return false;
  unsigned index = (unsigned)(from ^ from >> 12) & 4095;
  if (p->kind == PREDICTOR_GSHARE)
    index ^= p->history;
  p->history = (uint16_t)((p->history << 1 | is_taken) & 4095);
  uint8_t counter = p->counters[index];
  bool foreseen = counter >= 2;
  if (is_taken && counter < 3)
    p->counters[index]++;
  if (!is_taken && counter > 0)
    p->counters[index]--;
  return foreseen != is_taken;
}

/* The same for a call, a return, and an indirect jump or call. */
static inline void predictor_call(struct predictor *p, uint64_t return_address)
{
  p->stack_top = (uint8_t)((p->stack_top + 1) % 16);
  p->stack[p->stack_top] = return_address;
}

static inline bool predictor_return(struct predictor *p, uint64_t to)
{
  if (p->kind == PREDICTOR_NONE)
    return false;
  bool is_wrong = p->stack[p->stack_top] != to;
  p->stack_top = (uint8_t)((p->stack_top + 15) % 16);
  return is_wrong;
}

static inline bool predictor_indirect(struct predictor *p, uint64_t from, uint64_t to)
{
  if (p->kind == PREDICTOR_NONE)
    return false;
  uint64_t *target = &p->targets[(from ^ from >> 10) & 1023];
  bool is_wrong = *target != to;
  *target = to;
  return is_wrong;
}

#endif
