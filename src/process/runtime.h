/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the runtime, which shares a process with the application: no libc, no vector registers (they are the
 * application's), no relocations (nobody would apply them), errors end the process by runtime_fail.
 *
 * Flow: start.S -> main.c (stack, shared memory) -> load.c (the program) -> dispatch.c, which finds or translates
 * (translate.c, copy.c, emit.c) the next path in the cache (cache.c), delivers signals (signal.c) and makes the system
 * calls (syscall.c, thread.c, exec.c), each time the application leaves the cache.
 *
 * Threads: everything in struct runtime is guarded by its lock, except where it says otherwise. A thread that holds it
 * is in the runtime, and there signals only wait (signal.c), so nothing interrupts it.
 */
#ifndef PROCESS_RUNTIME_H
#define PROCESS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/process.h"
#include "process/shared.h"

/* Where what is ours lies: below what the kernel maps by itself, and where the sanitizers have no shadows. */
#define PLACE_START 0x7E8000000000
#define PLACE_REGIONS 0x7EA000000000
#define PLACE_END 0x7EC000000000

#pragma GCC visibility push(hidden) /* declarations too: nothing may need the table of global offsets */

enum { GPR_RAX, GPR_RCX, GPR_RDX, GPR_RBX, GPR_RSP, GPR_RBP, GPR_RSI, GPR_RDI, GPR_R8, GPR_R9, GPR_R10, GPR_R11 };

struct runtime;
struct thread;

/* ---- executable memory of the application (range.c) ---- */

enum { RANGES = 8192 };

enum range_flag {
  RANGE_WRITABLE = 1 << 0, /* the application may write there: pages that hold translated code are protected */
  RANGE_SHARED = 1 << 1,   /* the same memory may be written through other addresses */
  RANGE_FILE = 1 << 2,     /* its bytes are in a file that a NOTE_MAP names */
};

struct range {
  uint64_t start, end;
  uint32_t flags; /* enum range_flag */
};

/* Sorted, apart from each other; neighbours with the same flags are one. */
struct range_list {
  unsigned count;
  struct range ranges[RANGES];
};

/* Replaces what was there. Returns false when the list is full. */
bool range_add(struct range_list *list, uint64_t start, uint64_t end, uint32_t flags);

/* Returns whether anything of it was there; a list too full to split a range loses the upper part of it. */
bool range_remove(struct range_list *list, uint64_t start, uint64_t end);

/* The range that holds the address, or NULL. */
const struct range *range_find(const struct range_list *list, uint64_t address);

/* ---- the code cache (cache.c) ---- */

enum {
  CACHE_AREAS = 8,
  CACHE_AREA_SIZE = 256 << 20,
  CACHE_UNITS = 1 << 22,
  CACHE_INDEX = 1 << 23,
  CACHE_PLACES = 1 << 27,
  CACHE_PATH_MOST = 16384, /* bytes of one unit */
  CACHE_ROOM = 8,          /* bytes before a unit and its edge, for what makes it stale */
  CACHE_GRAIN = 16,        /* units are longer than this on average */
};

/* Memory for translated code. There are several, because what names memory relative to RIP wants to be near it. */
struct area {
  uint8_t *code; /* NULL: not there */
  uint64_t used, size; /* of the first part, where units are */
  uint64_t cold, cold_end; /* the second part: what runs seldom */
  uint32_t *units;  /* numbers of its units, in the order of their code */
  uint32_t unit_count;
};

/* A path in the cache. */
struct unit {
  uint64_t address; /* in the application, of its first instruction */
  uint8_t *code;    /* its entry */
  uint8_t *indirect; /* entry for indirect branches, which compares and logs the head; NULL: none was needed yet */
  const uint8_t *edge; /* before its entry, if it was made for an exit: where that goes */
  uint32_t size;       /* bytes from its entry */
  uint32_t head;     /* number of its head among the steps */
  uint32_t place;    /* of its first instruction among the places */
  uint16_t place_count;
  uint8_t is_stale;   /* its code has changed: its entry leads to the dispatcher, or to the unit that replaced it */
  uint8_t uses_r11;
  uint8_t is_for_edge; /* the edge before its entry is of the exit that it was made for */
  uint8_t is_checked; /* its code may change unseen: nothing is tied to it, and its bytes are compared each time */
  uint32_t older;     /* number + 1 of the unit that was at this address before, 0: none */
  uint32_t byte_count; /* of a checked unit */
  const uint8_t *bytes; /* as they were when it was translated */
};

/* One instruction of the application in a unit, in the order of the code. */
struct place {
  uint16_t code;   /* offset of its translation from the unit's entry */
  uint8_t length;  /* of the instruction */
  uint8_t spilled; /* registers that are in their slots while it runs, from the 9th byte on: enum place_spill */
};

enum place_spill {
  PLACE_RCX = 1 << 0,
  PLACE_RDX = 1 << 1,
  PLACE_RSI = 1 << 2, /* in spill */
  PLACE_RDI = 1 << 3,
  PLACE_RBX = 1 << 4,
  PLACE_R11 = 1 << 6, /* R11 is the log's pointer: the application's is in state->registers */
  PLACE_BRANCH = 1 << 5, /* it is a step of the path, which a unit passes if it goes on behind it */
};

/* Where in the application an address in the cache is. */
struct location {
  uint64_t address; /* of the instruction */
  unsigned passed;  /* steps of the path before it */
  unsigned spilled; /* enum place_spill: registers that are not in the processor there */
  bool is_boundary; /* nothing of the instruction was done yet: the processor holds the application's registers */
  bool is_stub;     /* in the code that leaves a path, or between two: no instruction */
};

/* Is the address in the cache at all? Takes no lock. */
bool cache_has(const struct runtime *runtime, uint64_t pc);

/* Takes no lock: may be called in a signal handler whose thread was in the cache. Returns false when it is not in a
 * unit. */
bool cache_locate(const struct runtime *runtime, uint64_t pc, struct location *ret_location);

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

/* R11 is the log's pointer wherever units begin and end, and the application's is in its slot. A unit that uses R11
 * gives it back at its entry and takes it where it leaves; meanwhile the pointer is in state->log. */
void emit_take_r11(struct emitter *emitter);
void emit_give_r11(struct emitter *emitter);

/* Logs an entry; R11 is the log's pointer. */
void emit_log(struct emitter *emitter, uint32_t entry);

void emit_jump(struct emitter *emitter, const uint8_t *to);
void emit_patch(uint8_t *site, const uint8_t *to);
void emit_leave(struct emitter *emitter, uint32_t slot); /* JMP *%gs:slot */
void emit_exit_number(struct emitter *emitter, uint32_t number); /* into state->exit */

/* RCX holds the target, it and RDX are spilled: goes to the entry for indirect branches that the table has for it. */
void emit_lookup(struct emitter *emitter);
void emit_compare(struct emitter *emitter, uint64_t address); /* RCX becomes 0 if it is the address; RDX is lost */

/* ---- the application's instructions (copy.c) ---- */

/* What a translation must do with an instruction that it cannot copy. */
enum copy_verdict { COPY_FINE, COPY_REFUSE, COPY_GS };

enum copy_verdict copy_check(const struct code *code, const uint8_t *bytes);

/* Returns which registers are in their slots meanwhile. */
bool copy_uses_r11(const struct code *code, const uint8_t *bytes);
unsigned copy_plain(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

void copy_far(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

/* Loads the target of an indirect branch into RCX, which is spilled. */
void copy_target(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

/* ---- the log (log.c); only of the thread that calls ---- */

/* Writes an entry. */
void log_put(struct thread *thread, uint32_t entry);

/* PATH_EVENT; kind LB_BRANCH_KINDS: goes on nowhere. */
void log_event(struct thread *thread, unsigned kind, unsigned passed, uint64_t from, uint64_t to);

/* The log is at the page behind a part, at this address: goes on in the next part, and in mode PROCESS_ALL waits until
 * the parent has read it. Returns where the next entry goes, or 0: the address is not behind a part of this thread. */
uint64_t log_turn(struct thread *thread, uint64_t address);

/* ---- what branches mostly do (profile.c) ---- */

int profile_init(struct runtime *runtime); /* returns 0 or -errno */

/* Of the branch at this address, with the lock held: it is mostly taken; it mostly goes there, or 0. */
bool profile_is_taken(const struct runtime *runtime, uint64_t address);
uint64_t profile_target(const struct runtime *runtime, uint64_t address);

/* A part of the thread's log is full of these. Returns true: the cache was begun anew, and the thread is to leave what it
 * runs. Takes the lock. */
bool profile_turn(struct thread *thread, const uint32_t *entries, uint32_t count);

/* ---- notes (note.c) ---- */

void note_put(struct runtime *runtime, enum process_note_type type, uint32_t space, uint64_t start, uint64_t end,
              uint64_t offset, const void *bytes, uint32_t length);

/* ---- signals (signal.c: how they come; signal_deliver.c; signal_call.c: the system calls) ---- */

enum { SIGNALS = 65, SIGNALS_KEPT = 6, SIGNAL_VECTORS_MOST = 16384 };

struct signal_action {
  uint64_t handler, flags, restorer, mask;
};

/* What the application has asked for. Shared by the threads of a process; a child of vfork has its own. */
struct signal_table {
  struct signal_action actions[SIGNALS];
};

/* The kernel's stack_t, siginfo_t and struct ucontext. */
struct signal_stack {
  uint64_t start;
  uint32_t flags;
  uint32_t unused;
  uint64_t size;
};

struct signal_info {
  int32_t number, error, code, unused;
  uint64_t address; /* or something else: it depends */
  uint64_t rest[13];
};

struct signal_context {
  uint64_t flags, link;
  struct signal_stack stack;
  uint64_t general[16]; /* R8 to R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP */
  uint64_t rip, rflags, segments, error, trap, old_mask, cr2;
  uint64_t vectors; /* address of what XSAVE saved, 0: nothing */
  uint64_t reserved[8];
  uint64_t mask;
};

_Static_assert(sizeof(struct signal_info) == 128 && sizeof(struct signal_context) == 304, "");

/* A signal that waits until the application is at a place where it can be delivered. While there is one, the kernel
 * blocks all others but those that an instruction can cause. */
struct signal_pending {
  uint32_t number; /* 0: none */
  bool is_fault;   /* of an instruction of the application: it cannot be blocked or ignored */
  bool is_trap;    /* the fault comes behind the instruction, which state->rip is the address of */
  struct signal_info info;
  struct signal_context context; /* from the newest frame of the kernel, */
  uint32_t vector_size;          /* and the vector registers: the application's, until a handler or rt_sigreturn */
  uint8_t vectors[SIGNAL_VECTORS_MOST] __attribute__((aligned(64)));
};

/* Takes over all signals. At the start of a program. */
void signal_init(struct runtime *runtime, struct thread *thread);

/* For a new thread or process, in itself, before it runs anything of the application and while all signals are blocked:
 * its signal stack, no signal waits, and what thread->signal_mask says is blocked. */
void signal_init_thread(struct thread *thread);

/* Handlers become SIG_DFL in thread->actions and in the kernel: CLONE_CLEAR_SIGHAND. */
void signal_clear_actions(struct thread *thread);

/* Before execve: what the next program inherits is in the kernel as the application wants it. All the runtime may do
 * between the two is system calls. The second undoes it if execve failed. */
void signal_exec_begin(struct thread *thread);
void signal_exec_undo(struct thread *thread);

/* Called from start.S by the kernel's frame on the signal stack. */
void signal_arrived(uint64_t number, struct signal_info *info, struct signal_context *context);

/* Called from start.S when state->pending is not 0, all of the application's registers in the state: delivers what
 * waits. Returns if the application goes on at state->resume. */
void signal_deliver(void);

/* The system calls that are about signals. Return what the application gets in RAX, or -EINTR_AGAIN. */
int64_t signal_call_action(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_mask(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_stack(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_pending(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_suspend(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_wait(struct thread *thread, const uint64_t argument[6]); /* rt_sigtimedwait */

/* Those that wait with another mask: ppoll, pselect6, epoll_pwait, epoll_pwait2, io_pgetevents. */
int64_t signal_call_masked(struct thread *thread, uint64_t number, const uint64_t argument[6]);

/* rt_sigreturn; state->exit is the number of its step, which has not been logged. */
_Noreturn void signal_call_return(struct thread *thread);

/* ---- a thread (thread.c, clone.S: the system calls; region.c: its memory) ---- */

/* At REGION_PRIVATE of its region. */
struct thread {
  struct process_state *state; /* shared with the parent; GS points to it */
  struct runtime *runtime;
  uint32_t slot;   /* its page among the threads of the shared memory; THREAD_NO_SLOT if it is not recorded */
  uint32_t is_used; /* 0: the region is free; set to that by the thread itself as the last it does */
  struct thread *next; /* of all regions of the process; under the lock */
  bool is_unrecorded;  /* in a child that is not followed: state and log are memory of its own, which nobody reads */
  bool is_vfork;       /* its parent waits for its end, and frees the region */
  bool is_clearing;    /* starts without signal handlers: CLONE_CLEAR_SIGHAND */
  int *fd;             /* of the shared memory, in its table of descriptors: the runtime's, or */
  int own_fd;
  struct signal_table *actions; /* the runtime's, or */
  struct signal_table own_actions;
  bool wants_move;     /* out of a part of the cache that was given up, at the next boundary */
  uint64_t move_mask;  /* signals that are blocked when it has */
  uint32_t generation; /* of the cache as it knows it */
  bool is_traced; /* it asked to be: what it executes is not recorded */
  uint64_t rseq;  /* where it registered, 0: not */
  uint64_t signal_mask; /* what the application has blocked */
  struct signal_stack signal_stack;
  uint64_t saved_mask;   /* and will have again behind a call that waits with another mask, if */
  bool has_saved_mask;   /* that was interrupted */
  bool is_stepping;      /* single-stepped to the next boundary, where what waits is delivered */
  bool owns_trap_flag;   /* meanwhile: the application itself had set TF */
  uint64_t place_resume; /* if state->resume is this, */
  uint32_t place_passed; /* so many steps of the running path are before state->rip; else none */
  uint64_t trap_rip, trap_log; /* with TF set by the application: where it came in, which is no reason to trap yet */
  uint64_t kept_set;           /* signals of the kinds that an instruction can cause, but sent */
  struct signal_info kept[SIGNALS_KEPT];
  uint64_t recover;  /* address in start.S to go on at when the runtime itself faults, 0: none */
  uint64_t recover_stack;
  uint64_t scratch, scratch_size; /* memory of execve, which outlives a child of vfork */
  struct signal_pending pending;
};

#define THREAD_NO_SLOT UINT32_MAX

_Static_assert(sizeof(struct thread) <= REGION_PRIVATE_SIZE, "");

/* The calling thread, by GS. */
static inline struct thread *thread_self(void)
{
  uint64_t self;
  __asm__ volatile("mov %%gs:%c1, %0" : "=r"(self) : "i"(STATE_SELF));
  return (struct thread *)(self + REGION_PRIVATE);
}

/* A page of the shared memory and a region for a new thread, both mapped and filled, status THREAD_STARTING. Returns
 * NULL: no memory, or too many threads. Takes the lock. region.c, as the next six */
struct thread *thread_new(struct runtime *runtime, uint32_t process, uint32_t creator);

/* The same for what a thread makes, a thread or a process that shares its memory. */
struct thread *thread_new_by(const struct thread *creator, bool is_unrecorded);

/* Gives back the region of a thread that never ran, or no longer can. */
void thread_free(struct thread *thread);

/* Makes GS point to it, fills in what only the new thread itself knows, and makes it THREAD_LIVE. */
void thread_enter(struct thread *thread);

/* In the child of fork, its only thread: another page and log in the place of the parent's, the state as it was before
 * the fork; the regions of the other threads become free. Returns 0 or -errno. */
int thread_move(struct thread *thread, const struct process_state *state);

/* The thread of that use of a page has ended, if it did not say so itself. */
void thread_bury(struct runtime *runtime, uint32_t slot, uint32_t serial);

/* The same for all threads of the calling process, which has executed another program: that page was of one of them. */
void thread_bury_all(struct runtime *runtime, uint32_t slot);

/* clone, clone3, fork, vfork, exit and exit_group. Return what the application gets in RAX; a thread or process that
 * they make goes on in the cache by itself, behind the system call. */
int64_t thread_call_clone(struct thread *thread, const uint64_t argument[6]);
int64_t thread_call_clone3(struct thread *thread, const uint64_t argument[6]);
int64_t thread_call_fork(struct thread *thread, bool is_vfork);
_Noreturn void thread_call_exit(struct thread *thread, uint64_t status, bool is_group);

/* Marks the thread's page: it has ended so; in mode PROCESS_ALL rings the bell. Nothing may be logged after it.
 * region.c */
void thread_end(struct thread *thread, enum process_end end, uint64_t status);

/* ---- execve (exec.c, program.c) ---- */

enum { PROGRAM_SCRIPTS = 5, PROGRAM_LINE = 256, PROGRAM_PATH = 4096, PROGRAM_HEADERS = 64 };

/* A script's first line, cut into words. */
struct script {
  char line[PROGRAM_LINE];
  const char *interpreter, *argument; /* NULL: no argument */
};

/* What a path would execute. */
struct program {
  char exe[PROGRAM_PATH]; /* absolute path of the ELF program */
  unsigned script_count;
  struct script scripts[PROGRAM_SCRIPTS]; /* the path's own first, then its interpreter's */
};

/* `path` from the folder `fd` and `flags` as of execveat. Returns false if we cannot load it, for whatever reason. Makes
 * system calls of its own. */
bool program_find(struct runtime *runtime, int fd, const char *path, unsigned flags, struct program *ret_program);

/* The number's digits and a zero; returns where the zero is. At most 21 bytes. */
char *text_put_number(char *at, uint64_t number);

/* execve and execveat. Return only if it failed; -EINTR_AGAIN as syscall_pass. What cannot be recorded (32-bit, set-id,
 * not readable, unknown to us, in a child that is not followed) is executed as it is. */
int64_t exec_call(struct thread *thread, const uint64_t argument[6]);
int64_t exec_call_at(struct thread *thread, const uint64_t argument[6]);

/* The program was executed by another that was recorded: `word` is the FD word of the command line, "FD:SLOT" then. The
 * threads before it have ended. Before thread_new. */
void exec_arrived(struct runtime *runtime, const char *word);

/* ---- the hidden descriptor (fd.c) ---- */

/* Is it the number of the shared memory, which to the application is not open? */
bool fd_is_hidden(const struct thread *thread, uint64_t fd);

/* System calls that could close or change it: it stays, and looks closed. Return as syscall_pass. */
int64_t fd_call_close(struct thread *thread, const uint64_t argument[6]);
int64_t fd_call_close_range(struct thread *thread, const uint64_t argument[6]);
int64_t fd_call_dup2(struct thread *thread, const uint64_t argument[6]);
int64_t fd_call_dup3(struct thread *thread, const uint64_t argument[6]);

/* fcntl, dup and any other whose first argument is a descriptor. */
int64_t fd_call_first(struct thread *thread, uint64_t number, const uint64_t argument[6]);

/* ---- the rest ---- */

/* A program or interpreter as load.c mapped it. */
struct image {
  uint64_t base;    /* what was added to its addresses */
  uint64_t entry;   /* where it starts */
  uint64_t headers; /* address of its program headers */
  uint16_t header_count, header_size;
  bool has_stack_code; /* its stack is to be executable */
};

struct runtime {
  struct process_control *control;
  struct process_state *threads; /* the thread pages, PROCESS_PAGE apart */
  uint8_t *notes;
  struct path_step *steps;
  uint32_t part_size, step_capacity, mode, options;
  uint64_t notes_size;
  int fd;              /* of the shared memory: kept open for execve, hidden from the application */
  const char *exe;     /* absolute path of the program */
  uint32_t space;      /* address space */
  bool is_confined;    /* the application has a seccomp filter: no system calls of our own where it can be helped */
  uint32_t lock;       /* 0 free, 1 taken, 2 taken and waited for */
  uint64_t vdso, vdso_end;

  struct range_list executable;

  struct area areas[CACHE_AREAS];
  struct unit *units; /* in the order of their making */
  uint32_t unit_count;
  uint32_t *index;    /* hash table by address: number of the unit + 1 */
  struct place *places;
  uint32_t place_count;
  struct habit *habits;
  uint32_t habit_count;
  uint32_t turns, next_profile, samples; /* parts that were filled; when to look at one again; how often that was */
  uint32_t generation, generation_units, generation_turn; /* times the cache was begun anew; units and turns then */
  uint32_t number_next, number_end, number_count, number_space; /* step numbers that this space has taken and not used */
  uint64_t *local;    /* by step: address of the rel32 by which it leaves; of a head: number of the unit */
  struct page_table *pages;
  struct signal_table actions;
};

void runtime_lock(struct runtime *runtime);
void runtime_unlock(struct runtime *runtime);

/* translate.c: the unit at an executable address, made now, with the lock held; if it is for an exit, that exit's edge is
 * before it. Returns NULL if its first bytes cannot
 * be read. */
struct unit *translate(struct thread *thread, uint64_t address, uint32_t edge_step);

/* Bytes of address space that the cache and the pages' table take. */
uint64_t cache_memory(const struct runtime *runtime);
uint64_t page_memory(void);

/* cache.c; with the lock held */
int cache_init(struct runtime *runtime);
struct unit *cache_find(struct runtime *runtime, uint64_t address); /* none that is stale */
struct area *cache_area(struct runtime *runtime, uint64_t address); /* the best for code there, with room for a unit */
struct unit *cache_add(struct runtime *runtime, struct area *area, const struct unit *unit);
void cache_tie(struct runtime *runtime, uint32_t step, struct unit *unit, bool is_new); /* it goes there from now on */
void cache_write_edge(struct runtime *runtime, struct emitter *emitter, uint32_t step, uint32_t head);
void cache_replace(struct runtime *runtime, struct unit *old, struct unit *unit); /* who comes to a stale one goes on */
void cache_make_stale(struct runtime *runtime, struct unit *unit);
void cache_forget(struct runtime *runtime); /* all units: who runs them may go on, nobody finds them */

/* Lets indirect branches of this thread find the unit without leaving the cache; the lock is held. And the table of a
 * new thread, in which there is nothing. */
void cache_publish(struct thread *thread, struct unit *unit);
void cache_lookup_init(struct thread *thread);

/* page.c: code that changes; with the lock held */
int page_init(struct runtime *runtime);
unsigned page_level(struct runtime *runtime, const struct range *range, uint64_t address); /* enum page_level */
void page_protect(struct runtime *runtime, const struct range *range, uint64_t address); /* before it is translated */
void page_add_unit(struct runtime *runtime, uint64_t page, uint32_t unit);
void page_drop(struct runtime *runtime, uint64_t start, uint64_t end); /* whatever came from there is stale */
bool page_release_all(struct runtime *runtime); /* all that we protected; returns whether there was any */

enum page_level {
  PAGE_STEADY,  /* changes are seen: by a system call, or by a fault */
  PAGE_CHECKED, /* they are not, or come too often: compare */
  PAGE_WILD,    /* code that changes its own page: one instruction at a time */
};

/* A write fault in a page that holds translated code and is protected for that reason. Returns true if it was one: the
 * write is to be done again. Takes the lock. */
bool code_write_fault(struct thread *thread, uint64_t address, uint64_t rip);

/* load.c: maps the program and its interpreter and adds what may be executed. `ret_start` is where it starts: in the
 * interpreter if there is one. Does not return if it fails. */
void load_program(struct runtime *runtime, const char *path, struct image *ret_program, struct image *ret_start);

/* map.c: mmap, munmap, mremap, mprotect, pkey_mprotect, madvise. And for a program whose stack is to be executable. */
int64_t map_call(struct thread *thread, uint64_t number, const uint64_t argument[6]);
void map_stack_code(struct runtime *runtime, uint64_t stack);

/* self.c: what a program asks about itself. */
int64_t self_call_readlink(struct thread *thread, uint64_t number, const uint64_t argument[6]);
int64_t self_call_path(struct thread *thread, uint64_t number, const uint64_t argument[6], unsigned path);
int64_t self_call_limit(struct thread *thread, uint64_t number, const uint64_t argument[6]);
bool self_is_exe(struct thread *thread, uint64_t path); /* is the path that of the program itself in /proc? */
void self_set_command(const char *first_word, const uint64_t *auxv, uint64_t auxv_size);

/* syscall.c: makes the system call that the application's registers ask for; state->rip is behind it. Returns false: a
 * signal comes first, the call is to be made again behind its handler. */
bool syscall_make(struct thread *thread);

/* A system call of the application as it is, which may block: returns -EINTR_AGAIN if a signal waits and the call was
 * not made, or is to be made again after its handler. start.S. */
enum { EINTR_AGAIN = 4095 };
int64_t syscall_pass(uint64_t number, const uint64_t argument[6]);

/* far.c: does what the far branch of this step does. */
void far_make(struct thread *thread, uint32_t number);

/* dispatch.c: called from start.S on the runtime's stack; return when state->resume says where to go on. */
void dispatch_direct(void);
void dispatch_indirect(void);
void dispatch_syscall(void);
void dispatch_stale(void);

/* Sets state->resume for state->rip: the unit there, which is logged as PATH_ENTER, or, where nothing may be executed,
 * the address itself. */
void dispatch_to(struct thread *thread);

_Noreturn void runtime_fail(enum process_error error, int system_error, uint64_t address);

/* start.S */
void leave_direct(void);
void leave_indirect(void);
void leave_syscall(void);
void leave_stale(void);
_Noreturn void cache_enter(void); /* delivers what is pending, then goes to state->resume with its registers */
void native_enter(void);          /* state->resume where nothing can be executed */
extern uint8_t cache_enter_end[]; /* a signal between these two begins it anew */
_Noreturn void dispatch_enter(void); /* dispatch_to, then cache_enter; on the runtime's stack, from anywhere */
void signal_enter(void);   /* the handler that the kernel has for all signals */
void signal_restore(void); /* its restorer */
extern uint8_t syscall_pass_start[], syscall_pass_call[], syscall_pass_back[], syscall_pass_abort[];
extern uint8_t interpreter_place[INTERPRETER_PLACE];

/* Called from start.S. */
_Noreturn void runtime_main(uint64_t *stack);

extern struct runtime the_runtime;

/* Calls function(argument) and returns what it does, or -1 if it faults. `recover` is that of the thread. start.S */
int64_t recover_call(int64_t (*function)(void *), void *argument, uint64_t *recover);

/* Copies from or to memory of the application that may not be there. Return false then. */
bool safe_read(struct thread *thread, void *to, uint64_t from, size_t size);
bool safe_write(struct thread *thread, uint64_t to, const void *from, size_t size);

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

/* memory.c: memory of our own, at the next free of our places; `fd` -1: private, else shared. The result is the kernel's.
 * At the start, or with the lock held. */
int64_t place_map(uint64_t size, int fd, uint64_t offset);

/* The compiler may call the first two by itself. */
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
size_t text_length(const char *text);
bool text_is(const char *text, const char *other);

static inline bool is_failure(int64_t result)
{
  return result < 0 && result >= -4095;
}

#pragma GCC visibility pop

#endif
