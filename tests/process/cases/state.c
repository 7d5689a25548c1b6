/* SPDX-License-Identifier: Apache-2.0
 *
 * The rest of a thread's state: vector registers, x87, MXCSR, FS and GS, flags, restartable sequences. It is kept
 * across calls, system calls, faults and signals, and stands in the frames of signals. What the processor lacks is
 * said.
 */
#include <asm/prctl.h>
#include <cpuid.h>
#include <errno.h>
#include <fenv.h>
#include <immintrin.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static volatile unsigned ticks;

static void on_tick(int signal)
{
  double value = signal; /* changes x87, MXCSR and vector registers */
  unsigned mxcsr = 0x1FA0;
  __asm__ volatile("fninit; fld1; fld1; ldmxcsr %0; pxor %%xmm0, %%xmm0; pcmpeqd %%xmm7, %%xmm7" ::"m"(mxcsr)
                   : "xmm0", "xmm7");
  if (__builtin_cpu_supports("avx"))
    __asm__ volatile("vzeroall" ::: "memory");
  ticks += value > 0;
}

static void timer_start(void)
{
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000}, NULL);
}

static void timer_end(void)
{
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

/* Away and back, by branches that a recorder may have to look up, and a system call. */

#define LEAVE_AND_COME_BACK "lea 2f(%%rip), %%rax; jmp *%%rax; 2: call 3f; jmp 4f; 3: ret; 4: mov $39, %%eax; syscall\n"

static int sse(void)
{
  unsigned char before[16][16], after[16][16];
  unsigned wrong = 0;
  for (int i = 0; i < 256; i++)
    before[i / 16][i % 16] = (unsigned char)(i * 11);
  timer_start();
  while (ticks < 50) {
    __asm__ volatile("movdqu (%0), %%xmm0; movdqu 48(%0), %%xmm3; movdqu 128(%0), %%xmm8; movdqu 240(%0), %%xmm15\n"
                     "mov $100, %%edx\n1:" LEAVE_AND_COME_BACK "dec %%edx; jnz 1b\n"
                     "movdqu %%xmm0, (%1); movdqu %%xmm3, 48(%1); movdqu %%xmm8, 128(%1); movdqu %%xmm15, 240(%1)"
                     :
                     : "r"(before), "r"(after)
                     : "rax", "rcx", "rdx", "r11", "xmm0", "xmm3", "xmm8", "xmm15", "memory", "cc");
    for (int i = 0; i < 16; i++)
      if (i == 0 || i == 3 || i == 8 || i == 15)
        wrong += memcmp(before[i], after[i], 16) != 0;
  }
  timer_end();
  say("wrong %u\n", wrong);
  return 0;
}

__attribute__((target("avx2"))) static int avx_run(void)
{
  unsigned char before[16][32], after[16][32];
  unsigned wrong = 0;
  for (int i = 0; i < 512; i++)
    before[i / 32][i % 32] = (unsigned char)(i * 13);
  timer_start();
  while (ticks < 50) {
    __asm__ volatile("vmovdqu (%0), %%ymm0; vmovdqu 96(%0), %%ymm3; vmovdqu 256(%0), %%ymm8; vmovdqu 480(%0), %%ymm15\n"
                     "mov $100, %%edx\n1:" LEAVE_AND_COME_BACK "dec %%edx; jnz 1b\n"
                     "vmovdqu %%ymm0, (%1); vmovdqu %%ymm3, 96(%1); vmovdqu %%ymm8, 256(%1); vmovdqu %%ymm15, 480(%1)"
                     :
                     : "r"(before), "r"(after)
                     : "rax", "rcx", "rdx", "r11", "xmm0", "xmm3", "xmm8", "xmm15", "memory", "cc");
    for (int i = 0; i < 16; i++)
      if (i == 0 || i == 3 || i == 8 || i == 15)
        wrong += memcmp(before[i], after[i], 32) != 0;
  }
  timer_end();
  say("wrong %u\n", wrong);
  return 0;
}

static int avx(void)
{
  if (__builtin_cpu_supports("avx2"))
    return avx_run();
  say("skip: no AVX2\n");
  return 0;
}

__attribute__((target("avx512f,avx512bw"))) static int avx512_run(void)
{
  static unsigned char before[32][64], after[32][64];
  uint64_t masks[2] = {0x123456789ABCDEF0, 0}, wrong = 0;
  for (int i = 0; i < 2048; i++)
    before[i / 64][i % 64] = (unsigned char)(i * 17);
  timer_start();
  while (ticks < 50) {
    __asm__ volatile("vmovdqu64 (%0), %%zmm0; vmovdqu64 512(%0), %%zmm8; vmovdqu64 1024(%0), %%zmm16\n"
                     "vmovdqu64 1984(%0), %%zmm31; kmovq (%2), %%k5\n"
                     "mov $100, %%edx\n1:" LEAVE_AND_COME_BACK "dec %%edx; jnz 1b\n"
                     "vmovdqu64 %%zmm0, (%1); vmovdqu64 %%zmm8, 512(%1); vmovdqu64 %%zmm16, 1024(%1)\n"
                     "vmovdqu64 %%zmm31, 1984(%1); kmovq %%k5, 8(%2)"
                     :
                     : "r"(before), "r"(after), "r"(masks)
                     : "rax", "rcx", "rdx", "r11", "xmm0", "xmm8", "xmm16", "xmm31", "k5", "memory", "cc");
    for (int i = 0; i < 32; i++)
      if (i == 0 || i == 8 || i == 16 || i == 31)
        wrong += memcmp(before[i], after[i], 64) != 0;
    wrong += masks[0] != masks[1];
  }
  timer_end();
  say("wrong %llu\n", (unsigned long long)wrong);
  return 0;
}

static int avx512(void)
{
  if (__builtin_cpu_supports("avx512bw"))
    return avx512_run();
  say("skip: no AVX-512\n");
  return 0;
}

static int x87(void)
{
  unsigned wrong = 0;
  timer_start();
  while (ticks < 50) {
    long double results[3];
    uint16_t control = 0x27F, after = 0; /* 53 bits */
    __asm__ volatile("fninit; fldcw %2; fldpi; fld1; fldl2e\n"
                     "mov $100, %%edx\n1:" LEAVE_AND_COME_BACK "dec %%edx; jnz 1b\n"
                     "fnstcw %0; fstpt (%1); fstpt 16(%1); fstpt 32(%1); fninit"
                     : "=m"(after)
                     : "r"(results), "m"(control)
                     : "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "rax", "rcx", "rdx", "r11",
                       "memory", "cc");
    wrong += after != 0x27F || results[1] != 1 || results[2] < 3.14L || results[2] > 3.15L;
  }
  timer_end();
  say("wrong %u\n", wrong);
  return 0;
}

static int rounding(void)
{
  static const int ways[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  volatile double one = 1, three = 3;
  for (unsigned i = 0; i < ARRAY_LENGTH(ways); i++) {
    fesetround(ways[i]);
    say("%.20f\n", one / three);
    getppid();
    say("%d %a\n", fegetround() == ways[i], -one / three);
  }
  feclearexcept(FE_ALL_EXCEPT);
  volatile double zero = 0, infinite = one / zero;
  getppid();
  say("%d %d %f\n", fetestexcept(FE_DIVBYZERO) != 0, fetestexcept(FE_INVALID) != 0, infinite);
  return 0;
}

/* ---- frames ---- */

static void on_vector(int signal, siginfo_t *info, void *context)
{
  struct _libc_fpstate *state = ((ucontext_t *)context)->uc_mcontext.fpregs;
  (void)signal, (void)info;
  say("xmm0 %08x xmm15 %08x mxcsr %x control %x\n", state->_xmm[0].element[0], state->_xmm[15].element[3], state->mxcsr,
      state->cwd);
  state->_xmm[0].element[0] = 0x11111111;
  state->_xmm[15].element[3] = 0x22222222;
  state->mxcsr = 0x9F80;
}

/* The handler sees vector registers, and what it changes in the frame they have afterwards. */
static int frame(void)
{
  uint32_t low[4] = {0xAAAA0001, 2, 3, 4}, high[4] = {5, 6, 7, 0xBBBB0008}, mxcsr = 0x3F80;
  struct sigaction action = {.sa_sigaction = on_vector, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  __asm__ volatile("movdqu (%1), %%xmm0; movdqu (%2), %%xmm15; ldmxcsr %0; int3\n"
                   "movdqu %%xmm0, (%1); movdqu %%xmm15, (%2); stmxcsr %0"
                   : "+m"(mxcsr)
                   : "r"(low), "r"(high)
                   : "xmm0", "xmm15", "memory");
  say("xmm0 %08x %x xmm15 %x %08x mxcsr %x\n", low[0], low[1], high[2], high[3], mxcsr);
  return 0;
}

/* ---- segments, flags, the rest ---- */

static int segment(void)
{
  static uint64_t block[4] = {0x1234, 0x5678, 0x9ABC, 0xDEF0};
  uint64_t value = 0, base = 0, fs = 0;
  if (syscall(SYS_arch_prctl, ARCH_SET_GS, block))
    say("refused: errno %d\n", errno);
  __asm__ volatile("mov %%gs:8, %0" : "=r"(value));
  syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
  syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
  uint64_t self;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(self));
  say("%llx, base %s, fs %s\n", (unsigned long long)value, base == (uint64_t)block ? "right" : "wrong",
      fs == self ? "right" : "wrong");
  unsigned selector;
  __asm__("mov %%gs, %0" : "=r"(selector));
  say("gs %x\n", selector);
  return 0;
}

static int segment_instructions(void)
{
  static uint64_t block[4] = {0x1234, 0x5678, 0x9ABC, 0xDEF0};
  uint64_t value = 0, base = 0;
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1) || !(getauxval(AT_HWCAP2) & 2)) {
    say("skip: no FSGSBASE\n");
    return 0;
  }
  __asm__ volatile("rdgsbase %1; wrgsbase %2; mov %%gs:16, %0; rdgsbase %1; wrgsbase %3"
                   : "=&r"(value), "=&r"(base)
                   : "r"(block), "r"((uint64_t)0));
  say("%llx %d\n", (unsigned long long)value, base == (uint64_t)block);
  return 0;
}

