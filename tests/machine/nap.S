/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspends to RAM (ACPI's S3). The test has written `wake` into the FACS, and what wakes the machine to EVENTS: bits of
 * PM1's enable register. The RTC's alarm is set to the next second. What is found at the waking vector goes to FOUND.
 */
  .set EVENTS, 0x1000
  .set STARTS, 0x1004 /* how often it began */
  .set KEPT, 0x1008
  .set AFTER, 0x100C /* an instruction behind the one that sleeps was executed */
  .set FOUND, 0x1010
  .code16
  .globl _start
_start:
  incl STARTS
  movl $0x11223344, KEPT
  mov $0x1D9, %ecx /* LBR on, and a branch for it */
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  jmp 1f
1:mov $0x0C, %al
  out %al, $0x70
  in $0x71, %al
  .irp register, 1, 3, 5
  mov $\register, %al
  out %al, $0x70
  mov $0xFF, %al
  out %al, $0x71
  .endr
  mov $0x0B, %al
  out %al, $0x70
  mov $0x22, %al /* the alarm's interrupt, 24 hours */
  out %al, $0x71
  cli
  mov $0x602, %dx
  mov EVENTS, %ax
  out %ax, %dx
  mov $0x604, %dx
  mov $0x2401, %ax
  mov $0x55AA55AA, %ebp
  out %ax, %dx
  movl $1, AFTER
  hlt

  .balign 16
  .space 4
wake: /* at 07C?:0004; the test looks for these bytes */
  .byte 0xEB, 0x04
  .ascii "WAKE"
  xor %bx, %bx
  mov %bx, %ds
  mov %ebp, FOUND
  mov %cs, FOUND + 4
  mov %ss, FOUND + 6
  mov %sp, FOUND + 8
  pushf
  popw FOUND + 10
  mov $0x600, %dx
  in %dx, %ax
  mov %ax, FOUND + 12
  mov $0x1D9, %ecx
  rdmsr
  mov %eax, FOUND + 16
  mov $0x680, %ecx
  rdmsr
  mov %eax, FOUND + 20
  mov %cr0, %eax
  mov %eax, FOUND + 24
  mov $0x2A, %al
  out %al, $0xF4
  cli
  hlt
  .org 510
  .word 0xAA55
