/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults whose handler sees the place and the registers of the program as they are, and repairs them: by changing
 * memory, or the registers in the frame.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

#define PAGE 4096u

static char *page;
static sigjmp_buf back;

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
  sigaction(signal, &action, NULL);
}

static greg_t *registers_of(void *context)
{
  return ((ucontext_t *)context)->uc_mcontext.gregs;
}

static char *page_map(int protection)
{
  return mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* ---- memory is repaired ---- */

static void on_protection(int signal, siginfo_t *info, void *context)
{
  greg_t *registers = registers_of(context);
  say("signal %d code %d offset %td error %lld trap %lld cr2 %s\n", signal, info->si_code, (char *)info->si_addr - page,
      registers[REG_ERR], registers[REG_TRAPNO], registers[REG_CR2] == (greg_t)info->si_addr ? "same" : "other");
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static int repair_memory(void)
{
  page = page_map(PROT_NONE);
  handle(SIGSEGV, on_protection, 0);
  page[100] = 5;
  mprotect(page, PAGE, PROT_READ);
  page[101] = 6;
  mprotect(page, PAGE, PROT_NONE);
  say("%d %d\n", ((volatile char *)page)[100], page[101]);
  return 0;
}

/* A copy of 4000 bytes that runs into a page which cannot be written: what is left of it goes on after the repair. */
static int repair_string(void)
{
  char *two = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static char source[4000];
  for (unsigned i = 0; i < sizeof(source); i++)
    source[i] = (char)(i * 7);
  page = two + PAGE;
  mprotect(page, PAGE, PROT_NONE);
  handle(SIGSEGV, on_protection, 0);
  char *to = two + 1000;
  const char *from = source;
  size_t count = sizeof(source);
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
  say("%zu left, %s\n", count, memcmp(two + 1000, source, sizeof(source)) ? "different" : "same");
  return 0;
}

static void on_bus(int signal, siginfo_t *info, void *context)
{
  (void)context;
  say("signal %d code %d offset %td\n", signal, info->si_code, (char *)info->si_addr - page);
  mmap(page + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* A page of a mapping that the file does not reach. */
static int repair_bus(void)
{
  int file = memfd_create("short", 0);
  if (ftruncate(file, 10))
    return 1;
  page = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  handle(SIGBUS, on_bus, 0);
  page[PAGE + 7] = 3;
  say("%d\n", page[PAGE + 7]);
  return 0;
}

/* ---- registers are repaired ---- */

extern const char load[], load_after[], divide[], divide_after[], illegal[], trap[], jump_after[];

static void on_load(int signal, siginfo_t *info, void *context)
{
  static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RBP, REG_RSI, REG_RDI, REG_R8,
                              REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  greg_t *registers = registers_of(context);
  say("signal %d code %d address %p at %+lld\n", signal, info->si_code, info->si_addr,
      (long long)(registers[REG_RIP] - (greg_t)load));
  for (unsigned i = 0; i < ARRAY_LENGTH(order); i++) {
    say("%llx ", registers[order[i]]);
    registers[order[i]] = 0x1000 + i;
  }
  say("flags %llx\n", registers[REG_EFL] & 0xCD5); /* without IF and what is reserved; RF belongs to the fault */
  registers[REG_EFL] = (registers[REG_EFL] & ~(greg_t)0xCD5) | 0x891;
  registers[REG_RIP] = (greg_t)load_after;
}

/* Every register and every flag has a value of its own before the fault and another behind it. */
static int repair_registers(void)
{
  uint64_t after[16];
  handle(SIGSEGV, on_load, 0);
  __asm__ volatile("push %%rbp; push %%rbx; sub $8, %%rsp; mov %0, (%%rsp)\n"
                   "mov $0x7F, %%eax; add $1, %%al; mov $1, %%ebx; mov $2, %%ecx; mov $3, %%edx; mov $4, %%ebp\n"
                   "mov $5, %%esi; mov $6, %%edi; mov $8, %%r8d; mov $9, %%r9d; mov $10, %%r10d; mov $11, %%r11d\n"
                   "mov $12, %%r12d; mov $13, %%r13d; mov $14, %%r14d; movabs $0x500000000000, %%r15\n"
                   "std; stc\n"
                   "load: mov 0x10(%%r15), %%rax\n"
                   "ud2\n"
                   "load_after: xchg %%rax, (%%rsp)\n"
                   "mov %%rcx, 8(%%rax); mov %%rdx, 16(%%rax); mov %%rbx, 24(%%rax); mov %%rbp, 32(%%rax)\n"
                   "mov %%rsi, 40(%%rax); mov %%rdi, 48(%%rax); mov %%r8, 56(%%rax); mov %%r9, 64(%%rax)\n"
                   "mov %%r10, 72(%%rax); mov %%r11, 80(%%rax); mov %%r12, 88(%%rax); mov %%r13, 96(%%rax)\n"
                   "mov %%r14, 104(%%rax); mov %%r15, 112(%%rax); mov (%%rsp), %%rcx; mov %%rcx, (%%rax)\n"
                   "pushfq; pop %%rcx; mov %%rcx, 120(%%rax); cld\n"
                   "add $8, %%rsp; pop %%rbx; pop %%rbp"
                   :
                   : "a"(after)
                   : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
  for (unsigned i = 0; i < 15; i++)
    say("%llx ", (unsigned long long)after[i]);
  say("flags %llx\n", (unsigned long long)after[15] & 0xCD5);
  return 0;
}

static void on_divide(int signal, siginfo_t *info, void *context)
{
  greg_t *registers = registers_of(context);
  say("signal %d code %d address %+td at %+lld\n", signal, info->si_code, (char *)info->si_addr - divide,
      (long long)(registers[REG_RIP] - (greg_t)divide));
  registers[REG_RAX] = 77;
  registers[REG_RIP] = (greg_t)divide_after;
}

static int repair_divide(void)
{
  unsigned result = 10;
  handle(SIGFPE, on_divide, 0);
  __asm__ volatile("xor %%edx, %%edx; xor %%ecx, %%ecx\ndivide: div %%ecx\ndivide_after:" : "+a"(result)::"ecx", "edx");
  say("%u\n", result);
  return 0;
}

static void on_illegal(int signal, siginfo_t *info, void *context)
{
  greg_t *registers = registers_of(context);
  say("signal %d code %d address %+td at %+lld\n", signal, info->si_code, (char *)info->si_addr - illegal,
      (long long)(registers[REG_RIP] - (greg_t)illegal));
  registers[REG_RIP] += 2;
}

static int repair_illegal(void)
{
  handle(SIGILL, on_illegal, 0);
  __asm__ volatile("illegal: ud2");
  say("behind it\n");
  return 0;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
  say("signal %d code %d at %+lld\n", signal, info->si_code,
      (long long)(registers_of(context)[REG_RIP] - (greg_t)trap));
}

static int breakpoint(void)
{
  handle(SIGTRAP, on_trap, 0);
  __asm__ volatile("trap: int3");
  say("behind it\n");
  return 0;
}

static void on_privilege(int signal, siginfo_t *info, void *context)
{
  say("signal %d code %d address %p\n", signal, info->si_code, info->si_addr);
  registers_of(context)[REG_RIP] += 1;
}

/* HLT, a privileged instruction of one byte. */
static int repair_privileged(void)
{
  handle(SIGSEGV, on_privilege, 0);
  __asm__ volatile("hlt");
  say("behind it\n");
  return 0;
}

static void on_jump(int signal, siginfo_t *info, void *context)
{
  greg_t *registers = registers_of(context);
  say("signal %d code %d %s, RIP %s\n", signal, info->si_code, info->si_addr == page ? "there" : "elsewhere",
      registers[REG_RIP] == (greg_t)page ? "there" : "elsewhere");
  registers[REG_RIP] = *(greg_t *)registers[REG_RSP]; /* as if it had returned */
  registers[REG_RSP] += 8;
}

/* A call to memory that must not be executed: the frame says so, and the return address is on the stack. */
static int repair_jump(void)
{
  page = page_map(PROT_READ | PROT_WRITE);
  page[0] = (char)0xC3;
  handle(SIGSEGV, on_jump, SA_NODEFER);
  ((void (*)(void))page)();
  page = NULL;
  ((void (*)(void))page)();
  say("back twice\n");
  return 0;
}

static void on_noncanonical(int signal, siginfo_t *info, void *context)
{
  say("signal %d code %d address %p\n", signal, info->si_code, info->si_addr);
  siglongjmp(back, 1);
  (void)context;
}

/* An address that is none. */
static int noncanonical(void)
{
  handle(SIGSEGV, on_noncanonical, 0);
  if (!sigsetjmp(back, 1))
    *(volatile char *)0x8000000000000000 = 1;
  if (!sigsetjmp(back, 1))
    ((void (*)(void))0x8000000000000000)();
  say("back\n");
  return 0;
}

static void on_float(int signal, siginfo_t *info, void *context)
{
  ucontext_t *frame = context;
  say("signal %d code %d mxcsr %x\n", signal, info->si_code, frame->uc_mcontext.fpregs->mxcsr);
  frame->uc_mcontext.fpregs->mxcsr = 0x1F80;
}

/* A division that traps until the handler masks it in the frame. */
static int repair_float(void)
{
  double zero = 0, result = 1;
  unsigned mxcsr = 0x1D80;
  handle(SIGFPE, on_float, 0);
  __asm__ volatile("ldmxcsr %1; divsd %2, %0; stmxcsr %1" : "+x"(result), "+m"(mxcsr) : "x"(zero));
  say("%f mxcsr %x\n", result, mxcsr);
  return 0;
}

/* ---- the program steps itself ---- */

static volatile unsigned steps;

static void on_step(int signal, siginfo_t *info, void *context)
{
  (void)signal;
  steps += info->si_code == TRAP_TRACE && registers_of(context)[REG_EFL] & 0x100;
}

/* NOP, JMP, PUSHF and AND are counted; POPF traps too, but its frame shows the flag off. */
static int trap_flag(void)
{
  handle(SIGTRAP, on_step, 0);
  __asm__ volatile("sub $128, %%rsp; pushfq; orl $0x100, (%%rsp); popfq\n"
                   "nop; jmp 1f; nop\n"
                   "1: pushfq; andl $~0x100, (%%rsp); popfq; add $128, %%rsp" ::
                     : "memory", "cc");
  say("%u traps\n", steps);
  return 0;
}

/* ---- the stack ---- */

static volatile unsigned depth;

#pragma GCC diagnostic ignored "-Winfinite-recursion" /* it ends with the stack */
static unsigned recurse(unsigned count)
{
  volatile char room[1000];
  depth = count;
  room[count % sizeof(room)] = 1;
  return recurse(count + 1) + (unsigned)room[0];
}

static void on_overflow(int signal, siginfo_t *info, void *context)
{
  greg_t distance = registers_of(context)[REG_RSP] - (greg_t)info->si_addr;
  char here;
  say("signal %d code %d, the address is %s the stack pointer, handler %s\n", signal, info->si_code,
      distance > -2 * (greg_t)PAGE && distance < 2 * (greg_t)PAGE ? "near" : "far from",
      &here >= page && &here < page + 4 * SIGSTKSZ ? "on its own stack" : "on the full stack");
  siglongjmp(back, 1);
}

static int overflow_caught(void)
{
  page = malloc((size_t)4 * SIGSTKSZ);
  stack_t stack = {.ss_sp = page, .ss_size = (size_t)4 * SIGSTKSZ};
  setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 20, 1 << 20});
  sigaltstack(&stack, NULL);
  handle(SIGSEGV, on_overflow, SA_ONSTACK);
  for (int i = 0; i < 3; i++)
    if (!sigsetjmp(back, 1))
      recurse(0);
  say("deeper than 500: %s\n", depth > 500 ? "yes" : "no");
  return 0;
}

static const struct test_case cases[] = {
  {"memory", repair_memory},       {"string", repair_string},         {"bus", repair_bus},
  {"registers", repair_registers}, {"divide", repair_divide},         {"illegal", repair_illegal},
  {"breakpoint", breakpoint},      {"privileged", repair_privileged}, {"jump", repair_jump},
  {"noncanonical", noncanonical},  {"float", repair_float},           {"trap-flag", trap_flag},
  {"overflow", overflow_caught},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
