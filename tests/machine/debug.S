/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest for debuggers: goes from real mode through protected mode to 64-bit mode, and on its way does all that a
 * debugger may want to see. Started at 07C0:0000 (--flat); the first part runs there, with a base of CS that is not 0.
 * A processor without 64-bit mode stays in protected mode. Symbols are linear addresses.
 */
  .code16
  .globl _start
_start:
  cli
  xor %ax, %ax
  mov %ax, %ds
  mov %ax, %es
  mov %ax, %ss
  mov $0x7000, %sp
  mov $3, %cx
based:
  call based_sub
  loop based
  ljmp $0, $real
based_sub:
  inc %bx
  ret

real:
  movw $handler, 4 * 0x60
  movw $0, 4 * 0x60 + 2
  movw $divide_handler, 0
  movw $0, 2
  movw $tick, 4 * 9
  movw $0, 4 * 9 + 2
write:
  movw $0x1234, watched
  mov watched, %ax
read:
  incb watched
behind:
  int $0x60
  mov $0xD2, %al /* a byte as if from the keyboard, which interrupts */
  out %al, $0x64
  mov $0x1C, %al
  out %al, $0x60
interrupted:
  sti
  nop
  nop
  cli
  xor %cx, %cx
divided:
  div %cx
  nop
  mov $records, %di
  mov $6, %cx
  rep stosb
stored:
  mov $0x80000001, %eax
  cpuid
  test $1 << 29, %edx
  jz protect /* a processor whose recording unit has other registers */
  call lbr
  jmp protect

handler:
  push %ax
  mov $0x77, %al
  pop %ax
  iret
tick:
  push %ax
  in $0x60, %al
  mov $0x20, %al
  out %al, $0x20
  pop %ax
  iret
divide_handler:
  push %bp
  mov %sp, %bp
  addw $2, 2(%bp)
  pop %bp
  iret

/* Records some branches, and writes what the MSRs hold to `records`: TOS, then 16 times FROM and TO. */
lbr:
  mov $0x1D9, %ecx
  xor %edx, %edx
  mov $1, %eax
  wrmsr
  mov $5, %bx
1:
  dec %bx
  jnz 1b
  jmp 2f
  nop
2:
  mov $0x1D9, %ecx
  xor %eax, %eax
  wrmsr
  mov $records, %di
  mov $0x1C9, %ecx
  call keep
  mov $0x680, %esi
3:
  mov %esi, %ecx
  call keep
  lea 0x40(%esi), %ecx
  call keep
  inc %esi
  cmp $0x690, %esi
  jb 3b
  ret
keep:
  rdmsr
  mov %eax, (%di)
  mov %edx, 4(%di)
  add $8, %di
  ret

protect:
  lgdt gdt_pointer
  lidt idt_pointer
  mov %cr0, %eax
  or $1, %eax
  mov %eax, %cr0
  ljmp $8, $protected

  .code32
protected:
  mov $0x10, %eax
  mov %eax, %ds
  mov %eax, %es
  mov %eax, %ss
  mov $0x7000, %esp
  mov %cr4, %eax
  or $0x600, %eax /* SSE */
  mov %eax, %cr4
  fninit
  fldpi
  fld1
  movl $0x3F800000, watched
  movss watched, %xmm0
  shufps $0, %xmm0, %xmm0
numbers:
  mov $4, %ecx
1:
  call sub32
  loop 1b
undefined:
  ud2
  mov $0x80000001, %eax
  cpuid
  test $1 << 29, %edx
  jz spin32
  call tables
  mov $0x20000, %eax
  mov %eax, %cr3
  mov %cr4, %eax
  or $0x20, %eax
  mov %eax, %cr4
  mov $0xC0000080, %ecx
  rdmsr
  or $0x100, %eax
  wrmsr
  mov %cr0, %eax
  or $0x80000000, %eax
  mov %eax, %cr0
  ljmp $0x18, $long_mode
spin32:
  inc %ebx
  jmp spin32
sub32:
  inc %edx
  ret

undefined_handler:
  addl $2, (%esp)
  iret

/* 2 MiB of memory where they are, and at FFFF800000000000h, too. */
tables:
  mov $0x20000, %edi
  xor %eax, %eax
  mov $0x3000 / 4, %ecx
  rep stosl
  movl $0x21003, 0x20000
  movl $0x21003, 0x20800
  movl $0x22003, 0x21000
  movl $0x83, 0x22000
  ret

  .code64
long_mode:
  movabs $0xFFFF800000000000, %r15
  lea high(%r15), %rax
  jmp *%rax
high:
  movl $0x55AA, watched(%r15)
  mov $3, %ecx
1:
  call sub64
  loop 1b
spin:
  inc %rbx
  jmp spin
sub64:
  inc %rdx
  ret

  .balign 8
gdt:
  .quad 0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF, 0x00AF9B000000FFFF
gdt_pointer:
  .word . - gdt - 1
  .long gdt
idt:
  .fill 6, 8, 0
  .word undefined_handler, 8, 0x8E00, 0
idt_pointer:
  .word . - idt - 1
  .long idt
  .balign 8
watched:
  .quad 0
  .skip 4096
records:
  .skip 8 * 33
