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

/* ---- by the way that a handler goes: see operand.h ----
 *
 * First the place is looked up; false when the long way must be taken. Then what stands below cannot fault on the short
 * way.
 */

/* Pushes of 64 bits exist in 64-bit mode only, those of 32 bits only outside of it. */
ALWAYS_INLINE bool stack_is_flat(unsigned size, struct way way)
{
  return size == 8 || (size == 4 && way.reach != REACH_ANY);
}

ALWAYS_INLINE bool stack_find(struct cpu *cpu, unsigned size, struct way way, uint64_t pointer, unsigned access,
                              struct place *place)
{
  place->host = NULL;
  if (way_is_long(way))
    return true;
  if (stack_is_flat(size, way))
    return place_find_linear(cpu, place, pointer & size_mask(size), size, access);
  return place_find(cpu, place, SS, pointer & cpu->stack_mask, size, access);
}

ALWAYS_INLINE bool stack_find_push(struct cpu *cpu, unsigned size, struct way way, struct place *place)
{
  return stack_find(cpu, size, way, cpu->r[RSP] - size, ACCESS_WRITE, place);
}

ALWAYS_INLINE bool stack_find_top(struct cpu *cpu, unsigned size, struct way way, struct place *place)
{
  return stack_find(cpu, size, way, cpu->r[RSP], ACCESS_READ, place);
}

ALWAYS_INLINE void stack_move(struct cpu *cpu, unsigned size, struct way way, uint64_t bytes)
{
  if (stack_is_flat(size, way))
    cpu->r[RSP] = (cpu->r[RSP] + bytes) & size_mask(size);
  else
    stack_set_pointer(cpu, cpu->r[RSP] + bytes);
}

ALWAYS_INLINE void stack_push_at(struct cpu *cpu, unsigned size, struct way way, const struct place *place,
                                 uint64_t value)
{
  if (place->host) {
    memcpy(place->host, &value, size);
    stack_move(cpu, size, way, 0 - (uint64_t)size);
  } else {
    stack_push(cpu, size, value);
  }
}

ALWAYS_INLINE uint64_t stack_top_at(struct cpu *cpu, unsigned size, const struct place *place)
{
  return place->host ? access_fetch(place->host, size) : stack_peek(cpu, 0, size);
}

#endif
