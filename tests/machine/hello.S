/* SPDX-License-Identifier: Apache-2.0
 *
 * A boot sector as most begin: some text through the firmware, then a jump to itself with interrupts on.
 */
  .code16
  .globl _start
_start:
  mov $0x0003, %ax
  int $0x10
  mov $text, %si
1:
  lodsb
  test %al, %al
  jz 2f
  mov $0x0E, %ah
  mov $0x0007, %bx
  int $0x10
  jmp 1b
2:
  mov $0x1301, %ax /* a string with attribute 1Eh at row 3, column 5 */
  mov $0x001E, %bx
  mov $5, %cx
  mov $0x0305, %dx
  mov $word, %bp
  int $0x10
  jmp .

text:
  .asciz "Hello\r\nfrom sector 0\b1"
word:
  .ascii "yello"
  .org 510
  .word 0xAA55
