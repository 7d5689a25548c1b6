/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that recorded programs share with lbr: one file in memory for a program, its threads, its children and the
 * programs that they execute.
 *
 *   control page | thread pages | notes | steps | logs | snapshots | the runtime's ELF file
 *
 * It is sparse: untouched pages take no memory. It stays readable however a program ends. lbr trusts none of it, since
 * the programs can write to it.
 */
#ifndef PROCESS_SHARED_H
#define PROCESS_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "process/state.inc"
#include "trace/trace.h"

_Static_assert(sizeof(struct lb_step) == 32, "pages of the shared memory hold whole steps");

enum {
  PROCESS_PAGE = 4096,
  PROCESS_MAGIC = 0x3252424C, /* "LBR2" */
  PROCESS_THREADS = 4096,     /* alive at a time, in all processes together */
  PROCESS_PARTS = 4,          /* of a log */
  PROCESS_PART_LEAST = 1 << 16,
  PROCESS_PART_MOST = 1 << 28,
  PROCESS_STEPS_MOST = 1 << 28, /* in all processes together */
  PROCESS_STEPS_UNIT = 256,     /* numbers of steps are given out in multiples of this, which take whole pages, */
  PROCESS_STEPS_GIVEN = 4096,   /* and at most this many at a time */
  PROCESS_COMMAND = 256,        /* bytes of a command line that are kept, the last is 0 */
  PROCESS_SNAPSHOTS = 128,      /* programs that may leave a snapshot */
  PROCESS_TRIGGERS = 64,        /* addresses that are triggers in a process */
};

#define PROCESS_SNAPSHOTS_SIZE (UINT64_C(1) << 30) /* bytes of all snapshots */
#define PROCESS_IMAGE_SIZE (UINT64_C(1) << 20)     /* the most bytes of the runtime's ELF file */
#define PROCESS_REST_SIZE                                                                                              \
  (PROCESS_SNAPSHOTS_SIZE + PROCESS_IMAGE_SIZE) /* what follows the logs, which lbr does not map */

/* Why the runtime gave up. */
enum process_error {
#define PROCESS_ERROR(name, status, text) PROCESS_E_##name,
#include "process/error.def"
#undef PROCESS_ERROR
  PROCESS_ERRORS,
};

/* ---- the control page ---- */

enum process_mode {
  PROCESS_LAST, /* a log that is full is overwritten: the last branches stay */
  PROCESS_ALL,  /* a thread whose log is full waits until the parent has read it */
};

enum process_option {
  PROCESS_NO_FOLLOW = 1 << 0,  /* children run natively, not recorded */
  PROCESS_LOCKED = 1 << 1,     /* the parent holds a lock on the file as long as it exists */
  PROCESS_HOLD = 1 << 2,       /* a thread that a signal kills waits until it is released */
  PROCESS_LOOP = 1 << 3,       /* the processor executes LOOP as fast as other branches */
  PROCESS_RORX = 1 << 4,       /* it has RORX (BMI2) */
  PROCESS_ATTACHED = 1 << 5,   /* the programs were running before, and run on without the runtime at the end */
  PROCESS_TRIGGER = 1 << 6,    /* the branches around a trigger are wanted: runtime/trigger.c */
  PROCESS_SOME = 1 << 7,       /* only some threads are recorded, and nothing that they make */
  PROCESS_UNFILTERED = 1 << 8, /* lbr cannot suspend seccomp filters: it leaves a process that is about to set one */
  PROCESS_TSC = 1 << 9,        /* the time stamp counter counts time, on all processors alike */
  PROCESS_TSCP = 1 << 10,      /* there is RDTSCP, and Linux gives it the number of the processor */
};

/* The first time that a trigger was reached, or that a call took too long, in any process. */
struct process_hit_record {
  uint32_t is_taken;  /* a thread has it, and fills it in. Threads then keep what is in their logs */
  uint32_t is_filled; /* all of it is there */
  uint32_t process, thread;
  uint64_t address;
  uint64_t time;     /* CLOCK_MONOTONIC in nanoseconds; 0: the thread could not ask for it */
  uint64_t duration; /* of a call, in nanoseconds */
};

