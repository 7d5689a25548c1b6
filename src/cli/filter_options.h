/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that go through the branches of a trace and let the user choose among them: --kind, --module,
 * --function, --from and --to.
 */
#ifndef CLI_FILTER_OPTIONS_H
#define CLI_FILTER_OPTIONS_H

#include <argp.h>

#include "analysis/analysis.h"

struct filter_options {
  struct analysis_filter_options filter;
  /* What the filter points to. */
  const char **modules, **functions;
  struct analysis_target *from, *to;
  size_t module_capacity, function_capacity, from_capacity, to_capacity;
};

/* For the `children` of a command's argp, as the first of them. The command's parser gives the options as its input: at
 * ARGP_KEY_INIT, state->child_inputs[0] = &options. Errors are argp's. FILTER_EXPORT has --into for --to, which lbr
 * export has for its format. */
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

/* Kinds of branches, as a list of words, which is cut apart; bits 1 << enum lb_branch_kind. */
uint32_t filter_option_kinds(char *list, struct argp_state *state);

/* A number up to `max`; anything else is an error of argp's. */
uint64_t filter_option_number(const char *name, const char *argument, uint64_t max, struct argp_state *state);

/* A place as analysis_target_parse reads it, for option `name`. The strings are cut out of `argument`. */
struct analysis_target filter_option_target(const char *name, char *argument, struct argp_state *state);

/* The same for a place that can be entered: of a symbol alone its start. */
struct analysis_target filter_option_entry(const char *name, char *argument, struct argp_state *state);

/* A position in a thread: "end", "crash", the number of a branch, or PLACE[:NTH] that is entered. */
struct analysis_position filter_option_position(const char *name, char *argument, struct argp_state *state);

#endif
