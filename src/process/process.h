/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a Linux program and logging its branches: launch.c starts the program under the runtime of runtime/, which
 * logs the blocks that it executes into shared memory; rebuild.c turns these into branches. The decoder declared here
 * is for the runtime, which must do without libc and without Zydis.
 */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/jit.h" /* IWYU pragma: export */
#include "process/store.h"

struct lb_branch;
struct lb_step;
struct process_note;
struct attachment;

/* How an instruction of 64-bit mode ends a block, or that it does not. */
enum code_flow {
  CODE_PLAIN,
  CODE_JCC,      /* Jcc: imm is the displacement */
  CODE_LOOP,     /* LOOPcc, JrCXZ */
  CODE_JMP,      /* near relative */
  CODE_CALL,     /* near relative */
  CODE_JMP_IND,  /* near, through register or memory */
  CODE_CALL_IND, /* likewise */
  CODE_RET,      /* near; imm is the number of bytes that it removes from the stack */
  CODE_FAR,      /* far jumps, calls and returns, IRET */
  CODE_SYSCALL,
  CODE_INT, /* INT n, INT3, INT1, SYSENTER */
  CODE_UD,  /* UD0, UD1, UD2, HLT: execution does not continue */
};

enum code_prefix {
  CODE_66 = 1 << 0,
  CODE_67 = 1 << 1,
  CODE_F2 = 1 << 2,
  CODE_F3 = 1 << 3,
  CODE_LOCK = 1 << 4,
  CODE_FS = 1 << 5,
  CODE_GS = 1 << 6,
};

/* Where the parts of an instruction lie. */
struct code {
  uint8_t length;
  uint8_t flow;     /* enum code_flow */
  uint8_t prefixes; /* enum code_prefix */
  uint8_t rex;      /* 0: none. Of VEX, EVEX and XOP the bits as REX has them */
  uint8_t map;      /* 0 one-byte, 1 0F, 2 0F38, 3 0F3A; the map field of VEX, EVEX and XOP */
  uint8_t opcode;
  uint8_t encoding;     /* 0 legacy, else the first byte: 0xC4, 0xC5, 0x62, 0x8F */
  uint8_t modrm_offset; /* 0: none */
  uint8_t modrm;
  uint8_t disp_offset, disp_size; /* size 0: none; MOV with an absolute address has 8 */
  uint8_t imm_offset, imm_size;
  bool is_rip_relative;
};

/* Decodes the instruction of 64-bit mode at `bytes` as far as needed to copy it. It does not tell whether the
 * instruction exists, only how long it would be. Returns its length, or 0: it is longer than `size` or 15 bytes, or its
 * opcode is none in 64-bit mode. */
unsigned code_decode(const uint8_t *bytes, size_t size, struct code *ret_code);

/* ---- running a program ---- */

/* The runtime: an ELF program without libc, which launch.c executes. */
extern const uint8_t process_runtime[], process_runtime_end[];

struct process_module;

/* The moment around which the branches are wanted: a thread reaches one of some addresses, or a call of a function
 * there takes longer than `slow` nanoseconds, if that is not 0. */
struct process_trigger {
  uint64_t slow;
  /* Returns how many addresses of a mapping are triggers, at most `most`. Called before code there can run. With the
   * empty path "": triggers that are in no file, for a process that begins. */
  size_t (*find)(void *data, const struct process_module *module, uint64_t *ret_addresses, size_t most);
  void *data;
};

struct process_options {
  bool has_store;     /* translations are kept for later recordings: store.h */
  bool is_all;        /* every branch is wanted: a thread whose log is full waits until it is read */
  bool is_alone;      /* children are not recorded */
  bool is_held;       /* a thread that a signal kills waits for process_release before it ends its process */
  uint32_t part_size; /* bytes of one of the four parts of a thread's log, a power of two from 64 KiB to 256 MiB; 0: 256
                         KiB, with is_all 1 MiB */
  void (*begin)(void); /* called in the child before it executes the program. The child shares lbr's memory, and lbr
                          waits meanwhile. All signals are blocked: it sets the mask and the dispositions that the
                          program inherits. NULL: the program inherits those of lbr */
  const struct process_trigger *trigger; /* NULL: none. It must stay as long as the process. Without is_all */
  /* For process_attach: */
  bool has_descendants; /* the descendants of the processes, too */
  const int *threads;   /* only these threads are recorded, and nothing that they make; none: all */
  size_t thread_count;
};

