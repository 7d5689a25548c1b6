/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that single-steps itself: it sets TF, and its SIGTRAP handler counts the traps. It must see its own
 * traps, and TF in its own flags, whoever steps it from outside.
 */
  .globl _start
_start:
  mov $13, %eax /* rt_sigaction(SIGTRAP, &action, NULL, 8) */
  mov $5, %edi
  lea action(%rip), %rsi
  lea handler(%rip), %rdx
  mov %rdx, (%rsi)
  lea restorer(%rip), %rdx
  mov %rdx, 16(%rsi)
  xor %edx, %edx
  mov $8, %r10d
set:
  syscall
set_next:
  xor %ebx, %ebx
  pushfq
  orq $0x100, (%rsp)
  popfq /* from the end of the next instruction on there are traps */
  pushfq
first:
  pop %rax
second:
  jmp third
  ud2
third:
  push %rax
fourth:
  andq $~0x100, (%rsp)
fifth:
  popfq
sixth:
  test $0x100, %eax
seen:
  jnz seen_to
  ud2
seen_to:
  cmp $6, %ebx
six:
  je six_to
  ud2
six_to:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:

handler:
  incl count(%rip)
  mov count(%rip), %ebx
  mov %rbx, 128(%rdx) /* RBX of the ucontext_t */
handled:
  ret
restorer:
  mov $15, %eax /* rt_sigreturn */
resume:
  syscall

  .data
  .balign 8
action:
  .quad 0, 0x04000000, 0, 0
count:
  .long 0

/* Run: status 0
# 1 exec _start
1 set set_next syscall
1 first handler interrupt
1 handled restorer ret
1 resume first iret
1 second handler interrupt
1 handled restorer ret
1 resume second iret
1 second third jmp
1 third handler interrupt
1 handled restorer ret
1 resume third iret
1 fourth handler interrupt
1 handled restorer ret
1 resume fourth iret
1 fifth handler interrupt
1 handled restorer ret
1 resume fifth iret
1 sixth handler interrupt
1 handled restorer ret
1 resume sixth iret
1 seen seen_to jcc
1 six six_to jcc
1 exit exit_next syscall
# 1 exit 0
*/
