/* SPDX-License-Identifier: Apache-2.0
 *
 * The process recorder against single steps: a program is run natively under ptrace(2), one instruction at a time, and
 * by the recorder; output, exit status and the list of taken branches must be the same. Also the runtime's ELF file,
 * and how the recorder ends programs that it cannot run yet. Programs: tests/process/run_*.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "base/base.h"
#include "isa/isa.h"
#include "lastbranch/branch.h"
#include "process/process.h"
#include "process/runtime/runtime.h"
#include "process/shared.h"

/* What a run leaves behind. */
struct outcome {
  int status;
  char output[4096];
  struct process_branches list;
  unsigned error;                    /* enum process_error */
  struct process_thread thread;      /* recorded: the first of the program */
  struct user_regs_struct registers; /* native: when a signal killed it, as it came */
  siginfo_t signal;
};

/* glibc would register rseq, which the recorder refuses: without it both runs go the same way. */
static char *const environment[] = {"PATH=/usr/bin:/bin", "GLIBC_TUNABLES=glibc.pthread.rseq=0", NULL};

static const char *program_path(const char *name)
{
  static char path[4096];
  const char *folder = getenv("LB_RUN_PROGRAMS");

  if (strchr(name, '/'))
    return name;
  assert_non_null(folder);
  snprintf(path, sizeof(path), "%s/run_%s", folder, name);
  return path;
}

/* ---- output ---- */

static int saved_output;

static int output_begin(void)
{
  int fd = memfd_create("output", MFD_CLOEXEC);

  assert_true(fd >= 0);
  fflush(stdout);
  saved_output = fcntl(1, F_DUPFD_CLOEXEC, 3);
  dup2(fd, 1);
  return fd;
}

static void output_end(void)
{
  dup2(saved_output, 1);
  close(saved_output);
}

static void output_take(int fd, char output[4096])
{
  ssize_t size = pread(fd, output, 4095, 0);

  output[size < 0 ? 0 : size] = 0;
  close(fd);
}

/* ---- single steps ---- */

static void list_add(struct process_branches *list, uint64_t from, uint64_t to, unsigned kind)
{
  list->branches = array_grow(list->branches, sizeof(*list->branches), list->count, &list->capacity);
  assert_non_null(list->branches);
  list->branches[list->count++] = (struct lb_branch){.from = from, .to = to, .kind = (uint8_t)kind};
}

static void step_decode(int pid, uint64_t address, struct code *ret_code)
{
  uint8_t bytes[16] = {0};

  for (unsigned i = 0; i < 2; i++) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(address + i * 8), NULL);
    memcpy(bytes + i * 8, &word, 8);
  }
  if (!code_decode(bytes, sizeof(bytes), ret_code))
    *ret_code = (struct code){.length = 1};
}

static int kind_of(unsigned flow)
{
  static const int kinds[] = {[CODE_JCC] = LB_BRANCH_JCC,
                              [CODE_LOOP] = LB_BRANCH_JCC,
                              [CODE_JMP] = LB_BRANCH_NEAR_REL_JMP,
                              [CODE_CALL] = LB_BRANCH_NEAR_REL_CALL,
                              [CODE_JMP_IND] = LB_BRANCH_NEAR_IND_JMP,
                              [CODE_CALL_IND] = LB_BRANCH_NEAR_IND_CALL,
                              [CODE_RET] = LB_BRANCH_NEAR_RET};

  return flow >= CODE_JCC && flow <= CODE_RET ? kinds[flow] : -1;
}

/* One instruction. Returns the signal to go on with, or -1: the program has ended. */
static int step(int pid, int signal, struct outcome *outcome)
{
  struct user_regs_struct before, after;
  struct code code;

  ptrace(PTRACE_GETREGS, pid, NULL, &before);
  step_decode(pid, before.rip, &code);
  uint64_t next = before.rip + code.length;
  if (code.flow == CODE_SYSCALL)
    list_add(&outcome->list, before.rip, next, LB_BRANCH_SYSCALL);
  ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)signal);
  assert_int_equal(waitpid(pid, &outcome->status, 0), pid);
  if (!WIFSTOPPED(outcome->status))
    return -1;
  if (WSTOPSIG(outcome->status) != SIGTRAP) {
    ptrace(PTRACE_GETREGS, pid, NULL, &outcome->registers);
    ptrace(PTRACE_GETSIGINFO, pid, NULL, &outcome->signal);
    return WSTOPSIG(outcome->status);
  }
  ptrace(PTRACE_GETREGS, pid, NULL, &after);
  int kind = kind_of(code.flow);
  bool is_taken = code.flow == CODE_JCC || code.flow == CODE_LOOP ? after.rip != next : kind >= 0;
  if (is_taken)
    list_add(&outcome->list, before.rip, after.rip, (unsigned)kind);
  return 0;
}

