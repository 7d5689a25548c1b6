/* SPDX-License-Identifier: Apache-2.0
 *
 * More blocks than a log of any size that tests use: it goes round.
 */
.text
.global _start
_start:
  mov $1000003, %ecx
1:
  call 2f
  dec %ecx
  jnz 1b
  mov $231, %eax
  mov $42, %edi
  syscall
2:
  ret

.section .note.GNU-stack, "", @progbits
