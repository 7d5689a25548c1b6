/* SPDX-License-Identifier: Apache-2.0
 *
 * The real kernel. A program is started in two steps: the child waits at a pipe, so that events can be attached to it
 * before execve. A second pipe, which execve closes, carries the error if it fails.
 */
#include "source/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- events ---- */

static size_t real_cpus(void *data, int *cpus, size_t room)
{
  long count = sysconf(_SC_NPROCESSORS_CONF);
  char path[64];
  size_t found = 0;

  (void)data;
  for (int cpu = 0; cpu < count && found < room; cpu++) {
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char state = '1'; /* processor 0 has no such file: it cannot be switched off */
    if (fd >= 0 && read(fd, &state, 1) != 1)
      state = '1';
    if (fd >= 0)
      close(fd);
    if (state == '1')
      cpus[found++] = cpu;
  }
  return found;
}

static int real_open(void *data, struct perf_event_attr *attributes, int process, int cpu)
{
  long fd = syscall(SYS_perf_event_open, attributes, process, cpu, -1, PERF_FLAG_FD_CLOEXEC);

  (void)data;
  return fd < 0 ? -errno : (int)fd;
}

static void real_close(void *data, int fd)
{
  (void)data;
  close(fd);
}

static void real_resume(void *data, int fd)
{
  (void)data;
  ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int real_map(void *data, int fd, size_t size, uint64_t offset, void **ret_memory)
{
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

  (void)data;
  if (memory == MAP_FAILED)
    return -errno;
  *ret_memory = memory;
  return 0;
}

static void real_unmap(void *data, void *memory, size_t size)
{
  (void)data;
  munmap(memory, size);
}

static void real_wait(void *data, const int *fds, size_t count, unsigned milliseconds)
{
  struct pollfd polls[256];

  (void)data;
  if (count > sizeof(polls) / sizeof(*polls))
    count = sizeof(polls) / sizeof(*polls); /* the others are read when one of these, or the time-out, wakes us */
  for (size_t i = 0; i < count; i++)
    polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
  poll(polls, (nfds_t)count, (int)milliseconds);
  for (size_t i = 0; i < count; i++)
    if (polls[i].revents & POLLHUP) { /* an event whose process is gone would wake us again and again */
      nanosleep(&(struct timespec){0, 1000000}, NULL);
      break;
    }
}

static uint64_t real_clock(void *data)
{
  struct timespec now;

  (void)data;
  return clock_gettime(CLOCK_MONOTONIC, &now) ? 0 : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int real_file_read(void *data, const char *path, char *buffer, size_t size)
{
  const struct hardware_system *system = hardware_system_real();

  (void)data;
  return system->file_read(system->data, path, buffer, size);
}

/* ---- processes ---- */

/* For the program that is being started. */
static int gate = -1, verdict = -1;

static _Noreturn void child_run(int wait_fd, int error_fd, const char *path, char *const arguments[],
                                char *const environment[])
{
  char go;
  int error;

  while (read(wait_fd, &go, 1) < 0 && errno == EINTR)
    ;
  execve(path, arguments, environment);
  error = errno;
  while (write(error_fd, &error, sizeof(error)) < 0 && errno == EINTR)
    ;
  _exit(127);
}

int kernel_launch(const char *path, char *const arguments[], char *const environment[], int *ret_process)
{
  int waits[2], errors[2];
  pid_t child;

  if (pipe2(waits, O_CLOEXEC) < 0)
    return -errno;
  if (pipe2(errors, O_CLOEXEC) < 0) {
    int error = errno;

    close(waits[0]);
    close(waits[1]);
    return -error;
  }
  child = fork();
  if (child == 0) {
    close(waits[1]);
    child_run(waits[0], errors[1], path, arguments, environment);
  }
  int error = errno;
  close(waits[0]);
  close(errors[1]);
  if (child < 0) {
    close(waits[1]);
    close(errors[0]);
    return -error;
  }
  gate = waits[1];
  verdict = errors[0];
  *ret_process = child;
  return 0;
}

static int real_launch(void *data, const char *path, char *const arguments[], char *const environment[],
                       int *ret_process)
{
  (void)data;
  return kernel_launch(path, arguments, environment, ret_process);
}

/* Also works if the process is traced: all its stops are skipped, including that of its end. */
static void child_end(int process)
{
  int status = 0;

  kill(process, SIGKILL);
  while (waitpid(process, &status, __WALL) < 0 ? errno == EINTR : WIFSTOPPED(status))
    ptrace(PTRACE_CONT, process, NULL, NULL);
}

static int real_go(void *data, int process)
{
  ssize_t size;
  int error = 0;

  (void)data;
  while (write(gate, "", 1) < 0 && errno == EINTR)
    ;
  close(gate);
  while ((size = read(verdict, &error, sizeof(error))) < 0 && errno == EINTR)
    ;
  close(verdict);
  gate = verdict = -1;
  if (size != sizeof(error))
    return 0;
  child_end(process);
  return -error;
}

static void real_drop(void *data, int process)
{
  (void)data;
  close(gate);
  close(verdict);
  gate = verdict = -1;
  child_end(process);
}

static int real_reap(void *data, int *ret_process, int *ret_status)
{
  int status, process = waitpid(-1, &status, WNOHANG | __WALL);

  (void)data;
  if (process <= 0)
    return process < 0 && errno == ECHILD ? -ECHILD : 0;
  *ret_process = process;
  *ret_status = status;
  return 1;
}

static size_t real_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  struct iovec here = {buffer, size}, there = {(void *)(uintptr_t)address, size};
  ssize_t got = process_vm_readv((pid_t)process, &here, 1, &there, 1, 0);

  (void)data;
  return got > 0 ? (size_t)got : 0;
}

const struct source_kernel *source_kernel_real(void)
{
  static const struct source_kernel kernel = {
    .cpus = real_cpus,
    .open = real_open,
    .close = real_close,
    .resume = real_resume,
    .map = real_map,
    .unmap = real_unmap,
    .wait = real_wait,
    .clock = real_clock,
    .file_read = real_file_read,
    .launch = real_launch,
    .go = real_go,
    .drop = real_drop,
    .reap = real_reap,
    .memory = real_memory,
    .is_traceable = true,
  };

  return &kernel;
}
