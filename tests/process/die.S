/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to end, chosen by the number of arguments. No libc, no absolute address.
 */
  .globl _start
_start:
  mov (%rsp), %ecx
  lea ways(%rip), %rdx
  movslq -4(%rdx, %rcx, 4), %rax
  add %rdx, %rax
choose:
  jmp *%rax

status:
  mov $231, %eax /* exit_group(42) */
  mov $42, %edi
exit:
  syscall
exit_next:
divide:
  xor %ecx, %ecx
  div %ecx
illegal:
  ud2
privileged:
  hlt
smashed:
  push $0x41414141
return:
  ret /* it does return; there is nothing */
not_canonical:
  movabs $0x4141414141414141, %rax
  push %rax
  ret /* faults itself */
no_stack:
  mov $8, %esp
  call divide /* faults before it jumps */
nowhere:
  xor %eax, %eax
call_null:
  call *%rax
breakpoint:
  int3
breakpoint_next:
killed:
  mov $39, %eax /* getpid */
pid:
  syscall
pid_next:
  mov %eax, %edi
  mov $9, %esi /* SIGKILL */
  mov $62, %eax /* kill */
kill:
  syscall
kill_next:
software:
  int $0x42 /* no such gate for programs */

  .section .rodata
  .balign 4
ways:
  .long status - ways, divide - ways, illegal - ways, privileged - ways, smashed - ways, not_canonical - ways
  .long no_stack - ways, nowhere - ways, breakpoint - ways, killed - ways, software - ways

/* Run: status 42
# 1 exec _start
1 choose status jmp_ind
1 exit exit_next syscall
# 1 exit 42
*/
/* Run 1: status 136
# 1 exec _start
1 choose divide jmp_ind
# 1 signal 8
*/
/* Run 1 2: status 132
# 1 exec _start
1 choose illegal jmp_ind
# 1 signal 4
*/
/* Run 1 2 3: status 139
# 1 exec _start
1 choose privileged jmp_ind
# 1 signal 11
*/
/* Run 1 2 3 4: status 139
# 1 exec _start
1 choose smashed jmp_ind
1 return 0x41414141 ret
# 1 signal 11
*/
/* Run 1 2 3 4 5: status 139
# 1 exec _start
1 choose not_canonical jmp_ind
# 1 signal 11
*/
/* Run 1 2 3 4 5 6: status 139
# 1 exec _start
1 choose no_stack jmp_ind
# 1 signal 11
*/
/* Run 1 2 3 4 5 6 7: status 139
# 1 exec _start
1 choose nowhere jmp_ind
1 call_null 0x0 call_ind
# 1 signal 11
*/
/* Run 1 2 3 4 5 6 7 8: status 133
# 1 exec _start
1 choose breakpoint jmp_ind
1 breakpoint breakpoint_next int3
# 1 signal 5
*/
/* Run 1 2 3 4 5 6 7 8 9: status 137
# 1 exec _start
1 choose killed jmp_ind
1 pid pid_next syscall
1 kill kill_next syscall
# 1 signal 9
*/
/* Run 1 2 3 4 5 6 7 8 9 10: status 139
# 1 exec _start
1 choose software jmp_ind
# 1 signal 11
*/
