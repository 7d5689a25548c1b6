/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the firmware for memory in all ways: E820h to 0x1000 (24 bytes each, how many at 0x0FF0), E801h at 0x0FE0, 88h at
 * 0x0FE8, INT 12h at 0x0FEA, INT 11h at 0x0FEC. Then waits with interrupts off.
 */
  .code16
  .globl _start
_start:
  xor %ebx, %ebx
  xor %esi, %esi
  mov $0x1000, %di
1:
  mov $0xE820, %eax
  mov $0x534D4150, %edx
  mov $24, %ecx
  int $0x15
  jc 2f
  cmp $0x534D4150, %eax
  jne 2f
  inc %si
  add $24, %di
  test %ebx, %ebx
  jnz 1b
2:
  mov %si, 0x0FF0
  mov $0xE801, %ax
  int $0x15
  mov %ax, 0x0FE0
  mov %bx, 0x0FE2
  mov %cx, 0x0FE4
  mov %dx, 0x0FE6
  mov $0x88, %ah
  int $0x15
  mov %ax, 0x0FE8
  int $0x12
  mov %ax, 0x0FEA
  int $0x11
  mov %ax, 0x0FEC
  mov $0x5300, %ax /* APM: there is none */
  int $0x15
  sbb %cx, %cx
  mov %cx, 0x0FEE
  cli
  hlt
  jmp .
  .org 510
  .word 0xAA55
