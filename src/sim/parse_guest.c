/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the statements that change the unit or its surroundings.
 */
#include <string.h>

#include "sim/parser.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* ---- forms shared by several statements ---- */

int parse_nothing(struct parser *parser, struct statement *statement)
{
  (void)parser;
  (void)statement;
  return 0;
}

int parse_number(struct parser *parser, struct statement *statement)
{
  return word_number_up_to(parser, parser->words[0], parser->verb->limit, &statement->number);
}

int parse_choice(struct parser *parser, struct statement *statement)
{
  return word_choice(parser, parser->words[0], parser->verb->choices, &statement->number);
}

/* Up to two numbers; missing ones are 0. */
int parse_numbers(struct parser *parser, struct statement *statement)
{
  int r = 0;

  for (unsigned i = 0; r >= 0 && i < parser->count && i < 2; i++)
    r = word_number(parser, parser->words[i], &statement->pair[i]);
  return r;
}

int parse_pair(struct parser *parser, struct statement *statement)
{
  int r = word_number(parser, parser->words[0], &statement->pair[0]);

  return r < 0 ? r : word_number(parser, parser->words[1], &statement->pair[1]);
}

/* ---- RDMSR, WRMSR, VM entry ---- */

/* The expected result, if the statement names one; otherwise success. */
static int parse_answer(struct parser *parser, unsigned index, const char *choices, struct statement *statement)
{
  uint64_t choice;
  int r;

  statement->msr.answer = LB_MSR_OK;
  if (parser->count <= index)
    return 0;
  r = word_choice(parser, parser->words[index], choices, &choice);
  if (r >= 0)
    statement->msr.answer = choice ? LB_MSR_FOREIGN : LB_MSR_GP;
  return r;
}

int parse_wrmsr(struct parser *parser, struct statement *statement)
{
  int r = word_register(parser, parser->words[0], &statement->msr.reg);

  if (r >= 0)
    r = word_number(parser, parser->words[1], &statement->msr.value);
  return r < 0 ? r : parse_answer(parser, 2, "gp foreign", statement);
}

int parse_rdmsr(struct parser *parser, struct statement *statement)
{
  int r = word_register(parser, parser->words[0], &statement->msr.reg);

  return r < 0 ? r : parse_answer(parser, 1, "gp foreign", statement);
}

int parse_vmentry(struct parser *parser, struct statement *statement)
{
  int r = word_number(parser, parser->words[0], &statement->msr.value);

  return r < 0 ? r : parse_answer(parser, 1, "gp", statement);
}

/* ---- branches and events ---- */

static const struct {
  const char *word;
  bool is_event;
} kinds[LB_BRANCH_KINDS] = {
#define LB_BRANCH_KIND(name, word, class, is_event) {word, is_event},
#include "lastbranch/branch_kind.def"
#undef LB_BRANCH_KIND
};

static int jump_kind(struct parser *parser, bool is_event, struct jump *jump)
{
  const char *word = parser->words[0];
  int kind = lb_branch_kind_find(word);

  if (kind < 0)
    return parser_fail(parser, "'%.60s' is not a kind of branch", word);
  if (kinds[kind].is_event != is_event)
    return parser_fail(parser, "'%s' is %s: write '%s %s ...'", word, is_event ? "a branch" : "an event",
                       is_event ? "branch" : "event", word);
  jump->kind = (uint8_t)kind;
  return 0;
}

/* "3", or "3>0": before and after. */
static int jump_cpl(struct parser *parser, const char *value, struct jump *jump)
{
  const char *after = value[0] && value[1] == '>' ? value + 2 : value;

  if (value[0] < '0' || value[0] > '3' || after[0] < '0' || after[0] > '3' || after[1])
    return parser_fail(parser, "'cpl=%.60s' is neither 'cpl=N' nor 'cpl=N>N'", value);
  jump->has_cpl = true;
  jump->from_cpl = (uint8_t)(value[0] - '0');
  jump->to_cpl = (uint8_t)(after[0] - '0');
  return 0;
}

static int jump_base(struct parser *parser, const char *value, uint64_t *base, bool *has_base)
{
  *has_base = true;
  return word_number(parser, value, base);
}

