/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared memory is a file that the programs have open. Seals keep them from truncating it. Where seals are not
 * available, a read past the new end would kill lbr with SIGBUS. The handler maps empty memory there and remembers it:
 * the reader continues with zeroes, and everything recorded until then is kept.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#include "process/process.h"
#include "process/shared.h"

/* One process at a time: the one started last. */
static uint8_t *volatile guarded;
static volatile size_t guarded_size;
static volatile sig_atomic_t is_hit;
static struct sigaction before;

/* A SIGBUS outside of the shared memory crashes lbr as usual. */
static void guard_handler(int number, siginfo_t *info, void *context)
{
  uint8_t *memory = guarded;
  size_t size = guarded_size;
  bool is_ours = memory && info->si_code > 0 && (uintptr_t)info->si_addr - (uintptr_t)memory < size;

  (void)context;
  if (is_ours)
    is_ours = mmap(memory, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                   0) == memory;
  if (is_ours)
    is_hit = 1;
  else
    sigaction(number, &before, NULL);
}

void process_guard(const struct process *process)
{
  struct sigaction action = {.sa_sigaction = guard_handler, .sa_flags = SA_SIGINFO};

  is_hit = 0;
  guarded_size = process->memory_size;
  if (!guarded)
    sigaction(SIGBUS, &action, &before);
  guarded = process->memory;
}

void process_unguard(const struct process *process)
{
  if (!guarded || guarded != process->memory)
    return;
  guarded = NULL;
  sigaction(SIGBUS, &before, NULL);
}

bool process_is_destroyed(const struct process *process)
{
  const struct process_control *control = (const struct process_control *)(const void *)process->memory;

  return (is_hit && guarded == process->memory) ||
         __atomic_load_n(&control->magic, __ATOMIC_RELAXED) != (uint32_t)PROCESS_MAGIC ||
         __atomic_load_n(&control->error, __ATOMIC_RELAXED) >= (uint32_t)PROCESS_ERRORS;
}
