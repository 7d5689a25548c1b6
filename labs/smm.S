/* SPDX-License-Identifier: Apache-2.0
 *
 * System management mode. Without FREEZE_WHILE_SMM_EN the branches of the SMI handler go into the LBR stack; with it they
 * do not, and RSM brings recording back. The SMI itself is not recorded. SDM vol. 3, 17.4.1 and chapter 34.
 */
#include "lab.inc"

.set SMI_ENTRY, 0x38000 /* SMBASE + 0x8000 after reset */
.set SMI_PORT, 0xB2

.section .lab, "ax"
.global lab_main
lab_main:
  print "The LBR stack and system management mode\n"
  cmp dword ptr [ebp + MODEL_BIT_FREEZE_SMM], 0
  need ne, "this CPU has no FREEZE_WHILE_SMM_EN"
  cmp dword ptr [ebp + MODEL_DEPTH], 8
  need ae, "this CPU has too few records"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_ARCH
  need ne, "architectural LBR never records in SMM"
  mov esi, offset smi_handler
  mov edi, SMI_ENTRY
  mov ecx, offset smi_handler_end - smi_handler
  rep movsb

  print "FREEZE_WHILE_SMM_EN set\n"
  mov ebx, [ebp + MODEL_BIT_FREEZE_SMM]
  or ebx, 1
  call trip
  call lbr_count
  expect "records", 2, eax
  expect_record 1, before, smi
  expect_record 0, after, last
  mov eax, [debugctl]
  and eax, 1
  expect "DEBUGCTL.LBR after RSM", 1, eax
  expect "SMIs handled", 1, [SMI_ENTRY + 0x1000]

  print "FREEZE_WHILE_SMM_EN clear\n"
  mov ebx, 1
  call trip
  call dump_lbr_stack
  call lbr_count
  expect "records", 6, eax
  expect_record 3, before, smi
  expect_record 0, after, last
  mov eax, 2
  call lbr_entry
  call lbr_from
  and eax, 0xFFFF
  expect "the SMI handler's first jump, offset", (0x8000 + smi_first - smi_handler), eax
  mov eax, 1
  call lbr_entry
  call lbr_from
  and eax, 0xFFFF
  expect "its second", (0x8000 + smi_second - smi_handler), eax
  expect "SMIs handled", 2, [SMI_ENTRY + 0x1000]
  ret

/* An SMI between two jumps, with DEBUGCTL = EBX. */
trip:
  msr_write IA32_DEBUGCTL, ebx
before:
  jmp smi
smi:
  out SMI_PORT, al
after:
  jmp last
last:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  mov [debugctl], eax
  msr_write IA32_DEBUGCTL, 0
  ret

.code16
smi_handler:
  mov ax, cs
  mov ds, ax
  inc dword ptr [0x9000] /* SMBASE + 0x9000 */
smi_first:
  jmp smi_second
smi_second:
  jmp smi_third
smi_third:
  rsm
smi_handler_end:
.code32

.section .data
debugctl:
  .long 0
