/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the runtime, which shares a process with the application: no libc, no vector registers (they are the
 * application's), no relocations (nobody would apply them), errors end the process by runtime_fail.
 *
 * Flow: start.S -> main.c (stack, region) -> load.c (the program) -> dispatch.c, which finds or translates
 * (translate.c, emit.c) the next block in the cache (cache.c) and makes the system calls (syscall.c), each time the
 * application leaves the cache.
 */
#ifndef PROCESS_RUNTIME_H
#define PROCESS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/process.h"
#include "process/shared.h"

enum { GPR_RAX, GPR_RCX, GPR_RDX, GPR_RBX, GPR_RSP, GPR_RBP, GPR_RSI, GPR_RDI, GPR_R8, GPR_R9, GPR_R10, GPR_R11 };

/* ---- executable memory of the application (range.c) ---- */

enum { RANGES = 4096 };

struct range {
  uint64_t start, end;
};

/* Sorted, apart from each other. */
struct range_list {
  unsigned count;
  struct range ranges[RANGES];
};

/* Returns false when the list is full. */
bool range_add(struct range_list *list, uint64_t start, uint64_t end);

/* Returns whether anything of it was there; a list too full to split a range loses the upper part of it. */
bool range_remove(struct range_list *list, uint64_t start, uint64_t end);

/* End of the range that holds the address, or 0. */
uint64_t range_end(const struct range_list *list, uint64_t address);

/* ---- the code cache (cache.c) ---- */

enum { CACHE_SIZE = 64 << 20, CACHE_INDEX = 1 << 20, CACHE_BLOCK_MOST = 16384 };

/* The exit's bytes end with this, unaligned. */
struct exit {
  uint64_t target; /* address in the application: of the branch, or behind the system call */
  uint32_t site;   /* cache offset of the rel32 that leads here, or 0 */
  uint32_t reason; /* enum exit_reason */
};

enum exit_reason { EXIT_DIRECT, EXIT_INDIRECT, EXIT_SYSCALL, EXIT_INSTRUCTION, EXIT_GS };

struct cache_entry {
  uint64_t address; /* in the application; 0: free */
  uint32_t direct;  /* cache offsets of the block's two entries */
  uint32_t indirect;
};

struct cache {
  uint8_t *code;
  uint32_t used;
  uint32_t count;
  uint32_t generation; /* counts flushes */
  struct cache_entry *index;
};

struct runtime;

/* Allocates. Returns 0 or -errno. */
int cache_init(struct cache *cache);

/* The block that starts at the address, or NULL. */
const struct cache_entry *cache_find(const struct cache *cache, uint64_t address);

/* Flushes when there is no room for one more block. */
void cache_make_room(struct runtime *runtime);

void cache_add(struct cache *cache, const struct cache_entry *entry);

/* Forgets all translations. Only from the dispatcher: nothing of the cache is running then. */
void cache_flush(struct runtime *runtime);

/* Lets indirect branches find the block without leaving the cache. */
void cache_publish(struct runtime *runtime, const struct cache_entry *entry);

/* ---- bytes of instructions (emit.c) ---- */

struct emitter {
  uint8_t *at;
};

void emit_byte(struct emitter *emitter, unsigned byte);
void emit_u32(struct emitter *emitter, uint32_t value);
void emit_u64(struct emitter *emitter, uint64_t value);
void emit_bytes(struct emitter *emitter, const void *bytes, size_t size);

/* None of these touches flags. A register is below 8, a slot an offset from GS. */
void emit_spill(struct emitter *emitter, unsigned reg, uint32_t slot);
void emit_reload(struct emitter *emitter, unsigned reg, uint32_t slot);
void emit_address(struct emitter *emitter, unsigned reg, uint64_t address);
void emit_log(struct emitter *emitter, uint32_t id);
void emit_push(struct emitter *emitter, uint64_t value);

/* JMP to a rel32 that is patched later: returns where the rel32 is. */
uint8_t *emit_jump(struct emitter *emitter);
void emit_patch(uint8_t *site, const uint8_t *to);

/* From RCX = target address in the application, with RCX spilled, to the target's code; falls through with
 * RDX - RCX = target, both spilled, if the table does not know it. */
void emit_lookup(struct emitter *emitter);

/* Leaves the cache. `cache` is its start. */
void emit_exit(struct emitter *emitter, const uint8_t *cache, const struct exit *exit);

/* ---- blocks (translate.c, copy.c) ---- */

/* Translates the block at the address, which is executable, and gives it a number. */
const struct cache_entry *translate_block(struct runtime *runtime, uint64_t address);

/* Why an instruction cannot stand in the cache; EXIT_DIRECT: it can. */
enum exit_reason copy_check(const struct code *code, const uint8_t *bytes);

/* Copies an instruction that is no branch from `address` so that it does the same at its new place. */
void copy_plain(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

/* MOV into RCX of what an indirect jump or call goes to. */
void copy_target(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

/* ---- the rest ---- */

/* The kernel's struct sigaction. */
struct signal_action {
  uint64_t handler, flags, restorer, mask;
};

enum { SIGNALS = 64 };

struct runtime {
  struct process_control *control;
  struct process_block *table;
  struct process_state *state; /* at the start of the region that GS points to */
  struct cache cache;
  struct range_list executable;
  struct signal_action actions[SIGNALS + 1];
  uint32_t ring_size;
  uint32_t block_capacity;
  uint32_t next_id;
  bool is_child;   /* of a fork: its branches are logged where nobody reads them */
  const char *exe; /* absolute path of the program */
};

/* What the program needs to be started. */
struct image {
  uint64_t entry, base;
  uint64_t headers, header_count, header_size;
};

/* load.c: maps the program and its interpreter, which may be the program itself. Errors end the process. */
void load_program(struct runtime *runtime, const char *path, struct image *ret_program, struct image *ret_start);

/* main.c: maps the log ring of a file into the region. Returns 0 or -errno. */
int region_map_ring(const struct runtime *runtime, int fd, uint64_t ring_offset);

/* syscall.c: makes the system call that the application's registers ask for. `next` is the address behind it. */
void syscall_make(struct runtime *runtime, uint64_t next);

/* dispatch.c: called by cache_leave on the runtime's stack; returns when state->resume says where to go on. */
void dispatch(void);
void dispatch_to(struct runtime *runtime, uint64_t address);

_Noreturn void runtime_fail(enum process_error error, int system_error, uint64_t address);

/* start.S */
void cache_leave(void);
_Noreturn void cache_enter(void);
void signal_enter(void);
extern uint8_t interpreter_place[INTERPRETER_PLACE];

/* Called from start.S. */
_Noreturn void runtime_main(uint64_t *stack);
_Noreturn void signal_arrived(uint64_t number);

extern struct runtime the_runtime;

/* ---- the kernel ---- */

static inline int64_t kernel_call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                  uint64_t f)
{
  register uint64_t r10 __asm__("r10") = d;
  register uint64_t r8 __asm__("r8") = e;
  register uint64_t r9 __asm__("r9") = f;
  int64_t result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static inline int64_t kernel_map(uint64_t address, uint64_t size, unsigned protection, unsigned flags, int fd,
                                 uint64_t offset)
{
  return kernel_call(9, address, size, protection, flags, (uint64_t)fd, offset);
}

/* memory.c. The compiler may call the first two by itself. */
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
size_t text_length(const char *text);
bool text_is(const char *text, const char *other);

static inline bool is_failure(int64_t result)
{
  return result < 0 && result >= -4095;
}

#endif
