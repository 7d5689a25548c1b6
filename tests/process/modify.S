/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that changes: an instruction of the program itself, the one right behind the store, a page of generated code
 * that is filled twice, and a page that is written at one address and executed at another.
 */
#define ONCE 0x10000000 /* the generated code */
#define WRITTEN 0x20000000
#define EXECUTED 0x30000000
  .globl _start
_start:
  mov $10, %eax /* mprotect(page of code, 4096, read, write, execute) */
  lea _start(%rip), %rdi
  and $-4096, %rdi
  mov $8192, %esi
  mov $7, %edx
protect:
  syscall
protect_next:
  mov $2, %ebx
again:
patched:
  jmp first /* the second time to `second` */
patched_next:
first:
  movb $second - patched_next, patched + 1(%rip)
first_jump:
  jmp both
second:
  nop
both:
  dec %ebx
repeat:
  jnz again
  movw $0x02EB, behind(%rip) /* two NOPs become a jump over the UD2 */
behind:
  .byte 0x90, 0x90
  ud2
behind_to:
  movb $2, there + 1(%rip)
there:
  .byte 0xEB, 0
  ud2
there_to:

  mov $9, %eax /* mmap(ONCE, 4096, read, write, execute; private, anonymous, fixed) */
  mov $ONCE, %edi
  mov $4096, %esi
  mov $7, %edx
  mov $0x32, %r10d
  mov $-1, %r8
  xor %r9d, %r9d
map:
  syscall
map_next:
  mov $ONCE, %ebp
  movl $0xC390C031, (%rbp) /* xor %eax, %eax; nop; ret */
generated_1:
  call *%rbp
generated_1_next:
  movl $0x90C3C031, (%rbp) /* xor %eax, %eax; ret; nop */
generated_2:
  call *%rbp
generated_2_next:

  mov $319, %eax /* memfd_create(name, 0) */
  lea name(%rip), %rdi
  xor %esi, %esi
create:
  syscall
create_next:
  mov %eax, %r8d
  mov %eax, %edi
  mov $4096, %esi
  mov $77, %eax /* ftruncate */
truncate:
  syscall
truncate_next:
  mov $9, %eax /* mmap(WRITTEN, 4096, read, write; shared, fixed) */
  mov $WRITTEN, %edi
  mov $3, %edx
  mov $0x11, %r10d
map_written:
  syscall
map_written_next:
  mov $9, %eax /* mmap(EXECUTED, 4096, read, execute; shared, fixed) */
  mov $EXECUTED, %edi
  mov $5, %edx
map_executed:
  syscall
map_executed_next:
  mov $EXECUTED, %ebp
  mov $WRITTEN, %edx
  movl $0xC39000EB, (%rdx) /* jmp +0; nop; ret */
dual_1:
  call *%rbp
dual_1_next:
  movb $1, 1(%rdx) /* jmp +1 */
dual_2:
  call *%rbp
dual_2_next:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:
name:
  .asciz "code"

/* Run: status 0
# 1 exec _start
1 protect protect_next syscall
1 patched first jmp
1 first_jump both jmp
1 repeat again jcc
1 patched second jmp
1 behind behind_to jmp
1 there there_to jmp
1 map map_next syscall
1 generated_1 0x10000000 call_ind
1 0x10000003 generated_1_next ret
1 generated_2 0x10000000 call_ind
1 0x10000002 generated_2_next ret
1 create create_next syscall
1 truncate truncate_next syscall
1 map_written map_written_next syscall
1 map_executed map_executed_next syscall
1 dual_1 0x30000000 call_ind
1 0x30000000 0x30000002 jmp
1 0x30000003 dual_1_next ret
1 dual_2 0x30000000 call_ind
1 0x30000000 0x30000003 jmp
1 0x30000003 dual_2_next ret
1 exit exit_next syscall
# 1 exit 0
*/