/* By descriptor, as the recorder executes its runtime: what the kernel then puts on top of the stack has the same
 * length. Returns false where ptrace is not permitted. */
static bool run_native(const char *path, char *const arguments[], struct outcome *ret_outcome)
{
  struct outcome outcome = {0};
  int output = output_begin();
  int pid = fork();

  if (pid == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
      _exit(99);
    execveat(open(path, O_PATH | O_CLOEXEC), "", arguments, environment, AT_EMPTY_PATH);
    _exit(98);
  }
  output_end();
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &outcome.status, 0), pid);
  if (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 99) {
    close(output);
    return false;
  }
  assert_true(WIFSTOPPED(outcome.status));
  for (int signal = 0; signal >= 0;)
    signal = step(pid, signal, &outcome);
  output_take(output, outcome.output);
  *ret_outcome = outcome;
  return true;
}

/* ---- the recorder ---- */

/* The thread that has the number of its process, in the program that it executed first after this address space. */
static bool next_program(const struct process *process, uint32_t space, struct process_thread *ret_thread)
{
  struct process_thread thread;
  bool is_found = false;

  for (uint32_t slot = 0; slot < process_slots(process); slot++)
    if (process_thread(process, slot, &thread) && thread.thread == (uint32_t)process->pid && thread.space > space &&
        (!is_found || thread.space < ret_thread->space)) {
      *ret_thread = thread;
      is_found = true;
    }
  return is_found;
}

/* Its branches in all the programs that it executed. */
static void outcome_rebuild(const struct process *process, struct outcome *outcome)
{
  while (next_program(process, outcome->thread.space, &outcome->thread)) {
    struct process_branches list;

    assert_int_equal(process_rebuild(process, &outcome->thread, &list), 0);
    for (size_t i = 0; i < list.count; i++)
      list_add(&outcome->list, list.branches[i].from, list.branches[i].to, list.branches[i].kind);
    outcome->list.is_cut |= list.is_cut;
    process_branches_done(&list);
  }
}

static void run_recorded(const char *path, char *const arguments[], uint32_t part_size, struct outcome *ret_outcome)
{
  struct outcome outcome = {0};
  const struct process_options options = {.part_size = part_size};
  struct process process;
  int output = output_begin();
  int result = process_launch(&options, path, arguments, environment, &process);

  output_end();
  assert_int_equal(result, 0);
  assert_int_equal(process_wait(&process, &outcome.status), 0);
  outcome.error = process_error(&process, NULL, NULL, NULL);
  outcome_rebuild(&process, &outcome);
  process_done(&process);
  output_take(output, outcome.output);
  *ret_outcome = outcome;
}

static void outcome_done(struct outcome *outcome)
{
  process_branches_done(&outcome->list);
}

/* ---- comparison ---- */

static void show(const char *what, const struct process_branches *list, size_t at)
{
  for (size_t i = at < 3 ? 0 : at - 3; i < at + 3 && i < list->count; i++)
    print_message("%s %zu: %#llx -> %#llx %s\n", what, i, (unsigned long long)list->branches[i].from,
                  (unsigned long long)list->branches[i].to, lb_branch_kind_name(list->branches[i].kind));
}

/* Where a program is loaded elsewhere, the mask leaves what is the same: the place in the page. */
static void compare_lists(const struct process_branches *native, const struct process_branches *recorded, uint64_t mask)
{
  for (size_t i = 0; i < native->count && i < recorded->count; i++) {
    const struct lb_branch *one = &native->branches[i], *other = &recorded->branches[i];

    if ((one->from & mask) != (other->from & mask) || (one->to & mask) != (other->to & mask) ||
        one->kind != other->kind) {
      show("native", native, i);
      show("recorded", recorded, i);
      fail_msg("branch %zu of %zu differs", i, native->count);
    }
  }
  assert_int_equal(native->count, recorded->count);
}

