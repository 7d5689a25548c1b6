/* SPDX-License-Identifier: Apache-2.0
 *
 * The words and classes of the branch kinds, from branch_kind.def.
 */
#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/branch.h"

static const struct {
  const char *word;
  enum lb_branch_class class;
} kinds[LB_BRANCH_KINDS] = {
#define LB_BRANCH_KIND(name, word, class, is_event) [LB_BRANCH_##name] = {word, LB_CLASS_##class},
#include "lastbranch/branch_kind.def"
#undef LB_BRANCH_KIND
};

const char *lb_branch_kind_name(unsigned kind)
{
  return kind < LB_BRANCH_KINDS ? kinds[kind].word : "?";
}

int lb_branch_kind_find(const char *word)
{
  for (int kind = 0; kind < LB_BRANCH_KINDS; kind++)
    if (!strcmp(kinds[kind].word, word))
      return kind;
  return LB_E_NO_KIND;
}

enum lb_branch_class lb_branch_kind_class(unsigned kind)
{
  assert(kind < LB_BRANCH_KINDS);
  return kinds[kind].class;
}
