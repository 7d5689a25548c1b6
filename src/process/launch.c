/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a program under the runtime. There are two files in memory: the runtime's ELF file and the shared memory. The
 * child calls execveat(2) on the first, with the descriptor of the second among the arguments. runtime/main.c is the
 * other side.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attach.h"
#include "process/command.h"
#include "process/launch.h"
#include "process/process.h"
#include "process/processor.h"
#include "process/resolve.h"
#include "process/shared.h"
#include "process/target.h"

enum {
  DEFAULT_PART = 256 << 10,
  DEFAULT_PART_ALL = 1 << 20,
  HIGH_FD = 900,
  PROCESS_FAILURE = 125,
};

/* With a drain (`_all`), notes are freed as soon as they are read. Without one they stay in memory. */
static const uint64_t notes_size = UINT64_C(1) << 30, notes_size_all = UINT64_C(1) << 34;

/* Used where the address space is limited. */
enum { NOTES_SIZE_LEAST = 256 << 20, STEP_CAPACITY_LEAST = 1 << 26 };

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
int launch_runtime(void)
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

static bool leads_to(const char *path, const char *begin)
{
  char target[64];
  ssize_t size = readlink(path, target, sizeof(target));

  return size >= (ssize_t)strlen(begin) && !memcmp(target, begin, strlen(begin));
}

/* A process that lbr has attached to, and its children, have a program of their own. The runtime's image is among their
 * mappings. */
static bool has_image(uint32_t process)
{
  struct target_maps maps;
  bool has_it = false;

  if (target_maps_read((int)process, &maps) < 0)
    return false;
  for (size_t i = 0; i < maps.count && !has_it; i++)
    has_it = maps.list[i].start == ATTACH_IMAGE && !strncmp(maps.list[i].path, TARGET_RUNTIME, strlen(TARGET_RUNTIME));
  target_maps_done(&maps);
  return has_it;
}

bool process_is_ours(const struct process *own, uint32_t process)
{
  char path[64];

  snprintf(path, sizeof(path), "/proc/%u/exe", process);
  return leads_to(path, TARGET_RUNTIME) || (own->attachment && has_image(process));
}

static void control_fill(const struct process *process, const struct process_options *options,
                         const struct resolution *program)
{
  const char *cache_size = getenv("LBR_CACHE_SIZE"); /* for tests: a cache that is full soon */
  const struct process_control control = {
    .magic = PROCESS_MAGIC,
    .mode = options->is_all ? PROCESS_ALL : PROCESS_LAST,
    .options = (options->is_alone ? PROCESS_NO_FOLLOW : 0u) | (options->is_held ? PROCESS_HOLD : 0u) |
               (options->trigger ? PROCESS_TRIGGER : 0u) | (options->thread_count ? PROCESS_SOME : 0u) |
               processor_get()->options,
    .part_size = process->part_size,
    .notes_size = process->notes_size,
    .cache_size = cache_size ? strtoull(cache_size, NULL, 0) : 0,
    .step_capacity = process->step_capacity,
    .step_count = process->store.base ? process->store.base : PROCESS_STEPS_UNIT,
    .step_base = process->store.base,
    .step_limit = process->store.limit,
    .store_user = geteuid(),
    .store_epoch = process->store.epoch,
    .slow = options->trigger ? options->trigger->slow : 0,
    .error = program->error,
    .system_error = program->system_error,
  };

  memcpy(process->memory, &control, sizeof(control));
  memcpy(process->memory + PROCESS_STORE_AT, process->store.folder, strlen(process->store.folder) + 1);
}

/* Opens the file a second time for lbr alone; the programs inherit the other descriptor. The lock on ours tells them
 * that lbr is alive. Without the lock everything works too, unless lbr is killed or a program overwrites the shared
 * memory. */
static void own_open(struct process *process, int fd)
{
  char path[64];
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  struct process_control *control = (struct process_control *)(void *)process->memory;

  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  int own = open(path, O_RDWR | O_CLOEXEC);
  if (own < 0)
    return;
  process->fd = own;
  if (fcntl(own, F_OFD_SETLK, &lock) == 0)
    control->options |= PROCESS_LOCKED;
}

