/* SPDX-License-Identifier: Apache-2.0
 *
 * Which registers a CPU has, where they are and what they are called. Everything is asked of lastbranch/register.def
 * and of the two tables of names beside this file; nothing is stored.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cpudb/cpudb.h"
#include "cpudb/expression.h"
#include "lastbranch/error.h"

#define NAME_MAX_LENGTH 64 /* longer than any name of a register */

/* ---- where ---- */

static struct lb_register_range range_make(uint32_t first, uint32_t count, uint32_t stride)
{
  return count ? (struct lb_register_range){first, count, stride} : (struct lb_register_range){0};
}

struct lb_register_range lb_cpu_register(const struct lb_cpu *cpu, enum lb_register id)
{
  switch (id) {
#define LB_REGISTER(id_, name, first, count, stride, text)                                                             \
  case LB_REG_##id_:                                                                                                   \
    return range_make(first, count, stride);
#include "lastbranch/register.def"
#undef LB_REGISTER
  case LB_REGISTERS:
    break;
  }
  assert(!"a register of register.def");
  return range_make(0, 0, 0);
}

int lb_cpu_register_at(const struct lb_cpu *cpu, uint32_t msr, unsigned *ret_number)
{
  for (int id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(cpu, (enum lb_register)id);
    uint32_t distance = msr - range.first;

    if (range.count && msr >= range.first && distance % range.stride == 0 && distance / range.stride < range.count) {
      *ret_number = distance / range.stride;
      return id;
    }
  }
  return LB_E_NO_REGISTER;
}

/* ---- what it is called ---- */

static const char *const generic_names[LB_REGISTERS] = {
#define LB_REGISTER(id, name, first, count, stride, text) [LB_REG_##id] = name,
#include "lastbranch/register.def"
#undef LB_REGISTER
};

static const char *manual_name(const struct lb_cpu *cpu, enum lb_register id)
{
#define LB_REGISTER_NAME(condition, id_, name)                                                                         \
  if (id == LB_REG_##id_ && (condition))                                                                               \
    return name;
#include "cpudb/register_name.def"
#undef LB_REGISTER_NAME
  return generic_names[id];
}

/* Writes a name with its number in the place of %u. Returns the length in full. */
static int name_format(const char *name, unsigned number, char *buffer, size_t size)
{
  const char *place;

  assert(name);
  place = strstr(name, "%u");
  if (!place)
    return snprintf(buffer, size, "%s", name);
  return snprintf(buffer, size, "%.*s%u%s", (int)(place - name), name, number, place + 2);
}

int lb_cpu_register_name(const struct lb_cpu *cpu, enum lb_register id, unsigned number, char *buffer, size_t size)
{
  assert(id < LB_REGISTERS);
  return name_format(manual_name(cpu, id), number, buffer, size);
}

const char *lb_register_text(enum lb_register id)
{
  static const char *const texts[LB_REGISTERS] = {
#define LB_REGISTER(id, name, first, count, stride, text) [LB_REG_##id] = text,
#include "lastbranch/register.def"
#undef LB_REGISTER
  };

  return id < LB_REGISTERS ? texts[id] : "?";
}

/* ---- by name ---- */

#define ONLY (-1)

static const struct alias {
  enum lb_register id;
  const char *word;
  int number;
} aliases[] = {
#define LB_REGISTER_ALIAS(id, word, number) {LB_REG_##id, word, number},
#include "cpudb/register_alias.def"
#undef LB_REGISTER_ALIAS
};

/* Copies what counts in a name: letters in lower case and digits, without a leading IA32_ or MSR_. A name that is too
 * long becomes "", which no register has. */
static void name_fold(const char *name, char folded[NAME_MAX_LENGTH])
{
  size_t length = 0;

  for (; *name && length < NAME_MAX_LENGTH; name++)
    if (*name != '_' && *name != '-' && *name != ' ')
      folded[length++] = (char)tolower((unsigned char)*name);
  if (length == NAME_MAX_LENGTH)
    length = 0;
  folded[length] = '\0';
  if (!strncmp(folded, "ia32", 4))
    memmove(folded, folded + 4, length - 4 + 1);
  else if (!strncmp(folded, "msr", 3))
    memmove(folded, folded + 3, length - 3 + 1);
}

/* True when the folded word `wanted` is `pattern` with this number. */
static bool name_is(const char *pattern, unsigned number, const char *wanted)
{
  char name[NAME_MAX_LENGTH], folded[NAME_MAX_LENGTH];
  int length = name_format(pattern, number, name, sizeof(name));

  assert(length > 0 && (size_t)length < sizeof(name));
  name_fold(name, folded);
  return !strcmp(folded, wanted);
}

/* Looks for `wanted` among the numbers of a run. Returns the number, or LB_E_NO_REGISTER. */
static int run_find(const char *pattern, unsigned count, const char *wanted)
{
  for (unsigned number = 0; number < count; number++)
    if (name_is(pattern, number, wanted))
      return (int)number;
  return LB_E_NO_REGISTER;
}

static int alias_find(const struct alias *alias, unsigned count, const char *wanted)
{
  if (strstr(alias->word, "%u"))
    return run_find(alias->word, count, wanted);
  if (!count || (alias->number == ONLY && count != 1) || !name_is(alias->word, 0, wanted))
    return LB_E_NO_REGISTER;
  return alias->number == ONLY ? 0 : alias->number;
}

static int name_find(const struct lb_cpu *cpu, const char *wanted, unsigned *ret_number)
{
  for (int id = 0; id < LB_REGISTERS; id++) {
    unsigned count = lb_cpu_register(cpu, (enum lb_register)id).count;
    int number = run_find(manual_name(cpu, (enum lb_register)id), count, wanted);

    if (number < 0)
      number = run_find(generic_names[id], count, wanted);
    if (number >= 0) {
      *ret_number = (unsigned)number;
      return id;
    }
  }
  for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
    int number = alias_find(&aliases[i], lb_cpu_register(cpu, aliases[i].id).count, wanted);

    if (number >= 0) {
      *ret_number = (unsigned)number;
      return (int)aliases[i].id;
    }
  }
  return LB_E_NO_REGISTER;
}

int lb_cpu_register_find(const struct lb_cpu *cpu, const char *name, unsigned *ret_number)
{
  char wanted[NAME_MAX_LENGTH];
  uint64_t msr;

  if (!strncmp(name, "0x", 2) || !strncmp(name, "0X", 2)) {
    if (number_parse(name, &msr) < 0 || msr > UINT32_MAX)
      return LB_E_NO_REGISTER;
    return lb_cpu_register_at(cpu, (uint32_t)msr, ret_number);
  }
  name_fold(name, wanted);
  return name_find(cpu, wanted, ret_number);
}
