/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks vectors. INT 10h goes through a counter at 0x1000 and then to the firmware; INT 1Ch counts ticks at 0x1002, which a
 * loop of HLT waits for. Then INT 15h waits 500 ms, and the ticks of the BIOS data area go to 0x1004 (before) and 0x1008.
 */
  .code16
  .globl _start
_start:
  cli
  mov 0x40, %eax
  mov %eax, old
  movw $video, 0x40
  movw $0, 0x42
  movw $tick, 0x70
  movw $0, 0x72
  sti
  mov $0x0E41, %ax
  int $0x10
  mov $0x0E42, %ax
  int $0x10
1:
  hlt
  cmpw $5, 0x1002
  jb 1b
  mov 0x46C, %eax
  mov %eax, 0x1004
  mov $0x86, %ah
  mov $0x0007, %cx
  mov $0xA120, %dx
  int $0x15
  mov 0x46C, %eax
  mov %eax, 0x1008
  sti
2:
  hlt
  jmp 2b

video:
  incw %cs:0x1000
  ljmp *%cs:old
tick:
  incw %cs:0x1002
  iret
old:
  .long 0
  .org 510
  .word 0xAA55
