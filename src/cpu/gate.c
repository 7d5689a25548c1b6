/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates and the code segments that far transfers enter: the common part of JMP, CALL, RETF, IRET, interrupts and task
 * switches. SDM vol. 3, 5.8 and 6.11.
 */
#include "cpu/far.h"

struct gate gate_read(const struct cpu *cpu, const struct descriptor *descriptor)
{
  uint64_t raw = descriptor->raw;
  struct gate gate = {.selector = (uint16_t)(raw >> 16), .type = SEGMENT_TYPE(descriptor->access)};
  bool is_32 = gate.type & SYSTEM_32;

  gate.offset = raw & 0xFFFF;
  if (is_32)
    gate.offset |= raw >> 32 & 0xFFFF0000;
  gate.size = is_32 ? 4 : 2;
  gate.parameters = raw >> 32 & 0x1F;
  if (far_is_long(cpu)) {
    gate.offset |= (descriptor->raw_high & 0xFFFFFFFF) << 32;
    gate.size = 8;
    gate.parameters = 0;
    gate.stack = raw >> 32 & 7;
  }
  return gate;
}

void code_check_offset(struct cpu *cpu, const struct descriptor *code, uint64_t offset)
{
  bool is_good = code_is_64(cpu, code) ? far_is_canonical(offset) : offset <= code->limit;

  if (!is_good)
    fault_gp(cpu, 0);
}

struct descriptor code_fetch_by_gate(struct cpu *cpu, uint16_t selector)
{
  if (selector_is_null(selector))
    fault_gp(cpu, 0);
  struct descriptor code = segment_fetch(cpu, selector, EXCEPTION_GP, false);
  bool is_wrong_mode = far_is_long(cpu) && (code.access & (SEGMENT_L | SEGMENT_DB)) != SEGMENT_L;
  if (!code_is(&code) || SEGMENT_DPL(code.access) > cpu->cpl || is_wrong_mode)
    fault_gp(cpu, selector & ~3u);
  if (!(code.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
  return code;
}

struct descriptor code_fetch_to_return(struct cpu *cpu, uint16_t selector)
{
  unsigned rpl = selector & 3u;

  if (selector_is_null(selector))
    fault_gp(cpu, 0);
  struct descriptor code = segment_fetch(cpu, selector, EXCEPTION_GP, false);
  unsigned dpl = SEGMENT_DPL(code.access);
  bool is_level = code_is_conforming(&code) ? dpl <= rpl : dpl == rpl;
  bool is_reserved = code_is_64(cpu, &code) && (code.access & SEGMENT_DB);
  if (!code_is(&code) || rpl < cpu->cpl || !is_level || is_reserved)
    fault_gp(cpu, selector & ~3u);
  if (!(code.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
  return code;
}

void code_set(struct cpu *cpu, uint16_t selector, const struct descriptor *code, unsigned cpl)
{
  segment_set(cpu, CS, (uint16_t)((selector & ~3u) | cpl), code);
}
