/* SPDX-License-Identifier: Apache-2.0
 *
 * What the log says about where branches go. When a part of the log is full, now and then, it is counted: how often each
 * conditional branch was taken, and where each indirect one mostly went. Then the cache is begun anew, and translate.c
 * makes paths along the ways that are taken: what follows them logs nothing.
 *
 * Threads that are still in the old part of the cache go on there, and move when a part of their own log is full.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "lastbranch/branch.h"
#include "process/runtime.h"

enum {
  HABITS = 1 << 17,        /* places in the hash table */
  FIRST_TURN = 2,          /* parts until the first time, */
  TURN_FACTOR = 6,         /* and how many times more until the next */
  TAKEN_LEAST = 16,        /* less says nothing */
  SAMPLE = 1 << 15,        /* entries that are looked at */
};

/* What a branch does. */
struct habit {
  uint64_t address; /* of the branch, 0: free */
  uint32_t taken, passed;
  uint64_t target; /* of an indirect one, mostly */
  uint32_t votes, all;
};

static struct habit *habit_slot(const struct runtime *runtime, uint64_t address)
{
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 47 & (HABITS - 1);
  for (unsigned tries = 0; tries < 16; tries++, at = (at + 1) & (HABITS - 1))
    if (runtime->habits[at].address == address || !runtime->habits[at].address)
      return &runtime->habits[at];
  return NULL;
}

int profile_init(struct runtime *runtime)
{
  int64_t memory = kernel_map(PLACE_PRIVATE, HABITS * sizeof(struct habit), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_failure(memory))
    return (int)memory;
  runtime->habits = (struct habit *)memory;
  runtime->next_profile = FIRST_TURN;
  return 0;
}

bool profile_is_taken(const struct runtime *runtime, uint64_t address)
{
  const struct habit *habit = habit_slot(runtime, address);
  return habit && habit->address && habit->taken >= TAKEN_LEAST && habit->taken > 2 * habit->passed;
}

uint64_t profile_target(const struct runtime *runtime, uint64_t address)
{
  const struct habit *habit = habit_slot(runtime, address);
  bool is_steady = habit && habit->address && habit->all >= TAKEN_LEAST && habit->votes > habit->all / 8 * 7;
  return is_steady ? habit->target : 0;
}

/* ---- counting ---- */

static void count_branch(struct runtime *runtime, const struct path_step *step, bool is_left)
{
  bool is_taken = is_left != (bool)(step->flags & PATH_FOLLOW);
  struct habit *habit = step->kind == LB_BRANCH_JCC && (step->flags & ~(PATH_FOLLOW | PATH_NONE)) == 0
                          ? habit_slot(runtime, step->from)
                          : NULL;
  if (!habit || (step->flags & PATH_NONE && !(step->flags & PATH_FOLLOW)))
    return;
  habit->address = step->from;
  habit->taken += is_taken;
  habit->passed += !is_taken;
}

/* The one that has the majority, if one has, comes out on top. */
static void count_target(struct runtime *runtime, const struct path_step *step, uint64_t target)
{
  struct habit *habit = habit_slot(runtime, step->from);
  if (!habit)
    return;
  habit->address = step->from;
  habit->all++;
  if (habit->target == target) {
    habit->votes++;
  } else if (habit->votes) {
    habit->votes--;
  } else {
    habit->target = target;
    habit->votes = 1;
  }
}

/* The steps of a path up to, not including, this one were passed. */
static void count_path(struct runtime *runtime, uint32_t head, uint32_t end)
{
  for (uint32_t number = head + 1; number < end; number++) {
    const struct path_step *step = &runtime->steps[number];
    count_branch(runtime, step, false);
    if (step->flags & PATH_OPEN)
      count_target(runtime, step, step->to);
  }
}

/* As src/trace/path.c walks; our own log is to be trusted as far as our own memory. */
static void count_entries(struct runtime *runtime, const uint32_t *entries, uint32_t count)
{
  uint32_t running = 0, open = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t entry = entries[i];
    if (entry == PATH_EVENT) {
      i += PATH_EVENT_WORDS;
      running = open = 0;
      continue;
    }
    uint32_t number = entry & ~PATH_ENTER;
    if (!number || number >= runtime->step_capacity)
      continue;
    const struct path_step *step = &runtime->steps[number];
    if (step->flags & PATH_HEAD) {
      uint32_t end = running ? running + runtime->steps[running].count : 0;
      if (!(entry & PATH_ENTER) && open) {
        count_target(runtime, &runtime->steps[open], step->from);
      } else if (!(entry & PATH_ENTER) && end) {
        count_path(runtime, running, end);
        count_target(runtime, &runtime->steps[end], step->from);
      }
      running = number;
      open = 0;
    } else {
      count_path(runtime, step->head, number);
      count_branch(runtime, step, true);
      running = step->next;
      open = step->flags & PATH_OPEN ? number : 0;
    }
  }
}

/* ---- beginning anew ---- */

/* This thread has seen that the cache was begun anew. */
static void thread_follow(struct thread *thread)
{
  thread->generation = thread->runtime->generation;
  cache_lookup_init(thread);
}

bool profile_turn(struct thread *thread, const uint32_t *entries, uint32_t count)
{
  struct runtime *runtime = thread->runtime;
  if (__atomic_add_fetch(&runtime->turns, 1, __ATOMIC_RELAXED) >= runtime->next_profile) {
    runtime_lock(runtime);
    if (runtime->turns >= runtime->next_profile) {
      runtime->next_profile *= TURN_FACTOR;
      kernel_call(__NR_madvise, (uint64_t)runtime->habits, HABITS * sizeof(struct habit), MADV_DONTNEED, 0, 0, 0);
      count_entries(runtime, entries + (count > SAMPLE ? count - SAMPLE : 0), count > SAMPLE ? SAMPLE : count);
      cache_forget(runtime);
      runtime->generation++;
    }
    runtime_unlock(runtime);
  }
  if (thread->generation == runtime->generation)
    return false;
  thread_follow(thread);
  return true;
}
