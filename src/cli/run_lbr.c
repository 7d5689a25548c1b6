/* SPDX-License-Identifier: Apache-2.0
 *
 * What the LBR stack of a processor would hold of a program's branches: a recorder of that processor, switched on as an
 * operating system would, with the fields of its filter register that the user names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/register.h"
#include "cli/run_session.h"

/* The register with the filters: of architectural LBR also the one that switches it on. */
static bool filter_register(const struct lb_cpu *cpu, enum lb_register *ret_id)
{
  *ret_id = lb_cpu_register(cpu, LB_REG_LBR_CTL).count ? LB_REG_LBR_CTL : LB_REG_LBR_SELECT;
  return lb_cpu_register(cpu, *ret_id).count;
}

static uint64_t field_bits(const struct lb_cpu *cpu, enum lb_register id, const char *name)
{
  const struct field_question question = {.id = id, .name = name, .bit = -1};
  struct lb_field field;

  return field_find(cpu, &question, &field) < 0 ? 0 : field_mask(&field);
}

/* ---- the filter ---- */

static void filter_complain(const struct lb_cpu *cpu, enum lb_register id, const char *word)
{
  struct text fields = {0};
  struct lb_field field;

  for (unsigned i = 0; lb_cpu_field(cpu, id, i, &field) >= 0; i++)
    text_addf(&fields, "%s%s", i ? ", " : "", field.name);
  cli_error("no filter '%s' on %s; it has: %s", word, cpu->title, text_string(&fields));
  text_done(&fields);
}

/* The value of a list of fields of one bit. */
static int filter_parse(const struct lb_cpu *cpu, enum lb_register id, const char *list, uint64_t *ret_value)
{
  char *copy = strdup(list), *rest = copy, *word;
  uint64_t value = 0;
  int r = copy ? 0 : -1;

  while (r >= 0 && (word = strsep(&rest, ","))) {
    uint64_t bits = field_bits(cpu, id, word);

    if (!bits || (bits & (bits - 1))) {
      filter_complain(cpu, id, word);
      r = LB_E_NO_FIELD;
    }
    value |= bits;
  }
  free(copy);
  if (r >= 0)
    *ret_value = value;
  return r;
}

/* Without a filter everything is recorded: of architectural LBR that takes a 1 for each kind. */
static uint64_t filter_of_all(const struct lb_cpu *cpu, enum lb_register id)
{
  static const char *const kinds[] = {"COND",          "NEAR_REL_JMP", "NEAR_IND_JMP", "NEAR_REL_CALL",
                                      "NEAR_IND_CALL", "NEAR_RET",     "OTHER_BRANCH"};
  uint64_t value = 0;

  for (size_t i = 0; id == LB_REG_LBR_CTL && i < sizeof(kinds) / sizeof(*kinds); i++)
    value |= field_bits(cpu, id, kinds[i]);
  return value;
}

/* ---- switching on ---- */

/* Complains. Returns 0 or negative. */
static int register_write(struct lb_recorder *recorder, enum lb_register id, uint64_t value)
{
  struct lb_register_range range = lb_cpu_register(recorder->cpu, id);

  if (range.count && lb_recorder_wrmsr(recorder, range.first, value) == LB_MSR_OK)
    return 0;
  cli_error("the branch records of %s cannot be switched on", recorder->cpu->title);
  return LB_E_NO_REGISTER;
}

static int lbr_enable(struct lb_recorder *recorder, const struct run_arguments *arguments)
{
  const struct lb_cpu *cpu = arguments->cpu;
  enum lb_register id;
  bool has_filter = filter_register(cpu, &id);
  uint64_t value = filter_of_all(cpu, id), version_2 = field_bits(cpu, LB_REG_AMD_DBG_EXTN_CFG, "LBRV2EN");
  int r = 0;

  if (arguments->filter && !has_filter) {
    cli_error("%s has no filter for its branch records", cpu->title);
    return LB_E_NO_REGISTER;
  }
  if (arguments->filter)
    r = filter_parse(cpu, id, arguments->filter, &value);
  if (r < 0)
    return r;
  if (id == LB_REG_LBR_CTL)
    return register_write(recorder, id, value | field_bits(cpu, id, "LBREN") | field_bits(cpu, id, "USR"));
  if (arguments->filter)
    r = register_write(recorder, id, value);
  if (r >= 0 && version_2)
    return register_write(recorder, LB_REG_AMD_DBG_EXTN_CFG, version_2);
  return r < 0 ? r : register_write(recorder, LB_REG_DEBUGCTL, lb_cpu_debugctl(cpu, LB_DEBUGCTL_LBR));
}

int run_lbr_new(const struct run_arguments *arguments, struct lb_recorder **ret_recorder)
{
  struct lb_recorder *recorder = aligned_alloc(_Alignof(struct lb_recorder), sizeof(*recorder));
  int r = recorder ? lb_recorder_init(recorder, arguments->cpu, NULL, 0) : -1;

  if (r < 0 && recorder)
    cli_error("%s has no branch-recording unit; 'lbr cpu --list' shows those that have one", arguments->cpu->title);
  if (r >= 0) {
    lb_recorder_long_mode(recorder, true);
    r = lbr_enable(recorder, arguments);
    if (r >= 0 && !lb_recorder_is_recording(recorder)) {
      cli_error("%s records branches only when a counter overflows, or not at all: choose another CPU",
                arguments->cpu->title);
      r = LB_E_NO_UNIT;
    }
  }
  if (r < 0) {
    free(recorder);
    return r;
  }
  *ret_recorder = recorder;
  return 0;
}

/* ---- branches ---- */

static bool kind_is_event(unsigned kind)
{
  static const bool is_event[] = {
#define LB_BRANCH_KIND(name, word, class, is_event) is_event,
#include "lastbranch/branch_kind.def"
#undef LB_BRANCH_KIND
  };

  return kind < LB_BRANCH_KINDS && is_event[kind];
}

void run_lbr_feed(struct lb_recorder *recorder, const struct lb_branch *branches, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const struct lb_branch *branch = &branches[i];

    if (kind_is_event(branch->kind))
      lb_recorder_event(recorder, &(struct lb_event){.current = branch->from,
                                                     .next = branch->from,
                                                     .handler = branch->to,
                                                     .kind = branch->kind,
                                                     .from_cpl = branch->from_cpl,
                                                     .to_cpl = branch->to_cpl});
    else
      lb_recorder_branch(recorder, branch);
  }
}