/* The clocks of a recording. Times in its trace are nanoseconds since `start`. */
struct process_clock {
  uint64_t start;           /* CLOCK_MONOTONIC when the recording began, */
  uint64_t start_tick;      /* and the time stamp counter then */
  uint64_t wall;            /* CLOCK_REALTIME then */
  uint64_t last, last_tick; /* the newest readings of the first two */
};

void process_clock_begin(struct process_clock *clock);

/* A program that was started, and the memory that it shares with lbr. The sizes here are lbr's own, since the program
 * can overwrite those in the memory. */
struct process {
  int pid;
  int number; /* of the same process, as it knows it itself: it may be in another PID namespace */
  int fd;     /* of the memory; it holds a lock, by which the programs see that lbr is there. 0: none */
  uint8_t *memory;
  size_t memory_size;
  uint64_t notes_size;
  uint32_t step_capacity;
  uint32_t part_size;
  struct store store;
  struct process_clock clock;
  struct attachment *attachment; /* NULL: the program was started */
  int *attached;                 /* the processes that lbr has attached to */
  size_t attached_count;
  double stopped;
  const struct process_trigger *trigger; /* NULL: none */
};

/* Starts the program at the path, without a search, with the arguments and the environment, both ended by NULL; there
 * is at least one argument, the name. Returns 0; -EINVAL: an option out of range; -errno. A program that cannot be
 * executed is no failure here: it shows in process_error. */
int process_launch(const struct process_options *options, const char *path, char *const arguments[],
                   char *const environment[], struct process *ret_process);

/* Attaches to processes that run already, each of which goes on in the code cache from where it is; `begin` and
 * `has_store` of the options have no effect. `wait` is called now and then while a thread cannot be stopped; it returns
 * false to give up. Returns 0, or -errno after a message: no process was changed. */
typedef bool process_wait_function(void *data, int thread, double seconds);
int process_attach(const struct process_options *options, const int *pids, size_t count, process_wait_function *wait,
                   void *data, struct process *ret_process);

/* Gives the code of files, and the vdso, that a process has mapped, with a path by which lbr can open the file. Returns
 * 0 or -errno. */
int process_modules(int process, void (*visit)(void *data, const struct process_module *module), void *data);

/* The process of a thread, 0: there is no such thread; and whether a thread has ended. */
int process_of_thread(int thread);
bool process_has_thread_ended(int thread);

/* Can lbr attach to the process, as far as that is known without stopping it? Returns 0, or -errno after a message. */
int process_check(int process);

/* Leaves all processes of the recording: they go on natively, and nothing is left in them. The logs stay readable.
 * Returns 0, or -errno after a message. Does nothing for a program that was launched. */
int process_detach(struct process *process, process_wait_function *wait, void *data);

/* Whether lbr is attached, rather than having started the program; and for how long the processes stood still, in
 * seconds, all together: the last attaching or leaving. */
bool process_is_attached(const struct process *process);
double process_stopped(const struct process *process);

/* Has this process ended, whoever has started it? */
bool process_has_ended(int process);

/* Waits for the program's end and reaps it. Returns 0 with the status of waitpid(2), or -errno. */
int process_wait(struct process *process, int *ret_status);

/* Unmaps the memory. Accepts a process that was never launched, if it is all zero. Does not end the program. */
void process_done(struct process *process);

/* Has the program destroyed the memory that it shares with lbr? Its contents are then meaningless. */
bool process_is_destroyed(const struct process *process);

/* Is this one of the processes that run our runtime? Check it for a number from memory that a program can write to. */
bool process_is_ours(const struct process *own, uint32_t process);

/* guard.c, for launch.c: between these two calls, a truncation of the shared file does not kill lbr. */
void process_guard(const struct process *process);
void process_unguard(const struct process *process);

/* Why the runtime gave up (enum process_error of shared.h, 0: it did not), and in which process. The pointers may be
 * NULL. */
unsigned process_error(const struct process *process, int *ret_system_error, uint64_t *ret_address,
                       uint64_t *ret_number);

