/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a drain: the threads whose logs it reads (drain.c, drain_slot.c), the life and death of threads
 * (drain_life.c), their address spaces (drain_space.c), their names and titles (drain_title.c), and the notes about all
 * this (drain_note.c, drain_code.c, build_id.c).
 */
#ifndef PROCESS_DRAIN_H
#define PROCESS_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/base.h"
#include "process/process.h"
#include "process/shared.h"
#include "trace/trace.h"

/* ---- files (build_id.c) ---- */

enum { BUILD_ID_MOST = LB_TRACE_BUILD_ID_MAX };

/* Distinguishes a file from an older one of the same name. */
struct file_mark {
  uint64_t device, inode, size, seconds, nanoseconds;
};

static inline struct file_mark file_mark_of(const struct stat *status)
{
  return (struct file_mark){status->st_dev, status->st_ino, (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
                            (uint64_t)status->st_mtim.tv_nsec};
}

/* Returns the size of the file's build-id, or 0: the file has none, or cannot be read. The mark is all zero if there is
 * no such file. */
size_t build_id_read(const char *path, struct file_mark *ret_mark, uint8_t ret_id[BUILD_ID_MOST]);

/* ---- files and modules (drain_note.c) ---- */

struct drain_file {
  char *path;
  struct file_mark mark;
  uint8_t build_id[BUILD_ID_MOST];
  size_t build_id_size;
};

/* A mapping of a space. Mappings are kept in their order: a later one covers an earlier one. */
struct drain_module {
  uint64_t start, end;
  uint64_t offset;
  uint32_t file;
  bool is_gone; /* nothing is mapped here */
};

/* ---- address spaces (drain_space.c) ---- */

/* Numbers of steps, from `first` to before `end`. */
struct drain_numbers {
  uint32_t first, end;
};

struct drain_space {
  struct drain_module *modules;
  size_t count, capacity;
  struct drain_numbers *numbers; /* that belong to the space */
  size_t number_count, number_capacity;
  uint32_t parent;  /* the space that it is a copy of, 0: none. The copy continues to run its code, so its steps stay */
  uint32_t threads; /* that are open */
  uint32_t copies;  /* copies that are not over */
  bool is_known;    /* a note said that it begins */
  bool is_born;     /* it has, or had, a thread */
  bool is_kept;     /* it has left a snapshot */
  bool is_over;     /* no thread, note or entry of it can appear any more */
  bool is_ending;   /* it has no thread left, and is among the `ending` */
  uint32_t held;    /* number of the last scan of all pages in which a page named this space */
};

/* ---- code in no file (drain_code.c) ---- */

struct drain_granule;

/* Addresses from `first` to before `end`; none if both are 0. */
struct drain_extent {
  uint64_t first, end;
};

struct drain_code {
  struct drain_granule *granules;
  size_t count, capacity;
  struct hash_index index;     /* of granules by space and place */
  uint32_t spaces_over;        /* how many spaces were over when granules were last dropped */
  struct drain_extent changed; /* of the bytes that were taken last: those that were different before, */
  struct drain_extent added;   /* and those that were not known */
};

enum code_news {
  CODE_KNOWN,   /* all of it is in the trace already */
  CODE_NEW,     /* some of it is not */
  CODE_CHANGED, /* some of it was different before, or the earlier bytes are not known */
};

struct process_drain;

/* Remembers the bytes, and compares them with those remembered before. */
enum code_news drain_code_take(struct process_drain *drain, uint32_t space, uint64_t address, const uint8_t *bytes,
                               size_t size);
void drain_code_done(struct drain_code *code);

/* ---- names of code in no file (drain_jit.c) ---- */

struct drain_jit;

/* New code of a space is about to go into the trace, or code that has changed: names that belong to it go first.
 * Returns 0 or negative. */
int drain_jit_code(struct process_drain *drain, const struct process_note *note, const uint8_t *bytes,
                   enum code_news news);

/* A thread of a process that was running before was found: its program may have named code by now. Returns 0 or
 * negative. */
int drain_jit_attach(struct process_drain *drain, uint32_t space);

/* A space has mapped a part of a file. */
void drain_jit_module(struct process_drain *drain, uint32_t space, const char *path, uint64_t start, uint64_t offset);

/* A space begins as a copy of another. Returns 0 or negative. */
int drain_jit_copy(struct process_drain *drain, uint32_t space, uint32_t original);

/* Reads the names of all spaces now and then. Returns 0 or negative. */
int drain_jit_look(struct process_drain *drain);

/* A space is over, or with 0 the recording: reads the rest. Returns 0 or negative. */
int drain_jit_end(struct process_drain *drain, uint32_t space);
void drain_jit_done(struct process_drain *drain);

/* ---- threads ---- */

/* A snapshot of a thread's page. */
struct drain_view {
  uint32_t status;   /* enum process_thread_status */
  uint64_t written;  /* parts */
  uint32_t position; /* entries to be taken from the part after these */
};

/* The parts of a stamp that have come so far. */
struct drain_stamp {
  uint64_t arguments[TRACE_ARGUMENTS_MAX];
  uint8_t argument_count;
  uint16_t path_sizes[2];
  bool has_path[2];
  char paths[2][TRACE_PATH_MAX + 1];
};

struct drain_slot {
  bool is_open;    /* a thread has this page, and its stream is in the trace */
  bool is_ignored; /* its page is invalid, or there is no stream left for it */
  bool is_visible; /* the system shows the thread under its numbers, so that its end can be seen */
  bool is_dead;    /* the system no longer shows it, and it has not marked its end */
  uint32_t stream, space, process, thread;
  uint64_t read;      /* parts that were given to the trace */
  uint32_t taken;     /* entries of the next part that were given to the trace, too */
  uint64_t seen_part; /* the part that was being filled when slot_look last counted its entries, */
  uint32_t seen;      /* and their number */
  struct drain_view view;
  double moved; /* when it last had anything new */
  double begun; /* when it was opened */
  char name[17];
  char title[PROCESS_COMMAND_MOST]; /* of its process; "" if it is not known */
  bool has_title_news;              /* it is not in the trace yet */
  struct drain_stamp stamp;
};

/* A process that has called execve: the new program will show up, unless it cannot be recorded. */
struct drain_exec {
  uint32_t process;
  double since;
};

enum { DRAIN_EXECS = 64 };

/* The entries of a thread that are wanted, counted since the start of its log (ring.c). */
struct drain_window {
  bool is_wanted;
  uint32_t status; /* enum process_thread_status when the ring was closed */
  uint32_t serial; /* of the page then */
  uint64_t first, end;
  bool is_ours;  /* its process was seen to be one that lbr records */
  bool has_more; /* the thread has logged more after the end, or may do so */
};

/* The windows of all pages. */
struct drain_window *ring_windows(struct process_ring *ring);

/* The first entry of a log that was not overwritten. */
uint64_t ring_first(const struct process *process, uint32_t slot);

struct process_drain {
  struct process *process;
  struct lb_trace_writer *writer;
  uint64_t limit;
  struct process_drain_state state;
  double now;
  double moved;         /* time of the last news, of any thread */
  double looked;        /* time of the last look for threads in the system */
  double titles_looked; /* time of the last look for titles */
  bool is_flushed;
  bool is_out_of_streams;
  bool is_code_changing;     /* entries are taken because code has changed */
  uint64_t entry_count;      /* that were given to the trace */
  struct drain_slot *giving; /* the thread whose entries the writer is reading */
  struct trace_stamp stamp;  /* the last one */
  double waited;             /* seconds that threads which have ended waited for the drain */

  struct drain_window *windows; /* NULL: all entries are wanted. Nothing is read twice then */
  struct drain_slot slots[PROCESS_THREADS];
  uint32_t high;     /* pages below this are looked at */
  uint32_t next;     /* the first page of the next round, if the last round took too long */
  uint32_t *entries; /* a copy of one part, so that it can be read twice: shared memory could change in between */
  struct drain_exec execs[DRAIN_EXECS];

  uint64_t note_offset;
  uint64_t notes_given; /* the memory of notes before this offset was given back */
  double note_stuck; /* time since which the next note is missing although later ones are there; 0: it is not missing */
  uint64_t note_scan;  /* if it is missing: the search has found no note before this offset */
  uint8_t *step_pages; /* a bit for each page of steps that has memory */
  struct drain_space *spaces;
  size_t space_count, space_capacity;
  uint32_t *ending; /* numbers of spaces without a thread, which may be over */
  size_t ending_count, ending_capacity;
  uint32_t looks;       /* number of scans of all pages for spaces that are still named */
  uint32_t spaces_over; /* number of spaces that are over */
  struct drain_code code;
  struct drain_jit **jits; /* one for each space that makes code */
  size_t jit_count, jit_capacity;
  double jits_looked;
  bool are_jits_full; /* the limit was reached, and that was reported */
  struct drain_file *files;
  size_t file_count, file_capacity;
};

static inline struct process_control *drain_control(const struct process_drain *drain)
{
  return (struct process_control *)drain->process->memory;
}

static inline struct process_state *drain_page(const struct process_drain *drain, uint32_t slot)
{
  return (struct process_state *)(drain->process->memory + process_thread_offset(slot));
}

/* Functions of spaces. The numbers come from the recorded programs and may be wrong. The first returns NULL: there is
 * no such space, or no memory. */
struct drain_space *drain_space_get(struct process_drain *drain, uint32_t number);
bool drain_space_is_known(const struct process_drain *drain, uint32_t number);
bool drain_space_is_over(const struct process_drain *drain, uint32_t number);

/* Apply a note about a space: it begins, as a copy of `parent` if that is not 0; it will never begin; it has these
 * steps. Return 0 or -ENOMEM. */
int drain_space_begins(struct process_drain *drain, uint32_t number, uint64_t parent);
int drain_space_fails(struct process_drain *drain, uint32_t number);
int drain_space_steps(struct process_drain *drain, uint32_t number, uint64_t first, uint64_t end);

/* Other spaces use the steps of this space: it is never over. */
void drain_space_keep(struct process_drain *drain, uint32_t number);

/* A thread of the space was opened, or closed. */
void drain_space_enter(struct process_drain *drain, uint32_t number);
void drain_space_leave(struct process_drain *drain, uint32_t number);

/* Gives back the memory of spaces that are over. All notes that were there when the last threads were closed must have
 * been taken. */
void drain_spaces_end(struct process_drain *drain);
void drain_spaces_done(struct process_drain *drain);

/* ---- life and death (drain_life.c) ---- */

/* A thread has been opened: counts it and finds out whether the system shows it. */
void drain_thread_begins(struct process_drain *drain, struct drain_slot *slot, uint32_t creator);

/* A thread has ended. */
void drain_thread_ends(struct process_drain *drain, const struct drain_slot *slot, uint32_t end);

/* Looks now and then for threads that are gone without having marked their end (SIGKILL). */
void drain_look_for_dead(struct process_drain *drain);

/* ---- stamps (drain_stamp.c) ---- */

/* Tells the writer how to make stamps of the words in the logs. Returns 0 or negative. */
int drain_stamps_begin(struct process_drain *drain);

/* ---- titles and names (drain_title.c) ---- */

/* A thread has been opened: finds the title of its process. */
void drain_title_begins(struct drain_slot *slot);

/* A thread has ended: its page has the last title and name, if it ended by itself. Returns 0 or negative. */
int drain_title_ends(struct process_drain *drain, uint32_t number);

/* Looks for the titles of all open threads: now and then, or with `is_now` at once. Returns 0 or negative. */
int drain_titles_look(struct process_drain *drain, bool is_now);

/* ---- a thread (drain_slot.c) ---- */

/* Wakes the threads that sleep on a futex. */
void drain_wake(const void *word);

/* Returns how far a thread's log has been written. With `is_whole`, or for a thread that is gone, this includes the
 * part that is being filled. */
struct drain_view slot_look(struct process_drain *drain, uint32_t number, bool is_whole);

/* Takes the entries of a view, which may be older than what was taken already. `step` as in drain_settle, 0: all.
 * Returns 0 or negative. */
int slot_take(struct process_drain *drain, uint32_t number, const struct drain_view *view, uint32_t step);

/* Restores fields that a program may have overwritten. */
void slot_mend(struct process_drain *drain, uint32_t number);

/* The thread is gone and all of its log is taken: writes its last names and the rest of its stream. Returns 0, or the
 * error of the writer. */
int slot_end(struct process_drain *drain, uint32_t number);

/* The thread is gone and all of its log is taken: frees the page for another thread. */
void slot_close(struct process_drain *drain, uint32_t number);

/* ---- the whole (drain.c) ---- */

/* The trace has reached its limit: notes that in the trace, and stops. Returns negative. */
int drain_limit_reached(struct process_drain *drain);

/* Gives the entries to the trace that the threads of a space logged before there were `step` steps. Returns 0 or the
 * drain's error. */
int drain_settle(struct process_drain *drain, uint32_t space, uint32_t step);

/* The same before code changes: a branch to the changed code comes after the change. */
int drain_settle_code(struct process_drain *drain, uint32_t space, uint32_t step);

/* drain_note.c. Takes the notes that are there. Returns 1; 0: one note is not complete yet, or there are more than can
 * be taken at a time; or negative. */
int drain_notes(struct process_drain *drain);
void drain_notes_done(struct process_drain *drain);

#endif
