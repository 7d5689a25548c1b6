/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that come to lbr while it runs a program (lbr run, lbr record). lbr stands in for the program: a signal to
 * lbr is meant for the program. The rule is in doc/process.md, "Signals to lbr".
 */
#ifndef SESSION_RELAY_H
#define SESSION_RELAY_H

#include <stdbool.h>
#include <time.h>

/* Catches signals. To be called before the program is started. Signals are kept until relay_to. Every process that lbr
 * makes by fork(2) from now on gets the dispositions and the signal mask that lbr itself was started with. `own`: a
 * signal that lbr keeps for itself, 0: none. */
void relay_start(int own);

/* For a child that shares lbr's memory, for which the fork handlers do not run. To be called in the child before it
 * executes the program, with all signals blocked. */
void relay_begin(void);

/* The program runs: forwards the signals that were kept, and from now on each signal at once. `is_traced`: lbr is the
 * program's tracer, whose waitpid(2) must not be disturbed. */
void relay_to(int process, bool is_traced);

/* Calls `ring(data)` from the signal handler after each signal, SIGCHLD too. NULL: nothing is called. */
void relay_bell(void (*ring)(const void *data), const void *data);

/* Stops lbr if the program was stopped by job control, and continues the program when lbr is continued. To be called in
 * the main loop, before the program is waited for. */
void relay_follow(void);

/* Waits for a signal, at most for this time. Does not wait if a child has changed since the last relay_follow, or the
 * signal that lbr keeps came since the last relay_own_came. Returns true if the time has passed. */
bool relay_wait(const struct timespec *time);

/* Did the signal that lbr keeps come since the last call? */
bool relay_own_came(void);

/* The program has ended: no signal is forwarded any more. */
void relay_end(void);

/* The number of signals so far that asked lbr to end: SIGINT, SIGQUIT, SIGTERM and SIGHUP. */
unsigned relay_count(void);

/* Restores the dispositions and the mask that relay_start found. */
void relay_restore(void);

#endif
