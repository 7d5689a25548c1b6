/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes without libc. A child by fork, which goes another way in its own copy of the memory; one by vfork that
 * executes this program again, with an argument; and one whose second thread does that, while its first waits.
 */
#define FLAGS 0x50F00 /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM */
  .globl _start
_start:
  mov (%rsp), %ebx /* argc: 1 at first */
  dec %ebx
again:
  jnz executed
  mov $57, %eax /* fork */
fork:
  syscall
fork_next:
  test %eax, %eax
is_child:
  jz child
wait_1:
  call wait
wait_1_next:
  mov $58, %eax /* vfork */
vfork:
  syscall
vfork_next:
  test %eax, %eax
is_vfork_child:
  jz execute
wait_2:
  call wait
wait_2_next:
  mov $57, %eax
fork_2:
  syscall
fork_2_next:
  test %eax, %eax
is_child_2:
  jz child_2
wait_3:
  call wait
wait_3_next:
  mov status(%rip), %edi /* 5, from executed */
  shr $8, %edi
  mov $231, %eax /* exit_group */
exit:
  syscall
exit_next:

wait:
  mov $61, %eax /* wait4(-1, &status, 0, NULL) */
  mov $-1, %rdi
  lea status(%rip), %rsi
  xor %edx, %edx
  xor %r10d, %r10d
wait_call:
  syscall
wait_call_next:
wait_return:
  ret

child:
  mov $3, %ecx
child_loop:
  loop child_loop
  xor %edi, %edi
  mov $60, %eax /* exit(0) */
child_exit:
  syscall
child_exit_next:

child_2:
  mov $56, %eax /* clone */
  mov $FLAGS, %edi
  lea stack(%rip), %rsi
clone:
  syscall
clone_next:
  test %eax, %eax
is_thread:
  jz thread
  mov $34, %eax /* pause */
pause:
  syscall
pause_next:
  ud2
thread:
  mov $35, %eax /* nanosleep: until the other one waits */
  lea time(%rip), %rdi
  xor %esi, %esi
sleep:
  syscall
sleep_next:
execute:
  lea arguments(%rip), %rsi
  lea path(%rip), %rdi
  mov %rdi, (%rsi)
  mov %rdi, 8(%rsi)
  xor %edx, %edx
  mov $59, %eax /* execve */
execve:
  syscall
execve_next:
  ud2

executed:
  mov $5, %edi
  mov $231, %eax /* exit_group(5) */
executed_exit:
  syscall
executed_exit_next:

  .section .rodata
path:
  .asciz "/proc/self/exe"
  .balign 8
time:
  .quad 0, 300000000
  .bss
  .balign 16
arguments:
  .skip 24
status:
  .skip 8
  .skip 4096
  .balign 16
stack:

/* Run: status 5
# 1 exec _start
1 fork fork_next syscall
1 wait_1 wait call
1 wait_call wait_call_next syscall
1 wait_return wait_1_next ret
1 vfork vfork_next syscall
1 wait_2 wait call
1 wait_call wait_call_next syscall
1 wait_return wait_2_next ret
1 fork_2 fork_2_next syscall
1 wait_3 wait call
1 wait_call wait_call_next syscall
1 wait_return wait_3_next ret
1 exit exit_next syscall
# 1 exit 5
# 2 fork 1 fork_next
2 is_child child jcc
2 child_loop child_loop jcc
2 child_loop child_loop jcc
2 child_exit child_exit_next syscall
# 2 exit 0
# 3 vfork 1 vfork_next
3 is_vfork_child execute jcc
3 execve execve_next syscall
# 3 exec _start
3 again executed jcc
3 executed_exit executed_exit_next syscall
# 3 exit 5
# 4 fork 1 fork_2_next
4 is_child_2 child_2 jcc
4 clone clone_next syscall
4 pause pause_next syscall
# 4 replaced
# 5 clone 4 clone_next
5 is_thread thread jcc
5 sleep sleep_next syscall
5 execve execve_next syscall
# 5 exec _start
5 again executed jcc
5 executed_exit executed_exit_next syscall
# 5 exit 5
*/
