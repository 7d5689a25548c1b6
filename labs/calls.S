/* SPDX-License-Identifier: Apache-2.0
 *
 * Call-stack mode (Haswell on): LBR_SELECT bit 9. A near call pushes a record, a near return takes the newest away, so
 * that the stack holds the calls that are still open. SDM vol. 3, 17.9.
 */
#include "lab.inc"

.section .lab, "ax"
.global lab_main
lab_main:
  print "Call-stack mode\n"
  test dword ptr [ebp + MODEL_SELECT_MASK], 1 << 9
  need nz, "this CPU has no call-stack mode"
  msr_write MSR_LBR_SELECT, 0x3C4
  msr_set IA32_DEBUGCTL, 1
call_outer:
  call outer
  call dump_lbr_stack
  call println
  call lbr_count
  expect "open calls", 2, eax
  expect_record 1, call_outer, outer
  expect_record 0, call_inner, inner
  ret

outer:
  call leaf /* returns: leaves no record */
  jmp 1f    /* jumps do not count */
1:
  call leaf
call_inner:
  call inner
  ret

leaf:
  ret

inner:
  msr_clear IA32_DEBUGCTL, 1
  ret
