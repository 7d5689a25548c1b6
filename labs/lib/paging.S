/* SPDX-License-Identifier: Apache-2.0
 *
 * PAE paging, identity: the first 4 MiB in two large pages, the next 2 MiB from 0x400000 on in small ones.
 */
#include "lab.inc"

.section .text

.global pae_enable
pae_enable:
  pushad
  mov dword ptr [pdpt], offset pd + 1
  mov dword ptr [pd], 0x000083
  mov dword ptr [pd + 8], 0x200083
  mov dword ptr [pd + 16], offset pt + 3
  xor ecx, ecx
  mov eax, 0x400003
1:
  mov [pt + ecx * 8], eax
  add eax, 4096
  inc ecx
  cmp ecx, 512
  jne 1b
  mov eax, cr4
  or eax, 1 << 5 /* PAE */
  mov cr4, eax
  mov eax, offset pdpt
  mov cr3, eax
  mov eax, cr0
  or eax, 1 << 31
  mov cr0, eax
  popad
  ret

/* The entries that translate the linear address in ESI. */
.global dump_pae_page
dump_pae_page:
  pushad
  print "  PDPTE 0x"
  mov edi, offset pdpt
  mov eax, esi
  shr eax, 30
  call dump_entry
  print "  PDE   0x"
  mov edi, offset pd
  mov eax, esi
  shr eax, 21
  and eax, 511
  call dump_entry
  print "  PTE   0x"
  mov edi, offset pt
  mov eax, esi
  shr eax, 12
  and eax, 511
  call dump_entry
  popad
  ret

dump_entry:
  mov edx, [edi + eax * 8 + 4]
  mov eax, [edi + eax * 8]
  call put_hex64
  call println
  ret

.section .bss
  .align 4096
pd:
  .skip 4096
pt:
  .skip 4096
pdpt:
  .skip 32