struct process_control {
  uint32_t magic;
  uint32_t mode;       /* enum process_mode */
  uint32_t options;    /* enum process_option */
  uint32_t part_size;  /* bytes of a part of a log: a power of two */
  uint64_t notes_size; /* bytes */
  uint64_t
    cache_size; /* limit on the bytes of translated code, with a minimum; 0: as many as there is room for. For tests */
  uint32_t step_capacity;
  uint32_t step_count;   /* numbers below this were given out, from PROCESS_STEPS_UNIT on. Those not yet filled have
                            flags 0 and head 0 */
  uint64_t notes_used;   /* bytes given out */
  uint32_t space_count;  /* address spaces so far: the first is 1 */
  uint32_t thread_high;  /* thread pages that were ever used are below this */
  uint32_t thread_count; /* threads so far: gives each thread its place in the order */
  uint32_t bell;         /* a futex: counts events that the parent may want to look at in mode PROCESS_ALL */
  uint32_t is_listening; /* the parent sleeps on the bell */
  uint32_t is_closed;    /* the parent has stopped reading: logs are overwritten from now on */
  uint32_t error;        /* enum process_error: the first error */
  int32_t system_error;  /* the -errno behind it, or 0 */
  uint32_t error_process;
  uint64_t address;        /* in the application, where it happened */
  uint64_t number;         /* of the system call or signal that caused it, if one did */
  uint32_t code_lost;      /* there was no room for notes of code: those of steps from this one on are missing. 0: no */
  uint32_t ages;           /* times that a full cache was restarted, in all processes together */
  uint32_t nudges;         /* signals that were sent for that */
  uint32_t first_process;  /* the system's number of the process that lbr has started */
  uint32_t snapshots_used; /* pages of snapshots that were given out */
  uint32_t step_base;      /* numbers below this belong to steps that earlier recordings have stored */
  uint32_t step_limit;     /* steps with a number below this can be stored, 0: none */
  uint32_t stored;         /* files that were written to the store */
  uint32_t store_user;     /* the user who may use the store */
  uint32_t is_closing;  /* lbr leaves: a thread whose log is full does not wait, and what it does then is not logged */
  uint32_t image_size;  /* bytes of the runtime's ELF file in this memory, 0: it is not there */
  uint64_t store_epoch; /* files of another epoch have numbers that were given out twice */
  uint64_t slow; /* with PROCESS_TRIGGER: a call of a function at a trigger is a hit if it takes more nanoseconds than
                    this; 0: reaching a trigger is a hit */
  struct process_hit_record hit;
};

/* The translations that a program has left for the next process that executes it: runtime/snapshot.c. lbr does not read
 * them. An array of these is in the control page. */
struct process_snapshot {
  uint64_t key;   /* of the program's file, 0: free */
  uint64_t value; /* the newest snapshot: its first page among the snapshots, and its number of units << 32. 0: none */
};

#define PROCESS_SNAPSHOT_STORED UINT32_MAX /* in the place of the first page: it is a file of the store */

/* Offsets in the control page of the folder of the store, a path that ends with 0 and is empty if there is no store; of
 * the array of snapshots; and, for each of them that is a file of the store, the sum of the file. */
enum {
  PROCESS_STORE_AT = 512,
  PROCESS_SNAPSHOTS_AT = 1024,
  PROCESS_SUMS_AT = PROCESS_SNAPSHOTS_AT + PROCESS_SNAPSHOTS * (int)sizeof(struct process_snapshot),
  PROCESS_STORE_PATH = PROCESS_SNAPSHOTS_AT - PROCESS_STORE_AT,
};

_Static_assert(sizeof(struct process_control) <= PROCESS_STORE_AT, "");
_Static_assert(PROCESS_SUMS_AT + PROCESS_SNAPSHOTS * sizeof(uint64_t) <= PROCESS_PAGE, "");

static inline char *process_store_path(struct process_control *control)
{
  return (char *)control + PROCESS_STORE_AT;
}

static inline uint64_t *process_sums(struct process_control *control)
{
  return (uint64_t *)(void *)((uint8_t *)control + PROCESS_SUMS_AT);
}

static inline struct process_snapshot *process_snapshots(struct process_control *control)
{
  return (struct process_snapshot *)(void *)((uint8_t *)control + PROCESS_SNAPSHOTS_AT);
}

/* ---- a thread ---- */

enum process_thread_status {
  THREAD_FREE,
  THREAD_STARTING, /* taken, not yet filled */
  THREAD_LIVE,
  THREAD_GONE, /* it has ended; its log is complete. The parent frees the page in mode PROCESS_ALL, else a thread that
                  finds no free page does */
};

/* A thread with PROCESS_TRIGGER has mapped files, and waits until lbr has looked for triggers in them. */
enum process_ask { ASK_NONE, ASK_OPEN, ASK_ANSWERED };

/* A log that is not written to any more. */
enum process_cut {
  CUT_NONE,
  CUT_CLEAN, /* its parts are whole; the part that is being filled holds nothing */
  CUT_MIXED, /* the same, but the oldest part was overwritten */
};

/* How it ended. */
enum process_end { END_NONE, END_EXIT, END_EXIT_GROUP, END_EXEC, END_SIGNAL, END_LEFT };

