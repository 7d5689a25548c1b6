/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the wanted branches. A program takes few branches again and again, so the answer for an address is cached.
 */
#include "analysis/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/extent.h"
#include "analysis/streams.h"
#include "symbol/symbol.h"
#include "trace/trace.h"

#define ANSWERS (1u << 13)
#define INSTRUCTION_MAX 15u /* bytes */

/* Flags of an address. */
enum { IN_MODULE = 1 << 0, IN_FUNCTION = 1 << 1, IN_FROM = 1 << 2, IN_TO = 1 << 3 };

struct answer {
  uint64_t address;
  uint32_t space;
  uint32_t generation; /* of the modules; 0: there is no answer */
  uint32_t bits;
};

struct analysis_filter {
  struct analysis_filter_options options;
  struct analysis_names *names;
  struct stream_list streams;
  uint32_t either;      /* bits that one end or the other must have */
  uint32_t kinds;       /* never 0 */
  bool wants_addresses; /* the filter asks for more than kinds */
  uint32_t generation;
  struct answer answers[ANSWERS];
};

bool analysis_filter_is_empty(const struct analysis_filter_options *options)
{
  return !options->kinds && !options->module_count && !options->function_count && !options->from_count &&
         !options->to_count;
}

static bool targets_have_symbols(const struct analysis_target *targets, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (targets[i].symbol)
      return true;
  return false;
}

bool analysis_filter_is_region(const struct analysis_filter_options *options)
{
  return !options->kinds && !options->from_count && !options->to_count &&
         !options->module_count != !options->function_count;
}

bool analysis_filter_needs_names(const struct analysis_filter_options *options)
{
  return options->module_count || options->function_count || targets_have_symbols(options->from, options->from_count) ||
         targets_have_symbols(options->to, options->to_count);
}

bool analysis_filter_needs_starts(const struct analysis_filter_options *options)
{
  for (size_t i = 0; i < options->function_count; i++)
    if (analysis_word_is_place(options->functions[i]))
      return true;
  return false;
}

int analysis_filter_new(const struct analysis_filter_options *options, struct analysis_names *names,
                        struct analysis_filter **ret_filter)
{
  struct analysis_filter *filter = calloc(1, sizeof(*filter));

  if (!filter)
    return -ENOMEM;
  filter->options = *options;
  filter->names = names;
  filter->generation = 1;
  filter->either = (options->module_count ? IN_MODULE : 0) | (options->function_count ? IN_FUNCTION : 0);
  filter->kinds = options->kinds ? options->kinds : UINT32_MAX;
  filter->wants_addresses = filter->either || options->from_count || options->to_count;
  *ret_filter = filter;
  return 0;
}

void analysis_filter_free(struct analysis_filter *filter)
{
  if (!filter)
    return;
  stream_list_done(&filter->streams);
  free(filter);
}

/* The cached answers are no longer valid. */
static void answers_forget(struct analysis_filter *filter)
{
  if (++filter->generation)
    return;
  memset(filter->answers, 0, sizeof(filter->answers));
  filter->generation = 1;
}

int analysis_filter_record(struct analysis_filter *filter, const struct lb_trace_record *record)
{
  if (record->type == LB_TRACE_MODULE || trace_record_names(record))
    answers_forget(filter);
  return record->type == LB_TRACE_STREAM ? stream_list_describe(&filter->streams, &record->stream) : 0;
}

/* ---- names ---- */

/* A literal name always matches, even if it would not as a pattern: "[vdso]". */
static bool name_fits(const char *pattern, const char *name)
{
  return name && (!strcmp(pattern, name) || !fnmatch(pattern, name, 0));
}

static bool is_in_module(const struct analysis_filter *filter, uint32_t file)
{
  for (size_t i = 0; i < filter->options.module_count; i++)
    if (analysis_module_is(filter->names, file, filter->options.modules[i]))
      return true;
  return false;
}

/* Matches "A::f<int>" and "A::f" in "int A::f<int>(char) const". */
static bool function_is_called(const char *pattern, const char *symbol)
{
  struct analysis_spelling spelling;
  char name[SYMBOL_NAME_MAX + 1];

  if (!symbol)
    return false;
  spelling = analysis_symbol_spell(symbol);
  if (!spelling.length || spelling.length >= sizeof(name) || spelling.name[spelling.length] == '.')
    return false; /* a clone is a function of its own */
  memcpy(name, spelling.name, spelling.length);
  name[spelling.length] = '\0';
  if (name_fits(pattern, name))
    return true;
  name[spelling.bare] = '\0';
  return spelling.bare && name_fits(pattern, name);
}

