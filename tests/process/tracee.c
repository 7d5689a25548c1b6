/* SPDX-License-Identifier: Apache-2.0
 *
 * See tracee.h. What makes a step invisible is said where it is done.
 */
#include "tracee.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define PAGE UINT64_C(4096)
#define USER64_CS 0x33 /* of Linux: the 64-bit code segment */

/* Execute-only pages and those behind a protection key need the debugger's way, word by word. */
static size_t peek_bytes(pid_t id, uint64_t address, uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, id, (address + i) & ~UINT64_C(7), 0);
    if (errno)
      return i;
    bytes[i] = (uint8_t)((unsigned long)word >> ((address + i) % 8 * 8));
  }
  return size;
}

/* As many bytes as there are: the second page may be missing. */
static size_t fetch_bytes(pid_t id, uint64_t address, uint8_t *bytes, size_t size)
{
  size_t first = PAGE - address % PAGE < size ? PAGE - address % PAGE : size;
  struct iovec here = {bytes, size};
  struct iovec there[2] = {{(void *)address, first}, {(void *)(address + first), size - first}};
  ssize_t n = process_vm_readv(id, &here, 1, there, first < size ? 2 : 1, 0);
  return n > 0 ? (size_t)n : peek_bytes(id, address, bytes, size);
}

int tracee_read(const struct tracee *tracee, uint64_t address, void *bytes, size_t size)
{
  return fetch_bytes(tracee->id, address, bytes, size) == size ? 0 : -1;
}

