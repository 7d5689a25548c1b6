/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiment 14-3 of chapter 14 of 《x86/x64 体系探索及编程》 (listings 14-4 and 14-5): LBR_SELECT = 0x28 leaves out near
 * relative calls and near returns. The filter leaves out the call itself, not what the callee does: ten records.
 */
#include "lab.inc"
#include "jumps.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "Experiment 14-3: LBR_SELECT = 0x28, no near relative calls and returns\n"
  cmp dword ptr [ebp + MODEL_SELECT], MSR_LBR_SELECT
  need e, "this CPU has no MSR_LBR_SELECT"
  cmp dword ptr [ebp + MODEL_TOS], 0
  need ne, "this CPU has no TOS register"
  cmp dword ptr [ebp + MODEL_DEPTH], 16
  need ae, "this CPU has fewer than 16 records"
  jumps_copy

  mov ecx, IA32_DEBUGCTL /* 2) LBR = 1 */
  rdmsr
  bts eax, LBR_BIT
  wrmsr
  mov ecx, MSR_LBR_SELECT /* 3) filter */
  xor edx, edx
  mov eax, 0x28
  wrmsr
  mov eax, COPY /* 4) near indirect call */
call_func:
  call eax
  mov ecx, IA32_DEBUGCTL /* 5) LBR = 0 */
  rdmsr
  btr eax, LBR_BIT
  wrmsr
  call dump_lbr_stack /* 6) report */
  call println

  call lbr_count
  expect "records", 10, eax
  call lbr_top
  expect "TOS", 10, eax
  expect_record 9, call_func, COPY               /* call eax */
  expect_record 8, COPY_JUMP, COPY_NEXT          /* jmp eax */
  expect_record 7, COPY_INT, service_stub        /* int 0x40 */
  expect_record 6, service_stub, service_entry   /* into the library */
  expect_record 5, service_entry, system_service /* to the service */
  expect_record 4, service_call, __puts          /* call eax */
  expect_record 3, __write_char_jump, __write_char_line
  expect_record 2, __puts_jump, __puts_loop      /* jmp, the string's next character */
  expect_record 1, __puts_jz, __puts_done        /* jz, at its end */
  expect_record 0, service_iret, COPY_BACK       /* iretd */
  expect "the stub, in the book", 0xD8E0, (offset service_stub)
  expect "its target, in the book", 0xE0A0, (offset service_entry)
  ret

jumps_function
