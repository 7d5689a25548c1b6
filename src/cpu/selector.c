/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions about selectors: loads of far pointers (LDS and similar), LDTR and TR, and queries about a selector
 * (LAR, LSL, VERR, VERW, ARPL). SDM vol. 2 under these names; vol. 3, 5.10.
 */
#include "cpu/far.h"
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/operand.h"

/* ---- far pointers ---- */

static const struct insn *load_pointer(struct cpu *cpu, const struct insn *insn, unsigned number)
{
  uint64_t address = insn_address(cpu, insn);
  unsigned size = insn->size;
  uint64_t offset = access_load(cpu, insn->segment, address, size);
  uint64_t selector = access_load(cpu, insn->segment, (address + size) & insn->address_mask, 2);
  uint32_t mode = cpu->mode;

  segment_load(cpu, number, (uint16_t)selector);
  reg_set(cpu, insn->op[0], size, offset);
  return insn_next_in(cpu, insn, mode);
}

const struct insn *selector_lds(struct cpu *cpu, const struct insn *insn)
{
  return load_pointer(cpu, insn, DS);
}

const struct insn *selector_les(struct cpu *cpu, const struct insn *insn)
{
  return load_pointer(cpu, insn, ES);
}

const struct insn *selector_lfs(struct cpu *cpu, const struct insn *insn)
{
  return load_pointer(cpu, insn, FS);
}

const struct insn *selector_lgs(struct cpu *cpu, const struct insn *insn)
{
  return load_pointer(cpu, insn, GS);
}

const struct insn *selector_lss(struct cpu *cpu, const struct insn *insn)
{
  return load_pointer(cpu, insn, SS);
}

/* ---- LDTR and TR ---- */

static void require_protected(struct cpu *cpu)
{
  if (!segment_is_protected(cpu))
    fault_ud(cpu);
}

static uint16_t load_operand(struct cpu *cpu, const struct insn *insn)
{
  uint64_t value = insn->form == FORM_MEM ? insn_load(cpu, insn, 2) : reg_get(cpu, insn->op[0], 2);

  return (uint16_t)value;
}

static const struct insn *store(struct cpu *cpu, const struct insn *insn, unsigned number)
{
  require_protected(cpu);
  if ((cpu->cr4 & CR4_UMIP) && cpu->cpl > 0)
    fault_gp(cpu, 0);
  uint16_t selector = cpu->segment[number].selector;
  if (insn->form == FORM_MEM)
    insn_store(cpu, insn, 2, selector);
  else
    reg_set(cpu, insn->op[0], insn->size, selector);
  return insn + 1;
}

const struct insn *selector_sldt(struct cpu *cpu, const struct insn *insn)
{
  return store(cpu, insn, LDTR);
}

const struct insn *selector_str(struct cpu *cpu, const struct insn *insn)
{
  return store(cpu, insn, TR);
}

