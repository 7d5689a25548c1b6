/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of a run of a machine. An option's value is kept as it was given; the code that makes the session fills
 * in the missing ones.
 */
#ifndef SESSION_MACHINE_ARGUMENTS_H
#define SESSION_MACHINE_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/cpu.h"
#include "lastbranch/cpudb.h"

enum screen_mode { SCREEN_DEFAULT, SCREEN_LIVE, SCREEN_FINAL, SCREEN_ALL, SCREEN_NONE };

#define MODULES_MAX 32 /* --initrd */

struct machine_arguments {
  const struct lb_cpu *cpu; /* NULL with --load: not given */
  unsigned cpus;            /* 0: not given */
  uint64_t ram;             /* bytes; 0: the machine's own choice */
  enum predictor_kind predictor;
  bool names_predictor; /* --predictor was given */
  uint32_t recorder_options;
  bool has_test_device;

  const char *image; /* its contents tell what sort of image it is */
  const char *floppy, *disk, *kernel, *append;
  const char *modules[MODULES_MAX];
  size_t module_count;
  char *flat; /* the file, without the address */
  uint64_t flat_address;

  const char *serial; /* "stdio", "none" or a file; NULL: not given */
  enum screen_mode screen;
  bool until_idle, until_halt; /* if neither, and no other --until: not given */
  uint64_t until_instructions; /* 0: no limit */
  double until_seconds;        /* 0: no limit */
  const char *until_text;

  const char *symbols, *trace, *bus;
  const char *load, *save; /* files with a machine */

  const char *gdb; /* where gdb may connect; NULL: nowhere */
  bool wants_wait; /* for gdb */
};

#endif
