/* SPDX-License-Identifier: Apache-2.0
 *
 * BTS with its interrupt: BTINT set and a threshold at the eighth record. The interrupt comes through the local APIC's
 * performance-counter entry, which masks itself; the transfer to the handler is a record too. SDM vol. 3, 10.5.1,
 * 17.4.9.4 and 17.4.9.5; chapter 14 of 《x86/x64 体系探索及编程》.
 */
#include "lab.inc"

.set VECTOR, 0x50

.section .lab, "ax"
.global lab_main
lab_main:
  print "BTS: interrupt at the eighth record\n"
  cmp dword ptr [ebp + MODEL_HAS_BTS], 0
  need ne, "this CPU has no BTS"
  mov ecx, VECTOR
  mov eax, offset handler
  call idt_set
  mov eax, 16
  mov edx, 8
  call ds_init
  mov dword ptr [APIC + APIC_SVR], 0x1FF
  mov dword ptr [APIC + APIC_LVT_PERF], VECTOR
  mov ebx, [ebp + MODEL_BIT_TR]
  or ebx, [ebp + MODEL_BIT_BTS]
  or ebx, [ebp + MODEL_BIT_BTINT]
  mov esi, 100
  sti
  msr_set IA32_DEBUGCTL, ebx
head:
  dec esi
tail:
  jnz head
  cli
  msr_write IA32_DEBUGCTL, 0
  mov eax, [stored]
  call dump_bts
  call println
  expect "interrupts", 1, [interrupts]
  expect "jumps taken when it came", 8, [taken]
  expect "records in the buffer", 9, [stored]
  expect_bts 0, tail, head
  expect_bts 7, tail, head
  expect_bts 8, head, handler /* an interrupt: FROM is what would have run next */
  mov eax, [lvt]
  and eax, 0x10000
  expect "the LVT entry masked itself", 0x10000, eax
  ret

/* What the manual asks of it: stop the trace, look, make room, unmask, acknowledge. */
handler:
  pushad
  mov ecx, IA32_DEBUGCTL
  xor eax, eax
  xor edx, edx
  wrmsr
  inc dword ptr [interrupts]
  mov eax, 100
  sub eax, esi
  mov [taken], eax
  call bts_count
  mov [stored], eax
  mov eax, [APIC + APIC_LVT_PERF]
  mov [lvt], eax
  mov dword ptr [APIC + APIC_LVT_PERF], VECTOR
  mov dword ptr [APIC + APIC_EOI], 0
  popad
  iretd

.section .data
interrupts:
  .long 0
taken:
  .long 0
stored:
  .long 0
lvt:
  .long 0
