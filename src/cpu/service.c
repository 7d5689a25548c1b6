/* SPDX-License-Identifier: Apache-2.0
 *
 * The firmware's private instruction, by which the ROM calls the services of the machine (src/machine/firmware.c).
 */
#include "cpu/insn.h"
#include "cpu/system.h"

/* 0F 3F nn in ROM. The service may change any register, including RIP, so RIP is advanced first. */
const struct insn *control_service(struct cpu *cpu, const struct insn *insn)
{
  uint8_t number = (uint8_t)insn->service;

  insn_leave(cpu, insn);
  cpu->bus.service(cpu->bus.data, number);
  return NULL;
}
