/* SPDX-License-Identifier: Apache-2.0
 *
 * callers HOW: makes system calls, the same ones in each run: calls, of many kinds, with results and errors;
 * unknown, of numbers that there are not; signals, with handlers and masks; threads, one after another; children, by
 * fork, vfork, clone and execve. It needs an empty folder to run in. It prints nothing: another tracer tells what is
 * right.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HIGH 0xABCD123400000000ul /* bits that the kernel does not look at in an argument of 32 bits */
#define BAD ((const char *)8)     /* nothing is mapped there */

enum { PAGE = 4096, LONG_NAME = 300 };

static volatile sig_atomic_t signals;

/* ---- files and their names ---- */

static void call_files(void)
{
  char buffer[16] = "0123456789";
  struct stat status;
  struct iovec parts[2] = {{buffer, 3}, {buffer + 3, 4}};
  int file = (int)syscall(SYS_open, "file", O_CREAT | O_RDWR | O_EXCL, 0640);

  syscall(SYS_open, "file", O_CREAT | O_RDWR | O_EXCL, 0640); /* EEXIST */
  syscall(SYS_open, "missing", O_RDONLY, 0xFFFF);
  syscall(SYS_openat, AT_FDCWD, "file", O_RDONLY | O_CLOEXEC);
  syscall(SYS_openat, HIGH | 77, "file", HIGH | O_RDONLY, 0);
  syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, 0600);
  syscall(SYS_openat2, AT_FDCWD, "file", NULL, 24ul);
  syscall(SYS_creat, "other", HIGH | 0600);
  syscall(SYS_write, file, buffer, 10ul);
  syscall(SYS_pwrite64, file, buffer, 4ul, 1l << 33);
  syscall(SYS_pread64, file, buffer, 4ul, -5l);
  syscall(SYS_lseek, file, -3l, SEEK_CUR);
  syscall(SYS_lseek, file, 1l << 40, SEEK_SET);
  syscall(SYS_lseek, file, -3l, HIGH | 99);
  syscall(SYS_writev, file, parts, 2ul);
  syscall(SYS_readv, HIGH | (unsigned)file, parts, 2ul);
  syscall(SYS_read, -1, buffer, 1ul);
  syscall(SYS_read, file, BAD, 1ul);
  syscall(SYS_ftruncate, file, 123456789012l);
  syscall(SYS_fallocate, file, 0, -1l, 5l);
  syscall(SYS_fsync, file);
  syscall(SYS_copy_file_range, -1, NULL, -1, NULL, 0x7FFFFFFFC0000000l, 0u); /* as cp does it */
  syscall(SYS_lseek, file, INT64_MAX, SEEK_SET);
  syscall(SYS_lseek, file, INT64_MIN, SEEK_SET);
  syscall(SYS_lseek, file, INT32_MIN, 98);
  syscall(SYS_ftruncate, -1, -(1l << 32));
  syscall(SYS_fstat, file, &status);
  syscall(SYS_newfstatat, AT_FDCWD, "file", &status, AT_SYMLINK_NOFOLLOW);
  syscall(SYS_fchmod, file, 07777);
  syscall(SYS_chmod, "file", 0600);
  syscall(SYS_umask, 022);
  syscall(SYS_umask, 077);
  syscall(SYS_dup, file);
  syscall(SYS_dup2, file, 20);
  syscall(SYS_dup3, file, 21, O_CLOEXEC);
  syscall(SYS_fcntl, 21, F_GETFD);
  syscall(SYS_fcntl, 21, F_SETFD, 0ul);
  syscall(SYS_fcntl, 21, F_DUPFD, 30ul);
  syscall(SYS_fcntl, 21, F_GETFL, HIGH);
  syscall(SYS_fcntl, 99, F_GETLK, buffer);
  syscall(SYS_ioctl, 21, FIONREAD, buffer);
  syscall(SYS_ioctl, 21, HIGH | 0x80045430, 5ul);
  syscall(SYS_close, HIGH | 20);
  syscall(SYS_close, 12345);
}

