/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses text into statements: lines, words and comments, the verb of each line, and the verbs that concern the file
 * itself (title, cpu, option, on, end, expect).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/parser.h"

#define BLANKS " \t"

int parser_fail(struct parser *parser, const char *format, ...)
{
  va_list list;

  parser->error->line = parser->line;
  va_start(list, format);
  vsnprintf(parser->error->text, sizeof(parser->error->text), format, list);
  va_end(list);
  for (char *c = parser->error->text; *c; c += utf8_size(c))
    if (!utf8_size(c))
      *c = '?'; /* a word was cut in the middle of a character */
  return LB_E_BAD_SYNTAX;
}

/* ---- contents of the file ---- */

static int sim_add_statement(struct sim *sim, const struct statement *statement)
{
  struct statement *added = array_append(&sim->statements, &sim->count, &sim->capacity);

  if (!added)
    return -ENOMEM;
  *added = *statement;
  return 0;
}

static int sim_add_printed(struct sim *sim, const char *text, unsigned line)
{
  struct printed *added = array_append(&sim->printed, &sim->printed_count, &sim->printed_capacity);

  if (!added)
    return -ENOMEM;
  *added = (struct printed){text, line};
  return 0;
}

/* ---- verbs that concern the file ---- */

int parse_title(struct parser *parser, struct statement *statement)
{
  (void)statement;
  parser->sim->title = parser->text;
  return 0;
}

int parse_text(struct parser *parser, struct statement *statement)
{
  statement->text = parser->text;
  return 0;
}

int parse_cpu(struct parser *parser, struct statement *statement)
{
  bool is_first = !parser->has_cpus;

  (void)statement;
  if (parser->on_line)
    return parser_fail(parser, "'cpu' inside 'on'");
  if (parser->has_on)
    return parser_fail(parser, "'cpu' must come before 'on'");
  parser->has_cpus = true;
  return words_cpus(parser, is_first, &parser->sim->cpus);
}

static void option_set(struct parser *parser, unsigned option)
{
  struct cpu_set *set = &parser->sim->options[option];

  for (size_t i = 0; i < sizeof(set->bits) / sizeof(*set->bits); i++)
    set->bits[i] |= parser->on_line ? parser->on.bits[i] : UINT64_MAX;
}

int parse_option(struct parser *parser, struct statement *statement)
{
  (void)statement;
  if (parser->sim->count)
    return parser_fail(parser, "'option' must come before the first action");
  for (unsigned i = 0; i < parser->count; i++) {
    int option = lb_option_find(parser->words[i]);

    if (option < 0)
      return parser_fail(parser, "'%.60s' is not an option", parser->words[i]);
    option_set(parser, (unsigned)option);
  }
  return 0;
}

int parse_on(struct parser *parser, struct statement *statement)
{
  uint64_t common = 0;
  int r;

  (void)statement;
  if (parser->on_line)
    return parser_fail(parser, "'on' inside the 'on' of line %u", parser->on_line);
  parser->on = (struct cpu_set){0};
  r = words_cpus(parser, true, &parser->on);
  if (r < 0)
    return r;
  for (size_t i = 0; i < sizeof(parser->on.bits) / sizeof(*parser->on.bits); i++)
    common |= parser->on.bits[i] & parser->sim->cpus.bits[i];
  if (parser->has_cpus && !common)
    return parser_fail(parser, "'on' names none of the file's CPUs");
  parser->on_line = parser->line;
  parser->has_on = true;
  return 0;
}

int parse_end(struct parser *parser, struct statement *statement)
{
  (void)statement;
  if (!parser->on_line)
    return parser_fail(parser, "'end' without 'on'");
  parser->on_line = 0;
  return 0;
}

/* ---- lines ---- */

static bool is_too_few_or_many(const struct parser *parser)
{
  return parser->count < parser->verb->least || parser->count > parser->verb->most;
}

