/* SPDX-License-Identifier: Apache-2.0
 *
 * The main of a test program of several files: parts.h.
 */
#include "parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct part *first, **last = &first;
static size_t total;

void part_add(struct part *part)
{
  *last = part;
  last = &part->next;
  total += part->count;
}

int main(void)
{
  struct CMUnitTest *tests = calloc(total, sizeof(*tests));
  size_t count = 0;

  if (!tests) {
    perror("calloc");
    return 1;
  }
  for (const struct part *part = first; part; part = part->next) {
    memcpy(tests + count, part->tests, part->count * sizeof(*tests));
    count += part->count;
  }
  int failed = _cmocka_run_group_tests(program_invocation_short_name, tests, count, NULL, NULL);
  free(tests);
  return failed;
}
