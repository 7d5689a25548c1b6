/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads and processes that the application makes, and their end. A child that shares the memory (a thread, a child of
 * vfork) gets a region of its own beside the others and runs from the same cache. A child with a copy of the memory
 * (fork) has copies of the region and the cache at the same addresses; only its page and log in the shared memory are
 * exchanged.
 *
 * All signals are blocked from before the system call until the child is ready for them.
 */
#include <asm/unistd.h>
#include <linux/sched.h>

#include "process/runtime/runtime.h"

enum { SIGNAL_CHILD = 17, SIGNAL_STACK_OFF = 2, SET_MASK = 2 };

/* clone.S */
int64_t clone_call(uint64_t number, const uint64_t argument[6], struct thread *child);
_Noreturn void thread_vanish(uint32_t *is_used, uint64_t number, uint64_t status);
_Noreturn void thread_begin(struct thread *thread); /* called from there */

/* The request of the application. */
struct birth {
  uint64_t number, argument[6]; /* the system call as it is made */
  struct clone_args clone;      /* of clone3 */
  uint64_t flags;
  uint64_t stack; /* of the child, as the application gave it; 0: the same as now */
  uint32_t space; /* of a copied address space */
  uint32_t place; /* and the order number of its thread */
  bool is_clearing;
};

static uint64_t mask_set(uint64_t mask)
{
  uint64_t old = 0;

  kernel_call(__NR_rt_sigprocmask, SET_MASK, (uint64_t)&mask, (uint64_t)&old, sizeof(mask), 0, 0);
  return old;
}

/* ---- in the child ---- */

/* CLONE_CLEAR_SIGHAND is not passed to the kernel, because our handlers must stay. */
_Noreturn void thread_begin(struct thread *thread)
{
  thread_enter_born(thread);
  if (thread->is_clearing)
    signal_clear_actions(thread);
  thread->is_clearing = false;
  stamp_used(thread, STAMP_START);
  signal_init_thread(thread);
  dispatch_enter();
}

/* The child continues after SYSCALL, which leaves that address in RCX and the flags in R11. */
static void state_continue(struct process_state *state, const struct process_state *from, uint64_t stack)
{
  memcpy(state->registers, from->registers, sizeof(state->registers));
  state->rip = from->rip;
  state->flags = from->flags;
  state->registers[GPR_RAX] = 0;
  state->registers[GPR_RCX] = from->rip;
  state->registers[GPR_R11] = from->flags;
  if (stack)
    state->registers[GPR_RSP] = stack;
}

/* ---- children that share the memory ---- */

static void child_fill(struct thread *child, const struct thread *thread, const struct birth *birth)
{
  uint64_t flags = birth->flags;

  child->own_fd = *thread->fd;
  child->fd = flags & CLONE_FILES ? thread->fd : &child->own_fd;
  child->own_actions = *thread->actions;
  child->actions = flags & CLONE_SIGHAND ? thread->actions : &child->own_actions;
  child->is_clearing = birth->is_clearing;
  child->is_vfork = flags & CLONE_VFORK;
  child->signal_mask = thread->signal_mask;
  child->signal_stack = (struct signal_stack){.flags = SIGNAL_STACK_OFF};
  if (flags & CLONE_VFORK)
    child->signal_stack = thread->signal_stack;
  state_continue(child->state, thread->state, birth->stack);
}

static void birth_set_stack(struct birth *birth, const struct thread *child)
{
  uint64_t start = (uint64_t)child->state + REGION_STACK, end = (uint64_t)child->state + REGION_STACK_END;

  birth->argument[1] = birth->number == __NR_clone3 ? birth->argument[1] : end;
  birth->clone.stack = start;
  birth->clone.stack_size = end - start;
}

/* Are threads (or processes) that the thread makes recorded? If lbr is attached, it must find all of them to leave
 * them: those that are not recorded have a page then, which it ignores. */
static bool is_unwanted(const struct thread *thread, bool is_process)
{
  unsigned options = thread->runtime->options;

  return options & PROCESS_ATTACHED && (options & PROCESS_SOME || (is_process && options & PROCESS_NO_FOLLOW));
}