/* The first part of a thread's page; GS of the thread points to it. Offsets that the cache's code uses are in
 * state.inc. */
struct process_state {
  uint64_t log; /* address, in the application, of the next entry, as of the last time the thread was outside the cache:
                   the entries from there up to the first 0 were written since */
  uint64_t leave_direct, leave_indirect, leave_syscall, leave_stale; /* addresses in start.S */
  uint64_t resume;                                                   /* where the application continues */
  uint64_t stack;                                                    /* the runtime's */
  uint64_t flags; /* the application's RFLAGS while it is outside the cache */
  uint64_t spill_rcx, spill_rdx, spill;
  uint64_t exit;    /* leave_stale: number of the head; leave_syscall: of the step, or why there is none */
  uint64_t self;    /* address of this, in the application */
  uint64_t pending; /* not 0: a signal waits until the application is at a safe point */
  uint64_t native;  /* native_enter: its target, outside the cache or in a unit that has R11 */
  uint64_t unused;
  uint64_t registers[16]; /* the application's, in the order of the encoding, while outside the cache; R11 always */
  uint64_t rip;           /* the application's, while outside the cache */

  /* ---- for the parent ---- */
  uint32_t status;          /* enum process_thread_status */
  uint32_t space;           /* address space it runs in */
  uint32_t process, thread; /* the system's numbers */
  uint64_t log_start;       /* address, in the application, of the first part; each is followed by a page that faults */
  uint64_t written;         /* parts that were filled; the one that is being filled is number written % PROCESS_PARTS */
  uint64_t read;            /* parts that the parent is done with; a futex (the low half) in mode PROCESS_ALL */
  uint32_t is_waiting;      /* the thread sleeps on `read` */
  uint32_t serial;          /* counts uses of this page, to distinguish a thread from an earlier one */
  uint32_t creator;         /* the system's number of the thread that created it, 0: the first of a program */
  uint32_t end;             /* enum process_end */
  uint64_t end_status;      /* exit status, or the signal's number */
  int32_t signal_code;      /* si_code, */
  uint32_t ended;           /* control.bell when it ended: tells which page is reused first when none is free */
  uint64_t signal_address;  /* si_addr, */
  uint64_t death_rip, death_flags, death_registers[16]; /* and the application's registers, with END_SIGNAL */
  char name[16];
  uint32_t numbering; /* PID namespace of the system's numbers: equal values mean the same namespace, 0 is lbr's */
  uint32_t released;  /* a futex: with PROCESS_HOLD, `serial` of the thread that has died and may end */
  uint64_t waited;    /* nanoseconds that it waited for the parent to read its log */
  uint64_t death_top; /* with END_SIGNAL: the word that RSP points to, */
  uint32_t has_top;   /* if it could be read; */
  char command[PROCESS_COMMAND]; /* when its process ends or executes a program: the words of /proc/self/cmdline, each
                                    ended by 0, or the title that it has set */
  uint32_t is_unwanted; /* of a child that is not followed, in a process that lbr has attached to: lbr leaves it, too */
  uint32_t is_cut;      /* enum process_cut: its log was full when lbr left, or some time after a trigger */
  uint32_t place;       /* in the order in which threads were made, in all processes together */
  uint32_t ask;         /* enum process_ask, a futex */
  uint32_t trigger_count;              /* the answer: how many, */
  uint64_t triggers[PROCESS_TRIGGERS]; /* and which addresses */
  uint64_t ask_start, ask_end;         /* the notes that the question is about: offsets, the second is after the last */
  uint32_t
    is_first; /* of the recorded threads of a process that lbr has attached to; its first thread may have ended */
  uint32_t can_leave; /* the runtime of a program that was executed has taken over its signals: lbr can leave it */
};

static inline uint64_t process_thread_offset(uint32_t thread)
{
  return PROCESS_PAGE * (1 + (uint64_t)thread);
}

/* ---- stamps in a log ---- */

/* The first byte of a stamp, which is an event of kind LB_ENTRY_STAMP in a log: its words are STAMP | type << 8 |
 * cpu << 16 | changed << 28, and two values of 64 bits, the lower half first. No word is 0xFFFFFFFF: such a word is 0,
 * and its bit of `changed` is set. */
enum process_stamp {
  STAMP_TIME, /* the time; CPU time of the thread in nanoseconds, 0: not known */
  STAMP_START,
  STAMP_CALL,      /* the time; number of the system call. Its arguments and paths come before it */
  STAMP_RETURN,    /* the time; what the call returned, folded: 0, -1, 1, -2 become 0, 1, 2, 3 */
  STAMP_SIGNAL,    /* the time; the signal's number. Its code and value come before it, as arguments */
  STAMP_END,       /* the time; enum process_end, and the status << 8, folded */
  STAMP_HELD,      /* the time; nanoseconds that the thread has waited for lbr, folded */
  STAMP_ARGUMENTS, /* two arguments, folded; in place of the cpu the index of the first */
  STAMP_PATH,      /* 16 bytes of a path, the last piece with a 0 at its end; in place of the cpu, which path it is */
  STAMP_TYPES,
  STAMP_IS_NANOSECONDS = 0x80, /* added to the type: the time is that of CLOCK_MONOTONIC, not the counter's */
};

