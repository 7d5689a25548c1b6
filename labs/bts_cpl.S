/* SPDX-License-Identifier: Apache-2.0
 *
 * CPL-qualified BTS: BTS_OFF_OS keeps branches of ring 0 out of the buffer, BTS_OFF_USR those of the other rings. The same
 * trip to ring 3 and back is made with each. What counts is the privilege level before the branch. SDM vol. 3, 17.4.9.4
 * (table 17-6); chapter 14 of 《x86/x64 体系探索及编程》.
 */
#include "lab.inc"

.set USER_STACK, 0x80000

.section .lab, "ax"
.global lab_main
lab_main:
  print "BTS by privilege level\n"
  cmp dword ptr [ebp + MODEL_DS_HAS_CPL], 0
  need ne, "this CPU cannot tell privilege levels apart in BTS"
  mov ecx, 0x41
  mov eax, offset back
  call idt_set_user

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
  expect_bts 1, down_2, user /* IRETD */
  expect_bts 2, back_jump, up

  print "Both: nothing\n"
  mov esi, [ebp + MODEL_BIT_BTS_OFF_OS]
  or esi, [ebp + MODEL_BIT_BTS_OFF_USR]
  call trip
  expect "records", 0, eax

  print "Neither: everything\n"
  xor esi, esi
  call trip
  expect "records", 6, eax
  ret

/* To ring 3 and back with the bits of ESI. EAX: how many records there are. */
trip:
  mov eax, 100
  mov edx, 101
  call ds_init
  mov [saved_esp], esp
  mov [tss + 4], esp
  or esi, [ebp + MODEL_BIT_TR]
  or esi, [ebp + MODEL_BIT_BTS]
  push USER_DS
  push USER_STACK
  push 2
  push USER_CS
  push offset user
  msr_write IA32_DEBUGCTL, esi
down:
  jmp down_2
down_2:
  iretd

user:
  jmp user_2
user_2:
  jmp user_3
user_3:
  int 0x41

back:
  mov eax, KERNEL_DS
  mov ds, eax
  mov es, eax
  mov esp, [saved_esp]
back_jump:
  jmp up
up:
  msr_write IA32_DEBUGCTL, 0
  call bts_count
  push eax
  call dump_bts
  pop eax
  ret

.section .data
saved_esp:
  .long 0
