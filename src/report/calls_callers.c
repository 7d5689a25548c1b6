/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr calls --callers: the callers of a function, their callers, and how many of its calls came each way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/calls_page.h"

#define LEVELS 64u /* levels of callers without --depth */
#define NONE ANALYSIS_STACK_NONE

/* The position of an entry of the tree among the others. */
struct link {
  uint32_t first; /* its caller with the most calls, or the most time */
  uint32_t next;  /* the next caller of the same function */
};

struct printing {
  const struct calls_page *page;
  const struct calls_walk *walk;
  const struct analysis_stacks *tree;
  struct link *links;
  uint32_t first;
  uint64_t total, lines;
  struct text name;
};

/* ---- the order ---- */

/* What callers are sorted by: calls, or with --by time and running, these. */
static uint64_t entry_weight(const struct printing *printing, uint32_t entry)
{
  const struct analysis_stack *stack = analysis_stacks_get(printing->tree, entry);
  struct analysis_cost cost = calls_cost_of(stack);

  return printing->walk->options->by >= CALLS_BY_TIME ? calls_weight(printing->walk, &cost) : stack->calls;
}

/* Sorts the smallest first: each entry is then put before its siblings. */
static int entry_compare(const void *one, const void *other, void *printing)
{
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
  uint64_t weight = entry_weight(printing, a), others = entry_weight(printing, b);

  if (weight != others)
    return weight < others ? -1 : 1;
  return a > b ? -1 : a < b;
}

static int links_make(struct printing *printing)
{
  size_t count = analysis_stacks_count(printing->tree);
  uint32_t *order = malloc((count + 1) * sizeof(*order));

  printing->links = malloc((count + 1) * sizeof(*printing->links));
  printing->first = NONE;
  if (!order || !printing->links) {
    free(order);
    return -ENOMEM;
  }
  for (size_t i = 0; i < count; i++) {
    order[i] = (uint32_t)i;
    printing->links[i] = (struct link){NONE, NONE};
  }
  qsort_r(order, count, sizeof(*order), entry_compare, printing);
  for (size_t i = 0; i < count; i++) {
    uint32_t called = analysis_stacks_get(printing->tree, order[i])->caller;
    uint32_t *head = called == NONE ? &printing->first : &printing->links[called].first;

    printing->links[order[i]].next = *head;
    *head = order[i];
  }
  free(order);
  return 0;
}

/* The entry that is printed after this one. */
static uint32_t entry_next(const struct printing *printing, uint32_t entry)
{
  if (printing->links[entry].first != NONE)
    return printing->links[entry].first;
  while (entry != NONE && printing->links[entry].next == NONE)
    entry = analysis_stacks_get(printing->tree, entry)->caller;
  return entry == NONE ? NONE : printing->links[entry].next;
}

/* ---- lines ---- */

static void print_line(struct printing *printing, uint32_t number, const struct analysis_stack *entry)
{
  struct analysis_cost cost = calls_cost_of(entry);
  char numbers[REPORT_NUMBER_SIZE], share[REPORT_NUMBER_SIZE], times[CALLS_TIMES_SIZE];

  fprintf(printing->page->output.file, "%13llu  %6s %15s %13llu%s  %*s%s%s\n", (unsigned long long)entry->calls,
          calls_share(entry_weight(printing, number), printing->total, true, share),
          entry->unknown ? "-" : calls_json_number(entry->instructions, true, numbers),
          (unsigned long long)entry->branches, calls_times(printing->walk, &cost, times), 2 * (int)entry->level, "",
          entry->level ? "< " : "", text_string(&printing->name));
}

static void print_json(struct printing *printing, uint32_t number, const struct analysis_stack *entry)
{
  struct analysis_cost cost = calls_cost_of(entry);
  char numbers[REPORT_NUMBER_SIZE], times[CALLS_TIMES_SIZE];

  fprintf(printing->page->output.file, "{\"type\":\"caller\",\"number\":%u,\"called\":", number);
  if (entry->caller == NONE)
    fputs("null", printing->page->output.file);
  else
    fprintf(printing->page->output.file, "%u", entry->caller);
  fprintf(printing->page->output.file, ",\"level\":%u,\"function\":", entry->level);
  calls_json_string(printing->page->output.file, text_string(&printing->name));
  fprintf(printing->page->output.file, ",\"calls\":%llu,\"instructions\":%s,\"branches\":%llu%s%s}\n",
          (unsigned long long)entry->calls, calls_json_number(entry->instructions, !entry->unknown, numbers),
          (unsigned long long)entry->branches, calls_json_times(printing->walk, "", &cost, times),
          calls_json_unknown(printing->walk, !entry->unknown));
}

static int print_entry(struct printing *printing, uint32_t number)
{
  const struct analysis_stack *entry = analysis_stacks_get(printing->tree, number);

  printing->name.length = 0;
  if (calls_name(printing->walk, entry->function, &printing->name) < 0)
    return -ENOMEM;
  if (printing->page->is_json)
    print_json(printing, number, entry);
  else
    print_line(printing, number, entry);
  return ferror(printing->page->output.file) ? -EIO : 0;
}

static int print_tree(struct printing *printing)
{
  uint64_t limit = printing->walk->options->limit;
  int r = 0;

  if (!printing->page->is_json)
    fprintf(printing->page->output.file, "%13s  %6s %15s %13s%s  function < its callers\n", "calls", "share",
            "instructions", "branches", calls_times_heading(printing->walk));
  for (uint32_t i = printing->first; i != NONE && r >= 0; i = entry_next(printing, i))
    if (printing->lines++ < limit)
      r = print_entry(printing, i);
  if (r >= 0 && printing->lines > limit && !printing->page->is_json)
    fprintf(printing->page->output.file, "... and %llu more: --top\n", (unsigned long long)(printing->lines - limit));
  return r;
}

/* ---- all of it ---- */

static int is_wanted(void *data, uint32_t function)
{
  struct calls_walk *walk = data;

  return calls_walk_matches(walk, function, walk->options->callers);
}

int calls_callers_print(const struct calls_page *page, const struct calls_folded *folded, bool *ret_is_found)
{
  struct calls_walk *walk = page->walk;
  uint32_t levels = walk->options->caller_levels ? walk->options->caller_levels : LEVELS;
  struct printing printing = {.page = page, .walk = walk};
  struct analysis_stacks *tree = NULL;
  int r = folded->stacks ? analysis_callers_new(folded->stacks, is_wanted, walk, levels, &tree) : 0;

  *ret_is_found = r >= 0 && tree && analysis_stacks_count(tree) > 0;
  if (*ret_is_found) {
    printing.tree = tree;
    r = links_make(&printing);
    for (uint32_t i = printing.first; r >= 0 && i != NONE; i = printing.links[i].next)
      printing.total += entry_weight(&printing, i);
    if (r >= 0)
      r = print_tree(&printing);
  }
  free(printing.links);
  text_done(&printing.name);
  analysis_stacks_free(tree);
  return r;
}