int tracee_write(const struct tracee *tracee, uint64_t address, const void *bytes, size_t size)
{
  struct iovec here = {(void *)bytes, size};
  struct iovec there = {(void *)address, size};
  return process_vm_writev(tracee->id, &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -1;
}

void tracee_decode(const struct tracee *tracee, uint64_t address, struct step *ret_step)
{
  uint8_t bytes[ISA_LENGTH_MAX];
  size_t size = fetch_bytes(tracee->id, address, bytes, sizeof(bytes));
  enum isa_mode mode = tracee->registers.cs == USER64_CS ? ISA_64 : ISA_COMPATIBLE_32;
  ret_step->address = address;
  ret_step->length = isa_decode(mode, __builtin_cpu_is("amd"), bytes, size, &ret_step->code);
  ret_step->kind = ret_step->length > 0 ? isa_branch_kind(&ret_step->code) : -1;
}

int tracee_look(struct tracee *tracee)
{
  if (ptrace(PTRACE_GETREGS, tracee->id, 0, &tracee->registers))
    return -errno;
  tracee_decode(tracee, tracee->registers.rip, &tracee->next);
  return 0;
}

/* The kernel forces the SIGTRAP of a step on a thread that blocks SIGTRAP by unblocking it and resetting its handler
 * (force_sig_info_to_task). So while we step the signal is taken out of the mask; it is put back before the kernel
 * reads the mask: before system calls and handlers. */
static void hide_mask(struct tracee *tracee)
{
  uint64_t mask;
  tracee->is_mask_stale = false;
  if (ptrace(PTRACE_GETSIGMASK, tracee->id, sizeof(mask), &mask) || !(mask >> (SIGTRAP - 1) & 1))
    return;
  mask &= ~(UINT64_C(1) << (SIGTRAP - 1));
  tracee->blocks_trap = !ptrace(PTRACE_SETSIGMASK, tracee->id, sizeof(mask), &mask);
}

static void show_mask(struct tracee *tracee)
{
  uint64_t mask;
  tracee->is_mask_stale = true;
  if (!tracee->blocks_trap || ptrace(PTRACE_GETSIGMASK, tracee->id, sizeof(mask), &mask))
    return;
  mask |= UINT64_C(1) << (SIGTRAP - 1);
  ptrace(PTRACE_SETSIGMASK, tracee->id, sizeof(mask), &mask);
  tracee->blocks_trap = false;
}

/* Does the program have a handler for this signal? */
static bool signal_is_caught(const struct tracee *tracee, int signal)
{
  char line[256];
  unsigned long long caught = 0;
  snprintf(line, sizeof(line), "/proc/%d/status", tracee->id);
  FILE *file = fopen(line, "re");
  while (file && fgets(line, sizeof(line), file) && sscanf(line, "SigCgt: %llx", &caught) != 1)
    continue;
  if (file)
    fclose(file);
  return caught >> (signal - 1) & 1;
}

/* Linux hides the TF of a step from who reads the registers or a signal frame, but after stepping POPF or IRET it takes
 * the TF for the program's own (enable_single_step, is_setting_trap_flag). Before system calls, which store the flags
 * in R11, it is taken out by hand. */
static void clear_trap_flag(struct tracee *tracee)
{
  if (tracee->owns_trap_flag || !(tracee->registers.eflags & EFLAGS_TF))
    return;
  tracee->registers.eflags &= ~(unsigned long long)EFLAGS_TF;
  ptrace(PTRACE_POKEUSER, tracee->id, offsetof(struct user, regs.eflags), tracee->registers.eflags);
}

/* System calls are not stepped: SYSCALL would leave the TF of a step in R11, and the trap at its end is forced on the
 * thread. PTRACE_SYSCALL stops before and after the call, without TF. */
int tracee_resume(struct tracee *tracee, int signal)
{
  bool is_call = tracee->is_in_call || tracee->is_interrupted || step_is_call(&tracee->next);
  if (is_call && signal && signal_is_caught(tracee, signal))
    is_call = false; /* the handler comes first; only a step stops at its first instruction */
  if (is_call || signal)
    show_mask(tracee);
  else if (tracee->is_mask_stale)
    hide_mask(tracee);
  if (is_call)
    clear_trap_flag(tracee);
  return ptrace(is_call ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, tracee->id, 0, signal) ? -errno : 0;
}

bool step_is_call(const struct step *step)
{
  return step->kind == LB_BRANCH_SYSCALL || (step->kind == LB_BRANCH_INT && step->code.operands[0].imm.value.u == 0x80);
}

static ZydisMnemonic step_mnemonic(const struct step *step)
{
  return step->length > 0 ? step->code.code.mnemonic : ZYDIS_MNEMONIC_INVALID;
}

bool step_is_breakpoint(const struct step *step)
{
  return step_mnemonic(step) == ZYDIS_MNEMONIC_INT3 || step_mnemonic(step) == ZYDIS_MNEMONIC_INT1;
}

/* MOV SS and POP SS hold the trap back until the next instruction is done (SDM vol. 3, 6.8.3); LSS does not. */
bool step_loads_ss(const struct step *step)
{
  ZydisMnemonic mnemonic = step_mnemonic(step);
  return (mnemonic == ZYDIS_MNEMONIC_MOV || mnemonic == ZYDIS_MNEMONIC_POP) &&
         step->code.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         step->code.operands[0].reg.value == ZYDIS_REGISTER_SS;
}

bool step_stores_flags(const struct step *step)
{
  ZydisMnemonic mnemonic = step_mnemonic(step);
  return mnemonic == ZYDIS_MNEMONIC_PUSHF || mnemonic == ZYDIS_MNEMONIC_PUSHFD || mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
}

bool step_loads_flags(const struct step *step)
{
  ZydisMnemonic mnemonic = step_mnemonic(step);
  return mnemonic == ZYDIS_MNEMONIC_POPF || mnemonic == ZYDIS_MNEMONIC_POPFD || mnemonic == ZYDIS_MNEMONIC_POPFQ ||
         step->kind == LB_BRANCH_IRET;
}

uint64_t step_target(const struct step *step)
{
  return step->address + (uint64_t)step->length + (uint64_t)step->code.operands[0].imm.value.s;
}

/* The conditions of Jcc in the order of their codes, without the bit that negates (SDM vol. 1, appendix B). */
static bool flags_fulfil(uint64_t flags, unsigned condition)
{
  bool carry = flags & 1, parity = flags >> 2 & 1, zero = flags >> 6 & 1, sign = flags >> 7 & 1,
       overflow = flags >> 11 & 1;
  const bool conditions[] = {
    overflow, carry, zero, carry || zero, sign, parity, sign != overflow, zero || sign != overflow};
  return conditions[condition >> 1 & 7] != (condition & 1);
}

bool step_is_taken(const struct step *step, const struct user_regs_struct *registers)
{
  const ZydisDecodedInstruction *code = &step->code.code;
  uint64_t mask = code->address_width == 64 ? UINT64_MAX : code->address_width == 32 ? UINT32_MAX : UINT16_MAX;
  bool zero = registers->eflags >> 6 & 1;
  bool is_last = ((registers->rcx - 1) & mask) == 0;
  switch (code->mnemonic) {
  case ZYDIS_MNEMONIC_LOOP:
    return !is_last;
  case ZYDIS_MNEMONIC_LOOPE:
    return !is_last && zero;
  case ZYDIS_MNEMONIC_LOOPNE:
    return !is_last && !zero;
  case ZYDIS_MNEMONIC_JCXZ:
  case ZYDIS_MNEMONIC_JECXZ:
  case ZYDIS_MNEMONIC_JRCXZ:
    return (registers->rcx & mask) == 0;
  default:
    return flags_fulfil(registers->eflags, code->opcode);
  }
}
