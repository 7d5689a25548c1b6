/* SPDX-License-Identifier: Apache-2.0
 *
 * Far jumps, calls and returns within the code segment. AMD's processors have no far pointers with an offset of 64
 * bits, so this is for programs below 4 GB: no PIE.
 */
  .globl _start
_start:
  mov %cs, %eax
  mov %ax, pointer + 4
  movl $jump_to, pointer
jump:
  ljmp *pointer
  ud2
jump_to:
  movl $function, pointer
call:
  lcall *pointer
call_next:
  push %rax
  push $return_to
return:
  lretq
  ud2
return_to:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:

function:
  nop
back:
  lretl /* offset and selector have 32 bits each */

  .bss
pointer:
  .skip 6

/* Run: status 0
# 1 exec _start
1 jump jump_to jmp_far
1 call function call_far
1 back call_next retf
1 return return_to retf
1 exit exit_next syscall
# 1 exit 0
*/
