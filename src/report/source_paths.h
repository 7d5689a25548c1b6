/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which source files may be shown. Their names come from debug information, which may name any file of this
 * machine: `#line 1 "/etc/shadow"` is enough. Therefore only files below the folders in which the program was compiled
 * are read, and those that the user allows.
 */
#ifndef REPORT_SOURCE_PATHS_H
#define REPORT_SOURCE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/analysis.h"

#define SOURCE_PREFIXES_MAX 16

/* OLD=NEW: replaces OLD at the beginning of a path with NEW. DIR: changes nothing; `old` is NULL then. Files below NEW
 * or DIR may be shown. */
struct source_prefix {
  const char *old;
  size_t old_length;
  const char *new;
};

struct source_paths {
  struct source_prefix prefixes[SOURCE_PREFIXES_MAX];
  size_t prefix_count;
  bool allows_any;                    /* --any-source */
  const struct analysis_names *names; /* they know where the program was compiled */
  bool has_warned;                    /* the user was warned of a file that may not be shown */
};

/* Adds what --source-prefix says: "OLD=NEW" or "DIR". Returns false if it is neither, or if there are too many. */
bool source_paths_add(struct source_paths *paths, const char *argument);

/* Opens a source file for reading. Returns a descriptor; -EPERM if it may not be shown, after a warning at the first
 * one; or -errno. Symbolic links are followed, and their targets must lie below the folders, too. */
int source_paths_open(struct source_paths *paths, const char *path);

#endif
