/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the kernel starts the runtime, and the way between the application in the cache and the dispatcher. Vector
 * registers are left alone on both ways.
 */
#include "process/state.inc"

.text

/* The kernel's stack becomes the application's: nothing is pushed on it. */
.global _start
.type _start, @function
_start:
  mov %rsp, %rdi
  lea runtime_stack_end(%rip), %rsp
  xor %ebp, %ebp
  call runtime_main
  ud2

/* From an exit of a block: saves the application's registers, asks the dispatcher, and goes on where it says. */
.global cache_leave
.hidden cache_leave
.type cache_leave, @function
cache_leave:
  mov %rax, %gs:STATE_REGISTERS + 0 * 8
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
  mov %r11, %gs:STATE_REGISTERS + 11 * 8
  mov %r12, %gs:STATE_REGISTERS + 12 * 8
  mov %r13, %gs:STATE_REGISTERS + 13 * 8
  mov %r14, %gs:STATE_REGISTERS + 14 * 8
  mov %r15, %gs:STATE_REGISTERS + 15 * 8
  mov %gs:STATE_STACK, %rsp
  pushfq
  pop %gs:STATE_FLAGS
  cld
  call dispatch

/* Into the cache, with the application's registers. */
.global cache_enter
.hidden cache_enter
.type cache_enter, @function
cache_enter:
  mov %gs:STATE_STACK, %rsp
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
  mov %gs:STATE_REGISTERS + 11 * 8, %r11
  mov %gs:STATE_REGISTERS + 12 * 8, %r12
  mov %gs:STATE_REGISTERS + 13 * 8, %r13
  mov %gs:STATE_REGISTERS + 14 * 8, %r14
  mov %gs:STATE_REGISTERS + 15 * 8, %r15
  mov %gs:STATE_REGISTERS + 4 * 8, %rsp
  jmp *%gs:STATE_RESUME

/* The handler that the kernel has for every signal that the application handles. It never returns, so it may run on the
 * application's stack. RDI is the signal's number. */
.global signal_enter
.hidden signal_enter
.type signal_enter, @function
signal_enter:
  cld
  and $-16, %rsp
  call signal_arrived
  ud2

.bss
/* Where load.c puts the dynamic linker: the kernel maps it before its own vdso, and so above; sorting by address must
 * come out the same. */
.balign 4096
.global interpreter_place
.hidden interpreter_place
interpreter_place:
.skip INTERPRETER_PLACE

.balign 16
.skip 65536
runtime_stack_end:
.global runtime_stack_end
.hidden runtime_stack_end

.section .note.GNU-stack, "", @progbits
