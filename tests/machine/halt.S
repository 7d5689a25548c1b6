/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to wait: -DWAY says which. 1: jump to itself, interrupts on. 2: a loop of HLT, interrupts on. 3: HLT, interrupts off.
 * 4: jump to itself, interrupts off. 5: as 2, with a vector 1Ch of its own, which changes memory. 6: a loop of HLT that
 * does something. 7: interrupts on, but all masked. 8: as 2 in 32-bit code with a timer handler of its own.
 */
  .code16
  .globl _start
_start:
#if WAY == 1
  jmp .
#elif WAY == 2
1:
  sti
  hlt
  nop
  jmp 1b
#elif WAY == 3
  cli
1:
  hlt
  jmp 1b
#elif WAY == 4
  cli
  jmp .
#elif WAY == 5
  cli
  movw $handler, 0x70
  movw $0, 0x72
  sti
1:
  hlt
  jmp 1b
handler:
  incw %cs:0x1000
  iret
#elif WAY == 6
1:
  hlt
  incw 0x1000
  jmp 1b
#elif WAY == 7
  mov $0xFF, %al
  out %al, $0x21
  sti
1:
  hlt
  jmp 1b
#elif WAY == 8
  cli
  mov $0xF8, %al
  out %al, $0x21
  lgdt gdtr
  lidt idtr
  mov %cr0, %eax
  inc %ax
  mov %eax, %cr0
  ljmp $8, $2f
  .code32
2:
  mov $16, %ax
  mov %ax, %ds
  mov %ax, %es
  mov %ax, %ss
  mov $0x7C00, %esp
  sti
1:
  hlt
  jmp 1b
handler:
  incw 0x1000
  push %eax
  mov $0x20, %al
  out %al, $0x20
  pop %eax
  iret
  .balign 8
gdt:
  .quad 0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF
idt:
  .fill 8, 8, 0
  .word handler - _start + 0x7C00, 8, 0x8E00, 0
gdtr:
  .word 23
  .long gdt
idtr:
  .word 71
  .long idt
#endif
  .org 510
  .word 0xAA55