static int jump_to_mode(struct parser *parser, const char *value, struct jump *jump)
{
  uint64_t mode;
  int r = word_choice(parser, value, "16 32 compat 64", &mode);

  if (r < 0)
    return r;
  jump->has_to_mode = true;
  jump->to_mode = (uint8_t)mode;
  return 0;
}

static int jump_length(struct parser *parser, const char *value, struct jump *jump)
{
  uint64_t length;
  int r = word_number_up_to(parser, value, 15, &length); /* SDM vol. 2, 2.3.11: no instruction is longer */

  if (r >= 0)
    jump->length = (uint8_t)length;
  return r;
}

static int jump_word(struct parser *parser, const char *word, struct jump *jump)
{
  const char *value;

  if ((value = word_after(word, "cpl")))
    return jump_cpl(parser, value, jump);
  if ((value = word_after(word, "length")))
    return jump_length(parser, value, jump);
  if ((value = word_after(word, "base")))
    return jump_base(parser, value, &jump->base, &jump->has_base);
  if ((value = word_after(word, "to_base")))
    return jump_base(parser, value, &jump->to_base, &jump->has_to_base);
  if ((value = word_after(word, "to_mode")))
    return jump_to_mode(parser, value, jump);
  if (!strcmp(word, "mispred"))
    jump->flags |= LB_BRANCH_MISPREDICTED;
  else if (!strcmp(word, "tsx"))
    jump->flags |= LB_BRANCH_IN_TSX;
  else
    return parser_fail(parser, "'%.60s' is none of: cpl=N cpl=N>N mispred tsx length=N base=N to_base=N to_mode=MODE",
                       word);
  return 0;
}

static int parse_jump(struct parser *parser, bool is_event, struct jump *jump)
{
  unsigned addresses = is_event ? 3 : 2;
  int r = jump_kind(parser, is_event, jump);

  for (unsigned i = 0; r >= 0 && i < addresses; i++)
    r = word_number(parser, parser->words[1 + i], &jump->address[i]);
  for (unsigned i = 1 + addresses; r >= 0 && i < parser->count; i++)
    r = jump_word(parser, parser->words[i], jump);
  return r;
}

int parse_branch(struct parser *parser, struct statement *statement)
{
  return parse_jump(parser, false, &statement->jump);
}

int parse_event(struct parser *parser, struct statement *statement)
{
  return parse_jump(parser, true, &statement->jump);
}

/* ---- counters and PEBS ---- */

int parse_progress(struct parser *parser, struct statement *statement)
{
#define FIELD(word, name)                                                                                              \
  {                                                                                                                    \
    word, offsetof(struct counted_progress, name), UINT64_MAX                                                          \
  }
  static const struct word_field fields[] = {
    FIELD("instructions", did.instructions),
    FIELD("cycles", did.cycles),
    FIELD("ref", did.reference_cycles),
    FIELD("branches", did.branches),
    FIELD("taken", did.taken_branches),
    FIELD("mispredicts", did.mispredicts),
    FIELD("cache_refs", did.cache_references),
    FIELD("cache_misses", did.cache_misses),
    FIELD("slots", did.slots),
    FIELD("inserts", did.lbr_inserts),
#define LB_METRIC(name, word) FIELD(word, did.metrics[LB_METRIC_##name]),
#include "lastbranch/metric.def"
#undef LB_METRIC
#define LB_OUTCOME(name, word) FIELD(word, did.predicted[LB_OUTCOME_##name]),
#include "lastbranch/outcome.def"
#undef LB_OUTCOME
#define LB_OUTCOME(name, word) FIELD(word "_mispred", did.mispredicted[LB_OUTCOME_##name]),
#include "lastbranch/outcome.def"
#undef LB_OUTCOME
    {"cpl", offsetof(struct counted_progress, cpl), 3},
  };
#undef FIELD

  statement->progress.cpl = UINT64_MAX;
  return words_fields(parser, 0, fields, LENGTH(fields), &statement->progress);
}

