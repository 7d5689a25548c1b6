/* SPDX-License-Identifier: Apache-2.0
 *
 * How a faulting instruction exits. See fault.h.
 */
#include "cpu/fault.h"

#include <stdio.h>

#include "cpu/insn.h"
#include "cpu/run.h"

/* Vectors that push an error code: SDM vol. 3, table 6-1. */
#define WITH_ERROR                                                                                                     \
  (1u << EXCEPTION_DF | 1u << EXCEPTION_TS | 1u << EXCEPTION_NP | 1u << EXCEPTION_SS | 1u << EXCEPTION_GP |            \
   1u << EXCEPTION_PF | 1u << EXCEPTION_AC)

_Noreturn void fault_raise(struct cpu *cpu, enum cpu_exception vector, uint32_t error)
{
  cpu->fault.vector = (uint8_t)vector;
  cpu->fault.has_error = WITH_ERROR >> vector & 1;
  cpu->fault.error = error;
  longjmp(cpu->door, DOOR_FAULT);
}

void fault_unless_alone(struct cpu *cpu)
{
  if (cpu->at && cpu->at->left > 1 && !(cpu->mode & MODE_ONE))
    longjmp(cpu->door, DOOR_ALONE);
}

_Noreturn void fault_unimplemented(struct cpu *cpu, const char *what)
{
  snprintf(cpu->reason, sizeof(cpu->reason), "instruction %s is not implemented", what ? what : "?");
  longjmp(cpu->door, DOOR_UNIMPLEMENTED);
}