static bool function_fits(const char *pattern, const struct analysis_name *name)
{
  return name_fits(pattern, name->symbol) || name_fits(pattern, name->mangled) ||
         function_is_called(pattern, name->symbol);
}

/* Whether the location is in the function that contains a place, which need not have a symbol. */
static bool is_in_place(const struct analysis_filter *filter, const char *word,
                        const struct analysis_location *location)
{
  struct analysis_extent extent;

  if (!analysis_word_is_place(word))
    return false;
  analysis_extent_find(filter->names, location, &extent);
  return analysis_word_names(word, filter->names, &extent);
}

/* `name` is NULL if nothing is known. */
static bool is_in_function(const struct analysis_filter *filter, const struct analysis_name *name,
                           const struct analysis_location *location)
{
  for (size_t i = 0; i < filter->options.function_count; i++)
    if ((name && function_fits(filter->options.functions[i], name)) ||
        (filter->names && is_in_place(filter, filter->options.functions[i], location)))
      return true;
  return false;
}

/* ---- targets ---- */

static bool is_between(uint64_t value, uint64_t first, uint64_t last)
{
  return value >= first && value <= last;
}

/* MODULE:NAME */
static bool inner_fits(const struct analysis_target *target, const struct analysis_name *name)
{
  size_t length = target->inner ? (size_t)(target->inner - 1 - target->symbol) : 0;

  return length && name->module && strlen(name->module) == length && !memcmp(name->module, target->symbol, length) &&
         function_fits(target->inner, name);
}

/* `name` is NULL if nothing is known. */
static bool target_has(const struct analysis_target *target, struct analysis_names *names,
                       const struct analysis_name *name, uint64_t address)
{
  if (!target->symbol)
    return is_between(address, target->first, target->last);
  if (!name)
    return false;
  if (target->source) {
    struct analysis_location location = {.file = name->file, .address = name->linked};

    return analysis_target_is_line(target, names, &location);
  }
  if (analysis_target_is_module(target, name->module) && is_between(name->linked, target->first, target->last))
    return true;
  return name->symbol && (function_fits(target->symbol, name) || inner_fits(target, name)) &&
         is_between(name->offset, target->first, target->last);
}

bool analysis_target_has(const struct analysis_target *target, struct analysis_names *names, uint32_t space,
                         uint64_t address)
{
  struct analysis_name name;
  bool has_name = target->symbol && names && analysis_names_find(names, space, address, &name);

  return target_has(target, names, has_name ? &name : NULL, address);
}

bool analysis_target_is_entered(const struct analysis_target *target, struct analysis_names *names, uint32_t space,
                                const struct lb_branch *branch)
{
  enum lb_branch_class class = lb_branch_kind_class(branch->kind);
  struct analysis_name from, to;

  if (!analysis_target_has(target, names, space, analysis_to(branch)))
    return false;
  if (class == LB_CLASS_FAR && analysis_to(branch) - analysis_from(branch) <= INSTRUCTION_MAX)
    return false; /* a system call as programs see it: to the next instruction, whichever function that is in */
  if (!target->symbol || target->first || target->last || class == LB_CLASS_NEAR_REL_CALL ||
      class == LB_CLASS_NEAR_IND_CALL || class == LB_CLASS_FAR)
    return true;
  if (!analysis_names_find(names, space, analysis_from(branch), &from) ||
      !analysis_names_find(names, space, analysis_to(branch), &to))
    return true;
  return from.file != to.file || !from.symbol || from.start != to.start;
}

static bool is_in_targets(const struct analysis_filter *filter, const struct analysis_target *targets, size_t count,
                          const struct analysis_name *name, uint64_t address)
{
  for (size_t i = 0; i < count; i++)
    if (target_has(&targets[i], filter->names, name, address))
      return true;
  return false;
}

/* ---- addresses ---- */

/* `name` is NULL if nothing is known. */
static uint32_t place_judge(const struct analysis_filter *filter, const struct analysis_name *name,
                            const struct analysis_location *location, uint64_t address)
{
  const struct analysis_filter_options *options = &filter->options;
  uint32_t bits = 0;

  if (name && is_in_module(filter, name->file))
    bits |= IN_MODULE;
  if (options->function_count && is_in_function(filter, name, location))
    bits |= IN_FUNCTION;
  if (is_in_targets(filter, options->from, options->from_count, name, address))
    bits |= IN_FROM;
  if (is_in_targets(filter, options->to, options->to_count, name, address))
    bits |= IN_TO;
  return bits;
}

