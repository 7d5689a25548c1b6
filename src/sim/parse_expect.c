/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the statements that begin with `expect`.
 */
#include <string.h>
#include <strings.h>

#include "sim/parser.h"

/* "mask M" from word `index` on, if present. */
static int parse_mask(struct parser *parser, unsigned index, uint64_t limit, uint64_t *mask)
{
  if (parser->count <= index)
    return 0;
  if (parser->count != index + 2 || strcmp(parser->words[index], "mask"))
    return parser_fail(parser, "'%.60s' where only 'mask M' is allowed", parser->words[index]);
  return word_number_up_to(parser, parser->words[index + 1], limit, mask);
}

int parse_register(struct parser *parser, struct statement *statement)
{
  int r = word_register(parser, parser->words[0], &statement->msr.reg);

  if (r < 0)
    return r;
  if (parser->count < 2)
    return parser_fail(parser, "usage: expect %.60s %s", parser->words[0], parser->verb->usage);
  statement->msr.mask = UINT64_MAX;
  r = word_number(parser, parser->words[1], &statement->msr.value);
  return r < 0 ? r : parse_mask(parser, 2, UINT64_MAX, &statement->msr.mask);
}

/* ---- records ---- */

static int record_kind(struct parser *parser, const char *word, struct wanted_record *record)
{
  record->kind = !strcmp(word, "?") ? LB_BRANCH_KINDS : lb_branch_kind_find(word);
  return record->kind < 0 ? parser_fail(parser, "'%.60s' is not a kind of branch", word) : 0;
}

static int record_word(struct parser *parser, const char *word, struct wanted_record *record)
{
  struct {
    const char *word;
    int8_t *flag, value;
  } flags[] = {
    {"mispred", &record->is_mispredicted, 1}, {"predicted", &record->is_mispredicted, 0},
    {"tsx", &record->is_in_tsx, 1},           {"no-tsx", &record->is_in_tsx, 0},
    {"abort", &record->is_tsx_abort, 1},      {"no-abort", &record->is_tsx_abort, 0},
    {"no-cycles", &record->has_cycles, 0},
  };
  const char *value;

  if ((value = word_after(word, "cycles")))
    return word_number_up_to(parser, value, UINT16_MAX, &record->cycles);
  if ((value = word_after(word, "type")))
    return word_number_up_to(parser, value, 15, &record->type);
  if ((value = word_after(word, "index")))
    return word_number_up_to(parser, value, LB_DEPTH_MAX - 1, &record->index);
  if ((value = word_after(word, "kind")))
    return record_kind(parser, value, record);
  for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
    if (!strcmp(word, flags[i].word)) {
      *flags[i].flag = flags[i].value;
      return 0;
    }
  return parser_fail(parser,
                     "'%.40s' is none of: mispred predicted tsx no-tsx abort no-abort cycles=N no-cycles type=N "
                     "kind=WORD index=N",
                     word);
}

int parse_record(struct parser *parser, struct statement *statement)
{
  struct wanted_record record = {.is_mispredicted = -1,
                                 .is_in_tsx = -1,
                                 .is_tsx_abort = -1,
                                 .has_cycles = -1,
                                 .cycles = UINT64_MAX,
                                 .type = UINT64_MAX,
                                 .index = UINT64_MAX,
                                 .kind = -1};
  int r = word_number(parser, parser->words[0], &record.age);

  record.is_empty = parser->count == 2 && !strcmp(parser->words[1], "empty");
  if (r >= 0 && !record.is_empty && parser->count < 3)
    return parser_fail(parser, "usage: expect lbr %s", parser->verb->usage);
  if (r >= 0 && !record.is_empty)
    r = word_number(parser, parser->words[1], &record.from);
  if (r >= 0 && !record.is_empty)
    r = word_number(parser, parser->words[2], &record.to);
  for (unsigned i = 3; r >= 0 && i < parser->count; i++)
    r = record_word(parser, parser->words[i], &record);
  statement->record = record;
  return r;
}

/* ---- the rest ---- */

/* `expect bus none` is an empty record. */
int parse_bus(struct parser *parser, struct statement *statement)
{
  struct wanted_record *record = &statement->record;
  int r;

  record->is_empty = parser->count == 1 && !strcmp(parser->words[0], "none");
  if (record->is_empty)
    return 0;
  if (parser->count != 2)
    return parser_fail(parser, "usage: expect bus %s", parser->verb->usage);
  r = word_number(parser, parser->words[0], &record->from);
  return r < 0 ? r : word_number(parser, parser->words[1], &record->to);
}

int parse_pin(struct parser *parser, struct statement *statement)
{
  int r = word_number_up_to(parser, parser->words[0], 3, &statement->pair[0]);

  return r < 0 ? r : word_number(parser, parser->words[1], &statement->pair[1]);
}

static int rule_find(struct parser *parser, const char *word)
{
  for (unsigned i = 0; i < LB_DS_RULES; i++)
    if (!strcasecmp(lb_ds_rule_name(i), word))
      return (int)i;
  return parser_fail(parser, "'%.60s' is not a rule for the DS area", word);
}

int parse_rules(struct parser *parser, struct statement *statement)
{
  statement->number = 0;
  if (parser->count == 1 && !strcmp(parser->words[0], "ok"))
    return 0;
  for (unsigned i = 0; i < parser->count; i++) {
    int rule = rule_find(parser, parser->words[i]);

    if (rule < 0)
      return rule;
    statement->number |= UINT64_C(1) << rule;
  }
  return 0;
}

int parse_cpuid(struct parser *parser, struct statement *statement)
{
  uint64_t leaf, subleaf, reg, value, mask = UINT32_MAX;
  int r = word_number_up_to(parser, parser->words[0], UINT32_MAX, &leaf);

  if (r >= 0)
    r = word_number_up_to(parser, parser->words[1], UINT32_MAX, &subleaf);
  if (r >= 0)
    r = word_choice(parser, parser->words[2], "EAX EBX ECX EDX", &reg);
  if (r >= 0)
    r = word_number_up_to(parser, parser->words[3], UINT32_MAX, &value);
  if (r >= 0)
    r = parse_mask(parser, 4, UINT32_MAX, &mask);
  if (r < 0)
    return r;
  statement->cpuid.leaf = (uint32_t)leaf;
  statement->cpuid.subleaf = (uint32_t)subleaf;
  statement->cpuid.reg = (unsigned)reg;
  statement->cpuid.value = (uint32_t)value;
  statement->cpuid.mask = (uint32_t)mask;
  return 0;
}

/* The expected lines follow; parse.c adds them. */
int parse_expect_print(struct parser *parser, struct statement *statement)
{
  int r = parse_print(parser, statement);

  if (r < 0)
    return r;
  statement->print.first = parser->sim->printed_count;
  parser->is_printing = true;
  return 0;
}