/* The sentence of an error; "?" for an unknown number. */
const char *process_error_text(unsigned error);

/* ---- what is in the shared memory (threads, notes: shared_memory.c) ---- */

#define PROCESS_COMMAND_MOST 256

/* A thread that runs or has run. */
struct process_thread {
  uint32_t slot;
  uint32_t serial;
  uint32_t status; /* enum process_thread_status */
  uint32_t space;
  uint32_t process, thread, creator; /* the system's numbers, */
  bool is_elsewhere;                 /* which are those of another PID namespace than lbr's */
  uint64_t written, read;            /* parts of its log */
  uint32_t position;                 /* entries in the part that is being filled */
  uint32_t end;                      /* enum process_end */
  uint64_t end_status;
  int32_t signal_code;
  uint64_t signal_address, rip, flags, registers[16]; /* with END_SIGNAL */
  bool has_top;                                       /* with END_SIGNAL: `top` is the word that RSP points to */
  uint64_t top;
  char command[PROCESS_COMMAND_MOST]; /* its words, or its title, with blanks between them; "": not known */
  char name[17];
};

/* How many slots there are to look at. */
uint32_t process_slots(const struct process *process);

/* Returns false: nothing there. */
bool process_thread(const struct process *process, uint32_t slot, struct process_thread *ret_thread);

/* The fate of a thread. The first: it is running, or its process was ended from outside. The second: a signal killed
 * it, whose number is `end_status`. The third: it ended by itself; with `ret_is_group`, its process ended with it, with
 * `end_status`. */
bool process_thread_is_live(const struct process_thread *thread);
bool process_thread_has_died(const struct process_thread *thread);
bool process_thread_has_exited(const struct process_thread *thread, bool *ret_is_group);

/* Lets a thread that has died end, and its process with it. */
void process_release(const struct process *process, const struct process_thread *thread);

/* Has it executed a program that cannot be recorded? Nothing is known of its process from then on. */
bool process_thread_is_native(const struct process_thread *thread);

/* Entries in the part of the log that is being filled: those up to `log`, the address when the thread was last outside
 * its cache, and those that it has written since, up to the first 0. The runtime advances the number of the part before
 * the address: an address that is still in the previous part means that the new part is empty. `known` entries of the
 * part are known to be there. */
uint32_t process_position(const struct process *process, uint32_t slot, uint64_t written, uint64_t log,
                          uint64_t log_start, uint32_t known);

/* The newest entries of a thread's log, oldest first: appends to the array `entries` of `ret_count` (array_grow of
 * base.h; starts as NULL, 0). Appends at most what the log holds: all parts but one, if the thread is still running.
 * Returns 0 or -ENOMEM. */
int process_entries(const struct process *process, const struct process_thread *thread, uint32_t **ret_entries,
                    size_t *ret_count, bool *ret_is_cut);

/* The same, but only the last `most` entries. Reading few entries of a running thread gets them before they are
 * overwritten. */
int process_entries_last(const struct process *process, const struct process_thread *thread, size_t most,
                         uint32_t **ret_entries, size_t *ret_count, bool *ret_is_cut);

/* Are all of these bytes of the shared memory backed by pages? Reading bytes that were never written would allocate
 * some. Without a descriptor the answer is yes. */
bool process_has(const struct process *process, uint64_t offset, uint64_t size);

/* Reads the step with this number. Returns false if there is none, or if it is invalid. */
bool process_step(const struct process *process, uint32_t number, struct lb_step *ret_step);

/* The same, for numbers that a program may have made up: allocates no memory for steps that were never written.
 * `pages`, process_step_pages bytes that are all zero at first, remembers which pages have memory. */
bool process_step_known(const struct process *process, uint32_t number, uint8_t *pages, struct lb_step *ret_step);
size_t process_step_pages(const struct process *process);

/* Reads the note at `*offset`, which starts as 0, and moves `*offset` past it. `ret_bytes` are the note's `length`
 * bytes, in shared memory: they may change. Returns false if there is no note yet, or if the notes are invalid from
 * here on. */
bool process_note(const struct process *process, uint64_t *offset, struct process_note *ret_note,
                  const uint8_t **ret_bytes);

/* ---- its branches (rebuild.c) ---- */

