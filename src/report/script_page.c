/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr script`: reads a trace, or the end of each of its streams, into lines.
 */
#include "report/script_page.h"

#include <errno.h>

#include "base/base.h"

#define TAIL_FIRST 65536u /* branches that are searched for the last ones that pass a filter */
#define TAIL_GROWTH 16u   /* factor by which the search is extended */

/* The state of printing a trace. */
struct printing {
  const struct report_script_page *page;
  struct report_script *script;
  struct text text;
  struct trace_progress progress;
};

/* ---- lines ---- */

/* Prints the lines so far. Returns false if they cannot be written: the owner of the file reports that. */
static bool lines_write(struct printing *printing)
{
  if (printing->page->output.columns)
    trace_progress_end(&printing->progress);
  fwrite(printing->text.data, 1, printing->text.length, printing->page->output.file);
  printing->text.length = 0;
  return !ferror(printing->page->output.file);
}

/* Reports an error. */
static int printing_complain(const struct printing *printing, int error)
{
  if (error == LB_E_TOO_BIG)
    message("%s: too many threads for this much context; choose one with --thread, or less with --context",
            printing->page->input->name);
  else
    message("%s: %s", printing->page->input->name, lb_strerror(error));
  return error;
}

/* Returns 1 to continue, 0 if it is enough, or negative after a message. */
static int printing_record(struct printing *printing, const struct lb_trace_record *record)
{
  int r = report_script_record(printing->script, record, &printing->text);

  if (printing->text.length && !lines_write(printing))
    return -1;
  return r < 0 ? printing_complain(printing, r) : r;
}

static int printing_all(struct printing *printing)
{
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r;

  if (printing->page->has_progress)
    trace_progress_begin(&printing->progress, printing->page->input->reader);
  while ((r = trace_input_next(printing->page->input, &record)) > 0) {
    r = printing_record(printing, &record);
    if (r <= 0)
      break;
    branches += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    trace_progress_show(&printing->progress, branches);
  }
  trace_progress_end(&printing->progress);
  return r;
}

/* Prints the end of one stream. The reader gives the description of the trace before it, which is wanted only once.
 * Unmapped modules are kept, since some of these branches are older. */
static int printing_stream(struct printing *printing, uint32_t stream, uint64_t count, bool is_first)
{
  struct lb_trace_record record;
  int r = trace_input_tail(printing->page->input, stream, count);

  if (r < 0)
    return r;
  if (!is_first)
    lb_trace_reader_skip(printing->page->input->reader);
  while ((r = trace_input_next(printing->page->input, &record)) > 0) {
    if (record.type == LB_TRACE_MODULE && record.module.is_gone)
      continue;
    r = printing_record(printing, &record);
    if (r <= 0)
      return r;
  }
  return r < 0 ? r : 1;
}

/* ---- the last branches that pass a filter ---- */

/* Counts the matches among the last `count` branches of a stream. Returns 1 if there are more branches before them, 0
 * if not, or negative. */
static int matches_count(struct printing *printing, uint32_t stream, uint64_t count, bool is_first,
                         uint64_t *ret_matches)
{
  uint16_t places[LB_TRACE_BATCH_MAX];
  struct lb_trace_record record;
  uint64_t seen = 0, matches = 0;
  int r = trace_input_tail(printing->page->input, stream, count);

  if (r < 0)
    return r;
  if (!is_first)
    lb_trace_reader_skip(printing->page->input->reader);
  while ((r = trace_input_next(printing->page->input, &record)) > 0) {
    if (record.type == LB_TRACE_BRANCHES) {
      seen += record.branches.count;
      matches += analysis_filter_branches(printing->page->options->filter, &record.branches, places);
    } else if (record.type != LB_TRACE_GAP && !(record.type == LB_TRACE_MODULE && record.module.is_gone)) {
      r = printing_record(printing, &record);
      if (r < 0)
        return r;
    }
  }
  *ret_matches = matches;
  return r < 0 ? r : seen >= count;
}

/* Searches further back each time, as far as necessary. The branches are then read again to be printed. */
static int printing_stream_matches(struct printing *printing, uint32_t stream, uint64_t wanted, bool is_first)
{
  uint64_t count = wanted > TAIL_FIRST ? wanted : TAIL_FIRST, matches = 0;
  int r;

  for (;;) {
    r = matches_count(printing, stream, count, is_first, &matches);
    is_first = false;
    if (r <= 0 || matches >= wanted || count == UINT64_MAX)
      break;
    count = count > UINT64_MAX / TAIL_GROWTH ? UINT64_MAX : count * TAIL_GROWTH;
  }
  if (r < 0)
    return r;
  report_script_skip(printing->script, matches > wanted ? matches - wanted : 0);
  return printing_stream(printing, stream, count, false);
}

/* ---- which streams ---- */

/* A trace without streams has nothing to print. Errors in it show when it is read. */
static int printing_empty(struct printing *printing)
{
  lb_trace_reader_rewind(printing->page->input->reader);
  return printing_all(printing);
}

static int printing_tail(struct printing *printing)
{
  int (*print)(struct printing *, uint32_t, uint64_t, bool) =
    printing->page->options->filter ? printing_stream_matches : printing_stream;
  int r = 1;

  if (printing->page->options->stream != LB_TRACE_ALL)
    return print(printing, printing->page->options->stream, printing->page->tail, true);
  for (uint32_t stream = 0; r > 0; stream++) {
    r = print(printing, stream, printing->page->tail, stream == 0);
    if (r == LB_E_NO_ENTRY)
      return stream ? 0 : printing_empty(printing);
  }
  return r;
}

/* Whether a search found nothing. Reports that to the user. */
static bool is_in_vain(const struct printing *printing)
{
  const struct report_script_options *options = printing->page->options;

  if (!(options->filter || options->around) || !options->limit || !printing->page->tail ||
      report_script_count(printing->script))
    return false;
  message("%s: no branch matches", printing->page->input->name);
  return true;
}

/* Prints the events that have not ended, or says that there are none. */
static int printing_finish(struct printing *printing)
{
  const struct report_script_options *options = printing->page->options;
  bool needs_times = options->events || options->from || options->to;

  if (report_script_end(printing->script, &printing->text) < 0)
    return printing_complain(printing, -ENOMEM);
  if (printing->text.length && !lines_write(printing))
    return -1;
  if (!needs_times || !report_script_lacks_times(printing->script))
    return 0;
  message("%s: the trace has no times and no system calls; record it again with this version of lbr",
          printing->page->input->name);
  return LB_E_NO_ENTRY;
}

int report_script_page_print(const struct report_script_page *page)
{
  struct printing printing = {.page = page};
  int r = report_script_new(page->options, &printing.script);

  if (r < 0)
    return printing_complain(&printing, r);
  r = page->tail == UINT64_MAX ? printing_all(&printing) : printing_tail(&printing);
  if (r >= 0)
    r = printing_finish(&printing);
  if (r >= 0 && is_in_vain(&printing))
    r = LB_E_NO_ENTRY;
  report_script_free(printing.script);
  text_done(&printing.text);
  return r < 0 ? r : 0;
}
