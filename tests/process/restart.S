/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls that a timer interrupts: one is done again after the handler (SA_RESTART), one fails with EINTR, one
 * never hears of it, because the signal is ignored by then. The timers leave 0.4 s to reach the call.
 */
#define SA_RESTORER 0x04000000
#define SA_RESTART 0x10000000
  .globl _start
_start:
  mov $22, %eax /* pipe */
  lea pipe(%rip), %rdi
pipe_call:
  syscall
pipe_call_next:
  movl $SA_RESTORER | SA_RESTART, action + 8(%rip)
set_first:
  call set
set_first_next:
start_first:
  call start
start_first_next:
  xor %eax, %eax /* read(pipe[0], &byte, 1): the handler writes it */
  mov pipe(%rip), %edi
  lea byte(%rip), %rsi
  mov $1, %edx
read:
  syscall
read_next:
  cmp $1, %eax
one:
  je one_to
  ud2
one_to:
  movl $SA_RESTORER, action + 8(%rip)
set_second:
  call set
set_second_next:
start_second:
  call start
start_second_next:
  mov $34, %eax /* pause */
pause:
  syscall
pause_next:
  cmp $-4, %eax /* EINTR */
failed:
  je failed_to
  ud2
failed_to:
  mov $13, %eax /* rt_sigaction(SIGALRM, SIG_IGN, NULL, 8) */
  mov $14, %edi
  lea action(%rip), %rsi
  movq $1, (%rsi)
  xor %edx, %edx
  mov $8, %r10d
ignore:
  syscall
ignore_next:
start_third:
  call start
start_third_next:
  mov $35, %eax /* nanosleep(0.5 s) */
  lea sleep_time(%rip), %rdi
  xor %esi, %esi
sleep:
  syscall
sleep_next:
  mov $231, %eax /* exit_group(0) */
  xor %edi, %edi
exit:
  syscall
exit_next:

set:
  mov $13, %eax /* rt_sigaction(SIGALRM, &action, NULL, 8) */
  mov $14, %edi
  lea action(%rip), %rsi
  lea handler(%rip), %rdx
  mov %rdx, (%rsi)
  lea restorer(%rip), %rdx
  mov %rdx, 16(%rsi)
  xor %edx, %edx
  mov $8, %r10d
set_call:
  syscall
set_call_next:
set_return:
  ret
start:
  mov $38, %eax /* setitimer(ITIMER_REAL, &time, NULL) */
  xor %edi, %edi
  lea time(%rip), %rsi
  xor %edx, %edx
start_call:
  syscall
start_call_next:
start_return:
  ret
handler:
  mov $1, %eax /* write(pipe[1], &byte, 1) */
  mov pipe + 4(%rip), %edi
  lea byte(%rip), %rsi
  mov $1, %edx
write:
  syscall
write_next:
handler_return:
  ret
restorer:
  mov $15, %eax /* rt_sigreturn */
resume:
  syscall

  .data
  .balign 8
action:
  .quad 0, 0, 0, 0
time:
  .quad 0, 0, 0, 400000
sleep_time:
  .quad 0, 500000000
  .bss
pipe:
  .skip 8
byte:
  .skip 1

/* Run: status 0
# 1 exec _start
1 pipe_call pipe_call_next syscall
1 set_first set call
1 set_call set_call_next syscall
1 set_return set_first_next ret
1 start_first start call
1 start_call start_call_next syscall
1 start_return start_first_next ret
1 read read_next syscall
1 read handler interrupt
1 write write_next syscall
1 handler_return restorer ret
1 resume read iret
1 read read_next syscall
1 one one_to jcc
1 set_second set call
1 set_call set_call_next syscall
1 set_return set_second_next ret
1 start_second start call
1 start_call start_call_next syscall
1 start_return start_second_next ret
1 pause pause_next syscall
1 pause_next handler interrupt
1 write write_next syscall
1 handler_return restorer ret
1 resume pause_next iret
1 failed failed_to jcc
1 ignore ignore_next syscall
1 start_third start call
1 start_call start_call_next syscall
1 start_return start_third_next ret
1 sleep sleep_next syscall
1 exit exit_next syscall
# 1 exit 0
*/
