/* SPDX-License-Identifier: Apache-2.0
 *
 * Freezing on a performance-monitoring interrupt, the legacy way (perfmon versions 2 and 3). With FREEZE_LBRS_ON_PMI the
 * interrupt clears DEBUGCTL.LBR, with FREEZE_PERFMON_ON_PMI it clears PERF_GLOBAL_CTRL; software sets both again. SDM
 * vol. 3, 17.4.7.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "Freeze on PMI, legacy\n"
  cmp dword ptr [ebp + MODEL_PMU], PMU_ARCH
  need e, "this CPU has no architectural counters"
  cmp dword ptr [ebp + MODEL_PMU_VERSION], 2
  need ae, "this CPU has no global control of counters"
  cmp dword ptr [ebp + MODEL_PMU_VERSION], 4
  need b, "this CPU freezes the streamlined way"
  cmp dword ptr [ebp + MODEL_BIT_FREEZE_LBRS], 0
  need ne, "this CPU cannot freeze on PMI"
  cmp dword ptr [ebp + MODEL_DEPTH], 1
  need a, "this CPU has no LBR stack"
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
  mov esi, 100
  sti
  msr_write IA32_PERF_GLOBAL_CTRL, 1
head:
  dec esi
tail:
  jnz head
  cli
  msr_write IA32_DEBUGCTL, 0
  call counter_done
  call dump_lbr_stack
  call println
  expect "interrupts", 1, [interrupts]
  expect "branches when it came", 3, [taken]
  mov eax, [debugctl]
  and eax, 1
  expect "DEBUGCTL.LBR in the handler", 0, eax
  expect "PERF_GLOBAL_CTRL in the handler", 0, [global_ctrl]
  expect "counter 0 in the handler", 0, [counter]
  call lbr_count
  expect "records: the branches, not the interrupt", 3, eax
  expect_record 0, tail, head
  expect_record 2, tail, head
  ret

handler:
  pushad
  inc dword ptr [interrupts]
  mov eax, 100
  sub eax, esi
  mov [taken], eax
  mov ecx, IA32_DEBUGCTL
  rdmsr
  mov [debugctl], eax
  mov ecx, IA32_PERF_GLOBAL_CTRL
  rdmsr
  mov [global_ctrl], eax
  mov ecx, IA32_PMC0
  rdmsr
  mov [counter], eax
  mov dword ptr [APIC + APIC_EOI], 0
  popad
  iretd

.section .data
interrupts:
  .long 0
taken:
  .long 0
debugctl:
  .long -1
global_ctrl:
  .long -1
counter:
  .long -1
