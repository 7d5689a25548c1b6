/* SPDX-License-Identifier: Apache-2.0
 *
 * The corners of signals: what the calls refuse, masks that calls wait with, faults that somebody sends, many signals
 * at once, frames that cannot be written or are bad, and the vector registers on both ways.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static volatile sig_atomic_t count;
static int order[64];

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
  sigaction(signal, &action, NULL);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
  (void)context;
  order[count++ % 64] = signal * 1000 + info->si_value.sival_int;
}

static sigset_t only(int signal)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

static unsigned long mask_now(void)
{
  unsigned long mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
  return mask;
}

static int result(long value)
{
  return value < 0 ? -errno : (int)value;
}

/* ---- calls ---- */

static int refused(void)
{
  unsigned long set = 0, action[4] = {0};
  say("action %d", result(syscall(SYS_rt_sigaction, SIGKILL, action, NULL, 8)));
  say(" %d", result(syscall(SYS_rt_sigaction, 65, NULL, NULL, 8)));
  say(" %d", result(syscall(SYS_rt_sigaction, 0, NULL, NULL, 8)));
  say(" %d", result(syscall(SYS_rt_sigaction, SIGUSR1, 1, NULL, 8)));
  say(" %d", result(syscall(SYS_rt_sigaction, SIGUSR1, NULL, 1, 8)));
  say(" %d\n", result(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4)));
  say("mask %d", result(syscall(SYS_rt_sigprocmask, 7, &set, NULL, 8)));
  say(" %d", result(syscall(SYS_rt_sigprocmask, 7, NULL, &set, 8)));
  say(" %d", result(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 1, NULL, 8)));
  say(" %d\n", result(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 9)));
  say("pending %d %d", result(syscall(SYS_rt_sigpending, &set, 9)), result(syscall(SYS_rt_sigpending, 1, 8)));
  say(" suspend %d %d", result(syscall(SYS_rt_sigsuspend, &set, 4)), result(syscall(SYS_rt_sigsuspend, 1, 8)));
  say(" wait %d\n", result(syscall(SYS_rt_sigtimedwait, 1, NULL, NULL, 8)));
  say("stack %d %d %d\n", result(sigaltstack(&(stack_t){.ss_size = 100}, NULL)),
      result(sigaltstack(&(stack_t){.ss_flags = 7, .ss_size = 65536}, NULL)),
      result(syscall(SYS_sigaltstack, 1, NULL)));
  return 0;
}

static void on_alarm(int signal, siginfo_t *info, void *context)
{
  (void)info;
  say("signal %d mask %lx frame %lx\n", signal, mask_now(), *(unsigned long *)&((ucontext_t *)context)->uc_sigmask);
}

static void alarm_soon(void)
{
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 20000}, NULL);
}

/* The alarm is blocked but for the time of the call. */
static int waits(void)
{
  sigset_t set = only(SIGALRM), other = only(SIGHUP);
  struct epoll_event event;
  int epoll = epoll_create1(0);
  handle(SIGALRM, on_alarm, 0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  alarm_soon();
  say("ppoll %d\n", result(ppoll(NULL, 0, NULL, &other)));
  alarm_soon();
  say("pselect %d\n", result(pselect(0, NULL, NULL, NULL, NULL, &other)));
  alarm_soon();
  say("epoll_pwait %d\n", result(epoll_pwait(epoll, &event, 1, -1, &other)));
  alarm_soon();
  say("sigsuspend %d\n", result(sigsuspend(&other)));
  say("ppoll %d mask %lx\n", result(ppoll(NULL, 0, &(struct timespec){.tv_nsec = 1000}, &other)), mask_now());
  return 0;
}

/* ---- sent ---- */

/* A fault that nobody committed: it can be blocked, waited for and ignored. */
static int sent_faults(void)
{
  sigset_t set = only(SIGSEGV), none, now;
  sigemptyset(&none);
  handle(SIGSEGV, on_signal, 0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  kill(getpid(), SIGSEGV);
  sigpending(&now);
  say("pending %d handled %d\n", sigismember(&now, SIGSEGV), count);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  say("handled %d\n", count);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGSEGV);
  say("waited %d\n", sigtimedwait(&set, NULL, &(struct timespec){0}));
  raise(SIGSEGV);
  say("suspend %d handled %d mask %lx\n", result(sigsuspend(&none)), count, mask_now());
  signal(SIGSEGV, SIG_IGN);
  raise(SIGSEGV);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  raise(SIGSEGV);
  say("handled %d\n", count);
  return 0;
}

/* All at once: which is first. */
static int many(void)
{
  static const int signals[] = {SIGUSR2, 40,     40,     35,     SIGSEGV, SIGUSR1, SIGTERM,
                                64,      SIGFPE, SIGILL, SIGBUS, SIGSYS,  SIGTRAP};
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &all, NULL);
  for (unsigned i = 0; i < ARRAY_LENGTH(signals); i++) {
    handle(signals[i], on_signal, 0);
    sigqueue(getpid(), signals[i], (union sigval){.sival_int = (int)i});
  }
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int i = 0; i < count; i++)
    say("%d ", order[i]);
  say("\n");
  return 0;
}

