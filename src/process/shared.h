/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that the runtime inside the application shares with the parent: a file of
 *
 *   control page | state page of the thread | block table | log ring
 *
 * It stays readable however the application ends. The parent trusts none of it: the application can write to it.
 */
#ifndef PROCESS_SHARED_H
#define PROCESS_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "process/state.inc"

enum {
  PROCESS_PAGE = 4096,
  PROCESS_MAGIC = 0x3152424C, /* "LBR1" */
  PROCESS_STATE_OFFSET = PROCESS_PAGE,
  PROCESS_TABLE_OFFSET = 2 * PROCESS_PAGE,
  PROCESS_RING_LEAST = 1 << 22, /* it is mapped 1024 times then, and Linux allows 65530 mappings */
  PROCESS_RING_MOST = 1 << 30,
};

/* Why the runtime gave up, in the control page. */
enum process_error {
#define PROCESS_ERROR(name, status, text) PROCESS_E_##name,
#include "process/error.def"
#undef PROCESS_ERROR
  PROCESS_ERRORS,
};

struct process_control {
  uint32_t magic;
  uint32_t block_capacity; /* a multiple of the blocks that fill whole pages */
  uint32_t ring_size;      /* bytes: a power of two */
  uint32_t block_count;    /* entries of the table that are whole; the first is never used */
  uint32_t error;          /* enum process_error */
  int32_t system_error;    /* the -errno behind it, or 0 */
  uint64_t address;        /* in the application, where it happened */
  uint64_t number;         /* of the system call or signal, if one is to blame */
};

/* One block: entered at its start only, left at its end only. Its place in the table is its id in the log. */
struct process_block {
  uint64_t start;
  uint64_t last;   /* address of the last instruction */
  uint64_t end;    /* address behind it */
  uint64_t target; /* of a direct branch */
  uint32_t id;
  uint8_t flow; /* enum code_flow of the last instruction; CODE_PLAIN: it runs into the next block */
  uint8_t unused[27];
};

struct process_state {
  uint64_t log;
  uint64_t exit;
  uint64_t leave;
  uint64_t resume;
  uint64_t stack;
  uint64_t flags;
  uint64_t spill_rcx, spill_rdx, spill;
  uint64_t target, is_pending;
  uint64_t unused[5];
  uint64_t registers[16];
};

_Static_assert(sizeof(struct process_block) == 64 && PROCESS_PAGE % sizeof(struct process_block) == 0, "");
_Static_assert(offsetof(struct process_state, log) == STATE_LOG, "");
_Static_assert(offsetof(struct process_state, exit) == STATE_EXIT, "");
_Static_assert(offsetof(struct process_state, leave) == STATE_LEAVE, "");
_Static_assert(offsetof(struct process_state, resume) == STATE_RESUME, "");
_Static_assert(offsetof(struct process_state, stack) == STATE_STACK, "");
_Static_assert(offsetof(struct process_state, flags) == STATE_FLAGS, "");
_Static_assert(offsetof(struct process_state, spill_rcx) == STATE_SPILL_RCX, "");
_Static_assert(offsetof(struct process_state, spill_rdx) == STATE_SPILL_RDX, "");
_Static_assert(offsetof(struct process_state, spill) == STATE_SPILL, "");
_Static_assert(offsetof(struct process_state, target) == STATE_TARGET, "");
_Static_assert(offsetof(struct process_state, is_pending) == STATE_PENDING, "");
_Static_assert(offsetof(struct process_state, registers) == STATE_REGISTERS, "");
_Static_assert(sizeof(struct process_state) <= REGION_LOOKUP_FROM, "");

static inline uint64_t process_ring_offset(uint32_t block_capacity)
{
  uint64_t end = PROCESS_TABLE_OFFSET + (uint64_t)block_capacity * sizeof(struct process_block);
  return (end + PROCESS_PAGE - 1) & ~(uint64_t)(PROCESS_PAGE - 1);
}

#endif
