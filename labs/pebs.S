/* SPDX-License-Identifier: Apache-2.0
 *
 * PEBS: when counter 0 overflows, the processor itself writes its registers into a buffer of the DS area and loads the
 * counter anew; an interrupt comes only when the buffer has filled up to its threshold. Three samples, one every ten
 * instructions. SDM vol. 3, 18.4.4 and 18.8.1.
 */
#include "lab.inc"

.set PERIOD, 10

.section .lab, "ax"
.global lab_main
lab_main:
  print "PEBS: a sample every ten instructions\n"
  cmp dword ptr [ebp + MODEL_PMU], PMU_ARCH
  need e, "this CPU has no architectural counters"
  cmp dword ptr [ebp + MODEL_PEBS], 4
  need b, "this CPU has no PEBS, or adaptive records"
  cmp dword ptr [ebp + MODEL_DS_IS_64], 0
  need ne, "this CPU has no DTES64"
  mov ecx, COUNTER_VECTOR
  mov eax, offset handler
  call idt_set
  mov eax, [ebp + MODEL_PEBS]
  mov esi, [sizes + eax * 4]
  mov eax, 4
  mov edx, 5
  call ds_init
  mov dword ptr [ds_area + 0x20], offset pebs_buffer /* base, index, maximum, threshold, reset */
  mov dword ptr [ds_area + 0x28], offset pebs_buffer
  imul eax, esi, 8
  add eax, offset pebs_buffer
  mov [ds_area + 0x30], eax
  imul eax, esi, 3
  add eax, offset pebs_buffer
  mov [ds_area + 0x38], eax
  mov dword ptr [ds_area + 0x40], -PERIOD
  mov dword ptr [ds_area + 0x44], 0xFFFF
  mov eax, PERIOD
  mov ecx, EVENT_INSTRUCTIONS
  call counter_init
  msr_clear IA32_PERFEVTSEL0, 1 << 20 /* the counter's own interrupt is not wanted */
  msr_write IA32_PEBS_ENABLE, 1
  mov edi, 0x12345678
  mov ebx, 100
  sti
  msr_write IA32_PERF_GLOBAL_CTRL, 1
head:
  dec ebx
tail:
  jnz head
  cli
  call counter_done
  msr_write IA32_PEBS_ENABLE, 0
  expect "interrupts", 1, [interrupts]
  mov eax, [index]
  sub eax, offset pebs_buffer
  xor edx, edx
  div esi
  expect "samples when it came", 3, eax
  mov ecx, offset pebs_buffer
  expect "EDI in the first sample", 0x12345678, [ecx + 0x38]
  /* The WRMSR that enables the counter is the first that it counts; the tenth is the fifth DEC. */
  expect "EBX in the first sample", 95, [ecx + 0x18]
  add ecx, esi
  expect "EBX in the second", 90, [ecx + 0x18]
  add ecx, esi
  expect "EBX in the third", 85, [ecx + 0x18]
  mov eax, [ecx + 8]
  expect "EIP in the third: the next instruction", (offset tail), eax
  ret

handler:
  pushad
  inc dword ptr [interrupts]
  mov eax, [ds_area + 0x28]
  mov [index], eax
  msr_write IA32_PERF_GLOBAL_CTRL, 0
  mov dword ptr [APIC + APIC_EOI], 0
  popad
  iretd

.section .rodata
sizes:
  .long 144, 176, 192, 200

.section .data
interrupts:
  .long 0
index:
  .long 0

.section .bss
  .align 4096
pebs_buffer:
  .skip 4096
