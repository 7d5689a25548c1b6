/* SPDX-License-Identifier: Apache-2.0
 *
 * The application's system calls. Most go to the kernel as they are; those that make or change code, processes or the
 * runtime's own ground are looked at here.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/sched.h>

#include "process/runtime.h"

enum { ERROR_NOSYS = -38, ERROR_INVAL = -22 };
enum { SHADOW_STACK_FIRST = 0x5001, SHADOW_STACK_LAST = 0x5005 };

/* A call as the registers hold it. */
struct call {
  uint64_t number;
  uint64_t argument[6];
};

static int64_t call_pass(const struct call *call)
{
  const uint64_t *argument = call->argument;
  return kernel_call(call->number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

static _Noreturn void call_refuse(const struct runtime *runtime, const struct call *call, enum process_error error)
{
  runtime->control->number = call->number;
  runtime_fail(error, 0, runtime->state->target);
}

/* ---- memory ---- */

static uint64_t page_up(uint64_t size)
{
  return (size + PROCESS_PAGE - 1) & ~(uint64_t)(PROCESS_PAGE - 1);
}

/* What was at these addresses is gone or may have changed; what is there now may be executed, or not. */
static void code_changed(struct runtime *runtime, uint64_t start, uint64_t size, bool is_executable)
{
  uint64_t end = start + page_up(size);
  if (range_remove(&runtime->executable, start, end))
    cache_flush(runtime);
  if (is_executable && !range_add(&runtime->executable, start, end))
    runtime_fail(PROCESS_E_RANGES_FULL, 0, start);
}

static int64_t call_mmap(struct runtime *runtime, const struct call *call)
{
  int64_t result = call_pass(call);
  if (!is_failure(result))
    code_changed(runtime, (uint64_t)result, call->argument[1], call->argument[2] & PROT_EXEC);
  return result;
}

static int64_t call_mprotect(struct runtime *runtime, const struct call *call)
{
  int64_t result = call_pass(call);
  if (!is_failure(result))
    code_changed(runtime, call->argument[0], call->argument[1], call->argument[2] & PROT_EXEC);
  return result;
}

static int64_t call_munmap(struct runtime *runtime, const struct call *call)
{
  int64_t result = call_pass(call);
  if (!is_failure(result))
    code_changed(runtime, call->argument[0], call->argument[1], false);
  return result;
}

static int64_t call_mremap(struct runtime *runtime, const struct call *call)
{
  bool is_executable = range_end(&runtime->executable, call->argument[0]);
  int64_t result = call_pass(call);
  if (is_failure(result))
    return result;
  code_changed(runtime, call->argument[0], call->argument[1], false);
  code_changed(runtime, (uint64_t)result, call->argument[2], is_executable);
  return result;
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
static int64_t call_open(const struct runtime *runtime, const struct call *call, unsigned path)
{
  int64_t result = call_pass(call);
  if (is_failure(result) || !text_is((const char *)call->argument[path], link_path))
    return result;
  kernel_call(__NR_close, (uint64_t)result, 0, 0, 0, 0, 0);
  struct call other = *call;
  other.argument[path] = (uint64_t)runtime->exe;
  return call_pass(&other);
}

/* ---- processes ---- */

/* The child has a copy of everything but what is shared: it gets a state and a log of its own, which nobody reads. */
static int child_detach(struct runtime *runtime, const struct process_state *state)
{
  enum { READ_WRITE = PROT_READ | PROT_WRITE, FIXED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
  runtime->is_child = true;
  int64_t result = kernel_map((uint64_t)runtime->state, PROCESS_PAGE, READ_WRITE, FIXED, -1, 0);
  if (is_failure(result))
    return (int)result;
  *runtime->state = *state;
  int64_t fd = kernel_call(__NR_memfd_create, (uint64_t) "lbr-log", 1, 0, 0, 0, 0);
  if (is_failure(fd))
    return (int)fd;
  result = kernel_call(__NR_ftruncate, (uint64_t)fd, runtime->ring_size, 0, 0, 0, 0);
  if (!is_failure(result))
    result = region_map_ring(runtime, (int)fd, 0);
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  return (int)result;
}

/* `call` asks for a process; the child may want another stack. The copy of the state is made before: the parent goes on
 * while the child still reads. */
static int64_t fork_make(struct runtime *runtime, const struct call *call, uint64_t stack)
{
  struct process_state state = *runtime->state;
  int64_t result = call_pass(call);
  if (result)
    return result;
  int detached = child_detach(runtime, &state);
  if (detached < 0)
    runtime_fail(PROCESS_E_NO_MEMORY, detached, 0);
  if (stack)
    runtime->state->registers[GPR_RSP] = stack;
  return 0;
}

/* VFORK keeps its waiting and loses its sharing. A child on another stack runs on ours until it is back in the cache.
 */
static int64_t call_clone(struct runtime *runtime, const struct call *call)
{
  struct call copy = *call;
  if (copy.argument[0] & CLONE_VM && !(copy.argument[0] & CLONE_VFORK))
    call_refuse(runtime, call, PROCESS_E_THREAD);
  copy.argument[0] &= ~(uint64_t)CLONE_VM;
  copy.argument[1] = 0;
  return fork_make(runtime, &copy, call->argument[1]);
}

static int64_t call_fork(struct runtime *runtime, uint64_t flags)
{
  enum { SIGCHLD = 17 };
  const struct call call = {__NR_clone, {flags | SIGCHLD}};
  return fork_make(runtime, &call, 0);
}

/* ---- signals ---- */

_Noreturn void signal_arrived(uint64_t number)
{
  the_runtime.control->number = number;
  runtime_fail(PROCESS_E_SIGNAL, 0, 0);
}

static int64_t kernel_action(uint64_t number, const struct signal_action *action)
{
  return kernel_call(__NR_rt_sigaction, number, (uint64_t)action, 0, sizeof(action->mask), 0, 0);
}

/* The application is told what it asked for. The kernel has read the new action and written the old one: both pointers
 * are good, and the number too, of which it looks at 32 bits. */
static void action_exchange(struct runtime *runtime, const struct call *call)
{
  enum { IGNORE = 1, SA_RESTORER = 0x04000000 };
  uint32_t number = (uint32_t)call->argument[0];
  const struct signal_action *action = (const struct signal_action *)call->argument[1];
  struct signal_action *old = (struct signal_action *)call->argument[2];
  struct signal_action before = runtime->actions[number];
  if (action) {
    struct signal_action ours = runtime->actions[number] = *action;
    ours.handler = ours.restorer = (uint64_t)signal_enter;
    ours.flags |= SA_RESTORER;
    if (action->handler > IGNORE)
      kernel_action(number, &ours);
  }
  if (old && before.handler > IGNORE)
    *old = before;
}

/* The application's handler would run outside the cache. The kernel gets ours instead, which ends the process when the
 * signal comes; until that is settled none may come. */
static int64_t call_sigaction(struct runtime *runtime, const struct call *call)
{
  enum { SET_MASK = 2 };
  const uint64_t all = UINT64_MAX;
  uint64_t mask = 0;
  kernel_call(__NR_rt_sigprocmask, SET_MASK, (uint64_t)&all, (uint64_t)&mask, sizeof(mask), 0, 0);
  int64_t result = call_pass(call);
  if (!is_failure(result))
    action_exchange(runtime, call);
  kernel_call(__NR_rt_sigprocmask, SET_MASK, (uint64_t)&mask, 0, sizeof(mask), 0, 0);
  return result;
}

/* ---- the rest ---- */

/* GS is ours. A shadow stack would not know of returns that are no RET. */
static int64_t call_arch_prctl(const struct runtime *runtime, const struct call *call)
{
  uint64_t code = call->argument[0];
  if (code == ARCH_SET_GS || code == ARCH_GET_GS)
    call_refuse(runtime, call, PROCESS_E_GS);
  if (code >= SHADOW_STACK_FIRST && code <= SHADOW_STACK_LAST)
    return ERROR_INVAL;
  return call_pass(call);
}

static int64_t call_make(struct runtime *runtime, const struct call *call)
{
  const uint64_t *argument = call->argument;
  switch (call->number) {
  case __NR_mmap:
    return call_mmap(runtime, call);
  case __NR_mprotect:
  case __NR_pkey_mprotect:
    return call_mprotect(runtime, call);
  case __NR_munmap:
    return call_munmap(runtime, call);
  case __NR_mremap:
    return call_mremap(runtime, call);
  case __NR_readlink:
    return call_readlink(runtime, call, (char *)argument[1], argument[2]);
  case __NR_readlinkat:
    return call_readlink(runtime, call, (char *)argument[2], argument[3]);
  case __NR_open:
    return call_open(runtime, call, 0);
  case __NR_openat:
    return call_open(runtime, call, 1);
  case __NR_clone:
    return call_clone(runtime, call);
  case __NR_fork:
    return call_fork(runtime, 0);
  case __NR_vfork:
    return call_fork(runtime, CLONE_VFORK);
  case __NR_execve:
  case __NR_execveat:
    call_refuse(runtime, call, PROCESS_E_EXEC);
  case __NR_rt_sigaction:
    return call_sigaction(runtime, call);
  case __NR_arch_prctl:
    return call_arch_prctl(runtime, call);
  case __NR_clone3: /* libraries fall back to clone */
  case __NR_rseq:   /* the kernel would look for addresses that are never in RIP */
    return ERROR_NOSYS;
  default:
    return call_pass(call);
  }
}

/* SYSCALL leaves the address behind it in RCX and the flags in R11: SDM vol. 2, SYSCALL. */
void syscall_make(struct runtime *runtime, uint64_t next)
{
  uint64_t *registers = runtime->state->registers;
  const struct call call = {registers[GPR_RAX],
                            {registers[GPR_RDI], registers[GPR_RSI], registers[GPR_RDX], registers[GPR_R10],
                             registers[GPR_R8], registers[GPR_R9]}};
  registers[GPR_RCX] = next;
  registers[GPR_R11] = runtime->state->flags;
  registers[GPR_RAX] = (uint64_t)call_make(runtime, &call);
}
