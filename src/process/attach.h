/* SPDX-License-Identifier: Apache-2.0
 *
 * What lbr and the runtime tell each other when lbr attaches to a running process, and when it leaves the process
 * again. lbr has stopped all threads by ptrace(2) then. It writes a struct attach_info into memory of the process and
 * lets one thread run the runtime's entry points below, each of which ends at a breakpoint with the address of the
 * answer in RDI.
 */
#ifndef PROCESS_ATTACH_H
#define PROCESS_ATTACH_H

#include <linux/prctl.h>
#include <stdint.h>

/* The runtime's code and data in a process that lbr attaches to. The rest of its memory follows: kernel.h of the
 * runtime. */
#define ATTACH_IMAGE UINT64_C(0x7E7FF0000000)
#define ATTACH_PLACES_END UINT64_C(0x7EC000000000)

/* Distances from the runtime's entry point to others: the section ".attach" of its ELF file. */
struct attach_entries {
  int64_t process;   /* attach_process(struct attach_info *), in one thread */
  int64_t thread;    /* attach_thread(struct thread *), in each thread, with GS */
  int64_t start;     /* leave_start(struct thread *), in a thread that was to begin with attach_thread */
  int64_t call;      /* leave_call(result, number, is_again): a system call of the application was interrupted */
  int64_t leave;     /* leave_process(): all threads have left */
  int64_t stopped;   /* the address after the breakpoint */
  int64_t call_back; /* the address after the instruction by which the application's system calls are made */
};

enum attach_flag { ATTACH_CODE = 1 << 0, ATTACH_WRITABLE = 1 << 1, ATTACH_SHARED = 1 << 2 };

/* A mapping that can be executed, or is shared. */
struct attach_range {
  uint64_t start, end;
  uint64_t offset; /* in the file */
  uint64_t flags;  /* enum attach_flag */
  uint64_t path;   /* offset in attach_info of a text that ends with 0; 0: no file */
};

struct attach_thread {
  uint64_t registers[16]; /* in the order of the encoding */
  uint64_t rip, flags, mask;
  uint64_t rseq; /* as registered for rseq(2), 0: none */
  uint32_t rseq_size, rseq_signature;
  uint32_t number;      /* of the thread, as lbr sees it */
  uint32_t interrupted; /* the thread was in a system call, which is executed again: errno of the interruption, or 0 */
  uint64_t call;        /* then: the number of the call, where RAX has that of restart_syscall(2) */
  uint32_t is_unwanted; /* other threads are to be recorded */
  uint32_t unused;
  uint64_t thread; /* the answer: its struct thread */
  uint64_t state;  /* and what GS must be */
};

struct attach_info {
  int32_t fd; /* of the shared memory */
  uint32_t has_wrgsbase;
  uint32_t has_filter;    /* a thread has a seccomp filter: programs that the process executes are not recorded */
  uint32_t is_code_fixed; /* memory for code can be mapped now, but not later */
  uint32_t numbering;     /* not 0: another PID namespace than lbr's */
  int32_t error;          /* the answer: enum process_error, */
  int32_t system_error;
  uint32_t thread_count, range_count;
  uint32_t unused;
  uint64_t threads, ranges, exe; /* offsets from this struct */
  uint64_t root;                 /* the same: put before paths of files that are mapped later, for lbr */
  uint64_t triggers;             /* the same, of addresses; and how many */
  uint64_t trigger_count;
};

/* si_code of the SIGSYS by which lbr tells a thread to leave. */
enum { ATTACH_CODE_LEAVE = -0x4C4253 };

/* What a thread that leaves tells lbr: the application's registers. */
struct attach_left {
  uint64_t registers[16];
  uint64_t rip, flags, mask;
  int64_t call; /* the number of a system call that the kernel is to restart, whose result is in RAX; -1: none */
};

struct attach_piece {
  uint64_t start, end;
};

/* What the process tells lbr: the action for SIGTRAP, which lbr must set when the last breakpoint is behind it; the
 * pieces of the runtime's image that lbr must unmap (a program that the runtime has loaded has its dynamic linker in
 * between); and for such a program the argument of PR_SET_MM_MAP, with a descriptor of its file. */
struct attach_gone {
  uint64_t trap_action[4];
  struct attach_piece image[2];
  struct prctl_mm_map map;
  uint32_t has_map;
};

#endif
