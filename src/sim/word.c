/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning of single words of a rule file: numbers, choices, registers, "word=number".
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/parser.h"

int word_number(struct parser *parser, const char *word, uint64_t *ret_value)
{
  if (number_parse(word, ret_value) < 0)
    return parser_fail(parser, "'%.60s' is not a number", word);
  return 0;
}

int word_number_up_to(struct parser *parser, const char *word, uint64_t limit, uint64_t *ret_value)
{
  uint64_t value;
  int r = word_number(parser, word, &value);

  if (r < 0)
    return r;
  if (value > limit)
    return parser_fail(parser, "'%.60s' is too large; the maximum is %" PRIu64, word, limit);
  *ret_value = value;
  return 0;
}

int word_choice(struct parser *parser, const char *word, const char *choices, uint64_t *ret_index)
{
  uint64_t index = 0;

  for (const char *choice = choices; *choice; index++) {
    size_t length = strcspn(choice, " ");

    if (strlen(word) == length && !strncmp(word, choice, length)) {
      *ret_index = index;
      return 0;
    }
    choice += length + strspn(choice + length, " ");
  }
  return parser_fail(parser, "'%.60s' is none of: %s", word, choices);
}

const char *word_after(const char *word, const char *key)
{
  size_t length = strlen(key);

  return !strncmp(word, key, length) && word[length] == '=' ? word + length + 1 : NULL;
}

/* ---- registers ---- */

static void register_add(struct named_register *reg, uint32_t address)
{
  for (unsigned i = 0; i < reg->count; i++)
    if (reg->addresses[i] == address)
      return;
  assert(reg->count < SIM_ADDRESSES_MAX); /* for any name: the limit must fit the catalogue */
  reg->addresses[reg->count++] = address;
}

static int fail_no_register(struct parser *parser, const char *word)
{
  const struct verb *guess = parser->verb == &verb_expect_register ? verb_guess_expect(word) : NULL;

  if (guess)
    return parser_fail(parser, "no CPU has a register '%.60s'; did you mean '%s'?", word, guess->word);
  return parser_fail(parser, "no CPU has a register '%.60s'", word);
}

int word_register(struct parser *parser, const char *word, struct named_register *ret_register)
{
  struct named_register reg = {.name = word};
  const struct lb_cpu *cpu;
  uint64_t address;

  if (number_parse(word, &address) >= 0) {
    if (address > UINT32_MAX)
      return parser_fail(parser, "'%.60s' is too large for the address of a register", word);
    reg.is_address = true;
    register_add(&reg, (uint32_t)address);
  }
  for (size_t i = 0; !reg.is_address && (cpu = lb_cpu_at(i)); i++) {
    unsigned number;
    int id = lb_cpu_register_find(cpu, word, &number);

    if (id >= 0) {
      struct lb_register_range range = lb_cpu_register(cpu, (enum lb_register)id);

      register_add(&reg, range.first + number * range.stride);
    }
  }
  if (!reg.count)
    return fail_no_register(parser, word);
  *ret_register = reg;
  return 0;
}

/* ---- WORD=N ---- */

static int fail_no_field(struct parser *parser, const char *word, const struct word_field *fields, size_t count)
{
  char known[270] = "";
  size_t length = 0;

  for (size_t i = 0; i < count && length + 20 < sizeof(known); i++)
    length += (size_t)snprintf(known + length, sizeof(known) - length, " %s=", fields[i].word);
  return parser_fail(parser, "'%.40s' is none of:%s", word, known);
}

int words_fields(struct parser *parser, unsigned first, const struct word_field *fields, size_t count, void *target)
{
  for (unsigned i = first; i < parser->count; i++) {
    const struct word_field *field = fields;
    const char *value = NULL;
    uint64_t number;
    int r;

    while (field < fields + count && !(value = word_after(parser->words[i], field->word)))
      field++;
    if (!value)
      return fail_no_field(parser, parser->words[i], fields, count);
    r = word_number_up_to(parser, value, field->limit, &number);
    if (r < 0)
      return r;
    memcpy((char *)target + field->offset, &number, sizeof(number));
  }
  return 0;
}
