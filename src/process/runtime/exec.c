/* SPDX-License-Identifier: Apache-2.0
 *
 * The application executes a program. The kernel executes this runtime instead, by the link /proc/self/exe, with the
 * words of command.h before the application's own arguments; the runtime then loads the program. In a process that lbr
 * has attached to, this link leads to the application's own program: the runtime makes a file of itself. The
 * application's strings stay where they are. Only the array of pointers is ours, and the kernel detects invalid
 * pointers in it.
 *
 * The new program reports that the old one has ended (exec_arrived), because execve can fail until then.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "process/command.h"
#include "process/runtime/runtime.h"

static const char own_exe[] = "/proc/self/exe";

enum { WORDS_MOST = 1 << 20, NAME_MOST = PROGRAM_PATH + 32 };

/* The arguments of execve or execveat. */
struct exec {
  uint64_t number;
  const uint64_t *argument;
  int folder;
  uint64_t path, words, environment; /* addresses in the application */
  unsigned flags;
  uint64_t count; /* of words */
};

/* Working memory of execve, which would be too large for a stack. */
struct work {
  char path[PROGRAM_PATH];
  char name[NAME_MOST]; /* the kernel's name for the file */
  char first[sizeof(COMMAND_NAME) + COMMAND_PAGE];
  char fd[48];
  struct program program;
  const char *words[]; /* for the kernel */
};

/* ---- the application's arguments ---- */

static bool exec_count(struct thread *thread, struct exec *exec)
{
  uint64_t word = 0;

  for (exec->count = 0; exec->words && exec->count < WORDS_MOST; exec->count++) {
    if (!safe_read(thread, &word, exec->words + exec->count * sizeof(word), sizeof(word)))
      return false;
    if (!word)
      break;
  }
  return exec->count < WORDS_MOST;
}

/* Reads page by page, so that it does not read an unmapped page after the string's end. */
static bool read_text(struct thread *thread, char *to, uint64_t from, uint64_t size)
{
  while (size) {
    uint64_t piece = PROCESS_PAGE - from % PROCESS_PAGE;

    piece = piece < size ? piece : size;
    if (!safe_read(thread, to, from, piece))
      return false;
    for (uint64_t i = 0; i < piece; i++)
      if (!to[i])
        return true;
    to += piece;
    from += piece;
    size -= piece;
  }
  return false;
}

static struct work *work_open(struct thread *thread, uint64_t count)
{
  uint64_t words = COMMAND_WORDS + 2 * PROGRAM_SCRIPTS + 1 + count + 2;
  uint64_t size = sizeof(struct work) + words * sizeof(char *);
  int64_t memory = kernel_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (is_failure(memory))
    return NULL;
  thread->scratch = (uint64_t)memory;
  thread->scratch_size = size;
  return (struct work *)memory;
}

static void work_close(struct thread *thread)
{
  kernel_call(__NR_munmap, thread->scratch, thread->scratch_size, 0, 0, 0, 0);
  thread->scratch = 0;
}

/* ---- the command line ---- */

/* A file named relative to a descriptor is known by that descriptor: fs/exec.c, alloc_bprm. */
static void name_make(struct work *work, const struct exec *exec)
{
  char *at = work->name;

  if (exec->folder == AT_FDCWD || work->path[0] == '/') {
    text_put(at, work->path);
    return;
  }
  at = text_put_number(text_put(at, "/dev/fd/"), (uint32_t)exec->folder);
  if (work->path[0])
    text_put(text_put(at, "/"), work->path);
}

static void words_put_own(const struct thread *thread, struct work *work)
{
  char *at = text_put_number(work->fd, (uint64_t)*thread->fd);

  *at++ = ':';
  at = text_put_number(at, thread->slot);
  if (!thread_is_alone(thread))
    text_put(at, "+");
  uint64_t bytes =
    sizeof(COMMAND_NAME) + text_length(work->fd) + 1 + text_length(work->program.exe) + 1 + text_length(work->name) + 1;
  uint64_t blanks = command_blanks(bytes);
  at = text_put(work->first, COMMAND_NAME);
  memset(at, ' ', blanks);
  at[blanks] = 0;
  work->words[0] = work->first;
  work->words[1] = work->fd;
  work->words[2] = work->program.exe;
  work->words[3] = work->name;
}

/* A script is run by its interpreter: the interpreter's words, the script's name, and the words except the first. An
 * empty list gets one empty word, as in Linux. */
static bool words_put(struct thread *thread, struct work *work, const struct exec *exec)
{
  const char **word = work->words + COMMAND_WORDS;
  uint64_t skipped = 0;

  for (unsigned i = work->program.script_count; i--;) {
    *word++ = work->program.scripts[i].interpreter;
    if (work->program.scripts[i].argument)
      *word++ = work->program.scripts[i].argument;
  }
  if (work->program.script_count) {
    *word++ = work->name;
    skipped = exec->count ? 1 : 0;
  } else if (!exec->count) {
    *word++ = "";
  }
  uint64_t size = (exec->count - skipped) * sizeof(*word);
  if (size && !safe_read(thread, word, exec->words + skipped * sizeof(*word), size))
    return false;
  word[exec->count - skipped] = NULL;
  words_put_own(thread, work);
  return true;
}

/* ---- the call ---- */

/* Whether a script is named by a descriptor that execve closes. Its interpreter could not open it; the kernel reports
 * that. */
static bool is_lost(const struct exec *exec, const struct work *work)
{
  bool is_by_fd = exec->folder != AT_FDCWD && work->path[0] != '/';

  return is_by_fd && work->program.script_count &&
         kernel_call(__NR_fcntl, (uint64_t)exec->folder, F_GETFD, 0, 0, 0, 0) & FD_CLOEXEC;
}

