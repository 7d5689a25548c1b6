/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that run already: attaches to all of a list (attach.c), and leaves them with their children (detach.c). The
 * keeper does both, in a process of its own.
 */
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attach.h"
#include "process/attachment.h"
#include "process/keeper.h"
#include "process/launch.h"
#include "process/member.h"
#include "process/process.h"
#include "process/relatives.h"
#include "process/rescue.h"
#include "process/resolve.h"
#include "process/shared.h"
#include "process/target.h"

#define START_SECONDS 10.0 /* that a program may take to start before lbr gives up leaving it */

/* Reads the table of the runtime's entry points. */
static struct attach_entries entries_find(const Elf64_Ehdr *header)
{
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(process_runtime + header->e_shoff);
  const char *names = (const char *)process_runtime + sections[header->e_shstrndx].sh_offset;
  struct attach_entries entries = {0};

  for (unsigned i = 0; i < header->e_shnum; i++)
    if (!strcmp(names + sections[i].sh_name, ".attach"))
      memcpy(&entries, process_runtime + sections[i].sh_offset, sizeof(entries));
  assert(entries.process);
  return entries;
}

void attachment_place(struct attachment *attachment, uint64_t image)
{
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)process_runtime;
  uint64_t entry = image + header->e_entry;
  const struct attach_entries entries = entries_find(header);

  attachment->process_entry = entry + (uint64_t)entries.process;
  attachment->thread_entry = entry + (uint64_t)entries.thread;
  attachment->start_entry = entry + (uint64_t)entries.start;
  attachment->call_entry = entry + (uint64_t)entries.call;
  attachment->leave_entry = entry + (uint64_t)entries.leave;
  attachment->breakpoint = entry + (uint64_t)entries.stopped;
  attachment->call_back = entry + (uint64_t)entries.call_back;
}

/* Puts the runtime's ELF file into the shared memory, for programs that the processes execute. Without it these run
 * natively. */
static void image_put(const struct process *process, int fd)
{
  struct process_control *control = (struct process_control *)(void *)process->memory;
  size_t size = (size_t)(process_runtime_end - process_runtime);

  assert(size <= PROCESS_IMAGE_SIZE);
  if (pwrite(fd, process_runtime, size, (off_t)process_image_offset(control)) == (ssize_t)size)
    control->image_size = (uint32_t)size;
}

static int detach_all(struct process *process, const void *data);

/* What the keeper attaches to, and with what. */
struct attach_plan {
  const int *pids;
  size_t count;
  int runtime_fd, shared_fd;
  bool has_descendants;
};

static int attach_one(struct process *process, const struct attach_plan *plan, int pid)
{
  int r = attachment_begin(process->attachment, process, pid, plan->runtime_fd, plan->shared_fd);

  process->stopped += process->attachment->stopped;
  return r;
}

/* Descendants that cannot be attached to are left out, after a message. Those that are born once their parent is
 * recorded are recorded anyway. */
static int attach_descendants(struct process *process, const struct attach_plan *plan)
{
  int *known = NULL, r = 0, pid;
  size_t count = 0, capacity = 0;

  while (r >= 0 && (pid = relatives_descendant(plan->pids, plan->count, known, count)) > 0) {
    int *added = array_append(&known, &count, &capacity);

    if (!added)
      r = -ENOMEM;
    else if (!member_is(process, pid) && target_check(pid) >= 0)
      r = attach_one(process, plan, pid);
    if (added)
      *added = pid;
    r = r == -EINTR || r == -ENOMEM ? r : 0;
  }
  free(known);
  return r;
}

/* All or none: if one process cannot be attached to, the others are left again. */
static int attach_all(struct process *process, const void *data)
{
  const struct attach_plan *plan = data;
  int r = 0;

  for (size_t i = 0; i < plan->count && r >= 0; i++) {
    r = attach_one(process, plan, plan->pids[i]);
    process->attached_count += r >= 0;
  }
  if (r >= 0 && plan->has_descendants)
    r = attach_descendants(process, plan);
  if (r < 0 && process->attached_count)
    detach_all(process, NULL);
  return r;
}

/* Each thread that is named must belong to one of the processes. */
static int threads_check(const struct process_options *options, const int *pids, size_t count)
{
  for (size_t i = 0; i < options->thread_count; i++) {
    int process = target_process(options->threads[i]);
    bool is_known = false;

    for (size_t j = 0; j < count; j++)
      is_known |= pids[j] == process;
    if (!is_known) {
      message("thread %d: it is not one of the processes to attach to", options->threads[i]);
      return -EINVAL;
    }
  }
  return 0;
}