static bool is_unrecorded(const struct thread *thread, bool is_process)
{
  unsigned options = thread->runtime->options;

  return thread->is_unrecorded || (is_process && options & PROCESS_NO_FOLLOW && !(options & PROCESS_ATTACHED));
}

static int64_t birth_share(struct thread *thread, struct birth *birth)
{
  bool is_process = !(birth->flags & CLONE_THREAD);
  struct thread *child = thread_new_by(thread, is_unrecorded(thread, is_process));

  if (!child)
    return -EAGAIN;
  child->state->is_unwanted |= is_unwanted(thread, is_process);
  uint32_t slot = child->slot, serial = child->state->serial;
  uint64_t mask = mask_set(UINT64_MAX);
  child_fill(child, thread, birth);
  birth_set_stack(birth, child);
  int64_t result = clone_call(birth->number, birth->argument, child);
  mask_set(mask);
  if (is_failure(result)) {
    thread_free(child);
  } else if (birth->flags & CLONE_VFORK) { /* the child has ended or executed a program */
    child->slot = THREAD_NO_SLOT;
    runtime_unlock_for(thread->runtime, (uint32_t)result);
    thread_free(child);
    thread_bury(thread->runtime, slot, serial);
  }
  return result;
}

/* ---- children with a copy of the memory ---- */

/* Announces the child's space before the fork. The parent may end before the child has run, and lbr must know by then
 * that the child needs the parent's space. */
static uint32_t space_announce(struct runtime *runtime)
{
  uint32_t space = __atomic_add_fetch(&runtime->control->space_count, 1, __ATOMIC_RELAXED);

  note_put(runtime, NOTE_SPACE, space, 0, runtime->space, 0, runtime->exe, (uint32_t)text_length(runtime->exe));
  return space;
}

/* The parent continues and changes its page meanwhile: `state` was saved before the fork. */
static _Noreturn void copy_begin(struct thread *thread, const struct birth *birth, const struct process_state *state)
{
  struct runtime *runtime = thread->runtime;

  runtime->lock = 0;
  runtime->space = birth->space;
  thread->is_unrecorded = is_unrecorded(thread, true);
  if (thread->is_unrecorded)
    runtime->mode = PROCESS_LAST;
  int result = thread_move(thread, state, birth->place);
  if (result < 0)
    runtime_fail(result == -EAGAIN ? PROCESS_E_TOO_MANY_THREADS : PROCESS_E_NO_MEMORY, result, 0);
  thread->state->is_unwanted |= is_unwanted(thread, true);
  state_continue(thread->state, state, birth->stack);
  thread->is_vfork = false;
  thread->wants_leave = false; /* lbr has told the parent */
  thread->is_clearing = birth->is_clearing;
  thread_begin(thread);
}

