/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile for gcc -fauto-profile: AutoFDO's gcov file, version 2, as gcc 12 reads it (gcc/auto-profile.cc): strings
 * with their lengths in bytes. (AutoFDO 0.19 itself writes the lengths in words, which makes gcc 12 crash.) Then come
 * functions: the number of entries, the counts of its lines, relative to the line of its declaration, and the functions
 * inlined into it, in the same form. The count of a line is that of its most executed instruction. Discriminators would
 * do harm: gcc 12 drops them, and keeps the last count that it reads.
 */
#include <errno.h>

#include "export/binary.h"
#include "export/gcov_table.h"
#include "symbol/symbol.h"

#define MAGIC 0x67636461u /* "gcda" */
#define VERSION 2u
#define TAG_STRINGS 0xAA000000u
#define TAG_FUNCTIONS 0xAC000000u
#define TAG_MODULES 0xAE000000u
#define TARGET_INDIRECT_CALL 7u
#define OFFSET_MAX 0xFFFFu

struct gcov {
  uint32_t file;
  struct gcov_table table;
  struct tally instructions;
};

/* ---- the function of an instruction ---- */

/* The line relative to the function's declaration. Returns false if it is unknown. */
static bool frame_offset(const struct symbol_frame *frame, uint32_t *ret_offset)
{
  if (!frame->line || !frame->declared || frame->line < frame->declared || frame->line - frame->declared > OFFSET_MAX)
    return false;
  *ret_offset = frame->line - frame->declared;
  return true;
}

/* Descends into an inlined call: to the instance of `name` at `offset` of *instance. */
static int instance_enter(struct gcov_table *table, uint32_t *instance, uint32_t offset, const char *name)
{
  struct gcov_item key = {.parent = *instance, .kind = GCOV_CALL, .offset = offset};
  const struct gcov_item *item;
  int r = gcov_string(table, name, &key.name);

  item = r < 0 ? NULL : gcov_item(table, &key);
  if (!item)
    return -ENOMEM;
  *instance = item->instance;
  return 0;
}

/* Finds the instance of a function that an address belongs to, and the line in it. Returns 1; 0 if it is unknown; or
 * -ENOMEM. */
static int place_find(struct export_job *job, uint64_t address, uint32_t *ret_instance, uint32_t *ret_offset)
{
  struct gcov *gcov = job->state;
  struct symbol_place place = {0};
  uint32_t offset = 0;
  int r = 0;

  if (!analysis_names_place(job->names, &(struct analysis_location){.file = gcov->file, .address = address}, &place) ||
      !place.frame_count || place.frame_count == SYMBOL_FRAMES_MAX) /* there may be more frames, which are unknown */
    return 0;
  for (size_t i = 0; i < place.frame_count; i++)
    if (!place.frames[i].linkage || !frame_offset(&place.frames[i], &offset))
      return 0;
  *ret_instance = 0;
  *ret_offset = 0;
  for (size_t i = place.frame_count; i-- > 0 && r >= 0;) {
    r = instance_enter(&gcov->table, ret_instance, *ret_offset, place.frames[i].linkage);
    frame_offset(&place.frames[i], ret_offset);
  }
  return r < 0 ? r : 1;
}

/* ---- counts ---- */

static int instruction_count(struct export_job *job, const struct tally_item *instruction)
{
  struct gcov *gcov = job->state;
  struct gcov_item key = {.kind = GCOV_LINE};
  struct gcov_item *item;
  int r = place_find(job, instruction->from, &key.parent, &key.offset);

  if (r <= 0)
    return r;
  item = gcov_item(&gcov->table, &key);
  if (!item)
    return -ENOMEM;
  item->count = instruction->count > item->count ? instruction->count : item->count;
  return 0;
}

/* The real function at an address. */
struct function {
  const char *name; /* the linker's name; NULL if unknown */
  bool has_lines;   /* from the debug information */
  bool is_start;    /* it begins there */
};

static struct function function_at(struct export_job *job, const struct analysis_location *location)
{
  struct symbol_place place = {0};
  struct function function = {0};

  if (!analysis_names_place(job->names, location, &place))
    return function;
  if (place.frame_count && place.frame_count < SYMBOL_FRAMES_MAX)
    function.name = place.frames[place.frame_count - 1].linkage;
  function.has_lines = function.name;
  if (!function.name)
    function.name = place.mangled ? place.mangled : place.symbol;
  function.is_start = place.symbol && !place.offset;
  return function;
}

/* Calls enter a function, and so do jumps from other functions. */
static int entry_count(struct export_job *job, const struct analysis_jump *jump)
{
  struct gcov *gcov = job->state;
  struct gcov_item key = {.kind = GCOV_CALL};
  struct gcov_item *item;
  bool is_call = jump->kind == LB_BRANCH_NEAR_REL_CALL || jump->kind == LB_BRANCH_NEAR_IND_CALL;
  struct function to = function_at(job, &jump->to), from = {0};

  if (!to.has_lines || !to.is_start)
    return 0;
  if (!is_call && jump->from.file == gcov->file)
    from = function_at(job, &jump->from);
  if (from.name && !strcmp(from.name, to.name)) /* from its cold part, or in its loop */
    return 0;
  if (gcov_string(&gcov->table, to.name, &key.name) < 0 || !(item = gcov_item(&gcov->table, &key)))
    return -ENOMEM;
  item->count += jump->count;
  return 0;
}

