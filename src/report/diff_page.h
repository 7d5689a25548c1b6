/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr diff`.
 */
#ifndef REPORT_DIFF_PAGE_H
#define REPORT_DIFF_PAGE_H

#include "analysis/analysis.h"
#include "report/page.h"

struct diff_page {
  struct diff_side *sides; /* two of them */
  const struct diff_options *options;
  const char *files[2]; /* as the user named them */
};

/* Compares the traces, thread by thread, and prints the result. Reports errors by message(). Returns 0 if they are the
 * same, 1 if they differ, 2 if missing branches make that undecidable; or negative. */
int diff_page_print(const struct diff_page *diff, const struct report_output *output, bool is_json);

/* ---- two streams (diff_pair_page.c) ---- */

/* The summary over all pairs of threads. */
struct diff_summary {
  uint64_t same;      /* branches that both took */
  uint64_t skipped;   /* differences in string functions */
  uint32_t different; /* pairs that differ, and threads without partner */
  char first[700];    /* where the first of them differs; "": none */
};

/* Compares two streams, prints the result, and adds it to the summary. Returns as diff_page_print. */
int diff_put_pair(const struct diff_page *diff, const uint32_t streams[2], struct diff_summary *summary,
                  struct page *page);

/* ---- counts (diff_counts_page.c) ---- */

/* Prints the functions whose counts differ most. Reports errors by message(). Returns 0 or negative. */
int diff_put_counts(const struct diff_page *diff, struct page *page);

/* ---- times (diff_times_page.c) ---- */

/* Prints the functions and system calls whose times differ most. Returns as above. */
int diff_put_times(const struct diff_page *diff, struct page *page);

#endif
