/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of stress that compute: integers, floating point, vector registers that signals interrupt, code that changes,
 * and pages that fault.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stress.h"

#define sigev_notify_thread_id _sigev_un._tid

enum { PAGE = 4096 };

void compute_once(unsigned number)
{
  static __thread unsigned wanted;
  unsigned result = hash(number + 1, 20000);

  if (wanted && result != wanted)
    failed("hash %x, not %x", result, wanted);
  wanted = result;
}

static double series(unsigned number)
{
  double sum = number;

  for (int i = 1; i < 10000; i++)
    sum += 1.0 / i * 3.0;
  return sum;
}

void float_once(unsigned number)
{
  static __thread double wanted;
  double result = series(number);

  if (wanted != 0 && result != wanted)
    failed("sum %f, not %f", result, wanted);
  wanted = result;
}

/* ---- code that changes ---- */

static __thread unsigned char *code;

void code_begin(unsigned number)
{
  (void)number;
  code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED)
    failed("mmap: errno %d", errno);
}

/* mov $value, %eax; ret */
static void code_write(unsigned value)
{
  code[100] = 0xB8;
  memcpy(code + 101, &value, sizeof(value));
  code[105] = 0xC3;
}

void code_once(unsigned number)
{
  static __thread unsigned value;
  unsigned (*function)(void) = (unsigned (*)(void))(uintptr_t)(code + 100);

  (void)number;
  code_write(++value);
  for (int i = 0; i < 20; i++) {
    unsigned result = function();

    if (result != value)
      failed("changed code gives %u, not %u", result, value);
  }
  sleep_for(20000);
}

/* ---- pages that fault ---- */

static __thread char *page;
static __thread volatile unsigned faults;

static void on_fault(int signal, siginfo_t *info, void *context)
{
  (void)signal;
  (void)context;
  if (info->si_addr != page)
    failed("fault at %p, not %p", info->si_addr, (void *)page);
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
  faults++;
}

void fault_prepare(void)
{
  const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

  sigaction(SIGSEGV, &action, NULL);
}

void fault_begin(unsigned number)
{
  (void)number;
  page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    failed("mmap: errno %d", errno);
}

void fault_once(unsigned number)
{
  unsigned before = faults;

  *(volatile char *)page = (char)number;
  if (faults != before + 1)
    failed("%u faults, not 1", faults - before);
  mprotect(page, PAGE, PROT_NONE);
  sleep_for(500);
}

/* ---- vector registers, and the control words of floating point ---- */

enum { REGISTERS = 16, SSE_SIZE = 16, AVX_SIZE = 32 };

static bool has_avx;

#define EACH(what)                                                                                                     \
  what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10) what(11) what(12) what(13)  \
    what(14) what(15)
#define LOAD_SSE(n) "movups " #n "*16(%0), %%xmm" #n "\n"
#define STORE_SSE(n) "movups %%xmm" #n ", " #n "*16(%1)\n"
#define LOAD_AVX(n) "vmovups " #n "*32(%0), %%ymm" #n "\n"
#define STORE_AVX(n) "vmovups %%ymm" #n ", " #n "*32(%1)\n"
#define CLEAR_SSE(n) "xorps %%xmm" #n ", %%xmm" #n "\n"
#define WAIT "1: dec %2\n jnz 1b\n"
#define CHANGED                                                                                                        \
  "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",    \
    "xmm12", "xmm13", "xmm14", "xmm15"

/* Loads all registers, counts down, and stores them. */
static void registers_pass(const unsigned char *from, unsigned char *to, unsigned long steps)
{
  if (has_avx)
    __asm__ volatile(EACH(LOAD_AVX) WAIT EACH(STORE_AVX) "vzeroupper" : "+r"(from), "+r"(to), "+r"(steps) : : CHANGED);
  else
    __asm__ volatile(EACH(LOAD_SSE) WAIT EACH(STORE_SSE) : "+r"(from), "+r"(to), "+r"(steps) : : CHANGED);
}

static void on_timer(int signal)
{
  (void)signal;
  if (has_avx)
    __asm__ volatile("vzeroall" : : : CHANGED);
  else
    __asm__ volatile(EACH(CLEAR_SSE) : : : CHANGED);
}

void vector_prepare(void)
{
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};

  has_avx = __builtin_cpu_supports("avx");
  sigaction(SIGNAL_TIMER, &action, NULL);
}

static void words_set(uint32_t mxcsr, uint16_t control)
{
  __asm__ volatile("ldmxcsr %0\n fldcw %1" : : "m"(mxcsr), "m"(control));
}

static void words_check(uint32_t mxcsr, uint16_t control)
{
  const uint32_t sticky = 0x3F;
  uint32_t mxcsr_now;
  uint16_t control_now;

  __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(mxcsr_now), "=m"(control_now));
  if ((mxcsr_now & ~sticky) != (mxcsr & ~sticky) || control_now != control)
    failed("MXCSR 0x%x, x87 control word 0x%x", mxcsr_now, control_now);
}

/* A timer sends this thread a signal, whose handler changes the registers. */
void vector_begin(unsigned number)
{
  const struct itimerspec often = {.it_interval = {.tv_nsec = 3000000}, .it_value = {.tv_nsec = 3000000}};
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL_TIMER};
  timer_t timer;
  sigset_t set;

  (void)number;
  event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
    failed("timer: errno %d", errno);
  sigemptyset(&set);
  sigaddset(&set, SIGNAL_TIMER);
  mask_open(&set);
}

void vector_once(unsigned number)
{
  const uint32_t usual_mxcsr = 0x1F80, other_mxcsr = 0x1F80 | (number % 4) << 13;
  const uint16_t usual_control = 0x37F, other_control = number % 2 ? 0x27F : 0x37F;
  unsigned char from[REGISTERS * AVX_SIZE], to[REGISTERS * AVX_SIZE] = {0};
  unsigned size = REGISTERS * (has_avx ? AVX_SIZE : SSE_SIZE);

  for (unsigned i = 0; i < sizeof(from); i++)
    from[i] = (unsigned char)hash(i + number, 2);
  words_set(other_mxcsr, other_control);
  registers_pass(from, to, 200000);
  words_check(other_mxcsr, other_control);
  words_set(usual_mxcsr, usual_control);
  if (memcmp(from, to, size) != 0)
    failed("vector registers have changed");
}