static void call_names(void)
{
  static char name[LONG_NAME + 1];
  char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), link[8];

  memset(name, 'n', LONG_NAME);
  mprotect(pages + PAGE, PAGE, PROT_NONE);
  memcpy(pages + PAGE - 5, "edge", 5);
  syscall(SYS_access, pages + PAGE - 5, R_OK); /* ends with its page, and the next one cannot be read */
  memcpy(pages + PAGE - 4, "wide", 4);
  syscall(SYS_access, pages + PAGE - 4, HIGH | R_OK); /* it has no end */
  syscall(SYS_access, name, R_OK);
  name[255] = 0;
  syscall(SYS_access, name, F_OK);
  syscall(SYS_access, "", F_OK);
  syscall(SYS_access, "\" \\ \n \303\244 \377", F_OK);
  syscall(SYS_access, "\377\377\377\377 \377\377\377\377\377\377\377\377 end", F_OK);
  syscall(SYS_access, NULL, F_OK);
  syscall(SYS_access, BAD, F_OK);
  syscall(SYS_access, "sixteen letters!", F_OK);
  syscall(SYS_link, "file", "hard");
  syscall(SYS_linkat, AT_FDCWD, "file", AT_FDCWD, "hard", 0);
  syscall(SYS_symlink, "file", "soft");
  syscall(SYS_symlinkat, "file", AT_FDCWD, "soft");
  syscall(SYS_readlink, "soft", link, 8ul);
  syscall(SYS_readlinkat, AT_FDCWD, "file", link, 8ul);
  syscall(SYS_rename, "hard", "harder");
  syscall(SYS_renameat, AT_FDCWD, "nothing", AT_FDCWD, "something");
  syscall(SYS_renameat2, AT_FDCWD, "harder", 50, "hardest", RENAME_NOREPLACE);
  syscall(SYS_mkdir, "folder", 0700);
  syscall(SYS_mkdirat, AT_FDCWD, "folder", 0700);
  syscall(SYS_mknod, "pipe", S_IFIFO | 0600, 0);
  syscall(SYS_rmdir, "file");
  syscall(SYS_chdir, "folder");
  syscall(SYS_chdir, "..");
  syscall(SYS_unlink, "harder");
  syscall(SYS_unlinkat, AT_FDCWD, "folder", AT_REMOVEDIR);
  syscall(SYS_truncate, "soft", -1l);
  syscall(SYS_chown, "soft", -1, -1);
  syscall(SYS_statx, AT_FDCWD, "missing", 0, 0x7FF, pages);
  syscall(SYS_getxattr, "file", "user.none", link, 8ul);
  syscall(SYS_setxattr, "missing", "user.none", "value", 5ul, 0);
  syscall(SYS_statfs, "missing", pages);
  syscall(SYS_execve, "missing", NULL, NULL);
  syscall(SYS_execve, "soft", NULL, NULL);
  syscall(SYS_execveat, 60, "missing", NULL, NULL, 0);
  syscall(SYS_mount, "source", "target", "type", 0x1000ul, NULL);
  syscall(SYS_pivot_root, "new", "old");
  munmap(pages, 2 * PAGE);
}

/* ---- memory, descriptors of other kinds, times, unknown calls ---- */

static void call_memory(void)
{
  void *pages = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  mmap(NULL, 0, PROT_READ, MAP_PRIVATE, -1, 0);
  mmap(NULL, PAGE, PROT_READ, MAP_SHARED, 3, 5l << 32);
  pages = mremap(pages, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
  syscall(SYS_mremap, pages, (size_t)PAGE, (size_t)PAGE, 99, pages);
  mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
  mprotect(NULL, PAGE, PROT_READ);
  madvise(pages, PAGE, MADV_DONTNEED);
  madvise(NULL, PAGE, 999);
  msync(pages, PAGE, MS_SYNC);
  mlock(NULL, 1ul << 50);
  munmap(pages, 8 * PAGE);
  munmap((void *)1, PAGE);
}

static void call_others(void)
{
  struct timespec time = {0, 1000}, bad = {0, -1};
  struct epoll_event event = {.events = EPOLLIN};
  struct sockaddr_un name = {AF_UNIX, "nobody"};
  struct pollfd polled = {.events = POLLIN};
  char buffer[8] = "";
  int pair[2] = {-1, -1}, word = 7;

  syscall(SYS_pipe2, pair, O_CLOEXEC);
  polled.fd = pair[0];
  syscall(SYS_poll, &polled, 1u, 0);
  syscall(SYS_poll, NULL, 0u, HIGH | 1);
  syscall(SYS_splice, pair[0], NULL, pair[1], NULL, 1ul, 0);
  syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
  syscall(SYS_sendto, pair[0], "hello", 5ul, MSG_NOSIGNAL, NULL, 0);
  syscall(SYS_recvfrom, pair[1], buffer, 8ul, MSG_PEEK, NULL, NULL);
  syscall(SYS_recvfrom, pair[0], buffer, 8ul, 0, NULL, NULL); /* EAGAIN */
  syscall(SYS_setsockopt, pair[0], SOL_SOCKET, SO_SNDBUF, &word, 4);
  syscall(SYS_shutdown, pair[0], SHUT_RDWR);
  syscall(SYS_connect, pair[0], &name, (int)sizeof(name));
  syscall(SYS_connect, 99, &name, (int)sizeof(name));
  syscall(SYS_eventfd2, 5u, EFD_NONBLOCK);
  int epoll = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
  syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, pair[1], &event);
  syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, pair[1], &event);
  syscall(SYS_epoll_wait, epoll, &event, 1, -1);
  syscall(SYS_nanosleep, &time, NULL);
  syscall(SYS_nanosleep, &bad, NULL);
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
  syscall(SYS_clock_gettime, -99, &time);
  syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 8u, NULL);
  syscall(SYS_futex, &word, FUTEX_WAKE, HIGH | 1);
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 8u, NULL, NULL, ~0u);
  syscall(SYS_getpriority, PRIO_PROCESS, 0);
  syscall(SYS_setpriority, 99, 0, -20);
  syscall(SYS_sched_yield);
  syscall(SYS_setuid, HIGH | -1u);
  syscall(SYS_prctl, 15, "renamed", 0ul, 0ul, 0ul);
  syscall(SYS_prctl, 9999, 1ul, 2ul, 3ul, 4ul);
  syscall(SYS_wait4, -1, NULL, WNOHANG, NULL);
  syscall(SYS_kill, -1 - 0x7FFFFFF0, 0);
  syscall(SYS_tgkill, 1, 2, 99);
  syscall(SYS_getcpu, NULL, NULL, NULL);
  syscall(SYS_getrandom, buffer, 8ul, 0);
  syscall(SYS_memfd_create, "memory", 1u);
  syscall(SYS_close_range, 900u, ~0u, 0u);
}

