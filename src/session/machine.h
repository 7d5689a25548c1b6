/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of `lbr machine`: the machine with everything that is connected to it. machine_start.c makes it, and
 * machine_run.c (or machine_live.c, with a live screen) runs it.
 */
#ifndef SESSION_MACHINE_H
#define SESSION_MACHINE_H

#include <signal.h>
#include <stdio.h>

#include "base/base.h"
#include "lastbranch/trace.h"
#include "machine/machine.h"
#include "session/machine_arguments.h"
#include "symbol/symbol.h"

#define TRACE_BUFFER 960 /* branches on their way to the trace */
#define TRACE_LAST 16    /* branches that are shown when a guest dies */

/* Why a run ended: the machine's own reasons, and those that only lbr knows. */
enum machine_session_end {
  END_IDLE,
  END_HALTED,
  END_EXIT,
  END_OFF,    /* the guest switched the machine off */
  END_ASLEEP, /* the guest suspended the machine to RAM, and nothing can wake it */
  END_SHUTDOWN,
  END_UNIMPLEMENTED,
  END_INSTRUCTIONS,
  END_SECONDS,
  END_TEXT,
  END_INTERRUPTED, /* by the user or a signal */
  END_FAILED,      /* a failure on the host, which was reported */
};

/* Pages whose code the guest ran, for the trace. */
struct machine_pages {
  uint64_t *pages; /* numbers */
  size_t count, capacity;
  struct hash_index index; /* of pages by number */
  uint64_t last;           /* number + 1 of the page that was looked up last */
};

/* A processor that the trace listens to. */
struct machine_tap {
  struct machine_session *session;
  uint32_t stream;
  const struct cpu *cpu;
  uint16_t number;
  uint32_t since;  /* branches since its last stamp that are in the trace */
  uint64_t extra;  /* cpu->extra_cycles at its last branch: waiting adds to them, instructions do not */
  uint64_t waited; /* nanoseconds so far */
};

struct machine_trace {
  struct lb_trace_writer *writer;
  struct machine_tap taps[MACHINE_CPUS];
  struct machine_tap *tap; /* processor of the branches in the buffer */
  size_t count;
  uint64_t total;
  int error;
  struct machine_pages pages;
  struct lb_branch buffer[TRACE_BUFFER];
  struct lb_branch last[TRACE_LAST]; /* a ring: the newest is at total - 1 */
};

/* The front end of a run: the screen, keys, input. machine_run.c and machine_live.c have one each, through which gdb
 * runs the machine. */
struct machine_front {
  void *data;
  /* Runs a slice, or one instruction. Returns true when the run is over: session->end says why. */
  bool (*slice)(void *data, bool is_step, enum machine_stop *ret_stop);
  /* Called while nothing runs: waits at most `milliseconds`, or until there is something to read from `fd`. Returns
   * true when the run is over. */
  bool (*wait)(void *data, int fd, int milliseconds);
};

/* A character of which not all bytes have arrived yet. */
struct serial_text {
  char bytes[5];
  unsigned count;
};

/* A debugger, which decides when the machine runs while it is attached. */
struct machine_debugger {
  void *data; /* passed to the functions */
  /* Accepts a debugger that wants to attach, and serves it until it leaves. Waits a little for one if the guest is
   * idle. Returns true when the run is over. NULL: no debugger is expected. */
  bool (*serve)(void *data, const struct machine_front *front, bool is_idle);
  bool (*is_attached)(const void *data);
};

/* The progress of a run. */
struct machine_progress {
  double retired; /* instructions so far, */
  double rate;    /* instructions per second lately */
  double seconds; /* of the guest's time */
};

struct machine_session;

/* Shows the progress; NULL: the run is over, and the progress shown before is to be removed. */
typedef void machine_progress_function(const struct machine_session *session, const struct machine_progress *progress);

/* The contents of a whole file. */
struct machine_file {
  const char *name;
  const uint8_t *bytes; /* NULL: none */
  size_t size;
};

/* The files that the machine starts with, by the type that was detected. */
struct machine_files {
  struct machine_file floppy, disk, kernel, flat, modules[MODULES_MAX];
  struct machine_file started; /* the kernel as the machine keeps it: unpacked, if it is compressed */
};

struct machine_session {
  const struct machine_arguments *arguments;
  /* The creator of the session sets these: */
  enum screen_mode screen;
  bool is_serial_live;                 /* a user types at the serial line */
  bool is_json;                        /* the console is for JSON alone */
  FILE *console;                       /* where the guest's serial line and bus go if they name no file */
  machine_progress_function *progress; /* NULL: progress is not wanted */
  /* The members below are private. */
  struct machine_files files;
  struct machine *machine;
  struct symbol_table *symbols;
  struct machine_trace trace;

  FILE *bus, *serial;
  bool is_serial_text; /* the user did not ask for the serial line: text only */
  struct serial_text serial_text;
  bool reads_stdin;     /* for the serial line */
  struct text heard;    /* output of the serial line and of port 0xE9; only its end if it was long */
  size_t heard_dropped; /* bytes before that, which were dropped */
  bool has_text;        /* the text to stop at was seen */
  enum machine_session_end end;
  double seconds; /* of the user's clock */
  struct machine_debugger debugger;
};

