/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime must know of a thread that lbr has stopped to attach to it: its registers, the system call that it
 * was in, its use of rseq(2).
 */
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "process/attach.h"
#include "process/attachment.h"
#include "process/tracee.h"

enum { SYSCALL_SIZE = 2, NR_RESTART = 219 };

struct rseq_configuration {
  uint64_t address;
  uint32_t size, signature, flags, unused;
};

static bool rseq_get(const struct tracee *tracee, struct rseq_configuration *ret_rseq)
{
  const enum __ptrace_request get_rseq = 0x420F; /* PTRACE_GET_RSEQ_CONFIGURATION */

  return ptrace(get_rseq, tracee->thread, sizeof(*ret_rseq), ret_rseq) >= 0 && ret_rseq->address;
}

bool attach_has_rseq(const struct tracee *tracee)
{
  struct rseq_configuration rseq = {0};

  return rseq_get(tracee, &rseq);
}

/* A thread in a critical section of rseq(2) goes on at the address that is given for interruptions, as after every
 * preemption. */
static void rseq_take(const struct tracees *tracees, const struct tracee *tracee, struct attach_thread *thread)
{
  enum { SECTION_AT = 8 };
  struct rseq_configuration rseq = {0};

  struct {
    uint32_t version, flags;
    uint64_t start, size, abort;
  } section;
  uint64_t address = 0, none = 0;
  if (!rseq_get(tracee, &rseq))
    return;
  thread->rseq = rseq.address;
  thread->rseq_size = rseq.size;
  thread->rseq_signature = rseq.signature;
  if (!tracees_read(tracees, &address, rseq.address + SECTION_AT, sizeof(address)) || !address ||
      !tracees_read(tracees, &section, address, sizeof(section)))
    return;
  if (thread->rip - section.start < section.size)
    thread->rip = section.abort;
  tracees_write(tracees, rseq.address + SECTION_AT, &none, sizeof(none));
}

/* The number of a system call that the kernel only knows to be one that it must restart. Most code loads the number
 * right before it makes the call. `end` is the address after the instruction. */
static uint64_t call_number(const struct tracees *tracees, uint64_t end)
{
  enum { BEFORE = 16, LOAD = 0xB8 }; /* MOV EAX, imm32 */
  uint8_t code[BEFORE];

  if (!tracees_read(tracees, code, end - SYSCALL_SIZE - BEFORE, BEFORE))
    return NR_RESTART;
  for (unsigned at = BEFORE - 5; at; at--) {
    uint32_t number;

    memcpy(&number, code + at + 1, sizeof(number));
    bool is_known =
      number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_poll || number == SYS_futex;
    if (code[at] == LOAD && is_known)
      return number;
  }
  return NR_RESTART;
}

/* The thread was stopped in a system call, which it executes again; or the kernel has set it back to the instruction,
 * to restart a call with a timeout. */
static void call_take(const struct tracees *tracees, const struct tracee *tracee, struct attach_thread *thread)
{
  const struct user_regs_struct *from = &tracee->registers;
  uint16_t code = 0;

  thread->interrupted = tracee_interruption(tracees, tracee);
  if (thread->interrupted) {
    thread->call = from->orig_rax;
    thread->registers[0] = thread->interrupted == TRACEE_RESTART_BLOCK ? (uint64_t)NR_RESTART : from->orig_rax;
    thread->rip -= SYSCALL_SIZE;
  } else if (from->rax == NR_RESTART && tracees_read(tracees, &code, from->rip, SYSCALL_SIZE) && code == 0x050F) {
    thread->interrupted = TRACEE_RESTART_BLOCK;
    thread->call = NR_RESTART;
  }
  if (thread->interrupted && thread->call == NR_RESTART)
    thread->call = call_number(tracees, thread->rip + SYSCALL_SIZE);
}

static bool is_recorded(const struct attachment *attachment, int thread)
{
  for (size_t i = 0; i < attachment->thread_count; i++)
    if (attachment->threads[i] == thread)
      return true;
  return !attachment->thread_count;
}

void attach_thread_fill(const struct tracees *tracees, const struct attachment *attachment, const struct tracee *tracee,
                        struct attach_thread *thread)
{
  const struct user_regs_struct *from = &tracee->registers;
  const uint64_t registers[16] = {from->rax, from->rcx, from->rdx, from->rbx, from->rsp, from->rbp,
                                  from->rsi, from->rdi, from->r8,  from->r9,  from->r10, from->r11,
                                  from->r12, from->r13, from->r14, from->r15};

  *thread = (struct attach_thread){.rip = from->rip,
                                   .flags = from->eflags,
                                   .mask = tracee->mask,
                                   .number = (uint32_t)tracee->thread,
                                   .is_unwanted = !is_recorded(attachment, tracee->thread)};
  memcpy(thread->registers, registers, sizeof(registers));
  call_take(tracees, tracee, thread);
  rseq_take(tracees, tracee, thread);
}
