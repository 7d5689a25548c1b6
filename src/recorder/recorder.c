/* SPDX-License-Identifier: Apache-2.0
 *
 * Creation of a recording unit, and the precomputation for branches: unit_update turns control registers into `armed`
 * and the filter masks, so that a branch needs only a few tests. Every function that changes control state ends with a
 * call of unit_update.
 */
#include <assert.h>
#include <string.h>

#include "recorder/unit.h"

static uint32_t armed_by_amd(const struct lb_recorder *r)
{
  uint32_t armed = 0;

  if (unit_has_pair(r) && unit_debugctl(r, LB_DEBUGCTL_LBR))
    armed |= ARMED_PAIR;
  if (r->lbr.is_capturing && (r->lbr.extn & EXTN_BRSMEN))
    armed |= ARMED_BRS;
  return armed;
}

void unit_update(struct lb_recorder *r)
{
  uint32_t armed = armed_by_amd(r);

  if (lbr_is_on(r))
    armed |= ARMED_LBR;
  if (unit_debugctl(r, LB_DEBUGCTL_TR) && !r->is_pt_on)
    armed |= ARMED_TR;
  if (unit_debugctl(r, LB_DEBUGCTL_BTF))
    armed |= ARMED_BTF;
  r->armed = armed;
  r->wrap = r->depth * sizeof(struct lb_slot) - 1;
  bts_update(r);
  lbr_filter(r);
}

int lb_recorder_init(struct lb_recorder *r, const struct lb_cpu *cpu, const struct lb_host *host, uint32_t options)
{
  if (!cpu->debugctl)
    return LB_E_NO_UNIT;
  memset(r, 0, sizeof(*r));
  r->cpu = cpu;
  r->options = options;
  if (host)
    r->host = *host;
  r->linear = lb_cpu_is_linear(cpu) ? UINT64_MAX : 0;
  r->ds.flags[0] = cpu->ds->has_predicted ? BTS_PREDICTED : 0;
  lbr_format(r);
  memset(r->fast, 0xFF, sizeof(r->fast)); /* LB_LONG_WAY, also for invalid kinds */
  assert(lb_cpu_depth(cpu) <= LB_DEPTH_MAX);
  assert(cpu->pmu->counters <= LB_COUNTERS_MAX && cpu->pmu->fixed <= LB_FIXED_MAX);
  lb_recorder_reset_cold(r);
  return 0;
}

void lb_recorder_pair(struct lb_recorder *one, struct lb_recorder *other)
{
  assert(one != other && one->cpu == other->cpu);
  one->sibling = other;
  other->sibling = one;
  lbr_share_select(one);
}

/* ---- options by name ---- */

static const struct {
  const char *name, *text;
  unsigned basis;
} options[] = {
#define LB_OPTION(name_, word, basis_, text_) {word, text_, LB_BASIS_##basis_},
#include "lastbranch/option.def"
#undef LB_OPTION
};

const char *lb_option_name(unsigned option)
{
  return option < LB_OPTIONS ? options[option].name : NULL;
}

const char *lb_option_text(unsigned option)
{
  return option < LB_OPTIONS ? options[option].text : NULL;
}

unsigned lb_option_basis(unsigned option)
{
  return option < LB_OPTIONS ? options[option].basis : LB_BASIS_NONE;
}

int lb_option_find(const char *word)
{
  for (unsigned i = 0; i < LB_OPTIONS; i++)
    if (!strcmp(word, options[i].name))
      return (int)i;
  return LB_E_NO_OPTION;
}