int process_attach(const struct process_options *options, const int *pids, size_t count, process_wait_function *wait,
                   void *data, struct process *ret_process)
{
  struct process process = {0};
  const struct resolution none = {0};
  struct process_options plain = *options;
  int runtime_fd = -1, shared_fd = -1, result = launch_options(&process, options);

  for (size_t i = 0; i < count && result >= 0; i++)
    result = target_check(pids[i]);
  for (size_t i = 0; i < count && result >= 0; i++)
    result = rescue_leave(pids[i], wait, data);
  if (result >= 0)
    result = threads_check(options, pids, count);
  if (result < 0)
    return result;
  plain.has_store = false;
  process.pid = pids[0];
  process.number = target_inner_number(pids[0]);
  process.attachment = calloc(1, sizeof(*process.attachment));
  process.attached = calloc(count, sizeof(*process.attached));
  result = process.attachment && process.attached ? 0 : -ENOMEM;
  if (result >= 0) {
    *process.attachment = (struct attachment){
      .threads = options->threads, .thread_count = options->thread_count, .wait = wait, .data = data};
    result = runtime_fd = launch_runtime();
  }
  if (result >= 0)
    result = shared_fd = launch_memory(&process, &plain, &none);
  if (result < 0) {
    message("cannot make the memory of the recorder: %s", strerror(-result));
  } else {
    struct process_control *control = (struct process_control *)(void *)process.memory;

    control->options |= PROCESS_ATTACHED | (target_can_suspend() ? 0u : PROCESS_UNFILTERED);
    image_put(&process, shared_fd);
    memcpy(process.attached, pids, count * sizeof(*pids));
    result = keeper_run(&process, attach_all, detach_all,
                        &(struct attach_plan){pids, count, runtime_fd, shared_fd, options->has_descendants});
  }
  if (shared_fd >= 0)
    close(shared_fd);
  if (runtime_fd >= 0)
    close(runtime_fd);
  if (result < 0) {
    process_done(&process);
    return result;
  }
  process_guard(&process);
  *ret_process = process;
  return 0;
}

int process_of_thread(int thread)
{
  return target_process(thread);
}

bool process_has_thread_ended(int thread)
{
  int process = target_process(thread), state = process ? target_thread_state((uint32_t)process, (uint32_t)thread) : 0;

  return !state || state == 'Z' || state == 'X';
}

bool process_has_ended(int process)
{
  return target_has_ended(process);
}

bool process_is_attached(const struct process *process)
{
  return process->attachment != NULL;
}

double process_stopped(const struct process *process)
{
  return process->stopped;
}

int process_check(int process)
{
  return target_check(process);
}

static struct process_state *page_of(const struct process *process, uint32_t slot)
{
  return (struct process_state *)(void *)(process->memory + process_thread_offset(slot));
}

static int detach_one(struct process *process, int pid)
{
  double start = clock_seconds();
  int r;

  while ((r = attachment_end(process->attachment, process, pid)) == -EAGAIN &&
         clock_seconds() - start < START_SECONDS) {
    if (process->attachment->wait)
      process->attachment->wait(process->attachment->data, pid, clock_seconds() - start);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  process->stopped += process->attachment->stopped;
  if (r < 0 && r != -ESRCH)
    message("process %d: cannot leave it: %s; it runs on in the code cache, unrecorded", pid, strerror(-r));
  return r == -ESRCH ? 0 : r;
}

/* Threads that wait until their log is read need not wait any more. */
static void logs_close(const struct process *process)
{
  struct process_control *control = (struct process_control *)(void *)process->memory;

  __atomic_store_n(&control->is_closing, 1, __ATOMIC_SEQ_CST);
  for (uint32_t slot = 0; slot < process_slots(process); slot++) {
    struct process_state *page = page_of(process, slot);

    if (__atomic_load_n(&page->is_waiting, __ATOMIC_SEQ_CST))
      syscall(SYS_futex, &page->read, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
  }
}

/* Then children, and programs that they have executed. */
static int detach_all(struct process *process, const void *data)
{
  int r = 0, pid;

  (void)data;
  process->stopped = 0;
  logs_close(process);
  for (size_t i = 0; i < process->attached_count; i++)
    if (process_is_ours(process, (uint32_t)process->attached[i])) {
      int left = detach_one(process, process->attached[i]);

      r = left < 0 ? left : r;
    }
  while (r >= 0 && (pid = member_find(process)))
    r = detach_one(process, pid);
  process->attached_count = 0;
  return r;
}

int process_detach(struct process *process, process_wait_function *wait, void *data)
{
  if (!process->attachment)
    return 0;
  process->attachment->wait = wait;
  process->attachment->data = data;
  return keeper_run(process, detach_all, NULL, NULL);
}
