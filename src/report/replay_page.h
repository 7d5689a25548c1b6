/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr replay`: the contents of a recorder at a position of a trace.
 */
#ifndef REPORT_REPLAY_PAGE_H
#define REPORT_REPLAY_PAGE_H

#include "analysis/analysis.h"
#include "report/output.h"

struct replay_page {
  struct report_output output;
  struct replay_run *run;
  const char *cpu;
  unsigned format; /* enum report_format */
  /* of the BTS buffer: */
  const unsigned char *bts_bytes; /* records, the oldest first */
  size_t bts_count, record_size;
  const char *bts_file; /* the file that the records were written to, in which case they are not printed; or NULL */
};

/* Warns if branches are missing shortly before the position. */
void replay_page_warn(const struct replay_run *run);

/* Returns 0, or negative after a message. */
int replay_page_print(const struct replay_page *replay);

#endif
