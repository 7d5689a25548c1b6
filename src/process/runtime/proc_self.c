/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of a program about itself that the kernel would answer for the runtime: /proc/self/exe, limits of address
 * space, and the command line in /proc, which is set at the start.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "process/runtime/runtime.h"

enum { LIMIT_DATA = 2, LIMIT_SPACE = 9 };

/* ---- /proc/self/exe ---- */

static const char own_link[] = "/memfd:lbr-runtime (deleted)";
enum { OWN_NAME = 18, OWN_SIZE = sizeof(own_link) - 1 }; /* the name without the word in brackets */

/* The kernel answers that the program is our runtime, whichever path led there; the answer is replaced. The buffer is
 * writable, because the kernel has just written to it. What the kernel has written beyond the program's name is
 * restored: programs rely on a buffer that was all zero. */
int64_t self_call_readlink(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  unsigned first = number == __NR_readlinkat ? 2 : 1;
  char *buffer = (char *)argument[first];
  uint64_t size = argument[first + 1];
  char saved[OWN_SIZE];
  bool is_saved = safe_read(thread, saved, (uint64_t)buffer, size < OWN_SIZE ? size : OWN_SIZE);
  int64_t result = syscall_pass(number, argument);

  if (result < OWN_NAME)
    return result;
  for (unsigned i = 0; i < OWN_NAME; i++)
    if (buffer[i] != own_link[i])
      return result;
  uint64_t length = text_length(thread->runtime->exe);
  if (length > size)
    length = size;
  memcpy(buffer, thread->runtime->exe, length);
  if (is_saved && length < OWN_SIZE && length < (uint64_t)result)
    memcpy(buffer + length, saved + length, (result < OWN_SIZE ? (size_t)result : OWN_SIZE) - length);
  return (int64_t)length;
}

/* "self", "thread-self", or the number of this process. */
static bool is_self(const char *name, size_t length)
{
  uint64_t number = 0;

  if (length == 4 || length == 11) {
    const char *word = length == 4 ? "self" : "thread-self";
    size_t same = 0;

    while (same < length && name[same] == word[same])
      same++;
    if (same == length)
      return true;
  }
  for (size_t i = 0; i < length && length < 10; i++) {
    if (name[i] < '0' || name[i] > '9')
      return false;
    number = number * 10 + (uint64_t)(name[i] - '0');
  }
  return length && number == (uint64_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0);
}

bool self_is_exe(struct thread *thread, uint64_t path)
{
  static const char folder[] = "/proc/";
  char text[32] = {0};
  size_t at = sizeof(folder) - 1, end = at;

  if (thread->runtime->is_adopted || !safe_read(thread, text, path, sizeof(folder)))
    return false; /* of a process that lbr has attached to, the link is its own */
  for (unsigned i = 0; i < sizeof(folder) - 1; i++)
    if (text[i] != folder[i])
      return false;
  for (size_t i = 0; i < sizeof(text) - 1; i++)
    if (!safe_read(thread, &text[i], path + i, 1) || !text[i])
      break;
  while (text[end] && text[end] != '/')
    end++;
  return text_is(text + end, "/exe") && is_self(text + at, end - at);
}

/* Makes a call with a path refer to the program instead of the runtime. */
int64_t self_call_path(struct thread *thread, uint64_t number, const uint64_t argument[6], unsigned path)
{
  uint64_t other[6];

  memcpy(other, argument, sizeof(other));
  if (self_is_exe(thread, argument[path]))
    other[path] = (uint64_t)thread->runtime->exe;
  return syscall_pass(number, other);
}

/* ---- limits ---- */

struct limit {
  uint64_t now, most;
};

/* The memory that the runtime has mapped, without that of the threads. It is added to the application's limit. The data
 * limit counts private memory only. */
static uint64_t own_size(const struct runtime *runtime, uint32_t resource)
{
  if (runtime->options & PROCESS_ATTACHED) /* its limits were set before */
    return 0;
  uint64_t size = cache_memory(runtime) + page_memory() + share_memory(runtime, true);

  if (resource == LIMIT_SPACE)
    size += share_memory(runtime, false) + PROCESS_THREADS * PROCESS_PAGE;
  return size;
}

static uint64_t limit_add(uint64_t limit, uint64_t size)
{
  return limit + size < limit ? UINT64_MAX : limit + size;
}

static uint64_t limit_subtract(uint64_t limit, uint64_t size)
{
  return limit == UINT64_MAX ? limit : limit > size ? limit - size : 0;
}

