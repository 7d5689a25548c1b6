/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr run`.
 */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "session/session.h"

/* Reads the command line; a mistake in it ends the program. */
void run_arguments_read(struct run_arguments *ret_arguments, int argc, char **argv);

#endif
