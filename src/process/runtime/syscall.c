/* SPDX-License-Identifier: Apache-2.0
 *
 * The application's system calls. Most are passed to the kernel unchanged. Calls that make or change code, processes,
 * signals or the runtime's own resources are handled here or in the files for these.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "process/runtime/runtime.h"

enum { SHADOW_STACK_FIRST = 0x5001, SHADOW_STACK_LAST = 0x5005 };

/* A system call as in the registers. */
struct call {
  uint64_t number;
  uint64_t argument[6];
};

static int64_t call_pass(const struct call *call)
{
  return syscall_pass(call->number, call->argument);
}

/* The kernel cannot write to pages with code that we protect. They are released, and the call is made again. */
static int64_t call_other(struct thread *thread, const struct call *call)
{
  int64_t result = call_pass(call);

  if (result != -EFAULT)
    return result;
  runtime_lock(thread->runtime);
  bool is_released = page_release_all(thread->runtime);
  runtime_unlock(thread->runtime);
  return is_released ? call_pass(call) : result;
}

/* ---- calls that need special care ---- */

/* GS belongs to the runtime. A shadow stack would not match returns that are executed without RET. */
static int64_t call_arch_prctl(struct thread *thread, const struct call *call)
{
  uint64_t code = call->argument[0];

  if (code == ARCH_SET_GS || code == ARCH_GET_GS) {
    thread->runtime->control->number = call->number;
    thread->state->rip -= 2; /* the call is made again, natively */
    leave_or_fail(thread, PROCESS_E_GS, thread->state->rip);
  }
  if (code >= SHADOW_STACK_FIRST && code <= SHADOW_STACK_LAST)
    return -EINVAL;
  return call_pass(call);
}

/* Critical sections of rseq would not work: the kernel compares RIP with addresses that the thread never executes. The
 * call therefore succeeds and the CPU number stays "unknown", which users of rseq check. */
static int64_t call_rseq(struct thread *thread, const struct call *call)
{
  enum { UNREGISTER = 1, SIZE_LEAST = 32, CPU_UNKNOWN = -1 };

  struct {
    uint32_t start, id;
  } numbers = {0, (uint32_t)CPU_UNKNOWN};
  uint64_t area = call->argument[0];
  if (call->argument[1] < SIZE_LEAST || area % 32)
    return -EINVAL;
  if (call->argument[2] & UNREGISTER) {
    bool is_known = thread->rseq == area;

    thread->rseq = is_known ? 0 : thread->rseq;
    return is_known ? 0 : -EINVAL;
  }
  if (thread->rseq)
    return thread->rseq == area ? -EBUSY : -EINVAL;
  thread->rseq = area;
  thread->rseq_size = (uint32_t)call->argument[1];
  thread->rseq_signature = (uint32_t)call->argument[3];
  return safe_write(thread, area, &numbers, sizeof(numbers)) ? 0 : -EFAULT;
}

static void prepare_filter(struct thread *thread)
{
  if (thread->runtime->options & PROCESS_UNFILTERED) {
    thread->state->rip -= 2; /* the call is made again, natively */
    leave_or_fail(thread, PROCESS_E_FILTER, thread->state->rip);
  }
  runtime_lock(thread->runtime);
  if (!thread->runtime->is_confined)
    share_for_filter(thread->runtime);
  runtime_unlock(thread->runtime);
}

static int64_t call_prctl(struct thread *thread, const struct call *call)
{
  if (call->argument[0] == PR_SET_SECCOMP && call->argument[1] != SECCOMP_MODE_DISABLED)
    prepare_filter(thread);
  if (call->argument[0] == PR_SET_TSC && call->argument[1] == PR_TSC_SIGSEGV)
    stamp_stop(thread->runtime, true);
  if (call->argument[0] == PR_SET_SECCOMP && call->argument[1] == SECCOMP_MODE_STRICT)
    stamp_stop(thread->runtime, false);
  int64_t result = call_pass(call);
  if (call->argument[0] == PR_SET_SECCOMP && !is_failure(result))
    thread->runtime->is_confined = true;
  if (call->argument[0] == PR_SET_NAME && !is_failure(result))
    safe_read(thread, thread->state->name, call->argument[1], sizeof(thread->state->name));
  return result;
}

static int64_t call_seccomp(struct thread *thread, const struct call *call)
{
  bool is_set = call->argument[0] == SECCOMP_SET_MODE_STRICT || call->argument[0] == SECCOMP_SET_MODE_FILTER;

  if (is_set)
    prepare_filter(thread);
  if (call->argument[0] == SECCOMP_SET_MODE_STRICT) /* it forbids RDTSC, too */
    stamp_stop(thread->runtime, false);
  int64_t result = call_pass(call);
  if (is_set && !is_failure(result))
    thread->runtime->is_confined = true;
  return result;
}

/* A thread that is traced from now on executes programs without recording: a debugger's breakpoints would not be in the
 * cache. */
static int64_t call_ptrace(struct thread *thread, const struct call *call)
{
  enum { TRACE_ME = 0 };
  int64_t result = call_pass(call);

  if (call->argument[0] == TRACE_ME && !is_failure(result))
    thread->is_traced = true;
  return result;
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
  case __NR_madvise:
    return map_call(thread, call->number, argument);
  case __NR_readlink:
  case __NR_readlinkat:
    return self_call_readlink(thread, call->number, argument);
  case __NR_open:
  case __NR_stat:
  case __NR_access:
    return self_call_path(thread, call->number, argument, 0);
  case __NR_openat:
  case __NR_newfstatat:
  case __NR_statx:
  case __NR_faccessat:
  case __NR_faccessat2:
    return self_call_path(thread, call->number, argument, 1);
  case __NR_getrlimit:
  case __NR_setrlimit:
  case __NR_prlimit64:
    return self_call_limit(thread, call->number, argument);
  case __NR_ptrace:
    return call_ptrace(thread, call);
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
  const struct call call = {(uint32_t)registers[GPR_RAX], /* all that the kernel looks at */
                            {registers[GPR_RDI], registers[GPR_RSI], registers[GPR_RDX], registers[GPR_R10],
                             registers[GPR_R8], registers[GPR_R9]}};
  int64_t result = call_make(thread, &call);

  if (result == -EINTR_AGAIN)
    return false;
  registers[GPR_RAX] = (uint64_t)result;
  return true;
}
