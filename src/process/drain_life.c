/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which threads are alive. A thread announces its own end, unless it is killed; a killed thread disappears
 * from /proc. Some threads are never visible in /proc under their numbers, such as those of another PID namespace. They
 * are never taken for dead, because other threads would then get their pages while they still use them.
 */

#include "process/drain.h"
#include "process/target.h"

#define LOOK_SECONDS 1.0 /* between two checks; also how long a thread must have been silent */
#define EXEC_SECONDS 2.0 /* within which a program appears after execve, or a new thread */

static bool thread_is_dead(uint32_t process, uint32_t thread)
{
  int state = target_thread_state(process, thread);

  return state == 0 || state == 'Z' || state == 'X';
}

/* ---- execve ---- */

static void exec_forget(struct process_drain *drain, uint32_t process)
{
  for (unsigned i = 0; i < DRAIN_EXECS; i++)
    if (drain->execs[i].process == process)
      drain->execs[i].process = 0;
}

static void exec_remember(struct process_drain *drain, uint32_t process)
{
  struct drain_exec *oldest = &drain->execs[0];

  for (unsigned i = 0; i < DRAIN_EXECS && oldest->process; i++)
    if (!drain->execs[i].process || drain->execs[i].since < oldest->since)
      oldest = &drain->execs[i];
  *oldest = (struct drain_exec){process, drain->now};
}

/* Whether a process that has called execve is still expected to show its new program. Forgets processes that are late
 * or dead, so that they are not looked up in each round. */
static bool exec_is_awaited(struct process_drain *drain)
{
  for (unsigned i = 0; i < DRAIN_EXECS; i++) {
    struct drain_exec *exec = &drain->execs[i];

    if (!exec->process)
      continue;
    if (drain->now - exec->since < EXEC_SECONDS && !thread_is_dead(exec->process, exec->process))
      return true;
    exec->process = 0;
  }
  return false;
}

/* ---- threads ---- */

/* A thread without a creator is a new thread only if it is the very first. Otherwise its process has executed a new
 * program. Of processes that lbr has attached to, the PID namespace is known, so that it need not look for the runtime
 * in their mappings, which takes a millisecond. */
void drain_thread_begins(struct process_drain *drain, struct drain_slot *slot, uint32_t creator)
{
  bool is_new = creator || !drain->state.threads;

  exec_forget(drain, slot->process);
  bool is_ours = drain->windows ? drain->windows[slot - drain->slots].is_ours
                                : process_is_attached(drain->process) || process_is_ours(drain->process, slot->process);
  const struct process_state *page = drain_page(drain, (uint32_t)(slot - drain->slots));
  bool has_own_numbers = page->numbering == 0, is_first = page->is_first || slot->process == slot->thread;
  slot->is_visible = is_ours && has_own_numbers && target_thread_state(slot->process, slot->thread) > 0;
  slot->moved = drain->now;
  drain->state.threads += is_new;
  drain->state.processes += is_new && is_first;
}

void drain_thread_ends(struct process_drain *drain, const struct drain_slot *slot, uint32_t end)
{
  if (end != END_EXEC || !slot->is_open)
    return;
  for (uint32_t i = 0; i < drain->high; i++)
    if (&drain->slots[i] != slot && drain->slots[i].is_open && drain->slots[i].process == slot->process)
      return; /* the new program is here already */
  exec_remember(drain, slot->process);
}

static bool slot_is_alive(const struct process_drain *drain, const struct drain_slot *slot)
{
  if (slot->view.status == THREAD_STARTING)
    return drain->now - slot->moved < EXEC_SECONDS;
  return slot->view.status == THREAD_LIVE && !slot->is_dead;
}

void drain_look_for_dead(struct process_drain *drain)
{
  bool is_time = drain->now - drain->looked > LOOK_SECONDS;

  drain->state.alive = exec_is_awaited(drain);
  for (uint32_t i = 0; i < drain->high; i++) {
    struct drain_slot *slot = &drain->slots[i];

    if (slot->view.status == THREAD_FREE)
      slot->moved = drain->now;
    if (is_time && slot->is_open && slot->is_visible && drain->now - slot->moved > LOOK_SECONDS)
      slot->is_dead |= thread_is_dead(slot->process, slot->thread);
    drain->state.alive += slot_is_alive(drain, slot);
  }
  if (is_time)
    drain->looked = drain->now;
}
