/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kind of near branch, and what translation could spoil: flags across blocks, the red zone, return addresses,
 * memory relative to RIP in every encoding. Exit status 42 when all came out right, else the number of the check.
 */
.macro check number
  movl $\number, %r15d
.endm

.text
.global _start
_start:
  mov %rsp, %rbp
  lea only_return(%rip), %rax
  mov %rax, pointer(%rip)
  /* Flags live across a direct, an indirect jump and a return. */
  check 1
  stc
  jmp 1f
1:
  jnc bad
  lea 1f(%rip), %rax
  stc
  jmp *%rax
1:
  jnc bad
  stc
  call only_return
  jnc bad
  std
  call only_return
  pushfq
  cld
  pop %rax
  bt $10, %rax
  jnc bad

  /* Registers that the translator borrows. */
  check 2
  mov $0x1111, %ecx
  mov $0x2222, %edx
  mov $0x3333, %esi
  mov $0x4444, %edi
  mov $0x5555, %ebx
  lea 1f(%rip), %rax
  jmp *%rax
1:
  call only_return
  cmp $0x1111, %ecx
  jne bad
  cmp $0x2222, %edx
  jne bad

  /* The red zone. */
  check 3
  movq $77, -8(%rsp)
  movq $78, -128(%rsp)
  jmp 1f
1:
  cmpq $77, -8(%rsp)
  jne bad
  cmpq $78, -128(%rsp)
  jne bad

  /* Memory relative to RIP: legacy, with immediate, REX, two-byte, VEX, implicit registers, push and pop. */
  check 4
  mov word(%rip), %rax
  cmp $1234567, %rax
  jne bad
  cmpq $1234567, word(%rip)
  jne bad
  cmpb $0x87, word(%rip)
  jne bad
  mov word(%rip), %rsi
  mov word(%rip), %rdi
  cmp %rsi, %rdi
  jne bad
  mov word(%rip), %r14
  cmp %r14, word(%rip)
  jne bad
  mov $1234567, %eax
  mov $99, %r9d
  lock cmpxchg %r9, word(%rip)
  jne bad
  cmpq $99, word(%rip)
  jne bad
  push word(%rip)
  pop other(%rip)
  cmpq $99, other(%rip)
  jne bad
  movq word(%rip), %xmm9
  paddq word(%rip), %xmm9
  movq %xmm9, other(%rip)
  cmpq $198, other(%rip)
  jne bad
  mov other(%rip), %ecx
  imul $2, other(%rip), %r13
  cmp $396, %r13
  jne bad
  movzbl other(%rip), %esi
  cmp $198, %esi
  jne bad
  xor %eax, %eax
  xor %edx, %edx
  xor %ebx, %ebx
  xor %ecx, %ecx
  mov $5, %ebx
  lock cmpxchg16b zeroes(%rip)
  jne bad
  cmpq $5, zeroes(%rip)
  jne bad
  lea _start(%rip), %rax
  lea start_address_check(%rip), %rdx
  sub $start_address_check - _start, %rdx
  cmp %rax, %rdx
  jne bad

  /* Every condition, taken and not. */
start_address_check:
  check 5
  xor %r8d, %r8d
.irp flags, 0x2, 0x3, 0x6, 0x42, 0x82, 0x802, 0xC3, 0x882
  push $\flags
  popfq
  .irp condition, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
  j\condition 1f
  lea 1(%r8), %r8
1:
  .endr
.endr
  cmp $64, %r8
  jne bad

  /* LOOP, LOOPE, LOOPNE, JRCXZ, JECXZ. */
  check 6
  mov $5, %ecx
  xor %r8d, %r8d
1:
  inc %r8d
  loop 1b
  cmp $5, %r8d
  jne bad
  mov $5, %ecx
1:
  cmp $3, %ecx
  loopne 1b
  cmp $2, %ecx
  jne bad
  mov $5, %ecx
1:
  cmp %eax, %eax
  loope 1b
  jrcxz 1f
  jmp bad
1:
  mov $0x100000000, %rcx
  jrcxz 2f
  jecxz 1f
2:
  jmp bad
1:

  /* Calls and returns. */
  check 7
  push $1
  push $2
  call pop_two
  cmp %rsp, %rbp
  jne bad
  lea only_return(%rip), %rcx
  call *%rcx
  call *pointer(%rip)
  lea pointer(%rip), %rdx
  mov $1, %ecx
  call *-8(%rdx, %rcx, 8)
  push pointer(%rip)
  call *(%rsp)
  add $8, %rsp
  call 1f
1:
  pop %rax
  lea 1b(%rip), %rdx
  cmp %rax, %rdx
  jne bad
  push pointer(%rip)
  lea after(%rip), %rax
  xchg %rax, (%rsp)
  jmp *%rax
after:
  cmp %rsp, %rbp
  jne bad

  /* A call made by hand, and recursion. */
  check 8
  lea 1f(%rip), %rax
  push %rax
  lea only_return(%rip), %rax
  push %rax
  ret
1:
  mov $100, %edi
  call sum
  cmp $5050, %eax
  jne bad

  /* Many targets from one place, more than once: the lookup hits. */
  check 9
  mov $200, %r12d
1:
  mov %r12d, %eax
  and $3, %eax
  lea targets(%rip), %rdx
  movslq (%rdx, %rax, 4), %rax
  add %rdx, %rax
  jmp *%rax
target_0:
  inc %r8d
target_1:
  inc %r8d
target_2:
  inc %r8d
target_3:
  dec %r12d
  jnz 1b

  /* SYSCALL changes RCX and R11 and nothing else. */
  check 10
  mov $39, %eax
  mov $7, %edx
  stc
  syscall
  jnc bad
  mov $39, %eax
  syscall
1:
  lea 1b(%rip), %rdx
  cmp %rcx, %rdx
  jne bad
  test %eax, %eax
  jle bad

  mov $42, %edi
  jmp finish
bad:
  mov %r15d, %edi
finish:
  mov $231, %eax
  syscall

only_return:
  ret
pop_two:
  ret $16
sum:
  test %edi, %edi
  jz 1f
  push %rdi
  dec %edi
  call sum
  pop %rdi
  add %edi, %eax
  ret
1:
  xor %eax, %eax
  ret

.data
.balign 16
zeroes: .quad 0, 0
word: .quad 1234567
other: .quad 0
pointer: .quad 0
targets:
  .long target_0 - targets, target_1 - targets, target_2 - targets, target_3 - targets

.section .note.GNU-stack, "", @progbits
