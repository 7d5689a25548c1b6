/* SPDX-License-Identifier: Apache-2.0
 *
 * A program for tests of what is made of traces: scan TEXT exits with the number of a's in TEXT. No libc; runs as PIE. For
 * each letter it takes: call vowel; if it is an a, the jump at vowel_test; a return; the jump back.
 */
  .globl _start, scan, vowel
  .type _start, @function
  .type scan, @function
  .type vowel, @function
_start:
  mov 16(%rsp), %rsi /* argv[1] */
  call scan
  mov %eax, %edi
  mov $60, %eax /* exit */
  syscall
  .size _start, . - _start

scan:
  xor %ebx, %ebx
.Lnext:
  movzbl (%rsi), %edi
  test %edi, %edi
  jz .Lend
  call vowel
  add %eax, %ebx
  inc %rsi
  jmp .Lnext
.Lend:
  mov %ebx, %eax
  ret
  .size scan, . - scan

vowel:
  cmp $'a', %edi
  je .Lyes
  xor %eax, %eax
  ret
.Lyes:
  mov $1, %eax
  ret
  .size vowel, . - vowel

  .section .note.GNU-stack, "", @progbits
