/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads without libc: one comes and goes, two live side by side, and the last one ends the program while the first
 * thread waits. They meet at pipes only, so that each of them takes the same way however they are scheduled; the last
 * sleeps 0.3 s to let the first reach its wait.
 */
#define FLAGS 0x50F00 /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM */
  .globl _start
_start:
  mov $22, %eax /* pipe */
  lea go(%rip), %rdi
pipe_1:
  syscall
pipe_1_next:
  mov $22, %eax
  lea done(%rip), %rdi
pipe_2:
  syscall
pipe_2_next:
  lea worker(%rip), %rbp
  lea stacks + 4096(%rip), %rsi
make_2:
  call make
make_2_next:
  mov $1, %edx
start_2:
  call start
start_2_next:
join_2:
  call join
join_2_next:
  lea stacks + 8192(%rip), %rsi
make_3:
  call make
make_3_next:
  lea stacks + 12288(%rip), %rsi
make_4:
  call make
make_4_next:
  mov $2, %edx
start_34:
  call start
start_34_next:
join_3:
  call join
join_3_next:
join_4:
  call join
join_4_next:
  lea ender(%rip), %rbp
  lea stacks + 16384(%rip), %rsi
make_5:
  call make
make_5_next:
last:
  call join /* for ever */

make: /* a thread that begins at RBP, with the stack RSI */
  mov $56, %eax /* clone */
  mov $FLAGS, %edi
clone:
  syscall
clone_next:
  test %eax, %eax
made:
  jz begin
make_return:
  ret
begin:
  jmp *%rbp

start: /* lets EDX threads begin */
  mov $1, %eax /* write(go[1], bytes, EDX) */
  mov go + 4(%rip), %edi
  lea bytes(%rip), %rsi
start_write:
  syscall
start_write_next:
start_return:
  ret

join: /* one thread */
  xor %eax, %eax /* read(done[0], &byte, 1) */
  mov done(%rip), %edi
  lea join_byte(%rip), %rsi
  mov $1, %edx
join_read:
  syscall
join_read_next:
join_return:
  ret

worker:
  xor %eax, %eax /* read(go[0], stack, 1) */
  mov go(%rip), %edi
  lea -8(%rsp), %rsi
  mov $1, %edx
worker_read:
  syscall
worker_read_next:
  mov $3, %ecx
worker_loop:
  loop worker_loop
  mov $1, %eax /* write(done[1], bytes, 1) */
  mov done + 4(%rip), %edi
  lea bytes(%rip), %rsi
  mov $1, %edx
worker_write:
  syscall
worker_write_next:
  mov $60, %eax /* exit(0) */
  xor %edi, %edi
worker_exit:
  syscall
worker_exit_next:

ender:
  mov $35, %eax /* nanosleep */
  lea time(%rip), %rdi
  xor %esi, %esi
sleep:
  syscall
sleep_next:
  mov $231, %eax /* exit_group(7) */
  mov $7, %edi
end:
  syscall
end_next:

  .section .rodata
bytes:
  .byte 1, 2
time:
  .quad 0, 300000000
  .bss
  .balign 16
stacks:
  .skip 16384
go:
  .skip 8
done:
  .skip 8
join_byte:
  .skip 1

/* Run: status 7
# 1 exec _start
1 pipe_1 pipe_1_next syscall
1 pipe_2 pipe_2_next syscall
1 make_2 make call
1 clone clone_next syscall
1 make_return make_2_next ret
1 start_2 start call
1 start_write start_write_next syscall
1 start_return start_2_next ret
1 join_2 join call
1 join_read join_read_next syscall
1 join_return join_2_next ret
1 make_3 make call
1 clone clone_next syscall
1 make_return make_3_next ret
1 make_4 make call
1 clone clone_next syscall
1 make_return make_4_next ret
1 start_34 start call
1 start_write start_write_next syscall
1 start_return start_34_next ret
1 join_3 join call
1 join_read join_read_next syscall
1 join_return join_3_next ret
1 join_4 join call
1 join_read join_read_next syscall
1 join_return join_4_next ret
1 make_5 make call
1 clone clone_next syscall
1 make_return make_5_next ret
1 last join call
1 join_read join_read_next syscall
# 1 exit 7
# 2 clone 1 clone_next
2 made begin jcc
2 begin worker jmp_ind
2 worker_read worker_read_next syscall
2 worker_loop worker_loop jcc
2 worker_loop worker_loop jcc
2 worker_write worker_write_next syscall
2 worker_exit worker_exit_next syscall
# 2 exit 0
# 3 clone 1 clone_next
3 made begin jcc
3 begin worker jmp_ind
3 worker_read worker_read_next syscall
3 worker_loop worker_loop jcc
3 worker_loop worker_loop jcc
3 worker_write worker_write_next syscall
3 worker_exit worker_exit_next syscall
# 3 exit 0
# 4 clone 1 clone_next
4 made begin jcc
4 begin worker jmp_ind
4 worker_read worker_read_next syscall
4 worker_loop worker_loop jcc
4 worker_loop worker_loop jcc
4 worker_write worker_write_next syscall
4 worker_exit worker_exit_next syscall
# 4 exit 0
# 5 clone 1 clone_next
5 made begin jcc
5 begin ender jmp_ind
5 sleep sleep_next syscall
5 end end_next syscall
# 5 exit 7
*/
