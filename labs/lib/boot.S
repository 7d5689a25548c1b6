/* SPDX-License-Identifier: Apache-2.0
 *
 * Start and end of every lab: multiboot header, segments, interrupt table, the table of the CPU, the verdict.
 */
#include "lab.inc"

.section .multiboot, "a"
  .align 4
  .long 0x1BADB002, 0, -0x1BADB002

.section .boot, "ax"
.global start
start:
  cli
  mov esp, offset stack_top
  lgdt [gdt_pointer]
  jmp KERNEL_CS:1f
1:
  mov eax, KERNEL_DS
  mov ds, eax
  mov es, eax
  mov ss, eax
  xor eax, eax
  mov fs, eax
  mov gs, eax
  call pic_mask
  call idt_init
  mov eax, offset tss
  mov word ptr [tss_descriptor + 2], ax
  shr eax, 16
  mov byte ptr [tss_descriptor + 4], al
  mov dword ptr [tss + 4], offset stack_top - 4096 /* ESP0 */
  mov dword ptr [tss + 8], KERNEL_DS
  mov dword ptr [tss + 100], 104 << 16 /* no I/O bitmap */
  mov eax, TSS_SELECTOR
  ltr ax
  call screen_clear
  call cpu_find
  call lab_main

/* The verdict. */
  cmp dword ptr [failures], 0
  jne 2f
  print "Result: as expected\n"
  xor eax, eax
  jmp leave_lab
2:
  print "Result: NOT as expected\n"
  mov eax, 1
leave_lab:
  mov dx, 0xF4
  out dx, eax
3:
  cli
  hlt
  jmp 3b

/* This CPU lacks what the lab is about; the lab has said what. */
.global lab_lacking
lab_lacking:
  print "Result: this CPU cannot show it\n"
  mov eax, 2
  jmp leave_lab

/* The two 8259A are left alone with everything masked: labs use the local APIC. */
pic_mask:
  mov al, 0xFF
  out 0x21, al
  out 0xA1, al
  ret

/* ---- interrupts ---- */

/* Every vector starts as one that should not happen. */
idt_init:
  xor ecx, ecx
1:
  imul eax, ecx, 10 /* bytes of a stub */
  add eax, offset unexpected_stubs
  call idt_set
  inc ecx
  cmp ecx, 256
  jne 1b
  mov ecx, 0x40
  mov eax, 0xD8E0
  call idt_set
  lidt [idt_pointer]
  ret

/* Vector ECX gets an interrupt gate to EAX; idt_set_user makes one that ring 3 may call. */
.global idt_set
idt_set:
  push edx
  mov edx, 0x8E00
  call idt_write
  pop edx
  ret

.global idt_set_user
idt_set_user:
  push edx
  mov edx, 0xEE00
  call idt_write
  pop edx
  ret

idt_write:
  push eax
  mov word ptr [idt + ecx * 8], ax
  mov word ptr [idt + ecx * 8 + 2], KERNEL_CS
  mov word ptr [idt + ecx * 8 + 4], dx
  shr eax, 16
  mov word ptr [idt + ecx * 8 + 6], ax
  pop eax
  ret

.section .text
unexpected_stubs:
  .set vector, 0
  .rept 256
  .byte 0x68 /* push, in its long form for all */
  .long vector
  .byte 0xE9 /* jmp */
  .long unexpected - . - 4
  .set vector, vector + 1
  .endr

unexpected:
  print "unexpected interrupt "
  mov eax, [esp]
  call put_hex8
  print " error or EIP "
  mov eax, [esp + 4]
  call put_hex32
  print "\n"
  inc dword ptr [failures]
  mov eax, 1
  jmp leave_lab

.section .data
.global gdt, tss, stack_top, failures, idt
  .align 8
gdt:
  .quad 0, 0
  .quad 0x00CF93000000FFFF /* 10: data */
  .quad 0x00CF9B000000FFFF /* 18: code */
  .quad 0x00AF9B000000FFFF /* 20: 64-bit code */
  .quad 0x00CFF3000000FFFF /* 28: user data */
  .quad 0x00CFFB000000FFFF /* 30: user code */
  .quad 0x00AFFB000000FFFF /* 38: user 64-bit code */
tss_descriptor:
  .quad 0x0000890000000067 /* 40: its base is filled in below */
  .quad 0 /* room for a 16-byte descriptor */
gdt_end:
gdt_pointer:
  .word gdt_end - gdt - 1
  .long gdt
idt_pointer:
  .word 256 * 8 - 1
  .long idt
failures:
  .long 0

.section .bss
  .align 16
tss:
  .skip 104
  .align 8
idt:
  .skip 256 * 8
  .align 16
  .skip 8192
stack_top:
