/* SPDX-License-Identifier: Apache-2.0
 *
 * Boots four times: by INT 19h, by the reset port, by the keyboard controller, and then ends. The word at 0x1000 counts.
 * Before that it goes through a reset that only the processor takes (CMOS 0Fh = 0Ah, pointer at 40:67).
 */
  .code16
  .globl _start
_start:
  cmpw $0, 0x1002
  jne 1f
  movw $1, 0x1002
  mov $0x8F, %al
  out %al, $0x70
  mov $0x0A, %al
  out %al, $0x71
  movw $resumed, 0x467
  movw $0, 0x469
  mov $0xFE, %al
  out %al, $0x64
2:
  hlt
  jmp 2b
resumed:
  xor %ax, %ax
  mov %ax, %ds
  movw $0x600D, 0x1004
1:
  incw 0x1000
  cmpw $1, 0x1000
  je 3f
  cmpw $2, 0x1000
  je 4f
  cmpw $3, 0x1000
  je 5f
  cli
  hlt
3:
  int $0x19
4:
  mov $0xCF9, %dx
  mov $0x06, %al
  out %al, %dx
  jmp .
5:
  mov $0xFE, %al
  out %al, $0x64
  jmp .
  .org 510
  .word 0xAA55
