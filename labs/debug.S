/* SPDX-License-Identifier: Apache-2.0
 *
 * A debug exception and the LBR stack. INT1 raises #DB; the processor clears DEBUGCTL.LBR and does not record the
 * transfer, so that the records show how the program got there, not what the handler did. Nothing sets LBR again but
 * software. SDM vol. 3, 17.4.2; chapter 14 of 《x86/x64 体系探索及编程》.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "A debug exception stops the LBR stack\n"
  cmp dword ptr [ebp + MODEL_DEPTH], 0
  need ne, "this CPU has no branch records"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_ARCH
  need ne, "architectural LBR has a lab of its own"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_AMD
  need be, "the stack of this CPU has a switch of its own"
  mov ecx, 1
  mov eax, offset handler
  call idt_set
  msr_set IA32_DEBUGCTL, 1
first:
  jmp second
second:
  jmp third
third:
  .byte 0xF1 /* INT1 */
after:
  jmp last /* LBR is off: not recorded */
last:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  mov [debugctl_after], eax
  call dump_lbr_stack
  call println

  mov eax, [debugctl_inside]
  and eax, 1
  expect "DEBUGCTL.LBR in the handler", 0, eax
  mov eax, [debugctl_after]
  and eax, 1
  expect "DEBUGCTL.LBR after IRET", 0, eax
  expect_record 0, second, third
  cmp dword ptr [ebp + MODEL_DEPTH], 1
  je 1f
  expect_record 1, first, second
  call lbr_count
  expect "records", 2, eax
1:
  ret

handler:
  push eax
  push ecx
  push edx
  jmp inside
inside:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  mov [debugctl_inside], eax
  pop edx
  pop ecx
  pop eax
  iretd

.section .data
debugctl_inside:
  .long -1
debugctl_after:
  .long -1
