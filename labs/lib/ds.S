/* SPDX-License-Identifier: Apache-2.0
 *
 * The DS area: management area and BTS buffer in the layout that this CPU uses outside IA-32e mode (64-bit fields with
 * DTES64, else 32-bit ones). SDM vol. 3, 17.4.9.
 */
#include "lab.inc"

.section .text

/* EAX: records that fit; EDX: record at which the interrupt threshold lies, or more than EAX for none. Empties the buffer
 * and points IA32_DS_AREA to it. */
.global ds_init
ds_init:
  pushad
  push edx
  push eax
  mov edi, offset ds_area
  mov ecx, (4096 * 2) / 4 /* the area and the BTS buffer behind it */
  xor eax, eax
  rep stosd
  mov ecx, 12
  cmp dword ptr [ebp + MODEL_DS_IS_64], 0
  je 1f
  add ecx, ecx
1:
  mov [bts_record_size], ecx
  mov eax, offset bts_buffer
  xor ebx, ebx
  call ds_put /* base */
  call ds_put /* index */
  pop eax
  imul eax, ecx
  add eax, offset bts_buffer
  call ds_put /* absolute maximum */
  pop eax
  imul eax, ecx
  add eax, offset bts_buffer
  call ds_put /* threshold */
  msr_write IA32_DS_AREA, (offset ds_area)
  popad
  ret

/* EAX into field EBX, which is counted up. */
ds_put:
  cmp dword ptr [ebp + MODEL_DS_IS_64], 0
  jne 1f
  mov [ds_area + ebx * 4], eax
  inc ebx
  ret
1:
  mov [ds_area + ebx * 8], eax
  inc ebx
  ret

/* Field EBX into EAX. */
.global ds_get
ds_get:
  cmp dword ptr [ebp + MODEL_DS_IS_64], 0
  jne 1f
  mov eax, [ds_area + ebx * 4]
  ret
1:
  mov eax, [ds_area + ebx * 8]
  ret

/* EAX: records between base and index. */
.global bts_count
bts_count:
  push ebx
  push edx
  mov ebx, 1
  call ds_get
  sub eax, offset bts_buffer
  xor edx, edx
  div dword ptr [bts_record_size]
  pop edx
  pop ebx
  ret

/* The next record goes to the base again. */
.global bts_rewind
bts_rewind:
  pushad
  mov ebx, 1
  mov eax, offset bts_buffer
  call ds_put
  popad
  ret

/* Record EAX: FROM in EAX, TO in EDX, flags in ECX. */
.global bts_get
bts_get:
  push ebx
  imul eax, [bts_record_size]
  lea ebx, [bts_buffer + eax]
  cmp dword ptr [ebp + MODEL_DS_IS_64], 0
  jne 1f
  mov eax, [ebx]
  mov edx, [ebx + 4]
  mov ecx, [ebx + 8]
  pop ebx
  ret
1:
  mov eax, [ebx]
  mov edx, [ebx + 8]
  mov ecx, [ebx + 16]
  pop ebx
  ret

/* The first EAX records, as they lie. */
.global dump_bts
dump_bts:
  pushad
  mov edi, eax
  xor esi, esi
  print "     from        to          predicted\n"
1:
  cmp esi, edi
  je 2f
  mov eax, esi
  call put_decimal
  print ": 0x"
  mov eax, esi
  call bts_get
  call put_hex32
  print "  0x"
  mov eax, edx
  call put_hex32
  print "  "
  mov eax, ecx
  shr eax, 4
  and eax, 1
  call put_decimal
  call println
  inc esi
  jmp 1b
2:
  popad
  ret

/* On the stack: number, FROM, TO (lab.inc's expect_bts). */
.global expect_bts_is
expect_bts_is:
  pushad
  mov eax, [esp + 36]
  call bts_get
  mov edi, eax
  mov ebx, edx
  print "BTS record "
  mov eax, [esp + 36]
  call expect_pair
  popad
  ret 12

.section .data
bts_record_size:
  .long 24

.section .bss
.global ds_area, bts_buffer
  .align 4096
ds_area:
  .skip 4096
bts_buffer:
  .skip 4096
