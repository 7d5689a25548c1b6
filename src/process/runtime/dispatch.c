/* SPDX-License-Identifier: Apache-2.0
 *
 * The application has left the cache: find or translate the block that comes next, and tie it to the place that it came
 * from, so that it need not leave there again.
 */
#include "process/runtime.h"

static const uint64_t vsyscall_page = 0xFFFFFFFFFF600000;

/* The block at the address, or NULL: nothing may be executed there. */
static const struct cache_entry *block_at(struct runtime *runtime, uint64_t address)
{
  const struct cache_entry *entry = cache_find(&runtime->cache, address);
  if (entry)
    return entry;
  if (address - vsyscall_page < PROCESS_PAGE)
    runtime_fail(PROCESS_E_VSYSCALL, 0, address);
  return range_end(&runtime->executable, address) ? translate_block(runtime, address) : NULL;
}

static void set_pending(struct runtime *runtime, uint64_t address)
{
  runtime->state->target = address;
  __atomic_store_n(&runtime->state->is_pending, 1, __ATOMIC_RELEASE);
}

/* Where nothing may be executed the application goes by itself, and gets the fault that it would have got. The pending
 * target stays, for no block will log it. */
static const struct cache_entry *go(struct runtime *runtime, uint64_t address)
{
  struct process_state *state = runtime->state;
  set_pending(runtime, address);
  const struct cache_entry *entry = block_at(runtime, address);
  state->resume = entry ? (uint64_t)(runtime->cache.code + entry->direct) : address;
  if (entry)
    __atomic_store_n(&state->is_pending, 0, __ATOMIC_RELEASE);
  return entry;
}

void dispatch_to(struct runtime *runtime, uint64_t address)
{
  go(runtime, address);
}

static void leave_direct(struct runtime *runtime, const struct exit *exit)
{
  uint32_t generation = runtime->cache.generation;
  const struct cache_entry *entry = go(runtime, exit->target);
  if (entry && generation == runtime->cache.generation)
    emit_patch(runtime->cache.code + exit->site, runtime->cache.code + entry->direct);
}

/* emit_lookup says where the target is. */
static void leave_indirect(struct runtime *runtime)
{
  struct process_state *state = runtime->state;
  uint64_t target = state->registers[GPR_RDX] - state->registers[GPR_RCX];
  state->registers[GPR_RCX] = state->spill_rcx;
  state->registers[GPR_RDX] = state->spill_rdx;
  const struct cache_entry *entry = go(runtime, target);
  if (entry)
    cache_publish(runtime, entry);
}

void dispatch(void)
{
  struct runtime *runtime = &the_runtime;
  struct exit exit;
  memcpy(&exit, runtime->cache.code + (uint32_t)runtime->state->exit, sizeof(exit));
  switch (exit.reason) {
  case EXIT_DIRECT:
    leave_direct(runtime, &exit);
    break;
  case EXIT_INDIRECT:
    leave_indirect(runtime);
    break;
  case EXIT_SYSCALL:
    set_pending(runtime, exit.target); /* it may never come back */
    syscall_make(runtime, exit.target);
    go(runtime, exit.target);
    break;
  case EXIT_GS:
    runtime_fail(PROCESS_E_GS, 0, exit.target);
  default:
    runtime_fail(PROCESS_E_INSTRUCTION, 0, exit.target);
  }
}
