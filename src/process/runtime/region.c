/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a thread: its region (state.inc), in which its page and log in the shared memory are mapped. The
 * regions of a process are a list that only grows, protected by its lock. A region is reused, because threads come and
 * go.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "process/runtime/runtime.h"

enum { READ_WRITE = PROT_READ | PROT_WRITE, RESERVED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

static struct thread *regions;
static uint64_t regions_end; /* the address of the next one; 0 if there is none yet */

/* ---- regions; with the lock held ---- */

static int64_t map_over(uint64_t start, uint64_t size)
{
  return kernel_map(start, size, READ_WRITE, RESERVED | MAP_FIXED, -1, 0);
}

static uint64_t log_offset(const struct runtime *runtime, uint32_t slot)
{
  return process_logs_offset(runtime->notes_size, runtime->step_capacity) +
         (uint64_t)slot * PROCESS_PARTS * runtime->part_size;
}

/* Clears the log of a previous thread, because the end of a log is found by the zeroes after it. This also frees its
 * memory. */
static void log_clear(const struct runtime *runtime, uint64_t start, int fd, uint32_t slot)
{
  enum { MODE = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE };
  uint64_t size = (uint64_t)PROCESS_PARTS * runtime->part_size;

  if (runtime->is_confined ||
      is_failure(kernel_call(__NR_fallocate, (uint64_t)fd, MODE, log_offset(runtime, slot), size, 0, 0)))
    memset((void *)(start + REGION_LOG), 0, runtime->part_size);
}

/* Maps the thread's page and the parts of its log: those of the slot, or private memory. Returns 0 or -errno. */
static int region_map_slot(const struct runtime *runtime, uint64_t start, int fd, uint32_t slot)
{
  uint64_t size = runtime->part_size;
  bool is_own = slot == THREAD_NO_SLOT;
  unsigned flags = MAP_FIXED | (is_own ? RESERVED : MAP_SHARED);
  uint64_t page = is_own ? 0 : process_thread_offset(slot), log = is_own ? 0 : log_offset(runtime, slot);

  fd = is_own ? -1 : fd;
  int64_t result = kernel_map(start, PROCESS_PAGE, READ_WRITE, flags, fd, page);
  for (uint64_t i = 0; i < PROCESS_PARTS && !is_failure(result); i++)
    result = kernel_map(start + REGION_LOG + i * (size + PROCESS_PAGE), size, READ_WRITE, flags, fd, log + i * size);
  if (is_failure(result))
    return (int)result;
  if (!is_own && slot_state(runtime, slot)->serial)
    log_clear(runtime, start, fd, slot);
  return 0;
}

static struct thread *region_make(const struct runtime *runtime)
{
  uint64_t size = REGION_LOG + PROCESS_PARTS * ((uint64_t)runtime->part_size + PROCESS_PAGE);
  uint64_t wish = regions_end ? regions_end : PLACE_REGIONS;
  int64_t start = kernel_map(wish, size, PROT_NONE, RESERVED, -1, 0);

  if (is_failure(start))
    return NULL;
  uint64_t region = (uint64_t)start;
  if (is_failure(map_over(region + REGION_WIDE, REGION_NARROW_END - REGION_WIDE)) ||
      is_failure(map_over(region + REGION_STACK, REGION_PRIVATE + REGION_PRIVATE_SIZE - REGION_STACK)) ||
      is_failure(map_over(region + REGION_SIGNAL, REGION_SIGNAL_END - REGION_SIGNAL))) {
    kernel_call(__NR_munmap, region, size, 0, 0, 0, 0);
    return NULL;
  }
  regions_end = wish + size;
  struct thread *thread = (struct thread *)(region + REGION_PRIVATE);
  thread->state = (struct process_state *)region;
  thread->next = regions;
  regions = thread;
  return thread;
}

static uint64_t region_start(const struct thread *thread)
{
  return (uint64_t)thread - REGION_PRIVATE;
}

/* Clears a region that was used before, except its place in the list and its lookup tables. */
static void region_clear(struct thread *thread)
{
  struct thread *next = thread->next;
  uint32_t age = thread->lookup_age;

  if (thread->scratch)
    kernel_call(__NR_munmap, thread->scratch, thread->scratch_size, 0, 0, 0, 0);
  memset(thread, 0, sizeof(*thread));
  thread->next = next;
  thread->lookup_age = age;
}

static struct thread *region_take(const struct runtime *runtime)
{
  struct thread *thread = regions;