enum { IN_PAGE = 0xFFF };

/* What killed it is recorded as the kernel tells it to a debugger: signal, code, address and all registers. */
static void compare_deaths(const struct outcome *native, const struct outcome *recorded, uint64_t mask)
{
  const struct user_regs_struct *one = &native->registers;
  const struct process_thread *other = &recorded->thread;
  const uint64_t registers[16] = {one->rax, one->rcx, one->rdx, one->rbx, one->rsp, one->rbp, one->rsi, one->rdi,
                                  one->r8,  one->r9,  one->r10, one->r11, one->r12, one->r13, one->r14, one->r15};
  enum { RSP = 4, FLAGS = 0xCD5 }; /* the arithmetic flags and DF */

  assert_true(process_thread_has_died(other));
  assert_int_equal(other->end_status, WTERMSIG(native->status));
  assert_int_equal(other->end_status, native->signal.si_signo);
  assert_int_equal(other->signal_code, native->signal.si_code);
  assert_int_equal(other->signal_address & mask, (uint64_t)native->signal.si_addr & mask);
  assert_int_equal(other->rip & mask, one->rip & mask);
  assert_int_equal(other->flags & FLAGS, one->eflags & FLAGS);
  for (unsigned i = 0; i < 16; i++)
    assert_int_equal(other->registers[i] & (i == RSP ? IN_PAGE : mask), registers[i] & (i == RSP ? IN_PAGE : mask));
}

static void compare_runs(const char *name, const char *argument, uint64_t mask)
{
  const char *path = program_path(name);
  char *const arguments[] = {(char *)path, (char *)argument, NULL};
  struct outcome native, recorded;

  if (!run_native(path, arguments, &native))
    skip();
  run_recorded(path, arguments, 0, &recorded);
  assert_int_equal(recorded.error, PROCESS_E_NONE);
  assert_int_equal(native.status, recorded.status);
  assert_string_equal(native.output, recorded.output);
  assert_false(recorded.list.is_cut);
  compare_lists(&native.list, &recorded.list, mask);
  assert_true(native.list.count > 0);
  if (WIFSIGNALED(native.status))
    compare_deaths(&native, &recorded, mask);
  outcome_done(&native);
  outcome_done(&recorded);
}

static void test_branches(void **state)
{
  (void)state;
  compare_runs("branches", NULL, UINT64_MAX);
}

static void test_branches_pie(void **state)
{
  (void)state;
  compare_runs("branches_pie", NULL, IN_PAGE);
}

static void test_change(void **state)
{
  (void)state;
  compare_runs("change", NULL, UINT64_MAX);
}

static void test_crash(void **state)
{
  (void)state;
  compare_runs("crash", NULL, UINT64_MAX);
  compare_runs("data", NULL, UINT64_MAX);
}

static void test_fork(void **state)
{
  (void)state;
  compare_runs("fork", NULL, UINT64_MAX);
}

static void test_static(void **state)
{
  (void)state;
  compare_runs("static", "one", UINT64_MAX);
}

static void test_dynamic(void **state)
{
  (void)state;
  compare_runs("dynamic", "two", IN_PAGE);
}

static void test_true(void **state)
{
  (void)state;
  compare_runs("/bin/true", NULL, IN_PAGE);
}

static void test_echo(void **state)
{
  (void)state;
  compare_runs("/bin/echo", "some words", IN_PAGE);
}

/* Another program in the same process. */
static void test_exec(void **state)
{
  (void)state;
  compare_runs("exec", NULL, IN_PAGE);
}

/* A handler that the signal reaches, and that dies. */
static void test_signal(void **state)
{
  (void)state;
  const char *path = program_path("signal");
  char *const arguments[] = {(char *)path, NULL};
  struct outcome outcome;
  run_recorded(path, arguments, 0, &outcome);
  assert_int_equal(outcome.error, PROCESS_E_NONE);
  assert_true(WIFSIGNALED(outcome.status));
  assert_int_equal(WTERMSIG(outcome.status), SIGILL);
  assert_true(process_thread_has_died(&outcome.thread));
  assert_int_equal(outcome.thread.rip, outcome.thread.signal_address);
  outcome_done(&outcome);
}

