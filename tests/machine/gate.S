/* SPDX-License-Identifier: Apache-2.0
 *
 * A20: with the gate closed FFFF:0510 is 0000:0500, with it open it is not. Results at 0x1000: what was read through the
 * closed gate, through the open one, and INT 15h's idea of it after each.
 */
  .code16
  .globl _start
_start:
  mov $0xFFFF, %ax
  mov %ax, %es
  movb $0x11, %es:0x0510 /* open at start */
  movb $0x22, 0x0500
  mov $0x2400, %ax
  int $0x15
  mov %es:0x0510, %al
  mov %al, 0x1000
  mov $0x2402, %ax
  int $0x15
  mov %al, 0x1002
  mov $0x2401, %ax
  int $0x15
  mov %es:0x0510, %al
  mov %al, 0x1001
  mov $0x2402, %ax
  int $0x15
  mov %al, 0x1003
  in $0x92, %al /* and by the port */
  and $0xFC, %al
  out %al, $0x92
  mov %es:0x0510, %al
  mov %al, 0x1004
  cli
  hlt
  .org 510
  .word 0xAA55
