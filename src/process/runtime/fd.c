/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptor of the shared memory stays open, because execve and new threads need it. It is hidden from the
 * application: a program that closes every descriptor, as many do before execve, gets the results that it would get
 * natively.
 */
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>

#include "process/runtime/runtime.h"

bool fd_is_hidden(const struct thread *thread, uint64_t fd)
{
  return (int)fd == *thread->fd;
}

static int64_t control(int fd, uint64_t command, uint64_t value)
{
  return kernel_call(__NR_fcntl, (uint64_t)fd, command, value, 0, 0, 0);
}

int64_t fd_call_first(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  return fd_is_hidden(thread, argument[0]) ? -EBADF : syscall_pass(number, argument);
}

int64_t fd_call_close(struct thread *thread, const uint64_t argument[6])
{
  return fd_call_first(thread, __NR_close, argument);
}

/* Closes the two ranges around the hidden number, either of which may be empty. CLOSE_RANGE_UNSHARE gives the thread a
 * table of its own, in the first of the two calls. */
static int64_t close_around(struct thread *thread, uint32_t first, uint32_t last, uint64_t flags)
{
  uint32_t hidden = (uint32_t)*thread->fd;
  uint64_t from = first < hidden ? first : UINT32_MAX, to = first < hidden ? hidden - 1 : UINT32_MAX;
  int64_t result = kernel_call(__NR_close_range, from, to, flags, 0, 0, 0);

  if (is_failure(result) || hidden == last)
    return result;
  return kernel_call(__NR_close_range, hidden + 1, last, flags & ~(uint64_t)CLOSE_RANGE_UNSHARE, 0, 0, 0);
}

int64_t fd_call_close_range(struct thread *thread, const uint64_t argument[6])
{
  uint32_t first = (uint32_t)argument[0], last = (uint32_t)argument[1], hidden = (uint32_t)*thread->fd;

  if (argument[2] & CLOSE_RANGE_CLOEXEC || hidden < first || hidden > last)
    return syscall_pass(__NR_close_range, argument);
  return close_around(thread, first, last, argument[2]);
}

/* The application wants the hidden number, so the runtime's descriptor moves to another. Returns the old number or
 * -errno. */
static int64_t fd_yield(struct thread *thread)
{
  runtime_lock(thread->runtime);
  int old = *thread->fd;
  int64_t result = control(old, F_DUPFD_CLOEXEC, (uint64_t)old + 1);
  if (is_failure(result))
    result = control(old, F_DUPFD_CLOEXEC, 0);
  if (!is_failure(result))
    *thread->fd = (int)result;
  runtime_unlock(thread->runtime);
  return is_failure(result) ? result : old;
}

static int64_t dup_over(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  bool is_there = !fd_is_hidden(thread, argument[0]) && !is_failure(control((int)argument[0], F_GETFD, 0));

  if (!is_there)
    return -EBADF;
  int64_t old = fd_yield(thread);
  if (is_failure(old))
    return -EBADF;
  int64_t result = kernel_call(number, argument[0], argument[1], argument[2], 0, 0, 0);
  if (is_failure(result))
    kernel_call(__NR_close, (uint64_t)old, 0, 0, 0, 0, 0);
  return result;
}

int64_t fd_call_dup2(struct thread *thread, const uint64_t argument[6])
{
  if (fd_is_hidden(thread, argument[1]))
    return dup_over(thread, __NR_dup2, argument);
  return fd_call_first(thread, __NR_dup2, argument);
}

int64_t fd_call_dup3(struct thread *thread, const uint64_t argument[6])
{
  if (fd_is_hidden(thread, argument[1]))
    return dup_over(thread, __NR_dup3, argument);
  return fd_call_first(thread, __NR_dup3, argument);
}
