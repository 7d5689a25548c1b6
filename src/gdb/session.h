/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of a session: declarations that all commands share. session.c has the loop and resumes the target,
 * session_state.c has registers, memory and breakpoints, session_query.c queries and objects that are read as a whole,
 * btrace.c the branch trace.
 */
#ifndef GDB_SESSION_H
#define GDB_SESSION_H

#include "gdb/register.h"
#include "gdb/remote.h"
#include "gdb/target.h"

/* The branch trace as XML. Only a window of it is in memory: the part that gdb reads next. */
struct btrace {
  bool is_begun;
  enum gdb_history which;
  uint64_t thread;
  bool is_over;   /* the last byte is in the window */
  uint64_t start; /* offset of the first byte of the window */
  struct text window;
};

struct gdb_session {
  const struct gdb_target *target;
  struct remote remote;
  enum gdb_architecture architecture;
  uint64_t passed;           /* signals that are delivered without gdb: 1 << number */
  uint64_t general, resumed; /* threads that Hg and Hc chose; 0: any */
  struct text reply;
  struct text object; /* the object that is being read as a whole */
  struct btrace btrace;
  bool is_over;
  enum gdb_end end;
  int error; /* negative: the session cannot continue */
};

/* ---- answers ---- */

void reply_add(struct gdb_session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_hex(struct gdb_session *session, const void *bytes, size_t size);
void reply_ok(struct gdb_session *session);

/* Replies "E" and a number as gdb expects it: positive, of two digits. `error` is negative. */
void reply_error(struct gdb_session *session, int error);

/* Remembers the first error. */
void session_check(struct gdb_session *session, int r);

/* ---- threads ---- */

/* A thread that exists: `id`, or the first one if `id` is 0 or no thread. */
uint64_t session_thread(struct gdb_session *session, uint64_t id);
bool session_has_thread(struct gdb_session *session, uint64_t id);
bool session_thread_at(struct gdb_session *session, size_t index, struct gdb_thread *ret_thread);

/* ---- commands; `at` is behind the letter or word that chose them ---- */

typedef void session_command(struct gdb_session *session, const char *at);

/* session_state.c */
session_command command_read_all, command_write_all, command_read_register, command_write_register;
session_command command_read_memory, command_write_memory, command_write_binary;
session_command command_point_set, command_point_remove;

/* session_query.c */
session_command command_query, command_set;

/* btrace.c */
session_command command_btrace, command_btrace_size;

/* Appends a piece of the branch trace, after the letter that says whether there is more. */
void btrace_read(struct gdb_session *session, const char *annex, uint64_t offset, uint64_t size);
int btrace_configuration(struct gdb_session *session, struct text *text);

#endif