  while (thread && __atomic_load_n(&thread->is_used, __ATOMIC_ACQUIRE))
    thread = thread->next;
  if (thread)
    region_clear(thread);
  else
    thread = region_make(runtime);
  if (thread)
    __atomic_store_n(&thread->is_used, 1, __ATOMIC_RELAXED);
  return thread;
}

/* ---- threads ---- */

uint32_t thread_place(struct runtime *runtime)
{
  return __atomic_fetch_add(&runtime->control->thread_count, 1, __ATOMIC_RELAXED);
}

/* Sets the fields of the state that are new in each use of a page. */
static void state_begin(const struct thread *thread, struct process_state *state, uint32_t serial, uint32_t place)
{
  uint64_t start = region_start(thread);

  state->log = state->log_start = start + REGION_LOG;
  state->written = state->read = 0;
  state->is_waiting = 0;
  state->is_cut = 0;
  state->is_first = 0;
  state->waited = 0;
  state->pending = 0;
  state->serial = serial;
  state->place = place;
  state->status = THREAD_STARTING;
  state->space = thread->runtime->space;
  state->end = END_NONE;
  state->end_status = 0;
}

static void state_fill(struct thread *thread, uint32_t process, uint32_t creator, uint32_t numbering,
                       uint32_t is_unwanted)
{
  struct process_state *state = thread->state;
  uint64_t start = region_start(thread);
  struct process_state fresh = {.leave_direct = (uint64_t)leave_direct,
                                .leave_indirect = (uint64_t)leave_indirect,
                                .leave_syscall = (uint64_t)leave_syscall,
                                .leave_stale = (uint64_t)leave_stale,
                                .stack = start + REGION_STACK_END,
                                .self = start,
                                .process = process,
                                .creator = creator,
                                .is_unwanted = is_unwanted,
                                .numbering = numbering,
                                .can_leave = true};

  state_begin(thread, &fresh, state->serial + 1, thread_place(thread->runtime));
  *state = fresh;
}

static struct thread *new_with(struct runtime *runtime, int fd, uint32_t numbering, bool is_unrecorded)
{
  uint32_t slot = is_unrecorded ? THREAD_NO_SLOT : slot_take(runtime, numbering);

  if (!is_unrecorded && slot == THREAD_NO_SLOT)
    return NULL;
  runtime_lock(runtime);
  struct thread *thread = region_take(runtime);
  runtime_unlock(runtime);
  if (thread && region_map_slot(runtime, region_start(thread), fd, slot) < 0) {
    __atomic_store_n(&thread->is_used, 0, __ATOMIC_RELEASE);
    thread = NULL;
  }
  if (!thread) {
    if (slot != THREAD_NO_SLOT)
      __atomic_store_n(&slot_state(runtime, slot)->status, THREAD_FREE, __ATOMIC_RELEASE);
    return NULL;
  }
  thread->state = (struct process_state *)region_start(thread);
  thread->runtime = runtime;
  thread->slot = slot;
  thread->is_unrecorded = is_unrecorded;
  return thread;
}

struct thread *thread_new(struct runtime *runtime, uint32_t process, uint32_t creator)
{
  struct thread *thread = new_with(runtime, runtime->fd, runtime->numbering, false);

  if (!thread)
    return NULL;
  thread->fd = &runtime->fd;
  thread->actions = &runtime->actions;
  state_fill(thread, process, creator, runtime->numbering, 0);
  return thread;
}

struct thread *thread_new_by(const struct thread *creator, bool is_unrecorded)
{
  const struct process_state *state = creator->state;
  struct thread *thread = new_with(creator->runtime, *creator->fd, state->numbering, is_unrecorded);

