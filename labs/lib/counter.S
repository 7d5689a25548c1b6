/* SPDX-License-Identifier: Apache-2.0
 *
 * Performance counter 0 of an architectural PMU, and its interrupt through the local APIC. SDM vol. 3, 18.2 and 10.5.1.
 */
#include "lab.inc"

.section .text

/* Counter 0 counts event ECX, in ring 0, and overflows with an interrupt after EAX of them. GLOBAL_CTRL stays 0. */
.global counter_init
counter_init:
  pushad
  mov ebx, ecx
  msr_write IA32_PERF_GLOBAL_CTRL, 0
  mov ecx, IA32_PMC0
  mov eax, [esp + 28]
  neg eax
  mov edx, -1
  wrmsr
  or ebx, 1 << 17 | 1 << 20 | 1 << 22 /* OS, INT, EN */
  msr_write IA32_PERFEVTSEL0, ebx
  mov dword ptr [APIC + APIC_SVR], 0x1FF
  mov dword ptr [APIC + APIC_LVT_PERF], COUNTER_VECTOR
  popad
  ret

/* No counter counts, no overflow is noted. */
.global counter_done
counter_done:
  pushad
  msr_write IA32_PERF_GLOBAL_CTRL, 0
  msr_write IA32_PERFEVTSEL0, 0
  msr_write IA32_PERF_GLOBAL_OVF_CTRL, 1
  mov dword ptr [APIC + APIC_LVT_PERF], 0x10000
  popad
  ret
