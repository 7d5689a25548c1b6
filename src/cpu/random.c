/* SPDX-License-Identifier: Apache-2.0
 *
 * RDRAND.
 */
#include "cpu/control.h"
#include "cpu/flags.h"
#include "cpu/instruction.h"

/* Marsaglia's xorshift with a final multiplication. It is not random, so that a run can be repeated. */
static uint64_t random_next(struct cpu *cpu)
{
  uint64_t x = cpu->random ? cpu->random : UINT64_C(0x9E3779B97F4A7C15);

  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  cpu->random = x;
  return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* CF says that the number is valid; the other arithmetic flags are cleared. */
const struct insn *control_rdrand(struct cpu *cpu, const struct insn *insn)
{
  reg_set(cpu, insn->op[0], insn->size, random_next(cpu));
  flags_set_arithmetic(cpu, FLAG_CF);
  return insn + 1;
}
