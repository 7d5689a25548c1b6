/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fatal signal means, in words. The kernel tells signal, code and address (sigaction(2)), but not whether the
 * address was read or written: that follows from the instruction and the registers.
 */
#include <signal.h>
#include <string.h>

#include "isa/isa.h"
#include "report/death.h"

/* Codes that all signals share have signal 0. */
static const struct {
  int signal, code;
  const char *name, *text;
} codes[] = {
#define CODE(signal, code, text)                                                                                       \
  {                                                                                                                    \
    signal, code, #code, text                                                                                          \
  }
  CODE(SIGSEGV, SEGV_MAPERR, "which is not mapped"),
  CODE(SIGSEGV, SEGV_ACCERR, "which is mapped, but not for that"),
  CODE(SIGSEGV, SEGV_PKUERR, "which a protection key forbids"),
  CODE(SIGBUS, BUS_ADRALN, "which is not aligned"),
  CODE(SIGBUS, BUS_ADRERR, "which is mapped, but lies behind the end of its file"),
  CODE(SIGBUS, BUS_OBJERR, "whose memory has an error"),
  CODE(SIGBUS, BUS_MCEERR_AR, "whose memory has an error"),
  CODE(SIGBUS, BUS_MCEERR_AO, "whose memory has an error"),
  CODE(SIGFPE, FPE_INTDIV, "an integer was divided by zero, or the quotient was too big"),
  CODE(SIGFPE, FPE_INTOVF, "an integer overflowed"),
  CODE(SIGFPE, FPE_FLTDIV, "a floating-point number was divided by zero"),
  CODE(SIGFPE, FPE_FLTOVF, "a floating-point number overflowed"),
  CODE(SIGFPE, FPE_FLTUND, "a floating-point number underflowed"),
  CODE(SIGFPE, FPE_FLTRES, "a floating-point result is not exact"),
  CODE(SIGFPE, FPE_FLTINV, "an invalid floating-point operation"),
  CODE(SIGILL, ILL_ILLOPC, "no such instruction"),
  CODE(SIGILL, ILL_ILLOPN, "no such instruction"),
  CODE(SIGILL, ILL_PRVOPC, "an instruction for the kernel only"),
  CODE(SIGTRAP, TRAP_BRKPT, "a breakpoint"),
  CODE(SIGTRAP, TRAP_TRACE, "a single step"),
  CODE(SIGTRAP, TRAP_HWBKPT, "a hardware breakpoint"),
  CODE(SIGSYS, 1, "a seccomp filter forbids the system call"),
  CODE(0, SI_USER, "sent by kill(2)"),
  CODE(0, SI_TKILL, "sent to itself, or by tgkill(2)"),
  CODE(0, SI_QUEUE, "sent by sigqueue(3)"),
  CODE(0, SI_TIMER, "sent by a timer"),
  CODE(0, SI_MESGQ, "sent by a message queue"),
  CODE(0, SI_ASYNCIO, "sent by asynchronous I/O"),
  CODE(0, SI_SIGIO, "sent by I/O"),
  CODE(0, SI_KERNEL, "sent by the kernel"),
#undef CODE
};

#define CODES (sizeof(codes) / sizeof(codes[0]))

/* Returns the row, or CODES. */
static size_t code_find(int signal, int code)
{
  size_t i = 0;

  while (i < CODES && (codes[i].code != code || (codes[i].signal && codes[i].signal != signal)))
    i++;
  return i;
}

const char *death_code_name(int signal, int code)
{
  size_t row = code_find(signal, code);

  if (row == CODES)
    return NULL;
  return codes[row].signal == SIGSYS ? "SYS_SECCOMP" : codes[row].name;
}

const char *death_signal_name(int signal)
{
  return sigabbrev_np(signal);
}

/* ---- the instruction ---- */

static bool instruction_read(const struct death_printer *printer, struct isa_instruction *ret_instruction)
{
  const struct report_death *death = printer->death;
  const struct report_places *places = printer->options->places;
  uint8_t bytes[ISA_LENGTH_MAX];
  size_t size;

  if (!places || !death->thread_count)
    return false;
  size = places->code(places->data, death->threads[0].space, REPORT_NOW, death->rip, bytes, sizeof(bytes));
  return size && isa_decode(ISA_64, false, bytes, size, ret_instruction) > 0;
}

static uint64_t register_value(const struct report_death *death, ZydisRegister name)
{
  ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);

  if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15)
    return death->registers[whole - ZYDIS_REGISTER_RAX];
  return 0;
}

/* The linear address of an operand in memory. Returns false where it cannot be known: a segment's base, an index that
 * is a vector. */
