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
  uint64_t time; /* a file that is younger than this was changed since; 0: not known */
  bool is_quiet; /* files that are missing are not complained about */
  /* The rest is its own. */
  struct source_file *files;
  size_t count, capacity;
  size_t bytes;        /* of all files */
  bool has_complained; /* about a missing file; `has_warned`: about a file that is too young. Once each */
  bool has_warned;
};

/* Appends a line, counted from 1, fit to be printed and without trailing blanks. The first file that cannot be read is
 * complained about. Returns false if there is no such line or no such file. */
bool source_add_line(struct source_files *files, const char *path, unsigned line, struct text *text);

void source_done(struct source_files *files);

#endif
