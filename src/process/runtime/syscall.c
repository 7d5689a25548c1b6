/* SPDX-License-Identifier: Apache-2.0
 *
 * The application's system calls. Most go to the kernel as they are; those that make or change code, processes, signals
 * or the runtime's own ground are looked at here or in the files of these.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "process/runtime.h"

enum { ERROR_INVAL = -22, ERROR_FAULT = -14 };
enum { SHADOW_STACK_FIRST = 0x5001, SHADOW_STACK_LAST = 0x5005 };

/* A call as the registers hold it. */
struct call {
  uint64_t number;
  uint64_t argument[6];
};

static int64_t call_pass(const struct call *call)
{
  return syscall_pass(call->number, call->argument);
}

/* ---- memory ---- */

static uint64_t page_up(uint64_t size)
{
  return (size + PROCESS_PAGE - 1) & ~(uint64_t)(PROCESS_PAGE - 1);
}

/* What was at these addresses is gone or may have changed. Returns the flags of the range that was at the start. */
static uint32_t code_remove(struct runtime *runtime, uint64_t start, uint64_t end, bool is_gone)
{
  const struct range *range = range_find(&runtime->executable, start);
  uint32_t flags = range ? range->flags : 0;
  if (range_remove(&runtime->executable, start, end)) {
    page_drop(runtime, start, end);
    if (is_gone)
      note_put(runtime, NOTE_UNMAP, runtime->space, start, end, 0, NULL, 0);
  }
  return flags;
}

static void code_add(struct runtime *runtime, uint64_t start, uint64_t end, uint32_t flags)
{
  if (!range_add(&runtime->executable, start, end, flags))
    runtime_fail(PROCESS_E_RANGES_FULL, 0, start);
}

static void text_number(char *at, uint64_t number)
{
  char digits[24];
  unsigned count = 0;
  do
    digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  while (count)
    *at++ = digits[--count];
  *at = 0;
}

static bool text_begins(const char *text, const char *begin)
{
  while (*begin)
    if (*text++ != *begin++)
      return false;
  return true;
}

/* A file that is mapped to be executed: its path, for the parent. What has no path that can be opened is not a file to
 * it. */
static bool note_file(struct runtime *runtime, uint64_t start, uint64_t end, uint64_t fd, uint64_t offset)
{
  static const char folder[] = "/proc/self/fd/", gone[] = " (deleted)";
  char link[64], path[4096];
  memcpy(link, folder, sizeof(folder));
  text_number(link + sizeof(folder) - 1, fd);
  int64_t size = kernel_call(__NR_readlinkat, (uint64_t)AT_FDCWD, (uint64_t)link, (uint64_t)path, sizeof(path) - 1, 0, 0);
  if (size <= 0 || path[0] != '/')
    return false;
  path[size] = 0;
  if (text_begins(path, "/memfd:") || text_begins(path, "/dev/") ||
      (size > (int64_t)sizeof(gone) && text_is(path + size + 1 - sizeof(gone), gone)))
    return false;
  note_put(runtime, NOTE_MAP, runtime->space, start, end, offset, path, (uint32_t)size);
  return true;
}

static void map_code(struct runtime *runtime, const struct call *call, uint64_t start, uint64_t end)
{
  uint64_t flags = call->argument[3];
  bool is_file = !(flags & MAP_ANONYMOUS), is_private = (flags & 15) == MAP_PRIVATE;
  uint32_t range = call->argument[2] & PROT_WRITE ? RANGE_WRITABLE : 0;
  if (is_file && is_private && !runtime->is_confined &&
      note_file(runtime, start, end, call->argument[4], call->argument[5]))
    range |= RANGE_FILE;
  else if (!is_private)
    range |= RANGE_SHARED;
  code_add(runtime, start, end, range);
}

/* Between the kernel's change and ours nobody may translate: the lock covers both. */
static int64_t call_mmap(struct runtime *runtime, const struct call *call)
{
  runtime_lock(runtime);
  int64_t result = call_pass(call);
  if (!is_failure(result)) {
    uint64_t start = (uint64_t)result, end = start + page_up(call->argument[1]);
    code_remove(runtime, start, end, true);
    if (call->argument[2] & PROT_EXEC)
      map_code(runtime, call, start, end);
  }
  runtime_unlock(runtime);
  return result;
}