/* A signal that asks for the end of the run has arrived. */
extern volatile sig_atomic_t machine_session_signal;

/* ---- machine_file.c ---- */

/* Returns 0, or negative after a message. */
int machine_file_open(struct machine_file *file, const char *name);
void machine_file_close(struct machine_file *file);

/* The type of an image, detected from its contents. */
enum image_sort { IMAGE_FLOPPY, IMAGE_DISK, IMAGE_KERNEL };
enum image_sort machine_file_sort(const struct machine_file *file);

/* Is it text, such as source code, which a user is unlikely to want with --flat? Machine code without control
 * characters that ends with a line feed is of no use. */
bool machine_file_is_text(const struct machine_file *file);

/* A file for output, readable by the owner only; "-" is `console`. Returns 0, or negative after a message. */
int machine_output_open(const char *name, FILE *console, FILE **ret_file);
/* Closes the file, and reports an error if it could not be written. Takes NULL. */
int machine_output_close(const char *name, const FILE *console, FILE *file);

/* ---- machine_start.c ---- */

/* Makes the machine that the arguments ask for, and fills in what they leave out. Returns 0, or negative after a
 * message; machine_session_close in either case. */
int machine_session_open(struct machine_session *session, struct machine_arguments *arguments);
void machine_session_close(struct machine_session *session);

/* Closes the files of the serial line and the bus. Returns 0, or negative after a message. */
int machine_session_close_outputs(struct machine_session *session);

/* From now on, the first signal ends the run, and a second one the program. */
void machine_session_catch_signals(struct machine_session *session);

/* ---- machine_trace.c ---- */

/* Begins the trace; `kernel` may have no bytes; `words` is the command line, ended by NULL. Return 0, or negative after
 * a message. */
int machine_trace_open(struct machine_session *session, const struct machine_file *kernel, char *const *words);
int machine_trace_close(struct machine_session *session);

/* ---- machine_save.c ---- */

/* Loads the machine from the file of --load. Options on the command line must agree with it, and those that are missing
 * are filled in. Returns 0, or negative after a message. */
int machine_session_load(struct machine_session *session, struct machine_arguments *arguments,
                         const struct machine_host *host);
/* Saves the machine to the file of --save, if it can be resumed. Returns 0, or negative after a message. */
int machine_session_save(struct machine_session *session);

/* ---- machine_serial.c ---- */

/* Writes what the guest sends as text: UTF-8 without control characters other than tab, line feed and carriage return.
 * Bytes that are not UTF-8 become question marks. serial_text_end ends a character that is cut. */
void serial_text_put(struct serial_text *text, uint8_t byte, FILE *file);
void serial_text_end(struct serial_text *text, FILE *file);

/* ---- machine_run.c ---- */

/* Runs the machine to the end of the run: with a user at the terminal, or without. */
void machine_session_run(struct machine_session *session);
/* Checks whether the text to stop at is on the screen. */
void machine_session_look_for_text(struct machine_session *session);
/* The end that a stop of the machine means; only for stops that end a run. */
enum machine_session_end machine_session_end_of(enum machine_stop stop);
const char *machine_session_end_name(enum machine_session_end end);

/* clock_seconds() as machine_limit wants a deadline. */
uint64_t machine_session_deadline(double seconds);

/* Is a debugger attached? */
bool machine_session_is_debugged(const struct machine_session *session);
/* Lets the debugger act, if there is one. Returns true when the run is over. */
bool machine_session_debug(struct machine_session *session, const struct machine_front *front, bool is_idle);

/* Does the machine wait for outside input, without which nothing more happens? */
bool machine_session_is_still(enum machine_stop stop);
/* Is the run over after a slice? */
bool machine_session_slice_ends(struct machine_session *session, enum machine_stop stop, double elapsed);

/* ---- machine_live.c ---- */

/* The same with a user at the terminal: the guest's screen and keyboard, or its serial line (is_serial_live). */
void machine_session_run_live(struct machine_session *session);

/* ---- machine_screen.c ---- */

/* The screen as the terminal shows it, so that only changes are sent. */
#define LIVE_COLUMNS 132
#define LIVE_ROWS 60

struct machine_live_screen {
  uint8_t cells[LIVE_ROWS][LIVE_COLUMNS][2];
  unsigned columns, rows; /* of the terminal */
  bool is_known;          /* `cells` is what the terminal shows */
  int cursor;             /* cell where the terminal shows the cursor; -1: it is hidden */
};

/* Appends the bytes that bring the terminal up to date. */
void machine_live_screen_update(struct machine_live_screen *live, const struct machine_screen *screen,
                                struct text *text);

/* ---- machine_keys.c ---- */

/* Bytes from the terminal on their way to the guest's keyboard. */
struct machine_keys {
  uint8_t bytes[256];
  size_t count;
};

/* Presses the keys that the bytes stand for, as far as the keyboard accepts them. Returns true when Ctrl-] was among
 * them. */
bool machine_keys_press(struct machine_keys *keys, struct machine *machine);

/* Types a text: "\\n" is Enter, and "<NAME>" a key. Returns 0; -EINVAL: no key has this name; -ENOSPC: the keyboard
 * accepts no more, and the rest is lost. */
int machine_keys_type(struct machine *machine, const char *text);

#endif
