/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share. Every cmd_NAME.c includes this header, which declares cmd_NAME too. Commands write results
 * to stdout and complaints to stderr with cli_error; main checks that stdout was really written. Options are argp's; a
 * usage error leaves argp with CLI_USAGE.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>

#include "cli/command.h"
#include "lastbranch/cpudb.h"

/* What a command returns. */
enum cli_exit {
  CLI_OK = 0,
  CLI_FAILURE = 1, /* it was understood and did not succeed */
  CLI_USAGE = 2,   /* the command line makes no sense */
};

/* True when stdout is a terminal that shows colours and the user does not object: NO_COLOR is unset or empty, TERM is
 * set and not "dumb". */
bool cli_wants_color(void);

/* The same for a descriptor. */
bool cli_wants_color_on(int fd);

/* Prints "lbr: ...\n" to stderr; the format ends without full stop and newline. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says why lb_trace_writer_open could not make the trace. */
void cli_error_trace(const char *name, int error);

/* lb_cpu_find, and when there is no such CPU: an error with the nearest names and where to find the list.
 * Returns 0, or LB_E_NO_CPU. */
int cli_find_cpu(const char *name, const struct lb_cpu **ret_cpu);

/* The CPU of --cpu; one that there is not ends the program as argp's usage errors do. */
const struct lb_cpu *cli_option_cpu(const char *name);

/* Of a clock that only goes forward, in seconds. */
double cli_seconds(void);

/* For the `children` of every command's argp: -h is --help, as it is without a command. */
extern const struct argp_child cli_help[];

#endif