/* Flags through system calls and branches: RCX and R11 are what SYSCALL leaves, and nothing else changes. */
static int call_registers(void)
{
  uint64_t rcx, r11, rbx, r15, place;
  __asm__ volatile("mov $0x1111, %%ebx; mov $0x2222, %%r15d; stc; std; mov $39, %%eax; syscall\n1:\n"
                   "cld; lea 1b(%%rip), %4; mov %%rbx, %2; mov %%r15, %3"
                   : "=&c"(rcx), "=&D"(r11), "=&S"(rbx), "=&d"(r15), "=&r"(place)::"rax", "rbx", "r15", "r11", "cc");
  __asm__ volatile("mov $39, %%eax; stc; std; syscall; mov %%r11, %0; cld" : "=r"(r11)::"rax", "rcx", "r11", "cc");
  say("rcx %s, flags %llx, %llx %llx\n", rcx == place ? "is the next address" : "is not",
      (unsigned long long)r11 & 0xED5, (unsigned long long)rbx, (unsigned long long)r15);
  return 0;
}

/* Arithmetic flags survive every way to the next instruction. */
static int flags(void)
{
  uint64_t sum = 0;
  for (unsigned value = 0; value < 256; value++) {
    uint64_t got = value << 8;
    __asm__ volatile("sahf; lea 2f(%%rip), %%rdx; jmp *%%rdx\n2: call 3f; jmp 4f\n3: ret\n4: jmp 5f\n5: lahf"
                     : "+a"(got)
                     :
                     : "rdx", "cc", "memory");
    sum = sum * 3 + got;
  }
  say("%llx\n", (unsigned long long)sum);
  return 0;
}

