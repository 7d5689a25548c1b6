/* SPDX-License-Identifier: Apache-2.0
 *
 * What the recorder cannot do, or could not at first, one thing for each definition.
 */
.text
.global _start
_start:
#ifdef THREAD
  mov $56, %eax
  mov $0x50F00, %edi /* CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */
  lea -4096(%rsp), %rsi
  syscall
#endif
#ifdef EXEC
  mov $59, %eax
  lea path(%rip), %rdi
  xor %esi, %esi
  xor %edx, %edx
  syscall
#endif
#ifdef SIGNAL
  mov $13, %eax
  mov $10, %edi
  lea action(%rip), %rsi
  xor %edx, %edx
  mov $8, %r10d
  syscall
  mov $13, %eax /* and what it says is what was asked for */
  xor %esi, %esi
  lea old(%rip), %rdx
  syscall
  lea handler(%rip), %rax
  cmp %rax, old(%rip)
  jne finish
  mov $39, %eax
  syscall
  mov %eax, %edi
  mov $10, %esi
  mov $62, %eax
  syscall
#endif
#ifdef GS
  mov $158, %eax
  mov $0x1001, %edi
  xor %esi, %esi
  syscall
#endif
#ifdef GS_BASE
  nop
  rdgsbase %rax
#endif
#ifdef FAR
  nop
  lea finish(%rip), %rax
  pushq $0x23 /* the 32-bit code segment */
  push %rax
  lretq
#endif
finish:
  mov $231, %eax
  mov $42, %edi
  syscall
handler:
  ud2

.data
path: .asciz "/bin/true"
.balign 8
action: .quad handler, 0x04000000, handler, 0
old: .quad 0, 0, 0, 0

.section .note.GNU-stack, "", @progbits
