/* SPDX-License-Identifier: Apache-2.0
 *
 * A circular BTS buffer: DEBUGCTL.TR and BTS set, BTINT clear, and the threshold above the buffer's end. It holds four
 * records; of six jumps the last two overwrite the first two. SDM vol. 3, 17.4.9.3; chapter 14 of
 * 《x86/x64 体系探索及编程》.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "BTS: a circular buffer of four records\n"
  cmp dword ptr [ebp + MODEL_HAS_BTS], 0
  need ne, "this CPU has no BTS"
  mov eax, 4
  mov edx, 5
  call ds_init
  mov ebx, [ebp + MODEL_BIT_TR]
  or ebx, [ebp + MODEL_BIT_BTS]
  msr_set IA32_DEBUGCTL, ebx
j1:
  jmp j2
j2:
  jmp j3
j3:
  jmp j4
j4:
  jmp j5
j5:
  jmp j6
j6:
  jmp j7
j7:
  msr_write IA32_DEBUGCTL, 0
  mov eax, 4
  call dump_bts
  call println
  call bts_count
  expect "index, in records", 2, eax
  expect_bts 0, j5, j6
  expect_bts 1, j6, j7
  expect_bts 2, j3, j4
  expect_bts 3, j4, j5
  ret
