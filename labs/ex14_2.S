/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiment 14-2 of chapter 14 of 《x86/x64 体系探索及编程》 (listing 14-3): ten jumps in a chain. Ten records; the first
 * lands in entry 1, because TOS moves before a record is written; entry 0 stays empty; each begins where the one before
 * it ended. WRMSR and RDMSR leave none.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "Experiment 14-2: ten jumps in a chain\n"
  cmp dword ptr [ebp + MODEL_TOS], 0
  need ne, "this CPU has no LBR stack with a TOS register"
  cmp dword ptr [ebp + MODEL_DEPTH], 16
  need ae, "this CPU has fewer than 16 records"

  mov ecx, IA32_DEBUGCTL
  rdmsr
  bts eax, LBR_BIT /* 1) LBR = 1 */
  wrmsr

first:
  jmp l1 /* 2) the branches */
l1:
  jmp l2
l2:
  jmp l3
l3:
  jmp l4
l4:
  jmp l5
l5:
  jmp l6
l6:
  jmp l7
l7:
  jmp l8
l8:
  jmp l9
l9:
  jmp l10
l10:

  mov ecx, IA32_DEBUGCTL
  rdmsr
  btr eax, LBR_BIT /* 3) LBR = 0 */
  wrmsr

  call dump_lbr_stack /* 4) report */
  call println

  call lbr_count
  expect "records", 10, eax
  call lbr_top
  expect "TOS", 10, eax
  mov eax, 0
  call lbr_from
  expect "FROM of entry 0", 0, eax
  expect_record 9, first, l1
  expect_record 0, l9, l10
  mov esi, 0 /* age of the younger one of each pair */
1:
  lea eax, [esi + 1]
  call lbr_entry
  call lbr_to
  mov edi, eax
  mov eax, esi
  call lbr_entry
  call lbr_from
  expect "TO of a record is FROM of the next", edi, eax
  inc esi
  cmp esi, 9
  jne 1b
  ret
