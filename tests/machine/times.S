/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest that reads its time-stamp counter at five marks, and sends the readings to the serial port as bytes, the
 * lowest first. Between the marks: a loop; 5966 ticks of the timer, for which it waits in HLT (5 ms); a loop with longer
 * rounds; three times 1193 ticks (1 ms each). After each reading comes a jump to the next instruction.
 */
  .set READINGS, 0x1000

  .macro MARK
  rdtsc
  mov %eax, (%di)
  mov %edx, 4(%di)
  add $8, %di
  jmp 1f
1:
  .endm

  .macro WAIT ticks /* mode 0: an interrupt after so many ticks */
  mov $0x30, %al
  out %al, $0x43
  mov $\ticks & 0xFF, %al
  out %al, $0x40
  mov $\ticks >> 8, %al
  out %al, $0x40
  sti
  hlt
  cli
  .endm

  .code16
  .globl _start
_start:
  cli
  xor %ax, %ax
  mov %ax, %ds
  mov %ax, %ss
  mov $0x7C00, %sp
  movw $tick, 8 * 4
  mov %ax, 8 * 4 + 2
  mov $0xFE, %al /* no interrupt but the timer's */
  out %al, $0x21
  mov $READINGS, %di
  MARK
  mov $60000, %cx
2:dec %cx
  jnz 2b
  MARK
  WAIT 5966
  MARK
  mov $60000, %cx
3:nop
  nop
  nop
  dec %cx
  jnz 3b
  MARK
  .rept 3
  WAIT 1193
  .endr
  MARK
  mov $READINGS, %si
  mov $40, %cx
  mov $0x3F8, %dx
4:lodsb
  out %al, %dx
  loop 4b
  xor %al, %al
  out %al, $0xF4
  hlt

tick:
  push %ax
  mov $0x20, %al
  out %al, $0x20
  pop %ax
  iret
  .org 510
  .word 0xAA55
