/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry point of the runtime, and the transitions between the application in the cache and the dispatcher. None of
 * them touches vector registers. signal.c handles signals that arrive during a transition.
 */
#include "process/runtime/routine.inc"
#include "process/state.inc"

#define FLAGS_OURS 0x202

/* struct attach_entries of attach.h. */
.section .attach, "a", @progbits
.balign 8
.quad attach_process_enter - _start
.quad attach_thread_enter - _start
.quad leave_start_enter - _start
.quad leave_call_enter - _start
.quad leave_process_enter - _start
.quad runtime_stop_back - _start
.quad syscall_pass_back - _start

.text
/* The kernel's stack becomes the application's: nothing is pushed on it. */
.global _start
.type _start, @function
_start:
  mov %rsp, %rdi
  lea start_stack_end(%rip), %rsp
  xor %ebp, %ebp
  call runtime_main
  ud2

/* Entry points for lbr, which sets the registers by ptrace(2). */
attach_process_enter:
  lea start_stack_end(%rip), %rsp
  call attach_process
  ud2
attach_thread_enter:
  mov %gs:STATE_STACK, %rsp
  call attach_thread
  ud2
leave_start_enter:
  mov %gs:STATE_STACK, %rsp
  call leave_start
  ud2
leave_call_enter:
  mov %gs:STATE_STACK, %rsp
  call leave_call
  ud2
leave_process_enter:
  lea start_stack_end(%rip), %rsp
  call leave_process
  ud2

/* void runtime_stop(answer): lbr sees the breakpoint, and continues the thread elsewhere. */
routine runtime_stop
  int3
runtime_stop_back:
  ud2

/* Leaves a path: saves the application's registers, calls the dispatcher, and continues at state->resume. The
 * application's R11 is in the state already, because R11 has been the pointer into the log. */
.macro leave name, dispatcher
routine \name
  mov %rax, %gs:STATE_REGISTERS + 0 * 8
  lea \dispatcher(%rip), %rax
  jmp leave_with
.endm

leave leave_direct, dispatch_direct
leave leave_indirect, dispatch_indirect
leave leave_narrow, dispatch_narrow
leave leave_syscall, dispatch_syscall
leave leave_stale, dispatch_stale

leave_with:
  mov %rcx, %gs:STATE_REGISTERS + 1 * 8
  mov %rdx, %gs:STATE_REGISTERS + 2 * 8
  mov %rbx, %gs:STATE_REGISTERS + 3 * 8
  mov %rsp, %gs:STATE_REGISTERS + 4 * 8
  mov %rbp, %gs:STATE_REGISTERS + 5 * 8
  mov %rsi, %gs:STATE_REGISTERS + 6 * 8
  mov %rdi, %gs:STATE_REGISTERS + 7 * 8
  mov %r8, %gs:STATE_REGISTERS + 8 * 8
  mov %r9, %gs:STATE_REGISTERS + 9 * 8
  mov %r10, %gs:STATE_REGISTERS + 10 * 8
  mov %r11, %gs:STATE_LOG
  mov %r12, %gs:STATE_REGISTERS + 12 * 8
  mov %r13, %gs:STATE_REGISTERS + 13 * 8
  mov %r14, %gs:STATE_REGISTERS + 14 * 8
  mov %r15, %gs:STATE_REGISTERS + 15 * 8
  mov %gs:STATE_STACK, %rsp
  pushfq
  pop %gs:STATE_FLAGS
  push $FLAGS_OURS /* AC would make the runtime fault, too */
  popfq
  call *%rax

/* Enters the cache with the application's registers. A signal in here is delivered first; then the transition begins
 * anew. */
