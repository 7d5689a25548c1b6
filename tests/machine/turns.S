/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest of two processors that run loops at the same time. Each reads its time-stamp counter before and after its
 * loop; the first one sends the four readings to the serial port as bytes, the lowest first: its own, then those of the
 * other. After each reading comes a jump to the next instruction.
 */
  .set READINGS, 0x1000
  .set FLAG, 0x1100

  .macro MARK
  rdtsc
  mov %eax, (%di)
  mov %edx, 4(%di)
  add $8, %di
  jmp 1f
1:
  .endm

  .macro SPIN rounds
  mov $\rounds, %ecx
2:dec %ecx
  jnz 2b
  .endm

  .code16
  .globl _start
_start:
  cli
  xor %ax, %ax
  mov %ax, %ds
  movb $0, FLAG
  mov $0x1B, %ecx /* x2APIC; INIT and SIPI to the other: it begins at 0x8000 */
  rdmsr
  or $0xC00, %eax
  wrmsr
  mov $0x830, %ecx
  xor %edx, %edx
  mov $0xC4500, %eax
  wrmsr
  mov $0xC4608, %eax
  wrmsr
  mov $READINGS, %di
  MARK
  SPIN 300000
  MARK
3:pause
  cmpb $0, FLAG
  je 3b
  mov $READINGS, %si
  mov $32, %cx
  mov $0x3F8, %dx
4:lodsb
  out %al, %dx
  loop 4b
  xor %al, %al
  out %al, $0xF4
  hlt

  .org 0x400
  cli
  xor %ax, %ax
  mov %ax, %ds
  mov $READINGS + 16, %di
  MARK
  SPIN 200000
  MARK
  movb $1, FLAG
  hlt
