/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the runtime, which shares a process with the application: no libc, no vector registers (they are the
 * application's), no relocations (no loader would apply them), and errors end the process through runtime_fail.
 *
 * Flow: start.S -> main.c (stack, shared memory) -> load.c (the program) -> dispatch.c, which finds or translates
 * (translate.c, copy.c, emit.c) the next path in the cache (cache.c), delivers signals (signal.c) and makes the system
 * calls (syscall.c, thread.c, exec.c), each time the application leaves the cache.
 *
 * kernel.h declares the replacement for libc, emit.h and cache.h the translated code, this file the rest.
 *
 * Threads: everything in struct runtime is guarded by its lock, except where it says otherwise. A thread that holds the
 * lock is in the runtime, where signals only wait (signal.c), so nothing interrupts it.
 */
#ifndef PROCESS_RUNTIME_H
#define PROCESS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/attach.h"
#include "process/process.h"
#include "process/runtime/cache.h"
#include "process/runtime/emit.h"
#include "process/runtime/kernel.h"
#include "process/runtime/signal_frame.h"
#include "process/runtime/snapshot.h"
#include "process/shared.h"

#pragma GCC visibility push(hidden)

/* ---- a thread ---- */

/* A call of a function at a trigger, while it is timed: trigger.c. */
struct trigger_call {
  uint64_t stack;   /* where its return address is */
  uint64_t address; /* of the function, */
  uint64_t back;    /* and to which it returns */
  uint64_t time;    /* when it began, in nanoseconds */
};

enum { TRIGGER_CALLS = 64 }; /* of a thread at a time */

/* At REGION_PRIVATE of its region. */
struct thread {
  struct process_state *state; /* shared with the parent; GS points to it */
  struct runtime *runtime;
  uint32_t slot;       /* its page among the threads of the shared memory; THREAD_NO_SLOT if it is not recorded */
  uint32_t is_used;    /* 0: the region is free; the thread itself sets it to 0 as its last action */
  struct thread *next; /* of all regions of the process; under the lock */
  bool is_unrecorded;  /* in a child that is not followed: state and log are private memory, which is never read */
  bool is_vfork;       /* its parent waits for its end and frees the region */
  bool is_clearing;    /* starts without signal handlers: CLONE_CLEAR_SIGHAND */
  int *fd;             /* of the shared memory, in the thread's table of descriptors: &runtime->fd, or &own_fd */
  int own_fd;
  struct signal_table *actions; /* &runtime->actions, or &own_actions */
  struct signal_table own_actions;
  uint32_t age;        /* of the cache that it is in, or about to enter; 0: it is outside. Other threads read it */
  uint32_t lookup_age; /* of what is in its lookup tables */
  uint32_t is_nudged;  /* a signal was sent to it to bring it out of an old age */
  bool wants_leave;    /* lbr has told it to leave the cache for good: leave.c */
  bool wants_move;     /* it is to leave translations that were given up, at the next boundary */
  uint64_t move_mask;  /* signals to be blocked after that */
  uint32_t generation; /* generation of the cache that it knows */
  uint64_t event_end;  /* address in its log after the last event that it logged */
  uint64_t call_time;  /* when its last system call began: stamp.c */
  bool is_unmade;      /* a signal came before a system call that has not been made, not even once */
  bool is_traced;      /* it asked to be traced: programs that it executes are not recorded */
  uint64_t rseq;       /* address that it registered for rseq(2), 0: none; */
  uint32_t rseq_size, rseq_signature; /* and what it gave with it */
  uint32_t interrupted; /* the thread was attached to in a system call, which it is about to execute again: errno of the
                           interruption; 0: no. And the number of the call */
  uint64_t interrupted_call;
  bool was_signalled;   /* a signal has arrived since it was attached to */
  uint64_t signal_mask; /* signals that the application has blocked */
  struct signal_stack signal_stack;
  uint64_t saved_mask;         /* the mask to restore after an interrupted call that waited with another mask, */
  bool has_saved_mask;         /* if there is one */
  bool is_stepping;            /* single-stepped to the next boundary, where the pending signal is delivered */
  bool owns_trap_flag;         /* meanwhile: the application itself had set TF */
  uint64_t place_resume;       /* if state->resume is this, */
  uint32_t place_passed;       /* this many steps of the running path are before state->rip; else none */
  uint64_t trap_rip, trap_log; /* with TF set by the application: where it entered; it must not trap there yet */
  uint64_t kept_set;           /* signals of SIGNALS_FAULT that were sent, not caused by an instruction */
  struct signal_info kept[SIGNALS_KEPT];
  uint64_t recover; /* address in start.S where execution continues if the runtime itself faults, 0: none */
  uint64_t recover_stack;
  uint64_t scratch, scratch_size; /* memory of execve, which outlives a child of vfork */
  struct attach_left left;        /* once it has left: leave.c */
  uint64_t hit_part;              /* the part of its log that was being filled when a trigger was reached, */
  bool has_hit_part;              /* if it is known */
  uint32_t call_count;            /* calls that are timed: trigger.c */
  struct trigger_call calls[TRIGGER_CALLS];
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

/* The runtime's private data about a number in the table of steps. */
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
  struct lb_step *steps;         /* mapped only where this program has numbers */
  uint32_t part_size, step_capacity, mode, options;
  uint64_t notes_size, notes_start, notes_end;    /* size of all notes; the mapped part */
  uint8_t steps_mapped[PROCESS_STEPS_MOST >> 23]; /* a bit for each 2^20 steps */
  uint32_t piece_count;                           /* bits that are set */
  bool has_thread;                                /* GS points to the first */
  struct attach_info *attaching;                  /* while lbr attaches to the process: errors go there */
  int fd;               /* of the shared memory: kept open for execve, hidden from the application */
  const char *exe;      /* absolute path of the program */
  const char *root;     /* what lbr needs before paths of files: attach_info.root. NULL: nothing */
  uint32_t space;       /* address space */
  uint32_t numbering;   /* PID namespace of the first thread: process_state.numbering */
  bool has_wrgsbase;    /* GS can be set without a system call */
  bool is_fixed;        /* addresses are not randomised */
  bool has_entered;     /* the program itself has begun, */
  uint64_t entry;       /* at this address */
  uint64_t interpreter; /* what was mapped into interpreter_place starts here; 0: nothing was */
  bool is_confined;     /* the application has a seccomp filter: the runtime avoids system calls of its own */
  bool is_filtered;     /* it had one when lbr attached, which allows what the runtime needs */
  bool is_adopted;      /* lbr has attached to the process: /proc/self/exe is its own program, not the runtime */
  uint32_t lock;        /* 0 free, 1 taken, 2 taken and waited for */
  uint64_t holder;      /* numbers of the process and thread that hold it, if they were noted */

  struct range_list executable;
  struct module_list modules; /* of these: code that is as in its file */

  struct pool pools[CACHE_POOLS], *pool; /* the one that is filled */
  uint32_t age;                          /* number of times that a pool was begun; also read without the lock */
  bool is_full;                          /* there was no room for something */
  uint64_t area_size;                    /* bytes of an area that are used, */
  uint32_t area_most, unit_most;         /* and the most areas and units */
  struct unit *units;                    /* of one pool, then of the other, in the order of their creation */
  uint32_t *index;                       /* hash tables by address, number of the unit + 1: index.c */
  struct place *places;                  /* ordered like the units */
  struct habit *habits;
  uint64_t *habit_filter;
  struct cache_counts counts;
  struct way *ways;         /* of the snapshot, if there is one */
  uint32_t index_inherited; /* slots of the index that is memory of a snapshot, 0: none */
  uint32_t units_inherited; /* units that came with the snapshot */
  uint32_t number_next, number_end, number_count, number_space; /* step numbers that this space may use */
  union step_local *local;                                      /* by step */
  struct page_table *pages;
  struct signal_table actions;
  bool has_triggers;   /* trigger.c */
  bool has_stamps;     /* logs get stamps: stamp.c */
  uint64_t space_note; /* offset of the note of the space, */
  uint64_t map_note;   /* and of the last file that the application has mapped */
};

extern struct runtime the_runtime;

/* lock.c */
void runtime_lock(struct runtime *runtime);
void runtime_unlock(struct runtime *runtime);

/* A single-threaded process that shared the memory has ended: releases the lock if that process held it. */
void runtime_unlock_for(struct runtime *runtime, uint32_t process);

/* main.c; the first is called from start.S. The second maps the shared memory of this descriptor, the third begins the
 * address space of the program. */
_Noreturn void runtime_main(uint64_t *stack);
void runtime_open(struct runtime *runtime, int fd);
void runtime_open_space(struct runtime *runtime);
_Noreturn void runtime_fail(enum process_error error, int system_error, uint64_t address);

/* A failed assertion is a bug in the runtime: the program ends with 125, and the address in the runtime is reported. */
_Noreturn void runtime_wrong(void);
#define runtime_assert(condition) ((condition) ? (void)0 : runtime_wrong())

/* ---- a process that runs already, and goes on at the end (attach.c, leave.c); entered from start.S ---- */

_Noreturn void attach_process(struct attach_info *info);
_Noreturn void attach_thread(struct thread *thread);
_Noreturn void leave_start(struct thread *thread);
_Noreturn void leave_call(int64_t result, uint64_t number, uint64_t is_again);
_Noreturn void leave_process(void);

/* Stops at a breakpoint; lbr gets the address of the answer. start.S */
_Noreturn void runtime_stop(const void *answer);

/* The process cannot be attached to: tells lbr, which undoes everything. */
_Noreturn void attach_fail(enum process_error error, int system_error);

/* The thread is at an instruction of the application, with its registers in the state and with all signals blocked: it
 * leaves. Nothing may be logged after that. */
_Noreturn void leave_now(struct thread *thread);

/* The application cannot be recorded from state->rip on. A process that ran before the recording runs on without it.
 * Any other ends with the error. */
_Noreturn void leave_or_fail(struct thread *thread, enum process_error error, uint64_t address);

/* Called before a system call during which lbr cannot stop the thread; state->rip is after it. Does not return if lbr
 * leaves: the thread makes the call natively. */
void leave_before_wait(struct thread *thread);

/* Tells the parent that there is something to look at, if it is listening. log.c */
void runtime_ring(const struct runtime *runtime);

/* ---- where the runtime itself lies, and where its code ends (the linker) ---- */

extern const uint8_t __executable_start[], etext[], _end[];

/* ---- assembly (start.S) ---- */

/* Targets when code leaves the cache, by addresses in the state. */
void leave_direct(void);
void leave_indirect(void);
void leave_narrow(void);
void leave_syscall(void);
void leave_stale(void);

_Noreturn void
cache_enter(void); /* delivers a pending signal, then goes to state->resume with the application's registers */
extern uint8_t cache_enter_end[];    /* a signal between these two addresses restarts it */
void native_enter(void);             /* state->resume for an address that cannot be executed */
_Noreturn void dispatch_enter(void); /* dispatch_to, then cache_enter; on the runtime's stack, from anywhere */
void signal_enter(void);             /* the handler that the kernel has for all signals */
void signal_restore(void);           /* its restorer */
extern uint8_t interpreter_place[INTERPRETER_PLACE];

/* Makes a system call of the application unchanged; it may block. Returns -EINTR_AGAIN if a signal waits and the call
 * was not made, or must be made again after its handler. */
enum { EINTR_AGAIN = 4095 };
int64_t syscall_pass(uint64_t number, const uint64_t argument[6]);
extern uint8_t syscall_pass_start[], syscall_pass_call[], syscall_pass_back[], syscall_pass_abort[];

/* Calls function(argument) and returns its result, or -1 if it faults. `recover` points to that field of the thread. */
int64_t recover_call(int64_t (*function)(void *), void *argument, uint64_t *recover);

/* Copy from or to memory of the application, which may not be mapped. Return false if it is not. safe.c */
bool safe_read(struct thread *thread, void *to, uint64_t from, size_t size);
bool safe_write(struct thread *thread, uint64_t to, const void *from, size_t size);

/* ---- between two paths (dispatch.c, far.c) ---- */

/* Called from start.S on the runtime's stack. When they return, state->resume is where the application continues. */
void dispatch_direct(void);
void dispatch_indirect(void);
void dispatch_narrow(void);
void dispatch_syscall(void);
void dispatch_stale(void);

/* Sets state->resume for state->rip: to the unit there, which is logged as LB_ENTRY_ENTER, or, if the address is not
 * executable, to native_enter, which continues at the address itself. */
void dispatch_to(struct thread *thread);

/* Performs the far branch of this step. */
void far_make(struct thread *thread, uint32_t number);

/* ---- the log (log.c); only of the thread that calls ---- */

/* Whether the entry at this address is in the part that is being filled. */
bool log_has(const struct thread *thread, uint64_t address);

/* Continues in the next part if this one has no room for so many entries. */
void log_reserve(struct thread *thread, unsigned entries);

/* Writes an entry. */
void log_put(struct thread *thread, uint32_t entry);

/* Logs LB_ENTRY_EVENT; kind LB_ENTRY_NOWHERE: the event has no target. */
void log_event(struct thread *thread, unsigned kind, unsigned passed, uint64_t from, uint64_t to);

/* The log has reached this address in the guard page after a part: continues in the next part, and in mode PROCESS_ALL
 * waits until the parent has read it. Returns the address of the next entry, or 0: the address is in no guard page of
 * this thread's log. */
uint64_t log_turn(struct thread *thread, uint64_t address);

/* Checks whether lbr was killed. If so, closes the logs, because no process will read them. */
void log_look_for_parent(struct thread *thread);

/* CLOCK_MONOTONIC in nanoseconds. Makes a system call. */
uint64_t nanoseconds_now(void);

/* ---- stamps in the log (stamp.c); only of the thread that calls ---- */

void stamp_init(struct runtime *runtime);

/* Whether the log of the thread is read, and a clock can be. */
bool stamp_is_wanted(const struct thread *thread);

/* The time stamp counter is forbidden from now on; without `is_clock_left`, every clock is. */
void stamp_stop(struct runtime *runtime, bool is_clock_left);

void stamp_put(struct thread *thread, enum process_stamp type, uint64_t value);

/* With the CPU time of the thread, for which it makes a system call. */
void stamp_used(struct thread *thread, enum process_stamp type);

/* The system call of the application's registers, before it is logged and made; and its result in RAX. */
void stamp_call(struct thread *thread);
void stamp_return(struct thread *thread);

void stamp_signal(struct thread *thread, unsigned number, int code, uint64_t value);

/* ---- the moment that lbr waits for (trigger.c) ---- */

/* With the lock held. The first: is the address a trigger? Paths end before it, and no exit is tied to its unit, so
 * that the dispatcher sees each time that it is reached. The second adds triggers. The third removes those between two
 * addresses, where nothing is mapped any more. */
bool trigger_is_at(const struct runtime *runtime, uint64_t address);
void trigger_add(struct runtime *runtime, const uint64_t *addresses, uint32_t count);
void trigger_remove(struct runtime *runtime, uint64_t start, uint64_t end);

/* The application is about to execute the instruction at a trigger. With the lock held. */
void trigger_reached(struct thread *thread, uint64_t address);

/* Waits until lbr has told which triggers are in the files that notes from `start` to before `end` name. Without the
 * lock. Does nothing if no trigger is wanted. */
void trigger_ask(struct thread *thread, uint64_t start, uint64_t end);

/* ---- what branches mostly do (profile.c) ---- */

int profile_init(struct runtime *runtime);                                   /* returns 0 or -errno */
void profile_save(const struct runtime *runtime, struct piece_list *pieces); /* the memory for a snapshot */
void profile_inherit(struct runtime *runtime);                               /* the counts are those of a snapshot */

/* Of the branch at this address, with the lock held: is it mostly taken; its most frequent target, or 0. */
bool profile_is_taken(const struct runtime *runtime, uint64_t address);
uint64_t profile_target(const struct runtime *runtime, uint64_t address);

/* A part of the thread's log is full; these are its entries. Returns true if the cache was begun anew: the thread must
 * leave the path that it runs. Takes the lock. */
bool profile_turn(struct thread *thread, const uint32_t *entries, uint32_t count);

/* ---- the shared memory, as far as it is mapped (share.c); at the start, or with the lock held ---- */

void share_init(struct runtime *runtime);

/* Maps the steps from `first` to before `end`, and the runtime's own data about them. Returns false if they cannot be
 * mapped. */
bool share_steps(struct runtime *runtime, uint32_t first, uint32_t end);

/* Whether the step with this number is mapped. */
bool share_has_step(const struct runtime *runtime, uint32_t number);

/* The address of the bytes of notes from `at` on, good until the next call; NULL: they cannot be mapped. */
uint8_t *share_note(struct runtime *runtime, uint64_t at, uint64_t size);

/* A seccomp filter may be set now, after which nothing can be mapped any more: maps enough to last for long. */
void share_for_filter(struct runtime *runtime);

/* Bytes of address space, including what may be mapped later. */
uint64_t share_memory(const struct runtime *runtime, bool is_private);

/* ---- notes (note.c) ---- */

/* Returns the offset of the note. */
uint64_t note_put(struct runtime *runtime, enum process_note_type type, uint32_t space, uint64_t start, uint64_t end,
                  uint64_t offset, const void *bytes, uint32_t length);

/* A module of a space that has only steps of the store, all of them older than this recording's. */
void note_put_stored(struct runtime *runtime, uint32_t space, const struct module *module, const char *path);

/* ---- signals (signal.c: their arrival; signal_deliver.c; signal_call.c: the system calls) ---- */

/* Takes over all signals. At the start of a program. */
void signal_init(struct runtime *runtime, struct thread *thread);

/* The same in a process that runs already, whose actions are kept. All signals are blocked in all threads. */
void signal_adopt(struct runtime *runtime);

/* Called by a new thread or process itself, before it runs anything of the application and while all signals are
 * blocked: sets its signal stack, clears pending signals, and blocks the signals of thread->signal_mask. */
void signal_init_thread(struct thread *thread);

/* Handlers become SIG_DFL in thread->actions and in the kernel: CLONE_CLEAR_SIGHAND. */
void signal_clear_actions(struct thread *thread);

/* Called before execve: gives the kernel the signal state that the next program inherits. Until execve, the runtime may
 * only make system calls. The second function undoes it if execve failed. */
void signal_exec_begin(struct thread *thread);
void signal_exec_undo(struct thread *thread);

/* Called from start.S by the kernel's frame on the signal stack. */
void signal_arrived(uint64_t number, struct signal_info *info, struct signal_context *context);

/* Called from start.S when state->pending is not 0, with all of the application's registers in the state: delivers the
 * pending signal. Returns if the application continues at state->resume. */
void signal_deliver(void);

/* The system calls that are about signals. Return what the application gets in RAX, or -EINTR_AGAIN. */
int64_t signal_call_action(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_mask(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_stack(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_pending(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_suspend(struct thread *thread, const uint64_t argument[6]);
int64_t signal_call_wait(struct thread *thread, const uint64_t argument[6]); /* rt_sigtimedwait */

/* The system calls that wait with another mask: ppoll, pselect6, epoll_pwait, epoll_pwait2, io_pgetevents. */
int64_t signal_call_masked(struct thread *thread, uint64_t number, const uint64_t argument[6]);

/* rt_sigreturn; state->exit is the number of its step, which has not been logged. */
_Noreturn void signal_call_return(struct thread *thread);

/* ---- threads (thread.c, clone.S: the system calls; region.c: their memory) ---- */

/* A page of the shared memory and a region for a new thread, both mapped and filled, status THREAD_STARTING. Returns
 * NULL: no memory, or too many threads. Takes the lock. region.c, as the next six */
struct thread *thread_new(struct runtime *runtime, uint32_t process, uint32_t creator);

/* The same for a thread that another thread creates, or for a process that shares its memory. */
struct thread *thread_new_by(const struct thread *creator, bool is_unrecorded);

/* Frees the region of a thread that never ran, or can no longer run. */
void thread_free(struct thread *thread);

struct thread *thread_first(void); /* of all regions, used or not; with the lock held */
uint64_t thread_regions_end(void); /* regions are between PLACE_REGIONS and this */

/* Called by the new thread itself: makes GS point to its state, fills in its numbers and name, and makes it
 * THREAD_LIVE. */
void thread_enter(struct thread *thread);

/* The same for a thread that another one has just made. */
void thread_enter_born(struct thread *thread);

/* The next place in the order of all threads. */
uint32_t thread_place(struct runtime *runtime);

/* Called in the child of fork, by its only thread: gives it another page and log instead of the parent's, with the
 * state as it was before the fork and the place that its parent took for it. The regions of the other threads become
 * free. Returns 0 or -errno. */
int thread_move(struct thread *thread, const struct process_state *state, uint32_t place);

/* The first returns the page with this number. The second takes a page for a thread of a PID namespace; it returns
 * THREAD_NO_SLOT if there is none. The third changes the status of a page only if it is `from`. They are in slot.c, as
 * all functions that end a thread. */
struct process_state *slot_state(const struct runtime *runtime, uint32_t slot);
uint32_t slot_take(struct runtime *runtime, uint32_t numbering);
bool slot_change(struct process_state *page, uint32_t from, uint32_t to);

/* Marks the thread with this page and serial as ended, if it did not do so itself. */
void thread_bury(struct runtime *runtime, uint32_t slot, uint32_t serial);

/* The same for all threads of the calling process, which has executed another program; the page is that of one of them,
 * or of the only one. */
void thread_bury_all(struct runtime *runtime, uint32_t slot, bool is_alone);

/* Whether the calling thread is the only one of its process. */
bool thread_is_alone(const struct thread *thread);

/* clone, clone3, fork, vfork, exit and exit_group. Return what the application gets in RAX; a thread or process that
 * they make continues in the cache by itself, after the system call. */
int64_t thread_call_clone(struct thread *thread, const uint64_t argument[6]);
int64_t thread_call_clone3(struct thread *thread, const uint64_t argument[6]);
int64_t thread_call_fork(struct thread *thread, bool is_vfork);
_Noreturn void thread_call_exit(struct thread *thread, uint64_t status, bool is_group);

/* Marks the thread's page as ended in this way; in mode PROCESS_ALL rings the bell. Nothing may be logged after that.
 * slot.c */
void thread_end(struct thread *thread, enum process_end end, uint64_t status);

/* The thread has died of a signal: waits until the parent has looked at it, if the parent wants to (hold.c). */
void hold_wait(struct thread *thread);

/* ---- the program (load.c) ---- */

/* A program or interpreter as load.c mapped it. */
struct image {
  uint64_t base;    /* load bias, which was added to its addresses */
  uint64_t entry;   /* where it starts */
  uint64_t headers; /* address of its program headers */
  uint16_t header_count, header_size;
  bool has_stack_code; /* its stack is to be executable */
};

/* Maps the program and its interpreter and adds their executable ranges. `ret_start` is where it starts: in the
 * interpreter if there is one. Does not return if it fails. */
void load_program(struct runtime *runtime, const char *path, struct image *ret_program, struct image *ret_start);

/* ---- execve (exec.c, program.c) ---- */

enum { PROGRAM_SCRIPTS = 5, PROGRAM_LINE = 256, PROGRAM_PATH = 4096, PROGRAM_HEADERS = 64 };

/* A script's first line, cut into words. */
struct script {
  char line[PROGRAM_LINE];
  const char *interpreter, *argument; /* NULL: no argument */
};

/* The program that a path would execute. */
struct program {
  char exe[PROGRAM_PATH]; /* absolute path of the ELF program */
  unsigned script_count;
  struct script scripts[PROGRAM_SCRIPTS]; /* the path's own first, then its interpreter's */
};

/* Finds the program; `fd`, `path` and `flags` are those of execveat. Returns false if the runtime cannot load it, for
 * whatever reason. Makes system calls of its own. */
bool program_find(struct runtime *runtime, int fd, const char *path, unsigned flags, struct program *ret_program);

/* execve and execveat. Return only if it failed; -EINTR_AGAIN as syscall_pass. A program that cannot be recorded
 * (32-bit, set-id, not readable, of unknown format, in a child that is not followed) is executed natively. */
int64_t exec_call(struct thread *thread, const uint64_t argument[6]);
int64_t exec_call_at(struct thread *thread, const uint64_t argument[6]);

/* The program was executed by a recorded program: `word` is the FD word of the command line, which is "FD:SLOT" then.
 * Marks the earlier threads as ended. Must be called before thread_new. */
void exec_arrived(struct runtime *runtime, const char *word);

/* ---- the other system calls (syscall.c) ---- */

/* Makes the system call that the application's registers ask for; state->rip is after it. Returns false: a signal comes
 * first, and the call must be made again after its handler. */
bool syscall_make(struct thread *thread);

/* mmap, munmap, mremap, mprotect, pkey_mprotect, madvise. And for a program whose stack is to be executable. map.c */
int64_t map_call(struct thread *thread, uint64_t number, const uint64_t argument[6]);
void map_stack_code(struct runtime *runtime, uint64_t stack);

/* A mapping that was there before the runtime. `path` is that of its file, or NULL. */
void map_adopt(struct runtime *runtime, const struct attach_range *range, const char *path);

/* Do any of these addresses belong to the runtime? */
bool map_is_ours(const struct runtime *runtime, uint64_t start, uint64_t size);

/* System calls by which a program asks about itself. proc_self.c */
int64_t self_call_readlink(struct thread *thread, uint64_t number, const uint64_t argument[6]);
int64_t self_call_path(struct thread *thread, uint64_t number, const uint64_t argument[6], unsigned path);
int64_t self_call_limit(struct thread *thread, uint64_t number, const uint64_t argument[6]);
bool self_is_exe(struct thread *thread, uint64_t path); /* is the path that of the program itself in /proc? */
void self_set_command(const uint64_t *stack, const uint64_t *auxv, uint64_t auxv_size); /* the program's stack */
struct prctl_mm_map self_map(const struct runtime *runtime,
                             uint32_t exe_fd); /* the same without the runtime, for lbr */
void self_get_name(struct thread *thread);     /* puts the thread's name into its page, */
void self_get_title(struct thread *thread);    /* and the command line of its process, or the title that it has set */

/* ---- the hidden descriptor (fd.c) ---- */

/* Is `fd` the descriptor of the shared memory, which looks closed to the application? */
bool fd_is_hidden(const struct thread *thread, uint64_t fd);

/* System calls that could close or change the hidden descriptor: it stays open, and looks closed. Return as
 * syscall_pass. */
int64_t fd_call_close(struct thread *thread, const uint64_t argument[6]);
int64_t fd_call_close_range(struct thread *thread, const uint64_t argument[6]);
int64_t fd_call_dup2(struct thread *thread, const uint64_t argument[6]);
int64_t fd_call_dup3(struct thread *thread, const uint64_t argument[6]);

/* fcntl, dup and any other system call whose first argument is a descriptor. */
int64_t fd_call_first(struct thread *thread, uint64_t number, const uint64_t argument[6]);

#pragma GCC visibility pop

#endif
