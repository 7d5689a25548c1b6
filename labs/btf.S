/* SPDX-License-Identifier: Apache-2.0
 *
 * Single-step on branches. With DEBUGCTL.BTF and EFLAGS.TF set, #DB comes after a taken branch only; every #DB clears BTF,
 * so that the handler sets it again, and a handler that forgets steps instructions instead. SDM vol. 3, 17.4.3.
 */
#include "lab.inc"

.set TF, 1 << 8

.macro stepping_on
  pushfd
  or dword ptr [esp], TF
  popfd
.endm

.macro stepping_off
  pushfd
  and dword ptr [esp], ~TF
  popfd
.endm

.section .lab, "ax"
.global lab_main
lab_main:
  print "BTF: single-step on branches\n"
  cmp dword ptr [ebp + MODEL_BIT_BTF], 0
  need ne, "this CPU has no DEBUGCTL.BTF"
  mov ecx, 1
  mov eax, offset handler
  call idt_set

  print "BTF set again by the handler: a trap after each taken branch\n"
  mov dword ptr [rearm], 1
  call set_btf
  stepping_on
  mov eax, 1
  jmp one
  nop
one:
  test eax, eax
  jz never /* not taken: no trap */
  nop
  call two
three:
  nop
  loop four /* ECX is not 1: taken */
  nop
four:
  stepping_off
  expect "traps", 4, [count]
  expect "after JMP, at", (offset one), [log]
  expect "after CALL, at", (offset two), [log + 4]
  expect "after RET, at", (offset three), [log + 8]
  expect "after LOOP, at", (offset four), [log + 12]
  expect "DR6.BS was set every time", 4, [bs_count]
  expect "BTF was clear in every handler", 4, [clear_count]

  print "BTF not set again: after the first branch, every instruction\n"
  mov dword ptr [rearm], 0
  mov dword ptr [count], 0
  call set_btf
  stepping_on
  nop
  nop
  jmp five
five:
  nop
six:
  nop
seven:
  stepping_off
  expect "first trap, at", (offset five), [log]
  expect "second trap, at", (offset six), [log + 4]
  expect "third trap, at", (offset seven), [log + 8]
never:
  ret

two:
  nop
  ret

set_btf:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  or eax, [ebp + MODEL_BIT_BTF]
  wrmsr
  mov ecx, 100
  ret

handler:
  push eax
  push ecx
  push edx
  mov ecx, [count]
  cmp ecx, 16
  jae 1f
  mov eax, [esp + 12]
  mov [log + ecx * 4], eax
1:
  inc dword ptr [count]
  mov eax, dr6
  bt eax, 14
  adc dword ptr [bs_count], 0
  xor eax, eax
  mov dr6, eax
  mov ecx, IA32_DEBUGCTL
  rdmsr
  test eax, [ebp + MODEL_BIT_BTF]
  jnz 2f
  inc dword ptr [clear_count]
2:
  cmp dword ptr [rearm], 0
  je 3f
  or eax, [ebp + MODEL_BIT_BTF]
  wrmsr
3:
  pop edx
  pop ecx
  pop eax
  iretd

.section .data
rearm:
  .long 0
count:
  .long 0
bs_count:
  .long 0
clear_count:
  .long 0
log:
  .skip 16 * 4
