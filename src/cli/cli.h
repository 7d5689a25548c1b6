/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the commands share. Every cmd_NAME.c includes this header, which declares cmd_NAME too. Commands write
 * results to stdout and errors to stderr with cli_error; main checks that stdout was really written. argp parses the
 * options; a usage error ends the program with CLI_USAGE. Options that several commands have are in options.h.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "lastbranch/cpudb.h"

/* The exit status of a command. */
enum cli_exit {
  CLI_OK = 0,
  CLI_FAILURE = 1, /* the command was valid but did not succeed */
  CLI_USAGE = 2,   /* the command line is invalid */
};

/* --color: auto if it was not given. */
enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };
void cli_set_color(enum cli_color color);

/* Whether --color asks for colours. For auto: true if stdout is a terminal that shows colours and the user does not
 * object: NO_COLOR is unset or empty, TERM is set and not "dumb". */
bool cli_wants_color(void);

/* The same for a descriptor. */
bool cli_wants_color_on(int fd);

/* --quiet: no progress, no notes. */
void cli_set_quiet(void);
bool cli_is_quiet(void);

/* --long-names: names are not shortened. */
void cli_set_long_names(void);

/* The width of the terminal if stdout is one. 0 if not: lines are then neither broken nor shortened. */
int cli_columns(void);

/* The width to which names are shortened; 0 if they are not. */
int cli_name_columns(void);

/* Each row of a table stays one line, whatever its length. For tables whose rows contain names, which are shortened on
 * a terminal (fit_stdout.h) and whole elsewhere. */
void cli_set_whole_rows(void);

/* Standard output, for reports. */
struct report_output;
struct report_output cli_output(void);

/* A page on standard output. `wants_color` is cli_wants_color(), or false. */
struct page;
void cli_page_open(struct page *page, bool is_json, bool wants_color);

/* Prints "lbr: ...\n" to stderr; the format ends without full stop and newline. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on, messages of the other folders (base.h) are printed by cli_error. */
void cli_hear_messages(void);

/* Calls lb_cpu_find. If there is no such CPU, prints an error with the nearest names and where to find the list.
 * Returns 0, or LB_E_NO_CPU. */
int cli_find_cpu(const char *name, const struct lb_cpu **ret_cpu);

/* The CPU of --cpu. An unknown one ends the program like argp's usage errors. */
const struct lb_cpu *cli_option_cpu(const char *name);

#endif
