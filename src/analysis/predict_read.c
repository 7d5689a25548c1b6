/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace in its order and computes how well its branches can be predicted.
 */
#include "analysis/analysis.h"
#include "base/base.h"
#include "trace/trace.h"

static int trace_read(struct lb_trace_reader *reader, uint32_t stream, struct analysis_predict *predict)
{
  struct lb_trace_record record;
  struct trace_progress progress;
  uint64_t branches = 0;
  int r = 0;

  trace_progress_begin(&progress, reader);
  while (r >= 0 && lb_trace_reader_next(reader, &record) > 0) {
    if (record.type == LB_TRACE_BRANCHES) {
      branches += record.branches.count;
      trace_progress_show(&progress, branches);
      if (stream != LB_TRACE_ALL && record.branches.stream != stream)
        continue;
    }
    r = analysis_predict_record(predict, &record);
  }
  trace_progress_end(&progress);
  return r;
}

int analysis_predict_read(const struct analysis_reading *reading, uint32_t stream,
                          const struct analysis_predictor *predictor, struct analysis_predict **ret_predict)
{
  struct analysis_predict *predict = NULL;
  struct lb_trace_reader *reader = NULL;
  int r = lb_trace_reader_open(reading->input.name, &reader);

  if (r >= 0) {
    trace_reader_want_names(reader);
    r = analysis_predict_new(reading->names, reading->code, predictor, &predict);
  }
  if (r >= 0)
    r = trace_read(reader, stream, predict);
  if (r >= 0) {
    *ret_predict = predict;
  } else {
    message("%s: %s", reading->input.name, lb_strerror(r));
    analysis_predict_free(predict);
  }
  if (reader)
    lb_trace_reader_close(reader);
  return r < 0 ? r : 0;
}
