/* SPDX-License-Identifier: Apache-2.0
 *
 * Formatting for `lbr report` and `lbr annotate`: numbers, shares, bars, places in code.
 */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include "analysis/analysis.h"
#include "base/base.h"
#include "report/page.h"

#define WORDS_NUMBER_SIZE 32

/* "1,234,567". Returns `buffer`. */
const char *words_number(char buffer[WORDS_NUMBER_SIZE], uint64_t value);

/* Nanoseconds with three digits that count: "987 ns", "1.23 us", "45.6 ms", "789 s". Returns `buffer`. */
const char *words_duration(char buffer[WORDS_NUMBER_SIZE], uint64_t nanoseconds);

/* Does the terminal show UTF-8? Assumed, unless the locale says otherwise. */
bool words_has_utf8(void);

/* Appends untrusted text so that it is fit to be printed: control characters and invalid UTF-8 become "?", tabs become
 * blanks up to the next eighth column. Returns 0, or -ENOMEM. */
int words_add_printable(struct text *text, const char *bytes, size_t length);

/* Cells of a table, and in JSON members. A number stands at the right side of its column; so does a share. */
void words_put_number(struct page *page, const char *key, uint64_t value, int width);
void words_put_duration(struct page *page, const char *key, uint64_t nanoseconds, int width); /* JSON: seconds */
void words_put_share(struct page *page, const char *key, uint64_t part, uint64_t whole);

/* Text only: a bar of ten columns. */
void words_put_bar(struct page *page, uint64_t part, uint64_t whole, bool has_utf8);

/* The name of a function: its symbol and module; without a symbol, its module and address. */
void words_function(const struct analysis_hot_function *function, char *buffer, size_t size);

/* The last part of a path. */
const char *words_base(const char *path);

/* A place in code: "main+0x1b (loop.c:12)", "[libc.so.6]+0x2724a", "0x7f0012345678". Returns 0, or -ENOMEM. */
int words_add_location(struct text *text, struct analysis_names *names, const struct analysis_location *location,
                       bool wants_lines);

/* The same as a JSON object. */
void words_put_location(struct page *page, const char *key, struct analysis_names *names,
                        const struct analysis_location *location, bool wants_lines);

#endif
