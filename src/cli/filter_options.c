/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that choose among the branches of a trace.
 */
#include "cli/filter_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "cli/cli.h"

void filter_options_init(struct filter_options *options)
{
  *options = (struct filter_options){0};
}

void filter_options_done(struct filter_options *options)
{
  free(options->modules);
  free(options->functions);
  free(options->from);
  free(options->to);
}

/* ---- kinds ---- */

/* Words for several kinds. */
static const struct {
  const char *word;
  uint32_t kinds;
} groups[] = {
#define KIND(name) (1u << LB_BRANCH_##name)
  {"calls", KIND(NEAR_REL_CALL) | KIND(NEAR_IND_CALL) | KIND(FAR_CALL)},
  {"returns", KIND(NEAR_RET) | KIND(FAR_RET) | KIND(IRET) | KIND(SYSRET) | KIND(SYSEXIT)},
  {"jumps", KIND(NEAR_REL_JMP) | KIND(NEAR_IND_JMP) | KIND(FAR_JMP)},
  {"indirect", KIND(NEAR_IND_CALL) | KIND(NEAR_IND_JMP)},
#undef KIND
};

static const uint32_t events = 0
#define LB_BRANCH_KIND(name, word, class, is_event) | (uint32_t)(is_event) << LB_BRANCH_##name
#include "lastbranch/branch_kind.def"
#undef LB_BRANCH_KIND
  ;

static const char *const classes[] = {
  [LB_CLASS_JCC] = "jcc",
  [LB_CLASS_NEAR_REL_CALL] = "near_rel_call",
  [LB_CLASS_NEAR_IND_CALL] = "near_ind_call",
  [LB_CLASS_NEAR_RET] = "near_ret",
  [LB_CLASS_NEAR_IND_JMP] = "near_ind_jmp",
  [LB_CLASS_NEAR_REL_JMP] = "near_rel_jmp",
  [LB_CLASS_FAR] = "far",
};

/* The kinds of a word; 0 if it is unknown. */
static uint32_t kinds_find(const char *word)
{
  int kind = lb_branch_kind_find(word);
  uint32_t kinds = 0;

  if (kind >= 0)
    return 1u << kind;
  if (!strcasecmp(word, "events"))
    return events;
  for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
    if (!strcasecmp(word, groups[i].word))
      return groups[i].kinds;
  for (unsigned i = 0; i < LB_BRANCH_KINDS; i++)
    if (!strcasecmp(word, classes[lb_branch_kind_class(i)]))
      kinds |= 1u << i;
  return kinds;
}

uint32_t filter_option_kinds(char *list, struct argp_state *state)
{
  uint32_t all = 0;
  char *word;

  while ((word = strsep(&list, ","))) {
    uint32_t kinds = kinds_find(word);

    if (!kinds)
      argp_error(
        state,
        "no kind '%s'; the kinds are jcc, call, call_ind, ret, jmp_ind, jmp, syscall, ... (the kinds of lbr sim), calls, returns, jumps, indirect, events, or a class such as near_ret or far",
        word);
    all |= kinds;
  }
  return all;
}

/* ---- places ---- */

uint64_t filter_option_number(const char *name, const char *argument, uint64_t max, struct argp_state *state)
{
  uint64_t value = 0;

  if (*argument == '-' || number_parse(argument, &value) < 0 || value > max)
    argp_error(state, "%s wants a number from 0 to %llu, not '%s'", name, (unsigned long long)max, argument);
  return value;
}

struct analysis_target filter_option_target(const char *name, char *argument, struct argp_state *state)
{
  struct analysis_target target = {0};
  int r = analysis_target_parse(argument, &target);

  if (r == -ERANGE)
    argp_error(state, "%s: the end of '%s' is before its start", name, argument);
  else if (r < 0)
    argp_error(state, "%s takes an address, a range of addresses, a function or a line", name);
  return target;
}

struct analysis_target filter_option_entry(const char *name, char *argument, struct argp_state *state)
{
  struct analysis_target target = filter_option_target(name, argument, state);

  if (target.symbol && !target.source && target.last == UINT64_MAX)
    target.last = 0;
  return target;
}

/* FUNCTION[+OFFSET][:NTH], MODULE:0xOFFSET[:NTH] or 0xADDRESS[:NTH]. C++ names have colons, too, but no number after
 * the last one. */
