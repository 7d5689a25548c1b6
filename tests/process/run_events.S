/* SPDX-License-Identifier: Apache-2.0
 *
 * A log that is nearly all events, of which one half of each address is as small as a number of a step: each call of the
 * vsyscall page (time) is two. The parts of the log end at different places in an event, because each trip leaves the
 * inner loop after another number of turns.
 */
.text
.global _start
_start:
  mov $500000, %r12d
  mov $0xFFFFFFFFFF600400, %rbx
1:
  xor %edi, %edi
  call *%rbx
  imul $0x9E3779B1, %r12d, %r13d
  shr $29, %r13d
2:
  dec %r13d
  jns 2b
  dec %r12d
  jnz 1b
  mov $231, %eax
  mov $42, %edi
  syscall

.section .note.GNU-stack, "", @progbits