static uint32_t address_judge(struct analysis_filter *filter, uint32_t space, uint64_t address)
{
  struct analysis_name name;
  struct analysis_location location = {ANALYSIS_NO_FILE, space, address};
  bool has_name = filter->names && analysis_names_find(filter->names, space, address, &name);

  if (has_name)
    location = (struct analysis_location){.file = name.file, .address = name.linked};
  return place_judge(filter, has_name ? &name : NULL, &location, address);
}

static inline struct answer *answer_of(struct analysis_filter *filter, uint64_t address)
{
  return &filter->answers[(address ^ address >> 14) * 0x9E3779B1u >> 8 & (ANSWERS - 1)];
}

static inline uint32_t address_bits(struct analysis_filter *filter, uint32_t space, uint64_t address)
{
  struct answer *answer = answer_of(filter, address);

  if (answer->address != address || answer->space != space || answer->generation != filter->generation)
    *answer = (struct answer){address, space, filter->generation, address_judge(filter, space, address)};
  return answer->bits;
}

static inline bool ends_are_wanted(const struct analysis_filter *filter, uint32_t from, uint32_t to)
{
  return (!filter->options.from_count || (from & IN_FROM)) && (!filter->options.to_count || (to & IN_TO)) &&
         ((from | to) & filter->either) == filter->either;
}

static inline bool branch_is_wanted(struct analysis_filter *filter, uint32_t space, const struct lb_branch *branch)
{
  uint32_t from;

  if (!(filter->kinds >> branch->kind & 1))
    return false;
  if (!filter->wants_addresses)
    return true;
  from = address_bits(filter, space, analysis_from(branch));
  if (filter->options.from_count && !(from & IN_FROM))
    return false;
  return ends_are_wanted(filter, from, address_bits(filter, space, analysis_to(branch)));
}

size_t analysis_filter_branches(struct analysis_filter *filter, const struct lb_trace_branches *branches,
                                uint16_t places[LB_TRACE_BATCH_MAX])
{
  uint32_t number = branches->stream;
  uint32_t space = number < filter->streams.count ? filter->streams.streams[number].space : STREAM_NO_SPACE;
  size_t count = 0;

  for (size_t i = 0; i < branches->count && i < LB_TRACE_BATCH_MAX; i++) {
    places[count] = (uint16_t)i;
    count += branch_is_wanted(filter, space, &branches->branches[i]);
  }
  return count;
}

bool analysis_filter_address(struct analysis_filter *filter, uint32_t space, uint64_t address)
{
  return !filter->either || (address_bits(filter, space, address) & filter->either) == filter->either;
}

/* ---- locations ---- */

static uint32_t location_judge(struct analysis_filter *filter, const struct analysis_location *location)
{
  struct analysis_name name;
  bool has_name = filter->names && analysis_names_symbol(filter->names, location, &name);

  return place_judge(filter, has_name ? &name : NULL, location, location->address);
}

/* Answers are cached under the number of the file, instead of the address space. */
static uint32_t location_bits(struct analysis_filter *filter, const struct analysis_location *location)
{
  struct answer *answer = answer_of(filter, location->address);

  if (location->file == ANALYSIS_NO_FILE)
    return location_judge(filter, location);
  if (answer->address != location->address || answer->space != location->file ||
      answer->generation != filter->generation)
    *answer = (struct answer){location->address, location->file, filter->generation, location_judge(filter, location)};
  return answer->bits;
}

bool analysis_filter_file(const struct analysis_filter *filter, uint32_t file)
{
  return !filter->options.module_count || (filter->names && is_in_module(filter, file));
}

bool analysis_filter_function(struct analysis_filter *filter, const struct analysis_location *location)
{
  return !filter->options.function_count || location_bits(filter, location) & IN_FUNCTION;
}

bool analysis_filter_location(struct analysis_filter *filter, const struct analysis_location *location)
{
  return !filter->either || (location_bits(filter, location) & filter->either) == filter->either;
}

bool analysis_filter_block(struct analysis_filter *filter, const struct analysis_block *block)
{
  return analysis_filter_location(filter, &block->first);
}

bool analysis_filter_jump(struct analysis_filter *filter, const struct analysis_jump *jump)
{
  if (!(filter->kinds >> jump->kind & 1))
    return false;
  return !filter->wants_addresses ||
         ends_are_wanted(filter, location_bits(filter, &jump->from), location_bits(filter, &jump->to));
}
