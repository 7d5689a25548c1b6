/* SPDX-License-Identifier: Apache-2.0
 *
 * CPL-qualified BTS in 64-bit mode: the trip of the lab bts-cpl from 64-bit code in ring 0 to 64-bit code in ring 3 and
 * back. IA-32e mode has the 64-bit layout on every CPU. SDM vol. 3, 17.4.9.1 and table 17-6.
 */
#include "lab.inc"

.set USER_STACK, 0x80000

.section .lab, "ax"
.global lab_main
lab_main:
  print "BTS by privilege level, in 64-bit mode\n"
  cmp dword ptr [ebp + MODEL_DS_HAS_CPL], 0
  need ne, "this CPU cannot tell privilege levels apart in BTS"
  mov eax, 0x80000000
  cpuid
  cmp eax, 0x80000001
  need ae, "this CPU has no 64-bit mode"
  mov eax, 0x80000001
  cpuid
  bt edx, 29
  need c, "this CPU has no 64-bit mode"
  call long_mode_enter
  mov dword ptr [ebp + MODEL_DS_IS_64], 1 /* from now on, whatever CPUID says */

  print "BTS_OFF_OS: ring 3 only\n"
  mov esi, [ebp + MODEL_BIT_BTS_OFF_OS]
  call trip
  expect "records", 3, eax
  expect_bts 0, user, user_2
  expect_bts 1, user_2, user_3
  expect_bts 2, user_3, back /* INT 0x41 */

  print "BTS_OFF_USR: ring 0 only\n"
  mov esi, [ebp + MODEL_BIT_BTS_OFF_USR]
  call trip
  expect "records", 3, eax
  expect_bts 0, down, down_2
  expect_bts 1, down_2, user /* IRETQ */
  expect_bts 2, back_jump, up
  ret

/* To 64-bit mode, to ring 3 and back, with the bits of ESI. EAX: how many records there are. */
trip:
  mov eax, 100
  mov edx, 101
  call ds_init
  or esi, [ebp + MODEL_BIT_TR]
  or esi, [ebp + MODEL_BIT_BTS]
  mov [saved_esp], esp
  jmp KERNEL_CS64:trip_64

.code64
trip_64: /* addresses go through 32-bit registers: the file is a 32-bit one */
  mov ebx, offset saved_esp
  mov eax, [rbx]
  mov ebx, offset tss
  mov [rbx + 4], rax
  push USER_DS
  push USER_STACK
  push 2
  push USER_CS64
  mov eax, offset user
  push rax
  mov ecx, IA32_DEBUGCTL
  mov eax, esi
  xor edx, edx
  wrmsr
down:
  jmp down_2
down_2:
  iretq

user:
  jmp user_2
user_2:
  jmp user_3
user_3:
  int 0x41

back:
  nop
back_jump:
  jmp up
up:
  mov ecx, IA32_DEBUGCTL
  xor eax, eax
  xor edx, edx
  wrmsr
  mov eax, KERNEL_DS
  mov ss, eax
  mov ebx, offset saved_esp
  mov esp, [rbx]
  push KERNEL_CS
  mov eax, offset trip_back
  push rax
  lretq
.code32

trip_back:
  mov eax, KERNEL_DS
  mov ds, eax
  mov es, eax
  call bts_count
  push eax
  call dump_bts
  pop eax
  ret

/* Identity pages of 2 MiB that ring 3 may use, a 64-bit task state segment, one gate; the code goes on in compatibility
 * mode. */
long_mode_enter:
  mov dword ptr [pml4], offset pdpt + 7
  mov dword ptr [pdpt], offset pd + 7
  xor ecx, ecx
  mov eax, 0x87
1:
  mov [pd + ecx * 8], eax
  add eax, 0x200000
  inc ecx
  cmp ecx, 512
  jne 1b
  mov eax, cr4
  or eax, 1 << 5
  mov cr4, eax
  mov eax, offset pml4
  mov cr3, eax
  msr_set IA32_EFER, 1 << 8
  mov eax, cr0
  or eax, 1 << 31
  mov cr0, eax
  mov eax, offset back
  mov [idt64 + 0x41 * 16], ax
  mov word ptr [idt64 + 0x41 * 16 + 2], KERNEL_CS64
  mov word ptr [idt64 + 0x41 * 16 + 4], 0xEE00
  shr eax, 16
  mov [idt64 + 0x41 * 16 + 6], ax
  lidt [idt64_pointer]
  mov byte ptr [gdt + TSS_SELECTOR + 5], 0x89 /* available again, now as a 64-bit one */
  mov eax, TSS_SELECTOR
  ltr ax
  ret

.section .data
saved_esp:
  .long 0
idt64_pointer:
  .word 0x42 * 16 - 1
  .long idt64

.section .bss
  .align 4096
pml4:
  .skip 4096
pdpt:
  .skip 4096
pd:
  .skip 4096
idt64:
  .skip 0x42 * 16
