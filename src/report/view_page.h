/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files view*.c share: a page while it is made.
 */
#ifndef REPORT_VIEW_PAGE_H
#define REPORT_VIEW_PAGE_H

#include "analysis/analysis.h"
#include "base/base.h"
#include "report/view.h"

struct report_view {
  struct report_view_options options;
  char *file;
  struct timeline timeline;
  struct text meta;                /* JSON members */
  struct text edges, code, totals; /* JSON, made of the counts */
  size_t ran;                      /* functions that ran, also from the counts */
};

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
int view_put_times(struct report_view *view, struct text *text);

/* "sha256-..." of some bytes, for the page's Content-Security-Policy. */
#define VIEW_DIGEST_SIZE 52u
void view_digest(const void *bytes, size_t size, char ret_text[VIEW_DIGEST_SIZE]);

/* Base64 of three bytes at a time. */
void view_base64(const uint8_t *bytes, size_t size, char *ret_text);

#endif
