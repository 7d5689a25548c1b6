/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of verbs and the search in them: the statements themselves, and the words that may follow `expect`.
 */
#include "sim/statement.h"

#include <string.h>

#include "sim/parser.h"
#include "sim/run.h"

#define WORDS SIM_WORDS_MAX
#define run_nothing NULL

static const struct verb statements[] = {
#define SIM_STATEMENT(word, least, most, parse, run, choices, limit, usage)                                            \
  {word, least, most, parse_##parse, run_##run, choices, limit, usage},
#include "sim/statement.def"
#undef SIM_STATEMENT
};

static const struct verb expects[] = {
#define SIM_EXPECT(word, least, most, parse, run, choices, limit, usage)                                               \
  {word, least, most, parse_##parse, expect_##run, choices, limit, usage},
#include "sim/expect.def"
#undef SIM_EXPECT
};

#define STATEMENTS (sizeof(statements) / sizeof(*statements))
#define EXPECTS (sizeof(expects) / sizeof(*expects))

/* The statement `expect REG VALUE`. Its first word is not in the table, and parse_register counts its words itself. */
const struct verb verb_expect_register = {
  .word = "REG", .parse = parse_register, .run = expect_register, .usage = "VALUE [mask M]"};

static const struct verb *table_find(const struct verb *table, size_t count, const char *word)
{
  for (size_t i = 0; i < count; i++)
    if (!strcmp(table[i].word, word))
      return &table[i];
  return NULL;
}

static const struct verb *table_guess(const struct verb *table, size_t count, const char *word)
{
  const struct verb *nearest = NULL;
  size_t distance = strlen(word) < 5 ? 2 : 3; /* a match must be nearer */

  for (size_t i = 0; i < count; i++) {
    size_t d = word_distance(word, table[i].word);

    if (d < distance) {
      distance = d;
      nearest = &table[i];
    }
  }
  return nearest;
}

const struct verb *verb_find(const char *word)
{
  return table_find(statements, STATEMENTS, word);
}

const struct verb *verb_find_expect(const char *word)
{
  return table_find(expects, EXPECTS, word);
}

const struct verb *verb_guess(const char *word)
{
  return table_guess(statements, STATEMENTS, word);
}

const struct verb *verb_guess_expect(const char *word)
{
  return table_guess(expects, EXPECTS, word);
}

bool verb_is_expect(const struct verb *verb)
{
  return verb == &verb_expect_register || (verb >= expects && verb < expects + EXPECTS);
}

bool verb_is_text(const struct verb *verb)
{
  return verb->parse == parse_title || verb->parse == parse_text;
}

bool statement_is_for(const struct statement *statement, size_t cpu)
{
  return statement->is_for_all || cpu_set_has(&statement->cpus, cpu);
}
