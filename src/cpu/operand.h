/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands of integer instructions, by form and size. Every function here is meant to be called with both constant: see
 * variant.h, which makes a handler per form and size. Each call then compiles to a few machine instructions.
 */
#ifndef CPU_OPERAND_H
#define CPU_OPERAND_H

#include "cpu/flags.h"
#include "cpu/insn.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* A memory operand, looked up once. */
struct place {
  uint8_t *host; /* NULL: not looked up, or on the slow path */
  uint64_t linear;
};

ALWAYS_INLINE bool form_is_memory(unsigned form) /* operand 0 is */
{
  return form == FORM_MEM || form == FORM_MEM_REG || form == FORM_MEM_IMM;
}

ALWAYS_INLINE uint64_t size_mask(unsigned size)
{
  return UINT64_MAX >> (64 - 8 * size);
}

ALWAYS_INLINE bool sign_bit(uint64_t value, unsigned size)
{
  return value >> (8 * size - 1) & 1;
}

ALWAYS_INLINE bool form_has_memory(unsigned form) /* operand 0 or 1 is */
{
  return form_is_memory(form) || form == FORM_REG_MEM;
}

/* ---- the constants of one handler ----
 *
 * A handler with a memory operand is several functions from one source text (variant.h). One is the slow path. The fast
 * paths check whether the operand can be accessed directly, and jump to the slow path if not. So a fast path can
 * neither fault nor call anything, and needs no stack frame.
 */
struct shape {
  unsigned form, size;
  enum insn_reach reach;
  insn_handler *slow; /* the slow path; NULL if this is the slow path */
};

ALWAYS_INLINE bool shape_is_slow(struct shape shape)
{
  return !shape.slow;
}

/* The same for an operand of another size. */
ALWAYS_INLINE struct shape shape_sized(struct shape shape, unsigned size)
{
  return (struct shape){shape.form, size, shape.reach, shape.slow};
}

/* Looks up [linear, linear + size). Returns false if the handler must take the slow path. */
ALWAYS_INLINE bool place_find_linear(struct cpu *cpu, struct place *place, uint64_t linear, unsigned size,
                                     unsigned access)
{
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);
  uint64_t tag = access & ACCESS_WRITE ? entry->write : entry->read;

  if (__builtin_expect(tag != access_tag(linear, size), 0))
    return false;
  place->host = (uint8_t *)(uintptr_t)(linear + entry->host);
  if (!place->host)
    __builtin_unreachable();
  return true;
}

/* The same by an offset. */
ALWAYS_INLINE bool place_find(struct cpu *cpu, struct place *place, unsigned segment, uint64_t offset, unsigned size,
                              unsigned access)
{
  const struct cpu_segment *s = &cpu->segment[segment];

  if (__builtin_expect(!(s->ease & access), 0))
    return false;
  return place_find_linear(cpu, place, (s->linear_base + offset) & cpu->linear_mask, size, access);
}

/* Looks up the memory operand, if the form has one. The slow path leaves that to the functions below. */
ALWAYS_INLINE bool operand_find(struct cpu *cpu, const struct insn *insn, struct shape shape, unsigned access,
                                struct place *place)
{
  *place = (struct place){.host = NULL};
  if (shape_is_slow(shape) || !form_has_memory(shape.form))
    return true;
  if (shape.reach == REACH_ANY)
    return place_find(cpu, place, insn->segment, insn_address(cpu, insn), shape.size, access);
  uint64_t linear = shape.reach == REACH_FLAT ? insn_address_plain(cpu, insn) : insn_address(cpu, insn);
  return place_find_linear(cpu, place, linear, shape.size, access);
}

/* ---- operands: an access takes the slow path if no place was found ---- */

ALWAYS_INLINE uint64_t operand_load(struct cpu *cpu, const struct insn *insn, unsigned size, const struct place *place)
{
  return place && place->host ? access_fetch(place->host, size) : insn_load(cpu, insn, size);
}

