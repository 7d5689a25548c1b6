/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that is stepped from branch to branch with ptrace(2): its state between two stops, and what the step that
 * has ended executed. step.c answers the stops.
 */
#ifndef SOURCE_STEP_TRACEE_H
#define SOURCE_STEP_TRACEE_H

#ifdef __x86_64__
#include <sys/user.h>

#include "source/source_inside.h"
#include "source/step_block.h"
#include "source/step_maps.h"

struct tracee {
  int id;
  uint32_t process;
  bool has_stopped, has_begun;     /* it may stop before its creator reports it */
  bool is_single;                  /* the last step was a single instruction */
  struct user_regs_struct before;  /* of the last stop */
  struct task_instruction current; /* the instruction that a single step executes */
  struct step_block block;
  uint64_t start; /* of the block */
  uint64_t call;  /* where it continues after the system call of the last step; 0: there was none */
  int signal, code;
  uint64_t address;
  uint64_t stopped; /* when it stopped last */
  unsigned stops;   /* since its last stamp */
};

struct step_source {
  struct id_table tracees; /* struct tracee */
  struct step_maps maps;
};

static inline struct step_source *step_of(const struct source *source)
{
  return source->data;
}

/* The thread with this number, which is created if necessary. NULL without memory. */
struct tracee *tracee_get(struct source *source, int id);

/* Its entry in the task table. NULL: there are too many, or there is no memory. */
struct task_thread *tracee_thread(struct source *source, const struct tracee *tracee);

/* Lets it run up to the next branch, from these registers on, with a signal or 0. */
void tracee_step(struct source *source, struct tracee *tracee, const struct user_regs_struct *registers, int signal);

/* The step has ended with these registers: records the branch that it took. */
void tracee_take(struct source *source, struct tracee *tracee, const struct user_regs_struct *registers);

/* It has run up to here without a branch, or with a system call that never returns. */
void tracee_settle(struct source *source, struct tracee *tracee, uint64_t rip);

/* Lets it continue as if it had not been traced. */
void tracee_release(const struct tracee *tracee);

#endif
#endif
