/* SPDX-License-Identifier: Apache-2.0
 *
 * A program for the guest of tools/linux-guest, whose branches are known: 200000 rounds, or 1000 if it is given an argument, of a
 * loop with a call, a return, an indirect jump and a conditional jump that is taken every second time. Each branch that can be
 * recorded has a name that begins with from_, and each place where one can go begins with to_; brstack.py compares what perf shows
 * with these names. It executes 8 instructions, 5 of them before the loop, and 8 or 10 in each round; 5 branches in each round, taken
 * or not, and the system call.
 */
  .globl _start
  .text
_start:
  mov $200000, %ecx
  mov $1000, %eax
  cmpq $1, (%rsp)
  cmovne %eax, %ecx
  lea to_middle(%rip), %rdx
to_loop:
from_call:
  call to_function
to_return:
  test $1, %cl
from_skip:
  jz to_skip
  nop
  nop
to_skip:
from_indirect:
  jmp *%rdx
  ud2
to_middle:
  dec %ecx
from_loop:
  jnz to_loop
  mov $60, %eax
  xor %edi, %edi
  syscall
  ud2

to_function:
  nop
from_return:
  ret