static int target_count(struct export_job *job, const struct analysis_jump *jump)
{
  struct gcov *gcov = job->state;
  struct gcov_item key = {.kind = GCOV_TARGET};
  struct gcov_item *item;
  struct function to = function_at(job, &jump->to);
  int r = to.name && to.is_start ? place_find(job, jump->from.address, &key.parent, &key.offset) : 0;

  if (r <= 0)
    return r;
  if (gcov_string(&gcov->table, to.name, &key.name) < 0 || !(item = gcov_item(&gcov->table, &key)))
    return -ENOMEM;
  item->count += jump->count;
  return 0;
}

static int jumps_count(struct export_job *job)
{
  struct gcov *gcov = job->state;
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_jumps(job->counts, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    if (jumps[i].is_passed || jumps[i].kind == LB_BRANCH_NEAR_RET || !binary_kind_is_near(jumps[i].kind))
      continue;
    if (jumps[i].to.file == gcov->file && export_has_location(job, &jumps[i].to))
      r = entry_count(job, &jumps[i]);
    if (r >= 0 && jumps[i].from.file == gcov->file && jumps[i].kind == LB_BRANCH_NEAR_IND_CALL &&
        export_has_location(job, &jumps[i].from))
      r = target_count(job, &jumps[i]);
  }
  return r;
}

/* ---- the file ---- */

static void put_strings(struct export_job *job, const struct gcov_table *table)
{
  export_u32(job, TAG_STRINGS);
  export_u32(job, 0); /* readers ignore the lengths of sections */
  export_u32(job, (uint32_t)table->string_count);
  for (size_t i = 0; i < table->string_count; i++) {
    uint32_t size = (uint32_t)strlen(table->strings[i]) + 1;

    export_u32(job, size);
    export_put(job, table->strings[i], size);
  }
}

/* Writes a line, followed by the targets of its indirect calls. */
static void put_line(struct export_job *job, const struct gcov_item *line, const struct gcov_item *end)
{
  uint32_t targets = 0;

  while (line + 1 + targets < end && line[1 + targets].kind == GCOV_TARGET)
    targets++;
  export_u32(job, line->offset << 16);
  export_u32(job, targets);
  export_u64(job, line->count);
  for (uint32_t i = 1; i <= targets; i++) {
    export_u32(job, TARGET_INDIRECT_CALL);
    export_u64(job, line[i].name);
    export_u64(job, line[i].count);
  }
}

static uint32_t kind_count(const struct gcov_item *items, size_t count, enum gcov_kind kind)
{
  uint32_t number = 0;

  for (size_t i = 0; i < count; i++)
    number += items[i].kind == kind;
  return number;
}

/* Recursive, but no deeper than there are frames. */
static void put_instance(struct export_job *job, const struct gcov_item *instance)
{
  struct gcov *gcov = job->state;
  size_t count;
  const struct gcov_item *items = gcov_items(&gcov->table, instance->instance, &count);

  export_u32(job, instance->name);
  export_u32(job, kind_count(items, count, GCOV_LINE));
  export_u32(job, kind_count(items, count, GCOV_CALL));
  for (size_t i = 0; i < count; i++)
    if (items[i].kind == GCOV_LINE)
      put_line(job, &items[i], items + count);
  for (size_t i = 0; i < count; i++)
    if (items[i].kind == GCOV_CALL) {
      export_u32(job, items[i].offset << 16);
      put_instance(job, &items[i]);
    }
}

static void put_file(struct export_job *job)
{
  struct gcov *gcov = job->state;
  size_t count;
  const struct gcov_item *functions;

  gcov_table_finish(&gcov->table);
  export_u32(job, MAGIC);
  export_u32(job, VERSION);
  export_u32(job, 0);
  put_strings(job, &gcov->table);
  functions = gcov_items(&gcov->table, 0, &count);
  export_u32(job, TAG_FUNCTIONS);
  export_u32(job, 0);
  export_u32(job, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    export_u64(job, functions[i].count);
    put_instance(job, &functions[i]);
  }
  export_u32(job, TAG_MODULES);
  export_u32(job, 0);
  export_u32(job, 0);
}

static int gcov_end(struct export_job *job)
{
  struct gcov *gcov = job->state;
  struct symbol_module *module = NULL;
  bool is_separate;
  int r = binary_open(job, &gcov->file, &module);

  if (r >= 0 && !symbol_module_dwarf(module, &is_separate))
    r = export_fail(job, "%s has no debug information: a profile by lines needs it; compile it with -g",
                    binary_name(job, gcov->file));
  symbol_module_close(module);
  if (r >= 0)
    r = binary_instructions(job, &gcov->instructions);
  for (size_t i = 0; i < gcov->instructions.count && r >= 0; i++)
    r = instruction_count(job, &gcov->instructions.items[i]);
  if (r >= 0 && !gcov->table.count)
    r = export_fail(job, "no source line is known for the code that ran in %s: a profile by lines needs them",
                    binary_name(job, gcov->file));
  if (r >= 0)
    r = jumps_count(job);
  if (r >= 0)
    put_file(job);
  return r;
}

static void gcov_done(struct export_job *job)
{
  struct gcov *gcov = job->state;

  gcov_table_done(&gcov->table);
  tally_done(&gcov->instructions);
}

const struct export_format export_format_gcov = {
  .name = "gcov",
  .what = "profile of a binary by source lines, for gcc -fauto-profile (gcc 12)",
  .suffix = ".afdo",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct gcov),
  .end = gcov_end,
  .done = gcov_done,
};
