/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr live`.
 */
#ifndef CLI_LIVE_OPTIONS_H
#define CLI_LIVE_OPTIONS_H

#include "session/session.h"

/* Reads the command line; a mistake in it ends the program. */
void live_arguments_read(struct live_arguments *ret_arguments, int argc, char **argv);

#endif
