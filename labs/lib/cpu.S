/* SPDX-License-Identifier: Apache-2.0
 *
 * Which CPU is this? DisplayFamily and DisplayModel from CPUID, then a row of the catalogue; and the LBR stack, read as
 * that row says.
 */
#include "lab.inc"

.section .text

/* EBP points to the CPU's row from now on, and stays so. */
.global cpu_find
cpu_find:
  xor eax, eax
  cpuid
  mov edi, ebx /* first word of the vendor */
  mov eax, 1
  cpuid
  mov ebx, eax /* stepping */
  and ebx, 15
  mov ecx, eax /* family */
  shr ecx, 8
  and ecx, 15
  mov edx, eax /* model */
  shr edx, 4
  and edx, 15
  mov esi, eax /* extended model << 4 */
  shr esi, 12
  and esi, 0xF0
  cmp ecx, 6
  je 1f
  cmp ecx, 15
  jne 2f
  shr eax, 20
  and eax, 0xFF
  add ecx, eax
1:
  add edx, esi
2:
  mov ebp, offset models
3:
  cmp edi, [ebp + MODEL_VENDOR]
  jne 4f
  cmp ecx, [ebp + MODEL_FAMILY]
  jne 4f
  cmp edx, [ebp + MODEL_FIRST]
  jb 4f
  cmp edx, [ebp + MODEL_LAST]
  ja 4f
  cmp ebx, [ebp + MODEL_FIRST_STEPPING]
  jb 4f
  cmp ebx, [ebp + MODEL_LAST_STEPPING]
  jbe 5f
4:
  add ebp, MODEL_SIZE
  cmp ebp, offset models_end
  jne 3b
  print "this CPU is not in the catalogue\n"
  jmp lab_lacking
5:
  print "CPU "
  mov al, cl
  call put_hex8
  print "_"
  mov al, dl
  call put_hex8
  print "\n"
  ret

/* ---- the LBR stack ---- */

/* EAX: entry of the newest record. */
.global lbr_top
lbr_top:
  xor eax, eax
  cmp dword ptr [ebp + MODEL_IS_NEWEST_FIRST], 0
  jne 1f
  mov ecx, [ebp + MODEL_TOS]
  rdmsr
  mov ecx, [ebp + MODEL_DEPTH]
  dec ecx
  and eax, ecx
1:
  ret

/* Entry EAX: FROM in EDX:EAX. lbr_to and lbr_info likewise. */
.global lbr_from, lbr_to, lbr_info
lbr_from:
  mov ecx, eax
  imul ecx, [ebp + MODEL_STRIDE]
  add ecx, [ebp + MODEL_FROM]
  rdmsr
  cmp dword ptr [ebp + MODEL_IS_COMBINED], 0
  je 1f
  xor edx, edx
1:
  ret

lbr_to:
  mov ecx, eax
  imul ecx, [ebp + MODEL_STRIDE]
  add ecx, [ebp + MODEL_TO]
  rdmsr
  cmp dword ptr [ebp + MODEL_IS_COMBINED], 0
  je 1f
  mov eax, edx
  xor edx, edx
1:
  ret

lbr_info:
  mov ecx, eax
  imul ecx, [ebp + MODEL_STRIDE]
  add ecx, [ebp + MODEL_INFO]
  rdmsr
  ret

/* EAX, an age: its entry. */
.global lbr_entry
lbr_entry:
  cmp dword ptr [ebp + MODEL_IS_NEWEST_FIRST], 0
  jne 1f
  push eax
  call lbr_top
  sub eax, [esp]
  add esp, 4
  mov ecx, [ebp + MODEL_DEPTH]
  dec ecx
  and eax, ecx
1:
  ret

/* EAX: how many entries hold a record. */
.global lbr_count
lbr_count:
  push ebx
  push esi
  xor ebx, ebx
  xor esi, esi
1:
  mov eax, esi
  call lbr_from
  and edx, 0x7FFFFFFF /* the flags of an empty entry do not count */
  or edx, eax
  jz 2f
  inc ebx
2:
  inc esi
  cmp esi, [ebp + MODEL_DEPTH]
  jne 1b
  mov eax, ebx
  pop esi
  pop ebx
  ret

.global dump_lbr_stack
dump_lbr_stack:
  pushad
  call lbr_top
  mov edi, eax
  xor esi, esi
  print "     from_ip             to_ip\n"
1:
  mov eax, esi
  call put_decimal
  print ": 0x"
  mov eax, esi
  call lbr_from
  call put_hex64
  print "  0x"
  mov eax, esi
  call lbr_to
  call put_hex64
  cmp esi, edi
  jne 2f
  print "  <== TOP"
2:
  call println
  inc esi
  cmp esi, [ebp + MODEL_DEPTH]
  jne 1b
  popad
  ret

.section .data /* a lab may correct its row */
#include "models.inc"
