/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts what was collected, and merges the lines of one source file from several units.
 */
#include <stdlib.h>
#include <string.h>

#include "export/lcov.h"

static int line_order(const void *one, const void *other)
{
  const struct lcov_line *a = one, *b = other;
  int order = a->file == b->file ? 0 : strcmp(a->file, b->file);

  return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

static int called_order(const void *one, const void *other)
{
  const struct lcov_function *a = one, *b = other;
  int order = a->file == b->file ? 0 : strcmp(a->file, b->file);

  if (order || a->line != b->line)
    return order ? order : a->line < b->line ? -1 : 1;
  return strcmp(a->name, b->name);
}

/* Whether they are on the same line, in code of the same sort. */
static bool branch_is_beside(const struct lcov_branch *one, const struct lcov_branch *other)
{
  return one->line == other->line && one->is_inlined == other->is_inlined && !strcmp(one->file, other->file);
}

static int branch_order(const void *one, const void *other)
{
  const struct lcov_branch *a = one, *b = other;
  int order = a->file == b->file ? 0 : strcmp(a->file, b->file);

  if (order || a->line != b->line)
    return order ? order : a->line < b->line ? -1 : 1;
  if (a->is_inlined != b->is_inlined)
    return a->is_inlined ? 1 : -1;
  if (a->function != b->function)
    return a->function < b->function ? -1 : 1;
  return a->place < b->place ? -1 : a->place > b->place;
}

/* The number of branches at the start that belong to one function's line. */
static size_t branches_alike(const struct lcov_branch *branches, size_t count)
{
  size_t alike = 1;

  while (alike < count && branch_is_beside(&branches[0], &branches[alike]) &&
         branches[alike].function == branches[0].function)
    alike++;
  return alike;
}

/* A function of a header is in each unit that uses it: its equal lines are merged. */
static void branches_merge(struct lcov *lcov)
{
  size_t kept = 0, first = 0, size = 0; /* the branches that others are added to */

  for (size_t i = 0, alike; i < lcov->branch_count; i += alike) {
    struct lcov_branch *branches = &lcov->branches[i];

    alike = branches_alike(branches, lcov->branch_count - i);
    if (size == alike && !branches->is_inlined && branch_is_beside(&lcov->branches[first], branches)) {
      for (size_t k = 0; k < alike; k++) {
        lcov->branches[first + k].taken += branches[k].taken;
        lcov->branches[first + k].passed += branches[k].passed;
      }
      continue;
    }
    first = kept;
    size = alike;
    memmove(&lcov->branches[kept], branches, alike * sizeof(*branches));
    kept += alike;
  }
  lcov->branch_count = kept;
}

static void functions_merge(struct lcov *lcov)
{
  size_t kept = 0;

  for (size_t i = 0; i < lcov->function_count; i++)
    if (kept && !called_order(&lcov->functions[kept - 1], &lcov->functions[i]))
      lcov->functions[kept - 1].calls += lcov->functions[i].calls;
    else
      lcov->functions[kept++] = lcov->functions[i];
  lcov->function_count = kept;
}

/* Keeps each line once, and only those of wanted modules. */
static void lines_merge(struct lcov *lcov)
{
  size_t kept = 0;

  for (size_t i = 0, next; i < lcov->line_count; i = next) {
    struct lcov_line line = lcov->lines[i];

    for (next = i + 1; next < lcov->line_count && !line_order(&line, &lcov->lines[next]); next++) {
      line.executed += lcov->lines[next].executed;
      line.is_wanted |= lcov->lines[next].is_wanted;
    }
    if (line.is_wanted)
      lcov->lines[kept++] = line;
  }
  lcov->line_count = kept;
}

void lcov_sort(struct lcov *lcov)
{
  if (lcov->line_count)
    qsort(lcov->lines, lcov->line_count, sizeof(*lcov->lines), line_order);
  if (lcov->function_count)
    qsort(lcov->functions, lcov->function_count, sizeof(*lcov->functions), called_order);
  if (lcov->branch_count)
    qsort(lcov->branches, lcov->branch_count, sizeof(*lcov->branches), branch_order);
  lines_merge(lcov);
  functions_merge(lcov);
  branches_merge(lcov);
}
