/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads with INT 13h from the drive it was booted from. 0x1000: drive, then words: CF and AX of each of the calls below.
 * 0x2000: sector 2 by cylinder, head, sector. 0x2200: sector 1 by LBA. 0x1100: CX, DX, BX of AH=08h.
 */
  .code16
  .globl _start
_start:
  mov %dl, 0x1000
  mov $0x1002, %di
  xor %ax, %ax
  call disk /* reset */
  mov $0x0201, %ax
  mov $0x2000, %bx
  mov $0x0002, %cx
  mov $0, %dh
  call disk
  mov $0x0201, %ax /* sector 0 does not exist */
  mov $0x0000, %cx
  call disk
  mov $0x01, %ah /* which the last status tells again */
  call disk
  mov $0x41, %ah
  mov $0x55AA, %bx
  call disk
  mov $0x42, %ah
  mov $packet, %si
  call disk
  mov $0x0301, %ax /* writes itself to the third sector and reads it back */
  mov $0x7C00, %bx
  mov $0x0003, %cx
  mov $0, %dh
  call disk
  mov $0x0201, %ax
  mov $0x2400, %bx
  call disk
  mov $0x15, %ah
  call disk
  push %es
  push %di
  mov $0x08, %ah
  mov 0x1000, %dl
  int $0x13
  pop %di
  pop %es
  mov %cx, 0x1100
  mov %dx, 0x1102
  mov %bx, 0x1104
  cli
  hlt

disk:
  mov 0x1000, %dl
  push %cx
  int $0x13
  pop %cx
  pushf
  mov %ax, 2(%di)
  pop %ax
  and $1, %ax
  mov %ax, (%di)
  add $4, %di
  ret

packet:
  .byte 16, 0
  .word 1, 0x2200, 0
  .quad 1
  .org 510
  .word 0xAA55
  .fill 512, 1, 0x5A