/* Numbers that no system call has, and one that the kernel takes for read(2): it looks at 32 bits only. */
static void unknown(void)
{
  syscall(400);
  syscall(999, 1l, 2l, 3l, 4l, 5l, 6l);
  syscall(-1l);
  syscall((long)(HIGH | SYS_read), -1, NULL, 0ul);
}

static void calls(void)
{
  call_files();
  call_names();
  call_memory();
  call_others();
}

/* ---- signals ---- */

static void on_signal(int number)
{
  (void)number;
  signals = signals + 1;
}

static void handle(int number, int flags)
{
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

  sigaction(number, &action, NULL);
}

/* A signal that is blocked until the thread waits arrives there, however long that takes. */
static void suspend(void)
{
  const struct itimerval soon = {.it_value = {0, 1000}};
  const struct timespec long_time = {100, 0};
  sigset_t blocked, none;

  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGALRM);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  setitimer(ITIMER_REAL, &soon, NULL);
  sigsuspend(&none);
  setitimer(ITIMER_REAL, &soon, NULL);
  ppoll(NULL, 0, &long_time, &none);
  setitimer(ITIMER_REAL, &soon, NULL);
  sigwaitinfo(&blocked, NULL);
}

static void signals_all(void)
{
  sigset_t set;
  union sigval value = {.sival_int = 5};

  handle(SIGUSR1, 0);
  handle(SIGUSR2, SA_RESTART | SA_SIGINFO | SA_NODEFER);
  handle(SIGALRM, SA_RESTART);
  handle(SIGRTMIN + 3, SA_SIGINFO);
  handle(SIGPIPE, 0);
  raise(SIGUSR1);
  kill(getpid(), SIGUSR2);
  sigqueue(getpid(), SIGRTMIN + 3, value);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGUSR1);
  raise(SIGUSR1);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  suspend();
  int ends[2];
  if (!pipe(ends) && !close(ends[0]) && write(ends[1], "", 1) < 0)
    signal(SIGPIPE, SIG_IGN);
  (void)!write(ends[1], "", 1);
  signal(SIGSEGV, SIG_DFL);
  *(volatile int *)BAD = 1;
}

/* ---- threads, children ---- */

static void *in_thread(void *data)
{
  struct timespec time = {0, (long)(intptr_t)data};

  syscall(SYS_getppid);
  syscall(SYS_nanosleep, &time, NULL);
  syscall(SYS_read, -1, NULL, (size_t)(intptr_t)data);
  return NULL;
}

static void threads(void)
{
  pthread_t thread;

  for (intptr_t i = 1; i <= 3; i++) {
    if (pthread_create(&thread, NULL, in_thread, (void *)i))
      abort();
    while (syscall(SYS_tgkill, getpid(), 0x7FFFFFFF, 0) == 0) /* no thread has this number */
      ;
    pthread_join(thread, NULL);
  }
  syscall(SYS_exit_group, 3);
}

static void wait_for(pid_t child)
{
  int status;

  waitpid(child, &status, 0);
}

static void children(void)
{
  static char *const arguments[] = {"callers", "none", NULL}, *const environment[] = {NULL};
  char path[PAGE] = "";
  ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  pid_t child = fork();

  if (size <= 0 || !child) {
    execve("missing", arguments, environment);
    execve(path, arguments, environment);
    _exit(1);
  }
  wait_for(child);
  child = fork();
  if (!child)
    raise(SIGTERM);
  wait_for(child);
  child = vfork();
  if (!child)
    _exit(7);
  wait_for(child);
  child = vfork();
  if (!child) {
    execve(path, arguments, environment);
    _exit(1);
  }
  wait_for(child);
  child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0ul);
  if (!child)
    syscall(SYS_exit, 300);
  wait_for(child);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*function)(void);
  } ways[] = {
    {"calls", calls}, {"unknown", unknown}, {"signals", signals_all}, {"threads", threads}, {"children", children}};

  for (unsigned i = 0; argc == 2 && i < sizeof(ways) / sizeof(*ways); i++)
    if (!strcmp(argv[1], ways[i].name))
      ways[i].function();
  return 0;
}
