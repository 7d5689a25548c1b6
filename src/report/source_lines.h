/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of source files, read from the paths in the debug information, or from elsewhere if the user says so.
 */
#ifndef REPORT_SOURCE_LINES_H
#define REPORT_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "report/source_paths.h"

struct source_files {
  struct source_paths paths;
  uint64_t time; /* when the trace was begun: a younger file has changed since; 0: not known */
  bool is_quiet; /* missing files are not reported */
  /* The members below are private. */
  struct source_file *files;
  size_t count, capacity;
  size_t bytes;        /* of all files */
  bool has_complained; /* a missing file was reported; `has_warned`: a file that is too young. Each only once */
  bool has_warned;
};

/* Appends a line, counted from 1, fit to be printed and without trailing blanks. Reports the first file that cannot be
 * read. Returns false if there is no such line or no such file. */
bool source_add_line(struct source_files *files, const char *path, unsigned line, struct text *text);

void source_done(struct source_files *files);

#endif
