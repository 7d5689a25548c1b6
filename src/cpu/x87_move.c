/* SPDX-License-Identifier: Apache-2.0
 *
 * x87 loads and stores: real, integer and BCD, between registers, FCMOV, and the instructions that only move the stack.
 * SDM vol. 1, 8.3.3.
 */
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/x87.h"

/* Up to ten bytes of memory. */
struct operand {
  uint8_t bytes[16];
};

/* ---- loads ---- */

typedef uint16_t host_load(struct x87_value *value, const struct operand *operand);

/* The exceptions of a load do not depend on the masks, so the host can load under its own control word. A denormal is
 * loaded even if that exception is unmasked. */
#define HOST_LOAD(name, code)                                                                                          \
  static uint16_t host_##name(struct x87_value *value, const struct operand *operand)                                  \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__(code " %[operand]\n\tfnstsw %[status]\n\tfnclex\n\tfstpt %[value]"                                         \
            : [value] "=m"(*value), [status] "=m"(status)                                                              \
            : [operand] "m"(*operand)                                                                                  \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

HOST_LOAD(fld_4, "flds")
HOST_LOAD(fld_8, "fldl")
HOST_LOAD(fld_10, "fldt")
HOST_LOAD(fild_2, "filds")
HOST_LOAD(fild_4, "fildl")
HOST_LOAD(fild_8, "fildll")
HOST_LOAD(fbld, "fbld")

static const struct insn *load_memory(struct cpu *cpu, const struct insn *insn, host_load *run, unsigned size)
{
  x87_begin(cpu);
  struct operand operand;
  access_read(cpu, insn->segment, insn_address(cpu, insn), operand.bytes, size);
  x87_note_memory(cpu, insn);
  struct x87_value value = x87_indefinite;
  bool is_done =
    x87_is_empty(&cpu->fpu, 7) ? x87_settle(cpu, insn, run(&value, &operand), X87_C1, X87_IE) : x87_overflow(cpu, insn);
  if (is_done)
    x87_push(&cpu->fpu, &value);
  return insn + 1;
}

static const struct insn *load_reg(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  struct x87_value value = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, insn->op[0])) {
    is_done = x87_underflow(cpu, insn);
  } else if (!x87_is_empty(fpu, 7)) {
    is_done = x87_overflow(cpu, insn);
  } else {
    value = x87_get(fpu, insn->op[0]);
    is_done = x87_settle(cpu, insn, 0, X87_C1, 0);
  }
  if (is_done)
    x87_push(fpu, &value);
  return insn + 1;
}

static HANDLER(load_4, load_memory, host_fld_4, 4);
static HANDLER(load_8, load_memory, host_fld_8, 8);
static HANDLER(load_10, load_memory, host_fld_10, 10);
static HANDLER(load_integer_2, load_memory, host_fild_2, 2);
static HANDLER(load_integer_4, load_memory, host_fild_4, 4);
static HANDLER(load_integer_8, load_memory, host_fild_8, 8);
HANDLER(x87_fbld, load_memory, host_fbld, 10);

insn_handler *x87_fld(const struct insn *insn)
{
  if (insn->form != FORM_MEM)
    return load_reg;
  return insn->memory_size == 4 ? load_4 : insn->memory_size == 8 ? load_8 : load_10;
}

insn_handler *x87_fild(const struct insn *insn)
{
  return insn->memory_size == 2 ? load_integer_2 : insn->memory_size == 4 ? load_integer_4 : load_integer_8;
}

/* ---- stores ---- */

typedef uint16_t host_store(const struct x87_value *value, struct operand *operand, uint16_t control);

#define HOST_STORE(name, code, rest)                                                                                   \
  static uint16_t host_##name(const struct x87_value *value, struct operand *operand, uint16_t control)                \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[value]\n\t" X87_BEFORE_ASM code " %[operand]" X87_AFTER_ASM rest                                   \
            : [operand] "+m"(*operand), [status] "=m"(status)                                                          \
            : [value] "m"(*value), [control] "m"(control), [host_control] "m"(x87_host_control)                        \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

