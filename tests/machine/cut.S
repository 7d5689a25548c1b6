/* SPDX-License-Identifier: Apache-2.0
 *
 * What depends on where a run is cut, if anything does: flat 32-bit code at 1 MiB. Stores to the local APIC in the middle of
 * straight code interrupt at once (its own IPI) and a little later (its timer), with LBR on and branches that nobody can
 * foresee; page tables are changed and their accessed bits cleared without a flush. The handler adds up where it came
 * from.
 */
.code32
.set APIC, 0xFEE00000
.set IDT, 0x2000
.set DIRECTORY, 0x4000
.set TABLE, 0x5000
.set SUMS, 0x6000
.set PAGE, 0x180000   /* reached through entry 0x200 of the second table */
.set LINEAR, 0x600000

.globl _start
_start:
  mov $0x9F000, %esp
  mov $IDT, %edi
  xor %eax, %eax
  mov $0x4000, %ecx
  rep stosb
  mov $IDT + 8 * 0x40, %edi
  call gate
  call gate
  lgdt gdtr
  lidt idtr

  /* the first 4 MiB and the APIC as large pages; LINEAR by a table, to PAGE */
  movl $0x000083, DIRECTORY
  movl $TABLE + 3, DIRECTORY + 4
  movl $0xFEC0009B, DIRECTORY + 4 * (APIC >> 22)
  movl $PAGE + 3, TABLE + 4 * 0x200
  movl $PAGE + 0x1003, TABLE + 4 * 0x201
  mov $DIRECTORY, %eax
  mov %eax, %cr3
  mov %cr4, %eax
  or $0x10, %eax
  mov %eax, %cr4
  mov %cr0, %eax
  or $0x80000000, %eax
  mov %eax, %cr0

  mov $0xFF, %al
  out %al, $0x21
  out %al, $0xA1
  mov $APIC, %ebx
  movl $0x1FF, 0xF0(%ebx)
  movl $0x41, 0x320(%ebx)
  movl $0xB, 0x3E0(%ebx)
  mov $0x1D9, %ecx
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  mov $12345, %ebp
  sti

again:
  movl $0x44040, 0x300(%ebx)
  imul $1103515245, %ebp, %ebp
  add $12345, %ebp
  mov %ebp, %eax
  shr $19, %eax
  inc %esi
  movl $3, 0x380(%ebx)
  test $1, %al
  jz 1f
  add %eax, %esi
1:test $2, %al
  jz 2f
  rol $3, %esi
2:test $4, %al
  jnz 3f
  add $5, %esi
3:test $8, %al
  jnz 4f
  xor %eax, %esi
4:add %esi, LINEAR            /* through a translation that may be old */
  test $0x30, %al
  jnz 5f
  xorl $0x1000, TABLE + 4 * 0x200
  andl $~0x60, TABLE + 4 * 0x201
5:mov LINEAR + 0x1000, %edx
  add %edx, %esi
  addl $3, PAGE + 0x1000
  test $0x7C0, %al
  jnz 6f
  invlpg LINEAR
6:addl $0, 0xB0(%ebx)         /* a store after a load: a spurious end of interrupt */
  mov %esi, %edi
  and $0xFFC, %edi
  add %esi, LINEAR + 0x1000(%edi)
  jmp again

gate: /* at %edi, which moves on */
  mov $handler, %eax
  mov %ax, (%edi)
  movw $0x08, 2(%edi)
  movw $0x8E00, 4(%edi)
  shr $16, %eax
  mov %ax, 6(%edi)
  add $8, %edi
  ret

handler:
  push %eax
  mov 4(%esp), %eax
  add %eax, SUMS
  roll $1, SUMS + 4
  xor %eax, SUMS + 4
  movl $0, 0xB0(%ebx)
  pop %eax
  iret

.balign 8
gdt: .quad 0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF
gdtr: .word 23
  .long gdt
idtr: .word 0x7FF
  .long IDT
