/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of output as text or as JSON, from the same calls: both have the same contents. A page is made of named
 * values, sections, lists of words and tables. In JSON a value's name is its key; as text, underscores in it become
 * blanks. Hexadecimal values are strings in JSON, since its readers keep only 53 bits of a number. As text, a section
 * or table without contents is left out; JSON includes it.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/output.h"

struct page_column {
  const char *title; /* NULL ends the columns */
  int width;         /* 0 for the last one: text that is too long continues in the next line */
};

struct page {
  struct report_output output;
  bool is_json;
  int width;     /* text: longer lines are broken */
  int row_width; /* the same for rows of tables; INT_MAX for never */
  /* The members below are private. */
  FILE *file; /* where it goes: that of the output, or memory while text is held back */
  char *held;
  size_t held_size;
  unsigned depth;                    /* of JSON brackets */
  bool is_first;                     /* the bracket or list has no entry yet */
  bool is_blank;                     /* text: nothing was printed yet */
  const char *heading;               /* text: of a section that is empty so far */
  const struct page_column *columns; /* inside a table */
  bool is_headed;                    /* text: the titles of the columns were printed */
  unsigned column;
  int cursor; /* text: columns of the line that are filled */
  bool is_bold;
};

void page_open(struct page *page, const struct report_output *output, bool is_json);
void page_close(struct page *page);

/* Text that follows is held back until page_release, which prints a named value in front of it. JSON, and text for
 * which there is no memory, is not held back: the value then comes last. */
void page_hold(struct page *page);
void page_release(struct page *page, const char *key, const char *value);

/* A headline, a remark, an empty line; text only. */
void page_title(struct page *page, const char *title);
void page_remark(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_blank(struct page *page);

/* The title must stay valid until the section ends. */
void page_section(struct page *page, const char *key, const char *title);
void page_section_end(struct page *page);

/* The headline of a section that JSON does not have. */
void page_heading(struct page *page, const char *title);

/* An array of any number of sections without a key (NULL); it is invisible in text. */
void page_array(struct page *page, const char *key);
void page_array_end(struct page *page);

/* Named values; inside a row of a table, its next cell. page_put with NULL is null, and as text "-". */
void page_put(struct page *page, const char *key, const char *value);
void page_absent(struct page *page, const char *key); /* null in JSON, nothing as text */
void page_putf(struct page *page, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void page_put_number(struct page *page, const char *key, uint64_t value);
void page_put_count(struct page *page, const char *key, uint64_t value); /* with separators on a terminal */
void page_put_signed(struct page *page, const char *key, int64_t value);
void page_put_hex(struct page *page, const char *key, uint64_t value);
void page_put_flag(struct page *page, const char *key, bool value); /* as text "yes" or "no" */
void page_put_json(struct page *page, const char *key,
                   const char *json); /* JSON only: a value that is formatted already */

/* In a row, after its last cell: a source or remark; text shows it in a line of its own. */
void page_put_note(struct page *page, const char *key, const char *value);

/* A list of words. */
void page_list(struct page *page, const char *key);
void page_item(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_list_end(struct page *page);

/* A table; each row has one cell for each column. `is_bold` highlights a row. */
void page_table(struct page *page, const char *key, const struct page_column *columns);
void page_row(struct page *page, bool is_bold);
void page_row_end(struct page *page);
void page_table_end(struct page *page);

#endif
