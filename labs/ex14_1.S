/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiment 14-1 of chapter 14 of 《x86/x64 体系探索及编程》 (listings 14-1 and 14-2): a function that prints fills the stack
 * many times over. The newest record is the return from that function, from 0x90CD to 0x9083, where the book has it.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "Experiment 14-1: the branches of a function that prints\n"
  cmp dword ptr [ebp + MODEL_DEPTH], 0
  need ne, "this CPU has no LBR stack"
  cmp dword ptr [ebp + MODEL_TOS], 0
  need ne, "this CPU has no TOS register"
  call pae_enable

  .org 0x71, 0x90
  mov ecx, IA32_DEBUGCTL /* 1) LBR = 1 */
  rdmsr
  bts eax, LBR_BIT
  wrmsr
  call func /* 2) branches */
after_func:
  mov ecx, IA32_DEBUGCTL /* 3) LBR = 0 */
  rdmsr
  btr eax, LBR_BIT
  wrmsr
  call dump_lbr_stack /* 4) report */
  call println
  jmp check

  .org 0xB5, 0x90
func:
  mov edx, offset puts
  mov ebx, offset dump_pae_page
  mov esi, offset msg2
  call edx
  mov esi, 0x400000 /* dump virtual address 0x400000 */
  call ebx
func_return:
  ret

check:
  call lbr_count
  expect "records", [ebp + MODEL_DEPTH], eax
  expect_record 0, func_return, after_func
  cmp dword ptr [ebp + MODEL_DEPTH], 16
  jne 1f
  call lbr_top
  expect "TOS, in the book", 9, eax
1:
  expect "FROM of the newest, in the book", 0x90CD, (offset func_return)
  expect "TO of the newest, in the book", 0x9083, (offset after_func)
  mov eax, 1
  call lbr_entry
  call lbr_to
  expect "the one before it returned to", (offset func_return), eax
  ret

.section .rodata
msg2:
  .asciz "dump 0x00400000:\n"
