/* SPDX-License-Identifier: Apache-2.0
 *
 * Echoes keys, and stores what INT 16h returned from 0x1000 on, until Enter. Then asks once more, for ever.
 */
  .code16
  .globl _start
_start:
  mov $0x1000, %di
1:
  xor %ah, %ah
  int $0x16
  mov %ax, (%di)
  add $2, %di
  mov $0x0E, %ah
  mov $7, %bx
  int $0x10
  cmp $13, %al
  jne 1b
  mov $0x01, %ah /* nothing more: ZF */
  int $0x16
  pushf
  pop %ax
  and $0x40, %ax
  mov %ax, (%di)
  xor %ah, %ah
  int $0x16
  movw $1, 2(%di)
  jmp .
  .org 510
  .word 0xAA55
