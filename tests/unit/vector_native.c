/* SPDX-License-Identifier: Apache-2.0
 *
 * One instruction on the host's own CPU: executable memory that holds it, a way in and out that loads and saves all
 * registers, and signal handlers for those that fault.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "vector_run.h"

/* Offsets for the assembler part. */
_Static_assert(offsetof(struct vector_state, high) == 512, "vector_enter");
_Static_assert(offsetof(struct vector_state, r) == 768, "vector_enter");
_Static_assert(offsetof(struct vector_state, flags) == 896, "vector_enter");

void vector_enter(struct vector_state *state, const void *code, long has_avx);

/* RSP and the registers that point into the data are loaded like the others, but for RSP. */
__asm__(".pushsection .text\n"
        ".globl vector_enter\n"
        "vector_enter:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  sub $24, %rsp\n"
        "  mov %rdi, (%rsp)\n  mov %rdx, 8(%rsp)\n  mov %rsi, 16(%rsp)\n"
        "  fxrstor64 (%rdi)\n"
        "  test %rdx, %rdx\n"
        "  jz 1f\n"
        "  .irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  vinsertf128 $1, 512 + 16 * \\i(%rdi), %ymm\\i, %ymm\\i\n"
        "  .endr\n"
        "1:\n"
        "  pushq 896(%rdi)\n  popfq\n"
        "  .irp i,8,9,10,11,12,13,14,15\n  mov 768 + 8 * \\i(%rdi), %r\\i\n  .endr\n"
        "  mov 768(%rdi), %rax\n  mov 776(%rdi), %rcx\n  mov 784(%rdi), %rdx\n  mov 792(%rdi), %rbx\n"
        "  mov 808(%rdi), %rbp\n  mov 816(%rdi), %rsi\n  mov 824(%rdi), %rdi\n"
        "  call *16(%rsp)\n"
        "  pushfq\n  push %rdi\n"
        "  mov 16(%rsp), %rdi\n"
        "  mov %rax, 768(%rdi)\n  mov %rcx, 776(%rdi)\n  mov %rdx, 784(%rdi)\n  mov %rbx, 792(%rdi)\n"
        "  mov %rbp, 808(%rdi)\n  mov %rsi, 816(%rdi)\n"
        "  .irp i,8,9,10,11,12,13,14,15\n  mov %r\\i, 768 + 8 * \\i(%rdi)\n  .endr\n"
        "  popq 824(%rdi)\n  popq 896(%rdi)\n"
        "  fxsave64 (%rdi)\n"
        "  cmpq $0, 8(%rsp)\n"
        "  je 2f\n"
        "  .irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  vextractf128 $1, %ymm\\i, 512 + 16 * \\i(%rdi)\n"
        "  .endr\n"
        "  vzeroupper\n"
        "2:\n"
        "  fninit\n  movl $0x1F80, 8(%rsp)\n  ldmxcsr 8(%rsp)\n  cld\n"
        "  add $24, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n"
        "  ret\n"
        ".popsection");

static uint8_t *page, *data;
static sigjmp_buf back;
static volatile sig_atomic_t is_inside;
static uint32_t trapped_mxcsr;
static struct sigaction previous[4];
static const int trap_signals[4] = {SIGFPE, SIGSEGV, SIGILL, SIGBUS};

static void on_trap(int signal, siginfo_t *info, void *context)
{
  (void)info;
  if (!is_inside) { /* a bug of the test: let it crash */
    for (unsigned i = 0; i < 4; i++)
      sigaction(trap_signals[i], &previous[i], NULL);
    return;
  }
  trapped_mxcsr = ((ucontext_t *)context)->uc_mcontext.fpregs->mxcsr;
  siglongjmp(back, signal);
}

int vector_native_init(void)
{
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};

  page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  data = mmap(NULL, DATA_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || data == MAP_FAILED || mprotect(data + DATA_BYTES, 4096, PROT_NONE) < 0)
    return -errno;
  for (unsigned i = 0; i < 4; i++)
    if (sigaction(trap_signals[i], &action, &previous[i]) < 0)
      return -errno;
  return 0;
}

void vector_native_done(void)
{
  for (unsigned i = 0; i < 4; i++)
    sigaction(trap_signals[i], &previous[i], NULL);
  munmap(page, 4096);
  munmap(data, DATA_BYTES + 4096);
}

uint8_t *vector_native_data(void)
{
  return data;
}

bool vector_native_has_avx(void)
{
  return __builtin_cpu_supports("avx2");
}

int vector_native_run(const uint8_t *code, size_t size, unsigned offset, struct vector_state *state)
{
  memcpy(page, code, size);
  page[size] = 0xC3;
  state->r[3] = state->r[7] = state->r[11] = (uint64_t)(uintptr_t)(data + offset);
  int signal = sigsetjmp(back, 1);
  if (!signal) {
    is_inside = 1;
    vector_enter(state, page, vector_native_has_avx());
  } else {
    memcpy(state->fx + FX_MXCSR, &trapped_mxcsr, 4);
  }
  is_inside = 0;
  return signal;
}
