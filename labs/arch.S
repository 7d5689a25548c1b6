/* SPDX-License-Identifier: Apache-2.0
 *
 * Architectural LBR: IA32_LBR_CTL says what is recorded (a 1 records, unlike LBR_SELECT), entry 0 is always the newest,
 * INFO names the type of branch, #DB clears the enable bit, writing the depth clears the records. SDM vol. 3, chapter on
 * last branch records.
 */
#include "lab.inc"

.set LBREN, 1
.set OS, 2
.set COND, 1 << 16
.set REL_JMP, 1 << 17
.set IND_JMP, 1 << 18
.set REL_CALL, 1 << 19
.set IND_CALL, 1 << 20
.set RET, 1 << 21
.set OTHER, 1 << 22
.set ALL, COND | REL_JMP | IND_JMP | REL_CALL | IND_CALL | RET | OTHER

.section .lab, "ax"
.global lab_main
lab_main:
  print "Architectural LBR\n"
  cmp dword ptr [ebp + MODEL_FORMAT], FORMAT_ARCH
  need e, "this CPU has no architectural LBR"
  mov eax, 7
  xor ecx, ecx
  cpuid
  bt edx, 19
  setc al
  movzx eax, al
  expect "CPUID.7.EDX[19]", 1, eax
  mov eax, 0x1C
  xor ecx, ecx
  cpuid
  mov ebx, eax
  and ebx, 0xFF
  bsr ecx, ebx
  lea ecx, [ecx * 8 + 8]
  mov ebx, ecx
  mov ecx, IA32_LBR_DEPTH
  rdmsr
  expect "IA32_LBR_DEPTH: the largest of CPUID.1CH", ebx, eax

  print "All branches\n"
  msr_write IA32_LBR_CTL, (LBREN | OS | ALL)
j1:
  jmp j2
j2:
  call function
j3:
  mov eax, offset j4
jump_ind:
  jmp eax
j4:
  xor eax, eax
jump_cond:
  jz j5
j5:
  msr_write IA32_LBR_CTL, 0
  call dump_lbr_stack
  call lbr_count
  expect "records", 5, eax
  expect_record 0, jump_cond, j5
  expect_record 1, jump_ind, j4
  expect_record 2, function, j3
  expect_record 3, j2, function
  expect_record 4, j1, j2
  mov ecx, IA32_LBR_0_INFO
  call branch_type
  expect "type of entry 0: conditional", 0, eax
  mov ecx, IA32_LBR_0_INFO + 1
  call branch_type
  expect "type of entry 1: near indirect jump", 1, eax
  mov ecx, IA32_LBR_0_INFO + 2
  call branch_type
  expect "type of entry 2: near return", 5, eax

  print "Writing the depth clears the records; then calls only\n"
  msr_write IA32_LBR_DEPTH, 8
  msr_write IA32_LBR_CTL, (LBREN | OS | REL_CALL)
  jmp j6
j6:
  call function
  msr_write IA32_LBR_CTL, 0
  mov ecx, IA32_LBR_0_FROM_IP
  rdmsr
  expect "FROM of entry 0", (offset j6), eax
  mov ecx, IA32_LBR_0_FROM_IP + 1
  rdmsr
  expect "FROM of entry 1", 0, eax

  print "A debug exception clears the enable bit\n"
  mov ecx, 1
  mov eax, offset handler
  call idt_set
  msr_write IA32_LBR_CTL, (LBREN | OS | ALL)
  .byte 0xF1 /* INT1 */
  mov ecx, IA32_LBR_CTL
  rdmsr
  and eax, LBREN
  expect "LBREn after it", 0, eax
  msr_write IA32_LBR_CTL, 0
  ret

function:
  ret

handler:
  iretd

/* BR_TYPE of the INFO register ECX. */
branch_type:
  rdmsr
  shr edx, 24
  and edx, 15
  mov eax, edx
  ret
