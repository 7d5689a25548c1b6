/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictability of branches, for `lbr report --sort flips` and `--predictor`: the models, and the reading of the
 * trace.
 */
#ifndef CLI_REPORT_PREDICT_H
#define CLI_REPORT_PREDICT_H

#include <argp.h>

#include "cli/report_read.h"
#include "report/report.h"

/* The model with this name. "help" lists the models and ends the program; a name that there is not is a usage error. */
const struct report_predictor *predictor_option(const char *name, struct argp_state *state);

/* Reads the trace once more, in its order; one stream, or LB_TRACE_ALL. Returns 0, or negative after a complaint. */
int report_predict_read(const struct report_reading *reading, uint32_t stream, const struct report_predictor *predictor,
                        struct report_predict **ret_predict);

#endif
