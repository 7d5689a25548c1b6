/* SPDX-License-Identifier: Apache-2.0
 *
 * Single flags, flags through AH, and instructions without an effect: NOP and its variants, fences, hints. SDM vol. 1,
 * 7.3.13 and 7.3.14.
 */
#include "cpu/fault.h"
#include "cpu/operand.h"
#include "cpu/paging.h"
#include "cpu/system.h"
#include "cpu/variant.h"

const struct insn *flag_clc(struct cpu *cpu, const struct insn *insn)
{
  flags_set_cf(cpu, false);
  return insn_next(cpu, insn);
}

const struct insn *flag_stc(struct cpu *cpu, const struct insn *insn)
{
  flags_set_cf(cpu, true);
  return insn_next(cpu, insn);
}

const struct insn *flag_cmc(struct cpu *cpu, const struct insn *insn)
{
  flags_set_cf(cpu, !flags_cf(cpu));
  return insn_next(cpu, insn);
}

const struct insn *flag_cld(struct cpu *cpu, const struct insn *insn)
{
  cpu->eflags &= ~(uint32_t)FLAG_DF;
  return insn_next(cpu, insn);
}

const struct insn *flag_std(struct cpu *cpu, const struct insn *insn)
{
  cpu->eflags |= FLAG_DF;
  return insn_next(cpu, insn);
}

const struct insn *flag_lahf(struct cpu *cpu, const struct insn *insn)
{
  reg_set(cpu, 8 * RAX + 1, 1, flags_get(cpu) & 0xFF);
  return insn_next(cpu, insn);
}

/* OF stays. */
const struct insn *flag_sahf(struct cpu *cpu, const struct insn *insn)
{
  uint32_t kept = flags_of(cpu) ? FLAG_OF : 0;
  uint32_t taken = FLAG_SF | FLAG_ZF | FLAG_AF | FLAG_PF | FLAG_CF;

  flags_set_arithmetic(cpu, kept | ((uint32_t)reg_get(cpu, 8 * RAX + 1, 1) & taken));
  return insn_next(cpu, insn);
}

/* SALC, which is undocumented but exists on every processor: sets all bits of AL to CF. */
const struct insn *flag_salc(struct cpu *cpu, const struct insn *insn)
{
  reg_set(cpu, 8 * RAX, 1, flags_cf(cpu) ? 0xFF : 0);
  return insn_next(cpu, insn);
}

/* ---- no effect ---- */

/* The memory operands of NOPs and prefetches are never accessed. */
const struct insn *flag_nop(struct cpu *cpu, const struct insn *insn)
{
  (void)cpu;
  return insn_next(cpu, insn);
}

/* A processor that waits in a loop lets others run, if there are any. */
const struct insn *flag_pause(struct cpu *cpu, const struct insn *insn)
{
  if (system_is_alone(cpu))
    return insn_next(cpu, insn);
  cpu->has_paused = true;
  cpu_kick(cpu);
  return insn_leave(cpu, insn);
}

static void line_flush(struct cpu *cpu, const struct insn *insn)
{
  uint64_t linear = access_linear(cpu, insn->segment, insn_address(cpu, insn), 1, ACCESS_READ), physical;

  if (paging_look(cpu, linear, &physical, NULL))
    cache_flush(&cpu->cache, physical);
}

/* CLFLUSH and similar instructions: the address is checked as for a load, but the access does not count as a cache
 * access. CLWB may keep the line; here it does not. */
const struct insn *flag_clflush(struct cpu *cpu, const struct insn *insn)
{
  uint64_t references = cpu->progress.cache_references, misses = cpu->progress.cache_misses;

  insn_load(cpu, insn, 1);
  cpu->progress.cache_references = references;
  cpu->progress.cache_misses = misses;
  if (cpu->counts_cache)
    line_flush(cpu, insn);
  return insn + 1; /* not a sibling call: some compilers cannot make one, as the address of a local was taken */
}

const struct insn *flag_ud(struct cpu *cpu, const struct insn *insn)
{
  (void)insn;
  fault_ud(cpu);
}

/* BOUND: checks an index against a pair of signed limits in memory. */
const struct insn *flag_bound(struct cpu *cpu, const struct insn *insn)
{
  unsigned size = insn->size;
  uint64_t address = insn_address(cpu, insn);
  int64_t index = (int64_t)flags_extend(reg_get(cpu, insn->op[0], size), size);
  int64_t low = (int64_t)flags_extend(access_load(cpu, insn->segment, address, size), size);
  uint64_t second = (address + size) & insn->address_mask;
  int64_t high = (int64_t)flags_extend(access_load(cpu, insn->segment, second, size), size);

  if (index < low || index > high)
    fault_raise(cpu, EXCEPTION_BR, 0);
  return insn_next(cpu, insn);
}
