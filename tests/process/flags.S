/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a debugger's TF could show: PUSHF in both sizes, behind MOV SS, R11 after SYSCALL. The exit status is 0 if it
 * did not. MOV SS holds traps back by one instruction: branches in that place are easily missed.
 */
  .globl _start
_start:
  xor %ebx, %ebx
  pushfq
  pop %rax
  or %eax, %ebx
  pushfw
  pop %ax
  movzwl %ax, %eax
  or %eax, %ebx
  mov %ss, %edx
  mov %edx, %ss
  pushfq /* in the shadow */
  pop %rax
  or %eax, %ebx
  mov %edx, %ss
shadow:
  jmp shadow_to
  ud2
shadow_to:
  lea function(%rip), %rdi
  mov %edx, %ss
shadow_call:
  call *%rdi
shadow_call_next:
  mov %edx, %ss
  mov %edx, %ss
twice:
  jmp twice_to
  ud2
twice_to:
  stc
  mov %edx, %ss
shadow_not:
  jnc wrong
  mov $39, %eax /* getpid */
call:
  syscall
call_next:
  or %r11d, %ebx
  pushfq
  popfq
  pushfq
  orl $1, (%rsp) /* carry */
  popfq
carry:
  jc carry_to
  ud2
carry_to:
  xor %edi, %edi
  test $0x100, %ebx
clean:
  jz clean_to
  inc %edi
clean_to:
  mov $231, %eax /* exit_group */
exit:
  syscall
exit_next:
wrong:
  ud2

function:
  mov %edx, %ss
return:
  ret

/* Run: status 0
# 1 exec _start
1 shadow shadow_to jmp
1 shadow_call function call_ind
1 return shadow_call_next ret
1 twice twice_to jmp
1 call call_next syscall
1 carry carry_to jcc
1 clean clean_to jcc
1 exit exit_next syscall
# 1 exit 0
*/
