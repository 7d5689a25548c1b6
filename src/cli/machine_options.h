/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr machine`.
 */
#ifndef CLI_MACHINE_OPTIONS_H
#define CLI_MACHINE_OPTIONS_H

#include <argp.h>

#include "report/report.h"
#include "session/session.h"

/* The output about the machine at the end of the run. */
struct machine_show {
  unsigned dumps;            /* enum machine_dump */
  enum report_format format; /* of these */
  bool is_json;              /* one object with everything */
};

/* Reads the command line; an error in it ends the program. */
void machine_arguments_read(struct machine_arguments *ret_arguments, struct machine_show *ret_show, int argc,
                            char **argv);
void machine_arguments_done(struct machine_arguments *arguments);

/* ---- values (machine_values.c): invalid ones are reported by argp ---- */

/* The index of a word in a list that ends with NULL. */
unsigned machine_option_word(const char *name, const char *argument, const char *const *words,
                             struct argp_state *state);
uint64_t machine_option_number(const char *name, const char *argument, uint64_t least, uint64_t most,
                               struct argp_state *state);
void machine_option_until(struct machine_arguments *arguments, const char *argument, struct argp_state *state);
void machine_option_dump(struct machine_show *show, const char *argument, struct argp_state *state);
void machine_option_recorder(struct machine_arguments *arguments, const char *argument, struct argp_state *state);
void machine_option_flat(struct machine_arguments *arguments, const char *argument, struct argp_state *state);
void machine_option_module(struct machine_arguments *arguments, const char *argument, struct argp_state *state);

#endif
