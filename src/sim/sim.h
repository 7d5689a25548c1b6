/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule files: a stimulus for the recording unit and its expected contents afterwards, as text. doc/rec.md describes the
 * language. A file is parsed once and then run on one CPU at a time. Files are untrusted input: whatever they contain,
 * the result is an error with its line, or a list of failures.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stddef.h>

#include "lastbranch/recorder.h"
#include "report/report.h"
#include "sim/show.h" /* IWYU pragma: export */

#define SIM_BYTES_MAX (1u << 20)   /* of a file */
#define SIM_STATEMENTS_MAX 10000   /* in a file */
#define SIM_WORDS_MAX 64           /* in a line */
#define SIM_WORD_MAX 255           /* bytes of a word */
#define SIM_TEXT_MAX 1000          /* bytes of a title, banner or version */
#define SIM_VALUES_MAX 32          /* that one poke or expect memory takes */
#define SIM_PIECES_MAX 16          /* of guest memory */
#define SIM_MEMORY_MAX (16u << 20) /* bytes of guest memory in all */
#define SIM_PAGES_MAX 64           /* that `page` describes */
#define SIM_SYMBOLS_MAX 1024
#define SIM_FAILURES_MAX 100 /* that are kept for one CPU */

struct sim;

struct sim_error {
  unsigned line; /* 0: the file as a whole */
  char text[320];
};

/* Parses a rule file of `size` bytes; the text is copied. Returns 0 and *ret_sim, which sim_free frees; LB_E_BAD_SYNTAX
 * with *ret_error set (the one out-parameter that is set on failure); LB_E_TOO_BIG with *ret_error set; -ENOMEM.
 */
int sim_parse(const char *text, size_t size, struct sim_error *ret_error, struct sim **ret_sim);

/* `sim` may be NULL. */
void sim_free(struct sim *sim);

/* The text of `title`, "" without one. */
const char *sim_title(const struct sim *sim);

/* The text after "# source:" in the first line, "" if there is none. */
const char *sim_source(const struct sim *sim);

/* CPUs 0, 1, ... of the file, in the order of the catalogue; NULL past the end. */
const struct lb_cpu *sim_cpu_at(const struct sim *sim, size_t index);

/* The number of expectations that the file has for this CPU. */
size_t sim_expectations(const struct sim *sim, const struct lb_cpu *cpu);

/* Callbacks of a watcher while a rule runs. Each may be NULL. */
struct sim_watch {
  void *data; /* handed to each */
  /* A statement was run. `effect` says what the unit did, "" if there is no visible effect. */
  void (*step)(void *data, unsigned line, const char *statement, const char *effect);
  /* The statement `print`: its output. */
  void (*print)(void *data, unsigned line, const char *output);
  /* The run is over. Called once for each thread, with its unit. `options` has the file's symbols and heads. */
  void (*end)(void *data, unsigned thread, const struct lb_recorder *recorder, const struct report_options *options);
};

struct sim_failure {
  unsigned line; /* 0: the run as a whole */
  char *expected;
  char *got;
};

struct sim_result {
  struct sim_failure *failures;
  size_t count;
  bool is_cut; /* there were more than SIM_FAILURES_MAX */
};

/* Runs the file on a CPU of the catalogue, which need not be one of the file's: once with host.map and once without,
 * and compares the two. `watch` may be NULL. Returns 0 and the failures, which sim_result_done frees; LB_E_NO_UNIT when
 * the CPU has no unit; -ENOMEM.
 */
int sim_run(const struct sim *sim, const struct lb_cpu *cpu, const struct sim_watch *watch,
            struct sim_result *ret_result);

void sim_result_done(struct sim_result *result);

#endif
