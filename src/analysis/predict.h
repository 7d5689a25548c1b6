/* SPDX-License-Identifier: Apache-2.0
 *
 * How predictable conditional branches are. The outcomes of each thread are processed in their order. Branches that
 * were not taken are included: they are found in the code between two taken branches. A flip is an outcome that differs
 * from the previous outcome of the same branch in the same thread. Optionally, each outcome is also given to a model of
 * a predictor.
 */
#ifndef ANALYSIS_PREDICT_H
#define ANALYSIS_PREDICT_H

#include "analysis/code.h"
#include "lastbranch/trace.h"

struct analysis_predict;

/* A model of a branch predictor. Each thread has one of its own. */
struct analysis_predictor {
  const char *name, *what;
  size_t size; /* bytes of its state */
  void (*init)(void *state);
  /* Tells the model which way the conditional branch at this address of its file went. Returns true if that was
   * mispredicted. */
  bool (*conditional)(void *state, uint64_t address, bool is_taken);
};

struct analysis_prediction {
  struct analysis_location from;
  uint64_t taken, passed, flips, mispredicted; /* the last one according to the predictor model, */
  uint64_t flagged;                            /* mispredictions according to the trace, of taken branches only */
};

/* `predictor` may be NULL. The modules of the trace are passed to `names`. Returns 0, or -ENOMEM. */
int analysis_predict_new(struct analysis_names *names, struct analysis_code *code,
                         const struct analysis_predictor *predictor, struct analysis_predict **ret_predict);
void analysis_predict_free(struct analysis_predict *predict); /* takes NULL */

/* Takes every record of the trace, from a reader that does not count. Memory stays below about 400 MiB. Returns 0, or
 * -ENOMEM. */
int analysis_predict_record(struct analysis_predict *predict, const struct lb_trace_record *record);

/* Gets the numbers of the conditional branch at a location; NULL if there are none. */
const struct analysis_prediction *analysis_predict_find(const struct analysis_predict *predict,
                                                        const struct analysis_location *from);

/* Were there more branches, or more threads, than can be kept? Their numbers are then too low. */
bool analysis_predict_has_forgotten(const struct analysis_predict *predict);

#endif
