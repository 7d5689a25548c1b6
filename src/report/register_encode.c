/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the value of a register from named fields.
 */
#include <string.h>

#include "report/register.h"

#define WORD_MAX 64

static int fields_list(struct text *text, const struct register_choice *choice)
{
  struct lb_field field;
  int r = 0;

  for (unsigned i = 0; r >= 0 && lb_cpu_field(choice->cpu, choice->id, i, &field) >= 0; i++)
    r = text_addf(text, "%s%s", i ? ", " : "", field.name);
  return r;
}

/* Lists the fields of the register, and the CPUs that have the one that was named. */
static void field_complain(const struct register_choice *choice, const char *register_name, const char *name)
{
  const struct cpudb_field_question question = {.id = choice->id, .name = name, .bit = -1};
  struct text fields = {0}, others = {0};
  int count;

  fields_list(&fields, choice);
  count = register_list_cpus(&others, cpudb_has_field, &question);
  if (count > 0)
    message("%s has no field '%s' on %s, only on %s; its fields here: %s", register_name, name, choice->cpu->title,
            text_string(&others), text_string(&fields));
  else
    message("%s has no field '%s'; its fields on %s: %s", register_name, name, choice->cpu->title,
            text_string(&fields));
  text_done(&fields);
  text_done(&others);
}

/* The value that a word gives its field. Returns 0; or negative after a message. */
static int field_value(const struct lb_field *field, const char *value_text, uint64_t *ret_value)
{
  unsigned width = field->high - field->low + 1u;
  uint64_t value;
  int r;

  if (!value_text && width == 1) {
    *ret_value = 1;
    return 0;
  }
  if (!value_text) {
    message("%s has %u bits: write %s=VALUE", field->name, width, field->name);
    return LB_E_BAD_SYNTAX;
  }
  r = number_parse(value_text, &value);
  if (r < 0) {
    message("%s: '%s' is not a number of 64 bits", field->name, value_text);
    return r;
  }
  if (width < 64 && value >> width) {
    message("%s=%s is too big: the field has %u bit%s, so at most 0x%llx", field->name, value_text, width,
            width == 1 ? "" : "s", (unsigned long long)(cpudb_field_mask(field) >> field->low));
    return LB_E_TOO_BIG;
  }
  *ret_value = value;
  return 0;
}

/* Adds one FIELD[=VALUE] to the value. `seen` has the bits of the fields named before. */
static int field_add(const struct register_choice *choice, const char *register_name, char *word, uint64_t *seen,
                     uint64_t *value)
{
  struct cpudb_field_question question = {.id = choice->id, .name = word, .bit = -1};
  char *equals = strchr(word, '=');
  struct lb_field field;
  uint64_t part;
  int r;

  if (equals)
    *equals = '\0';
  r = cpudb_field_find(choice->cpu, &question, &field);
  if (r < 0) {
    field_complain(choice, register_name, word);
    return r;
  }
  if (*seen & cpudb_field_mask(&field)) {
    message("%s is named twice", field.name);
    return LB_E_BAD_SYNTAX;
  }
  r = field_value(&field, equals ? equals + 1 : NULL, &part);
  if (r < 0)
    return r;
  *seen |= cpudb_field_mask(&field);
  *value |= part << field.low;
  return 0;
}

/* Adds the word between two commas. */
static int word_add(const struct register_choice *choice, const char *register_name, const char *start, size_t length,
                    uint64_t *seen, uint64_t *value)
{
  char word[WORD_MAX];

  if (length >= sizeof(word)) {
    message("'%s' is too long for a field", start);
    return LB_E_TOO_BIG;
  }
  memcpy(word, start, length);
  word[length] = '\0';
  return field_add(choice, register_name, word, seen, value);
}

int register_encode(const struct register_choice *choice, const char *register_name, char *const *words, int count,
                    uint64_t *ret_value)
{
  uint64_t seen = 0, value = 0;
  int r;

  for (int i = 0; i < count; i++) {
    const char *at = words[i];

    do {
      size_t length = strcspn(at, ",");

      if (!length) {
        message("'%s' lacks a field", words[i]);
        return LB_E_BAD_SYNTAX;
      }
      r = word_add(choice, register_name, at, length, &seen, &value);
      if (r < 0)
        return r;
      at += length;
    } while (*at++ == ',');
  }
  *ret_value = value;
  return 0;
}
