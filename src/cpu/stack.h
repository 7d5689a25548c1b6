/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack as instructions of the current privilege use it. The stack pointer's width is SS.B's (cpu->stack_mask), not
 * the operand size. SDM vol. 1, 6.2.
 */
#ifndef CPU_STACK_H
#define CPU_STACK_H

#include "cpu/operand.h"

ALWAYS_INLINE void stack_set_pointer(struct cpu *cpu, uint64_t pointer)
{
  reg_set_masked(cpu, RSP, cpu->stack_mask, pointer);
}

/* Stores, then moves the stack pointer: the store may fault. */
ALWAYS_INLINE void stack_push(struct cpu *cpu, unsigned size, uint64_t value)
{
  uint64_t pointer = (cpu->r[RSP] - size) & cpu->stack_mask;
  access_store(cpu, SS, pointer, size, value);
  stack_set_pointer(cpu, pointer);
}

/* What lies `offset` bytes above the stack pointer. Nothing moves. */
ALWAYS_INLINE uint64_t stack_peek(struct cpu *cpu, uint64_t offset, unsigned size)
{
  return access_load(cpu, SS, (cpu->r[RSP] + offset) & cpu->stack_mask, size);
}

/* ---- the short way: see operand.h ---- */

/* Where a push of `size` bytes would go, or what lies on top. False when the long way must look. */
ALWAYS_INLINE bool stack_find_push(struct cpu *cpu, unsigned size, struct place *place)
{
  return place_find(cpu, place, SS, (cpu->r[RSP] - size) & cpu->stack_mask, size, ACCESS_WRITE);
}

ALWAYS_INLINE bool stack_find_top(struct cpu *cpu, unsigned size, struct place *place)
{
  return place_find(cpu, place, SS, cpu->r[RSP] & cpu->stack_mask, size, ACCESS_READ);
}

/* Afterwards. */
ALWAYS_INLINE void stack_push_at(struct cpu *cpu, const struct place *place, unsigned size, uint64_t value)
{
  memcpy(place->host, &value, size);
  stack_set_pointer(cpu, cpu->r[RSP] - size);
}

#endif
