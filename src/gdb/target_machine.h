/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine as gdb's target. target_machine_serve.c serves it, target_machine.c runs it, target_machine_register.c has
 * its registers, target_machine_history.c its branch history, target_machine_monitor.c the `monitor` commands.
 */
#ifndef GDB_TARGET_MACHINE_H
#define GDB_TARGET_MACHINE_H

#include "gdb/listen.h"
#include "gdb/target.h"
#include "session/session.h"

#define GDB_POINTS_MAX 1024u

/* ---- where it was ---- */

/* A branch. The block before it ends at `from`, the next one begins at `to`; addresses are linear. */
struct history_branch {
  uint64_t from, to;
  uint32_t count; /* instructions since the branch before */
  uint8_t bits;   /* of the code at `to`: MODE_16, MODE_32, MODE_64 */
};

struct gdb_machine_history {
  struct cpu *cpu;
  bool is_on, is_short; /* is_short: there was no memory for some branches */
  struct history_branch *list;
  size_t count, capacity, most;
  uint64_t dropped;           /* branches before list[0] */
  uint64_t begin, begin_bits; /* where the block before list[0] begins */
  uint64_t retired;           /* at the newest branch */
  uint64_t read_count,
    read_at; /* what gdb has read: number of branches since recording was switched on, and the address after them */
  bool is_read;
  /* the read position of gdb: */
  size_t next, last; /* branches before `next` are still to be read, down to `last` */
  bool is_delta, is_gap;
  bool is_cut; /* only a part of the newest remaining block is left, which ends here: */
  uint64_t cut_end;
  uint64_t first_begin;       /* is_delta: where the oldest begins */
  uint64_t end_count, end_at; /* what gdb has read after that */
  uint8_t bits;               /* of the code that gdb can read */
};

#define HISTORY_DEFAULT 100000u
#define HISTORY_MAX 20000000u

/* Begins a new history, or ends it. */
void gdb_machine_history_enable(struct gdb_machine_history *history, bool is_on);
/* gdb moved the processor from `from` to where it is now. */
void gdb_machine_history_jump(struct gdb_machine_history *history, uint64_t from);
/* Keeps at most `most` branches, and at least half as many. */
void gdb_machine_history_bound(struct gdb_machine_history *history, size_t most);
/* history_begin and history_next of struct gdb_target; `bits` is the code that gdb can read. */
int gdb_machine_history_begin(struct gdb_machine_history *history, enum gdb_history which, uint8_t bits);
int gdb_machine_history_next(struct gdb_machine_history *history, struct gdb_block *ret_block);

/* ---- the target ---- */

struct gdb_machine_point {
  enum gdb_point kind;
  uint64_t address, size;
};

enum gdb_machine_architecture { MACHINE_AUTO, MACHINE_I8086, MACHINE_I386, MACHINE_X86_64 };

struct gdb_machine {
  struct machine_session *session;
  const struct machine_front *front;
  struct gdb_listener listener;
  struct gdb_connection connection;
  bool is_attached, is_waited, is_over;
  struct gdb_stop stop;
  bool is_at_exception; /* the exception was shown, and is delivered when the machine continues */
  uint32_t catches;     /* exceptions that are shown: 1 << vector */
  enum gdb_machine_architecture wanted;
  enum gdb_architecture told; /* the architecture that gdb was told */
  struct gdb_machine_point points[GDB_POINTS_MAX];
  size_t point_count;
  bool are_points_new;
  struct gdb_machine_history history;
};

/* ---- serving it (target_machine_serve.c) ---- */

/* Listens where --gdb says and becomes the session's debugger; with --wait, waits for the first gdb. `kernel`, which
 * may have no bytes, is the kernel that the machine starts. Returns 0, or negative after a message. */
int gdb_machine_open(struct machine_session *session, const struct machine_file *kernel, struct gdb_machine **ret_gdb);
void gdb_machine_close(struct gdb_machine *gdb); /* takes NULL */

/* ---- the functions of the target ---- */

/* The target of a session that has a machine; `front` runs it. */
void gdb_machine_init(struct gdb_machine *gdb, struct machine_session *session, const struct machine_front *front);
struct gdb_target gdb_machine_target(struct gdb_machine *gdb);
/* gdb has left: removes points and history. */
void gdb_machine_leave(struct gdb_machine *gdb);

/* The linear address of the next instruction: RIP, for gdb. */
uint64_t gdb_machine_rip(const struct cpu *cpu);

/* target_machine_register.c: read_register and write_register of struct gdb_target. */
int gdb_machine_read(struct gdb_machine *gdb, enum gdb_register number, uint8_t *bytes);
int gdb_machine_write(struct gdb_machine *gdb, enum gdb_register number, const uint8_t *bytes);

/* target_machine_monitor.c: runs a command. Returns as `monitor` of struct gdb_target. */
int gdb_machine_monitor(struct gdb_machine *gdb, const char *command, struct text *output);

/* target_machine_exception.c: exceptions by name. The signal is as gdb numbers them. */
uint32_t gdb_machine_exceptions_default(void);
unsigned gdb_machine_exception_signal(unsigned vector);
const char *gdb_machine_exception_name(unsigned vector); /* "#GP"; NULL: none */
/* "all", "none", or names without "#", with blanks or commas between them. Returns 0, or -EINVAL. */
int gdb_machine_exceptions_parse(const char *text, uint32_t *ret_vectors);
int gdb_machine_exceptions_text(uint32_t vectors, struct text *text);

#endif