static bool operand_address(const struct report_death *death, const struct isa_instruction *instruction,
                            const ZydisDecodedOperand *operand, uint64_t *ret_address)
{
  const ZydisDecodedOperandMem *memory = &operand->mem;
  bool is_narrow = instruction->code.address_width == 32;
  uint64_t address = (uint64_t)memory->disp.value;

  if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || memory->type == ZYDIS_MEMOP_TYPE_AGEN ||
      memory->type == ZYDIS_MEMOP_TYPE_VSIB || memory->segment == ZYDIS_REGISTER_FS ||
      memory->segment == ZYDIS_REGISTER_GS)
    return false;
  if (memory->base == ZYDIS_REGISTER_RIP || memory->base == ZYDIS_REGISTER_EIP)
    address += death->rip + instruction->code.length;
  else
    address += register_value(death, memory->base);
  address += register_value(death, memory->index) * memory->scale;
  /* PUSH and CALL write below RSP */
  if (memory->base == ZYDIS_REGISTER_RSP && operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
      (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
    address -= operand->size / 8;
  *ret_address = is_narrow ? (uint32_t)address : address;
  return true;
}

static enum death_access operand_access(const ZydisDecodedOperand *operand)
{
  return operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ACCESS_WRITE : ACCESS_READ;
}

/* Of several operands the one that holds the address, else, if there is one only, that one. */
static enum death_access instruction_access(const struct report_death *death, const struct isa_instruction *instruction)
{
  enum death_access only = ACCESS_UNKNOWN;
  unsigned count = 0;

  for (unsigned i = 0; i < instruction->code.operand_count; i++) {
    const ZydisDecodedOperand *operand = &instruction->operands[i];
    uint64_t address;

    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
      continue;
    if (operand_address(death, instruction, operand, &address) && death->address - address < operand->size / 8)
      return operand_access(operand);
    only = operand_access(operand);
    count++;
  }
  return count == 1 ? only : ACCESS_UNKNOWN;
}

enum death_access death_access(const struct death_printer *printer)
{
  const struct report_death *death = printer->death;
  struct isa_instruction instruction;

  if (death->signal != SIGSEGV && death->signal != SIGBUS)
    return ACCESS_UNKNOWN;
  if (death->code == SI_KERNEL || death->code <= 0)
    return ACCESS_UNKNOWN;
  if (death->address - death->rip < ISA_LENGTH_MAX &&
      (!instruction_read(printer, &instruction) || death->address - death->rip >= instruction.code.length))
    return ACCESS_EXECUTE;
  if (death->address == death->rip)
    return ACCESS_EXECUTE;
  return instruction_read(printer, &instruction) ? instruction_access(death, &instruction) : ACCESS_UNKNOWN;
}

/* Is it canonical? */
static bool is_address(uint64_t address)
{
  return (int64_t)(address << 16) >> 16 == (int64_t)address;
}

bool death_bad_address(const struct death_printer *printer, uint64_t *ret_address)
{
  struct isa_instruction instruction;
  uint64_t address;

  if (!instruction_read(printer, &instruction))
    return false;
  for (unsigned i = 0; i < instruction.code.operand_count; i++)
    if (operand_address(printer->death, &instruction, &instruction.operands[i], &address) && !is_address(address)) {
      *ret_address = address;
      return true;
    }
  return false;
}

/* Where a branch leads: what the stack or a register holds. What is in other memory is not known. */
static bool branch_target(const struct report_death *death, const struct isa_instruction *instruction,
                          uint64_t *ret_target)
{
  const ZydisDecodedOperand *operand = &instruction->operands[0];

  if (instruction->code.meta.category == ZYDIS_CATEGORY_RET) {
    *ret_target = death->top;
    return death->has_top && instruction->code.mnemonic == ZYDIS_MNEMONIC_RET;
  }
  if ((instruction->code.mnemonic != ZYDIS_MNEMONIC_CALL && instruction->code.mnemonic != ZYDIS_MNEMONIC_JMP) ||
      operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
    return false;
  *ret_target = register_value(death, operand->reg.value);
  return true;
}

bool death_bad_target(const struct death_printer *printer, uint64_t *ret_target)
{
  const struct report_death *death = printer->death;
  struct isa_instruction instruction;
  uint64_t target;

  if ((death->signal != SIGSEGV && death->signal != SIGBUS) || death->code != SI_KERNEL ||
      !instruction_read(printer, &instruction) || !branch_target(death, &instruction, &target) || is_address(target))
    return false;
  *ret_target = target;
  return true;
}

/* ---- sentences ---- */

static void put_memory(struct death_printer *printer, const char *text)
{
  static const char *const verbs[] = {
    [ACCESS_UNKNOWN] = "accessed", [ACCESS_READ] = "read", [ACCESS_WRITE] = "wrote to", [ACCESS_EXECUTE] = "executed"};

  death_put(printer, ": %s 0x%llx%s%s", verbs[death_access(printer)], (unsigned long long)printer->death->address,
            text ? ", " : "", text ? text : "");
}

static const char *branch_word(const struct death_printer *printer)
{
  struct isa_instruction instruction;

  if (!instruction_read(printer, &instruction) || instruction.code.mnemonic == ZYDIS_MNEMONIC_RET)
    return "ret";
  return instruction.code.mnemonic == ZYDIS_MNEMONIC_CALL ? "call" : "jmp";
}

void death_put_signal(struct death_printer *printer)
{
  const struct report_death *death = printer->death;
  const char *description = sigdescr_np(death->signal);
  size_t row = code_find(death->signal, death->code);
  const char *text = row < CODES ? codes[row].text : NULL;
  bool is_memory = (death->signal == SIGSEGV || death->signal == SIGBUS) && death->code > 0;
  uint64_t address;

  if (description)
    death_put(printer, "%s", description);
  else
    death_put(printer, "Signal %d", death->signal);
  if (is_memory && death_bad_target(printer, &address))
    death_put(printer, ": %s wanted to go to 0x%llx, which can be no address", branch_word(printer),
              (unsigned long long)address);
  else if (is_memory && death->code == SI_KERNEL && death_bad_address(printer, &address))
    death_put(printer, ": used 0x%llx, which can be no address", (unsigned long long)address);
  else if (is_memory && death->code == SI_KERNEL)
    death_put(printer, ": a general protection fault");
  else if (is_memory)
    put_memory(printer, text);
  else if (text && death->code != SI_TKILL)
    death_put(printer, ": %s", text);
}
