/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of stress share: stress.c starts the threads and ends them, stress_*.c hold what they do. Each thread
 * repeats one small piece of work whose result it knows, and calls own_check() between two repetitions.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Signals to single threads. All other threads block them. */
#define SIGNAL_VALUE (SIGRTMIN + 1)
#define SIGNAL_NEVER (SIGRTMIN + 2)
#define SIGNAL_TIMER (SIGRTMIN + 3)

enum { CHILD_STATUS = 42 };

/* A kind of thread. The function does its work once; what it keeps is in thread-local variables. */
typedef void work_function(unsigned number);

struct work {
  const char *name;
  work_function *begin; /* NULL: nothing to prepare */
  work_function *once;
  bool is_single; /* one thread, whatever the scale */
};

/* Says what is wrong, and ends the program with status 3. */
_Noreturn void failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Unblocks signals for this thread, from now on. */
void mask_open(const sigset_t *set);

/* Are mask, alternate stack and CPU number of this thread what they were when it started? */
void own_check(void);

bool is_over(void);
unsigned hash(unsigned value, unsigned steps);
double now(clockid_t clock);
void sleep_for(long microseconds);

/* Fails if less than this time has passed since `start`. */
void time_check(const char *what, double start, double seconds);

work_function compute_once, float_once, code_begin, code_once, fault_begin, fault_once, vector_begin, vector_once;
work_function mutex_once, condition_once, robust_once, spawn_once, semaphore_begin, semaphore_once;
work_function pipe_begin, pipe_once, sleep_once, poll_begin, poll_once, wait_once, block_read_once, block_write_once;
work_function fork_once, execute_once;
work_function receive_begin, receive_once, send_once;

/* Set the actions of the signals that their threads get; called before there are threads. */
void fault_prepare(void);
void signal_prepare(void);
void vector_prepare(void);
void wait_prepare(void);
void mutex_prepare(void);

/* Has a thread that blocks in read(2) return, at the end. */
void block_read_end(void);
