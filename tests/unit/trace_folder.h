/* SPDX-License-Identifier: Apache-2.0
 *
 * A temporary folder with one file in it, a trace, for a group of tests: group_begin and group_end make and remove it.
 */
#ifndef TESTS_TRACE_FOLDER_H
#define TESTS_TRACE_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/lbr-test-XXXXXX";
static char path[64];

static inline int group_begin(void **state)
{
  (void)state;
  if (!mkdtemp(folder))
    return -1;
  snprintf(path, sizeof(path), "%s/trace", folder);
  return 0;
}

static inline int group_end(void **state)
{
  (void)state;
  unlink(path);
  return rmdir(folder);
}

#endif