static void on_trap(int signal)
{
  ticks += signal == SIGTRAP;
}

/* Alignment checks are on: whoever runs in between must be ready for that. A handler gets the flag from the kernel too.
 */
static int alignment(void)
{
  uint64_t after = 0;
  signal(SIGTRAP, on_trap);
  __asm__ volatile("pushfq; orl $0x40000, (%%rsp); popfq; mov $3, %%edx\n"
                   "1: lea 2f(%%rip), %%rax; jmp *%%rax\n2: call 3f; jmp 4f\n3: ret\n4: mov $39, %%eax; syscall\n"
                   "int3; dec %%edx; jnz 1b; pushfq; mov (%%rsp), %0; andl $~0x40000, (%%rsp); popfq"
                   : "=&r"(after)::"rax", "rcx", "rdx", "r11", "memory", "cc");
  say("flag %llx, %u traps\n", (unsigned long long)after & 0x40000, ticks);
  return 0;
}

static int cpu_number(void)
{
  unsigned cpu = 999, node = 0;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  say("%d", sched_setaffinity(0, sizeof(set), &set));
  say(" %d", sched_getcpu());
  say(" %ld", syscall(SYS_getcpu, &cpu, &node, NULL));
  say(" %u\n", cpu);
  return 0;
}

/* glibc has registered it for the thread: the kernel writes the processor's number there. */
static int restartable(void)
{
  if (!__rseq_size) {
    say("not registered\n");
    return 0;
  }
  struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
  sched_yield();
  say("size %u, cpu %s\n", __rseq_size, (int)area->cpu_id >= 0 ? "known" : "unknown");
  errno = 0;
  long result = syscall(SYS_rseq, area, 32, 0, 0x53053053);
  say("again: %ld errno %d\n", result, errno);
  return 0;
}

