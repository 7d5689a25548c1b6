/* SPDX-License-Identifier: Apache-2.0
 *
 * A switch as compilers make it, a table of functions, and recursion. No libc; runs as PIE.
 */
  .globl _start
_start:
  xor %ebx, %ebx /* the case */
  xor %ebp, %ebp /* the sum */
again:
  cmp $4, %ebx
above:
  ja other
  lea cases(%rip), %rdx
  movslq (%rdx, %rbx, 4), %rax
  add %rdx, %rax
switch:
  jmp *%rax
case_0:
  add $1, %ebp
break_0:
  jmp break
case_1: /* falls through */
  add $10, %ebp
case_2:
  add $100, %ebp
break_2:
  jmp break
case_3:
  lea functions(%rip), %rdx
  movslq 4(%rdx), %rax
  add %rdx, %rax
call_3:
  call *%rax
call_3_next:
break_3:
  jmp break
other:
  mov $4, %edi
call_other:
  call factorial
call_other_next:
  cmp $24, %eax
right:
  je done
  ud2
break:
  inc %ebx
break_jump:
  jmp again
done:
  mov %ebp, %edi
  mov $231, %eax /* exit_group(1 + 10 + 100 + 100 + 20 + 0) */
exit:
  syscall
exit_next:

ten:
  ud2
twenty:
  add $20, %ebp
twenty_return:
  ret

factorial:
  cmp $1, %edi
deeper:
  ja deeper_to
  mov $1, %eax
bottom:
  ret
deeper_to:
  push %rdi
  dec %edi
inner:
  call factorial
inner_next:
  pop %rdi
  mul %edi
back:
  ret

  .section .rodata
  .balign 4
cases:
  .long case_0 - cases, case_1 - cases, case_2 - cases, case_3 - cases, break - cases
functions:
  .long ten - functions, twenty - functions

/* Run: status 231
# 1 exec _start
1 switch case_0 jmp_ind
1 break_0 break jmp
1 break_jump again jmp
1 switch case_1 jmp_ind
1 break_2 break jmp
1 break_jump again jmp
1 switch case_2 jmp_ind
1 break_2 break jmp
1 break_jump again jmp
1 switch case_3 jmp_ind
1 call_3 twenty call_ind
1 twenty_return call_3_next ret
1 break_3 break jmp
1 break_jump again jmp
1 switch break jmp_ind
1 break_jump again jmp
1 above other jcc
1 call_other factorial call
1 deeper deeper_to jcc
1 inner factorial call
1 deeper deeper_to jcc
1 inner factorial call
1 deeper deeper_to jcc
1 inner factorial call
1 bottom inner_next ret
1 back inner_next ret
1 back inner_next ret
1 back call_other_next ret
1 right done jcc
1 exit exit_next syscall
# 1 exit 231
*/
