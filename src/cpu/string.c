/* SPDX-License-Identifier: Apache-2.0
 *
 * MOVS, CMPS, STOS, LODS, SCAS and their repetition: SDM vol. 1, 7.3.9. The registers are committed after each element,
 * so that the instruction continues there after a fault. A long repetition allows interrupts now and then. MOVS and
 * STOS handle whole pages at once in the forward direction. A repetition takes one cycle for each element, or for each
 * line of memory that is moved or filled at once, so that the guest's clock advances with the host's work.
 */
#include <limits.h>

#include "cpu/block.h"
#include "cpu/operand.h"
#include "cpu/run.h"
#include "cpu/system.h"
#include "cpu/variant.h"
#include "cpu/vector.h"

enum string_operation { STRING_MOVS, STRING_CMPS, STRING_STOS, STRING_LODS, STRING_SCAS };

enum {
  STRING_MOST = 4096, /* elements before interrupts are allowed */
  STRING_BULK = 8,    /* fewer are done one by one */
  STRING_LINE = 64,   /* bytes that are moved or filled in a cycle */
  STRING_LONG = 15, /* cycles after which counters are updated: COUNTS_MAX in run.c allows for 16 of four slots each */
};

/* ---- one element ---- */

ALWAYS_INLINE uint64_t string_load(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  return access_load(cpu, insn->segment, cpu->r[RSI] & insn->address_mask, size);
}

ALWAYS_INLINE uint64_t string_load_es(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  return access_load(cpu, ES, cpu->r[RDI] & insn->address_mask, size);
}

/* `bytes` may be negative: two's complement. */
ALWAYS_INLINE void string_advance(struct cpu *cpu, const struct insn *insn, enum cpu_register index, uint64_t bytes)
{
  reg_set_masked(cpu, index, insn->address_mask, cpu->r[index] + bytes);
}

ALWAYS_INLINE void string_compare(struct cpu *cpu, uint64_t a, uint64_t b, unsigned size)
{
  flags_sub(cpu, a, b, a - b, size);
}

ALWAYS_INLINE void string_element(struct cpu *cpu, const struct insn *insn, unsigned size,
                                  enum string_operation operation)
{
  uint64_t source = 0, step = cpu->eflags & FLAG_DF ? 0 - (uint64_t)size : size;

  if (operation == STRING_MOVS || operation == STRING_LODS || operation == STRING_CMPS)
    source = string_load(cpu, insn, size);
  else
    source = reg_get(cpu, 8 * RAX, size);
  if (operation == STRING_MOVS || operation == STRING_STOS)
    access_store(cpu, ES, cpu->r[RDI] & insn->address_mask, size, source);
  else if (operation == STRING_LODS)
    reg_set(cpu, 8 * RAX, size, source);
  else
    string_compare(cpu, source, string_load_es(cpu, insn, size), size);
  if (operation != STRING_STOS && operation != STRING_SCAS)
    string_advance(cpu, insn, RSI, step);
  if (operation != STRING_LODS)
    string_advance(cpu, insn, RDI, step);
}

/* ---- many elements ---- */

/* Host memory of the bytes at an index register that can be accessed together: within one page, inside the segment,
 * without wrapping around the address size. Returns NULL if there are none. May raise the fault of the first
 * element. */
static uint8_t *string_span(struct cpu *cpu, const struct insn *insn, unsigned segment, enum cpu_register index,
                            unsigned size, unsigned access, unsigned *ret_bytes)
{
  const struct cpu_segment *s = &cpu->segment[segment];
  uint64_t offset = cpu->r[index] & insn->address_mask;
  uint64_t linear = access_linear(cpu, segment, offset, size, access);
  uint8_t *host = access_span(cpu, linear, access, ret_bytes);
  uint64_t last = insn->address_mask;

  if (!(s->ease & access) && !insn_is_64(cpu)) {
    bool is_expanding_down = (s->access & (SEGMENT_CODE | SEGMENT_EXPAND_DOWN)) == SEGMENT_EXPAND_DOWN;

    if (is_expanding_down || offset > s->limit)
      return NULL;
    last = s->limit < last ? s->limit : last;
  }
  if (host && last - offset < *ret_bytes - 1)
    *ret_bytes = (unsigned)(last - offset) + 1;
  return host;
}

/* Copies element by element: a destination shortly after its source repeats what was written before. */
ALWAYS_INLINE void string_copy(uint8_t *to, const uint8_t *from, unsigned bytes, unsigned size)
{
  if ((uintptr_t)to - (uintptr_t)from >= bytes) {
    memmove(to, from, bytes);
    return;
  }
  for (unsigned i = 0; i < bytes; i += size) {
    uint64_t value = access_fetch(from + i, size);

    memcpy(to + i, &value, size);
  }
}

ALWAYS_INLINE void string_fill(uint8_t *to, uint64_t value, unsigned bytes, unsigned size)
{
  for (unsigned i = 0; i < bytes; i += size)
    memcpy(to + i, &value, size);
}

/* Processes up to `count` elements at once. Returns their number, 0 if they must be done one by one. */
ALWAYS_INLINE unsigned string_bulk(struct cpu *cpu, const struct insn *insn, unsigned size,
                                   enum string_operation operation, unsigned count)
{
  unsigned bytes = 0, from_bytes = UINT_MAX;
  uint8_t *from = NULL;