struct process_branches {
  struct lb_branch *branches; /* in the order in which they were taken */
  uint32_t *steps; /* for each branch: number of a step of its path, which has its address space; 0: not known */
  size_t count, capacity;
  bool is_cut;     /* older ones are missing: the log wrapped around, or they were not asked for */
  bool is_damaged; /* process_rebuild_last: invalid entries were left out */
};

/* The taken branches of a thread, as far back as its log goes. Returns 0; -ENOMEM; -EBADMSG: the shared memory is
 * invalid, perhaps because the program overwrote it; the branches before that point are there. */
int process_rebuild(const struct process *process, const struct process_thread *thread,
                    struct process_branches *ret_branches);

/* Rebuilds the last `most` branches of a thread. Invalid entries are left out. Returns 0 or -ENOMEM. */
int process_rebuild_last(const struct process *process, const struct process_thread *thread, size_t most,
                         struct process_branches *ret_branches);

void process_branches_done(struct process_branches *branches);

/* ---- what lay where (space.c) ---- */

#define PROCESS_NOW UINT32_MAX /* as a step: later than all of them */

/* A piece of a file in an address space. */
struct process_module {
  uint64_t start, end; /* addresses */
  uint64_t offset;     /* of `start` in the file */
  const char *path;    /* good as long as the spaces; any bytes but 0 */
};

struct process_spaces;

/* Makes the spaces from the notes as they are now. The process must outlive them. Returns 0 or -ENOMEM. */
int process_spaces_new(const struct process *process, struct process_spaces **ret_spaces);
void process_spaces_free(struct process_spaces *spaces); /* takes NULL */

/* The module at an address when the step with this number was new, in the address space of that step. If nothing was
 * there, if there is no such step, or for PROCESS_NOW: the module in `space` as it is now. Returns false, touching
 * nothing: none was there, or there is no memory. */
bool process_spaces_find(struct process_spaces *spaces, uint32_t space, uint32_t step, uint64_t address,
                         struct process_module *ret_module);

/* Code that was in no file; `space` and `step` as above. Returns how many bytes of it are known from the address on, at
 * most `size`. */
size_t process_spaces_code(struct process_spaces *spaces, uint32_t space, uint32_t step, uint64_t address,
                           uint8_t *bytes, size_t size);

/* The modules of an address space as it is now, from 0 on. Returns false past the last. */
bool process_spaces_module(struct process_spaces *spaces, uint32_t space, size_t number,
                           struct process_module *ret_module);

/* The system's number of the process of an address space; 0: not known. */
uint32_t process_spaces_process(const struct process_spaces *spaces, uint32_t space);

/* Path of the program that an address space was made for; "" if it is not known. Good as long as the spaces. */
const char *process_spaces_program(struct process_spaces *spaces, uint32_t space);

/* ---- the branches around a trigger (ring.c) ---- */

/* Which thread has reached the trigger, and when. */
struct process_hit {
  uint32_t process, thread; /* the system's numbers */
  uint64_t address;
  uint64_t time;     /* CLOCK_MONOTONIC, in nanoseconds */
  uint64_t duration; /* of the call that took too long, or 0 */
};

struct process_ring;

/* Watches the logs of a process that was started with a trigger. `before` is the time before the hit whose branches are
 * wanted, in nanoseconds; 0: as much as the logs hold. The process must outlive the ring. Returns 0 or -ENOMEM. */
int process_ring_new(const struct process *process, uint64_t before, struct process_ring **ret_ring);
void process_ring_free(struct process_ring *ring); /* takes NULL */

/* Answers threads that wait for triggers, and notes how far the logs are. Then sleeps until a thread needs an answer or
 * there is a hit, at most for `milliseconds`. */
void process_ring_step(struct process_ring *ring, unsigned milliseconds);

/* Is a recorded process alive? */
bool process_ring_is_alive(const struct process_ring *ring);

/* Returns whether there is a hit. */
bool process_ring_hit(const struct process_ring *ring, struct process_hit *ret_hit);

/* The time after the hit is over. Threads run on without overwriting their logs. From here on process_drain_window
 * gives what was logged from `before` the hit until now. */
void process_ring_close(struct process_ring *ring, const struct process_hit *hit);