/* FST needs the guest's masks, because underflow depends on them; it does not pop. The other instructions pop only if
 * no unmasked exception prevents it, so they run with everything masked. */
HOST_STORE(fst_4, "fsts", "fstp %%st(0)")
HOST_STORE(fst_8, "fstl", "fstp %%st(0)")
HOST_STORE(fstp_10, "fstpt", "")
HOST_STORE(fistp_2, "fistps", "")
HOST_STORE(fistp_4, "fistpl", "")
HOST_STORE(fistp_8, "fistpll", "")
HOST_STORE(fisttp_2, "fisttps", "")
HOST_STORE(fisttp_4, "fisttpl", "")
HOST_STORE(fisttp_8, "fisttpll", "")
HOST_STORE(fbstp, "fbstp", "")

/* An empty register stores the indefinite of the operand's type: the host converts it. */
static const struct insn *store_run(struct cpu *cpu, const struct insn *insn, host_store *run, unsigned size,
                                    bool is_masked, bool does_pop)
{
  const unsigned blocking = X87_EXCEPTIONS & ~X87_PE;

  x87_begin(cpu);
  struct fpu *fpu = &cpu->fpu;
  bool is_empty = x87_is_empty(fpu, 0);
  struct x87_value value = is_empty ? x87_indefinite : x87_get(fpu, 0);
  struct operand operand = {{0}};
  uint16_t control = is_empty || is_masked ? fpu->control | X87_EXCEPTIONS : fpu->control;
  uint16_t status = run(&value, &operand, control);
  bool is_blocked = (is_empty ? X87_IE : status) & ~fpu->control & blocking;
  if (is_blocked)
    access_check_write(cpu, insn->segment, insn_address(cpu, insn), size);
  else
    access_write(cpu, insn->segment, insn_address(cpu, insn), operand.bytes, size);
  x87_note_memory(cpu, insn);
  if (is_empty)
    x87_underflow(cpu, insn);
  else
    x87_settle(cpu, insn, status, X87_C1, blocking);
  if (does_pop && !is_blocked)
    x87_pop(fpu);
  return insn + 1;
}

static const struct insn *store_reg(struct cpu *cpu, const struct insn *insn, bool does_pop)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  struct x87_value value = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, 0)) {
    is_done = x87_underflow(cpu, insn);
  } else {
    value = x87_get(fpu, 0);
    is_done = x87_settle(cpu, insn, 0, X87_C1, 0);
  }
  if (!is_done)
    return insn + 1;
  x87_set(fpu, insn->op[0], &value);
  if (does_pop)
    x87_pop(fpu);
  return insn + 1;
}

static HANDLER(store_4, store_run, host_fst_4, 4, false, false);
static HANDLER(store_8, store_run, host_fst_8, 8, false, false);
static HANDLER(store_st, store_reg, false);
static HANDLER(store_pop_4, store_run, host_fst_4, 4, false, true);
static HANDLER(store_pop_8, store_run, host_fst_8, 8, false, true);
static HANDLER(store_pop_10, store_run, host_fstp_10, 10, true, true);
static HANDLER(store_pop_st, store_reg, true);
static HANDLER(store_integer_2, store_run, host_fistp_2, 2, true, false);
static HANDLER(store_integer_4, store_run, host_fistp_4, 4, true, false);
static HANDLER(store_integer_pop_2, store_run, host_fistp_2, 2, true, true);
static HANDLER(store_integer_pop_4, store_run, host_fistp_4, 4, true, true);
static HANDLER(store_integer_pop_8, store_run, host_fistp_8, 8, true, true);
static HANDLER(store_truncated_2, store_run, host_fisttp_2, 2, true, true);
static HANDLER(store_truncated_4, store_run, host_fisttp_4, 4, true, true);
static HANDLER(store_truncated_8, store_run, host_fisttp_8, 8, true, true);
HANDLER(x87_fbstp, store_run, host_fbstp, 10, true, true);

insn_handler *x87_fst(const struct insn *insn)
{
  return insn->form != FORM_MEM ? store_st : insn->memory_size == 4 ? store_4 : store_8;
}

