/* SPDX-License-Identifier: Apache-2.0
 *
 * AutoFDO's text profile, for create_llvm_prof --profiler=text and create_gcov: the number of ranges, and
 * "from-to:count" for each; the number of addresses, which is 0; the number of branches, and "from->to:count" for each.
 * All are hex offsets in the file. A range includes both ends; the second is the address of its last instruction.
 */
#include "export/binary.h"

#include "symbol/symbol.h"

struct autofdo {
  uint32_t file;
  bool is_counting; /* first pass: only counts them */
  uint64_t count;
};

static int put_straight(struct export_job *job, uint64_t first, uint64_t last, uint64_t count)
{
  struct autofdo *autofdo = job->state;
  uint64_t from, to;

  if (!binary_offset(job, autofdo->file, first, &from) || !binary_offset(job, autofdo->file, last, &to))
    return 0;
  autofdo->count++;
  if (!autofdo->is_counting)
    export_print(job, "%llx-%llx:%llu\n", (unsigned long long)from, (unsigned long long)to, (unsigned long long)count);
  return 0;
}

static int put_branch(struct export_job *job, const struct binary_branch *branch)
{
  struct autofdo *autofdo = job->state;
  uint64_t from, to;

  if (!branch->has_from || !branch->has_to || !binary_offset(job, autofdo->file, branch->from, &from) ||
      !binary_offset(job, autofdo->file, branch->to, &to))
    return 0;
  autofdo->count++;
  if (!autofdo->is_counting)
    export_print(job, "%llx->%llx:%llu\n", (unsigned long long)from, (unsigned long long)to,
                 (unsigned long long)branch->count);
  return 0;
}

static const struct binary_visitor visitor = {.straight = put_straight, .branch = put_branch};

/* Writes the number of lines, then the lines. */
static int list_put(struct export_job *job, int (*walk)(struct export_job *, const struct binary_visitor *))
{
  struct autofdo *autofdo = job->state;
  int r;

  autofdo->count = 0;
  autofdo->is_counting = true;
  r = walk(job, &visitor);
  export_print(job, "%llu\n", (unsigned long long)autofdo->count);
  autofdo->is_counting = false;
  return r < 0 ? r : walk(job, &visitor);
}

/* For DWARF 5, AutoFDO 0.19 and other versions before 2023 make an empty profile without a message. */
static int lines_check(struct export_job *job, struct symbol_module *module, uint32_t file)
{
  const char *name = binary_name(job, file);
  bool is_separate;
  unsigned version = symbol_module_dwarf(module, &is_separate);

  if (!version)
    return export_fail(job, "%s has no debug information: AutoFDO needs it; compile it with -gdwarf-4", name);
  if (is_separate)
    export_warn(job, "the debug information of %s is in a separate file: AutoFDO looks for it in the program", name);
  else if (version > 4)
    export_warn(job,
                "%s has DWARF %u: AutoFDO up to 0.19 silently makes an empty profile of it; compile it with "
                "-gdwarf-4, or use --to gcov",
                name, version);
  return 0;
}

static int autofdo_end(struct export_job *job)
{
  struct autofdo *autofdo = job->state;
  struct symbol_module *module = NULL;
  int r = binary_open(job, &autofdo->file, &module);

  if (r >= 0)
    r = lines_check(job, module, autofdo->file);
  symbol_module_close(module);

  if (r >= 0)
    r = list_put(job, binary_straights);
  export_print(job, "0\n");
  return r < 0 ? r : list_put(job, binary_branches);
}

const struct export_format export_format_autofdo = {
  .name = "autofdo",
  .what = "AutoFDO's text profile of a binary, for create_llvm_prof and create_gcov",
  .suffix = ".afdo.txt",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct autofdo),
  .end = autofdo_end,
};