int parse_pebs(struct parser *parser, struct statement *statement)
{
#define FIELD(name)                                                                                                    \
  {                                                                                                                    \
#name, offsetof(struct lb_registers, name), UINT64_MAX                                                             \
  }
  static const struct word_field fields[] = {
    FIELD(rflags),  FIELD(rip),         FIELD(rax),       FIELD(rbx),          FIELD(rcx),
    FIELD(rdx),     FIELD(rsi),         FIELD(rdi),       FIELD(rbp),          FIELD(rsp),
    FIELD(r8),      FIELD(r9),          FIELD(r10),       FIELD(r11),          FIELD(r12),
    FIELD(r13),     FIELD(r14),         FIELD(r15),       FIELD(data_address), FIELD(data_source),
    FIELD(latency), FIELD(eventing_ip), FIELD(tsx_abort), FIELD(tsc),          FIELD(retire_latency),
  };
#undef FIELD

  return words_fields(parser, 0, fields, LENGTH(fields), &statement->registers);
}

/* ---- the surroundings of the unit ---- */

int parse_memory(struct parser *parser, struct statement *statement)
{
  uint64_t address, size;
  int r = word_number(parser, parser->words[0], &address);

  if (r >= 0)
    r = word_number_up_to(parser, parser->words[1], SIM_MEMORY_MAX, &size);
  if (r < 0)
    return r;
  if (!size || address + (size - 1) < address)
    return parser_fail(parser, "invalid memory: 0x%llx bytes at 0x%llx", (unsigned long long)size,
                       (unsigned long long)address);
  statement->memory.address = address;
  statement->memory.size = size;
  return 0;
}

/* Whether the number fits, as a positive or a negative one. */
static bool value_fits(uint64_t value, unsigned size)
{
  uint64_t most = UINT64_MAX >> (64 - 8 * size);

  return value <= most || value >= ~(most >> 1);
}

int parse_values(struct parser *parser, struct statement *statement)
{
  uint64_t choice;
  int r = word_number(parser, parser->words[0], &statement->values.address);

  if (r >= 0)
    r = word_choice(parser, parser->words[1], "1 2 4 8", &choice);
  if (r < 0)
    return r;
  if (parser->count - 2 > SIM_VALUES_MAX)
    return parser_fail(parser, "more than %d values in a line", SIM_VALUES_MAX);
  statement->values.size = 1u << choice;
  statement->values.count = parser->count - 2;
  for (unsigned i = 0; r >= 0 && i < statement->values.count; i++) {
    r = word_number(parser, parser->words[2 + i], &statement->values.values[i]);
    if (r >= 0 && !value_fits(statement->values.values[i], statement->values.size))
      r = parser_fail(parser, "'%.60s' does not fit the size %u", parser->words[2 + i], statement->values.size);
  }
  return r;
}

int parse_facts(struct parser *parser, struct statement *statement)
{
  static const struct word_field fields[] = {
    {"apic", offsetof(struct told_facts, apic), 1},     {"lvt", offsetof(struct told_facts, lvt), UINT32_MAX},
    {"gate", offsetof(struct told_facts, gate), 15},    {"a20", offsetof(struct told_facts, a20), 1},
    {"shared", offsetof(struct told_facts, shared), 1},
  };

  statement->facts = (struct told_facts){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  return words_fields(parser, 0, fields, LENGTH(fields), &statement->facts);
}

int parse_page(struct parser *parser, struct statement *statement)
{
  int r = word_number(parser, parser->words[0], &statement->memory.address);

  for (unsigned i = 1; r >= 0 && i < parser->count; i++) {
    uint64_t attribute; /* in the order of enum lb_ds_page */

    r = word_choice(parser, parser->words[i], "present accessed dirty code supervisor global", &attribute);
    if (r >= 0)
      statement->memory.attributes |= 1u << attribute;
  }
  return r;
}

int parse_symbol(struct parser *parser, struct statement *statement)
{
  statement->symbol.name = parser->words[0];
  return word_number(parser, parser->words[1], &statement->symbol.address);
}

int parse_print(struct parser *parser, struct statement *statement)
{
  int format = report_format_find(parser->words[0]);

  if (format < 0)
    return parser_fail(parser, "'%.60s' is none of: %s", parser->words[0], parser->verb->usage);
  statement->print.format = (unsigned)format;
  return 0;
}
