/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr machine`.
 */
#ifndef CLI_MACHINE_OPTIONS_H
#define CLI_MACHINE_OPTIONS_H

#include "session/session.h"

/* Reads the command line; a mistake in it ends the program. */
void machine_arguments_read(struct machine_arguments *ret_arguments, int argc, char **argv);
void machine_arguments_done(struct machine_arguments *arguments);

#endif
