/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls and signals as text, similar to that of strace. Only values and paths are shown, never the contents of
 * buffers. All functions return 0, or -ENOMEM: the text is then as it was before.
 */
#ifndef REPORT_CALL_TEXT_H
#define REPORT_CALL_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Appends a system call: `openat(AT_FDCWD, "/etc/passwd", 0x80000)`. `arguments` are registers; the first
 * `argument_count` of them are known, and "..." stands for the others. `paths` are the strings that the first and the
 * second path argument point to; without one (NULL) the argument is shown as another pointer, `ptr` or `NULL`. The
 * strings may be untrusted. They are cut after `path_max` bytes, unless that is 0. A number that is no system call
 * gives `syscall_999(...)`. */
int call_text(struct text *text, uint32_t number, const uint64_t *arguments, unsigned argument_count,
              const char *const paths[2], size_t path_max);

/* Appends the result of a system call, RAX: ` = 3`, ` = -1 ENOENT`, ` = 0x7f0012345000` for the calls that return an
 * address. */
int call_result_text(struct text *text, uint32_t number, uint64_t result);

/* Appends a signal with its si_code: `SIGSEGV SEGV_MAPERR 0x10`, `SIGUSR1 SI_USER from 1234`, `SIGALRM SI_TIMER`.
 * `value` is si_addr of a signal that has an address, si_pid of one that a process sent, and not used for others. */
int signal_text(struct text *text, int signal, int code, uint64_t value);

#endif
