/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches before and after each entry of a place. Branches before are kept in a ring for each stream until it is
 * known whether they are wanted.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/script_lines.h"

int script_around_begin(struct report_script *script)
{
  const struct analysis_filter_options options = {.to = script->options.around, .to_count = 1};

  return analysis_filter_new(&options, script->options.names, &script->entries);
}

void script_around_done(struct report_script *script)
{
  for (size_t i = 0; i < script->kept_count; i++)
    free(script->kept[i].ring);
  free(script->kept);
  analysis_filter_free(script->entries);
}

/* ---- the rings ---- */

static int kept_get(struct report_script *script, uint32_t stream, struct kept_branches **ret_kept)
{
  struct kept_branches *kept = array_at(&script->kept, stream, &script->kept_count, &script->kept_capacity);

  if (!kept)
    return -ENOMEM;
  *ret_kept = kept;
  return 0;
}

static int ring_make(struct report_script *script, struct kept_branches *kept)
{
  uint64_t size = script->options.context * sizeof(*kept->ring), rings = 1;

  if (kept->ring || !size)
    return 0;
  for (size_t i = 0; i < script->kept_count; i++)
    rings += script->kept[i].ring != NULL;
  if (rings * size > REPORT_CONTEXT_BYTES)
    return LB_E_TOO_BIG;
  kept->ring = calloc(script->options.context, sizeof(*kept->ring));
  return kept->ring ? 0 : -ENOMEM;
}

static void ring_add(struct report_script *script, struct kept_branches *kept, uint64_t number,
                     const struct lb_branch *branch)
{
  if (kept->count == script->options.context)
    kept->is_dropped = true;
  else
    kept->count++;
  if (!script->options.context)
    return;
  kept->ring[kept->next] = (struct kept_branch){number, *branch};
  kept->next = kept->next + 1 == script->options.context ? 0 : kept->next + 1;
}

/* ---- lines ---- */

/* A branch and its stream, to be printed as a line. */
struct line {
  uint32_t number_of_stream;
  const struct analysis_stream *stream;
  struct text *text;
};

static int line_put(struct report_script *script, const struct line *line, uint64_t number,
                    const struct lb_branch *branch)
{
  if (script->printed >= script->options.limit)
    return 0;
  return script_put_branch(script, line->number_of_stream, line->stream, number, branch, line->text);
}

/* Prints the kept branches, oldest first, after a line that says that branches were left out. */
static int ring_put(struct report_script *script, const struct line *line, struct kept_branches *kept)
{
  uint32_t size = script->options.context, at = size ? (kept->next + size - kept->count) % size : 0;
  int r = 0;

  if (kept->is_dropped && script->printed && !script->options.is_json)
    writer_string(&script->writer, "--\n");
  for (; r >= 0 && kept->count; kept->count--) {
    r = line_put(script, line, kept->ring[at].number, &kept->ring[at].branch);
    at = at + 1 == size ? 0 : at + 1;
  }
  kept->is_dropped = false;
  return r;
}

/* Takes one branch of a stream. */
static int branch_take(struct report_script *script, const struct line *line, struct kept_branches *kept,
                       uint64_t number, const struct lb_branch *branch, bool is_wanted, bool is_entry)
{
  int r = 0;

  if (is_entry) {
    r = ring_put(script, line, kept);
    if (r >= 0 && is_wanted)
      r = line_put(script, line, number, branch);
    kept->left = script->options.context;
  } else if (is_wanted && kept->left) {
    kept->left--;
    r = line_put(script, line, number, branch);
  } else if (is_wanted) {
    ring_add(script, kept, number, branch);
  }
  return r;
}

int script_around(struct report_script *script, const struct lb_trace_branches *branches,
                  const struct analysis_stream *stream, const uint16_t *wanted, size_t count, struct text *text)
{
  const struct line line = {branches->stream, stream, text};
  uint16_t entries[LB_TRACE_BATCH_MAX];
  size_t entry_count = analysis_filter_branches(script->entries, branches, entries), entry = 0, next = 0;
  struct kept_branches *kept;
  int r = kept_get(script, branches->stream, &kept);

  if (r >= 0)
    r = ring_make(script, kept);
  for (size_t i = 0; r >= 0 && i < branches->count && script->printed < script->options.limit; i++) {
    const struct lb_branch *branch = &branches->branches[i];
    bool is_wanted = !wanted || (next < count && wanted[next] == i), is_entry = false;

    if (entry < entry_count && entries[entry] == i) {
      is_entry = analysis_target_is_entered(script->options.around, script->options.names, stream->space, branch);
      entry++;
    }
    next += wanted && is_wanted;
    r = branch_take(script, &line, kept, branches->first + i, branch, is_wanted, is_entry);
  }
  return r;
}
