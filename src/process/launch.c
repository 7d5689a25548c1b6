/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a program under the runtime: two files in memory, the runtime's ELF and what is shared with it; then
 * execveat(2) of the first with the number of the second among the arguments. runtime/main.c is the other side.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/process.h"
#include "process/shared.h"

enum { DEFAULT_RING = 64 << 20, DEFAULT_BLOCKS = 1 << 20, MOST_BLOCKS = 1 << 24, OWN_WORDS = 4, HIGH_FD = 900 };

/* ---- files ---- */

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
  while (size) {
    ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return -errno;
    bytes += written;
    size -= (size_t)written;
  }
  return 0;
}

/* Its name shows in /proc/self/exe, where runtime/syscall.c looks for it. */
static int runtime_open(void)
{
  int fd = memfd_create("lbr-runtime", MFD_CLOEXEC);
  if (fd < 0)
    return -errno;
  int result = write_all(fd, process_runtime, (size_t)(process_runtime_end - process_runtime));
  if (result < 0) {
    close(fd);
    return result;
  }
  return fd;
}

static int shared_open(struct process *process)
{
  size_t size = process_ring_offset(process->block_capacity) + process->ring_size;
  int fd = memfd_create("lbr-shared", MFD_CLOEXEC), result;
  if (fd < 0)
    return -errno;
  if (ftruncate(fd, (off_t)size) < 0)
    goto fail;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    goto fail;
  process->memory = memory;
  process->memory_size = size;
  const struct process_control control = {.magic = PROCESS_MAGIC,
                                          .block_capacity = process->block_capacity,
                                          .ring_size = process->ring_size,
                                          .block_count = 1};
  memcpy(process->memory, &control, sizeof(control));
  return fd;
fail:
  result = -errno;
  close(fd);
  return result;
}

/* ---- the child ---- */

/* The words before the program's own arguments. The first is filled up with blanks until the four take whole pages of
 * the stack: the program's own words then lie in their pages as they would without us. String functions look at that.
 */
struct command {
  char name[3 * PATH_MAX];
  char fd[16];
  char exe[PATH_MAX];
  char **words;
};

static int command_init(struct command *command, const char *path, char *const arguments[])
{
  size_t count = 0;
  while (arguments[count])
    count++;
  if (strlen(path) >= sizeof(command->exe))
    return -ENAMETOOLONG;
  if (!realpath(path, command->exe))
    memcpy(command->exe, path, strlen(path) + 1); /* the runtime will say what is wrong with it */
  command->words = calloc(count + OWN_WORDS + 1, sizeof(*command->words));
  if (!command->words)
    return -ENOMEM;
  command->words[0] = command->name;
  command->words[1] = command->fd;
  command->words[2] = command->exe;
  command->words[3] = (char *)path;
  memcpy(command->words + OWN_WORDS, arguments, count * sizeof(*arguments));
  return 0;
}

static void command_set_fd(struct command *command, int fd)
{
  snprintf(command->fd, sizeof(command->fd), "%d", fd);
  size_t name = strlen("lbr-runtime");
  size_t used = name + strlen(command->fd) + strlen(command->words[2]) + strlen(command->words[3]) + OWN_WORDS;
  size_t blanks = (PROCESS_PAGE - used % PROCESS_PAGE) % PROCESS_PAGE;
  memset(command->name, ' ', name + blanks);
  memcpy(command->name, "lbr-runtime", name);
  command->name[name + blanks] = 0;
}

/* Reports a failure of its own by the pipe, which execveat closes. */
static _Noreturn void child_run(struct command *command, int runtime_fd, int shared_fd, int report_fd,
                                char *const environment[])
{
  int fd = fcntl(shared_fd, F_DUPFD, HIGH_FD); /* out of the way of the program's own; the runtime closes it */
  if (fd < 0)
    fd = fcntl(shared_fd, F_DUPFD, 3);
  if (fd >= 0) {
    command_set_fd(command, fd);
    execveat(runtime_fd, "", command->words, environment, AT_EMPTY_PATH);
  }
  int error = errno;
  if (write_all(report_fd, (const uint8_t *)&error, sizeof(error)) < 0)
    _exit(125);
  _exit(125);
}

/* Returns the child's errno as a failure, 0 once it runs. */
static int child_await(int pid, int report_fd)
{
  int error;
  ssize_t size;
  do
    size = read(report_fd, &error, sizeof(error));
  while (size < 0 && errno == EINTR);
  if (size != sizeof(error))
    return 0;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
  return error > 0 ? -error : -EIO;
}

static int child_start(struct command *command, int runtime_fd, int shared_fd, char *const environment[])
{
  int report[2];
  if (pipe2(report, O_CLOEXEC) < 0)
    return -errno;
  int pid = fork();
  if (pid == 0)
    child_run(command, runtime_fd, shared_fd, report[1], environment);
  int result = pid < 0 ? -errno : pid;
  close(report[1]);
  if (pid > 0) {
    int failure = child_await(pid, report[0]);
    result = failure < 0 ? failure : pid;
  }
  close(report[0]);
  return result;
}

/* ---- whole ---- */

static int options_take(struct process *process, const struct process_options *options)
{
  process->ring_size = options->ring_size ? options->ring_size : DEFAULT_RING;
  process->block_capacity = options->block_capacity ? options->block_capacity : DEFAULT_BLOCKS;
  bool is_good = process->ring_size >= PROCESS_RING_LEAST && process->ring_size <= PROCESS_RING_MOST &&
                 !(process->ring_size & (process->ring_size - 1)) && process->block_capacity >= 2 &&
                 process->block_capacity < MOST_BLOCKS;
  return is_good ? 0 : -EINVAL;
}

int process_launch(const struct process_options *options, const char *path, char *const arguments[],
                   char *const environment[], struct process *ret_process)
{
  struct process process = {0};
  struct command command = {0};
  int runtime_fd = -1, shared_fd = -1;
  int result = options_take(&process, options);
  if (result < 0)
    return result;
  result = command_init(&command, path, arguments);
  if (result < 0)
    goto out;
  result = runtime_fd = runtime_open();
  if (result < 0)
    goto out;
  result = shared_fd = shared_open(&process);
  if (result < 0)
    goto out;
  result = process.pid = child_start(&command, runtime_fd, shared_fd, environment);
out:
  if (shared_fd >= 0)
    close(shared_fd);
  if (runtime_fd >= 0)
    close(runtime_fd);
  free(command.words);
  if (result < 0) {
    process_done(&process);
    return result;
  }
  *ret_process = process;
  return 0;
}

int process_wait(struct process *process, int *ret_status)
{
  int status;
  while (waitpid(process->pid, &status, 0) < 0)
    if (errno != EINTR)
      return -errno;
  *ret_status = status;
  return 0;
}

void process_done(struct process *process)
{
  if (process->memory)
    munmap(process->memory, process->memory_size);
  *process = (struct process){0};
}

/* ---- errors ---- */

unsigned process_error(const struct process *process, int *ret_system_error, uint64_t *ret_address,
                       uint64_t *ret_number)
{
  struct process_control control;
  memcpy(&control, process->memory, sizeof(control));
  if (ret_system_error)
    *ret_system_error = control.system_error;
  if (ret_address)
    *ret_address = control.address;
  if (ret_number)
    *ret_number = control.number;
  return control.error;
}

const char *process_error_text(unsigned error)
{
  static const char *const texts[] = {
#define PROCESS_ERROR(name, status, text) text,
#include "process/error.def"
#undef PROCESS_ERROR
  };
  return error < PROCESS_ERRORS ? texts[error] : "?";
}