/* prlimit64 of this process; setrlimit and getrlimit are the same with one of the pointers. */
static int64_t limit_call(struct thread *thread, uint64_t resource, uint64_t new, uint64_t old)
{
  uint64_t size = own_size(thread->runtime, (uint32_t)resource);
  struct limit wanted, before;

  if (new && !safe_read(thread, &wanted, new, sizeof(wanted)))
    return -EFAULT;
  wanted = new ? (struct limit){limit_add(wanted.now, size), limit_add(wanted.most, size)} : (struct limit){0, 0};
  const uint64_t argument[6] = {0, resource, new ? (uint64_t)&wanted : 0, (uint64_t)&before};
  int64_t result = syscall_pass(__NR_prlimit64, argument);
  if (is_failure(result) || !old)
    return result;
  before = (struct limit){limit_subtract(before.now, size), limit_subtract(before.most, size)};
  return safe_write(thread, old, &before, sizeof(before)) ? 0 : -EFAULT;
}

int64_t self_call_limit(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  bool is_wide = number == __NR_prlimit64;
  uint64_t resource = argument[is_wide ? 1 : 0], process = is_wide ? argument[0] : 0;
  bool is_own = !process || process == thread->state->process;

  if (!is_own || ((uint32_t)resource != LIMIT_SPACE && (uint32_t)resource != LIMIT_DATA))
    return syscall_pass(number, argument);
  if (is_wide)
    return limit_call(thread, resource, argument[2], argument[3]);
  return number == __NR_setrlimit ? limit_call(thread, resource, argument[1], 0)
                                  : limit_call(thread, resource, 0, argument[1]);
}

/* ---- the command line ---- */

static struct prctl_mm_map command_map;

static uint64_t text_end(uint64_t text)
{
  return text + text_length((const char *)text) + 1;
}

/* Sets the command line in /proc with PR_SET_MM, which needs no rights if the kernel was built with support for it.
 * Otherwise /proc shows the runtime's four words. The kernel wants all of its fields (struct prctl_mm_map) again. It
 * has put the program's words and its environment one after another. */
void self_set_command(const uint64_t *stack, const uint64_t *auxv, uint64_t auxv_size)
{
  uint64_t count = stack[0];
  const uint64_t *environment = stack + 1 + count + 1, *end = environment;

  if (!count)
    return;
  while (*end)
    end++;
  uint64_t words_end = text_end(stack[count]);
  uint64_t now = (uint64_t)kernel_call(__NR_brk, 0, 0, 0, 0, 0, 0);
  const struct prctl_mm_map map = {.start_code = (uint64_t)__executable_start,
                                   .end_code = (uint64_t)etext,
                                   .start_data = (uint64_t)_end,
                                   .end_data = (uint64_t)_end,
                                   .start_brk = now, /* the heap is empty; load.c may have moved it */
                                   .brk = now,
                                   .start_stack = (uint64_t)stack,
                                   .arg_start = stack[1],
                                   .arg_end = words_end,
                                   .env_start = words_end,
                                   .env_end = end > environment ? text_end(end[-1]) : words_end,
                                   .auxv = (void *)auxv,
                                   .auxv_size = (uint32_t)auxv_size,
                                   .exe_fd = UINT32_MAX};
  kernel_call(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, (uint64_t)&map, sizeof(map), 0, 0);
  command_map = map;
}

struct prctl_mm_map self_map(const struct runtime *runtime, uint32_t exe_fd)
{
  struct prctl_mm_map map = command_map;
  const struct range *code = range_find(&runtime->executable, runtime->entry);

  map.start_code = map.start_data = map.end_data = code ? code->start : runtime->entry;
  map.end_code = code ? code->end : runtime->entry + 1;
  map.brk = (uint64_t)kernel_call(__NR_brk, 0, 0, 0, 0, 0, 0);
  map.auxv = NULL; /* the kernel keeps what it has */
  map.auxv_size = 0;
  map.exe_fd = exe_fd;
  return map;
}

/* ---- for the trace ---- */

/* Another thread may have set the name through /proc. */
void self_get_name(struct thread *thread)
{
  if (!thread->runtime->is_confined && !thread->is_unrecorded)
    kernel_call(__NR_prctl, PR_GET_NAME, (uint64_t)thread->state->name, 0, 0, 0, 0);
}

/* A confined program may not be allowed to open files. lbr reads the title of such a process while it lives. */
void self_get_title(struct thread *thread)
{
  struct process_state *state = thread->state;
  const char path[] = "/proc/self/cmdline";

  memset(state->command, 0, sizeof(state->command));
  if (thread->runtime->is_confined || thread->is_unrecorded)
    return;
  int64_t fd = kernel_call(__NR_openat, (uint64_t)AT_FDCWD, (uint64_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (is_failure(fd))
    return;
  kernel_call(__NR_read, (uint64_t)fd, (uint64_t)state->command, sizeof(state->command) - 1, 0, 0, 0);
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}
