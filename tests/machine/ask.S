/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks INT 16h for a key over and over until the clock has ticked 18 times, as a menu does that counts down.
 */
  .code16
  .globl _start
_start:
  mov 0x46C, %bx
  add $18, %bx
1:
  mov $0x01, %ah
  int $0x16
  cmp %bx, 0x46C
  jne 1b
  movw $1, 0x1000
  jmp .
  .org 510
  .word 0xAA55
