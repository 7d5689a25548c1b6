/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of a process under ptrace(2), for the moments in which lbr attaches to the process or leaves it: stopping
 * all of them, system calls made by one of them, running the entry points of the runtime (attach.h).
 */
#ifndef PROCESS_TRACEE_H
#define PROCESS_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

struct tracee {
  int thread;
  bool is_stopped, is_gone;
  bool is_changed;                   /* its registers were set to other ones, with which it goes on */
  bool is_native;                    /* detach.c: it has executed a program, and is not in the runtime any more */
  bool has_arrived;                  /* detach.c: it is at the breakpoint of the runtime, */
  uint64_t answer;                   /* which gave this address */
  struct user_regs_struct registers; /* when it was stopped */
  uint64_t mask;                     /* of signals that it blocks */
};

struct tracees {
  int process;
  int memory; /* a descriptor of /proc/PID/mem; 0: none */
  struct tracee *list;
  size_t count, capacity;
  uint64_t syscall_at; /* address of a SYSCALL instruction in the process, for tracee_call */
  uint64_t breakpoint; /* address after that of the runtime */
  bool can_suspend;    /* seccomp filters are suspended while the threads are traced */
  bool is_stopping;    /* tracees_stop is at work */
};

/* Seizes all threads of the process, stops them and reads their registers and masks. If lbr may, it suspends their
 * seccomp filters until they are let go. `wait` is called now and then while a thread cannot be stopped, with its
 * number; NULL: nobody is interested. Returns 0 or -errno after a message. If it fails, the threads that were seized
 * are let go. */
typedef bool tracee_wait_function(void *data, int thread, double seconds); /* returns false: give up */
int tracees_stop(struct tracees *tracees, int process, uint64_t breakpoint, tracee_wait_function *wait, void *data);

/* Of a thread that was stopped in a system call: the errno by which the kernel restarts the call, or EINTR: it has done
 * nothing, and the thread must execute it again. 0: it was in no call, or the call has ended. */
enum { TRACEE_RESTART_BLOCK = 516 };
unsigned tracee_interruption(const struct tracees *tracees, const struct tracee *tracee);

/* Lets all threads go on, with the registers and masks in the list, and frees the list. */
void tracees_free(struct tracees *tracees);

/* Sets the registers, or the mask, of a stopped thread. Return 0 or -errno. */
int tracee_set(const struct tracee *tracee, const struct user_regs_struct *registers);
int tracee_block(const struct tracee *tracee, uint64_t mask);

/* Waits for the next event of any thread, or, with `is_patient` false, only looks. Adds new threads to the list. A
 * thread that gets a signal is continued with it; other events than those below are answered here. Returns the thread
 * with `ret_event`, or NULL if nothing happened. */
enum tracee_event { TRACEE_STOPPED, TRACEE_ARRIVED, TRACEE_GONE };
struct tracee *tracees_next(struct tracees *tracees, enum tracee_event *ret_event);

/* Makes a system call in a stopped thread whose signals are blocked. Returns 0 with its result, or -errno: the thread
 * is gone. */
int tracee_call(const struct tracees *tracees, struct tracee *tracee, uint64_t number, const uint64_t argument[6],
                int64_t *ret_result);

/* Continues a stopped thread with these registers until it comes to the breakpoint of the runtime. Returns 0 with the
 * address that the runtime gave, or -errno. */
int tracee_run(const struct tracees *tracees, struct tracee *tracee, const struct user_regs_struct *registers,
               uint64_t *ret_answer);

/* Copy from and to the memory of the process. Return false if it is not there. */
bool tracees_read(const struct tracees *tracees, void *to, uint64_t from, size_t size);
bool tracees_write(const struct tracees *tracees, uint64_t to, const void *from, size_t size);

#endif
