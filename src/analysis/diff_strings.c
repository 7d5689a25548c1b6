/* SPDX-License-Identifier: Apache-2.0
 *
 * The string functions of the C library. Their branches depend on how strings are aligned, so two runs at different
 * addresses take different paths in them. lbr diff ignores such a difference if both runs return to the same place. If
 * the function returned different values, the caller's branches show it.
 */
#include <string.h>

#include "analysis/diff_inside.h"
#include "base/base.h"

#define STEP 64u /* branches that are read at a time */

/* ---- the functions ---- */

/* Functions of which the GNU C library has vectorised versions. */
static const char *const functions[] = {
  "bcmp",    "bcopy",   "bzero",     "index",   "memccpy", "memchr",    "memcmp",  "memcmpeq", "memcpy",
  "memmove", "mempcpy", "memrchr",   "memset",  "rindex",  "rawmemchr", "stpcpy",  "stpncpy",  "strcasecmp",
  "strcat",  "strchr",  "strchrnul", "strcmp",  "strcpy",  "strcspn",   "strlen",  "strncat",  "strncasecmp",
  "strncmp", "strncpy", "strnlen",   "strpbrk", "strrchr", "strspn",    "strstr",  "wcscat",   "wcschr",
  "wcscmp",  "wcscpy",  "wcslen",    "wcsncat", "wcsncmp", "wcsncpy",   "wcsnlen", "wcsrchr",  "wcpcpy",
  "wcpncpy", "wmemchr", "wmemcmp",   "wmemset", "wmemcpy", "wmemmove",
};

/* Matches "strcmp" in "strcmp", "__strcmp_avx2", "__GI_strcmp" and "strcmp@@GLIBC_2.2.5". */
static bool is_function(const char *symbol)
{
  size_t length;

  symbol += strspn(symbol, "_");
  if (!strncmp(symbol, "GI_", 3))
    symbol += 3 + strspn(symbol + 3, "_");
  length = strcspn(symbol, "_@.");
  for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
    if (strlen(functions[i]) == length && !memcmp(functions[i], symbol, length))
      return true;
  return false;
}

/* The names of one version of a function: in a static program, too, these belong to the C library. */
static bool is_version(const char *symbol)
{
  static const char *const marks[] = {"_sse2", "_sse4", "_ssse3", "_avx", "_evex", "_erms"};

  for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
    if (!strncmp(symbol, "__", 2) && strstr(symbol, marks[i]))
      return true;
  return false;
}

/* The dynamic linker has copies of its own. */
static bool is_libc(const char *module)
{
  static const char *const names[] = {"libc.so", "libc-2.", "ld-linux", "ld-2.", "ld.so"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (!strncmp(module, names[i], strlen(names[i])))
      return true;
  return false;
}

enum code { OTHER_CODE, STRING_CODE, NAMELESS_CODE /* of the C library */ };

static enum code code_at(const struct diff_side *side, uint64_t address)
{
  struct analysis_location location = analysis_names_locate(side->names, side->space, address);
  struct analysis_name name;

  if (!analysis_names_symbol(side->names, &location, &name))
    return OTHER_CODE;
  if (!name.symbol)
    return name.module && is_libc(name.module) && side->has_symbols ? NAMELESS_CODE : OTHER_CODE;
  return ((name.module && is_libc(name.module)) || is_version(name.symbol)) && is_function(name.symbol) ? STRING_CODE
                                                                                                        : OTHER_CODE;
}

/* ---- skipping them ---- */

/* The way of one run out of such a function. */
struct way {
  size_t count; /* branches, including the one that leaves */
  const struct analysis_diff_branch *last;
};

static bool is_jump(enum lb_branch_kind kind)
{
  return kind == LB_BRANCH_JCC || kind == LB_BRANCH_NEAR_REL_JMP || kind == LB_BRANCH_NEAR_IND_JMP;
}

/* The effect of a branch on the way: 1 if it leaves, 0 if it continues, -1 if this is not a string function. A function
 * without a name may be one if it calls nothing and has only jumps and a return. */
static int way_step(const struct diff_side *side, const struct analysis_diff_branch *branch, bool may_be_nameless)
{
  enum code from = code_at(side, analysis_from(&branch->branch)), to;

  if (from == OTHER_CODE || (from == NAMELESS_CODE && !may_be_nameless))
    return -1;
  if (branch->branch.kind == LB_BRANCH_NEAR_RET && from == NAMELESS_CODE)
    return 1;
  to = code_at(side, analysis_to(&branch->branch));
  if (from == NAMELESS_CODE)
    return is_jump(branch->branch.kind) && to == NAMELESS_CODE ? 0 : -1;
  return to != STRING_CODE;
}

/* Returns 1; 0 if it does not begin in a string function, or does not leave within DIFF_WINDOW branches; or negative.
 */
static int way_find(struct diff_side *side, bool may_be_nameless, struct way *ret_way)
{
  for (size_t i = 0; i < DIFF_WINDOW; i++) {
    const struct analysis_diff_branch *branch;
    int r = diff_side_queued(side) > i ? 0 : diff_side_fill(side, i + STEP);

    if (r < 0)
      return r;
    if (diff_side_queued(side) <= i)
      return 0;
    branch = diff_side_queue(side) + i;
    r = way_step(side, branch, may_be_nameless);
    if (r > 0)
      *ret_way = (struct way){i + 1, branch};
    if (r)
      return r > 0;
  }
  return 0;
}

int diff_strings_pass(struct diff_side sides[2], const struct analysis_diff_branch *entry,
                      struct analysis_diff_branch *ret_return)
{
  bool may_be_nameless = entry && entry->branch.kind != LB_BRANCH_NEAR_RET && !sides[0].filter;
  struct way ways[2];

  for (unsigned i = 0; i < 2; i++) {
    int r = way_find(&sides[i], may_be_nameless, &ways[i]);

    if (r <= 0)
      return r;
  }
  if (ways[0].last->branch.kind != ways[1].last->branch.kind || ways[0].last->to.id != ways[1].last->to.id ||
      ways[0].last->to.address != ways[1].last->to.address)
    return 0;
  *ret_return = *ways[0].last;
  diff_side_drop(&sides[0], ways[0].count);
  diff_side_drop(&sides[1], ways[1].count);
  return 1;
}
