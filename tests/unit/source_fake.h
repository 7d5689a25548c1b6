/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up kernel for src/source: processors with rings and AUX areas that a test fills as the real kernel would, by
 * the layouts of <linux/perf_event.h>, and a program that a test says the life of.
 */
#ifndef SOURCE_FAKE_H
#define SOURCE_FAKE_H

#include "source/kernel.h"

#define FAKE_CPUS 3
#define FAKE_PROCESS 1000

struct fake_cpu {
  uint8_t *memory; /* page and ring */
  size_t ring_size;
  uint8_t *aux;
  size_t aux_size;
  uint64_t aux_head;
  bool is_off; /* until the source switches it on again */
};

#define FAKE_TASKS 4
#define FAKE_MARK 200 /* descriptors from here on are events of one thread alone */

/* A thread, with what is in its list of events. */
struct fake_task {
  uint32_t number;
  int stop;                     /* what is waited for: a status, or 0 */
  bool is_marked;               /* an event of its own is in it */
  bool was_marked;              /* at any time */
  const struct fake_task *like; /* it was inherited whole, and is like this one's; NULL: like none */
};

struct fake {
  struct source_kernel kernel;
  struct fake_cpu cpus[FAKE_CPUS];
  struct perf_event_attr attributes; /* that were opened last */
  unsigned opened, closed, mapped, unmapped, marked;
  struct fake_task tasks[FAKE_TASKS]; /* the first is the program */
  unsigned task_count;
  const struct fake_task *running; /* on the first processor, with branches that no record tells of yet */
  uint8_t branches[1024];
  size_t branches_size;
  uint64_t now;
  /* Is called when the source waits: fills rings. Returns false: the program has ended. */
  bool (*produce)(struct fake *fake);
  void *data;
  bool is_done;
  int status; /* of the program */
  int open_error, map_error, go_error;
  bool takes_plain_only; /* open refuses a branch stack with extras */
  size_t ring_start;     /* where rings begin to be written: near the end, to have them wrap */
  const char *pmu;       /* the one that is there, as a path of its `type` */
  size_t (*memory)(struct fake *fake, uint64_t address, void *buffer, size_t size);
};

void fake_init(struct fake *fake);
void fake_done(struct fake *fake);

/* A record with what struct sample_id says at its end. Returns false, with nothing done, if the ring has no room. */
bool fake_record(struct fake *fake, unsigned cpu, uint32_t type, uint16_t misc, const void *body, size_t size,
                 uint32_t process, uint32_t thread);

/* AUX data and its record; `size` 0 with flags is loss alone. */
bool fake_aux(struct fake *fake, unsigned cpu, const void *bytes, size_t size, uint64_t flags, uint32_t process,
              uint32_t thread);

/* The running thread starts a process, which stops at once, as one that is traced. */
void fake_fork(struct fake *fake, uint32_t number);

/* The first processor goes over to a thread, as perf_event_context_sched_out of Linux does it: AUX data ends with a
 * record only if the lists of events of the two are not alike. */
void fake_switch(struct fake *fake, uint32_t number);
void fake_jump(struct fake *fake, uint64_t from, uint64_t to); /* a BTS record of who is running */

bool fake_map(struct fake *fake, unsigned cpu, uint32_t process, uint64_t address, uint64_t size, uint64_t offset,
              const char *path);
bool fake_comm(struct fake *fake, unsigned cpu, uint32_t process, uint32_t thread, const char *name, bool is_exec);
bool fake_task(struct fake *fake, unsigned cpu, uint32_t type, uint32_t process, uint32_t thread, uint32_t parent,
               uint32_t parent_thread);

#endif
