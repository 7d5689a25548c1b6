/* SPDX-License-Identifier: Apache-2.0
 *
 * A function, instruction by instruction, with exact counts: how often each ran, where each branch went, and the source
 * line that it was made from.
 */
#ifndef ANALYSIS_ANNOTATE_H
#define ANALYSIS_ANNOTATE_H

#include "analysis/hot.h"

/* ---- which function ---- */

/* Finds the functions that a word names: NAME, MODULE:NAME, 0xADDRESS (linear, or as its file is linked) or
 * MODULE:0xADDRESS (as linked). `hot` has all functions that ran. The array is the caller's to free. Returns how many
 * there are, or -ENOMEM. */
int analysis_functions_find(struct analysis_names *names, const struct analysis_counts *counts,
                            const struct analysis_hot *hot, const char *word,
                            struct analysis_hot_function **ret_functions);

/* Finds the names of functions that ran and are most similar to `word`. Returns how many there are, at most `count`. */
size_t analysis_functions_near(const struct analysis_hot *hot, const char *word, const char **ret_names, size_t count);

/* Returns a module that has a function of this name of which nothing ran, or NULL. Files in which nothing ran are not
 * opened. */
const char *analysis_functions_idle(const struct analysis_names *names, const char *word);

/* ---- its rows ---- */

struct analysis_annotated {
  struct analysis_location at;
  uint8_t length;                    /* 0: the instruction is not known, only that it is a branch */
  int8_t kind;                       /* enum lb_branch_kind of an instruction that may jump; else -1 */
  uint64_t executed;                 /* as far as known */
  uint64_t taken, passed;            /* of a branch */
  const struct analysis_jump *jumps; /* its jumps, sorted by target; includes branches that were not taken */
  size_t jump_count;
  /* The source: the innermost function that was inlined here. NULL and 0: not known. */
  const char *file, *function;
  unsigned line;
  bool is_inlined;
  uint64_t chain; /* identifies the chain of inlined calls: rows with different numbers belong to different chains */
};

/* A taken branch inside the function, to be drawn beside it. */
struct analysis_arrow {
  size_t from, to; /* rows */
  uint64_t count;
  unsigned lane; /* 0: nearest to the code. Arrows that overlap have different lanes */
};

#define ANALYSIS_LANES_MAX 8u

struct analysis_annotation {
  struct analysis_hot_function function;
  struct analysis_annotated *rows; /* by address */
  size_t row_count;
  struct analysis_arrow *arrows; /* the hottest first */
  size_t arrow_count;
  unsigned lanes;       /* lanes in use */
  size_t hidden_arrows; /* arrows for which there was no lane */
  uint64_t end;         /* address after the last byte that was examined */
  bool is_cut;          /* the function is too long to be shown whole */
  bool has_unknown;     /* some of its bytes are unknown, or are not code */
  bool is_changed;      /* branches ran here that the present code does not have: the code has changed since */
  bool is_uncounted;    /* it ran where instructions cannot be counted: only the counts of branches are known */
};

/* Returns 0, or -ENOMEM. `wants_lines`: false skips the debug information. */
int analysis_annotate(struct analysis_names *names, struct analysis_code *code, const struct analysis_counts *counts,
                      const struct analysis_hot_function *function, bool wants_lines,
                      struct analysis_annotation *ret_annotation);
/* The target of a branch that follows `after` when targets are sorted by count, the most frequent first; if `after` is
 * NULL, the first target. Returns NULL after the last. */
const struct analysis_jump *analysis_annotated_target(const struct analysis_annotated *row,
                                                      const struct analysis_jump *after);

void analysis_annotation_done(struct analysis_annotation *annotation); /* takes an all-zero struct, too */

#endif
