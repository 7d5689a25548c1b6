/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of rule files: a line is split into words, its first word names the verb, and the verb's function reads
 * the rest. Those functions return 0, or LB_E_BAD_SYNTAX after parser_fail has said what is wrong, or -ENOMEM.
 */
#ifndef SIM_PARSER_H
#define SIM_PARSER_H

#include "sim/statement.h"

struct parser {
  struct sim *sim;
  struct sim_error *error;
  unsigned line;
  const struct verb *verb;
  char *words[SIM_WORDS_MAX]; /* those after the verb's own */
  unsigned count;
  char *text;       /* instead of words, for verbs that take any text */
  unsigned on_line; /* line of the `on` that is open, 0 if none is */
  struct cpu_set on;
  bool has_cpus;    /* the file has a `cpu` statement */
  bool has_on;      /* the file has an `on` statement */
  bool is_printing; /* the last statement was `expect print`: lines that begin with "| " belong to it */
};

int parser_fail(struct parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- one word each (word.c) ---- */

int word_number(struct parser *parser, const char *word, uint64_t *ret_value);

/* A number that is at most `limit`. */
int word_number_up_to(struct parser *parser, const char *word, uint64_t limit, uint64_t *ret_value);

/* Finds the word among the blank-separated `choices`. */
int word_choice(struct parser *parser, const char *word, const char *choices, uint64_t *ret_index);

/* The text after "key="; NULL if the word does not begin with it. */
const char *word_after(const char *word, const char *key);

/* A register that at least one CPU of the catalogue has, or an address. */
int word_register(struct parser *parser, const char *word, struct named_register *ret_register);

/* "WORD=N": a row of a table, and where its number is stored in a struct. */
struct word_field {
  const char *word;
  size_t offset; /* of a uint64_t */
  uint64_t limit;
};

/* Reads all words of the line from the `first` on. */
int words_fields(struct parser *parser, unsigned first, const struct word_field *fields, size_t count, void *target);

/* ---- CPU words (select.c) ---- */

/* Adds the CPUs that the words of the line select to the set. `is_first`: these are the first words, and the set must
 * be empty. */
int words_cpus(struct parser *parser, bool is_first, struct cpu_set *set);

/* ---- verbs: parse_guest.c, parse_expect.c, and parse.c for those that concern the file itself ---- */

int parse_nothing(struct parser *parser, struct statement *statement);
int parse_number(struct parser *parser, struct statement *statement);
int parse_choice(struct parser *parser, struct statement *statement);
int parse_numbers(struct parser *parser, struct statement *statement);
int parse_pair(struct parser *parser, struct statement *statement);
int parse_text(struct parser *parser, struct statement *statement);
int parse_title(struct parser *parser, struct statement *statement);
int parse_cpu(struct parser *parser, struct statement *statement);
int parse_option(struct parser *parser, struct statement *statement);
int parse_on(struct parser *parser, struct statement *statement);
int parse_end(struct parser *parser, struct statement *statement);
int parse_expect(struct parser *parser, struct statement *statement);

int parse_wrmsr(struct parser *parser, struct statement *statement);
int parse_rdmsr(struct parser *parser, struct statement *statement);
int parse_branch(struct parser *parser, struct statement *statement);
int parse_event(struct parser *parser, struct statement *statement);
int parse_vmentry(struct parser *parser, struct statement *statement);
int parse_progress(struct parser *parser, struct statement *statement);
int parse_pebs(struct parser *parser, struct statement *statement);
int parse_memory(struct parser *parser, struct statement *statement);
int parse_values(struct parser *parser, struct statement *statement);
int parse_facts(struct parser *parser, struct statement *statement);
int parse_page(struct parser *parser, struct statement *statement);
int parse_symbol(struct parser *parser, struct statement *statement);
int parse_print(struct parser *parser, struct statement *statement);

int parse_register(struct parser *parser, struct statement *statement);
int parse_record(struct parser *parser, struct statement *statement);
int parse_bus(struct parser *parser, struct statement *statement);
int parse_pin(struct parser *parser, struct statement *statement);
int parse_rules(struct parser *parser, struct statement *statement);
int parse_cpuid(struct parser *parser, struct statement *statement);
int parse_expect_print(struct parser *parser, struct statement *statement);

extern const struct verb verb_expect_register;

#endif
