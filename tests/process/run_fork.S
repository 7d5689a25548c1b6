/* SPDX-License-Identifier: Apache-2.0
 *
 * A child, by fork, that branches long after its parent has gone on; the parent's list must show nothing of it. The
 * parent's status is the child's plus 2.
 */
.text
.global _start
_start:
  mov $57, %eax
  syscall
  test %eax, %eax
  jz child
  mov $-1, %rdi
  lea -128(%rsp), %rsi
  xor %edx, %edx
  xor %r10d, %r10d
  mov $61, %eax
  syscall
  movzbl -127(%rsp), %edi
  add $2, %edi
  mov $231, %eax
  syscall

child:
  mov $1000, %ecx
1:
  loop 1b
  call here
here:
  mov $40, %edi
  mov $231, %eax
  syscall

.section .note.GNU-stack, "", @progbits
