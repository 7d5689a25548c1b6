/* SPDX-License-Identifier: Apache-2.0
 *
 * Seccomp filters of a process: filter.h.
 */
#include "process/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* ---- one program ---- */

struct registers {
  uint32_t a, x, memory[BPF_MEMWORDS];
};

/* The operand of an arithmetic instruction or a comparison. */
static uint32_t operand(const struct registers *registers, const struct sock_filter *insn)
{
  return BPF_SRC(insn->code) == BPF_X ? registers->x : insn->k;
}

/* Returns false: a division by 0, which ends the program with the answer 0. */
static bool compute(struct registers *registers, const struct sock_filter *insn)
{
  uint32_t value = operand(registers, insn);

  switch (BPF_OP(insn->code)) {
  case BPF_ADD:
    registers->a += value;
    break;
  case BPF_SUB:
    registers->a -= value;
    break;
  case BPF_MUL:
    registers->a *= value;
    break;
  case BPF_DIV:
    if (!value)
      return false;
    registers->a /= value;
    break;
  case BPF_AND:
    registers->a &= value;
    break;
  case BPF_OR:
    registers->a |= value;
    break;
  case BPF_XOR:
    registers->a ^= value;
    break;
  case BPF_LSH:
    registers->a = value < 32 ? registers->a << value : 0;
    break;
  case BPF_RSH:
    registers->a = value < 32 ? registers->a >> value : 0;
    break;
  case BPF_NEG:
    registers->a = 0 - registers->a;
    break;
  default:
    break;
  }
  return true;
}

/* Returns how many instructions are skipped. */
static size_t jump(const struct registers *registers, const struct sock_filter *insn)
{
  uint32_t value = operand(registers, insn);
  bool is_taken;

  switch (BPF_OP(insn->code)) {
  case BPF_JEQ:
    is_taken = registers->a == value;
    break;
  case BPF_JGT:
    is_taken = registers->a > value;
    break;
  case BPF_JGE:
    is_taken = registers->a >= value;
    break;
  case BPF_JSET:
    is_taken = registers->a & value;
    break;
  default:
    return insn->k; /* BPF_JA */
  }
  return is_taken ? insn->jt : insn->jf;
}

/* A filter may load aligned words of struct seccomp_data, constants, its size, and words that it has stored. */
static bool load(const struct sock_filter *insn, const struct registers *registers, const struct seccomp_data *data,
                 uint32_t *ret_value)
{
  switch (BPF_MODE(insn->code)) {
  case BPF_IMM:
    *ret_value = insn->k;
    return true;
  case BPF_LEN:
    *ret_value = sizeof(*data);
    return true;
  case BPF_ABS:
    if (insn->k % sizeof(uint32_t) || insn->k >= sizeof(*data))
      return false;
    memcpy(ret_value, (const uint8_t *)data + insn->k, sizeof(*ret_value));
    return true;
  case BPF_MEM:
    if (insn->k >= BPF_MEMWORDS)
      return false;
    *ret_value = registers->memory[insn->k];
    return true;
  default:
    return false;
  }
}

