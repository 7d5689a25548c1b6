/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share. Every cmd_NAME.c includes this header, which declares cmd_NAME too. Commands write results
 * to stdout and complaints to stderr with cli_error; main checks that stdout was really written. Options are argp's; a
 * usage error leaves argp with CLI_USAGE. Options that several commands take are in options.h.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "lastbranch/cpudb.h"

/* What a command returns. */
enum cli_exit {
  CLI_OK = 0,
  CLI_FAILURE = 1, /* it was understood and did not succeed */
  CLI_USAGE = 2,   /* the command line makes no sense */
};

/* --color: auto if it was not given. */
enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };
void cli_set_color(enum cli_color color);

/* As --color says. For auto: true when stdout is a terminal that shows colours and the user does not object: NO_COLOR
 * is unset or empty, TERM is set and not "dumb". */
bool cli_wants_color(void);

/* The same for a descriptor. */
bool cli_wants_color_on(int fd);

/* --quiet: no progress, no notes. */
void cli_set_quiet(void);
bool cli_is_quiet(void);

/* --long-names: names are not shortened. */
void cli_set_long_names(void);

/* Columns of the terminal that stdout is; 0: it is none, and lines are neither broken nor shortened. */
int cli_columns(void);

/* Columns that names are to be shortened to fit in; 0: they are not to be shortened. */
int cli_name_columns(void);

/* A row of a table is a line, whatever its length: so it is where rows hold names, which are shortened on a terminal
 * (fit_stdout.h) and whole elsewhere. */
void cli_set_whole_rows(void);

/* Standard output, for reports. */
struct report_output;
struct report_output cli_output(void);

/* A page on standard output. `wants_color` is cli_wants_color(), or false. */
struct page;
void cli_page_open(struct page *page, bool is_json, bool wants_color);

/* Prints "lbr: ...\n" to stderr; the format ends without full stop and newline. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Messages of the folders below (base.h) come out as those of cli_error from now on. */
void cli_hear_messages(void);

/* lb_cpu_find, and when there is no such CPU: an error with the nearest names and where to find the list.
 * Returns 0, or LB_E_NO_CPU. */
int cli_find_cpu(const char *name, const struct lb_cpu **ret_cpu);

/* The CPU of --cpu; one that there is not ends the program as argp's usage errors do. */
const struct lb_cpu *cli_option_cpu(const char *name);

#endif
