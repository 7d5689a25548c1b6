/* SPDX-License-Identifier: Apache-2.0
 *
 * String instructions with REP: many iterations, none, and an early end; both directions. None of it is a branch. The
 * last one faults halfway, and its handler makes the rest of it writable.
 */
  .globl _start
_start:
  mov $13, %eax /* rt_sigaction(SIGSEGV, &action, NULL, 8) */
  mov $11, %edi
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
  lea page(%rip), %rdi
  mov $'x', %al
  mov $100, %ecx
  rep stosb
  lea page(%rip), %rsi
  lea page + 1000(%rip), %rdi
  mov $13, %ecx
  rep movsq
  xor %ecx, %ecx
  rep movsq
before:
  jrcxz after
  ud2
after:
  movb $'y', page + 20(%rip)
  lea page(%rip), %rdi
  mov $100, %ecx
  repne scasb /* 1: 'x' at once */
  mov $100, %ecx
  repe scasb /* until the 'y' */
equal:
  jne equal_to
  ud2
equal_to:
  cmp $80, %ecx
count:
  je count_to
  ud2
count_to:
  std
  lea page + 50(%rip), %rsi
  lea page + 60(%rip), %rdi
  mov $20, %ecx
  rep movsb
  cld
  lea page + 8(%rip), %rsi
  lea page(%rip), %rdi
  mov $3, %ecx
  repe cmpsq
  mov $10, %eax /* mprotect(page + 4096, 4096, PROT_NONE) */
  lea page + 4096(%rip), %rdi
  mov $4096, %esi
  xor %edx, %edx
protect:
  syscall
protect_next:
  lea page + 4080(%rip), %rdi
  mov $32, %ecx
faulting:
  rep stosb /* 16 of them go well */
stored:
  jrcxz stored_to
  ud2
stored_to:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:

handler:
  mov $10, %eax /* mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE) */
  lea page + 4096(%rip), %rdi
  mov $4096, %esi
  mov $3, %edx
repair:
  syscall
repair_next:
handled:
  ret
restorer:
  mov $15, %eax /* rt_sigreturn */
resume:
  syscall

  .data
action:
  .quad 0, 0x04000000, 0, 0 /* handler, SA_RESTORER, restorer, mask */
  .bss
  .balign 4096
page:
  .skip 8192

/* Run: status 0
# 1 exec _start
1 set set_next syscall
1 before after jcc
1 equal equal_to jcc
1 count count_to jcc
1 protect protect_next syscall
1 faulting handler interrupt
1 repair repair_next syscall
1 handled restorer ret
1 resume faulting iret
1 stored stored_to jcc
1 exit exit_next syscall
# 1 exit 0
*/