/* The programs check themselves too: their status is part of what they are for. */
static void test_status(void **state)
{
  (void)state;
  static const char *const names[] = {"branches", "branches_pie", "change", "fork", "thread"};
  for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
    const char *path = program_path(names[i]);
    char *const arguments[] = {(char *)path, NULL};
    struct outcome outcome;

    run_recorded(path, arguments, 0, &outcome);
    assert_true(WIFEXITED(outcome.status));
    assert_int_equal(WEXITSTATUS(outcome.status), 42);
    outcome_done(&outcome);
  }
}

/* ---- the log goes round ---- */

static void test_long(void **state)
{
  (void)state;
  const char *path = program_path("long");
  char *const arguments[] = {(char *)path, NULL};
  struct outcome outcome;
  run_recorded(path, arguments, PROCESS_PART_LEAST, &outcome);
  assert_int_equal(WEXITSTATUS(outcome.status), 42);
  const struct process_branches *list = &outcome.list;
  assert_true(list->is_cut);
  assert_true(list->count > PROCESS_PART_LEAST / 4);
  assert_int_equal(list->branches[list->count - 1].kind, LB_BRANCH_SYSCALL);
  for (size_t i = 1; i < list->count - 1; i++) /* the last trip through the loop has no jump back */
    assert_true(list->branches[i].kind == LB_BRANCH_NEAR_REL_CALL ||
                list->branches[i - 1].kind == LB_BRANCH_NEAR_REL_CALL ||
                list->branches[i - 1].kind == LB_BRANCH_NEAR_RET);
  outcome_done(&outcome);
}

/* The runtime learns from full parts of the log. It must not take a half of an event's address for a step. */
static void test_events(void **state)
{
  (void)state;
  const char *path = program_path("events");
  char *const arguments[] = {(char *)path, NULL};
  struct outcome outcome;
  run_recorded(path, arguments, PROCESS_PART_LEAST, &outcome);
  assert_int_equal(outcome.error, PROCESS_E_NONE);
  assert_true(WIFEXITED(outcome.status));
  assert_int_equal(WEXITSTATUS(outcome.status), 42);
  assert_true(outcome.list.is_cut);
  outcome_done(&outcome);
}

/* ---- what is refused ---- */

static void expect_error(const char *path, unsigned error, int status)
{
  char *const arguments[] = {(char *)path, NULL};
  struct outcome outcome;

  run_recorded(path, arguments, 0, &outcome);
  if (outcome.error != error)
    print_message("%s: %s\n", path, process_error_text(outcome.error));
  assert_int_equal(outcome.error, error);
  assert_true(WIFEXITED(outcome.status));
  assert_int_equal(WEXITSTATUS(outcome.status), status);
  outcome_done(&outcome);
}

static void test_refuse(void **state)
{
  (void)state;
  expect_error(program_path("gs"), PROCESS_E_GS, 125);
  expect_error(program_path("gs_base"), PROCESS_E_GS, 125);
  expect_error(program_path("far"), PROCESS_E_INSTRUCTION, 125);
}

/* A file of `size` bytes that may be executed. */
static void file_make(const char *path, const void *bytes, size_t size, unsigned mode)
{
  int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0700);

  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, size), size);
  fchmod(fd, mode);
  close(fd);
}

static void test_bad_files(void **state)
{
  (void)state;
  char path[] = "/tmp/lbr-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  Elf64_Ehdr header = {.e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS32}, .e_machine = EM_386};
  expect_error("/nonexistent/program", PROCESS_E_NOT_FOUND, 127);
  file_make(path, "#!/bin/sh\nexit 9\n", 17, 0700);
  expect_error(path, PROCESS_E_NONE, 9);
  file_make(path, "#!/nonexistent\n", 15, 0700);
  expect_error(path, PROCESS_E_NO_SCRIPT, 126);
  file_make(path, "#!\n", 3, 0700);
  expect_error(path, PROCESS_E_NOT_ELF, 126);
  file_make(path, "x", 1, 0700);
  expect_error(path, PROCESS_E_NOT_ELF, 126);
  file_make(path, &header, sizeof(header), 0700);
  expect_error(path, PROCESS_E_NOT_X86_64, 126);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_X86_64;
  header.e_type = ET_DYN;
  file_make(path, &header, sizeof(header), 0700);
  expect_error(path, PROCESS_E_BAD_ELF, 126);
  file_make(path, &header, sizeof(header), 0600);
  expect_error(path, PROCESS_E_NO_ACCESS, 126);
  unlink(path);
}

