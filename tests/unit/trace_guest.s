# SPDX-License-Identifier: Apache-2.0
# The guest of test_trace_cli.sh, a multiboot kernel at 0x100000: loops, calls and jumps of all sorts, an interrupt, a fault, ring
# 3 and back, with LBR on all the time; ends through port 0xF4. The linker is told the low halves of the handlers' addresses.
.code32
  .long 0x1badb002, 0, -0x1badb002
.globl entry
entry:
  mov $stack, %esp
  lgdt table_pointer
  ljmp $8, $1f
1: mov $16, %eax
  mov %eax, %ds
  mov %eax, %es
  mov %eax, %ss
  lidt vector_pointer
  movl $stack - 256, tss + 4 # ESP0
  movl $16, tss + 8
  mov $0x28, %eax
  ltr %ax
  mov $0x1d9, %ecx # LBR = 1
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  mov $5, %ecx
2: call work
  loop 2b
  jecxz 3f
  nop
3: mov $target, %eax
  jmp *%eax
  nop
target:
  call *pointer
  call 4f # to the next instruction
4: pop %eax
  mov $stack, %edi
  mov $16, %ecx
  xor %eax, %eax
  rep stosb # no branch
  push $7
  call pops
  lcall $8, $far
  int $48
  ud2
  push $0x23 # to ring 3
  push $stack - 512
  push $2
  push $0x1b
  push $user
  iret
user:
  cmp %eax, %eax
  jne user # not taken
  je 5f
  nop
5: int $49
back: # in ring 0 again
  mov $20, %ebx
6: call work
  dec %ebx
  jnz 6b
  mov $0xf4, %edx
  xor %eax, %eax
  out %eax, %dx
7: jmp 7b

work: ret
pops: ret $4
far: lret
software: iret
undefined:
  addl $2, (%esp)
  iret
from_user:
  mov $stack, %esp
  jmp back

.p2align 3
table: .quad 0, 0xcf9a000000ffff, 0xcf92000000ffff, 0xcffa000000ffff, 0xcff2000000ffff
  .word 103, tss, 0x8900, 0
table_pointer: .word . - table - 1
  .long table
vectors: .fill 6, 8, 0
  .word undefined_low, 8, 0x8e00, 0x10
  .fill 41, 8, 0
  .word software_low, 8, 0x8e00, 0x10, from_user_low, 8, 0xee00, 0x10
vector_pointer: .word . - vectors - 1
  .long vectors
pointer: .long work
.set tss, 0x8000
.set stack, 0x200000
