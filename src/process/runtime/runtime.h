/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the runtime, which shares a process with the application: no libc, no vector registers (they are the
 * application's), no relocations (nobody would apply them), errors end the process by runtime_fail.
 *
 * Flow: start.S -> main.c (stack, shared memory) -> load.c (the program) -> dispatch.c, which finds or translates
 * (translate.c, copy.c, emit.c) the next path in the cache (cache.c), delivers signals (signal.c) and makes the system
 * calls (syscall.c, thread.c, exec.c), each time the application leaves the cache.
 *
 * kernel.h has what is there in the place of libc, emit.h and cache.h the code that is made, this file the rest.
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
#include "process/runtime/cache.h"
#include "process/runtime/emit.h"
#include "process/runtime/kernel.h"
#include "process/shared.h"

#pragma GCC visibility push(hidden)

/* ---- signals as the kernel has them ---- */

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

/* ---- a thread ---- */

/* At REGION_PRIVATE of its region. */
struct thread {
  struct process_state *state; /* shared with the parent; GS points to it */
  struct runtime *runtime;
  uint32_t slot;       /* its page among the threads of the shared memory; THREAD_NO_SLOT if it is not recorded */
  uint32_t is_used;    /* 0: the region is free; set to that by the thread itself as the last it does */
  struct thread *next; /* of all regions of the process; under the lock */
  bool is_unrecorded;  /* in a child that is not followed: state and log are memory of its own, which nobody reads */
  bool is_vfork;       /* its parent waits for its end, and frees the region */
  bool is_clearing;    /* starts without signal handlers: CLONE_CLEAR_SIGHAND */
  int *fd;             /* of the shared memory, in its table of descriptors: the runtime's, or */
  int own_fd;
  struct signal_table *actions; /* the runtime's, or */
  struct signal_table own_actions;
  uint32_t age;         /* of the cache that it is in, or about to enter; 0: it is outside. Others look at it */
  uint32_t lookup_age;  /* of what is in its lookup table */
  uint32_t is_nudged;   /* a signal is under way to it that is to bring it out of an old age */
  bool wants_move;      /* out of a part of the cache that was given up, at the next boundary */
  uint64_t move_mask;   /* signals that are blocked when it has */
  uint32_t generation;  /* of the cache as it knows it */
  bool is_unmade;       /* the system call that a signal stands before has not been made, not even once */
  bool is_traced;       /* it asked to be: what it executes is not recorded */
  uint64_t rseq;        /* where it registered, 0: not */
  uint64_t signal_mask; /* what the application has blocked */
  struct signal_stack signal_stack;
  uint64_t saved_mask;         /* and will have again behind a call that waits with another mask, if */
  bool has_saved_mask;         /* that was interrupted */
  bool is_stepping;            /* single-stepped to the next boundary, where what waits is delivered */
  bool owns_trap_flag;         /* meanwhile: the application itself had set TF */
  uint64_t place_resume;       /* if state->resume is this, */
  uint32_t place_passed;       /* so many steps of the running path are before state->rip; else none */
  uint64_t trap_rip, trap_log; /* with TF set by the application: where it came in, which is no reason to trap yet */
  uint64_t kept_set;           /* signals of the kinds that an instruction can cause, but sent */
  struct signal_info kept[SIGNALS_KEPT];
  uint64_t recover; /* address in start.S to go on at when the runtime itself faults, 0: none */
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

/* ---- the process ---- */

/* What the runtime alone knows of a number in the table of steps. */
union step_local {
  uint8_t *site; /* of a step: the rel32 by which it leaves its path; NULL: it has none */
  uint64_t unit; /* of a head: the number of its unit */
};

/* In place of a step's number in state->exit, for leave_syscall: why the instruction cannot run in the cache. Neither
 * is the number of a step. */
enum { EXIT_NO_INSTRUCTION = 0, EXIT_WRITES_GS = -1 };

struct runtime {
  struct process_control *control;
  struct process_state *threads; /* the thread pages, PROCESS_PAGE apart */
  uint8_t *notes;                /* as far as they are mapped: share.c */
  struct lb_step *steps;         /* of these, those that this program has numbers of */
  uint32_t part_size, step_capacity, mode, options;
  uint64_t notes_size, notes_start, notes_end;    /* all of them; what is mapped */
  uint8_t steps_mapped[PROCESS_STEPS_MOST >> 23]; /* a bit for each 2^20 steps */
  uint32_t piece_count;                           /* bits that are set */
  bool has_thread;                                /* GS points to the first */
  int fd;            /* of the shared memory: kept open for execve, hidden from the application */
  const char *exe;   /* absolute path of the program */
  uint32_t space;    /* address space */
  bool has_wrgsbase; /* GS can be set without a system call */
  bool is_confined;  /* the application has a seccomp filter: no system calls of our own where it can be helped */
  uint32_t lock;     /* 0 free, 1 taken, 2 taken and waited for */
  uint64_t holder;   /* numbers of process and thread that have it, as far as they say so */

  struct range_list executable;

  struct pool pools[CACHE_POOLS], *pool; /* the one that is filled */
  uint32_t age;                          /* times that a pool was begun: read without the lock, too */
  bool is_full;                          /* something had no room */
  uint64_t area_size;                    /* bytes that are used of an area, */
  uint32_t area_most, unit_most;         /* and so many of them, and units */
  struct unit *units;                    /* those of the pools one behind another, in the order of their making */
  uint32_t units_made;                   /* so far */
  uint32_t *index;                       /* hash table by address: number of the unit + 1 */
  struct place *places;                  /* as the units */
  struct habit *habits;
  uint32_t habit_count;
  uint32_t turns, next_profile, samples; /* parts that were filled; when to look at one again; how often that was */
  uint32_t generation, generation_units, generation_turn;       /* times paths were begun anew; units and turns then */
  uint32_t number_next, number_end, number_count, number_space; /* step numbers that are this space's to use */
  union step_local *local;                                      /* by step */
  struct page_table *pages;
  struct signal_table actions;
};

extern struct runtime the_runtime;

/* lock.c */
void runtime_lock(struct runtime *runtime);
void runtime_unlock(struct runtime *runtime);

/* A process of one thread that shared the memory has ended: if it had the lock, it has it no longer. */
void runtime_unlock_for(struct runtime *runtime, uint32_t process);

/* main.c; the first is called from start.S. */
_Noreturn void runtime_main(uint64_t *stack);
_Noreturn void runtime_fail(enum process_error error, int system_error, uint64_t address);

/* What is not so is a bug of ours: the program ends with 125, and the address in the runtime is reported. */
_Noreturn void runtime_wrong(void);
#define runtime_assert(condition) ((condition) ? (void)0 : runtime_wrong())

/* Tells the parent that there is something to look at, if it is listening. log.c */
void runtime_ring(const struct runtime *runtime);

/* ---- where the runtime itself lies, and where its code ends (the linker) ---- */

extern const uint8_t __executable_start[], etext[], _end[];

/* ---- assembly (start.S) ---- */

/* Where the cache is left to, by addresses in the state. */
void leave_direct(void);
void leave_indirect(void);
void leave_syscall(void);
void leave_stale(void);

_Noreturn void cache_enter(void);    /* delivers what is pending, then goes to state->resume with its registers */
extern uint8_t cache_enter_end[];    /* a signal between these two begins it anew */
void native_enter(void);             /* state->resume where nothing can be executed */
_Noreturn void dispatch_enter(void); /* dispatch_to, then cache_enter; on the runtime's stack, from anywhere */
void signal_enter(void);             /* the handler that the kernel has for all signals */
void signal_restore(void);           /* its restorer */
extern uint8_t interpreter_place[INTERPRETER_PLACE];

/* A system call of the application as it is, which may block: returns -EINTR_AGAIN if a signal waits and the call was
 * not made, or is to be made again after its handler. */
enum { EINTR_AGAIN = 4095 };
int64_t syscall_pass(uint64_t number, const uint64_t argument[6]);
extern uint8_t syscall_pass_start[], syscall_pass_call[], syscall_pass_back[], syscall_pass_abort[];

/* Calls function(argument) and returns what it does, or -1 if it faults. `recover` is that of the thread. */
int64_t recover_call(int64_t (*function)(void *), void *argument, uint64_t *recover);

/* Copies from or to memory of the application that may not be there. Return false then. safe.c */
bool safe_read(struct thread *thread, void *to, uint64_t from, size_t size);
bool safe_write(struct thread *thread, uint64_t to, const void *from, size_t size);

/* ---- between two paths (dispatch.c, far.c) ---- */

/* Called from start.S on the runtime's stack; return when state->resume says where to go on. */
void dispatch_direct(void);
void dispatch_indirect(void);
void dispatch_syscall(void);
void dispatch_stale(void);

/* Sets state->resume for state->rip: the unit there, which is logged as LB_ENTRY_ENTER, or, where nothing may be
 * executed, the address itself. */
void dispatch_to(struct thread *thread);

/* Does what the far branch of this step does. */
void far_make(struct thread *thread, uint32_t number);

/* ---- the log (log.c); only of the thread that calls ---- */

/* Writes an entry. */
void log_put(struct thread *thread, uint32_t entry);

/* LB_ENTRY_EVENT; kind LB_ENTRY_NOWHERE: goes on nowhere. */
void log_event(struct thread *thread, unsigned kind, unsigned passed, uint64_t from, uint64_t to);

/* The log is at the page behind a part, at this address: goes on in the next part, and in mode PROCESS_ALL waits until
 * the parent has read it. Returns where the next entry goes, or 0: the address is not behind a part of this thread. */
uint64_t log_turn(struct thread *thread, uint64_t address);

/* ---- what branches mostly do (profile.c) ---- */

int profile_init(struct runtime *runtime); /* returns 0 or -errno */

/* Of the branch at this address, with the lock held: it is mostly taken; it mostly goes there, or 0. */
bool profile_is_taken(const struct runtime *runtime, uint64_t address);
uint64_t profile_target(const struct runtime *runtime, uint64_t address);

/* A part of the thread's log is full of these. Returns true: the cache was begun anew, and the thread is to leave what
 * it runs. Takes the lock. */
bool profile_turn(struct thread *thread, const uint32_t *entries, uint32_t count);

/* ---- the shared memory, as far as it is mapped (share.c); at the start, or with the lock held ---- */

void share_init(struct runtime *runtime);

/* Maps the steps from `first` to before `end`, and what is said about them. Returns false: it cannot be. */
bool share_steps(struct runtime *runtime, uint32_t first, uint32_t end);

/* Where the bytes of notes from `at` on are, until the next call; NULL: they cannot be mapped. */
uint8_t *share_note(struct runtime *runtime, uint64_t at, uint64_t size);

/* A filter of system calls may be set now, after which nothing is mapped any more: maps what will do for long. */
void share_for_filter(struct runtime *runtime);

/* Bytes of address space, with what may come. */
uint64_t share_memory(const struct runtime *runtime, bool is_private);

/* ---- notes (note.c) ---- */

void note_put(struct runtime *runtime, enum process_note_type type, uint32_t space, uint64_t start, uint64_t end,
              uint64_t offset, const void *bytes, uint32_t length);

/* ---- signals (signal.c: how they come; signal_deliver.c; signal_call.c: the system calls) ---- */

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

/* ---- threads (thread.c, clone.S: the system calls; region.c: their memory) ---- */

/* A page of the shared memory and a region for a new thread, both mapped and filled, status THREAD_STARTING. Returns
 * NULL: no memory, or too many threads. Takes the lock. region.c, as the next six */
struct thread *thread_new(struct runtime *runtime, uint32_t process, uint32_t creator);

/* The same for what a thread makes, a thread or a process that shares its memory. */
struct thread *thread_new_by(const struct thread *creator, bool is_unrecorded);

/* Gives back the region of a thread that never ran, or no longer can. */
void thread_free(struct thread *thread);

struct thread *thread_first(void); /* of all regions, used or not; with the lock held */
uint64_t thread_regions_end(void); /* regions are between PLACE_REGIONS and this */

/* Makes GS point to it, fills in what only the new thread itself knows, and makes it THREAD_LIVE. */
void thread_enter(struct thread *thread);

/* The next place in the order of all threads. */
uint32_t thread_place(struct runtime *runtime);

/* In the child of fork, its only thread: another page and log instead of the parent's, the state as it was before the
 * fork, the place that its parent took for it; the regions of the other threads become free. Returns 0 or -errno. */
int thread_move(struct thread *thread, const struct process_state *state, uint32_t place);

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

/* It has died of a signal: waits until the parent has looked at it, if that wants to (hold.c). */
void hold_wait(struct thread *thread);

/* ---- the program (load.c) ---- */

/* A program or interpreter as load.c mapped it. */
struct image {
  uint64_t base;    /* what was added to its addresses */
  uint64_t entry;   /* where it starts */
  uint64_t headers; /* address of its program headers */
  uint16_t header_count, header_size;
  bool has_stack_code; /* its stack is to be executable */
};

/* Maps the program and its interpreter and adds what may be executed. `ret_start` is where it starts: in the
 * interpreter if there is one. Does not return if it fails. */
void load_program(struct runtime *runtime, const char *path, struct image *ret_program, struct image *ret_start);

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

/* `path` from the folder `fd` and `flags` as of execveat. Returns false if we cannot load it, for whatever reason.
 * Makes system calls of its own. */
bool program_find(struct runtime *runtime, int fd, const char *path, unsigned flags, struct program *ret_program);

/* execve and execveat. Return only if it failed; -EINTR_AGAIN as syscall_pass. What cannot be recorded (32-bit, set-id,
 * not readable, unknown to us, in a child that is not followed) is executed as it is. */
int64_t exec_call(struct thread *thread, const uint64_t argument[6]);
int64_t exec_call_at(struct thread *thread, const uint64_t argument[6]);

/* The program was executed by another that was recorded: `word` is the FD word of the command line, "FD:SLOT" then. The
 * threads before it have ended. Before thread_new. */
void exec_arrived(struct runtime *runtime, const char *word);

/* ---- the other system calls (syscall.c) ---- */

/* Makes the system call that the application's registers ask for; state->rip is behind it. Returns false: a signal
 * comes first, the call is to be made again behind its handler. */
bool syscall_make(struct thread *thread);

/* mmap, munmap, mremap, mprotect, pkey_mprotect, madvise. And for a program whose stack is to be executable. map.c */
int64_t map_call(struct thread *thread, uint64_t number, const uint64_t argument[6]);
void map_stack_code(struct runtime *runtime, uint64_t stack);

/* Is any of it memory of our own? */
bool map_is_ours(const struct runtime *runtime, uint64_t start, uint64_t size);

/* What a program asks about itself. proc_self.c */
int64_t self_call_readlink(struct thread *thread, uint64_t number, const uint64_t argument[6]);
int64_t self_call_path(struct thread *thread, uint64_t number, const uint64_t argument[6], unsigned path);
int64_t self_call_limit(struct thread *thread, uint64_t number, const uint64_t argument[6]);
bool self_is_exe(struct thread *thread, uint64_t path); /* is the path that of the program itself in /proc? */
void self_set_command(const char *first_word, const uint64_t *auxv, uint64_t auxv_size);
void self_get_name(struct thread *thread);  /* puts the thread's name into its page, */
void self_get_title(struct thread *thread); /* and the command line of its process, or the title that it has set */

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

#pragma GCC visibility pop

#endif
