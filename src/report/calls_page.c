/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr calls`: reads the calls of a trace and passes them to one of the views.
 */
#include "report/calls_page.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"

/* The state of showing the calls of a trace. */
struct showing {
  const struct calls_page *page;
  bool has_callers; /* --callers found some */
  union {
    struct calls_list list;
    struct calls_tree tree;
    struct calls_graph graph;
    struct calls_folded folded;
  };
};

/* --folded and --callers use the same stacks. */
static bool has_stacks(const struct calls_page *page)
{
  return page->shape == CALLS_FOLDED || page->shape == CALLS_CALLERS;
}

/* ---- the views ---- */

static bool trace_has_threads(struct showing *showing)
{
  bool has = lb_trace_reader_tail(showing->page->input->reader, 1, 0) >= 0;

  lb_trace_reader_rewind(showing->page->input->reader);
  return has;
}

static void view_begin(struct showing *showing)
{
  const struct calls_page *page = showing->page;

  if (page->shape == CALLS_LIST)
    calls_list_begin(&showing->list, page, page->walk->options->thread == LB_TRACE_ALL && trace_has_threads(showing));
  else if (page->shape == CALLS_SUMMARY)
    calls_graph_begin(&showing->graph, page->walk);
  else if (has_stacks(page))
    calls_folded_begin(&showing->folded, page->walk);
  else
    calls_tree_begin(&showing->tree, page->walk);
}

static int view_end(struct showing *showing)
{
  const struct calls_page *page = showing->page;

  switch (page->shape) {
  case CALLS_LIST:
    return calls_list_end(&showing->list);
  case CALLS_SUMMARY:
    calls_graph_end(&showing->graph);
    return calls_graph_print(page, &showing->graph);
  case CALLS_CALLERS:
    return calls_callers_print(page, &showing->folded, &showing->has_callers);
  case CALLS_FOLDED:
    return calls_folded_print(page, &showing->folded);
  default:
    return calls_tree_end(&showing->tree) < 0 ? -ENOMEM : calls_tree_print(page, &showing->tree);
  }
}

static void view_done(struct showing *showing)
{
  if (showing->page->shape == CALLS_LIST)
    calls_list_done(&showing->list);
  else if (showing->page->shape == CALLS_SUMMARY)
    calls_graph_done(&showing->graph);
  else if (has_stacks(showing->page))
    calls_folded_done(&showing->folded);
  else
    calls_tree_done(&showing->tree);
}

/* ---- the trace ---- */

/* Returns 0, 1 if enough was shown, or negative after a message. */
static int trace_walk(const struct calls_page *page)
{
  struct lb_trace_record record;
  struct trace_progress progress;
  int r;

  trace_progress_begin(&progress, page->input->reader);
  if (page->shape == CALLS_LIST && page->output.columns) /* the printed lines show the progress */
    progress.is_on = false;
  while ((r = trace_input_next(page->input, &record)) > 0) {
    r = record.type == LB_TRACE_STREAM || record.type == LB_TRACE_META ? analysis_summary_record(page->summary, &record)
                                                                       : 0;
    if (!r)
      r = calls_walk_record(page->walk, &record);
    if (r)
      break;
    trace_progress_show(&progress, page->walk->branches);
  }
  trace_progress_end(&progress);
  if (!r)
    r = calls_walk_end(page->walk);
  return r;
}

static void cut_tell(const struct showing *showing)
{
  if (showing->page->shape == CALLS_LIST && showing->list.is_cut)
    message("stopped after %llu lines (--top): there are more calls", (unsigned long long)showing->list.lines);
  if (has_stacks(showing->page) && showing->folded.stacks && analysis_stacks_is_full(showing->folded.stacks))
    message(
      "warning: some stacks are too deep, or too many, to keep: their inner frames are left out, and their costs are added to the outer ones");
}

/* Folded stacks have room only for a number, so this is a message. */
static void unknown_tell(const struct showing *showing)
{
  if (showing->page->shape == CALLS_FOLDED && showing->page->walk->options->by == CALLS_BY_INSTRUCTIONS &&
      analysis_calls_has_unknown(showing->page->walk->calls))
    message(
      "warning: some of the code that ran is not known, or not 64-bit code: only its branches are counted as instructions; --by branches counts branches everywhere");
}

static bool is_anything_found(const struct showing *showing)
{
  if (showing->page->shape == CALLS_LIST)
    return showing->list.lines > 0;
  if (showing->page->shape == CALLS_SUMMARY)
    return showing->graph.edge_count > 0;
  if (showing->page->shape == CALLS_CALLERS)
    return showing->has_callers;
  if (showing->page->shape == CALLS_FOLDED)
    return showing->folded.stacks;
  return showing->tree.lines > 0;
}

/* An option needs times, and the trace has none. --all shows every call, whatever it weighs. */
static bool lacks_times(const struct calls_page *page)
{
  const struct calls_options *options = page->walk->options;
  bool needs_times = page->shape == CALLS_LIST ? options->from || options->to : calls_options_need_times(options);

  if (!needs_times || calls_walk_has_times(page->walk))
    return false;
  message("%s: the trace has no times; record it again with this version of lbr", page->input->name);
  return true;
}

static void nothing_tell(const struct calls_page *page)
{
  const struct calls_options *options = page->walk->options;
  bool has_range = options->first || options->last != UINT64_MAX || options->from || options->to;

  if (options->module &&
      (!(options->function || options->callers) || !analysis_module_is_mapped(page->names, options->module)))
    (void)trace_input_tell_module(page->input, page->names, options->module);
  else if (options->function || options->callers)
    message("%s: '%s' is never called%s; 'lbr calls --summary' lists the functions that are", page->input->name,
            options->function ? options->function : options->callers, has_range ? ", there" : "");
  else if (options->from || options->to)
    message("%s: there are no calls in this span of time; 'lbr script -F time --tail 1' shows when it ends",
            page->input->name);
  else
    message("%s: there are no calls%s", page->input->name,
            has_range ? " of these branches; 'lbr stat' tells how many there are" : " in it");
}

int calls_page_print(const struct calls_page *page)
{
  struct showing showing = {.page = page};
  int r;

  view_begin(&showing);
  r = trace_walk(page);
  if (r >= 0 && lacks_times(page)) {
    view_done(&showing);
    return -ENOENT;
  }
  if (r >= 0)
    r = view_end(&showing) < 0 ? -ENOMEM : r;
  if (r < 0 && !page->input->has_failed && !ferror(page->output.file))
    message("%s: %s", page->input->name, lb_strerror(r));
  if (r >= 0) {
    cut_tell(&showing);
    unknown_tell(&showing);
  }
  if (r >= 0 && !is_anything_found(&showing)) {
    nothing_tell(page);
    r = -ENOENT;
  }
  view_done(&showing);
  return r < 0 ? r : 0;
}