static struct analysis_position position_entry(const char *name, char *argument, struct argp_state *state)
{
  struct analysis_position position = {.kind = ANALYSIS_AT_ENTRY, .nth = 1};
  char *colon = strrchr(argument, ':');

  if (colon && colon != argument && strncmp(colon, ":0x", 3) != 0 && number_parse(colon + 1, &position.nth) >= 0)
    *colon = '\0';
  if (!position.nth)
    argp_error(state, "%s: NTH counts from 1", name);
  position.target = filter_option_entry(name, argument, state);
  return position;
}

struct analysis_position filter_option_position(const char *name, char *argument, struct argp_state *state)
{
  struct analysis_position position = {.kind = ANALYSIS_AT_NUMBER};

  if (!strcmp(argument, "end"))
    position.kind = ANALYSIS_AT_END;
  else if (!strcmp(argument, "crash"))
    position.kind = ANALYSIS_AT_CRASH;
  else if (*argument == '-' || !strncasecmp(argument, "0x", 2) || number_parse(argument, &position.number) < 0)
    return position_entry(name, argument, state);
  return position;
}

/* ---- the command line ---- */

static void *room(void *data, size_t size, size_t count, size_t *capacity, struct argp_state *state)
{
  void *grown = array_grow(data, size, count, capacity);

  if (!grown)
    argp_failure(state, CLI_FAILURE, 0, "no memory");
  return grown;
}

static void module_add(struct filter_options *options, const char *name, struct argp_state *state)
{
  size_t *count = &options->filter.module_count;

  options->modules = room(options->modules, sizeof(*options->modules), *count, &options->module_capacity, state);
  options->modules[(*count)++] = name;
  options->filter.modules = options->modules;
}

static void function_add(struct filter_options *options, const char *name, struct argp_state *state)
{
  size_t *count = &options->filter.function_count;

  options->functions =
    room(options->functions, sizeof(*options->functions), *count, &options->function_capacity, state);
  options->functions[(*count)++] = name;
  options->filter.functions = options->functions;
}

static void from_add(struct filter_options *options, char *argument, struct argp_state *state)
{
  size_t *count = &options->filter.from_count;

  options->from = room(options->from, sizeof(*options->from), *count, &options->from_capacity, state);
  options->from[(*count)++] = filter_option_target("--from", argument, state);
  options->filter.from = options->from;
}

static void to_add(struct filter_options *options, char *argument, struct argp_state *state)
{
  size_t *count = &options->filter.to_count;

  options->to = room(options->to, sizeof(*options->to), *count, &options->to_capacity, state);
  options->to[(*count)++] = filter_option_target("--to", argument, state);
  options->filter.to = options->to;
}

enum { KEY_KIND = 0x1000, KEY_MODULE, KEY_FUNCTION, KEY_FROM, KEY_TO };

/* clang-format off */
#define COMMON_OPTIONS \
  {"kind", KEY_KIND, "LIST", 0, \
   "Only branches of these kinds: jcc,call,ret,... or calls, returns, jumps, indirect, events", 0}, \
  {"module", KEY_MODULE, "NAME", 0, "Only branches from or to this file: its name, or its path", 0}, \
  {"function", KEY_FUNCTION, "NAME", 0, "Only branches from or to this function", 0}, \
  {"from", KEY_FROM, "PLACE", 0, "Only branches from there: ADDRESS, ADDRESS..ADDRESS, FUNCTION, FUNCTION+OFFSET, MODULE+ADDRESS or FILE:LINE", 0}
/* clang-format on */

static const struct argp_option options[] = {
  COMMON_OPTIONS,
  {"to", KEY_TO, "PLACE", 0, "Only branches to there", 0},
  {0},
};

/* The same for a command that uses "to" for something else. */
static const struct argp_option export_options[] = {
  COMMON_OPTIONS,
  {"into", KEY_TO, "PLACE", 0, "Only branches to there", 0},
  {0},
};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct filter_options *filter = state->input;

  switch (key) {
  case KEY_KIND:
    filter->filter.kinds |= filter_option_kinds(argument, state);
    return 0;
  case KEY_MODULE:
    module_add(filter, argument, state);
    return 0;
  case KEY_FUNCTION:
    function_add(filter, argument, state);
    return 0;
  case KEY_FROM:
    from_add(filter, argument, state);
    return 0;
  case KEY_TO:
    to_add(filter, argument, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp filter_branches = {.options = options, .parser = option_parse};

const struct argp filter_export = {.options = export_options, .parser = option_parse};
