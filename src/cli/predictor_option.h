/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of branch predictors, for `lbr report --predictor`.
 */
#ifndef CLI_PREDICTOR_OPTION_H
#define CLI_PREDICTOR_OPTION_H

#include <argp.h>

#include "analysis/analysis.h"

/* The model with this name. "help" lists the models and ends the program; an unknown name is a usage error. */
const struct analysis_predictor *predictor_option(const char *name, struct argp_state *state);

#endif
