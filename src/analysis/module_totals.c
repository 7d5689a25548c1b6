/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions of one module, and its conditional branches that were not taken: exact counts, equal to the sums of
 * `lbr report --module`.
 */
#include "analysis/module_totals.h"

#include "analysis/trace_progress.h"
#include "base/base.h"

static int counts_read(struct trace_input *input, struct analysis_counts *counts)
{
  struct lb_trace_reader *reader = input->reader;
  struct lb_trace_record record;
  struct trace_progress progress;
  uint64_t branches = 0;
  int r = 0;

  trace_progress_begin(&progress, reader);
  lb_trace_reader_count(reader, LB_TRACE_ALL);
  while (r >= 0 && lb_trace_reader_next(reader, &record) > 0) {
    r = analysis_counts_record(counts, reader, &record);
    branches += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    branches += record.type == LB_TRACE_COUNTED ? record.counted.count : 0;
    trace_progress_show(&progress, branches);
  }
  if (r >= 0)
    r = analysis_counts_end(counts, reader);
  trace_progress_end(&progress);
  lb_trace_reader_rewind(reader);
  return r;
}

static void functions_add(const struct analysis_hot *hot, struct analysis_module_totals *module)
{
  size_t count;
  const struct analysis_hot_function *functions = analysis_hot_functions(hot, &count);

  module->has_run = count > 0;
  module->is_known = true;
  for (size_t i = 0; i < count; i++) {
    module->instructions += functions[i].instructions;
    module->not_taken += functions[i].passed;
    module->is_known &= !functions[i].has_unknown;
  }
}

int analysis_module_read(struct trace_input *input, bool has_symbols, struct analysis_module_totals *module)
{
  struct analysis_names *names = NULL;
  struct analysis_code *code = NULL;
  struct analysis_counts *counts = NULL;
  struct analysis_hot *hot = NULL;
  int r = analysis_names_new(has_symbols ? &input->files : NULL, &names);

  if (r >= 0)
    r = analysis_code_new(names, &code);
  if (r >= 0)
    r = analysis_counts_new(names, code, &counts);
  if (r >= 0)
    r = counts_read(input, counts);
  if (r >= 0)
    r = analysis_hot_new(names, code, counts, &(struct analysis_hot_filter){.module = module->name}, &hot);
  if (r >= 0)
    functions_add(hot, module);
  if (r >= 0 && !module->has_run)
    r = trace_input_tell_module(input, names, module->name);
  else if (r < 0)
    message("%s: %s", input->name, lb_strerror(r));
  trace_input_tell_limit(input, code);
  analysis_hot_free(hot);
  analysis_counts_free(counts);
  analysis_code_free(code);
  analysis_names_free(names);
  return r;
}