/* The word after `expect` is a verb of its own; any other word names a register. */
int parse_expect(struct parser *parser, struct statement *statement)
{
  const struct verb *verb = verb_find_expect(parser->words[0]);

  statement->verb = parser->verb = verb ? verb : &verb_expect_register;
  if (verb) {
    parser->count--;
    memmove(parser->words, parser->words + 1, parser->count * sizeof(*parser->words));
  }
  if (verb && is_too_few_or_many(parser))
    return parser_fail(parser, "usage: expect %s %s", verb->word, verb->usage);
  return parser->verb->parse(parser, statement);
}

/* Removes the comment from the end of a line. */
static void comment_strip(char *line)
{
  for (char *c = line; (c = strchr(c, '#')); c++)
    if (c == line || strchr(BLANKS, c[-1])) {
      *c = '\0';
      return;
    }
}

static void blanks_strip(char *line)
{
  size_t length = strlen(line);

  while (length && strchr(BLANKS, line[length - 1]))
    line[--length] = '\0';
}

/* Cuts off the first word. Returns the rest without blanks. */
static char *word_cut(char *line)
{
  char *end = line + strcspn(line, BLANKS);

  if (!*end)
    return end;
  *end++ = '\0';
  return end + strspn(end, BLANKS);
}

/* Takes the text after a verb that has a text. */
static int text_cut(struct parser *parser, char *rest)
{
  blanks_strip(rest);
  if (strlen(rest) > SIM_TEXT_MAX)
    return parser_fail(parser, "a text of more than %d bytes", SIM_TEXT_MAX);
  parser->text = rest;
  parser->count = *rest != '\0';
  return 0;
}

/* Splits the text after any other verb into words. */
static int words_cut(struct parser *parser, char *rest)
{
  comment_strip(rest);
  for (parser->count = 0; *rest; parser->count++) {
    char *word = rest;

    if (parser->count == SIM_WORDS_MAX)
      return parser_fail(parser, "more than %d words", SIM_WORDS_MAX);
    rest = word_cut(word);
    if (strlen(word) > SIM_WORD_MAX) /* a symbol's name may be printed with every record */
      return parser_fail(parser, "a word of more than %d bytes", SIM_WORD_MAX);
    parser->words[parser->count] = word;
  }
  return 0;
}

static int line_find_verb(struct parser *parser, const char *word)
{
  const struct verb *guess;

  parser->verb = verb_find(word);
  if (parser->verb)
    return 0;
  guess = verb_guess(word);
  if (guess)
    return parser_fail(parser, "'%.60s' is not a statement; did you mean '%s'?", word, guess->word);
  return parser_fail(parser, "'%.60s' is not a statement", word);
}

static int parse_statement(struct parser *parser, char *line)
{
  struct statement statement = {.line = parser->line, .is_for_all = !parser->on_line, .cpus = parser->on};
  char *rest = word_cut(line);
  int r = line_find_verb(parser, line);

  if (r >= 0)
    r = verb_is_text(parser->verb) ? text_cut(parser, rest) : words_cut(parser, rest);
  if (r < 0)
    return r;
  if (is_too_few_or_many(parser))
    return parser_fail(parser, "usage: %s%s%s", line, *parser->verb->usage ? " " : "", parser->verb->usage);
  statement.verb = parser->verb;
  r = parser->verb->parse(parser, &statement);
  if (r < 0 || !statement.verb->run)
    return r;
  if (parser->sim->count == SIM_STATEMENTS_MAX)
    return parser_fail(parser, "more than %d statements", SIM_STATEMENTS_MAX);
  return sim_add_statement(parser->sim, &statement);
}

/* A line of expected output: exactly the text after "| ". */
static int parse_printed(struct parser *parser, char *line)
{
  if (!parser->is_printing)
    return parser_fail(parser, "a line with '|' must follow 'expect print'");
  line++;
  if (*line == ' ')
    line++;
  parser->sim->statements[parser->sim->count - 1].print.count++;
  return sim_add_printed(parser->sim, line, parser->line);
}

/* C0, DEL, and C1, which UTF-8 writes in two bytes. */
static bool is_control(const unsigned char *s)
{
  return (s[0] < 0x20 && s[0] != '\t') || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0);
}

