/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in a trace, for tests that compare it with what they wrote: the bytes of its file, the branches of one
 * stream, and the gaps of all.
 */
#ifndef TESTS_TRACE_CONTENTS_H
#define TESTS_TRACE_CONTENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lastbranch/trace.h"

/* Reads a file whole; for free(3). */
static inline uint8_t *file_load(const char *name, size_t *ret_size)
{
  FILE *file = fopen(name, "rb");
  uint8_t *bytes = malloc(64 << 20);

  assert_non_null(file);
  assert_non_null(bytes);
  *ret_size = fread(bytes, 1, 64 << 20, file);
  fclose(file);
  return realloc(bytes, *ret_size ? *ret_size : 1);
}

struct contents {
  struct lb_branch *branches;
  uint64_t *numbers;
  size_t count;
  unsigned gaps[LB_TRACE_GAP_REASONS];
  uint64_t missing;
  unsigned described; /* records of other types */
};

static inline void contents_add(struct contents *contents, const struct lb_trace_branches *branches, size_t room)
{
  assert_true(contents->count + branches->count <= room);
  memcpy(contents->branches + contents->count, branches->branches, branches->count * sizeof(*contents->branches));
  for (size_t i = 0; i < branches->count; i++)
    contents->numbers[contents->count++] = branches->first + i;
}

/* Reads a trace to its end, which has at most `room` branches of the stream; for contents_done. */
static inline struct contents contents_read(struct lb_trace_reader *reader, uint32_t stream, size_t room)
{
  struct contents contents = {.branches = calloc(room + 1, sizeof(struct lb_branch)),
                              .numbers = calloc(room + 1, sizeof(uint64_t))};
  struct lb_trace_record record;
  int r;

  while ((r = lb_trace_reader_next(reader, &record)) > 0) {
    if (record.type == LB_TRACE_GAP) {
      assert_true(record.gap.reason < LB_TRACE_GAP_REASONS);
      contents.gaps[record.gap.reason]++;
      contents.missing += record.gap.stream == stream ? record.gap.count : 0;
    } else if (record.type != LB_TRACE_BRANCHES) {
      contents.described++;
    } else if (record.branches.stream == stream) {
      contents_add(&contents, &record.branches, room);
    }
  }
  assert_int_equal(r, 0);
  assert_int_equal(lb_trace_reader_next(reader, &record), 0);
  return contents;
}

/* The counts stay. */
static inline void contents_done(struct contents *contents)
{
  free(contents->branches);
  free(contents->numbers);
  contents->branches = NULL;
  contents->numbers = NULL;
}

#endif
