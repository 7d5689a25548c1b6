/* SPDX-License-Identifier: Apache-2.0
 *
 * Freezing on a performance-monitoring interrupt, the streamlined way (perfmon version 4 on). DEBUGCTL.LBR and
 * PERF_GLOBAL_CTRL keep their values; LBR_Frz and CTR_Frz in PERF_GLOBAL_STATUS stop both until the handler clears them.
 * SDM vol. 3, 17.4.7 and 18.2.4.
 */
#include "lab.inc"

.set LBR_FRZ, 1 << 26 /* in the upper half */
.set CTR_FRZ, 1 << 27

.section .lab, "ax"
.global lab_main
lab_main:
  print "Freeze on PMI, streamlined\n"
  cmp dword ptr [ebp + MODEL_PMU], PMU_ARCH
  need e, "this CPU has no architectural counters"
  cmp dword ptr [ebp + MODEL_PMU_VERSION], 4
  need ae, "this CPU freezes the legacy way"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_ARCH
  need ne, "architectural LBR has a lab of its own"
  mov ecx, COUNTER_VECTOR
  mov eax, offset handler
  call idt_set
  mov eax, 3
  mov ecx, EVENT_BRANCHES
  call counter_init
  mov ebx, [ebp + MODEL_BIT_FREEZE_LBRS]
  or ebx, [ebp + MODEL_BIT_FREEZE_PERFMON]
  or ebx, 1
  msr_write IA32_DEBUGCTL, ebx
  mov esi, 5
  sti
  msr_write IA32_PERF_GLOBAL_CTRL, 1
head:
  dec esi
tail:
  jnz head
  cli
  msr_write IA32_DEBUGCTL, 0
  call dump_lbr_stack
  call println
  expect "interrupts", 1, [interrupts]
  expect "branches left when it came", 2, [left]
  mov eax, [debugctl]
  and eax, 1
  expect "DEBUGCTL.LBR in the handler", 1, eax
  expect "PERF_GLOBAL_CTRL in the handler", 1, [global_ctrl]
  mov eax, [status + 4]
  and eax, LBR_FRZ | CTR_FRZ
  expect "LBR_Frz and CTR_Frz", LBR_FRZ | CTR_FRZ, eax
  mov eax, [status]
  and eax, 1
  expect "overflow of counter 0", 1, eax
  expect "records when it came", 3, [records]
  /* Cleared at the end of the handler: its IRETD and the last branch are recorded again. */
  call lbr_count
  expect "records in the end", 5, eax
  expect_record 0, tail, head
  expect_record 1, handler_end, head
  expect_record 2, tail, head
  call counter_done
  ret

handler:
  pushad
  inc dword ptr [interrupts]
  mov [left], esi
  mov ecx, IA32_DEBUGCTL
  rdmsr
  mov [debugctl], eax
  mov ecx, IA32_PERF_GLOBAL_CTRL
  rdmsr
  mov [global_ctrl], eax
  mov ecx, IA32_PERF_GLOBAL_STATUS
  rdmsr
  mov [status], eax
  mov [status + 4], edx
  call lbr_count
  mov [records], eax
  mov dword ptr [APIC + APIC_EOI], 0
  msr_write IA32_PERFEVTSEL0, 0
  msr_write IA32_PERF_GLOBAL_OVF_CTRL, 1, (LBR_FRZ | CTR_FRZ)
  popad
handler_end:
  iretd

.section .data
interrupts:
  .long 0
left:
  .long 0
debugctl:
  .long 0
global_ctrl:
  .long 0
status:
  .quad 0
records:
  .long 0
