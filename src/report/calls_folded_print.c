/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks, one per line as "a;b;c COUNT", in the format that flame graph programs read.
 */
#include <errno.h>

#include "report/calls_page.h"

int calls_folded_print(const struct calls_page *page, const struct calls_folded *folded)
{
  const struct analysis_stack *stack;
  struct text line = {0};
  int r = 0;

  for (size_t i = 0; r >= 0 && folded->stacks && (stack = analysis_stacks_get(folded->stacks, i)); i++) {
    struct analysis_cost cost = calls_cost_of(stack);
    uint64_t count = calls_weight(folded->walk, &cost);

    if (!count)
      continue;
    line.length = 0;
    r = analysis_stacks_fold(folded->stacks, (uint32_t)i, folded->walk->calls, &line);
    fprintf(page->output.file, "%s %llu\n", text_string(&line), (unsigned long long)count);
    if (ferror(page->output.file))
      r = -EIO;
  }
  text_done(&line);
  return r;
}
