/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorder that stands in for the registers of a real processor: every read and write is a step, of which one can be
 * made to fail, or to be interrupted by a signal. For the tests of src/hardware/live.h.
 */
#ifndef TESTS_LIVE_RIG_H
#define TESTS_LIVE_RIG_H

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "hardware/hardware.h"

#define STEP_NONE UINT32_MAX
#define REGISTERS_MAX 512

struct silicon {
  struct lb_recorder unit;
  unsigned steps;         /* reads and writes so far */
  unsigned writes;        /* of these */
  unsigned failing;       /* the step that fails; STEP_NONE: none */
  bool fails_on;          /* all reads from there on fail, too */
  int error;              /* with that */
  unsigned interrupted;   /* the step with the signal; STEP_NONE: none */
  int signal;             /* that it gets, */
  bool is_behind;         /* behind the access, not before it */
  unsigned signals_again; /* so many times more, at the steps that follow */
  uint32_t forgetful;     /* a register that takes writes and forgets them; 0: none */
};

static volatile int *volatile nowhere = (volatile int *)8;

/* As the kernel answers: #GP is EIO. */
static int silicon_error(enum lb_msr_answer answer)
{
  return answer == LB_MSR_OK ? 0 : -EIO;
}

static void silicon_signal(struct silicon *silicon, unsigned step, bool is_behind)
{
  if (step < silicon->interrupted || step > silicon->interrupted + silicon->signals_again ||
      is_behind != silicon->is_behind)
    return;
  if (silicon->signal == SIGSEGV)
    *nowhere = 1; /* a real one */
  raise(silicon->signal);
}

static int silicon_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  struct silicon *silicon = data;
  unsigned step = silicon->steps++;
  uint64_t value = 0;
  int r;

  silicon_signal(silicon, step, false);
  if (step == silicon->failing || (silicon->fails_on && step > silicon->failing))
    return silicon->error;
  r = silicon_error(lb_recorder_rdmsr(&silicon->unit, msr, &value));
  silicon_signal(silicon, step, true);
  if (r >= 0)
    *ret_value = value;
  return r;
}

static int silicon_write(void *data, uint32_t msr, uint64_t value)
{
  struct silicon *silicon = data;
  unsigned step = silicon->steps++;
  int r = 0;

  silicon_signal(silicon, step, false);
  silicon->writes++;
  if (step == silicon->failing)
    return silicon->error;
  if (!silicon->forgetful || msr != silicon->forgetful)
    r = silicon_error(lb_recorder_wrmsr(&silicon->unit, msr, value));
  silicon_signal(silicon, step, true);
  return r;
}

static inline struct hardware_registers silicon_registers(struct silicon *silicon)
{
  return (struct hardware_registers){.data = silicon, .read = silicon_read, .write = silicon_write};
}

/* As made: of this CPU, with nothing that fails. */
static inline void silicon_init(struct silicon *silicon, const struct lb_cpu *cpu)
{
  memset(silicon, 0, sizeof(*silicon));
  lb_recorder_init(&silicon->unit, cpu, NULL, 0);
  lb_recorder_long_mode(&silicon->unit, lb_cpu_has(cpu, LB_FEATURE_LONG_MODE));
  silicon->failing = silicon->interrupted = STEP_NONE;
}

static inline void silicon_calm(struct silicon *silicon)
{
  silicon->steps = silicon->writes = 0;
  silicon->failing = silicon->interrupted = STEP_NONE;
  silicon->fails_on = false;
}

/* Every register of the machinery that this CPU has. */
struct all_registers {
  unsigned count;
  uint64_t values[REGISTERS_MAX];
};

static inline void silicon_look(const struct silicon *silicon, struct all_registers *ret_all)
{
  const struct lb_cpu *cpu = silicon->unit.cpu;

  memset(ret_all, 0, sizeof(*ret_all));
  for (unsigned id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(cpu, (enum lb_register)id);

    for (unsigned i = 0; i < range.count && ret_all->count < REGISTERS_MAX; i++)
      lb_recorder_rdmsr(&silicon->unit, range.first + i * range.stride, &ret_all->values[ret_all->count++]);
  }
}

#endif
