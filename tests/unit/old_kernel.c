/* SPDX-License-Identifier: Apache-2.0
 *
 * old_kernel PROGRAM [ARGUMENT...]: runs a program as on Linux 4.18: a filter answers ENOSYS to every system call that
 * came later. Of x86-64's calls, io_pgetevents (333) and rseq (334) are 4.18's last; the next, pidfd_send_signal (424),
 * came with 5.1 (arch/x86/entry/syscalls/syscall_64.tbl).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NUMBER_LAST 334

int main(int argc, char **argv)
{
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NUMBER_LAST, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

  if (argc < 2)
    return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
    perror("old_kernel");
    return 77;
  }
  execv(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