/* Fetches a system descriptor of the GDT, of type `type` or `other`, that LLDT or LTR may load. */
static struct descriptor fetch_system(struct cpu *cpu, uint16_t selector, unsigned type, unsigned other)
{
  if (selector & 4)
    fault_gp(cpu, selector & ~3u);
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_GP, true);
  unsigned found = SEGMENT_TYPE(d.access);
  bool is_type = !(d.access & SEGMENT_S) && (found == type || found == other);
  bool is_whole = !far_is_long(cpu) || (!(d.raw_high >> 40 & 0x1F) && far_is_canonical(d.base));
  if (!is_type || !is_whole)
    fault_gp(cpu, selector & ~3u);
  if (!(d.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
  return d;
}

static uint16_t begin_load(struct cpu *cpu, const struct insn *insn)
{
  require_protected(cpu);
  if (cpu->cpl != 0)
    fault_gp(cpu, 0);
  return load_operand(cpu, insn);
}

const struct insn *selector_lldt(struct cpu *cpu, const struct insn *insn)
{
  uint16_t selector = begin_load(cpu, insn);

  if (selector_is_null(selector)) {
    segment_set_null(cpu, LDTR, selector);
  } else {
    struct descriptor d = fetch_system(cpu, selector, SYSTEM_LDT, SYSTEM_LDT);
    segment_set(cpu, LDTR, selector, &d);
  }
  segment_update(cpu);
  return insn + 1;
}

const struct insn *selector_ltr(struct cpu *cpu, const struct insn *insn)
{
  uint16_t selector = begin_load(cpu, insn);

  if (selector_is_null(selector))
    fault_gp(cpu, 0);
  unsigned other = far_is_long(cpu) ? SYSTEM_TSS_32 : SYSTEM_TSS_16;
  struct descriptor d = fetch_system(cpu, selector, SYSTEM_TSS_32, other);
  d.access |= SYSTEM_BUSY;
  access_store_system(cpu, d.linear + 5, 1, d.access & 0xFF);
  segment_set(cpu, TR, selector, &d);
  segment_update(cpu);
  return insn + 1;
}

/* ---- queries ---- */

/* Bits 1 << type of the system descriptors that LAR and LSL accept: SDM vol. 2, tables 3-52 and 3-54. */
#define BIT(type) (1u << (type))
#define LSL_LONG (BIT(SYSTEM_LDT) | BIT(SYSTEM_TSS_32) | BIT(SYSTEM_TSS_32_BUSY))
#define LSL_LEGACY (LSL_LONG | BIT(SYSTEM_TSS_16) | BIT(SYSTEM_TSS_16_BUSY))
#define LAR_LONG (LSL_LONG | BIT(SYSTEM_CALL_GATE_32))
#define LAR_LEGACY (LSL_LEGACY | BIT(SYSTEM_CALL_GATE_32) | BIT(SYSTEM_CALL_GATE_16) | BIT(SYSTEM_TASK_GATE))

/* Fetches the descriptor of a selector, if CPL and RPL may see it. */
static bool look(struct cpu *cpu, uint16_t selector, struct descriptor *ret)
{
  if (selector_is_null(selector) || !segment_look(cpu, selector, false, ret))
    return false;
  unsigned dpl = SEGMENT_DPL(ret->access);
  bool is_open = code_is(ret) && code_is_conforming(ret);
  return is_open || (cpu->cpl <= dpl && (selector & 3u) <= dpl);
}

/* Whether it is code or data, or one of these system types; in IA-32e mode the second half must not look like a
 * descriptor. */
static bool is_of_types(struct cpu *cpu, uint16_t selector, const struct descriptor *d, uint32_t types)
{
  struct descriptor whole;

  if (d->access & SEGMENT_S)
    return true;
  if (!(types >> SEGMENT_TYPE(d->access) & 1))
    return false;
  return !far_is_long(cpu) || (segment_look(cpu, selector, true, &whole) && !(whole.raw_high >> 40 & 0x1F));
}

static uint16_t second_operand(struct cpu *cpu, const struct insn *insn)
{
  uint64_t value = insn->form == FORM_REG_MEM ? insn_load(cpu, insn, 2) : reg_get(cpu, insn->op[1], 2);

  return (uint16_t)value;
}

const struct insn *selector_lar(struct cpu *cpu, const struct insn *insn)
{
  require_protected(cpu);
  uint16_t selector = second_operand(cpu, insn);
  struct descriptor d;
  bool is_seen = look(cpu, selector, &d) && is_of_types(cpu, selector, &d, far_is_long(cpu) ? LAR_LONG : LAR_LEGACY);
  if (is_seen)
    reg_set(cpu, insn->op[0], insn->size, d.raw >> 32 & 0xF0FF00);
  flags_set_zf(cpu, is_seen);
  return insn + 1;
}

const struct insn *selector_lsl(struct cpu *cpu, const struct insn *insn)
{
  require_protected(cpu);
  uint16_t selector = second_operand(cpu, insn);
  struct descriptor d;
  bool is_seen = look(cpu, selector, &d) && is_of_types(cpu, selector, &d, far_is_long(cpu) ? LSL_LONG : LSL_LEGACY);
  if (is_seen)
    reg_set(cpu, insn->op[0], insn->size, d.limit);
  flags_set_zf(cpu, is_seen);
  return insn + 1;
}

const struct insn *selector_verr(struct cpu *cpu, const struct insn *insn)
{
  require_protected(cpu);
  struct descriptor d;
  bool is_seen =
    look(cpu, load_operand(cpu, insn), &d) && (d.access & SEGMENT_S) && (!code_is(&d) || (d.access & SEGMENT_READABLE));
  flags_set_zf(cpu, is_seen);
  return insn + 1;
}

const struct insn *selector_verw(struct cpu *cpu, const struct insn *insn)
{
  require_protected(cpu);
  struct descriptor d;
  bool is_seen =
    look(cpu, load_operand(cpu, insn), &d) && (d.access & SEGMENT_S) && !code_is(&d) && (d.access & SEGMENT_WRITABLE);
  flags_set_zf(cpu, is_seen);
  return insn + 1;
}

/* Raises the RPL of a selector to that of another. */
const struct insn *selector_arpl(struct cpu *cpu, const struct insn *insn)
{
  require_protected(cpu);
  bool is_memory = insn->form == FORM_MEM_REG;
  uint64_t own = is_memory ? insn_load_to_modify(cpu, insn, 2) : reg_get(cpu, insn->op[0], 2);
  uint64_t rpl = reg_get(cpu, insn->op[1], 2) & 3;
  bool is_raised = (own & 3) < rpl;
  if (is_raised)
    own = (own & ~UINT64_C(3)) | rpl;
  if (is_raised && is_memory)
    insn_store(cpu, insn, 2, own);
  else if (is_raised)
    reg_set(cpu, insn->op[0], 2, own);
  flags_set_zf(cpu, is_raised);
  return insn + 1;
}
