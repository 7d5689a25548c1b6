/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes to the ports that the host hears: debug, serial, exit.
 */
  .code16
  .globl _start
_start:
  mov $'d', %al
  out %al, $0xE9
  mov $0x3F8, %dx
  mov $'s', %al
  out %al, %dx
  mov $0x0154, %ax /* and through INT 14h */
  xor %dx, %dx
  int $0x14
  mov $0x2A, %al
  out %al, $0xF4
  movb $1, 0x1000 /* if it is run on */
  cli
  hlt
  .org 510
  .word 0xAA55
