/* SPDX-License-Identifier: Apache-2.0
 *
 * filtered WAY: a process with seccomp(2) filters, for lbr to attach to. It says "ready"; for each byte on standard
 * input it computes, maps memory, starts a thread, catches a signal and says "answer SUM". The filters are like those
 * of container engines (many calls end with EPERM), of services (only listed calls are allowed, others kill the
 * process) and of MemoryDenyWriteExecute=.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_MOST = 512 };

static struct sock_filter code[CODE_MOST];
static unsigned short size;

static void add(uint16_t operation, uint8_t yes, uint8_t no, uint32_t value)
{
  if (size == CODE_MOST)
    exit(5);
  code[size++] = (struct sock_filter){operation, yes, no, value};
}

static void add_load(size_t offset)
{
  add(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* If the accumulator has this value, the filter ends with this answer. */
static void add_answer(uint32_t value, uint32_t answer)
{
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
  add(BPF_RET | BPF_K, 0, 0, answer);
}

static void begin(void)
{
  size = 0;
  add_load(offsetof(struct seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
  add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
  add_load(offsetof(struct seccomp_data, nr));
}

static void set(uint32_t answer)
{
  const struct sock_fprog program = {.len = size + 1, .filter = code};

  add(BPF_RET | BPF_K, 0, 0, answer);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    exit(4);
}

/* ---- the filters ---- */

static void filter_container(void)
{
  static const uint16_t calls[] = {SYS_mount,  SYS_umount2,    SYS_ptrace,          SYS_kexec_load,
                                   SYS_reboot, SYS_swapon,     SYS_setns,           SYS_unshare,
                                   SYS_bpf,    SYS_add_key,    SYS_keyctl,          SYS_acct,
                                   SYS_syslog, SYS_pivot_root, SYS_perf_event_open, SYS_settimeofday};

  begin();
  for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
    add_answer(calls[i], SECCOMP_RET_ERRNO | EPERM);
  set(SECCOMP_RET_ALLOW);
}

/* Calls with memory that is or becomes executable, as systemd forbids them. */
static void filter_memory(void)
{
  begin();
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_mmap);
  add_load(offsetof(struct seccomp_data, args[2]));
  add(BPF_ALU | BPF_AND | BPF_K, 0, 0, PROT_WRITE | PROT_EXEC);
  add_answer(PROT_WRITE | PROT_EXEC, SECCOMP_RET_ERRNO | EPERM);
  add_load(offsetof(struct seccomp_data, nr));
  add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_mprotect);
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_pkey_mprotect);
  add_load(offsetof(struct seccomp_data, args[2]));
  add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, PROT_EXEC);
  add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM);
  set(SECCOMP_RET_ALLOW);
}

/* What programs that use glibc need, and what services usually may do besides. */
static void filter_service(void)
{
  static const uint16_t calls[] = {SYS_read,
                                   SYS_write,
                                   SYS_close,
                                   SYS_fstat,
                                   SYS_newfstatat,
                                   SYS_lseek,
                                   SYS_mmap,
                                   SYS_mprotect,
                                   SYS_munmap,
                                   SYS_brk,
                                   SYS_rt_sigaction,
                                   SYS_rt_sigprocmask,
                                   SYS_rt_sigreturn,
                                   SYS_pread64,
                                   SYS_madvise,
                                   SYS_nanosleep,
                                   SYS_getpid,
                                   SYS_clone,
                                   SYS_clone3,
                                   SYS_exit,
                                   SYS_exit_group,
                                   SYS_fcntl,
                                   SYS_readlinkat,
                                   SYS_sigaltstack,
                                   SYS_prctl,
                                   SYS_gettid,
                                   SYS_futex,
                                   SYS_clock_gettime,
                                   SYS_tgkill,
                                   SYS_openat,
                                   SYS_set_robust_list,
                                   SYS_rseq,
                                   SYS_getppid,
                                   SYS_rt_sigpending,
                                   SYS_rt_sigqueueinfo,
                                   SYS_rt_tgsigqueueinfo,
                                   SYS_fallocate,
                                   SYS_arch_prctl,
                                   SYS_getrandom,
                                   SYS_restart_syscall};

  begin();
  for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
    add_answer(calls[i], SECCOMP_RET_ALLOW);
  set(SECCOMP_RET_KILL_PROCESS);
}

/* A program without threads may do without this call; the runtime may not. */
static void filter_needed(void)
{
  begin();
  add_answer(SYS_sigaltstack, SECCOMP_RET_KILL_PROCESS);
  set(SECCOMP_RET_ALLOW);
}

static void filter_many(void)
{
  filter_memory();
  for (unsigned i = 0; i < 20; i++)
    filter_container();
  filter_memory();
}

/* ---- what it does ---- */

static volatile sig_atomic_t signals;

static void count(int number)
{
  (void)number;
  signals++;
}

static void *thread_run(void *data)
{
  uint64_t *sum = data;

  for (unsigned i = 0; i < 1000; i++)
    *sum = *sum & 1 ? *sum * 3 + 1 : *sum / 2 + i;
  return NULL;
}

/* A library that is loaded late has code elsewhere. */
static double library_use(void)
{
  void *library = dlopen("libm.so.6", RTLD_NOW);
  double (*function)(double);

  if (!library)
    return 0;
  *(void **)(&function) = dlsym(library, "cbrt");
  double result = function ? function(27) : 0;
  dlclose(library);
  return result;
}

static void work(void)
{
  uint64_t sum = 12345;
  pthread_t thread;
  char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  memset(memory, 1, 1 << 20);
  thread_run(&sum);
  if (pthread_create(&thread, NULL, thread_run, &sum) == 0)
    pthread_join(thread, NULL);
  signals = 0;
  raise(SIGUSR1);
  sum += (uint64_t)memory[77] + (uint64_t)signals;
  munmap(memory, 1 << 20);
  printf("answer %llu %.0f\n", (unsigned long long)sum, library_use());
}

static void *thread_filtered(void *data)
{
  char byte = 0;

  filter_container();
  printf("ready\n");
  while (read(STDIN_FILENO, &byte, 1) == 1)
    work();
  exit(0);
  return data;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*set)(void);
  } ways[] = {{"container", filter_container},
              {"memory", filter_memory},
              {"service", filter_service},
              {"needed", filter_needed},
              {"many", filter_many}};
  const char *way = argc > 1 ? argv[1] : "";
  pthread_t thread;
  char byte;

  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGUSR1, count);
  for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
    if (!strcmp(way, ways[i].name))
      ways[i].set();
  if (!strcmp(way, "strict"))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  if (!strcmp(way, "deny")) /* not seccomp: the kernel itself */
    prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0);
  if (!strcmp(way, "thread") && pthread_create(&thread, NULL, thread_filtered, NULL) == 0)
    pause();
  static const char ready[] = "ready\n";
  if (write(STDOUT_FILENO, ready, sizeof(ready) - 1) < 0)
    return 1;
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    if (byte == 's')
      filter_container();
    if (strcmp(way, "strict") != 0)
      work();
    else if (write(STDOUT_FILENO, "answer\n", 7) < 0)
      break;
  }
  return 0;
}
