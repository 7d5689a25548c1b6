/* SPDX-License-Identifier: Apache-2.0
 *
 * What was expected, what was found. See lab.inc's `expect` and `expect_record`.
 */
#include "lab.inc"

.section .text

/* On the stack: what is compared. EDX: wanted, EAX: got. */
.global expect_equal
expect_equal:
  pushad
  mov esi, [esp + 36]
  call puts
  print ": expected 0x"
  xchg eax, edx
  call put_hex32
  print ", got 0x"
  xchg eax, edx
  call put_hex32
  cmp eax, edx
  call verdict
  popad
  ret 4

verdict:
  je 1f
  inc dword ptr [failures]
  print "  WRONG\n"
  ret
1:
  print "  ok\n"
  ret

/* On the stack: age, FROM, TO. */
.global expect_record_is
expect_record_is:
  pushad
  mov eax, [esp + 36]
  call lbr_entry
  mov esi, eax
  call lbr_from
  mov edi, eax /* got FROM */
  mov eax, esi
  call lbr_to
  mov ebx, eax /* got TO */
  print "record "
  mov eax, [esp + 36]
  call expect_pair
  popad
  ret 12

/* For expect_record_is and expect_bts_is: number in EAX, got FROM in EDI and TO in EBX; what is wanted lies on the stack,
 * above the return address and the caller's saved registers. */
.global expect_pair
expect_pair:
  call put_decimal
  print ": expected 0x"
  mov eax, [esp + 44]
  call put_hex32
  print " -> 0x"
  mov eax, [esp + 48]
  call put_hex32
  print ", got 0x"
  mov eax, edi
  call put_hex32
  print " -> 0x"
  mov eax, ebx
  call put_hex32
  sub edi, [esp + 44]
  sub ebx, [esp + 48]
  or ebx, edi
  call verdict
  ret
