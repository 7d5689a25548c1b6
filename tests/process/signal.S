/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals without libc: an illegal instruction that the handler skips, a bad pointer that it repairs, a breakpoint,
 * signals that the program sends itself, one inside the handler of another and on another stack, one that waits until
 * it is unblocked. Then all signals are blocked, SIGTRAP too: a stepper must not show there.
 */
#define SA_RESTORER 0x04000000
#define SA_ONSTACK 0x08000000
#define CONTEXT_RAX 144 /* in ucontext_t */
#define CONTEXT_RIP 168
  .globl _start
_start:
  lea handlers(%rip), %rbx
each:
  mov (%rbx), %edi
  test %edi, %edi
last:
  jz set
  lea action(%rip), %rsi
  movslq 4(%rbx), %rax
  lea _start(%rip), %rdx
  add %rdx, %rax
  mov %rax, (%rsi)
  mov 8(%rbx), %eax
  mov %rax, 8(%rsi)
  lea restorer(%rip), %rax
  mov %rax, 16(%rsi)
  xor %edx, %edx
  mov $8, %r10d
  mov $13, %eax /* rt_sigaction */
action_call:
  syscall
action_call_next:
  add $12, %rbx
each_jump:
  jmp each
set:
  mov $131, %eax /* sigaltstack */
  lea stack(%rip), %rdx
  lea alternate(%rip), %rdi
  mov %rdx, (%rdi)
  xor %esi, %esi
stack_call:
  syscall
stack_call_next:

illegal:
  ud2
illegal_next:
  xor %eax, %eax
pointer:
  mov (%rax), %ecx
breakpoint:
  int3
breakpoint_next:

  mov $39, %eax /* getpid */
pid_call:
  syscall
pid_call_next:
  mov %eax, %ebp
  mov %eax, %edi
  mov $10, %esi /* SIGUSR1 */
  mov $62, %eax /* kill */
kill:
  syscall
kill_next:

  mov $14, %eax /* rt_sigprocmask(SIG_SETMASK, &all, NULL, 8) */
  mov $2, %edi
  lea all(%rip), %rsi
  xor %edx, %edx
  mov $8, %r10d
block:
  syscall
block_next:
  mov %ebp, %edi
  mov $12, %esi /* SIGUSR2 */
  mov $62, %eax
kill_blocked:
  syscall
kill_blocked_next:
  nop
  mov $14, %eax /* rt_sigprocmask(SIG_SETMASK, &none, &old, 8) */
  mov $2, %edi
  lea none(%rip), %rsi
  lea old(%rip), %rdx
  mov $8, %r10d
unblock:
  syscall
unblock_next:
  mov old(%rip), %rax
  or $0x40100, %rax /* SIGKILL and SIGSTOP are never blocked */
  inc %rax
whole:
  jz whole_to /* SIGTRAP was in the mask all the time */
  ud2
whole_to:
again:
  int3 /* and its handler is still there */
again_next:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:

on_illegal:
  addq $2, CONTEXT_RIP(%rdx)
illegal_return:
  ret
on_pointer:
  mov %rsp, CONTEXT_RAX(%rdx)
pointer_return:
  ret
on_trap:
  nop
trap_return:
  ret
on_first:
  mov %ebp, %edi
  mov $12, %esi
  mov $62, %eax
kill_nested:
  syscall
kill_nested_next:
first_return:
  ret
on_second: /* on the other stack */
  lea stack(%rip), %rax
  cmp %rax, %rsp
other:
  ja other_to
  ud2
other_to:
second_return:
  ret
restorer:
  mov $15, %eax /* rt_sigreturn */
resume:
  syscall

  .section .rodata
handlers: /* signal, handler, flags */
  .long 4, on_illegal - _start, SA_RESTORER
  .long 11, on_pointer - _start, SA_RESTORER
  .long 5, on_trap - _start, SA_RESTORER
  .long 10, on_first - _start, SA_RESTORER
  .long 12, on_second - _start, SA_RESTORER | SA_ONSTACK
  .long 0
  .balign 8
all:
  .quad -1
none:
  .quad 0
  .data
  .balign 8
action:
  .quad 0, 0, 0, 0
alternate:
  .quad 0, 0, 16384 /* address, flags, size */
  .bss
  .balign 16
old:
  .skip 8
  .balign 16
stack:
  .skip 16384

/* Run: status 0
# 1 exec _start
1 action_call action_call_next syscall
1 each_jump each jmp
1 action_call action_call_next syscall
1 each_jump each jmp
1 action_call action_call_next syscall
1 each_jump each jmp
1 action_call action_call_next syscall
1 each_jump each jmp
1 action_call action_call_next syscall
1 each_jump each jmp
1 last set jcc
1 stack_call stack_call_next syscall
1 illegal on_illegal interrupt
1 illegal_return restorer ret
1 resume illegal_next iret
1 pointer on_pointer interrupt
1 pointer_return restorer ret
1 resume pointer iret
1 breakpoint breakpoint_next int3
1 breakpoint_next on_trap interrupt
1 trap_return restorer ret
1 resume breakpoint_next iret
1 pid_call pid_call_next syscall
1 kill kill_next syscall
1 kill_next on_first interrupt
1 kill_nested kill_nested_next syscall
1 kill_nested_next on_second interrupt
1 other other_to jcc
1 second_return restorer ret
1 resume kill_nested_next iret
1 first_return restorer ret
1 resume kill_next iret
1 block block_next syscall
1 kill_blocked kill_blocked_next syscall
1 unblock unblock_next syscall
1 unblock_next on_second interrupt
1 other other_to jcc
1 second_return restorer ret
1 resume unblock_next iret
1 whole whole_to jcc
1 again again_next int3
1 again_next on_trap interrupt
1 trap_return restorer ret
1 resume again_next iret
1 exit exit_next syscall
# 1 exit 0
*/