insn_handler *x87_fstp(const struct insn *insn)
{
  if (insn->form != FORM_MEM)
    return store_pop_st;
  return insn->memory_size == 4 ? store_pop_4 : insn->memory_size == 8 ? store_pop_8 : store_pop_10;
}

insn_handler *x87_fist(const struct insn *insn)
{
  return insn->memory_size == 2 ? store_integer_2 : store_integer_4;
}

insn_handler *x87_fistp(const struct insn *insn)
{
  return insn->memory_size == 2   ? store_integer_pop_2
         : insn->memory_size == 4 ? store_integer_pop_4
                                  : store_integer_pop_8;
}

insn_handler *x87_fisttp(const struct insn *insn)
{
  return insn->memory_size == 2 ? store_truncated_2 : insn->memory_size == 4 ? store_truncated_4 : store_truncated_8;
}

/* ---- between registers ---- */

/* An empty register counts as the indefinite, if that exception is masked. */
const struct insn *x87_fxch(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  bool is_empty = x87_is_empty(fpu, 0), is_other_empty = x87_is_empty(fpu, insn->op[0]);
  struct x87_value a = is_empty ? x87_indefinite : x87_get(fpu, 0);
  struct x87_value b = is_other_empty ? x87_indefinite : x87_get(fpu, insn->op[0]);
  bool is_done = is_empty || is_other_empty ? x87_underflow(cpu, insn) : x87_settle(cpu, insn, 0, X87_C1, 0);
  if (is_done) {
    x87_set(fpu, 0, &b);
    x87_set(fpu, insn->op[0], &a);
  }
  return insn + 1;
}

/* `condition` is the code that CMOVcc and Jcc have in their opcode: condition.def. */
static const struct insn *move_if(struct cpu *cpu, const struct insn *insn, unsigned condition)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  if (x87_is_empty(fpu, 0) || x87_is_empty(fpu, insn->op[1])) {
    if (x87_underflow(cpu, insn))
      x87_set(fpu, 0, &x87_indefinite);
    return insn + 1;
  }
  struct x87_value value = x87_get(fpu, insn->op[1]);
  if (flags_condition(cpu, condition))
    x87_set(fpu, 0, &value);
  return insn + 1;
}

HANDLER(x87_fcmovb, move_if, 0x2);
HANDLER(x87_fcmove, move_if, 0x4);
HANDLER(x87_fcmovbe, move_if, 0x6);
HANDLER(x87_fcmovu, move_if, 0xA);
HANDLER(x87_fcmovnb, move_if, 0x3);
HANDLER(x87_fcmovne, move_if, 0x5);
HANDLER(x87_fcmovnbe, move_if, 0x7);
HANDLER(x87_fcmovnu, move_if, 0xB);

/* ---- instructions that only move the stack ---- */

static const struct insn *stack_turn(struct cpu *cpu, const struct insn *insn, unsigned step)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  cpu->fpu.top = (cpu->fpu.top + step) & 7;
  cpu->fpu.status &= (uint16_t)~X87_C1;
  return insn + 1;
}

HANDLER(x87_fincstp, stack_turn, 1);
HANDLER(x87_fdecstp, stack_turn, 7);

static const struct insn *stack_free(struct cpu *cpu, const struct insn *insn, bool does_pop)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  x87_free(&cpu->fpu, insn->op[0]);
  cpu->fpu.status &= (uint16_t)~X87_C1;
  if (does_pop)
    x87_pop(&cpu->fpu);
  return insn + 1;
}

HANDLER(x87_ffree, stack_free, false);
HANDLER(x87_ffreep, stack_free, true);

/* D9 D8+i, an undocumented FSTP: it does not fault if ST(0) is empty, but only pops. */
const struct insn *x87_fstpnce(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct x87_value value = x87_get(&cpu->fpu, 0);
  if (!x87_is_empty(&cpu->fpu, 0))
    x87_set(&cpu->fpu, insn->op[0], &value);
  x87_pop(&cpu->fpu);
  cpu->fpu.status &= (uint16_t)~X87_C1;
  return insn + 1;
}
