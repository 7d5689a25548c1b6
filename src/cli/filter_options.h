/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that let the user choose branches of a trace: --kind, --module, --function, --from and --to.
 */
#ifndef CLI_FILTER_OPTIONS_H
#define CLI_FILTER_OPTIONS_H

#include <argp.h>

#include "analysis/analysis.h"

struct filter_options {
  struct analysis_filter_options filter;
  /* Memory that the filter refers to. */
  const char **modules, **functions;
  struct analysis_target *from, *to;
  size_t module_capacity, function_capacity, from_capacity, to_capacity;
};

/* For the `children` of a command's argp, as the first of them. The command's parser passes the options as input: at
 * ARGP_KEY_INIT, state->child_inputs[0] = &options. Errors are reported by argp. FILTER_EXPORT has --into instead of
 * --to, which lbr export uses for its format. */
#define FILTER_BRANCHES                                                                                                \
  {                                                                                                                    \
    &filter_branches, 0, "Which branches:", 1                                                                          \
  }
#define FILTER_EXPORT                                                                                                  \
  {                                                                                                                    \
    &filter_export, 0, "Which branches:", 1                                                                            \
  }
extern const struct argp filter_branches, filter_export;

void filter_options_init(struct filter_options *options);
void filter_options_done(struct filter_options *options);

/* Kinds of branches from a list of words, which is modified; bits 1 << enum lb_branch_kind. */
uint32_t filter_option_kinds(char *list, struct argp_state *state);

/* A number up to `max`; anything else is reported by argp. */
uint64_t filter_option_number(const char *name, const char *argument, uint64_t max, struct argp_state *state);

/* A place as analysis_target_parse reads it, for option `name`. The strings point into `argument`. */
struct analysis_target filter_option_target(const char *name, char *argument, struct argp_state *state);

/* The same for a place that can be entered: a symbol alone means its start. */
struct analysis_target filter_option_entry(const char *name, char *argument, struct argp_state *state);

/* A position in a thread: "end", "crash", the number of a branch, or PLACE[:NTH], the nth entry of a place. */
struct analysis_position filter_option_position(const char *name, char *argument, struct argp_state *state);

#endif