/* Maps the shared memory, except the snapshots, which only programs use. Most of it is never touched and takes only
 * address space. Returns 0 or -errno. */
static int shared_map(struct process *process, int fd)
{
  size_t size = process_logs_offset(process->notes_size, process->step_capacity) +
                (size_t)PROCESS_THREADS * PROCESS_PARTS * process->part_size;

  if (ftruncate(fd, (off_t)(size + PROCESS_REST_SIZE)) < 0)
    return -errno;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED)
    return -errno;
  process->memory = memory;
  process->memory_size = size;
  return 0;
}

int launch_memory(struct process *process, const struct process_options *options, const struct resolution *program)
{
  int fd = memfd_create("lbr-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);

  if (fd < 0)
    return -errno;
  int result = shared_map(process, fd);
  if (result < 0) {
    process->notes_size = NOTES_SIZE_LEAST;
    process->step_capacity = STEP_CAPACITY_LEAST;
    result = shared_map(process, fd);
  }
  if (result < 0) {
    close(fd);
    return result;
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); /* without seals, guard.c detects a truncation */
  if (options->has_store)
    store_begin(&process->store, process->step_capacity);
  process_clock_begin(&process->clock);
  control_fill(process, options, program);
  own_open(process, fd);
  return fd;
}

/* ---- the child ---- */

/* The arguments before the program's own: command.h. */
struct command {
  char name[sizeof(COMMAND_NAME) + COMMAND_PAGE];
  char fd[16];
  struct resolution program;
  char **words;
};

static int command_init(struct command *command, const char *path, char *const arguments[])
{
  struct resolution *program = &command->program;
  size_t count = 0;

  resolve_program(path, program);
  while (arguments[count])
    count++;
  command->words = calloc(COMMAND_WORDS + program->count + count + 1, sizeof(*command->words));
  if (!command->words)
    return -ENOMEM;
  char **word = command->words;
  *word++ = command->name;
  *word++ = command->fd;
  *word++ = program->exe;
  *word++ = (char *)path;
  for (unsigned i = 0; i < program->count; i++)
    *word++ = (char *)program->words[program->first + i];
  for (size_t i = program->count && count ? 1 : 0; i < count; i++)
    *word++ = arguments[i];
  return 0;
}

static void command_set_fd(struct command *command, int fd)
{
  size_t name = strlen(COMMAND_NAME), bytes = sizeof(COMMAND_NAME);

  snprintf(command->fd, sizeof(command->fd), "%d", fd);
  for (unsigned i = 1; i < COMMAND_WORDS; i++)
    bytes += strlen(command->words[i]) + 1;
  size_t blanks = command_blanks(bytes);
  memcpy(command->name, COMMAND_NAME, name);
  memset(command->name + name, ' ', blanks);
  command->name[name + blanks] = 0;
}

/* Moves a descriptor out of the range that the program uses: the runtime keeps it open. */
static int fd_raise(int fd)
{
  struct rlimit limit;
  int raised = fcntl(fd, F_DUPFD, HIGH_FD);

  if (raised < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 16)
    raised = fcntl(fd, F_DUPFD, (int)limit.rlim_cur - 8);
  return raised < 0 ? fcntl(fd, F_DUPFD, 3) : raised;
}

static int status_of(unsigned error)
{
  static const uint8_t statuses[] = {
#define PROCESS_ERROR(name, status, text) status,
#include "process/error.def"
#undef PROCESS_ERROR
  };

  return statuses[error];
}

/* What lbr and the child share until the child executes the runtime. */
struct birth {
  struct command *command;
  int runtime_fd, shared_fd;
  char *const *environment;
  void (*begin)(void);
  sigset_t mask; /* lbr's own */
  int error;     /* the reason why it could not */
};

/* Runs in the child, which shares lbr's memory. Returns the child's exit status. A program that cannot be executed ends
 * here with the same status as in the runtime. */
static int child_run(void *data)
{
  struct birth *birth = data;
  struct command *command = birth->command;

  if (birth->begin)
    birth->begin();
  else
    sigprocmask(SIG_SETMASK, &birth->mask, NULL);
  if (command->program.error)
    return status_of(command->program.error);
  int fd = fd_raise(birth->shared_fd);
  if (fd >= 0) {
    command_set_fd(command, fd);
    execveat(birth->runtime_fd, "", command->words, birth->environment, AT_EMPTY_PATH);
  }
  birth->error = errno;
  return PROCESS_FAILURE;
}

/* Like vfork(2), which is cheaper than fork(2): nothing is copied, and this thread waits until the child executes the
 * runtime or ends. No handler of lbr may run in the child, so signals are blocked until `begin` has taken the handlers
 * away. Returns the child's number, or -errno. */
static int child_clone(struct birth *birth)
{
  enum { STACK_SIZE = 64 << 10 };
  sigset_t all;
  char *stack = malloc(STACK_SIZE);

  if (!stack)
    return -ENOMEM;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &birth->mask);
  int pid = clone(child_run, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, birth);
  int result = pid < 0 ? -errno : pid;
  sigprocmask(SIG_SETMASK, &birth->mask, NULL);
  free(stack);
  return result;
}

