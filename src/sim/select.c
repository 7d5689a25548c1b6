/* SPDX-License-Identifier: Apache-2.0
 *
 * Words that select CPUs of the catalogue: by name, or by a common property.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/parser.h"

size_t cpu_index(const struct lb_cpu *cpu)
{
  size_t index = 0;

  while (lb_cpu_at(index) && lb_cpu_at(index) != cpu)
    index++;
  assert(lb_cpu_at(index) && index < SIM_CPUS_MAX);
  return index;
}

bool cpu_set_has(const struct cpu_set *set, size_t index)
{
  return set->bits[index / 64] >> index % 64 & 1;
}

static void cpu_set_add(struct cpu_set *set, size_t index)
{
  assert(index < SIM_CPUS_MAX);
  set->bits[index / 64] |= UINT64_C(1) << index % 64;
}

const struct lb_cpu *sim_cpu_at(const struct sim *sim, size_t index)
{
  const struct lb_cpu *cpu;

  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    if (cpu_set_has(&sim->cpus, i) && !index--)
      return cpu;
  return NULL;
}

/* ---- common properties ---- */

static bool has_class(const struct lb_cpu *cpu, const char *value)
{
  return cpu->lbr && !strcasecmp(cpu->lbr->name, value);
}

static bool has_vendor(const struct lb_cpu *cpu, const char *value)
{
  return !strcasecmp(lb_vendor_name(cpu->vendor), value);
}

static bool has_feature(const struct lb_cpu *cpu, const char *value)
{
  for (unsigned i = 0; i < LB_FEATURES; i++)
    if (lb_cpu_has(cpu, (enum lb_feature)i) && !strcasecmp(lb_feature_name(i), value))
      return true;
  return false;
}

static bool has_quirk(const struct lb_cpu *cpu, const char *value)
{
  for (unsigned i = 0; i < LB_QUIRKS; i++)
    if (lb_cpu_quirk(cpu, (enum lb_quirk)i) && !strcasecmp(lb_quirk_name(i), value))
      return true;
  return false;
}

/* "3": exactly this version of architectural performance monitoring; "4+": this one or a later one. */
static bool has_pmu(const struct lb_cpu *cpu, const char *value)
{
  char *end;
  unsigned long version = strtoul(value, &end, 10);

  if (!isdigit((unsigned char)*value))
    return false;
  if (!strcmp(end, "+"))
    return cpu->pmu->version >= version;
  return !*end && cpu->pmu->version == version;
}

static const struct {
  const char *prefix;
  bool (*has)(const struct lb_cpu *cpu, const char *value);
} traits[] = {
  {"class:", has_class}, {"vendor:", has_vendor}, {"feature:", has_feature}, {"quirk:", has_quirk}, {"pmu:", has_pmu},
};

/* ---- words ---- */

/* A word such as 06_8E or amd:19_21 tells which of a CPU's models is meant: printing shows it. */
static void model_note(struct sim *sim, const struct lb_cpu *cpu, const char *word)
{
  const char *colon = strchr(word, ':');
  char *end;
  unsigned long family = strtoul(colon ? colon + 1 : word, &end, 16), model;

  if (*end != '_' || family > 0xFF)
    return;
  model = strtoul(end + 1, &end, 16);
  if ((*end && *end != '_') || model > 0xFF)
    return;
  sim->models[cpu_index(cpu)].family = (unsigned)family;
  sim->models[cpu_index(cpu)].model = (unsigned)model;
}

static const struct lb_cpu *cpu_guess(const char *word)
{
  const struct lb_cpu *cpu, *nearest = NULL;
  size_t distance = 4; /* a match must be nearer */

  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    size_t d = word_distance(word, cpu->name);

    if (d < distance) {
      distance = d;
      nearest = cpu;
    }
  }
  return nearest;
}

static int select_name(struct parser *parser, const char *word, struct cpu_set *ret_set)
{
  const struct lb_cpu *cpu;

  if (lb_cpu_find(word, &cpu) < 0) {
    cpu = cpu_guess(word);
    if (cpu)
      return parser_fail(parser, "no CPU '%.60s' in the catalogue; did you mean '%s'?", word, cpu->name);
    return parser_fail(parser, "no CPU '%.60s' in the catalogue", word);
  }
  cpu_set_add(ret_set, cpu_index(cpu));
  return 0;
}

static int select_word(struct parser *parser, const char *word, struct cpu_set *ret_set)
{
  bool has_any = false;
  size_t trait = 0;
  const struct lb_cpu *cpu;
  bool is_all = !strcmp(word, "all");

  while (trait < sizeof(traits) / sizeof(*traits) && strncmp(word, traits[trait].prefix, strlen(traits[trait].prefix)))
    trait++;
  if (!is_all && trait == sizeof(traits) / sizeof(*traits))
    return select_name(parser, word, ret_set);
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    if (is_all || traits[trait].has(cpu, word + strlen(traits[trait].prefix))) {
      cpu_set_add(ret_set, i);
      has_any = true;
    }
  return has_any ? 0 : parser_fail(parser, "no CPU of the catalogue matches '%.60s'", word);
}

int words_cpus(struct parser *parser, bool is_first, struct cpu_set *set)
{
  for (unsigned i = 0; i < parser->count; i++) {
    const char *word = parser->words[i];
    const struct lb_cpu *cpu;
    bool is_minus = *word == '-';
    struct cpu_set chosen = {0};
    int r = 0;

    if (is_minus && is_first && i == 0)
      r = select_word(parser, "all", set);
    if (r >= 0)
      r = select_word(parser, word + is_minus, &chosen);
    if (r < 0)
      return r;
    if (set == &parser->sim->cpus && !is_minus && lb_cpu_find(word, &cpu) >= 0)
      model_note(parser->sim, cpu, word);
    for (size_t j = 0; j < sizeof(set->bits) / sizeof(*set->bits); j++)
      set->bits[j] = is_minus ? set->bits[j] & ~chosen.bits[j] : set->bits[j] | chosen.bits[j];
  }
  return 0;
}