static int64_t call_mprotect(struct runtime *runtime, const struct call *call)
{
  runtime_lock(runtime);
  int64_t result = call_pass(call);
  if (!is_failure(result)) {
    uint64_t start = call->argument[0], end = start + page_up(call->argument[1]);
    uint32_t kept = code_remove(runtime, start, end, false) & (RANGE_FILE | RANGE_SHARED);
    if (call->argument[2] & PROT_EXEC)
      code_add(runtime, start, end, kept | (call->argument[2] & PROT_WRITE ? RANGE_WRITABLE : 0));
  }
  runtime_unlock(runtime);
  return result;
}

static int64_t call_munmap(struct runtime *runtime, const struct call *call)
{
  runtime_lock(runtime);
  int64_t result = call_pass(call);
  if (!is_failure(result))
    code_remove(runtime, call->argument[0], call->argument[0] + page_up(call->argument[1]), true);
  runtime_unlock(runtime);
  return result;
}

static int64_t call_mremap(struct runtime *runtime, const struct call *call)
{
  uint64_t from = call->argument[0];
  runtime_lock(runtime);
  const struct range *range = range_find(&runtime->executable, from);
  bool is_executable = range;
  int64_t result = call_pass(call);
  if (!is_failure(result)) {
    uint64_t to = (uint64_t)result;
    uint32_t flags = code_remove(runtime, from, from + page_up(call->argument[1]), true);
    code_remove(runtime, to, to + page_up(call->argument[2]), true);
    if (is_executable)
      code_add(runtime, to, to + page_up(call->argument[2]), flags & ~(uint32_t)RANGE_FILE);
  }
  runtime_unlock(runtime);
  return result;
}

/* The kernel does not write to code that we protect: it is released, and the call made again. */
static int64_t call_other(struct thread *thread, const struct call *call)
{
  int64_t result = call_pass(call);
  if (result != ERROR_FAULT)
    return result;
  runtime_lock(thread->runtime);
  bool is_released = page_release_all(thread->runtime);
  runtime_unlock(thread->runtime);
  return is_released ? call_pass(call) : result;
}

/* ---- /proc/self/exe ---- */

static const char own_link[] = "/memfd:lbr-runtime";
static const char link_path[] = "/proc/self/exe";

/* The kernel says that the program is our runtime; whatever path led to that, the answer shows it. The buffer is good
 * where the kernel has just written to it. */
static int64_t call_readlink(const struct runtime *runtime, const struct call *call, char *buffer, uint64_t size)
{
  int64_t result = call_pass(call);
  if (result < (int64_t)sizeof(own_link) - 1)
    return result;
  for (unsigned i = 0; i < sizeof(own_link) - 1; i++)
    if (buffer[i] != own_link[i])
      return result;
  uint64_t length = text_length(runtime->exe);
  if (length > size)
    length = size;
  memcpy(buffer, runtime->exe, length);
  return (int64_t)length;
}

/* Where the call has gone well, the path can be read. */
static int64_t call_open(struct thread *thread, const struct call *call, unsigned path)
{
  const struct runtime *runtime = thread->runtime;
  int64_t result = call_other(thread, call);
  if (is_failure(result) || !text_is((const char *)call->argument[path], link_path))
    return result;
  kernel_call(__NR_close, (uint64_t)result, 0, 0, 0, 0, 0);
  struct call other = *call;
  other.argument[path] = (uint64_t)runtime->exe;
  return call_pass(&other);
}

/* ---- the rest ---- */

/* GS is ours. A shadow stack would not know of returns that are no RET. */
static int64_t call_arch_prctl(struct thread *thread, const struct call *call)
{
  uint64_t code = call->argument[0];
  if (code == ARCH_SET_GS || code == ARCH_GET_GS) {
    thread->runtime->control->number = call->number;
    runtime_fail(PROCESS_E_GS, 0, thread->state->rip);
  }
  if (code >= SHADOW_STACK_FIRST && code <= SHADOW_STACK_LAST)
    return ERROR_INVAL;
  return call_pass(call);
}

/* Critical sections of rseq would be of no use: the kernel compares RIP with addresses that are never there. So the
 * call succeeds and the processor's number stays "not known", which is what users of rseq look at. */
static int64_t call_rseq(struct thread *thread, const struct call *call)
{
  enum { UNREGISTER = 1, SIZE_LEAST = 32, CPU_UNKNOWN = -1 };
  struct {
    uint32_t start, id;
  } numbers = {0, (uint32_t)CPU_UNKNOWN};
  uint64_t area = call->argument[0];
  if (call->argument[1] < SIZE_LEAST || area % 32)
    return ERROR_INVAL;
  if (call->argument[2] & UNREGISTER)
    return 0;
  return safe_write(thread, area, &numbers, sizeof(numbers)) ? 0 : ERROR_FAULT;
}

