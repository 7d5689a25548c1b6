/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr view` while it is made: a timeline (analysis/timeline.c), and the metadata of the trace.
 */
#include "report/view.h"

#include <errno.h>
#include <stdlib.h>

#include "report/view_page.h"

#define BLOCK_BYTES 9u /* usual size of a block in the page; if the blocks are larger, the timeline is shrunk later */
#define BLOCKS_MAX (9u << 18)         /* limit for any page size, because of memory */
#define EVENT_BYTES 1024u             /* a page has at most one event of each kind for so many of its bytes */
#define META_MAX 65536u               /* bytes of the trace's metadata */
#define PAGE_REST (UINT64_C(3) << 18) /* approximate size of a page without the timeline */

/* Metadata of the trace become members of the page's data. */
static int meta_put(struct text *text, const struct lb_trace_meta *meta)
{
  static const char *const keys[] = {"producer", "source", "recorder", "sampling", "cpu",
                                     "command",  "host",   "time",     "remark",   "trigger"};
  int r = 0;

  for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && r >= 0; i++)
    if (!strcmp(meta->key, keys[i]) && text->length < META_MAX) {
      r = text_addf(text, "%s\"%s\":", text->length ? "," : "", keys[i]);
      if (r >= 0)
        r = view_quote(text, meta->value);
    }
  return r;
}

int report_view_record(struct report_view *view, const struct lb_trace_record *record)
{
  int r = record->type == LB_TRACE_META ? meta_put(&view->meta, &record->meta) : 0;

  return r < 0 ? r : timeline_record(&view->timeline, record);
}

int report_view_end(struct report_view *view)
{
  return timeline_end(&view->timeline);
}

/* ---- the whole page ---- */

int report_view_new(const struct report_view_options *options, struct report_view **ret_view)
{
  struct report_view *view = calloc(1, sizeof(*view));
  uint64_t room = (options->size > 2 * PAGE_REST ? options->size - PAGE_REST : PAGE_REST) / BLOCK_BYTES;
  const struct timeline_options timeline = {.names = options->names,
                                            .code = options->code,
                                            .reader = options->reader,
                                            .module = options->module,
                                            .stream = options->stream,
                                            .from = options->from,
                                            .to = options->to,
                                            .time_from = options->time_from,
                                            .time_to = options->time_to,
                                            .merge = options->merge,
                                            .events = (size_t)(options->size / EVENT_BYTES),
                                            .blocks = room < BLOCKS_MAX ? room : BLOCKS_MAX};
  int r;

  if (!view)
    return -ENOMEM;
  view->options = *options;
  view->file = strdup(options->file);
  r = timeline_init(&view->timeline, &timeline);
  if (r < 0 || !view->file) {
    report_view_free(view);
    return -ENOMEM;
  }
  *ret_view = view;
  return 0;
}

void report_view_free(struct report_view *view)
{
  if (!view)
    return;
  timeline_done(&view->timeline);
  text_done(&view->meta);
  text_done(&view->edges);
  text_done(&view->code);
  text_done(&view->totals);
  free(view->file);
  free(view);
}

void report_view_limits(const struct report_view *view, struct report_view_limits *ret_limits)
{
  const struct timeline_store *store = &view->timeline.store;

  *ret_limits = (struct report_view_limits){
    .blocks = store->count,
    .merge = store->merged ? store->merge : 0,
    .merged = store->merged,
    .calls = view->timeline.all_calls,
  };
}

size_t report_view_ran(const struct report_view *view)
{
  return view->ran;
}