/* Headers of a good program with random bytes over them: whatever happens, it ends with a code or a signal. */
static void test_random_headers(void **state)
{
  (void)state;
  char path[] = "/tmp/lbr-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  uint8_t good[16384], bytes[16384];
  FILE *file = fopen(program_path("crash"), "rb");
  assert_non_null(file);
  size_t size = fread(good, 1, sizeof(good), file);
  fclose(file);
  uint32_t random = 1;
  for (unsigned i = 0; i < 200; i++) {
    memcpy(bytes, good, size);
    for (unsigned j = 0; j < 3; j++) {
      random = random * 1103515245 + 12345;
      bytes[16 + (random >> 8) % 272] = (uint8_t)(random >> 24);
    }
    file_make(path, bytes, size, 0700);
    char *const arguments[] = {path, NULL};
    struct outcome outcome;
    run_recorded(path, arguments, 0, &outcome);
    assert_true(WIFSIGNALED(outcome.status) || outcome.error != PROCESS_E_NONE);
    outcome_done(&outcome);
  }
  unlink(path);
}

/* ---- options ---- */

static void test_options(void **state)
{
  (void)state;
  char *const arguments[] = {"true", NULL};
  struct process process;
  const struct process_options bad[] = {{.part_size = 4096}, {.part_size = 3 << 20}, {.part_size = 1u << 29}};
  for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
    assert_int_equal(process_launch(&bad[i], "/bin/true", arguments, environment, &process), -EINVAL);
}

/* ---- the runtime's ELF file ---- */

static const Elf64_Shdr *sections(const Elf64_Ehdr *elf)
{
  return (const void *)((const uint8_t *)elf + elf->e_shoff);
}

static void check_symbols(const Elf64_Ehdr *elf, const Elf64_Shdr *section)
{
  const Elf64_Sym *symbols = (const void *)((const uint8_t *)elf + section->sh_offset);
  const char *names = (const char *)elf + sections(elf)[section->sh_link].sh_offset;
  for (size_t i = 1; i < section->sh_size / sizeof(*symbols); i++)
    if (symbols[i].st_shndx == SHN_UNDEF)
      fail_msg("undefined: %s", names + symbols[i].st_name);
}

/* The file has neither symbols from elsewhere nor relocations, and nothing in it is writable and executable. */
static void test_runtime_symbols(void **state)
{
  (void)state;
  const Elf64_Ehdr *elf = (const void *)process_runtime;
  assert_memory_equal(elf->e_ident, ELFMAG, SELFMAG);
  assert_int_equal(elf->e_type, ET_DYN);
  unsigned tables = 0;
  for (unsigned i = 0; i < elf->e_shnum; i++) {
    const Elf64_Shdr *section = &sections(elf)[i];
    if (section->sh_type == SHT_SYMTAB) {
      check_symbols(elf, section);
      tables++;
    }
    assert_false(section->sh_type == SHT_RELA && section->sh_size);
    assert_false(section->sh_flags & SHF_WRITE && section->sh_flags & SHF_EXECINSTR);
  }
  assert_int_equal(tables, 1);
}

static bool is_vector(const ZydisDecodedOperand *operand)
{
  if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
    return false;
  switch (ZydisRegisterGetClass(operand->reg.value)) {
  case ZYDIS_REGCLASS_X87:
  case ZYDIS_REGCLASS_MMX:
  case ZYDIS_REGCLASS_XMM:
  case ZYDIS_REGCLASS_YMM:
  case ZYDIS_REGCLASS_ZMM:
  case ZYDIS_REGCLASS_MASK:
    return true;
  default:
    return false;
  }
}

static ZydisDecoder long_decoder(void)
{
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return decoder;
}

static void check_text(const uint8_t *bytes, size_t size)
{
  ZydisDecoder decoder = long_decoder();
  for (size_t at = 0; at < size;) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &instruction, operands)));
    for (unsigned i = 0; i < instruction.operand_count; i++)
      if (is_vector(&operands[i]))
        fail_msg("a vector register at %#zx", at);
    at += instruction.length;
  }
}