/* Jumps lead forward only, so that the loop ends. */
uint32_t filter_run(const struct sock_filter *program, size_t count, const struct seccomp_data *data)
{
  struct registers registers = {0};

  for (size_t at = 0; at < count; at++) {
    const struct sock_filter *insn = &program[at];

    switch (BPF_CLASS(insn->code)) {
    case BPF_LD:
      if (!load(insn, &registers, data, &registers.a))
        return SECCOMP_RET_KILL_PROCESS;
      break;
    case BPF_LDX:
      if (!load(insn, &registers, data, &registers.x))
        return SECCOMP_RET_KILL_PROCESS;
      break;
    case BPF_ST:
    case BPF_STX:
      if (insn->k >= BPF_MEMWORDS)
        return SECCOMP_RET_KILL_PROCESS;
      registers.memory[insn->k] = BPF_CLASS(insn->code) == BPF_ST ? registers.a : registers.x;
      break;
    case BPF_ALU:
      if (!compute(&registers, insn))
        return SECCOMP_RET_KILL_THREAD;
      break;
    case BPF_JMP:
      at += jump(&registers, insn);
      break;
    case BPF_RET:
      return BPF_RVAL(insn->code) == BPF_A ? registers.a : insn->k;
    default: /* BPF_MISC */
      if (BPF_MISCOP(insn->code) == BPF_TXA)
        registers.a = registers.x;
      else
        registers.x = registers.a;
      break;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

/* ---- the runtime's calls ---- */

enum {
  READ_WRITE = PROT_READ | PROT_WRITE,
  FIXED_SHARED = MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
  ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
  SOME_FD = 900,
  SET_SIZE = 8,
  OFD_GETLK = 36,
};

#define SOME_ADDRESS UINT64_C(0x7E8000000000)
#define NO_FD UINT32_MAX

/* What becomes of the runtime if a call fails. */
enum need {
  NEEDED,
  WANTED,         /* it copes with an error */
  NEEDED_RSEQ,    /* needed in threads that use rseq(2) */
  NEEDED_GS,      /* needed where the processor or the kernel has no WRGSBASE */
  NEEDED_AT_START /* memory for code: it can be mapped when lbr attaches */
};

/* A call, with arguments as the runtime gives them: addresses and numbers that differ each time stand for the rest. */
struct call {
  const char *name;
  unsigned number;
  enum need need;
  uint64_t argument[6];
};

#define CALL(name, need, ...)                                                                                          \
  {                                                                                                                    \
#name, SYS_##name, need,                                                                                           \
    {                                                                                                                  \
      __VA_ARGS__                                                                                                      \
    }                                                                                                                  \
  }

static const struct call calls[] = {
  CALL(mmap, NEEDED, SOME_ADDRESS, 4096, READ_WRITE, FIXED_SHARED, SOME_FD, 4096),
  CALL(mmap, NEEDED, SOME_ADDRESS, 4096, READ_WRITE, ANONYMOUS | MAP_FIXED, NO_FD, 0),
  CALL(mmap, NEEDED, SOME_ADDRESS, 4096, READ_WRITE, ANONYMOUS, NO_FD, 0),
  CALL(mmap, NEEDED, SOME_ADDRESS, 4096, PROT_NONE, ANONYMOUS, NO_FD, 0),
  CALL(mmap, NEEDED_AT_START, SOME_ADDRESS, 1 << 28, READ_WRITE | PROT_EXEC, ANONYMOUS | MAP_FIXED_NOREPLACE, NO_FD, 0),
  CALL(munmap, NEEDED, SOME_ADDRESS, 4096),
  CALL(mprotect, WANTED, SOME_ADDRESS, 4096, READ_WRITE | PROT_EXEC),
  CALL(mprotect, WANTED, SOME_ADDRESS, 4096, PROT_READ | PROT_EXEC),
  CALL(madvise, WANTED, SOME_ADDRESS, 4096, MADV_DONTNEED),
  CALL(futex, NEEDED, SOME_ADDRESS, FUTEX_WAIT, 1, SOME_ADDRESS),
  CALL(futex, NEEDED, SOME_ADDRESS, FUTEX_WAKE, 1),
  CALL(futex, NEEDED, SOME_ADDRESS, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, SOME_ADDRESS),
  CALL(futex, NEEDED, SOME_ADDRESS, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1),
  CALL(nanosleep, NEEDED, SOME_ADDRESS),
  CALL(clock_gettime, NEEDED, 1, SOME_ADDRESS),
  CALL(clock_gettime, WANTED, 3, SOME_ADDRESS),
  CALL(prctl, WANTED, PR_GET_TSC, SOME_ADDRESS),
  CALL(rt_sigaction, NEEDED, 10, SOME_ADDRESS, 0, SET_SIZE),
  CALL(rt_sigprocmask, NEEDED, 2, SOME_ADDRESS, SOME_ADDRESS, SET_SIZE),
  CALL(rt_sigpending, NEEDED, SOME_ADDRESS, SET_SIZE),
  CALL(rt_sigreturn, NEEDED, 0),
  CALL(sigaltstack, NEEDED, SOME_ADDRESS),
  CALL(rt_sigqueueinfo, NEEDED, 1000, 31, SOME_ADDRESS),
  CALL(rt_tgsigqueueinfo, NEEDED, 1000, 1000, 31, SOME_ADDRESS),
  CALL(tgkill, NEEDED, 1000, 1000, 0),
  CALL(getpid, NEEDED, 0),
  CALL(gettid, NEEDED, 0),
  CALL(getppid, NEEDED, 0),
  CALL(exit_group, NEEDED, 0),
  CALL(rseq, NEEDED_RSEQ, SOME_ADDRESS, 32, 1, 0x53053053),
  CALL(arch_prctl, NEEDED_GS, 0x1001, SOME_ADDRESS),
  CALL(fcntl, WANTED, SOME_FD, OFD_GETLK, SOME_ADDRESS),
  CALL(fallocate, WANTED, SOME_FD, 3, 4096, 4096),
  CALL(prctl, WANTED, PR_GET_NAME, SOME_ADDRESS),
  CALL(readlinkat, WANTED, NO_FD, SOME_ADDRESS, SOME_ADDRESS, 4096),
  CALL(openat, WANTED, NO_FD, SOME_ADDRESS, 02000000, 0),
  CALL(read, WANTED, SOME_FD, SOME_ADDRESS, 255),
  CALL(pread64, WANTED, SOME_FD, SOME_ADDRESS, 64, 0),
  CALL(fstat, WANTED, SOME_FD, SOME_ADDRESS),
  CALL(close, WANTED, SOME_FD),
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* ---- all filters of a thread ---- */

/* The kernel takes the answer of the filter that is strictest. */
static uint32_t stricter(uint32_t one, uint32_t two)
{
  return (int32_t)(one & SECCOMP_RET_ACTION_FULL) < (int32_t)(two & SECCOMP_RET_ACTION_FULL) ? one : two;
}

/* The answer of all filters to a call. */
static uint32_t answer_to(const struct filter_list *list, const struct call *call)
{
  struct seccomp_data data = {.nr = (int)call->number, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = SOME_ADDRESS};
  uint32_t answer = SECCOMP_RET_ALLOW;
  size_t start = 0;

  for (unsigned i = 0; i < 6; i++)
    data.args[i] = call->argument[i];
  for (size_t i = 0; i < list->count; i++) {
    answer = stricter(answer, filter_run(list->code + start, list->sizes[i], &data));
    start += list->sizes[i];
  }
  return answer;
}

static bool is_forbidden(const struct call *call, uint32_t action, const struct filter_verdict *verdict)
{
  if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
    return false;
  if ((call->need == NEEDED_RSEQ && !verdict->has_rseq) || (call->need == NEEDED_GS && verdict->has_wrgsbase))
    return false;
  return action != SECCOMP_RET_ERRNO || (call->need != WANTED && call->need != NEEDED_AT_START);
}

static void verdict_add(struct filter_verdict *verdict, const struct filter_list *list)
{
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
    uint32_t action = answer_to(list, &calls[i]) & SECCOMP_RET_ACTION_FULL;

    if (!verdict->forbidden && is_forbidden(&calls[i], action, verdict))
      verdict->forbidden = calls[i].name;
    verdict->forbids_code |= calls[i].need == NEEDED_AT_START && action == SECCOMP_RET_ERRNO;
  }
}

/* Reads one filter. Returns 1; 0: there are no more; -errno. */
static int filter_read(int thread, struct filter_list *list)
{
  const enum __ptrace_request get_filter = 0x420C; /* PTRACE_SECCOMP_GET_FILTER */
  long size = ptrace(get_filter, thread, list->count, NULL);

  if (size < 0)
    return errno == ENOENT || (errno == EINVAL && !list->count) ? 0 : -errno; /* EINVAL: the thread has none */
  if (size > BPF_MAXINSNS || list->count == FILTER_MOST)
    return -E2BIG;
  struct sock_filter *code = realloc(list->code, (list->size + (size_t)size) * sizeof(*code));
  if (!code)
    return -ENOMEM;
  list->code = code;
  if (ptrace(get_filter, thread, list->count, code + list->size) != size)
    return -errno;
  list->sizes[list->count++] = (uint32_t)size;
  list->size += (size_t)size;
  return 1;
}

static bool is_equal(const struct filter_list *one, const struct filter_list *two)
{
  return one->count == two->count && one->size == two->size &&
         !memcmp(one->sizes, two->sizes, one->count * sizeof(*one->sizes)) &&
         (!one->size || !memcmp(one->code, two->code, one->size * sizeof(*one->code)));
}

int filter_check(int thread, struct filter_verdict *verdict)
{
  struct filter_list list = {0};
  int r;

  do
    r = filter_read(thread, &list);
  while (r > 0);
  if (r >= 0 && list.count && !is_equal(&list, &verdict->last)) {
    verdict->has_filter = true;
    verdict_add(verdict, &list);
    free(verdict->last.code);
    verdict->last = list;
  } else {
    free(list.code);
  }
  return r;
}

void filter_verdict_done(struct filter_verdict *verdict)
{
  free(verdict->last.code);
}
