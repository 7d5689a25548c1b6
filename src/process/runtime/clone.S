/* SPDX-License-Identifier: Apache-2.0
 *
 * The first and the last instructions of a thread, while it has no stack of its own. Called from thread.c.
 */
#include "process/runtime/routine.inc"
#include "process/state.inc"

.text

/* int64_t clone_call(number, argument, child): the system call gives the child its stack and a copy of the
 * registers. */
routine clone_call
  push %rbx
  mov %rdx, %rbx
  mov %rdi, %rax
  mov 40(%rsi), %r9
  mov 32(%rsi), %r8
  mov 24(%rsi), %r10
  mov 16(%rsi), %rdx
  mov 0(%rsi), %rdi
  mov 8(%rsi), %rsi
  syscall
  test %rax, %rax
  jz 1f
  pop %rbx
  ret
1:
  xor %ebp, %ebp
  mov %rbx, %rdi
  call thread_begin
  ud2

/* _Noreturn void thread_vanish(is_used, number, status): as soon as the region is marked as free, another thread may
 * take it, and this stack with it. */
routine thread_vanish
  mov %rsi, %rax
  movl $0, (%rdi)
  mov %rdx, %rdi
  syscall
  ud2

.section .note.GNU-stack, "", @progbits
