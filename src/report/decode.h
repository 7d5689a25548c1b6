/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of `lbr decode`: a register value taken apart (decode_register.c), or a DS, BTS or PEBS buffer from a file
 * (decode_area.c).
 */
#ifndef REPORT_DECODE_H
#define REPORT_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/cpudb.h"
#include "report/output.h"

/* The meaning of the first argument. */
enum decode_what {
  DECODE_DS,
  DECODE_BTS,
  DECODE_PEBS,
  DECODE_REGISTER,
};

struct decode_arguments {
  const struct lb_cpu *cpu; /* NULL: choose one */
  const char *name;         /* a register, or "ds", "bts", "pebs" */
  enum decode_what what;    /* the same, parsed */
  const char *value;        /* of the register, or the file; "-" is stdin */
  bool wants_json;
  bool wants_32, wants_64; /* layout of the DS area; neither: that of the CPU */
  bool has_offset, has_count;
  uint64_t offset; /* bytes of the file to skip */
  uint64_t count;  /* records to show at most */
};

/* Write a page. Return 0, or negative after a message; decode_register returns LB_E_BAD_NUMBER if the value is not a
 * number. */
int decode_register(const struct decode_arguments *arguments, const struct report_output *output);
int decode_area(const struct decode_arguments *arguments, const struct report_output *output);

#endif
