/* SPDX-License-Identifier: Apache-2.0
 *
 * Far jumps, calls and returns, and IRET, within the code segment: the dispatcher executes them (SDM vol. 2). Far
 * branches to another segment, which would leave 64-bit mode, are refused.
 */
#include "lastbranch/branch.h"
#include "process/runtime/runtime.h"

enum { REX_W = 8, OPCODE_IRET = 0xCF, OPCODE_RETF_N = 0xCA, OPCODE_GROUP = 0xFF };
enum { FLAGS_CHANGED = 0x250DD5, FLAGS_ALWAYS = 0x202 }; /* flags that IRET may change at CPL 3 */

/* A decoded far branch, and the stack pointer while it is executed. */
struct far {
  struct thread *thread;
  struct code code;
  uint64_t from, next;
  unsigned size; /* of an operand on the stack */
  uint64_t stack;
  unsigned taken; /* RETF n */
};

static bool pop(struct far *far, uint64_t *ret_value)
{
  *ret_value = 0;
  bool is_good = safe_read(far->thread, ret_value, far->stack, far->size);
  far->stack += far->size;
  return is_good;
}

static bool push(struct far *far, uint64_t value)
{
  far->stack -= far->size;
  return safe_write(far->thread, far->stack, &value, far->size);
}

static uint16_t own_segment(void)
{
  uint16_t segment;

  __asm__("mov %%cs, %0" : "=r"(segment));
  return segment;
}

static uint16_t own_stack_segment(void)
{
  uint16_t segment;

  __asm__("mov %%ss, %0" : "=r"(segment));
  return segment;
}

/* Whether the processor could load the selector for code, or for a stack. Any other selector makes it fault. */
static bool is_loadable(uint16_t segment, bool is_code)
{
  enum { CODE_OR_DATA = 0x1000, CODE = 0x0800, PRIVILEGE = 3 };
  uint32_t rights = 0;
  bool is_there;

  __asm__("lar %k2, %0" : "+r"(rights), "=@ccz"(is_there) : "r"((uint32_t)segment));
  return is_there && (segment & PRIVILEGE) == PRIVILEGE && rights & CODE_OR_DATA && !(rights & CODE) == !is_code;
}

/* AMD's processors have no far pointers with an offset of 64 bits and ignore REX.W (APM vol. 3, JMP far). */
static bool is_amd(void)
{
  uint32_t a = 0, b, c, d;

  __asm__("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
  return b == 0x68747541 && d == 0x69746E65 && c == 0x444D4163;
}

/* Returns false if the instruction faults. */
static bool check_segment(const struct far *far, uint64_t segment)
{
  if ((uint16_t)segment == own_segment())
    return true;
  if (is_loadable((uint16_t)segment, true))
    runtime_fail(PROCESS_E_INSTRUCTION, 0, far->from);
  return false;
}

static bool check_stack_segment(const struct far *far, uint64_t segment)
{
  if ((uint16_t)segment == own_stack_segment())
    return true;
  if (is_loadable((uint16_t)segment, false))
    runtime_fail(PROCESS_E_INSTRUCTION, 0, far->from);
  return false;
}

static bool do_return(struct far *far, uint64_t *ret_target)
{
  uint64_t segment;

  if (!pop(far, ret_target) || !pop(far, &segment) || !check_segment(far, segment))
    return false;
  far->stack += far->taken;
  return true;
}

static bool do_iret(struct far *far, uint64_t *ret_target)
{
  struct process_state *state = far->thread->state;
  uint64_t segment, flags, stack, stack_segment;

  if (!pop(far, ret_target) || !pop(far, &segment) || !pop(far, &flags) || !pop(far, &stack) ||
      !pop(far, &stack_segment) || !check_segment(far, segment) || !check_stack_segment(far, stack_segment))
    return false;
  state->flags = (state->flags & ~(uint64_t)FLAGS_CHANGED) | (flags & FLAGS_CHANGED) | FLAGS_ALWAYS;
  far->stack = stack;
  return true;
}

/* RCX holds the address of the far pointer: translate.c. */
static bool do_pointer(struct far *far, bool is_call, uint64_t *ret_target)
{
  bool is_wide = far->code.rex & REX_W && !is_amd();
  unsigned size = is_wide ? 8 : 4;
  uint64_t target = 0, at = far->thread->state->registers[GPR_RCX];
  uint16_t segment;

  far->thread->state->registers[GPR_RCX] = far->thread->state->spill_rcx;
  if (!safe_read(far->thread, &target, at, size) || !safe_read(far->thread, &segment, at + size, 2) ||
      !check_segment(far, segment))
    return false;
  far->size = size;
  if (is_call && (!push(far, segment) || !push(far, far->next)))
    return false;
  *ret_target = target;
  return true;
}

static bool is_canonical(uint64_t address)
{
  return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

static bool far_do(struct far *far, uint64_t *ret_target)
{
  bool is_iret = far->code.opcode == OPCODE_IRET, is_pointer = far->code.opcode == OPCODE_GROUP;
  uint64_t flags = far->thread->state->flags;
  bool is_done = is_pointer ? do_pointer(far, (far->code.modrm >> 3 & 7) == 3, ret_target)
                 : is_iret  ? do_iret(far, ret_target)
                            : do_return(far, ret_target);

  if (is_done && is_canonical(*ret_target))
    return true;
  far->thread->state->flags = flags;
  return false;
}

/* If the branch faults, the instruction itself is executed so that the processor raises the fault. */
void far_make(struct thread *thread, uint32_t number)
{
  struct process_state *state = thread->state;
  const struct lb_step *step = &thread->runtime->steps[number];
  uint8_t bytes[16] = {0};
  struct far far = {
    .thread = thread, .from = step->from, .next = step->from + step->length, .stack = state->registers[GPR_RSP]};
  uint64_t target = 0;
  bool is_good = safe_read(thread, bytes, step->from, step->length) && code_decode(bytes, step->length, &far.code);

  far.size = far.code.rex & REX_W ? 8 : 4;
  if (far.code.opcode == OPCODE_RETF_N)
    far.taken = bytes[far.code.imm_offset] + 256u * bytes[far.code.imm_offset + 1];
  if (is_good && far_do(&far, &target)) {
    log_put(thread, number);
    state->registers[GPR_RSP] = far.stack;
    state->rip = target;
    dispatch_to(thread);
    return;
  }
  log_event(thread, LB_ENTRY_NOWHERE, number - step->head - 1, step->from, 0);
  state->rip = state->native = step->from;
  state->resume = (uint64_t)native_enter;
}
