/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two runs of a rule, with and without host.map: the visible state of the unit must be the same.
 */
#include <string.h>

#include "sim/run.h"

#define WITH_MAP "the same with host.map as without"

static void differ(struct run *run, const char *what)
{
  run_fail_line(run, 0, WITH_MAP, what);
}

static void compare_registers(struct run *run, const struct lb_recorder *one, const struct lb_recorder *other)
{
  for (int id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(run->cpu, (enum lb_register)id);

    for (unsigned i = 0; i < range.count; i++) {
      uint64_t value[2] = {0, 0};
      uint32_t msr = range.first + i * range.stride;
      char name[64];

      if (lb_recorder_rdmsr(one, msr, &value[0]) == lb_recorder_rdmsr(other, msr, &value[1]) && value[0] == value[1])
        continue;
      lb_cpu_register_name(run->cpu, (enum lb_register)id, i, name, sizeof(name));
      differ(run, name);
    }
  }
}

static void compare_threads(struct run *run, const struct thread *one, const struct thread *other)
{
  bool pins_differ = false;

  if (!one->is_made || !other->is_made) {
    if (one->is_made != other->is_made)
      differ(run, "the second thread");
    return;
  }
  compare_registers(run, &one->recorder, &other->recorder);
  for (unsigned i = 0; i < 4; i++)
    pins_differ |= one->pin[i].seen != other->pin[i].seen;
  if (pins_differ)
    differ(run, "pins");
  if (one->pmi.seen != other->pmi.seen)
    differ(run, "PMIs");
  if (one->trap.seen != other->trap.seen)
    differ(run, "traps");
  if (one->bus.seen != other->bus.seen ||
      (one->bus.seen && memcmp(one->messages, other->messages, one->bus.seen * sizeof(*one->messages))))
    differ(run, "bus messages");
  struct lb_messages these = lb_recorder_messages(&one->recorder), those = lb_recorder_messages(&other->recorder);
  if (these.generated != those.generated || these.stored != those.stored || these.lost != those.lost)
    differ(run, "counts of branch trace messages");
}

static void compare_memory(struct run *run, const struct areas *one, const struct areas *other)
{
  for (unsigned i = 0; i < one->count && i < other->count; i++)
    if (memcmp(one->pieces[i].bytes, other->pieces[i].bytes, one->pieces[i].size))
      differ(run, "memory");
}

/* If both runs failed in the same places, there is nothing to add. */
static void compare_failures(struct run *run, const struct run *other)
{
  bool differs = run->result.count != other->result.count;

  for (size_t i = 0; !differs && i < run->result.count; i++)
    differs = run->result.failures[i].line != other->result.failures[i].line ||
              strcmp(run->result.failures[i].got, other->result.failures[i].got);
  if (differs)
    differ(run, "failures");
}

void run_compare(struct run *run, const struct run *other)
{
  compare_failures(run, other);
  for (unsigned i = 0; i < 2; i++)
    compare_threads(run, &run->threads[i], &other->threads[i]);
  compare_memory(run, &run->memory, &other->memory);
}
