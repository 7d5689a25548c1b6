/* SPDX-License-Identifier: Apache-2.0
 *
 * Dies by a jump to address 0, or, with DATA, into memory that may not be executed: the branch there is the last one.
 */
.text
.global _start
_start:
  mov $3, %ecx
1:
  dec %ecx
  jnz 1b
  xor %eax, %eax
#ifdef DATA
  lea data(%rip), %rax
#endif
  call *%rax
  ud2

.data
data:
  ret

.section .note.GNU-stack, "", @progbits
