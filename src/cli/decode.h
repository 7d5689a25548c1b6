/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of `lbr decode`, for cmd_decode.c. They print to stdout, complain themselves, and return an exit
 * status.
 */
#ifndef CLI_DECODE_H
#define CLI_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/cpudb.h"

/* What the first word stands for. */
enum decode_what {
  DECODE_DS,
  DECODE_BTS,
  DECODE_PEBS,
  DECODE_REGISTER,
};

struct decode_arguments {
  const struct lb_cpu *cpu; /* NULL: choose one */
  const char *name;         /* a register, or "ds", "bts", "pebs" */
  enum decode_what what;    /* the same, understood */
  const char *value;        /* of the register, or the file; "-" is stdin */
  bool wants_json;
  bool wants_32, wants_64; /* layout of the DS area; neither: the CPU's */
  bool has_offset, has_count;
  uint64_t offset; /* bytes of the file to pass over */
  uint64_t count;  /* records to show at most */
};

int decode_register(const struct decode_arguments *arguments);
int decode_area(const struct decode_arguments *arguments);

#endif