static int64_t call_prctl(struct thread *thread, const struct call *call)
{
  int64_t result = call_pass(call);
  if (call->argument[0] == PR_SET_SECCOMP && !is_failure(result))
    thread->runtime->is_confined = true;
  if (call->argument[0] == PR_SET_NAME && !is_failure(result))
    safe_read(thread, thread->state->name, call->argument[1], sizeof(thread->state->name));
  return result;
}

static int64_t call_seccomp(struct thread *thread, const struct call *call)
{
  int64_t result = call_pass(call);
  bool is_set = call->argument[0] == SECCOMP_SET_MODE_STRICT || call->argument[0] == SECCOMP_SET_MODE_FILTER;
  if (is_set && !is_failure(result))
    thread->runtime->is_confined = true;
  return result;
}

static int64_t call_code(struct thread *thread, const struct call *call)
{
  switch (call->number) {
  case __NR_mmap:
    return call_mmap(thread->runtime, call);
  case __NR_mprotect:
  case __NR_pkey_mprotect:
    return call_mprotect(thread->runtime, call);
  case __NR_munmap:
    return call_munmap(thread->runtime, call);
  default:
    return call_mremap(thread->runtime, call);
  }
}

static int64_t call_make(struct thread *thread, const struct call *call)
{
  const uint64_t *argument = call->argument;
  switch (call->number) {
  case __NR_mmap:
  case __NR_mprotect:
  case __NR_pkey_mprotect:
  case __NR_munmap:
  case __NR_mremap:
    return call_code(thread, call);
  case __NR_readlink:
    return call_readlink(thread->runtime, call, (char *)argument[1], argument[2]);
  case __NR_readlinkat:
    return call_readlink(thread->runtime, call, (char *)argument[2], argument[3]);
  case __NR_open:
    return call_open(thread, call, 0);
  case __NR_openat:
    return call_open(thread, call, 1);
  case __NR_clone:
    return thread_call_clone(thread, argument);
  case __NR_clone3:
    return thread_call_clone3(thread, argument);
  case __NR_fork:
    return thread_call_fork(thread, false);
  case __NR_vfork:
    return thread_call_fork(thread, true);
  case __NR_execve:
    return exec_call(thread, argument);
  case __NR_execveat:
    return exec_call_at(thread, argument);
  case __NR_exit:
    thread_call_exit(thread, argument[0], false);
  case __NR_exit_group:
    thread_call_exit(thread, argument[0], true);
  case __NR_rt_sigaction:
    return signal_call_action(thread, argument);
  case __NR_rt_sigprocmask:
    return signal_call_mask(thread, argument);
  case __NR_sigaltstack:
    return signal_call_stack(thread, argument);
  case __NR_rt_sigpending:
    return signal_call_pending(thread, argument);
  case __NR_rt_sigsuspend:
    return signal_call_suspend(thread, argument);
  case __NR_rt_sigtimedwait:
    return signal_call_wait(thread, argument);
  case __NR_ppoll:
  case __NR_pselect6:
  case __NR_epoll_pwait:
  case __NR_epoll_pwait2:
  case __NR_io_pgetevents:
    return signal_call_masked(thread, call->number, argument);
  case __NR_close:
    return fd_call_close(thread, argument);
  case __NR_close_range:
    return fd_call_close_range(thread, argument);
  case __NR_dup2:
    return fd_call_dup2(thread, argument);
  case __NR_dup3:
    return fd_call_dup3(thread, argument);
  case __NR_fcntl:
  case __NR_dup:
    return fd_call_first(thread, call->number, argument);
  case __NR_arch_prctl:
    return call_arch_prctl(thread, call);
  case __NR_rseq:
    return call_rseq(thread, call);
  case __NR_prctl:
    return call_prctl(thread, call);
  case __NR_seccomp:
    return call_seccomp(thread, call);
  default:
    return call_other(thread, call);
  }
}

bool syscall_make(struct thread *thread)
{
  uint64_t *registers = thread->state->registers;
  const struct call call = {registers[GPR_RAX],
                            {registers[GPR_RDI], registers[GPR_RSI], registers[GPR_RDX], registers[GPR_R10],
                             registers[GPR_R8], registers[GPR_R9]}};
  int64_t result = call_make(thread, &call);
  if (result == -EINTR_AGAIN)
    return false;
  registers[GPR_RAX] = (uint64_t)result;
  return true;
}