/* Returns the child's number once it runs, or -errno. */
static int child_start(struct birth *birth)
{
  int pid = child_clone(birth);

  if (pid < 0 || !birth->error)
    return pid;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
  return -birth->error;
}

/* ---- whole ---- */

int launch_options(struct process *process, const struct process_options *options)
{
  uint32_t size = options->part_size;

  if (!size)
    size = options->is_all ? DEFAULT_PART_ALL : DEFAULT_PART;
  process->part_size = size;
  process->notes_size = options->is_all ? notes_size_all : notes_size;
  process->step_capacity = PROCESS_STEPS_MOST;
  process->trigger = options->trigger;
  return size >= PROCESS_PART_LEAST && size <= PROCESS_PART_MOST && !(size & (size - 1)) ? 0 : -EINVAL;
}

int process_launch(const struct process_options *options, const char *path, char *const arguments[],
                   char *const environment[], struct process *ret_process)
{
  struct process process = {0};
  struct command *command = NULL;
  int runtime_fd = -1, shared_fd = -1;
  int result = launch_options(&process, options);

  if (result < 0)
    return result;
  command = calloc(1, sizeof(*command));
  result = command ? command_init(command, path, arguments) : -ENOMEM;
  if (result < 0)
    goto out;
  result = runtime_fd = launch_runtime();
  if (result < 0)
    goto out;
  result = shared_fd = launch_memory(&process, options, &command->program);
  if (result < 0)
    goto out;
  result = process.pid = child_start(&(struct birth){.command = command,
                                                     .runtime_fd = runtime_fd,
                                                     .shared_fd = shared_fd,
                                                     .environment = environment,
                                                     .begin = options->begin});
out:
  if (shared_fd >= 0)
    close(shared_fd);
  if (runtime_fd >= 0)
    close(runtime_fd);
  if (command)
    free(command->words);
  free(command);
  if (result < 0) {
    process_done(&process);
    return result;
  }
  process.number = process.pid;
  process_guard(&process);
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

/* ---- the end ---- */

/* Programs that are still running store nothing from now on. A program that has begun to store has counted itself
 * before it read the limit: runtime/store.c. */
static void store_leave(struct process *process)
{
  struct process_control *control = (struct process_control *)(void *)process->memory;

  if (!process->store.folder[0])
    return;
  __atomic_store_n(&control->step_limit, 0, __ATOMIC_SEQ_CST);
  bool has_stored = __atomic_load_n(&control->stored, __ATOMIC_SEQ_CST);
  store_end(&process->store, __atomic_load_n(&control->step_count, __ATOMIC_SEQ_CST), has_stored);
}

void process_done(struct process *process)
{
  store_leave(process);
  process_unguard(process);
  if (process->memory)
    munmap(process->memory, process->memory_size);
  if (process->fd > 0)
    close(process->fd);
  free(process->attachment);
  free(process->attached);
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