  if (operation == STRING_MOVS) {
    from = string_span(cpu, insn, insn->segment, RSI, size, ACCESS_READ, &from_bytes);
    if (!from)
      return 0;
  }
  uint8_t *to = string_span(cpu, insn, ES, RDI, size, ACCESS_WRITE, &bytes);
  if (!to)
    return 0;
  bytes = from_bytes < bytes ? from_bytes : bytes;
  bytes = bytes / size > count ? count * size : bytes / size * size;
  if (from)
    string_copy(to, from, bytes, size);
  else
    string_fill(to, cpu->r[RAX], bytes, size);
  if (from)
    string_advance(cpu, insn, RSI, bytes);
  string_advance(cpu, insn, RDI, bytes);
  return bytes / size;
}

/* Processes up to `count` elements and returns their number. A smaller number does not mean the end. */
ALWAYS_INLINE unsigned string_some(struct cpu *cpu, const struct insn *insn, unsigned size,
                                   enum string_operation operation, unsigned count)
{
  bool has_bulk = operation == STRING_MOVS || operation == STRING_STOS;

  if (has_bulk && count >= STRING_BULK && !(cpu->eflags & FLAG_DF)) {
    unsigned done = string_bulk(cpu, insn, size, operation, count);

    if (done) {
      run_pass_cycles(cpu, done * size / STRING_LINE);
      return done;
    }
  }
  string_element(cpu, insn, size, operation);
  run_pass_cycles(cpu, 1);
  return 1;
}

/* CMPS and SCAS also end by ZF: REPE when it is 0, REPNE when it is 1. */
ALWAYS_INLINE bool string_is_over(const struct cpu *cpu, const struct insn *insn, enum string_operation operation)
{
  if (operation != STRING_CMPS && operation != STRING_SCAS)
    return false;
  return flags_zf(cpu) == !!(insn->prefixes & PREFIX_REPNE);
}

/* The last element is done. `start` is budget_start before the first one. If counters are updated once for many
 * instructions, they must be updated after a long one before the next. */
ALWAYS_INLINE const struct insn *string_end(struct cpu *cpu, const struct insn *insn, int64_t start)
{
  return cpu->counts_blocks && start - cpu->budget_start > STRING_LONG ? insn_leave(cpu, insn) : insn + 1;
}

/* A repetition of nothing with 32-bit addresses, in 64-bit mode. Intel's processors clear the upper half of RCX, and
 * those of the pointers with MOVS and STOS (measured on a Xeon; KVM's emulator does the same). AMD's change nothing. */
static void string_none(struct cpu *cpu, const struct insn *insn, enum string_operation operation)
{
  if (insn->address_mask != UINT32_MAX || !system_is_intel(cpu))
    return;
  cpu->r[RCX] = 0;
  if (operation == STRING_MOVS)
    cpu->r[RSI] &= UINT32_MAX;
  if (operation == STRING_MOVS || operation == STRING_STOS)
    cpu->r[RDI] &= UINT32_MAX;
}

/* SDM vol. 2, REP: a fault in CMPS or SCAS finds the flags as they were before the instruction. On AMD's processors
 * they are those of the last element (measured on a Zen 4). */
ALWAYS_INLINE bool string_restores_flags(const struct cpu *cpu, enum string_operation operation)
{
  return (operation == STRING_CMPS || operation == STRING_SCAS) && system_is_intel(cpu);
}

ALWAYS_INLINE const struct insn *string_repeat(struct cpu *cpu, const struct insn *insn, unsigned size,
                                               enum string_operation operation)
{
  bool is_step = (cpu->eflags & FLAG_TF) || cpu->is_stepping; /* a single step is one element */
  unsigned left = is_step ? 1 : STRING_MOST;
  uint64_t count = cpu->r[RCX] & insn->address_mask;
  int64_t start = cpu->budget_start;
  const struct cpu_lazy flags = cpu->lazy;

  if (!count)
    string_none(cpu, insn, operation);
  while (count && left) {
    if (string_restores_flags(cpu, operation))
      cpu->lazy = flags;
    unsigned done = string_some(cpu, insn, size, operation, count < left ? (unsigned)count : left);

    count -= done;
    left -= done;
    reg_set_masked(cpu, RCX, insn->address_mask, count);
    if (string_is_over(cpu, insn, operation))
      return string_end(cpu, insn, start);
    /* a data breakpoint, or it overwrote itself */
    bool is_cut = cpu->debug_due || cpu->hit.kind || block_is_forgotten(insn);
    if (is_cut)
      break;
  }
  return count ? insn_again(cpu, insn) : string_end(cpu, insn, start);
}

ALWAYS_INLINE const struct insn *string_run(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                            enum string_operation operation)
{
  if (insn->prefixes & (PREFIX_REP | PREFIX_REPNE))
    return string_repeat(cpu, insn, shape.size, operation);
  string_element(cpu, insn, shape.size, operation);
  return insn + 1;
}

SIZES(string_movs, string_run, STRING_MOVS);
SIZES(string_cmps, string_run, STRING_CMPS);
SIZES(string_stos, string_run, STRING_STOS);
SIZES(string_lods, string_run, STRING_LODS);
SIZES(string_scas, string_run, STRING_SCAS);

/* Two mnemonics exist in SSE2 too. */
insn_handler *string_movsd(const struct insn *insn)
{
  return insn->variant != VARIANT_PLAIN ? vector_movsd(insn) : string_movs(insn);
}

insn_handler *string_cmpsd(const struct insn *insn)
{
  return insn->variant != VARIANT_PLAIN ? vector_cmpsd(insn) : string_cmps(insn);
}
