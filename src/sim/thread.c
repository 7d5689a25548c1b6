/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread of the core: its recorder, and the host, which answers the recorder's calls and counts them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run.h"

/* ---- the host ---- */

static int host_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  const struct thread *thread = data;
  const unsigned char *from = areas_at(&thread->run->memory, linear, size);

  if (!from)
    return -EFAULT;
  memcpy(bytes, from, size);
  return 0;
}

static int host_write(void *data, uint64_t linear, const void *bytes, size_t size)
{
  const struct thread *thread = data;
  unsigned char *to = areas_at(&thread->run->memory, linear, size);

  if (!to)
    return -EFAULT;
  memcpy(to, bytes, size);
  return 0;
}

static void *host_map(void *data, uint64_t linear, size_t size)
{
  const struct thread *thread = data;

  assert((linear & 0xFFF) + size <= 0x1000); /* the recorder guarantees this */
  return areas_at(&thread->run->memory, linear, size);
}

static void host_pmi(void *data)
{
  struct thread *thread = data;

  thread->pmi.seen++;
  run_note(thread->run, "PMI requested");
}

static void host_bus(void *data, const struct lb_message *message)
{
  struct thread *thread = data;
  struct lb_message *added = array_append(&thread->messages, &thread->bus.seen, &thread->capacity);

  if (!added) {
    thread->run->error = -ENOMEM;
    return;
  }
  *added = *message;
  run_note(thread->run, "on the bus: 0x%llx -> 0x%llx", (unsigned long long)message->from,
           (unsigned long long)message->to);
}

static void host_pin(void *data, unsigned pin)
{
  struct thread *thread = data;

  assert(pin < 4);
  thread->pin[pin].seen++;
  run_note(thread->run, "pin BP%u#", pin);
}

static void host_trap(void *data)
{
  struct thread *thread = data;

  thread->trap.seen++;
  run_note(thread->run, "single-step trap");
}

/* ---- the thread ---- */

static uint32_t run_options(const struct run *run)
{
  uint32_t options = 0;

  for (unsigned i = 0; i < LB_OPTIONS; i++)
    options |= (uint32_t)cpu_set_has(&run->sim->options[i], run->index) << i;
  return options;
}

int thread_make(struct thread *thread, bool has_map)
{
  struct lb_host host = {
    .data = thread,
    .read = host_read,
    .write = host_write,
    .map = has_map ? host_map : NULL,
    .pmi = host_pmi,
    .bus = host_bus,
    .pin = host_pin,
    .trap = host_trap,
  };
  int r = lb_recorder_init(&thread->recorder, thread->run->cpu, &host, run_options(thread->run));

  if (r < 0)
    return r;
  thread->is_made = true;
  thread_set_mode(thread, lb_cpu_has(thread->run->cpu, LB_FEATURE_LONG_MODE) ? CODE_64 : CODE_32);
  return 0;
}

void thread_done(struct thread *thread)
{
  free(thread->messages);
}

void thread_set_mode(struct thread *thread, enum code_mode mode)
{
  thread->mode = mode;
  lb_recorder_long_mode(&thread->recorder, mode == CODE_64 || mode == CODE_COMPAT);
}
