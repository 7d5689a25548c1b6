/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiment 14-4 of chapter 14 of 《x86/x64 体系探索及编程》 (listings 14-6 and 14-7): the filter bits of jumps. On Nehalem
 * and Westmere NEAR_IND_JMP and NEAR_REL_JMP leave out near calls and returns too: nothing remains in the first test, the
 * three far transfers in the second. From Sandy Bridge on the bits do what their names say.
 */
#include "lab.inc"
#include "jumps.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  call check_cpu
  print "Test 1: LBR_SELECT = 0x1C4, near indirect call\n"
  jumps_copy
  call test_1
  call check_1
  print "Test 2: LBR_SELECT = 0xC4, far call\n"
  jmp test_2

  .org 0x8A, 0x90
test_2:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  bts eax, LBR_BIT
  wrmsr
  mov ecx, MSR_LBR_SELECT
  xor edx, edx
  mov eax, 0xC4
  wrmsr
  nop
  nop
far_call:
  .byte 0x9A /* call DWORD KERNEL_CS:0x400000 */
  .long COPY
  .word KERNEL_CS
after_far_call:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  btr eax, LBR_BIT
  wrmsr
  add esp, 4 /* the function returned near: CS is still there */
  call dump_lbr_stack
  call println
  call check_2
  ret

check_cpu:
  print "Experiment 14-4: the filter bits of jumps\n"
  cmp dword ptr [ebp + MODEL_SELECT], MSR_LBR_SELECT
  need e, "this CPU has no MSR_LBR_SELECT"
  cmp dword ptr [ebp + MODEL_TOS], 0
  need ne, "this CPU has no TOS register"
  cmp dword ptr [ebp + MODEL_DEPTH], 16
  need ae, "this CPU has fewer than 16 records"
  ret

test_1:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  bts eax, LBR_BIT
  wrmsr
  mov ecx, MSR_LBR_SELECT
  xor edx, edx
  mov eax, 0x1C4
  wrmsr
  mov eax, COPY
near_call:
  call eax
after_near_call:
  mov ecx, IA32_DEBUGCTL
  rdmsr
  btr eax, LBR_BIT
  wrmsr
  call dump_lbr_stack
  call println
  ret

/* Records of near calls and returns: seven and six in the first test, six and six in the second. */
check_1:
  call lbr_count
  cmp dword ptr [ebp + MODEL_IS_NHM_SELECT], 0
  je 1f
  expect "records", 0, eax
  ret
1:
  expect "records", 13, eax
  expect_record 12, near_call, COPY
  expect_record 11, COPY_NEXT, COPY_EIP
  expect_record 10, service_call, __puts
  expect_record 0, COPY_BACK, after_near_call
  ret

/* On Nehalem and Westmere nothing was recorded before, so that three records are all there is. */
check_2:
  cmp dword ptr [ebp + MODEL_IS_NHM_SELECT], 0
  je 1f
  call lbr_count
  expect "records", 3, eax
  expect_record 2, far_call, COPY
  expect_record 1, COPY_INT, service_stub
  expect_record 0, service_iret, COPY_BACK
  expect "the far call, in the book", 0x90A7, (offset far_call)
  expect "INT 0x40, in the book", 0x400017, (offset COPY_INT)
  expect "its stub, in the book", 0xD8E0, (offset service_stub)
  expect "IRETD, in the book", 0xE883, (offset service_iret)
  expect "and where it returns to", 0x400019, (offset COPY_BACK)
  ret
1:
  expect_record 14, far_call, COPY
  expect_record 13, COPY_NEXT, COPY_EIP
  expect_record 12, COPY_INT, service_stub
  expect_record 1, service_iret, COPY_BACK
  expect_record 0, COPY_BACK, after_far_call
  ret

jumps_function
