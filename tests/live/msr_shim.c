/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into lbr: /dev/cpu/N/msr is the processor in the file SHIM_DIRECTORY/N. A read or write of 8 bytes is RDMSR
 * or WRMSR, #GP is EIO, as Linux' msr device has it. SHIM_OPEN_ERROR and SHIM_WRITE_ERROR are the errno of every open
 * and write; SHIM_SIGNAL=STEP:NUMBER sends the process a signal before that read or write.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "silicon_file.h"

static struct silicon_file *processor;
static int processor_fd = -1;
static unsigned steps;

static int variable(const char *name)
{
  const char *value = getenv(name);

  return value ? atoi(value) : 0;
}

/* Returns -1 for other files, and -2 with errno. */
static int shim_open(const char *path)
{
  char file[4096];
  unsigned number;
  int end = 0;

  if (sscanf(path, "/dev/cpu/%u/msr%n", &number, &end) != 1 || !end || path[end])
    return -1;
  errno = variable("SHIM_OPEN_ERROR");
  if (errno)
    return -2;
  snprintf(file, sizeof(file), "%s/%u", getenv("SHIM_DIRECTORY"), number);
  processor = silicon_open(file, NULL);
  if (!processor)
    return -2;
  processor_fd = dup(STDIN_FILENO);
  return processor_fd;
}

static void shim_step(void)
{
  const char *when = getenv("SHIM_SIGNAL");
  unsigned step;
  int number;

  if (when && sscanf(when, "%u:%d", &step, &number) == 2 && step == steps++)
    kill(getpid(), number);
}

int open(const char *path, int flags, ...)
{
  static int (*real)(const char *, int, ...);
  int fd = shim_open(path);
  va_list list;
  int mode;

  va_start(list, flags);
  mode = flags & O_CREAT ? va_arg(list, int) : 0;
  va_end(list);
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "open64");
  return fd == -1 ? real(path, flags, mode) : fd < 0 ? -1 : fd;
}

/* What open becomes with _FORTIFY_SOURCE where no mode is given. */
int __open64_2(const char *path, int flags); /* NOLINT: the C library's name */
int __open64_2(const char *path, int flags)  /* NOLINT */
{
  return open(path, flags);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
  static ssize_t (*real)(int, void *, size_t, off_t);
  uint64_t value = 0;

  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "pread64");
  if (fd != processor_fd)
    return real(fd, bytes, size, offset);
  shim_step();
  if (size != 8 || lb_recorder_rdmsr(&processor->unit, (uint32_t)offset, &value) != LB_MSR_OK) {
    errno = EIO;
    return -1;
  }
  memcpy(bytes, &value, 8);
  return 8;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
  static ssize_t (*real)(int, const void *, size_t, off_t);
  uint64_t value;

  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
  if (fd != processor_fd)
    return real(fd, bytes, size, offset);
  shim_step();
  errno = variable("SHIM_WRITE_ERROR");
  if (errno)
    return -1;
  memcpy(&value, bytes, 8);
  if (size != 8 || lb_recorder_wrmsr(&processor->unit, (uint32_t)offset, value) != LB_MSR_OK) {
    errno = EIO;
    return -1;
  }
  return 8;
}