/* The lock ensures that the copy is consistent. */
static int64_t birth_copy(struct thread *thread, struct birth *birth)
{
  const uint64_t *argument = birth->argument;
  struct process_state state = *thread->state;
  uint64_t mask = mask_set(UINT64_MAX);

  runtime_lock(thread->runtime);
  birth->space = space_announce(thread->runtime);
  birth->place = thread_place(thread->runtime);
  int64_t result =
    kernel_call(birth->number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  if (result == 0)
    copy_begin(thread, birth, &state);
  if (is_failure(result))
    note_put(thread->runtime, NOTE_NONE, birth->space, 0, 0, 0, NULL, 0);
  runtime_unlock(thread->runtime);
  mask_set(mask);
  return result;
}

/* ---- system calls ---- */

static int64_t birth_make(struct thread *thread, struct birth *birth)
{
  if (birth->flags & CLONE_VFORK && !thread->is_vfork)
    leave_before_wait(thread);
  return birth->flags & CLONE_VM ? birth_share(thread, birth) : birth_copy(thread, birth);
}

int64_t thread_call_clone(struct thread *thread, const uint64_t argument[6])
{
  struct birth birth = {.number = __NR_clone, .flags = argument[0], .stack = argument[1]};

  memcpy(birth.argument, argument, sizeof(birth.argument));
  birth.argument[1] = 0;
  return birth_make(thread, &birth);
}

int64_t thread_call_fork(struct thread *thread, bool is_vfork)
{
  const uint64_t flags = is_vfork ? CLONE_VM | CLONE_VFORK : 0;
  const uint64_t argument[6] = {flags | SIGNAL_CHILD};

  return thread_call_clone(thread, argument);
}

/* As in the kernel, bytes beyond the known size must be 0. */
static int64_t clone_read(struct thread *thread, uint64_t from, uint64_t size, struct clone_args *ret_clone)
{
  struct clone_args clone = {0};
  uint64_t known = size < sizeof(clone) ? size : sizeof(clone);

  if (size > PROCESS_PAGE)
    return -E2BIG;
  if (size < CLONE_ARGS_SIZE_VER0)
    return -EINVAL;
  if (!safe_read(thread, &clone, from, known))
    return -EFAULT;
  for (uint64_t i = known; i < size; i++) {
    uint8_t byte;

    if (!safe_read(thread, &byte, from + i, 1))
      return -EFAULT;
    if (byte)
      return -E2BIG;
  }
  *ret_clone = clone;
  return (int64_t)known;
}

/* A stack without a size, or a size without a stack, is left to the kernel to refuse. */
int64_t thread_call_clone3(struct thread *thread, const uint64_t argument[6])
{
  struct birth birth = {.number = __NR_clone3};
  int64_t size = clone_read(thread, argument[0], argument[1], &birth.clone);

  if (size < 0)
    return size;
  birth.argument[0] = (uint64_t)&birth.clone;
  birth.argument[1] = (uint64_t)size;
  birth.flags = birth.clone.flags;
  birth.is_clearing = birth.flags & CLONE_CLEAR_SIGHAND;
  if (!birth.clone.stack != !birth.clone.stack_size || (birth.is_clearing && birth.flags & CLONE_SIGHAND))
    return kernel_call(birth.number, birth.argument[0], birth.argument[1], 0, 0, 0, 0);
  birth.stack = birth.clone.stack + birth.clone.stack_size;
  birth.clone.flags &= ~(uint64_t)CLONE_CLEAR_SIGHAND;
  birth.clone.stack = birth.clone.stack_size = 0;
  return birth_make(thread, &birth);
}

/* Whether no signal can come any more. A confined thread may not be allowed to block signals. Libraries block them
 * before they end a thread, except two signals that they use internally and do not send to an ending thread. */
static bool is_deaf(const struct thread *thread)
{
  enum { SIGNAL_KILL = 9, SIGNAL_STOP = 19, SIGNAL_LIBRARY = 32 };
  const uint64_t never = 1ull << (SIGNAL_KILL - 1) | 1ull << (SIGNAL_STOP - 1) | 3ull << (SIGNAL_LIBRARY - 1);

  if (thread->runtime->is_confined)
    return (thread->signal_mask | never) == UINT64_MAX;
  mask_set(UINT64_MAX);
  return true;
}

/* The region becomes free at once, unless a waiting parent will free it, or a signal may still arrive that needs the
 * stack in it. */
_Noreturn void thread_call_exit(struct thread *thread, uint64_t status, bool is_group)
{
  uint32_t kept;
  bool is_kept = !is_deaf(thread) || thread->is_vfork,
       is_timed = stamp_is_wanted(thread) && !thread->runtime->is_confined;
  uint64_t since = is_timed ? nanoseconds_now() : 0;

  self_get_name(thread);
  if (is_group || thread->state->process == thread->state->thread) /* else other threads may open files meanwhile */
    self_get_title(thread);
  if (is_group)
    snapshot_take(thread);
  if (is_timed) /* all of this is the recorder's own work */
    stamp_put(thread, STAMP_HELD, nanoseconds_now() - since);
  thread_end(thread, is_group ? END_EXIT_GROUP : END_EXIT, status);
  thread_vanish(is_kept ? &kept : &thread->is_used, is_group ? __NR_exit_group : __NR_exit, status);
}
