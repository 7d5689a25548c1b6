/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack as instructions of the current privilege use it. The width of the stack pointer is that of SS.B
 * (cpu->stack_mask), not the operand size. SDM vol. 1, 6.2.
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

/* Reads the value `offset` bytes above the stack pointer, which stays as it is. */
ALWAYS_INLINE uint64_t stack_peek(struct cpu *cpu, uint64_t offset, unsigned size)
{
  return access_load(cpu, SS, (cpu->r[RSP] + offset) & cpu->stack_mask, size);
}

/* ---- for handlers with a fast path: see operand.h ----
 *
 * A find function looks the place up, and returns false if the handler must take its slow path. After a find that
 * succeeded on the fast path, the other functions cannot fault.
 */

/* Pushes of 64 bits exist in 64-bit mode only, those of 32 bits only outside of it. */
ALWAYS_INLINE bool stack_is_flat(struct shape shape)
{
  return shape.size == 8 || (shape.size == 4 && shape.reach != REACH_ANY);
}

ALWAYS_INLINE bool stack_find(struct cpu *cpu, struct shape shape, uint64_t pointer, unsigned access,
                              struct place *place)
{
  place->host = NULL;
  if (shape_is_slow(shape))
    return true;
  if (stack_is_flat(shape))
    return place_find_linear(cpu, place, pointer & size_mask(shape.size), shape.size, access);
  return place_find(cpu, place, SS, pointer & cpu->stack_mask, shape.size, access);
}

ALWAYS_INLINE bool stack_find_push(struct cpu *cpu, struct shape shape, struct place *place)
{
  return stack_find(cpu, shape, cpu->r[RSP] - shape.size, ACCESS_WRITE, place);
}

ALWAYS_INLINE bool stack_find_top(struct cpu *cpu, struct shape shape, struct place *place)
{
  return stack_find(cpu, shape, cpu->r[RSP], ACCESS_READ, place);
}

ALWAYS_INLINE void stack_move(struct cpu *cpu, struct shape shape, uint64_t bytes)
{
  if (stack_is_flat(shape))
    cpu->r[RSP] = (cpu->r[RSP] + bytes) & size_mask(shape.size);
  else
    stack_set_pointer(cpu, cpu->r[RSP] + bytes);
}

ALWAYS_INLINE void stack_push_at(struct cpu *cpu, struct shape shape, const struct place *place, uint64_t value)
{
  if (place->host) {
    memcpy(place->host, &value, shape.size);
    stack_move(cpu, shape, 0 - (uint64_t)shape.size);
  } else {
    stack_push(cpu, shape.size, value);
  }
}

ALWAYS_INLINE uint64_t stack_top_at(struct cpu *cpu, struct shape shape, const struct place *place)
{
  return place->host ? access_fetch(place->host, shape.size) : stack_peek(cpu, 0, shape.size);
}

#endif
