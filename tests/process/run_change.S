/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that changes between mprotect calls, is unmapped and mapped again at the same address. Status 42 if each call ran
 * what was there.
 */
.macro system number
  mov $\number, %eax
  syscall
.endm

.text
.global _start
_start:
  mov $0x10000000, %r12
  mov $1, %r13d
  xor %r14d, %r14d
again:
  mov %r12, %rdi
  mov $4096, %esi
  mov $3, %edx
  mov $0x32, %r10d
  mov $-1, %r8
  xor %r9d, %r9d
  system 9
  movb $0xB8, (%r12) /* mov $r13, %eax; ret */
  mov %r13d, 1(%r12)
  movb $0xC3, 5(%r12)
  call protect_execute
  call *%r12
  add %eax, %r14d
  mov %r12, %rdi
  mov $4096, %esi
  mov $3, %edx
  system 10
  movl $20, 1(%r12)
  call protect_execute
  call *%r12
  add %eax, %r14d
  mov %r12, %rdi
  mov $4096, %esi
  system 11
  dec %r13d
  jz again
  mov %r14d, %edi /* 1 + 20 + 0 + 20 */
  inc %edi
  system 231

protect_execute:
  mov %r12, %rdi
  mov $4096, %esi
  mov $5, %edx
  system 10
  ret

.section .note.GNU-stack, "", @progbits
