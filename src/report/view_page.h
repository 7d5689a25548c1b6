/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files view*.c share: a page while it is made.
 */
#ifndef REPORT_VIEW_PAGE_H
#define REPORT_VIEW_PAGE_H

#include "analysis/analysis.h"
#include "base/base.h"
#include "report/view.h"
#include "report/view_store.h"

#define VIEW_FRAMES_MAX (4u << 20) /* of all stacks together: deeper calls are not shown or counted */
#define VIEW_GAPS_MAX 1000u        /* that are shown */
#define VIEW_STACK_MAX 64u         /* frames of the end of a stream that are listed */

/* A function's numbers; by its number. */
struct view_function {
  uint64_t calls;
  uint64_t branches, instructions;         /* in itself, */
  uint64_t all_branches, all_instructions; /* and with what it called, recursion counted once */
};

/* A call that runs. */
struct view_frame {
  uint64_t branch, instructions;               /* counts when it was entered, */
  uint64_t taken;                              /* and number of branches before its first one */
  uint64_t inner_branches, inner_instructions; /* of what it called */
  uint32_t function;
  bool is_cut;   /* it was entered before the shown part begins */
  bool is_shown; /* it is a function of the module, if there is one */
};

struct view_stream {
  bool is_within, is_past; /* the part that is shown has begun; it has ended */
  struct view_frame *frames;
  size_t count, capacity;
  size_t shown;                    /* of the frames */
  uint32_t skipped;                /* deeper ones for which there was no room */
  uint64_t branches, instructions; /* counts at its end, as far as known */
  uint64_t seen;                   /* branches that are in the trace */
  struct lb_branch last;           /* of kind LB_BRANCH_KINDS: there is none */
  bool is_cut;                     /* it ends with a gap */
  uint32_t *stack;                 /* functions at the end, the innermost first */
  size_t stack_count;
};

struct view_gap {
  uint32_t stream;
  uint8_t reason;
  uint64_t first, count;
};

/* How often a function runs in a stream at a time: a hash, see view_active.c. */
struct view_active {
  uint64_t *keys; /* stream and function, plus 1; 0: free */
  uint32_t *counts;
  size_t used, capacity;
};

struct report_view {
  struct report_view_options options;
  char *file;
  struct analysis_calls *calls;
  struct analysis_filter *filter;             /* of options.module, or NULL; then */
  struct analysis_calls_filter *calls_filter; /* this one lets calls of that module pass */
  struct stream_list list;
  struct view_stream *streams;
  size_t count, capacity;
  size_t frames; /* of all streams */
  bool has_skipped;
  struct view_function *functions;
  size_t function_count, function_capacity;
  struct view_active active;
  struct analysis_stacks *stacks;
  struct view_store store;
  struct view_gap *gaps;
  size_t gap_count, gap_capacity;
  uint64_t gaps_left_out;
  bool has_loss, is_unfinished; /* the end marker is missing, or the recorder gave up */
  uint64_t all_calls;
  struct text meta;                /* JSON members */
  char *source;                    /* meta "source" */
  uint32_t dead;                   /* process that a signal ended, 0: none is known, */
  uint32_t signal;                 /* and which */
  struct text edges, code, totals; /* JSON, made of the counts */
  size_t ran;                      /* functions, likewise */
};

/* Adds `change` to the count of a key. Returns the count after an increment, or before a decrement; or -ENOMEM. */
int view_active_add(struct view_active *active, uint32_t stream, uint32_t function, int change);
void view_active_done(struct view_active *active);

/* ---- JSON that may stand in a page ---- */

/* A string, quoted: whatever could end a script is escaped. Invalid UTF-8 becomes question marks. Return 0, or -ENOMEM.
 */
int view_quote(struct text *text, const char *string);
/* The symbol, or module and offset, or address of a location, quoted. */
int view_quote_place(struct text *text, struct analysis_names *names, const struct analysis_location *location,
                     bool has_offset);

/* ---- parts of the page ---- */

/* Each appends JSON. Returns 0, or -ENOMEM. */
int view_put_streams(struct report_view *view, struct text *text);
int view_put_functions(struct report_view *view, struct text *text);
int view_put_stacks(struct report_view *view, struct text *text);

/* "sha256-..." of some bytes, for the page's Content-Security-Policy. */
#define VIEW_DIGEST_SIZE 52u
void view_digest(const void *bytes, size_t size, char ret_text[VIEW_DIGEST_SIZE]);

/* Base64 of three bytes at a time. */
void view_base64(const uint8_t *bytes, size_t size, char *ret_text);

#endif
