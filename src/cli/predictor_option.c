/* SPDX-License-Identifier: Apache-2.0
 *
 * The branch predictor models of `lbr report`. 2bit and gshare are those of the machine (cpu/predictor.h).
 */
#include "cli/predictor_option.h"

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

static const struct analysis_predictor predictors[] = {
  {"bimodal", "4096 two-bit counters, by address", sizeof(struct predictor), bimodal_init, table_conditional},
  {"gshare", "4096 two-bit counters, by address xor the last 12 outcomes of the thread", sizeof(struct predictor),
   gshare_init, table_conditional},
};

#define PREDICTORS (sizeof(predictors) / sizeof(*predictors))

const struct analysis_predictor *predictor_option(const char *name, struct argp_state *state)
{
  const char *word = strcmp(name, "2bit") ? name : "bimodal"; /* the name in lbr machine */

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