routine cache_enter
  mov %gs:STATE_STACK, %rsp
  cmpq $0, %gs:STATE_PENDING
  jne cache_enter_late
  push %gs:STATE_FLAGS
  popfq
  mov %gs:STATE_REGISTERS + 0 * 8, %rax
  mov %gs:STATE_REGISTERS + 1 * 8, %rcx
  mov %gs:STATE_REGISTERS + 2 * 8, %rdx
  mov %gs:STATE_REGISTERS + 3 * 8, %rbx
  mov %gs:STATE_REGISTERS + 5 * 8, %rbp
  mov %gs:STATE_REGISTERS + 6 * 8, %rsi
  mov %gs:STATE_REGISTERS + 7 * 8, %rdi
  mov %gs:STATE_REGISTERS + 8 * 8, %r8
  mov %gs:STATE_REGISTERS + 9 * 8, %r9
  mov %gs:STATE_REGISTERS + 10 * 8, %r10
  mov %gs:STATE_LOG, %r11
  mov %gs:STATE_REGISTERS + 12 * 8, %r12
  mov %gs:STATE_REGISTERS + 13 * 8, %r13
  mov %gs:STATE_REGISTERS + 14 * 8, %r14
  mov %gs:STATE_REGISTERS + 15 * 8, %r15
  mov %gs:STATE_REGISTERS + 4 * 8, %rsp
  jmp *%gs:STATE_RESUME

/* The destination of state->resume if the application continues outside the cache, to fault there, or in a unit that
 * keeps R11. */
routine native_enter
  mov %gs:STATE_R11, %r11
  jmp *%gs:STATE_NATIVE
routine cache_enter_end

cache_enter_late:
  cld
  call signal_deliver
  jmp cache_enter

/* Callable from anywhere in the runtime: the application continues at state->rip. */
routine dispatch_enter
  mov %gs:STATE_STACK, %rsp
  cld
  mov %gs:STATE_SELF, %rdi
  add $REGION_PRIVATE, %rdi
  call dispatch_to
  jmp cache_enter

/* int64_t syscall_pass(number, argument): a signal that arrives between the start and the call makes it return before
 * the call. */
routine syscall_pass
  mov %rdi, %rax
  xor %ecx, %ecx /* SYSCALL leaves syscall_pass_back in it */
  mov 40(%rsi), %r9
  mov 32(%rsi), %r8
  mov 24(%rsi), %r10
  mov 16(%rsi), %rdx
  mov 0(%rsi), %rdi
  mov 8(%rsi), %rsi
routine syscall_pass_start
  cmpq $0, %gs:STATE_PENDING
  jne syscall_pass_abort
routine syscall_pass_call
  syscall
routine syscall_pass_back
  ret
routine syscall_pass_abort
  mov $-4095, %rax
  ret

/* The handler that the kernel has for every signal, on the thread's signal stack: RDI number, RSI siginfo, RDX
 * ucontext. */
routine signal_enter
  push $FLAGS_OURS
  popfq
  mov %rsp, %rbp
  and $-16, %rsp
  call signal_arrived
  mov %rbp, %rsp
  ret
routine signal_restore
  mov $15, %eax
  syscall
  ud2

/* int64_t recover_call(function, argument, thread->recover): calls function(argument) and returns its result, or -1 if
 * it faults. */
routine recover_call
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  push %rdx
  lea recover_here(%rip), %rax
  mov %rsp, 8(%rdx)
  mov %rax, (%rdx)
  mov %rdi, %rax
  mov %rsi, %rdi
  call *%rax
recover_back:
  pop %rdx
  movq $0, (%rdx)
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
recover_here:
  mov $-1, %rax
  jmp recover_back

.bss
/* The range for the dynamic linker (load.c). The kernel maps the dynamic linker before its own vdso, and therefore
 * above it; sorting by address must give the same order here. */
.balign 4096
.global interpreter_place
.hidden interpreter_place
interpreter_place:
.skip INTERPRETER_PLACE

/* Used until the first thread has its own. */
.balign 16
.skip 32768
start_stack_end:

.section .note.GNU-stack, "", @progbits
