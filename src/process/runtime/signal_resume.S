/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of signal handling in the runtime: the kernel restores a context.
 */
#include "process/runtime/routine.inc"
#include "process/state.inc"

.text

/* void context_restore(context, pending): returns only if state->pending is not as expected, or if a signal comes
 * before the system call (signal.c). The context is where RET from a handler would have left RSP. */
routine context_restore
  mov %rsp, %rdx
routine context_restore_start
  cmp %rsi, %gs:STATE_PENDING
  jne context_restore_abort
  mov %rdi, %rsp
  mov $15, %eax /* rt_sigreturn */
routine context_restore_call
  syscall
routine context_restore_abort
  mov %rdx, %rsp
  ret

.section .note.GNU-stack, "", @progbits