static int clocks(void)
{
  struct timespec first, second;
  struct timeval now;
  unsigned wrong = 0;
  for (int i = 0; i < 1000; i++) {
    clock_gettime(CLOCK_MONOTONIC, &first);
    clock_gettime(CLOCK_MONOTONIC, &second);
    wrong += second.tv_sec < first.tv_sec || (second.tv_sec == first.tv_sec && second.tv_nsec < first.tv_nsec);
  }
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &first);
  gettimeofday(&now, NULL);
  time_t seconds = time(NULL);
  say("wrong %u, near %d %d\n", wrong, now.tv_sec - first.tv_sec < 5, seconds - first.tv_sec < 5);
  return 0;
}

/* The fixed address that very old programs call. */
static int fixed_clock(void)
{
  FILE *file = fopen("/proc/self/maps", "re");
  char line[512];
  int is_there = 0;
  while (fgets(line, sizeof(line), file))
    is_there |= strstr(line, "[vsyscall]") != NULL;
  fclose(file);
  if (!is_there) {
    say("skip: no such page\n");
    return 0;
  }
  time_t now = ((time_t(*)(time_t *))0xFFFFFFFFFF600400)(NULL);
  say("near %d\n", now - time(NULL) < 5);
  return 0;
}

static const struct test_case cases[] = {
  {"sse", sse},
  {"avx", avx},
  {"avx512", avx512},
  {"x87", x87},
  {"rounding", rounding},
  {"frame", frame},
  {"segment", segment},
  {"segment-instructions", segment_instructions},
  {"call-registers", call_registers},
  {"flags", flags},
  {"alignment", alignment},
  {"cpu-number", cpu_number},
  {"restartable", restartable},
  {"clocks", clocks},
  {"fixed-clock", fixed_clock},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