/* Characters other than text could control a terminal. */
static int line_check(struct parser *parser, const char *line)
{
  for (size_t size; *line; line += size) {
    const unsigned char *s = (const unsigned char *)line;

    size = utf8_size(line);
    if (!size)
      return parser_fail(parser, "a byte that is not UTF-8 (0x%02x)", *s);
    if (is_control(s))
      return parser_fail(parser, "a control character (0x%02x)", size == 1 ? s[0] : s[1]);
  }
  return 0;
}

static int parse_line(struct parser *parser, char *line)
{
  line += strspn(line, BLANKS);
  if (*line == '|')
    return parse_printed(parser, line);
  if (!*line || *line == '#')
    return 0;
  parser->is_printing = false;
  return parse_statement(parser, line);
}

/* ---- the file ---- */

/* Keeps two copies of the text: one is only split into lines, the other will be split into words. */
static int sim_copy(struct sim *sim, const char *text, size_t size)
{
  char *line;

  for (size_t i = 0; i < size; i++)
    sim->line_count += text[i] == '\n';
  sim->line_count++;
  sim->lines = calloc(sim->line_count, sizeof(*sim->lines));
  sim->text = strndup(text, size);
  if (!sim->lines || !sim->text)
    return -ENOMEM;
  line = sim->text;
  for (size_t i = 0; line; i++) {
    sim->lines[i] = strsep(&line, "\n");
    if (line && line - sim->lines[i] >= 2 && line[-2] == '\r')
      line[-2] = '\0';
  }
  sim->words = malloc(size + 1);
  if (sim->words)
    memcpy(sim->words, sim->text, size + 1);
  return sim->words ? 0 : -ENOMEM;
}

static int parse_lines(struct parser *parser)
{
  static const char source[] = "# source:";
  struct sim *sim = parser->sim;

  if (!strncmp(sim->lines[0], source, strlen(source)))
    sim->source = sim->lines[0] + strlen(source) + strspn(sim->lines[0] + strlen(source), BLANKS);
  for (size_t i = 0; i < sim->line_count; i++) {
    int r;

    parser->line = (unsigned)i + 1;
    r = line_check(parser, sim->lines[i]);
    if (r >= 0)
      r = parse_line(parser, sim->words + (sim->lines[i] - sim->text));
    if (r < 0)
      return r;
  }
  parser->line = parser->on_line;
  return parser->on_line ? parser_fail(parser, "'on' without 'end'") : 0;
}

/* A file that names CPUs and then excludes them all would succeed without testing anything. */
static int check_cpus(struct parser *parser)
{
  uint64_t any = 0;

  for (size_t i = 0; i < sizeof(parser->sim->cpus.bits) / sizeof(*parser->sim->cpus.bits); i++)
    any |= parser->sim->cpus.bits[i];
  parser->line = 0;
  return parser->has_cpus && !any ? parser_fail(parser, "the rule applies to no CPU") : 0;
}

/* Checks the text before it is copied as a string. */
static int check_text(const char *text, size_t size, struct sim_error *ret_error)
{
  if (size > SIM_BYTES_MAX) {
    *ret_error = (struct sim_error){.text = "the file is too big"};
    return LB_E_TOO_BIG;
  }
  if (memchr(text, '\0', size)) {
    *ret_error = (struct sim_error){.text = "a zero byte: this is no text"};
    return LB_E_BAD_SYNTAX;
  }
  return 0;
}

int sim_parse(const char *text, size_t size, struct sim_error *ret_error, struct sim **ret_sim)
{
  struct parser parser = {.error = ret_error};
  int r = check_text(text, size, ret_error);

  if (r < 0)
    return r;
  parser.sim = calloc(1, sizeof(*parser.sim));
  if (!parser.sim)
    return -ENOMEM;
  parser.sim->title = parser.sim->source = "";
  r = sim_copy(parser.sim, text, size);
  if (r >= 0)
    r = parse_lines(&parser);
  if (r >= 0)
    r = check_cpus(&parser);
  if (r < 0)
    goto out;
  *ret_sim = parser.sim;
  parser.sim = NULL;

out:
  sim_free(parser.sim);
  return r;
}

void sim_free(struct sim *sim)
{
  if (!sim)
    return;
  free(sim->printed);
  free(sim->statements);
  free(sim->lines);
  free(sim->words);
  free(sim->text);
  free(sim);
}