/* Operand 0, only to be read. */
ALWAYS_INLINE uint64_t operand_first(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                     const struct place *place)
{
  return form_is_memory(shape.form) ? operand_load(cpu, insn, shape.size, place)
                                    : reg_get(cpu, insn->op[0], shape.size);
}

/* Operand 1. An immediate is sign-extended beyond its size, everything else zero-extended. */
ALWAYS_INLINE uint64_t operand_second(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                      const struct place *place)
{
  if (shape.form == FORM_REG_IMM || shape.form == FORM_MEM_IMM)
    return insn->imm;
  return shape.form == FORM_REG_MEM ? operand_load(cpu, insn, shape.size, place)
                                    : reg_get(cpu, insn->op[1], shape.size);
}

ALWAYS_INLINE uint64_t place_load(struct cpu *cpu, struct place *place, unsigned segment, uint64_t linear,
                                  unsigned size)
{
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);

  place->linear = linear;
  place->host = NULL;
  if (__builtin_expect(entry->write != access_tag(linear, size), 0))
    return access_load_slow(cpu, segment, linear, size, true);
  place->host = (uint8_t *)(uintptr_t)(linear + entry->host);
  return access_fetch(place->host, size);
}

/* Cannot fault, because place_load has checked the access. */
ALWAYS_INLINE void place_store(struct cpu *cpu, const struct place *place, unsigned size, uint64_t value)
{
  if (__builtin_expect(place->host != NULL, 1))
    memcpy(place->host, &value, size);
  else
    access_store_slow(cpu, DS, place->linear, size, value);
}

/* Operand 0, which operand_write will write: any fault is raised here. */
ALWAYS_INLINE uint64_t operand_modify(struct cpu *cpu, const struct insn *insn, struct shape shape, struct place *place)
{
  if (!form_is_memory(shape.form))
    return reg_get(cpu, insn->op[0], shape.size);
  if (place->host)
    return access_fetch(place->host, shape.size);
  uint64_t linear = access_linear(cpu, insn->segment, insn_address(cpu, insn), shape.size, ACCESS_WRITE);
  return place_load(cpu, place, insn->segment, linear, shape.size);
}

ALWAYS_INLINE void operand_write(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                 const struct place *place, uint64_t value)
{
  if (form_is_memory(shape.form))
    place_store(cpu, place, shape.size, value);
  else
    reg_set(cpu, insn->op[0], shape.size, value);
}

/* Operand 0, written without being read before. */
ALWAYS_INLINE void operand_put(struct cpu *cpu, const struct insn *insn, struct shape shape, const struct place *place,
                               uint64_t value)
{
  if (!form_is_memory(shape.form))
    reg_set(cpu, insn->op[0], shape.size, value);
  else if (place->host)
    memcpy(place->host, &value, shape.size);
  else
    insn_store(cpu, insn, shape.size, value);
}

/* Operand 2, in a register or memory. */
ALWAYS_INLINE uint64_t operand_third(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  return insn->op_class[2] == CLASS_MEMORY ? insn_load(cpu, insn, size) : reg_get(cpu, insn->op[2], size);
}

/* Changes the bits of a register that `mask`, an address size's or the stack pointer's, selects: 16 bits leave the
 * rest, 32 bits clear the upper half. */
ALWAYS_INLINE void reg_set_masked(struct cpu *cpu, enum cpu_register number, uint64_t mask, uint64_t value)
{
  uint64_t kept = mask == 0xFFFF ? cpu->r[number] & ~mask : 0;

  cpu->r[number] = kept | (value & mask);
}

/* Sets ZF; the others stay. */
static inline void flags_set_zf(struct cpu *cpu, bool zf)
{
  flags_set_arithmetic(cpu, (flags_arithmetic(cpu) & ~(uint32_t)FLAG_ZF) | (zf ? FLAG_ZF : 0u));
}

#endif