/* The name of a thread; "?" if it is not known. Good until the next call. */
const char *process_ring_name(struct process_ring *ring, uint32_t process, uint32_t thread);

/* ---- recordings that other lbr processes make now (peek_find.c, peek.c) ---- */

struct lb_trace_writer;
struct process_peek;

/* Starts as all zero. */
struct process_peeks {
  struct process_peek **list;
  size_t count, capacity;
  unsigned refused; /* lbr processes of other users, whose recordings cannot be read */
};

/* Finds all recordings whose shared memory this process may read. Those that it knew stay, unless they are over. Writes
 * to none of them. Returns 0 or -errno. */
int process_peeks_look(struct process_peeks *peeks);
void process_peeks_done(struct process_peeks *peeks);

/* The branches that a look at a recording has found. */
struct process_peek_view {
  int process;               /* the first of its processes; 0: it has none that can be seen */
  size_t processes, threads; /* that are recorded */
  uint64_t branches;         /* in the trace */
  double seconds;            /* since the look before; 0: this is the first, and has all that is in the logs */
  uint64_t entries, logged;  /* of the logs: in the trace, and all of that time. The newest are in the trace: of each
                                thread the same share */
};

/* Writes the newest branches of a recording to the trace: those since the last call for this recording. Closes the
 * writer. Returns 0 or the error of the writer. */
int process_peek_write(struct process_peek *peek, struct lb_trace_writer *writer, struct process_peek_view *ret_view);

/* ---- its branches into a trace, while it runs (drain.c) ---- */

struct process_drain;

enum process_drain_end {
  DRAIN_NONE,      /* it continues */
  DRAIN_LIMIT,     /* the trace has reached its limit */
  DRAIN_FAILED,    /* the trace could not be written, or there was no memory: `error` says why */
  DRAIN_DESTROYED, /* the program has destroyed the shared memory */
  DRAIN_DONE,      /* process_drain_finish */
};

struct process_drain_state {
  enum process_drain_end end; /* why it has stopped: the programs continue without being recorded */
  int error;
  uint64_t threads, processes; /* numbers of those that were seen */
  uint32_t alive;              /* threads that are recorded and not known to have ended */
  uint32_t spoiled;            /* threads whose log the program has destroyed: the rest of it is missing */
};

/* Reads the logs of a program that was launched with `is_all`, and of its children, and gives them to the writer:
 * address spaces as modules and code, threads as streams. `limit` is how many bytes the trace may have, 0: any number.
 * Both must stay good until process_drain_free, and the process longer than the writer. Returns 0 or -ENOMEM. */
int process_drain_new(struct process *process, struct lb_trace_writer *writer, uint64_t limit,
                      struct process_drain **ret_drain);
/* The same for what a closed ring holds: process_drain_finish writes all of it. The ring must outlive the drain. */
int process_drain_window(struct process *process, struct lb_trace_writer *writer, uint64_t limit,
                         struct process_ring *ring, struct process_drain **ret_drain);
void process_drain_free(struct process_drain *drain); /* takes NULL */

/* Takes the entries that were logged. If there are none, sleeps until there are some, at most for `milliseconds`.
 * Returns the state, which is valid until the next call. */
const struct process_drain_state *process_drain_step(struct process_drain *drain, unsigned milliseconds);

/* The costs that make a recorded program slow, up to now. */
struct process_costs {
  uint64_t entries;   /* of logs that were given to the trace */
  uint32_t steps;     /* that were translated */
  uint32_t processes; /* so far, the programs that they execute counted too */
  double waited;      /* seconds that threads waited until their logs were read, all together */
};

void process_drain_costs(const struct process_drain *drain, struct process_costs *ret_costs);

/* The system's numbers of processes that are recorded now, each once, as far as they are visible. Returns how many, at
 * most `most`. */
size_t process_drain_processes(const struct process_drain *drain, uint32_t *ret_processes, size_t most);

/* Ends the sleep of process_drain_step, or the next one. May be called in a signal handler. */
void process_drain_ring(const struct process *process);

/* Takes everything that was logged up to now. Threads that are still alive continue without being recorded; the trace
 * has a gap there. `is_over`: no process is left, and there is no gap. */
const struct process_drain_state *process_drain_finish(struct process_drain *drain, bool is_over);

#endif
