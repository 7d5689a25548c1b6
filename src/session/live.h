/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `lbr live`: a processor's registers through the msr device (live.c), the state that --arm left behind
 * (live_state.c), names for its addresses (live_names.c), and reading it repeatedly (live_read.c).
 */
#ifndef SESSION_LIVE_H
#define SESSION_LIVE_H

#include "hardware/hardware.h"

struct live_arguments {
  const struct lb_cpu *cpu; /* NULL: the one that CPUID names */
  unsigned number;          /* of the processor */
  struct lbr_setup setup;   /* what to record; its CPU is the session's */
  enum lbr_rings rings;
  bool has_filter; /* at least one of these two was given */
  bool wants_arm, wants_disarm, is_forced, keeps_running;
  bool wants_watch;
  double interval;
  uint64_t count; /* number of pages; 0: unlimited */
  bool has_symbols;
  unsigned process; /* process whose names the user addresses get; 0: none */
  const char *state_directory;
};

/* ---- what --arm left ---- */

struct live_state {
  bool exists;
  struct hardware_change changes[HARDWARE_CHANGES_MAX];
  unsigned count;
};

/* Reads the state that an earlier run left for this processor. A file from before the last boot is ignored. Reports
 * errors by message(). Returns 0, also if there is none; or negative. */
int live_state_read(const char *directory, unsigned number, struct live_state *ret_state);

/* Writes the state file, which must not exist yet. Reports errors by message(). Returns 0 or negative. */
int live_state_write(const char *directory, unsigned number, const struct hardware_undo *undo);

/* Removes the state file. */
void live_state_remove(const char *directory, unsigned number);

/* Parses the changes from the text of a state file. Returns how many there are, or LB_E_BAD_SYNTAX. */
int live_state_parse(const char *text, const char *boot, struct hardware_change changes[HARDWARE_CHANGES_MAX]);

/* ---- the processor ---- */

struct live_names;

struct live_session {
  const struct live_arguments *arguments;
  const struct hardware_system *system;
  struct hardware_host host;
  struct hardware_row row;
  struct hardware_device device;
  struct hardware_live live;
  struct live_state state;
  struct live_names *names; /* NULL: none */
  bool is_here;             /* lbr runs on that processor: there is no other */
};

/* Finds the processor, opens its registers and guards them. Reports errors by message(). Returns 0 or negative. */
int live_session_open(struct live_session *session, const struct live_arguments *arguments);

/* Restores every register whose change is not to stay. Reports errors by message(). Returns 0 or negative. */
int live_session_close(struct live_session *session);

/* Reports the last failure by message(). Returns negative. */
int live_session_complain(struct live_session *session);

/* Switches recording on, until live_session_close. Reports errors by message(). Returns 0 or negative. */
int live_session_switch_on(struct live_session *session);

/* --arm and --disarm. Both report errors by message(). Return 0 or negative. `ret_counters`: how many of the
 * processor's performance counters are in use. */
int live_session_arm(struct live_session *session, unsigned *ret_counters);
int live_session_disarm(struct live_session *session);

/* ---- its records ---- */

/* The records read from the processor. */
struct live_reading {
  uint64_t number; /* of the reading, from 0 on */
  const struct lb_recorder *recorder;
  const struct hardware_reading *reading;
};

/* Shows a reading. Returns 0, or negative to stop, because it cannot be shown. */
typedef int live_reading_function(void *data, struct live_session *session, const struct live_reading *reading);

/* Reads as often as the arguments ask for. Reports errors by message(). Returns 0 or negative. */
int live_session_read(struct live_session *session, live_reading_function *show, void *data);

/* Makes names for addresses of the kernel and, if `process` is not 0, of that process. Reports errors by message().
 * Returns 0 or negative. */
int live_names_new(unsigned process, struct live_names **ret_names);
void live_names_free(struct live_names *names); /* takes NULL */

/* To be called for each new page, since the process may have loaded more files. */
void live_names_refresh(struct live_names *names);

/* The name of an address: `data` is a struct live_names. */
bool live_names_find(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset);

/* Returns why addresses of this page had no names; NULL if they had names, or if there were none. */
const char *live_names_kernel_note(const struct live_names *names);
const char *live_names_user_note(const struct live_names *names);

#endif
