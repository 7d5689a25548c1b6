/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of branch predictors that `lbr report` has. 2bit and gshare are those of the machine (cpu/predictor.h).
 */
#include "cli/report_predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "cli/cli.h"
#include "cpu/cpu.h"

/* ---- the models ---- */

static void bimodal_init(void *state)
{
  predictor_init(state, PREDICTOR_2BIT);
}

static void gshare_init(void *state)
{
  predictor_init(state, PREDICTOR_GSHARE);
}

static bool table_conditional(void *state, uint64_t address, bool is_taken)
{
  return predictor_conditional(state, address, is_taken);
}

static const struct report_predictor predictors[] = {
  {"bimodal", "4096 two-bit counters, by address", sizeof(struct predictor), bimodal_init, table_conditional},
  {"gshare", "4096 two-bit counters, by address xor the last 12 outcomes of the thread", sizeof(struct predictor),
   gshare_init, table_conditional},
};

#define PREDICTORS (sizeof(predictors) / sizeof(*predictors))

const struct report_predictor *predictor_option(const char *name, struct argp_state *state)
{
  const char *word = strcmp(name, "2bit") ? name : "bimodal"; /* as lbr machine calls it */

  for (size_t i = 0; i < PREDICTORS; i++)
    if (!strcmp(predictors[i].name, word))
      return &predictors[i];
  if (!strcmp(name, "help")) {
    for (size_t i = 0; i < PREDICTORS; i++)
      printf("%-12s %s\n", predictors[i].name, predictors[i].what);
    exit(CLI_OK);
  }
  argp_error(state, "no predictor '%s'; '--predictor help' lists the models", name);
  return NULL;
}

/* ---- reading ---- */

static int trace_read(struct lb_trace_reader *reader, uint32_t stream, struct report_predict *predict)
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
    r = report_predict_record(predict, &record);
  }
  trace_progress_end(&progress);
  return r;
}

int report_predict_read(const struct report_reading *reading, uint32_t stream, const struct report_predictor *predictor,
                        struct report_predict **ret_predict)
{
  struct report_predict *predict = NULL;
  struct lb_trace_reader *reader = NULL;
  int r = lb_trace_reader_open(reading->input.name, &reader);

  if (r >= 0)
    r = report_predict_new(reading->names, reading->code, predictor, &predict);
  if (r >= 0)
    r = trace_read(reader, stream, predict);
  if (r >= 0) {
    *ret_predict = predict;
  } else {
    cli_error("%s: %s", reading->input.name, lb_strerror(r));
    report_predict_free(predict);
  }
  if (reader)
    lb_trace_reader_close(reader);
  return r < 0 ? r : 0;
}
