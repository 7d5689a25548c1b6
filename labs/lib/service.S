/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 0x40, the system service of the experiments: a stub, a jump into the library, a call through a table, IRETD. EAX
 * is the number of the service; 0 prints the string at ESI.
 */
#include "lab.inc"

.section .stub, "ax"
.global service_stub
service_stub:
  jmp service_entry

.section .entry, "ax"
.global service_entry
service_entry:
  jmp system_service

.section .service, "ax"
.global system_service, service_call, service_iret
system_service:
  push ebx
  push ecx
  push edx
  push edi
  and eax, 0
  mov eax, [services + eax * 4]
service_call:
  call eax
  pop edi
  pop edx
  pop ecx
  pop ebx
service_iret:
  iretd

.section .rodata
services:
  .long __puts
