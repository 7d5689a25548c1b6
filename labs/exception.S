/* SPDX-License-Identifier: Apache-2.0
 *
 * The last-exception registers. When an exception or interrupt comes, the processor first copies the newest branch into
 * LastExceptionFromIP and ToIP, then records the transfer to the handler as any other. SDM vol. 3, 17.4.8.3; chapter 5
 * of 《软件调试》.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "The last branch before an exception\n"
  cmp dword ptr [ebp + MODEL_LER_FROM], 0
  need ne, "this CPU has no last-exception registers"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_ARCH
  need ne, "architectural LBR has a lab of its own"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_AMD
  need be, "the stack of this CPU has a switch of its own"
  mov ecx, 6
  mov eax, offset handler
  call idt_set
  msr_set IA32_DEBUGCTL, 1
first:
  jmp second
second:
  jmp third
third:
  nop
bad:
  ud2
  call dump_lbr_stack
  call println
  mov ecx, [ebp + MODEL_LER_FROM]
  rdmsr
  expect "LastExceptionFromIP", (offset second), eax
  mov ecx, [ebp + MODEL_LER_TO]
  rdmsr
  expect "LastExceptionToIP", (offset third), eax
  expect_record 0, bad, handler
  cmp dword ptr [ebp + MODEL_DEPTH], 1
  je 1f
  expect_record 1, second, third
1:
  ret

/* LBR goes off before the first branch of the handler. */
handler:
  push eax
  push ecx
  push edx
  msr_clear IA32_DEBUGCTL, 1
  add dword ptr [esp + 12], 2 /* behind UD2 */
  pop edx
  pop ecx
  pop eax
  iretd
