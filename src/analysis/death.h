/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a program, or its state while it runs, with the last branches of its threads: the known facts, and the
 * choice of branches for a report (death_rows.c). fault.h has the effect of the fatal instruction, backtrace.h the call
 * stack.
 */
#ifndef ANALYSIS_DEATH_H
#define ANALYSIS_DEATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"

struct lb_recorder;
struct symbol_place;

/* Resolves addresses: to files, and to the code that is there. `mark` is the branch's own mark; ANALYSIS_NOW stands for
 * the end of the program. */
#define ANALYSIS_NOW UINT32_MAX

struct analysis_piece {
  uint64_t start, size; /* addresses */
  uint64_t offset;      /* of `start` in the file */
  const char *path;
};

struct analysis_places {
  void *data; /* passed to the functions */
  /* Finds what is at an address of an address space. Returns false if that is not known; `*ret_place` is then
   * unchanged. The strings can be printed as they are, and stay valid until the report is printed. */
  bool (*find)(void *data, uint32_t space, uint32_t mark, uint64_t address, struct symbol_place *ret_place);
  /* The bytes of code there. Returns how many there are, at most `size`. */
  size_t (*code)(void *data, uint32_t space, uint32_t mark, uint64_t address, uint8_t *bytes, size_t size);
  /* The piece of a file there; the path is valid as long as the places. Returns false, touching nothing, if there is
   * none. May be NULL: there is then no call stack, and all code is the program's own. */
  bool (*piece)(void *data, uint32_t space, uint32_t mark, uint64_t address, struct analysis_piece *ret_piece);
};

struct analysis_thread {
  uint32_t thread; /* the system's number */
  uint32_t space;  /* for the places */
  const char *name;
  const struct lb_branch *branches; /* in the order in which they were taken */
  const uint32_t *marks;            /* of each branch */
  size_t count;
  size_t first;                       /* a gap separates the branches before this one from the rest */
  bool is_cut;                        /* there were older branches, which are gone */
  bool is_damaged;                    /* some are missing between them: the log is invalid there */
  bool has_gaps;                      /* some are missing between them: the source did not give them */
  const struct lb_recorder *recorder; /* not NULL: its contents are printed instead of the branches */
};

enum analysis_ending {
  ANALYSIS_DIED,    /* a signal killed it, and left a record of it */
  ANALYSIS_EXITED,  /* it ended by itself */
  ANALYSIS_KILLED,  /* a signal that cannot be observed killed it: SIGKILL */
  ANALYSIS_ALIVE,   /* it runs on */
  ANALYSIS_UNKNOWN, /* it ended in a program that cannot be recorded, and how is not known */
};

struct analysis_death {
  enum analysis_ending ending;
  uint32_t process;    /* the system's number */
  const char *program; /* path; "": not known */
  const char *command; /* its words, or the title that it has set; "" or NULL: not known */
  double timeout;      /* seconds after which the program was made to end; 0: it was not */
  int signal, code;    /* ANALYSIS_DIED: number and si_code, ANALYSIS_KILLED: number */
  uint64_t address;    /* si_addr */
  int status;          /* ANALYSIS_EXITED */
  const char *panic;   /* ANALYSIS_EXITED: the language whose runtime ended it, NULL: none. The branches of the first
                          thread   end where that began */
  bool is_native;      /* it had executed a program that cannot be recorded, and that program ended */
  uint64_t rip, flags, registers[16]; /* ANALYSIS_DIED: at the end; in the order of the encoding */
  bool has_top;                       /* `top` is the word that RSP pointed to */
  uint64_t top;
  const struct analysis_thread *threads; /* the thread that ended the process comes first */
  size_t thread_count;
};

/* The mark for the target of a branch: that of the next branch, which is in the same path. */
static inline uint32_t analysis_thread_to_mark(const struct analysis_thread *thread, size_t number)
{
  return number + 1 < thread->count ? thread->marks[number + 1] : ANALYSIS_NOW;
}

/* Finds where a thread is: for the thread that died, where it died; for others, where their last branch led. Returns
 * false if that is unknown. */
bool analysis_death_at(const struct analysis_death *death, const struct analysis_thread *thread, uint64_t *ret_address);

/* ---- which branches a report shows (death_rows.c) ---- */

/* The choice. The program's own code is that of its executable, of files outside the
 * system's folders of libraries (/lib*, /usr/lib*, /nix/store, /gnu/store), and code in no file. */
enum analysis_show {
  ANALYSIS_SHOW_OWN_FIRST, /* the last ones in its own code, and the libraries' branches after them */
  ANALYSIS_SHOW_OWN,       /* the last ones in its own code */
  ANALYSIS_SHOW_ALL,       /* the last ones */
};

/* The chosen branches of a thread: numbers in its list, the newest first. */
struct analysis_death_rows {
  size_t *numbers; /* `count` of them, followed by `tail_count` of libraries */
  size_t count, capacity;
  size_t tail_count,
    tail_total;    /* of the newer branches, all in libraries: how many are chosen, and how many there are */
  bool is_own;     /* only those in the program's own code */
  bool has_no_own; /* own code was wanted, but there is none: branches of all code are chosen */
};

/* `places` may be NULL, `most` is the number of branches of own code and of libraries; 0: all. Returns 0 or -ENOMEM. */
int analysis_death_rows_make(const struct analysis_death *death, const struct analysis_places *places,
                             const struct analysis_thread *thread, enum analysis_show show, size_t most,
                             struct analysis_death_rows *ret_rows);
void analysis_death_rows_done(struct analysis_death_rows *rows);

/* Are these all that the thread took? */
bool analysis_death_rows_are_all(const struct analysis_death_rows *rows, const struct analysis_thread *thread);
/* Are these the last ones, without omissions? Then a report need not say which code they belong to. */
bool analysis_death_rows_are_last(const struct analysis_death_rows *rows, const struct analysis_thread *thread);

/* Does this branch of a thread come from the program's own code, or lead there? */
bool analysis_death_branch_is_own(const struct analysis_death *death, const struct analysis_places *places,
                                  const struct analysis_thread *thread, size_t number);

#endif
