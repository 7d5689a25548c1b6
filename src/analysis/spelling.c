/* SPDX-License-Identifier: Apache-2.0
 *
 * The name that a person uses for a function: for "int A::f<char>(long) const [clone .cold]" it is "A::f<char>", or
 * "A::f".
 */
#include <ctype.h>
#include <string.h>

#include "analysis/hot.h"

#define NOBODY "(anonymous namespace)"
#define OPERATOR "operator"

static bool is_letter(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The length of "operator+", "operator()", "operator new" and similar names at `at`; 0 if there is none. */
static size_t operator_length(const char *symbol, size_t at)
{
  const char *sign = symbol + at + strlen(OPERATOR);

  if (strncmp(symbol + at, OPERATOR, strlen(OPERATOR)) != 0 || (at && is_letter(symbol[at - 1])) || is_letter(*sign))
    return 0;
  if (!strncmp(sign, "()", 2))
    return strlen(OPERATOR) + 2;
  return strlen(OPERATOR) + (*sign == ' ' ? strcspn(sign, "(") : strspn(sign, "<>=!+-*/%^&|~[],"));
}

/* Whether the name ends here: its parameters or the mark of a clone begin. */
static bool is_end(const char *symbol, size_t at)
{
  return symbol[at] == '(' || (symbol[at] == '.' && at) || !strncmp(symbol + at, " [clone", strlen(" [clone"));
}

/* The end of the name without its template arguments. */
static size_t bare_end(const char *symbol, size_t start, size_t end)
{
  unsigned depth = 0;

  for (size_t i = end; i > start && symbol[end - 1] == '>'; i--) {
    depth += symbol[i - 1] == '>';
    depth -= symbol[i - 1] == '<';
    if (!depth)
      return i - 1;
  }
  return end;
}

struct analysis_spelling analysis_symbol_spell(const char *symbol)
{
  struct analysis_spelling spelling = {.name = symbol};
  size_t start = 0, sign = 0, i = 0;
  int depth = 0;

  while (symbol[i]) {
    size_t length = depth ? 0 : operator_length(symbol, i);

    if (length) {
      i = sign = i + length;
      continue;
    }
    if (!depth && !strncmp(symbol + i, NOBODY, strlen(NOBODY))) {
      i += strlen(NOBODY);
      continue;
    }
    if (!depth && is_end(symbol, i))
      break;
    if (!depth && !sign && symbol[i] == ' ') /* after the return type */
      start = i + 1;
    depth += strchr("<({", symbol[i]) != NULL;
    depth -= strchr(">)}", symbol[i]) != NULL;
    i++;
  }
  spelling.name += start;
  spelling.length = i - start;
  spelling.bare = bare_end(symbol, sign > start ? sign : start, i) - start;
  while (spelling.bare && spelling.name[spelling.bare - 1] == ' ') /* "operator< <int>" */
    spelling.bare--;
  return spelling;
}

/* Whether a symbol is this name, followed at most by parameters or the mark of a clone. */
static bool name_begins(const char *symbol, const char *name)
{
  size_t length = strlen(name);

  return !strncmp(symbol, name, length) && (!symbol[length] || symbol[length] == '(' || symbol[length] == '.');
}

bool analysis_symbol_is(const char *symbol, const char *mangled, const char *name)
{
  struct analysis_spelling spelling = {0};
  size_t length = strlen(name);

  if (!length)
    return false;
  if (symbol)
    spelling = analysis_symbol_spell(symbol);
  return (symbol && name_begins(symbol, name)) || (mangled && !strcmp(mangled, name)) ||
         (length == spelling.length && !strncmp(spelling.name, name, length)) ||
         (length == spelling.bare && !strncmp(spelling.name, name, length));
}