static bool exec_prepare(struct thread *thread, const struct exec *exec, struct work *work)
{
  if (exec->flags & ~(unsigned)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) ||
      !read_text(thread, work->path, exec->path, sizeof(work->path)) ||
      !program_find(thread->runtime, exec->folder, work->path, exec->flags, &work->program) || is_lost(exec, work))
    return false;
  name_make(work, exec);
  return words_put(thread, work, exec);
}

static void fd_keep(const struct thread *thread, bool is_kept)
{
  kernel_call(__NR_fcntl, (uint64_t)*thread->fd, F_SETFD, is_kept ? 0 : FD_CLOEXEC, 0, 0, 0);
}

/* Executes no program while a signal is pending: the new program would never see the signal. */
static int64_t exec_now(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  signal_exec_begin(thread);
  int64_t result = syscall_pass(number, argument);
  signal_exec_undo(thread);
  return result;
}

static int64_t exec_link(struct thread *thread, const struct exec *exec, const struct work *work)
{
  const uint64_t argument[6] = {(uint64_t)own_exe, (uint64_t)work->words, exec->environment};

  return exec_now(thread, __NR_execve, argument);
}

/* Makes a file in memory of the runtime's ELF file, which the shared memory has. Returns its descriptor, or -errno. */
static int64_t image_open(const struct thread *thread)
{
  enum { CLOEXEC = 1 };
  const struct process_control *control = thread->runtime->control;
  uint64_t offset = process_image_offset(control), left = control->image_size;
  int64_t fd = kernel_call(__NR_memfd_create, (uint64_t)COMMAND_NAME, CLOEXEC, 0, 0, 0, 0), size = fd;

  while (left && !is_failure(size)) {
    size = kernel_call(__NR_sendfile, (uint64_t)fd, (uint64_t)*thread->fd, (uint64_t)&offset, left, 0, 0);
    if (size == 0)
      size = -EIO;
    if (!is_failure(size))
      left -= (uint64_t)size;
  }
  if (is_failure(fd) || !left)
    return fd;
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  return size;
}

static int64_t exec_image(struct thread *thread, const struct exec *exec, const struct work *work)
{
  int64_t fd = image_open(thread);
  const uint64_t argument[6] = {(uint64_t)fd, (uint64_t) "", (uint64_t)work->words, exec->environment, AT_EMPTY_PATH};

  if (is_failure(fd))
    return fd;
  int64_t result = exec_now(thread, __NR_execveat, argument);
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  return result;
}

static int64_t exec_record(struct thread *thread, const struct exec *exec, const struct work *work)
{
  fd_keep(thread, true);
  int64_t result = (thread->runtime->is_adopted ? exec_image : exec_link)(thread, exec, work);
  fd_keep(thread, false);
  return result;
}

/* Executes without recording. /proc/self/exe, which names the runtime, means the application's own program. */
static int64_t exec_pass(struct thread *thread, const struct exec *exec)
{
  uint64_t argument[6];
  char path[sizeof(own_exe)];

  memcpy(argument, exec->argument, sizeof(argument));
  if (!thread->runtime->is_adopted && read_text(thread, path, exec->path, sizeof(path)) && text_is(path, own_exe))
    argument[exec->number == __NR_execveat] = (uint64_t)thread->runtime->exe;
  return exec_now(thread, exec->number, argument);
}

/* Is the program that the thread executes to be recorded? */
static bool is_wanted(const struct thread *thread)
{
  const struct runtime *runtime = thread->runtime;
  bool is_refused = thread->is_unrecorded || thread->state->is_unwanted || thread->is_traced || runtime->is_confined ||
                    runtime->is_filtered || runtime->options & PROCESS_SOME;

  return !is_refused && !__atomic_load_n(&runtime->control->is_closing, __ATOMIC_ACQUIRE);
}

/* If anything goes wrong, the call is made again without recording, so that the application sees the kernel's own
 * answer. */
static int64_t exec_make(struct thread *thread, struct exec *exec)
{
  int64_t result = 0;
  bool is_tried = is_wanted(thread) && exec_count(thread, exec);
  struct work *work = is_tried ? work_open(thread, exec->count) : NULL;

  self_get_name(thread);
  self_get_title(thread);
  thread->state->end = END_EXEC;
  snapshot_take(thread);
  if (work && exec_prepare(thread, exec, work))
    result = exec_record(thread, exec, work);
  if (work)
    work_close(thread);
  if (result != -EINTR_AGAIN)
    result = exec_pass(thread, exec);
  thread->state->end = END_NONE;
  thread->state->command[0] = 0; /* the process lives on, and may set another title */
  return result;
}

int64_t exec_call(struct thread *thread, const uint64_t argument[6])
{
  struct exec exec = {.number = __NR_execve,
                      .argument = argument,
                      .folder = AT_FDCWD,
                      .path = argument[0],
                      .words = argument[1],
                      .environment = argument[2]};

  return exec_make(thread, &exec);
}

int64_t exec_call_at(struct thread *thread, const uint64_t argument[6])
{
  struct exec exec = {.number = __NR_execveat,
                      .argument = argument,
                      .folder = (int)argument[0],
                      .path = argument[1],
                      .words = argument[2],
                      .environment = argument[3],
                      .flags = (unsigned)argument[4]};

  return exec_make(thread, &exec);
}

/* ---- the new program ---- */

void exec_arrived(struct runtime *runtime, const char *word)
{
  uint32_t slot = 0;

  while (*word && *word != ':')
    word++;
  if (!*word)
    return;
  for (word++; *word >= '0' && *word <= '9' && slot < PROCESS_THREADS; word++)
    slot = slot * 10 + (uint32_t)(*word - '0');
  thread_bury_all(runtime, slot, *word != '+');
}
