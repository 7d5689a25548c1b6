/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kind of branch that a program can make, and those that are not taken. No libc, no absolute address: it runs as
 * PIE too. What the oracle lists is at the end, with labels for addresses.
 */
  .globl _start
_start:
  xor %eax, %eax
  inc %eax /* not zero, positive, no carry */
not_zero:
  jz wrong
not_carry:
  jc wrong
short:
  jnz short_to
  ud2
short_to:
  cmp $2, %eax
long: .byte 0x0F, 0x82 /* JB with 32 bits */
  .long long_to - . - 4
  ud2
long_to:
  test %eax, %eax
to_next:
  jnz to_next_to /* taken, although it leads where it would go anyway */
to_next_to:
  test %eax, %eax
never:
  jz never_to /* not taken, to the same place */
never_to:
  mov $3, %ecx
looping:
  nop
loop:
  loop looping /* twice; the third goes on */
empty:
  jrcxz empty_to
  ud2
empty_to:
  mov $5, %ecx
compare:
  cmp $3, %ecx
until:
  loopne compare /* at 5 and 4; 3 is equal */
full:
  jrcxz full_to
full_to:
  xor %edx, %edx
while:
  loope while_to
  ud2
while_to:
  movabs $0x100000000, %rcx
narrow:
  jecxz narrow_to /* only the low half counts */
  ud2
narrow_to:
jump_short:
  jmp jump_short_to
  ud2
jump_short_to:
jump: .byte 0xE9
  .long jump_to - . - 4
  ud2
jump_to:
  lea jump_register_to(%rip), %rax
jump_register:
  jmp *%rax
  ud2
jump_register_to:
  lea jump_memory_to(%rip), %rax
  mov %rax, -8(%rsp)
jump_memory:
  jmp *-8(%rsp)
  ud2
jump_memory_to:
call:
  call function
call_next:
  pop %rax
call_zero:
  call call_zero_to /* to read the instruction pointer */
call_zero_to:
  pop %rax
  lea function(%rip), %rax
call_register:
  call *%rax
call_register_next:
  mov %rax, (%rsp)
call_memory:
  call *(%rsp)
call_memory_next:
  lea tail(%rip), %rbx
  push $7
  push $8
call_tail:
  call *%rbx
call_tail_next:
  mov %rsp, %rbp
  mov %cs, %eax
  push %rax
  lea far_to(%rip), %rcx
  push %rcx
far:
  lretq
  ud2
far_to:
  mov %ss, %ecx
  push %rcx /* the frame of IRETQ: SS, RSP, RFLAGS, CS, RIP */
  push %rbp
  pushfq
  push %rax
  lea interrupt_to(%rip), %rcx
  push %rcx
interrupt:
  iretq
  ud2
interrupt_to:
  mov $39, %eax /* getpid */
number:
  syscall
number_next:
  mov $20, %eax /* getpid, by the way of 32-bit programs */
old:
  int $0x80
old_next:
prefixed:
  call two_bytes
prefixed_next:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:
wrong:
  ud2

function:
  pushq (%rsp)
  nop
return:
  ret $8 /* the copy is gone with the address below it */

tail:
  nop
tail_jump:
  jmp tail_function
tail_function:
  nop
return_16:
  ret $16 /* and two arguments */

two_bytes:
  repz ret /* two bytes, as compilers wrote it for AMD */

/* Run: status 0
# 1 exec _start
1 short short_to jcc
1 long long_to jcc
1 to_next to_next_to jcc
1 loop looping jcc
1 loop looping jcc
1 empty empty_to jcc
1 until compare jcc
1 until compare jcc
1 while while_to jcc
1 narrow narrow_to jcc
1 jump_short jump_short_to jmp
1 jump jump_to jmp
1 jump_register jump_register_to jmp_ind
1 jump_memory jump_memory_to jmp_ind
1 call function call
1 return call_next ret
1 call_zero call_zero_to call
1 call_register function call_ind
1 return call_register_next ret
1 call_memory function call_ind
1 return call_memory_next ret
1 call_tail tail call_ind
1 tail_jump tail_function jmp
1 return_16 call_tail_next ret
1 far far_to retf
1 interrupt interrupt_to iret
1 number number_next syscall
1 old old_next int
1 prefixed two_bytes call
1 two_bytes prefixed_next ret
1 exit exit_next syscall
# 1 exit 0
*/