  if (thread)
    state_fill(thread, state->process, state->thread, state->numbering, state->is_unwanted);
  return thread;
}

void thread_free(struct thread *thread)
{
  if (thread->slot != THREAD_NO_SLOT)
    slot_change(slot_state(thread->runtime, thread->slot), THREAD_STARTING, THREAD_FREE);
  __atomic_store_n(&thread->is_used, 0, __ATOMIC_RELEASE);
}

static void state_number(struct process_state *state)
{
  state->process = (uint32_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0);
  state->thread = (uint32_t)kernel_call(__NR_gettid, 0, 0, 0, 0, 0, 0);
}

/* The first process of a PID namespace has a parent without a number. If it is just born, its parent is in another
 * namespace. */
void thread_enter_born(struct thread *thread)
{
  struct process_state *state = thread->state;

  state_number(state);
  if (state->process == state->thread && kernel_call(__NR_getppid, 0, 0, 0, 0, 0, 0) == 0)
    state->numbering = (thread->slot + 1) | state->serial << 13;
  thread_enter(thread);
}

/* The other regions that are used belong to threads of this process, or, if it is a child of vfork, to its parent. A
 * region that is just being made is counted through the thread that makes it. */
bool thread_is_alone(const struct thread *thread)
{
  for (const struct thread *other = regions; other; other = other->next) {
    bool is_used = other != thread && __atomic_load_n(&other->is_used, __ATOMIC_ACQUIRE);

    if (is_used &&
        (other->slot >= PROCESS_THREADS || slot_state(thread->runtime, other->slot)->process == thread->state->process))
      return false;
  }
  return true;
}

struct thread *thread_first(void)
{
  return regions;
}

uint64_t thread_regions_end(void)
{
  return regions_end;
}

/* Avoids the system call if the processor and the kernel allow it: a filter of the program may forbid the call. */
static void set_gs(const struct runtime *runtime, uint64_t address)
{
  if (runtime->has_wrgsbase) {
    __asm__ volatile("wrgsbase %0" : : "r"(address) : "memory");
    return;
  }
  int64_t result = kernel_call(__NR_arch_prctl, ARCH_SET_GS, address, 0, 0, 0, 0);
  if (is_failure(result))
    runtime_fail(PROCESS_E_NO_MEMORY, (int)result, 0);
}

void thread_enter(struct thread *thread)
{
  struct process_state *state = thread->state;

  set_gs(thread->runtime, (uint64_t)state);
  state_number(state);
  if (!thread->runtime->is_confined)
    kernel_call(__NR_prctl, PR_GET_NAME, (uint64_t)state->name, 0, 0, 0, 0);
  __atomic_store_n(&state->status, THREAD_LIVE, __ATOMIC_RELEASE);
}

/* The page belongs to the parent until another is mapped over it. Until then it is only read, and only by this thread,
 * because signals are blocked. */
int thread_move(struct thread *thread, const struct process_state *state, uint32_t place)
{
  struct runtime *runtime = thread->runtime;
  uint32_t slot = thread->is_unrecorded ? THREAD_NO_SLOT : slot_take(runtime, state->numbering);

  if (!thread->is_unrecorded && slot == THREAD_NO_SLOT)
    return -EAGAIN;
  int result = region_map_slot(runtime, region_start(thread), *thread->fd, slot);
  if (result < 0)
    return result;
  uint32_t serial = thread->state->serial + 1;
  struct process_state moved = *state;
  moved.creator = state->thread;
  state_begin(thread, &moved, serial, place);
  *thread->state = moved;
  thread->slot = slot;
  thread->is_nudged = 0; /* a nudge on its way is for the parent */
  for (struct thread *other = regions; other; other = other->next)
    if (other != thread)
      other->is_used = 0;
  return 0;
}