/* A handler of crashes sends the fault on as it was. */
static int sent_again(void)
{
  siginfo_t info = {.si_signo = SIGSEGV, .si_code = SEGV_ACCERR};
  info.si_addr = (void *)0x1234;
  syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGSEGV, &info);
  return 1;
}

/* ---- bad frames ---- */

static void on_deep(int signal, siginfo_t *info, void *context)
{
  volatile char much[1000];
  (void)info;
  (void)context;
  much[0] = 1;
  count += much[0];
  if (count < 100)
    raise(signal);
}

static int stack_full(void)
{
  static char stack[32768];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
  handle(SIGUSR1, on_deep, SA_ONSTACK | SA_NODEFER);
  raise(SIGUSR1);
  return 1;
}

static void on_vectors_lost(int signal, siginfo_t *info, void *context)
{
  (void)signal;
  (void)info;
  ((ucontext_t *)context)->uc_mcontext.fpregs = (void *)64;
}

static int vectors_bad(void)
{
  handle(SIGUSR1, on_vectors_lost, 0);
  raise(SIGUSR1);
  return 1;
}

static int vectors_bad_handled(void)
{
  handle(SIGSEGV, on_signal, SA_RESETHAND);
  handle(SIGUSR1, on_vectors_lost, 0);
  raise(SIGUSR1);
  say("%d\n", order[0]);
  return 0;
}

static void on_lost(int signal, siginfo_t *info, void *context)
{
  (void)signal;
  (void)info;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = 0x1234567890ABCDEF;
}

static int place_bad(void)
{
  handle(SIGUSR1, on_lost, 0);
  raise(SIGUSR1);
  return 1;
}

static int handler_bad(void)
{
  signal(SIGUSR1, (void (*)(int))0x4141414141);
  raise(SIGUSR1);
  return 1;
}

static int no_way_back(void)
{
  const unsigned long action[4] = {(unsigned long)on_signal, SA_SIGINFO};
  syscall(SYS_rt_sigaction, SIGUSR1, action, NULL, 8);
  raise(SIGUSR1);
  return 1;
}

/* ---- what is kept ---- */

static void on_vectors(int signal, siginfo_t *info, void *context)
{
  uint32_t control;
  uint16_t word;
  (void)signal;
  (void)info;
  (void)context;
  __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(control), "=m"(word));
  say("in the handler %x %x\n", control, word);
  __asm__ volatile("pcmpeqd %%xmm3, %%xmm3\n pcmpeqd %%xmm12, %%xmm12\n fninit\n fldpi" ::: "xmm3", "xmm12");
}

/* The handler begins with fresh ones; its own are gone behind it. */
static int vectors(void)
{
  uint32_t control = 0x5F80, after; /* rounds up, all masked */
  uint64_t low = 0x1234, high = 0x5678;
  long process = getpid();
  handle(SIGUSR1, on_vectors, 0);
  __asm__ volatile("ldmxcsr %[control]\n movq %[low], %%xmm3\n movq %[high], %%xmm12\n"
                   "mov $62, %%eax\n mov %[process], %%rdi\n mov $10, %%esi\n syscall\n"
                   "movq %%xmm3, %[low]\n movq %%xmm12, %[high]\n stmxcsr %[after]"
                   : [low] "+r"(low), [high] "+r"(high), [after] "=m"(after)
                   : [control] "m"(control), [process] "r"(process)
                   : "rax", "rcx", "rdx", "rdi", "rsi", "r11", "xmm3", "xmm12", "memory");
  say("behind it %lx %lx %x\n", low, high, after);
  return 0;
}

/* The alternate stack lies on pages with code that is executed in between. */
static int on_code(void)
{
  static const uint8_t code[] = {0xB8, 0, 0, 0, 0, 0xC3}; /* mov $i, %eax; ret */
  uint8_t *pages = mmap(NULL, 32768, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint8_t *at = pages + 32768 - 4096 - 64; /* just below where the frame begins, or in it */
  unsigned sum = 0;
  sigaltstack(&(stack_t){.ss_sp = pages, .ss_size = 32768}, NULL);
  handle(SIGUSR1, on_signal, SA_ONSTACK);
  for (unsigned i = 0; i < 40; i++) {
    memcpy(at, code, sizeof(code));
    at[1] = (uint8_t)i;
    sum += ((unsigned (*)(void))(uintptr_t)at)();
    raise(SIGUSR1);
  }
  say("%u %d\n", sum, count);
  return 0;
}

static const struct test_case cases[] = {
  {"refused", refused},         {"waits", waits},
  {"sent-faults", sent_faults}, {"many", many},
  {"sent-again", sent_again},   {"stack-full", stack_full},
  {"vectors-bad", vectors_bad}, {"vectors-bad-handled", vectors_bad_handled},
  {"place-bad", place_bad},     {"handler-bad", handler_bad},
  {"no-way-back", no_way_back}, {"vectors", vectors},
  {"on-code", on_code},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
