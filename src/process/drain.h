/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a drain: the threads whose logs it reads (drain.c, drain_slot.c), what became of threads
 * (drain_life.c) and of their address spaces (drain_space.c), what they are called (drain_title.c), and what the notes
 * say of all this (drain_note.c, drain_code.c, build_id.c).
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

/* Tells a file from the one that had its name before. */
struct file_mark {
  uint64_t device, inode, size, seconds, nanoseconds;
};

static inline struct file_mark file_mark_of(const struct stat *status)
{
  return (struct file_mark){status->st_dev, status->st_ino, (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
                            (uint64_t)status->st_mtim.tv_nsec};
}

/* Returns the size of the file's build-id, or 0: it has none, or it cannot be read. The mark is all zero if there is no
 * such file. */
size_t build_id_read(const char *path, struct file_mark *ret_mark, uint8_t ret_id[BUILD_ID_MOST]);

/* ---- files and modules (drain_note.c) ---- */

struct drain_file {
  char *path;
  struct file_mark mark;
  uint8_t build_id[BUILD_ID_MOST];
  size_t build_id_size;
};

/* What a space was told to hold, in its order: a later one lies over an earlier one. */
struct drain_module {
  uint64_t start, end;
  uint64_t offset;
  uint32_t file;
  bool is_gone; /* nothing lies here */
};

/* ---- address spaces (drain_space.c) ---- */

/* Numbers of steps, from `first` to before `end`. */
struct drain_numbers {
  uint32_t first, end;
};

struct drain_space {
  struct drain_module *modules;
  size_t count, capacity;
  struct drain_numbers *numbers; /* that are the space's */
  size_t number_count, number_capacity;
  uint32_t parent;  /* the space that it is a copy of, 0: none. Its code runs on in the copy, so its steps stay */
  uint32_t threads; /* that are open */
  uint32_t copies;  /* that are not over */
  bool is_known;    /* a note said that it begins */
  bool is_born;     /* it has, or had, a thread */
  bool is_over;     /* nothing of it will come any more */
  bool is_ending;   /* it has no thread left, and is among the `ending` */
  uint32_t held;    /* the last look at all pages in which one named it */
};

/* ---- code in no file (drain_code.c) ---- */

struct drain_granule;

struct drain_code {
  struct drain_granule *granules;
  size_t count, capacity;
  struct hash_index index; /* of granules by space and place */
  uint32_t spaces_over;    /* how many spaces were over when granules were last dropped */
};

enum code_news {
  CODE_KNOWN,   /* all of it is in the trace already */
  CODE_NEW,     /* some of it is not */
  CODE_CHANGED, /* some of it was different before, or that is not known */
};

struct process_drain;

/* Remembers the bytes. */
enum code_news drain_code_take(struct process_drain *drain, uint32_t space, uint64_t address, const uint8_t *bytes,
                               size_t size);
void drain_code_done(struct drain_code *code);

/* ---- threads ---- */

/* What a thread's page says at a time. */
struct drain_view {
  uint32_t status;   /* enum process_thread_status */
  uint64_t written;  /* parts */
  uint32_t position; /* entries in the part behind them that are to be taken, too */
};

struct drain_slot {
  bool is_open;    /* a thread has this page, and its stream is in the trace */
  bool is_ignored; /* its page makes no sense, or there is no stream left for it */
  bool is_visible; /* the system shows us the thread under its numbers, so that we see when it is gone */
  bool is_dead;    /* and it is gone, without having said so */
  uint32_t stream, space, process, thread;
  uint64_t read;  /* parts that were given to the trace */
  uint32_t taken; /* entries of the next part that were, too */
  struct drain_view view;
  double moved; /* when there was something new last */
  double begun; /* when it was opened */
  char name[17];
  char title[PROCESS_COMMAND_MOST]; /* of its process, as far as known: "" */
  bool has_title_news;              /* it is not in the trace yet */
};

/* A process that has called execve: what it executes will show up, unless it is a program that cannot be recorded. */
struct drain_exec {
  uint32_t process;
  double since;
};

enum { DRAIN_EXECS = 64 };

struct process_drain {
  struct process *process;
  struct lb_trace_writer *writer;
  uint64_t limit;
  struct process_drain_state state;
  double now;
  double moved;         /* when there was something new last, in any thread */
  double looked;        /* when threads were looked for in the system last */
  double titles_looked; /* when titles were */
  bool is_flushed;
  bool is_out_of_streams;
  uint64_t entry_count; /* that were given to the trace */
  double waited;        /* seconds that threads waited for us which have ended */

  struct drain_slot slots[PROCESS_THREADS];
  uint32_t high;     /* pages below this are looked at */
  uint32_t next;     /* the first to be taken in the next round, if the last took too long */
  uint32_t *entries; /* one part, copied to look at it twice: in shared memory it could change */
  struct drain_exec execs[DRAIN_EXECS];

  uint64_t note_offset;
  uint64_t notes_given; /* up to there their memory was given back */
  double note_stuck;    /* since when the next note is not there although later ones are; 0: it is not so */
  uint64_t note_scan;   /* if so: there is none up to here */
  uint8_t *step_pages;  /* pages of steps that are there: a bit for each */
  struct drain_space *spaces;
  size_t space_count;
  uint32_t *ending; /* numbers of spaces without a thread, which may be over */
  size_t ending_count, ending_capacity;
  uint32_t looks;       /* at all pages, for that */
  uint32_t spaces_over; /* so many */
  struct drain_code code;
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

/* Of spaces: all take numbers that programs wrote. The first returns NULL: there is no such space, or no memory. */
struct drain_space *drain_space_get(struct process_drain *drain, uint32_t number);
bool drain_space_is_known(const struct process_drain *drain, uint32_t number);
bool drain_space_is_over(const struct process_drain *drain, uint32_t number);

/* A note says: it begins, as a copy of `parent` if that is not 0; it never will; it has these steps. Return 0 or
 * -ENOMEM. */
int drain_space_begins(struct process_drain *drain, uint32_t number, uint64_t parent);
int drain_space_fails(struct process_drain *drain, uint32_t number);
int drain_space_steps(struct process_drain *drain, uint32_t number, uint64_t first, uint64_t end);

/* A thread of it was opened, or closed. */
void drain_space_enter(struct process_drain *drain, uint32_t number);
void drain_space_leave(struct process_drain *drain, uint32_t number);

/* Gives back the memory of spaces that are over. All notes must have been taken that were there since the last threads
 * were closed. */
void drain_spaces_end(struct process_drain *drain);
void drain_spaces_done(struct process_drain *drain);

/* ---- life and death (drain_life.c) ---- */

/* A thread has been opened: is it visible? Counts it. */
void drain_thread_begins(struct process_drain *drain, struct drain_slot *slot, uint32_t creator);

/* It has ended. */
void drain_thread_ends(struct process_drain *drain, const struct drain_slot *slot, uint32_t end);

/* Looks for threads that are gone without having said so (SIGKILL); now and then. */
void drain_look_for_dead(struct process_drain *drain);

/* ---- titles and names (drain_title.c) ---- */

/* A thread has been opened: what is its process called? */
void drain_title_begins(struct drain_slot *slot);

/* Its page tells the last title and name, if it has ended by itself. Returns 0 or negative. */
int drain_title_ends(struct process_drain *drain, uint32_t number);

/* Of all threads that are open: now and then, or now. Returns 0 or negative. */
int drain_titles_look(struct process_drain *drain, bool is_now);

/* ---- a thread (drain_slot.c) ---- */

/* Wakes who sleeps on a futex. */
void drain_wake(const void *word);

/* How far a thread is. With `is_whole` the part that is being filled, too; of one that is gone, always. */
struct drain_view slot_look(const struct process_drain *drain, uint32_t number, bool is_whole);

/* Takes what a view shows, which may be older than what was taken already. `step` as in drain_settle, 0: all. Returns 0
 * or negative. */
int slot_take(struct process_drain *drain, uint32_t number, const struct drain_view *view, uint32_t step);

/* Writes again what a program may have written over. */
void slot_mend(struct process_drain *drain, uint32_t number);

/* Its thread is gone and all of its log taken: the page is free for another. */
void slot_close(struct process_drain *drain, uint32_t number);

/* ---- the whole (drain.c) ---- */

/* The trace is as big as it may be: says so in it, and stops. Returns negative. */
int drain_limit_reached(struct process_drain *drain);

/* Gives to the trace what the threads of a space logged before there were `step` steps. Returns 0 or the
 * drain's error. */
int drain_settle(struct process_drain *drain, uint32_t space, uint32_t step);

double drain_seconds(void);

/* drain_note.c. Takes the notes that are there. Returns 1; 0: there is one that is not whole yet, or there are more
 * than can be taken at a time; or negative. */
int drain_notes(struct process_drain *drain);
void drain_notes_done(struct process_drain *drain);

#endif
