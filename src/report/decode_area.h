/* SPDX-License-Identifier: Apache-2.0
 *
 * A buffer in a file that `lbr decode` decodes: declarations that decode_area.c and decode_pebs.c share.
 */
#ifndef REPORT_DECODE_AREA_H
#define REPORT_DECODE_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/decode.h"
#include "report/page.h"
#include "report/register.h"

struct decode_area {
  const struct decode_arguments *arguments;
  const struct report_output *output;
  struct register_choice choice; /* only its CPU is used */
  bool is_64;
  FILE *file;
  bool is_open;     /* the page was begun */
  uint64_t records; /* shown so far */
  struct page page;
};

/* The next bytes of the file. Returns how many there were, up to `size`, or -errno. */
int decode_area_get(struct decode_area *area, unsigned char *bytes, size_t size);

/* Begins the page: names the CPU and the layout with which the bytes are read. */
void decode_area_begin(struct decode_area *area);

/* False when as many records were shown as the user wants. */
bool decode_area_wants(const struct decode_area *area);

/* The table of the rules of a DS area that are broken: a bit of `broken` for each rule. */
void decode_area_put_broken(struct page *page, uint32_t broken);

/* The enum lb_pebs of the records. */
unsigned decode_pebs_format(const struct decode_area *area);

/* Shows PEBS records to the end of the file. Returns >= 0, -errno, LB_E_TRUNCATED, or LB_E_NO_FIELD for a record that
 * contradicts itself. */
int decode_pebs(struct decode_area *area);

#endif
