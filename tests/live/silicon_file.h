/* SPDX-License-Identifier: Apache-2.0
 *
 * A processor in a file: a recorder that msr_shim.c shows as an msr device, and silicon.c feeds and looks at. The file
 * is mapped, so that what one process writes is there for the next.
 */
#ifndef TESTS_SILICON_FILE_H
#define TESTS_SILICON_FILE_H

#include "lastbranch/recorder.h"

struct silicon_file {
  char cpu[32];
  struct lb_recorder unit;
};

/* Maps it; with `cpu` it is made anew. Returns NULL with errno. */
struct silicon_file *silicon_open(const char *path, const char *cpu);

#endif
