/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the reports of `lbr run` to the file that was asked for.
 */
#ifndef CLI_RUN_PAGE_H
#define CLI_RUN_PAGE_H

#include "cli/run_options.h"

struct run_page {
  const struct run_show *show;
  int fd; /* destination of the reports */
  bool wants_color;
  bool has_reported;
  bool is_broken; /* a report could not be written, and that was reported */
};

/* Opens the file. Returns 0, or negative after a message. */
int run_page_open(struct run_page *page, const struct run_show *show);

/* `page` must stay valid. */
struct run_reporter run_page_reporter(struct run_page *page);

#endif
