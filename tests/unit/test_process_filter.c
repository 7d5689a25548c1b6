/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr's interpreter of seccomp filters, src/process/filter.c. The kernel is the reference: a child sets a random filter
 * and makes a system call, whose errno is the filter's answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/filter.h"

/* A call that nobody else makes. */
enum { CALL = SYS_tee, FILTERS = 300, CALLS = 20, CODE_MOST = 80, ERRNO_MOST = 4000 };

static uint64_t state = 88172645463325252;

static uint64_t random_next(void)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

struct program {
  struct sock_filter code[CODE_MOST];
  unsigned short size;
};

static void add(struct program *program, unsigned operation, unsigned yes, unsigned no, uint32_t value)
{
  program->code[program->size++] = (struct sock_filter){(uint16_t)operation, (uint8_t)yes, (uint8_t)no, value};
}

static uint32_t random_value(void)
{
  uint64_t value = random_next();

  return value & 1 ? (uint32_t)(value >> 8 & 0xF) : (uint32_t)(value >> 32);
}

/* Anything but a return and a division by a constant 0, which the kernel refuses. Words of M are stored before they are
 * loaded: the kernel wants that. `left` is the number of instructions after it. */
static void add_random(struct program *program, unsigned left)
{
  static const uint16_t alu[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND, BPF_OR, BPF_XOR, BPF_LSH, BPF_RSH};
  static const uint16_t jumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
  unsigned source = random_next() & 1 ? BPF_X : BPF_K;
  uint32_t value = random_value();

  switch (random_next() % 10) {
  case 0:
    add(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)(random_next() % (sizeof(struct seccomp_data) / 4) * 4));
    break;
  case 1:
    add(program, BPF_LD | BPF_IMM, 0, 0, value);
    break;
  case 2:
    add(program, BPF_LDX | BPF_IMM, 0, 0, value);
    break;
  case 3:
    add(program, random_next() & 1 ? BPF_LD | BPF_W | BPF_LEN : BPF_LDX | BPF_W | BPF_LEN, 0, 0, 0);
    break;
  case 4:
    add(program, BPF_MISC | (random_next() & 1 ? BPF_TAX : BPF_TXA), 0, 0, 0);
    break;
  case 5:
    add(program, random_next() & 1 ? BPF_ST : BPF_STX, 0, 0, (uint32_t)(random_next() % BPF_MEMWORDS));
    break;
  case 6:
    add(program, (random_next() & 1 ? BPF_LD : BPF_LDX) | BPF_MEM, 0, 0, (uint32_t)(random_next() % BPF_MEMWORDS));
    break;
  case 7:
    if (left)
      add(program, BPF_JMP | jumps[random_next() % 4] | source, (unsigned)(random_next() % (left < 8 ? left : 8)),
          (unsigned)(random_next() % (left < 8 ? left : 8)), value);
    else
      add(program, BPF_ALU | BPF_NEG, 0, 0, 0);
    break;
  default: {
    unsigned operation = alu[random_next() % (sizeof(alu) / sizeof(alu[0]))];

    if (source == BPF_K && (operation == BPF_LSH || operation == BPF_RSH))
      value %= 32;
    if (source == BPF_X && (operation == BPF_LSH || operation == BPF_RSH || operation == BPF_DIV))
      operation = BPF_ADD; /* shifts by 32 and more are undefined in the kernel; a division by 0 would end the child */
    add(program, BPF_ALU | operation | source, 0, 0, value ? value : 1);
    break;
  }
  }
}

/* Other calls are allowed. The answer to ours is an errno that depends on all that was computed. */
static void program_make(struct program *program)
{
  unsigned middle = 4 + (unsigned)(random_next() % (CODE_MOST - 40));

  program->size = 0;
  add(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
  add(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, CALL);
  add(program, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
  for (unsigned i = 0; i < BPF_MEMWORDS; i++)
    add(program, BPF_ST, 0, 0, i);
  for (unsigned i = 0; i < middle; i++)
    add_random(program, middle - 1 - i);
  add(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x7FF);
  add(program, BPF_ALU | BPF_ADD | BPF_K, 0, 0, 1);
  add(program, BPF_ALU | BPF_OR | BPF_K, 0, 0, SECCOMP_RET_ERRNO);
  add(program, BPF_RET | BPF_A, 0, 0, 0);
}

static void arguments_make(uint64_t argument[6])
{
  for (unsigned i = 0; i < 6; i++)
    argument[i] = random_next() & 1 ? random_next() : random_next() & 0xFF;
}

/* In the child: 0, or the number of the call for which the kernel gave another answer; 255: it refused the filter. */
static int child_run(const struct program *program)
{
  const struct sock_fprog kernel = {.len = program->size, .filter = (struct sock_filter *)program->code};

  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &kernel))
    return 255;
  for (int i = 1; i <= CALLS; i++) {
    uint64_t argument[6];
    struct seccomp_data data = {.nr = CALL, .arch = AUDIT_ARCH_X86_64};

    arguments_make(argument);
    memcpy(data.args, argument, sizeof(data.args));
    register uint64_t r10 __asm__("r10") = argument[3];
    register uint64_t r8 __asm__("r8") = argument[4];
    register uint64_t r9 __asm__("r9") = argument[5];
    int64_t result;
    uint64_t after;
    __asm__ volatile("lea 1f(%%rip), %%rcx\n\tmov %%rcx, %1\n\tsyscall\n1:"
                     : "=a"(result), "=&r"(after)
                     : "a"((uint64_t)CALL), "D"(argument[0]), "S"(argument[1]), "d"(argument[2]), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    data.instruction_pointer = after; /* the kernel sees the address after the instruction */
    if ((uint32_t)-result != (filter_run(program->code, program->size, &data) & SECCOMP_RET_DATA))
      return i;
  }
  return 0;
}

static void test_random(void **unused)
{
  unsigned refused = 0;

  (void)unused;
  for (unsigned i = 0; i < FILTERS; i++) {
    struct program program;
    int status;

    program_make(&program);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
      _exit(child_run(&program));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    refused += WEXITSTATUS(status) == 255;
    if (WEXITSTATUS(status) != 255)
      assert_int_equal(WEXITSTATUS(status), 0);
    for (unsigned j = 0; j < 6 * CALLS; j++)
      random_next();
  }
  assert_true(refused < FILTERS / 10);
}

/* What the kernel would not have accepted, and what ends a filter early. */
static void test_invalid(void **unused)
{
  const struct seccomp_data data = {.nr = CALL, .arch = AUDIT_ARCH_X86_64};
  const struct sock_filter far_load[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), BPF_STMT(BPF_RET | BPF_K, 1)};
  const struct sock_filter odd_load[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 3), BPF_STMT(BPF_RET | BPF_K, 1)};
  const struct sock_filter memory[] = {BPF_STMT(BPF_ST, 16), BPF_STMT(BPF_RET | BPF_K, 1)};
  const struct sock_filter far_jump[] = {BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), BPF_STMT(BPF_RET | BPF_K, 1)};
  const struct sock_filter division[] = {BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), BPF_STMT(BPF_RET | BPF_K, 1)};

  (void)unused;
  assert_int_equal(filter_run(far_load, 2, &data), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(filter_run(odd_load, 2, &data), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(filter_run(memory, 2, &data), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(filter_run(far_jump, 2, &data), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(filter_run(NULL, 0, &data), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(filter_run(division, 2, &data), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_random),
    cmocka_unit_test(test_invalid),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