#define PROCESS_NO_CPU 0xFFFu
#define PROCESS_CPU_BITS 12u /* those that Linux has in TSC_AUX; the rest is the node */

/* ---- notes: rare events, in their order ---- */

enum process_note_type {
  NOTE_MAP = 1, /* a file, or the vdso, can be executed here from now on */
  NOTE_UNMAP,   /* nothing of a file is here any more */
  NOTE_CODE,    /* bytes of a path that is in no file; written before its steps can be logged */
  NOTE_SPACE,   /* a new address space: a program begins, or, before fork makes it, a copy of another space */
  NOTE_STEPS,   /* numbers of steps that belong to the space from now on, in mode PROCESS_ALL */
  NOTE_NONE,    /* there will be no such space: the fork failed */
  NOTE_KEPT,    /* the space has left a snapshot: other spaces may use its steps, also after its end */
  NOTE_TYPES,
};

/* The size is written last; a note of size 0 is not there yet. Notes begin at multiples of 8. */
struct process_note {
  uint32_t size; /* bytes, this included, a multiple of 8 */
  uint32_t type;
  uint32_t space;
  uint32_t step;   /* control.step_count at the time: steps of this space from there on are later than the note */
  uint64_t start;  /* address; NOTE_SPACE: number of the system's process, 0 of a copy; NOTE_STEPS: first number */
  uint64_t end;    /* the address after it; NOTE_SPACE: the space it is a copy of, or 0 */
  uint64_t offset; /* NOTE_MAP: in the file */
  uint32_t length; /* bytes that follow: path of the file ("[vdso]" for that); code; NOTE_SPACE: path of the program */
  uint32_t unused;
};

_Static_assert(sizeof(struct process_note) == 48, "");

enum { PROCESS_NOTE_MOST = 1 << 16 }; /* bytes of a note: more than a path's code, or the path of a file */

static inline uint64_t process_notes_offset(void)
{
  return process_thread_offset(PROCESS_THREADS);
}

static inline uint64_t process_steps_offset(uint64_t notes_size)
{
  return process_notes_offset() + notes_size;
}

/* Both sizes are multiples of a page. */
static inline uint64_t process_logs_offset(uint64_t notes_size, uint32_t step_capacity)
{
  return process_steps_offset(notes_size) + (uint64_t)step_capacity * sizeof(struct lb_step);
}

/* The parts of a log are adjacent in the file. In the application, a guard page follows each part. */
static inline uint64_t process_log_offset(const struct process_control *control, uint32_t thread)
{
  return process_logs_offset(control->notes_size, control->step_capacity) +
         (uint64_t)thread * PROCESS_PARTS * control->part_size;
}

/* Snapshots follow the logs. */
static inline uint64_t process_snapshots_offset(const struct process_control *control)
{
  return process_log_offset(control, PROCESS_THREADS);
}

/* The runtime's ELF file follows them, where lbr is attached to processes: they execute programs with it. */
static inline uint64_t process_image_offset(const struct process_control *control)
{
  return process_snapshots_offset(control) + PROCESS_SNAPSHOTS_SIZE;
}

#define AT(field, offset) _Static_assert(offsetof(struct process_state, field) == (offset), "")
AT(log, STATE_LOG);
AT(leave_direct, STATE_LEAVE_DIRECT);
AT(leave_indirect, STATE_LEAVE_INDIRECT);
AT(leave_syscall, STATE_LEAVE_SYSCALL);
AT(leave_stale, STATE_LEAVE_STALE);
AT(resume, STATE_RESUME);
AT(stack, STATE_STACK);
AT(flags, STATE_FLAGS);
AT(spill_rcx, STATE_SPILL_RCX);
AT(spill_rdx, STATE_SPILL_RDX);
AT(spill, STATE_SPILL);
AT(exit, STATE_EXIT);
AT(self, STATE_SELF);
AT(pending, STATE_PENDING);
AT(native, STATE_NATIVE);
AT(registers, STATE_REGISTERS);
AT(rip, STATE_RIP);
_Static_assert(STATE_R11 == STATE_REGISTERS + 11 * 8, "");
#undef AT
_Static_assert(sizeof(struct process_state) <= REGION_WIDE, "");

#endif
