/* SPDX-License-Identifier: Apache-2.0
 *
 * The registers of a CPU: which exist, their addresses and names. All data comes from lastbranch/register.def and the
 * two tables of names beside this file; nothing is stored.
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

/* ---- addresses ---- */

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

/* ---- names ---- */

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

/* Writes a name with its number in place of %u. Returns the full length. */
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

#define ONLY (-1)   /* the only register of its run */
#define MANUAL (-2) /* number 0, on CPUs whose manual has this name */

/* All names, in the order in which they are tried. */
static const struct name {
  enum lb_register id;
  const char *pattern;
  int number; /* the number that a pattern without %u means */
} names[] = {
#define LB_REGISTER(id, name, first, count, stride, text) {LB_REG_##id, name, 0},
#include "lastbranch/register.def"
#undef LB_REGISTER
#define LB_REGISTER_NAME(condition, id, name) {LB_REG_##id, name, MANUAL},
#include "cpudb/register_name.def"
#undef LB_REGISTER_NAME
#define LB_REGISTER_ALIAS(id, word, number) {LB_REG_##id, word, number},
#include "cpudb/register_alias.def"
#undef LB_REGISTER_ALIAS
};

static bool is_separator(char c)
{
  return c == '_' || c == '-' || c == ' ';
}

/* Copies the significant characters of a name, lower-case letters and digits, into a buffer of zeros. Returns where the
 * name begins in it: after IA32 or MSR. A name that is too long becomes "", which matches no register. */
static const char *name_fold(const char *name, char folded[NAME_MAX_LENGTH])
{
  size_t length = 0;

  for (; *name; name++) {
    if (is_separator(*name))
      continue;
    if (length == NAME_MAX_LENGTH - 1)
      return "";
    folded[length++] = (char)tolower((unsigned char)*name);
  }
  if (!strncmp(folded, "ia32", 4))
    return folded + 4;
  return strncmp(folded, "msr", 3) ? folded : folded + 3;
}

/* Reads the number of a register, as %u prints it. Returns where it ends, or NULL if there is none. */
static const char *number_read(const char *p, unsigned *ret_number)
{
  const char *start = p;
  unsigned number = 0;

  for (; isdigit((unsigned char)*p) && p - start < 4; p++) /* no run is that long */
    number = number * 10 + (unsigned)(*p - '0');
  if (p == start || (*start == '0' && p - start > 1))
    return NULL;
  *ret_number = number;
  return p;
}

/* Whether the folded word `wanted` is `pattern` with a number in place of %u. The number is 0 if the pattern has no
 * %u. */
static bool name_matches(const char *pattern, const char *wanted, unsigned *ret_number)
{
  unsigned number = 0;

  if (!strncmp(pattern, "IA32_", 5))
    pattern += 5;
  else if (!strncmp(pattern, "MSR_", 4))
    pattern += 4;
  for (; *pattern; pattern++) {
    if (is_separator(*pattern))
      continue;
    if (*pattern == '%') {
      pattern++;
      wanted = number_read(wanted, &number);
      if (!wanted)
        return false;
    } else if (*wanted++ != tolower((unsigned char)*pattern))
      return false;
  }
  if (*wanted)
    return false;
  *ret_number = number;
  return true;
}

/* Tries one name. Returns the number within the run, or LB_E_NO_REGISTER. */
static int name_try(const struct lb_cpu *cpu, const struct name *name, const char *wanted)
{
  unsigned number, count;

  if (!name_matches(name->pattern, wanted, &number))
    return LB_E_NO_REGISTER;
  if (name->number == MANUAL && strcmp(manual_name(cpu, name->id), name->pattern))
    return LB_E_NO_REGISTER;
  count = lb_cpu_register(cpu, name->id).count;
  if (name->number == ONLY && count != 1)
    return LB_E_NO_REGISTER;
  if (name->number > 0)
    number = (unsigned)name->number;
  return number < count ? (int)number : LB_E_NO_REGISTER;
}

static int name_find(const struct lb_cpu *cpu, const char *wanted, unsigned *ret_number)
{
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    int number = name_try(cpu, &names[i], wanted);

    if (number >= 0) {
      *ret_number = (unsigned)number;
      return (int)names[i].id;
    }
  }
  return LB_E_NO_REGISTER;
}

int lb_cpu_register_find(const struct lb_cpu *cpu, const char *name, unsigned *ret_number)
{
  char folded[NAME_MAX_LENGTH] = "";
  uint64_t msr;

  if (!strncmp(name, "0x", 2) || !strncmp(name, "0X", 2)) {
    if (number_parse(name, &msr) < 0 || msr > UINT32_MAX)
      return LB_E_NO_REGISTER;
    return lb_cpu_register_at(cpu, (uint32_t)msr, ret_number);
  }
  return name_find(cpu, name_fold(name, folded), ret_number);
}