static void test_runtime_registers(void **state)
{
  (void)state;
  const Elf64_Ehdr *elf = (const void *)process_runtime;
  size_t checked = 0;
  for (unsigned i = 0; i < elf->e_shnum; i++) {
    const Elf64_Shdr *section = &sections(elf)[i];
    if (section->sh_flags & SHF_EXECINSTR) {
      check_text(process_runtime + section->sh_offset, section->sh_size);
      checked += section->sh_size;
    }
  }
  assert_true(checked > 1000);
}

/* ---- pieces of the runtime ---- */

static uint32_t random_next(void)
{
  static uint32_t state = 1;

  state = state * 1103515245 + 12345;
  return state >> 8;
}

/* Against flags for each address: 0 is nothing, else the range's flags + 1. */
static void test_ranges(void **state)
{
  (void)state;
  enum { ADDRESSES = 64 };
  static struct range_list list;
  unsigned there[ADDRESSES + 1] = {0};
  for (unsigned i = 0; i < 20000; i++) {
    unsigned start = random_next() % ADDRESSES, end = start + random_next() % (ADDRESSES - start + 1);
    unsigned what = random_next() % 4;
    bool is_touched = false;

    for (unsigned at = start; at < end; at++) {
      is_touched |= there[at] != 0;
      there[at] = what;
    }
    if (what)
      assert_true(range_add(&list, start, end, what - 1));
    else
      assert_int_equal(range_remove(&list, start, end), is_touched);
    for (unsigned at = 0; at < ADDRESSES; at++) {
      const struct range *range = range_find(&list, at);
      unsigned first = at, last = at;

      assert_int_equal(range != NULL, there[at] != 0);
      if (!range)
        continue;
      while (first && there[first - 1] == there[at])
        first--;
      while (there[last] == there[at])
        last++;
      assert_int_equal(range->flags, there[at] - 1);
      assert_int_equal(range->start, first);
      assert_int_equal(range->end, last);
    }
  }
}

/* An instruction and its operands, hidden ones too. */
struct decoded {
  ZydisDecodedInstruction code;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const uint8_t *bytes, struct decoded *ret_decoded)
{
  ZydisDecoder decoder = long_decoder();
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, 16, &ret_decoded->code, ret_decoded->operands));
}

static bool uses_register(const struct decoded *decoded, ZydisRegister base)
{
  for (unsigned i = 0; i < decoded->code.operand_count; i++) {
    const ZydisDecodedOperand *operand = &decoded->operands[i];
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value) == base)
      return true;
  }
  return false;
}

/* All but the operand in memory is the same. Returns that. */
static const ZydisDecodedOperand *compare_operands(const struct decoded *from, const struct decoded *to)
{
  const ZydisDecodedOperand *memory = NULL;
  assert_int_equal(to->code.mnemonic, from->code.mnemonic);
  assert_int_equal(to->code.operand_count, from->code.operand_count);
  for (unsigned i = 0; i < to->code.operand_count; i++) {
    const ZydisDecodedOperand *one = &from->operands[i], *other = &to->operands[i];
    assert_int_equal(one->type, other->type);
    assert_int_equal(one->size, other->size);
    if (one->type == ZYDIS_OPERAND_TYPE_REGISTER)
      assert_int_equal(one->reg.value, other->reg.value);
    if (one->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
      assert_int_equal(one->imm.value.u, other->imm.value.u);
    if (one->type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (one->mem.base == ZYDIS_REGISTER_RIP || one->mem.base == ZYDIS_REGISTER_EIP))
      memory = other;
  }
  assert_non_null(memory);
  return memory;
}

/* Nothing had to be spilled: LEA of 64 bits became MOV of a number, or the address fits the instruction. */
static void compare_plain_copy(const uint8_t *copy, const uint8_t *end, const struct decoded *from, uint64_t target)
{
  struct decoded to;

  assert_true(decode(copy, &to));
  assert_ptr_equal(copy + to.code.length, end);
  if (from->code.mnemonic == ZYDIS_MNEMONIC_LEA && to.code.mnemonic == ZYDIS_MNEMONIC_MOV) {
    assert_int_equal(to.operands[0].reg.value, from->operands[0].reg.value);
    assert_int_equal(to.operands[0].size, 64);
    assert_int_equal(to.operands[1].imm.value.u, target);
    return;
  }
  const ZydisDecodedOperand *memory = compare_operands(from, &to);
  assert_int_equal(memory->mem.base, ZYDIS_REGISTER_NONE);
  assert_int_equal(memory->mem.index, ZYDIS_REGISTER_NONE);
  assert_int_equal(memory->mem.disp.value, target);
}

/* The same instruction with another base, which was free and is put back, or without any. */
static void compare_copy(const uint8_t *bytes, const struct decoded *from, const struct code *code, uint64_t address)
{
  enum { SPILL_SIZE = 9, ADDRESS_SIZE = 10 };
  uint8_t copy[80] = {0};
  struct emitter emitter = {copy};
  struct decoded to;
  int32_t displacement;

  memcpy(&displacement, bytes + code->disp_offset, 4);
  uint64_t target = address + code->length + (uint64_t)(int64_t)displacement;
  target = code->prefixes & CODE_67 ? (uint32_t)target : target;
  if (!copy_plain(&emitter, code, bytes, address)) {
    compare_plain_copy(copy, emitter.at, from, target);
    return;
  }
  const uint8_t *at = copy + SPILL_SIZE;
  ZydisRegister base = ZYDIS_REGISTER_RAX + (at[1] & 7);
  assert_int_equal(bytes_get_u64(at + 2), target);
  assert_true(decode(at + ADDRESS_SIZE, &to));
  assert_int_equal(to.code.length, from->code.length - 4);
  assert_ptr_equal(at + ADDRESS_SIZE + to.code.length + SPILL_SIZE, emitter.at);
  assert_false(uses_register(from, base));
  const ZydisDecodedOperand *memory = compare_operands(from, &to);
  assert_int_equal(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, memory->mem.base), base);
}

