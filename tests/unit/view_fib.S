/* SPDX-License-Identifier: Apache-2.0
 *
 * A program for test_view.sh whose every number follows from arithmetic: Fibonacci numbers by recursion, without libc.
 * A call of fib with n < 2 runs 4 instructions and takes 2 branches, one with n >= 2 runs 12 and takes 3, those of what
 * it calls not counted. At the end it leaves, or with CRASH defined dies in a function of its own.
 */
#ifndef NUMBER
#define NUMBER 20
#endif
.text
.global _start
.type _start, @function
_start:
  mov $NUMBER, %edi
  call fib
#ifdef CRASH
  call outer
#endif
  mov $60, %eax
  xor %edi, %edi
  syscall
.size _start, . - _start

.type fib, @function
fib:
  cmp $2, %edi
  jb 1f
  push %rdi
  dec %edi
  call fib
  pop %rdi
  push %rax
  sub $2, %edi
  call fib
  pop %rcx
  add %rcx, %rax
  ret
1:
  mov %edi, %eax
  ret
.size fib, . - fib

#ifdef CRASH
.type outer, @function
outer:
  call culprit
  ret
.size outer, . - outer

.type culprit, @function
culprit:
  xor %eax, %eax
  mov (%rax), %rax
  ret
.size culprit, . - culprit
#endif