/* Random instructions that name memory relative to RIP, out of reach of the copy. */
static void test_copy(void **state)
{
  (void)state;
  static const uint8_t likely[] = {0x66, 0x67, 0xF2, 0xF3, 0x48, 0x41, 0x4D, 0x0F, 0xC4, 0xC5, 0x62, 0x8F, 0xF0, 0x64};
  unsigned checked = 0;
  for (unsigned i = 0; i < 3000000; i++) {
    uint8_t bytes[16];
    struct code code;
    struct decoded decoded;

    for (unsigned j = 0; j < 16; j++)
      bytes[j] = (uint8_t)random_next();
    for (unsigned j = random_next() % 3; j--;)
      bytes[j] = likely[random_next() % sizeof(likely)];
    if (!code_decode(bytes, 16, &code) || !code.modrm_offset)
      continue;
    bytes[code.modrm_offset] = (bytes[code.modrm_offset] & 0x38) | 5;
    if (!code_decode(bytes, 16, &code) || !code.is_rip_relative || code.flow != CODE_PLAIN ||
        copy_check(&code, bytes) != COPY_FINE || !decode(bytes, &decoded) || decoded.code.length != code.length)
      continue;
    compare_copy(bytes, &decoded, &code, UINT64_C(0x123456789000));
    compare_copy(bytes, &decoded, &code, UINT64_C(0x40000000));
    checked++;
  }
  assert_true(checked > 10000);
}

/* Both runs at the same addresses where that is possible, and stepping is faster when one CPU does both sides. */
static int set_up(void **state)
{
  (void)state;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(sched_getcpu(), &set);
  sched_setaffinity(0, sizeof(set), &set);
  personality(ADDR_NO_RANDOMIZE);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_symbols),
    cmocka_unit_test(test_runtime_registers),
    cmocka_unit_test(test_ranges),
    cmocka_unit_test(test_copy),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_status),
    cmocka_unit_test(test_branches),
    cmocka_unit_test(test_branches_pie),
    cmocka_unit_test(test_change),
    cmocka_unit_test(test_crash),
    cmocka_unit_test(test_fork),
    cmocka_unit_test(test_exec),
    cmocka_unit_test(test_signal),
    cmocka_unit_test(test_long),
    cmocka_unit_test(test_events),
    cmocka_unit_test(test_refuse),
    cmocka_unit_test(test_bad_files),
    cmocka_unit_test(test_random_headers),
    cmocka_unit_test(test_static),
    cmocka_unit_test(test_dynamic),
    cmocka_unit_test(test_true),
    cmocka_unit_test(test_echo),
  };

  return cmocka_run_group_tests(tests, set_up, NULL);
}
